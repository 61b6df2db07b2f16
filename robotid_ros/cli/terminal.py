"""What the command line prints: paragraphs, tables, errors, JSON, and progress by rich."""

from collections.abc import Iterable, Mapping, Sequence
import contextlib
import json
import math
import os
import re
import shutil
import sys
import textwrap
from typing import Any, TextIO, TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from ..core.findings import Finding

WIDTH = 80  # columns of paragraphs; a narrower terminal has fewer
SHORT = 20  # rows of a table that is shown unasked: they fit on a screen
MARGIN = 9  # columns of the label in front of a paragraph; a longer one has a colon
MOST_FINDINGS = 6  # findings that are shown unasked
MOST_DECIMALS = 6  # decimals of a value with σ; smaller ones have an exponent
MIN_TEXT_WIDTH = 24  # columns of the text at the end of a narrow table
# Characters of the progress bar: room is left for a label on a terminal of 80 columns.
BAR_WIDTH = 24
GAP = '  '  # between columns of a table
WHOLE: dict[str, Any] = {'break_long_words': False, 'break_on_hyphens': False}  # words
COMMAND = re.compile(r'(?<=: )robotid [^:]*$')  # which a paragraph ends with
# What a terminal acts upon, and what cannot be encoded.
_CONTROL = re.compile(
    '[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]'
)
STYLES = {'good': '32', 'doubtful': '33', 'bad': '31', 'heading': '1'}  # as terminals know them
LABELS = dict(error='bad', warning='doubtful', ok='good')


def printable(text: str) -> str:
    """Escape what a terminal acts upon."""
    return _CONTROL.sub(lambda match: ascii(match.group())[1:-1], text)


def show(
    text: str = '', style: str = '', head: int | None = None, stream: TextIO | None = None
) -> None:
    """Print what is `printable`, as all here does; `head` characters, or all, in a style."""
    stream, text = stream or sys.stdout, printable(text)
    plain_terminal = os.environ.get('NO_COLOR') or os.environ.get('TERM') == 'dumb'
    if style and stream.isatty() and not plain_terminal:
        shown = text[:head]
        text = f'\x1b[{STYLES[style]}m{shown}\x1b[0m{text[len(shown) :]}'
    print(text, file=stream)


def print_paragraph(text: str, label: str = '', style: str = '') -> None:
    """Print a paragraph beside a label in a margin; the style is the label's, else the text's."""
    head, indent = len(label) or None, MARGIN if 0 < len(label) < MARGIN else 2
    if indent == MARGIN:
        text = f'{label:<{MARGIN}}{text}'
    elif label:
        text, head = f'{label}: {text}', len(label) + 1
    style = style or LABELS.get(label, 'heading' if label else '')
    show(wrapped(text, sys.stdout, indent), style, head)


def print_written(written: Mapping[str, object]) -> None:
    """Print paths, or why there is none, each behind its label."""
    for label, path in written.items():
        print_paragraph(str(path), label)


def print_findings(findings: 'Iterable[Finding]', *, every: bool = True) -> None:
    """Print findings, what matters most first; `every`: also those that ask for nothing."""
    from ..core.findings import in_order, seen_and_remedy, Severity

    groups: dict[tuple[str, Severity], list[Finding]] = {}
    for each in in_order(findings):
        groups.setdefault((each.code, each.severity), []).append(each)
    urgent = sum(severity > Severity.INFO for _, severity in groups)
    shown = len(groups) if every else min(urgent, MOST_FINDINGS)
    for (code, severity), alike in [*groups.items()][:shown]:
        texts = [*map(seen_and_remedy, alike)]
        if len({remedy for _, remedy in texts}) == 1:  # read once
            texts = [(' '.join(seen for seen, _ in texts), texts[0][1])]
        for seen, remedy in texts:
            print_paragraph(f'{code} {seen} {remedy}'.rstrip(), severity.word)
    if codes := dict.fromkeys(code for code, _ in [*groups][shown:]):
        print_paragraph(f'{", ".join(codes)}: --all shows them, robotid explain CODE', 'more')


def wrapped(text: str, stream: TextIO, indent: int = 2) -> str:
    """Break a paragraph into lines for a stream. Words, and a command at its end, stay whole."""
    width = min(shutil.get_terminal_size().columns, WIDTH) if stream.isatty() else WIDTH
    kept = COMMAND.sub(lambda found: found[0].replace(' ', '\xa0'), printable(text))
    kept = kept.replace(' %', '\xa0%')  # no line begins with it
    filled = textwrap.fill(kept, width, subsequent_indent=' ' * indent, **WHOLE)
    return filled.replace('\xa0', ' ')


def print_error(text: str) -> None:
    """Print a sentence on standard error: a line, broken between words on a terminal."""
    text = f'robotid: {text}'
    show(wrapped(text, sys.stderr) if sys.stderr.isatty() else text, 'bad', stream=sys.stderr)


def print_table(headers: Sequence[str], rows: Iterable[Sequence[str]], align: str) -> None:
    """Print a table as `format_table` lays it out, and an empty line."""
    show(format_table(headers, rows, align) + '\n')


def format_table(headers: Sequence[str], rows: Iterable[Sequence[str]], align: str) -> str:
    """Lay out a table, `align` has '<' or '>' for each column; a text at the end may wrap."""
    body = [[printable(str(cell)) for cell in row] for row in rows]
    columns = [*zip(headers, *body, strict=True)]
    widths = [max(map(len, column)) for column in columns]

    def laid_out(row: Sequence[str]) -> str:
        cells = zip(row, align, widths, strict=True)
        return GAP.join(f'{cell:{side}{width}}' for cell, side, width in cells).rstrip()

    lines = [laid_out(row) for row in (headers, *body)]
    last = sum(widths[:-1]) + len(GAP) * (len(columns) - 1)
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    if align[-1] == '<' and room - last >= MIN_TEXT_WIDTH:
        indent = ' ' * last
        lines = [textwrap.fill(line, room, subsequent_indent=indent, **WHOLE) for line in lines]
    lines.insert(1, '─' * min(last + widths[-1], room))
    return '\n'.join(lines)


def format_number(value: float, digits: int = 4) -> str:
    """Show a value with so many significant digits, '—' when there is none."""
    if not math.isfinite(value):
        return '—' if math.isnan(value) else '∞' if value > 0 else '-∞'
    from ..core.findings import formatted

    text = formatted(value, f'.{digits}g')
    return f'{value:.{digits - 1}e}' if 'e' in text else text


def format_measured(value: float, sigma: float) -> tuple[str, str]:
    """Show a value as far as it is known, and its σ with two significant digits."""
    if not (0.0 < sigma < math.inf and math.isfinite(value)):
        return format_number(value), format_number(sigma, 2)
    last = 1 - math.floor(math.log10(sigma))
    if last > MOST_DECIMALS:
        known = math.floor(math.log10(max(abs(value), sigma))) + last + 1
        return format_number(value, known), format_number(sigma, 2)
    value, sigma = round(value, last), round(sigma, last)
    return f'{value:.{max(last, 0)}f}', f'{sigma:.{max(last, 0)}f}'


def format_percent(share: float) -> str:
    """Show a share with one decimal, a small one with two digits; '—' when there is none."""
    percent = 100.0 * share
    if not math.isfinite(percent):
        return format_number(percent)
    decimal = 1.0 <= abs(percent) < 100.0
    return f'{percent:.1f} %' if decimal else f'{format_number(percent, 2 + (percent > 1.0))} %'


def print_json(value: Any) -> None:
    """Print a value, for which `plain` says what becomes of it."""
    print(json.dumps(plain(value), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """Turn a value into JSON's: findings with texts; numbers that are none or not finite, null."""
    from ..core.findings import as_data, Finding
    from ..files.yaml import to_plain

    def change(value: Any) -> Any:
        if isinstance(value, Finding):
            return as_data(value)
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return to_plain(value, change)


class ProgressBar(contextlib.ExitStack):
    """The step that runs, as a bar on a terminal; quiet ones show nothing."""

    def __init__(self, *, quiet: bool = False):
        super().__init__()
        self.shown = sys.stderr.isatty() and not quiet
        self._name = ''
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def step(self, label: str) -> None:
        """Begin a step, of which nobody knows how much is done."""
        self._name = label
        if self.shown:
            bar = self._bar = self._bar or self.enter_context(_rich_bar())
            if self._task is not None:
                bar.remove_task(self._task)
            self._task = bar.add_task(printable(label), total=None)

    def share(self, part: float, label: str = '') -> None:
        """Show how much of the present step is done."""
        if self._bar is not None and self._task is not None:
            label = printable(label or self._name)
            self._bar.update(self._task, total=1.0, completed=part, description=label)


def _rich_bar() -> 'Progress':
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Column

    return Progress(
        BarColumn(BAR_WIDTH),
        TextColumn('{task.elapsed:4.0f} s, left', markup=False),
        TimeRemainingColumn(compact=True),
        TextColumn(
            '{task.description}',
            markup=False,
            table_column=Column(no_wrap=True, overflow='ellipsis'),
        ),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        refresh_per_second=4,
    )
