"""What the command line shows: text, tables, progress, JSON."""

from .json_output import print_json as print_json
from .log_lines import lines_above as lines_above
from .progress import ProgressBar as ProgressBar
from .tables import format_table as format_table
from .tables import SHORT as SHORT
from .text import (
    display_width as display_width,
)
from .text import (
    format_number as format_number,
)
from .text import (
    HelpFormatter as HelpFormatter,
)
from .text import (
    LABELS as LABELS,
)
from .text import (
    print_error as print_error,
)
from .text import (
    print_paragraph as print_paragraph,
)
from .text import (
    print_styled as print_styled,
)
from .text import (
    printable as printable,
)
from .text import (
    PrintableStream as PrintableStream,
)
from .text import (
    wrapped as wrapped,
)
