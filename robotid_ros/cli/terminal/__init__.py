"""What the command line shows: text, tables, progress, JSON."""

from .json_output import print_json as print_json
from .log_lines import lines_above as lines_above
from .progress import ProgressBar as ProgressBar
from .tables import format_table as format_table, SHORT as SHORT
from .text import (
    display_width as display_width,
    format_number as format_number,
    HelpFormatter as HelpFormatter,
    LABELS as LABELS,
    print_error as print_error,
    print_paragraph as print_paragraph,
    print_styled as print_styled,
    printable as printable,
    PrintableStream as PrintableStream,
    wrapped as wrapped,
)
