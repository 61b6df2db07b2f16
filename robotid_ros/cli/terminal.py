"""What the command line prints: paragraphs, tables, errors and progress by rich, and JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import itertools
import json
import math
import os
import re
import shutil
import sys
import textwrap
import threading
import time
from typing import Any, TextIO, TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from ..core.findings import Finding

WIDTH = 80  # columns of paragraphs; a narrower terminal has fewer
# Characters of a line: what one can still look at. Of an error: a sentence, not a page.
MAX_LINE, MAX_ERROR = 4000, 1000
KEPT_END = 400  # so much of the end of what is cut is kept: the remedy stands there
# Rows of a table: what one can still look at; what is shown unasked fits on a screen.
MAX_ROWS, SHORT = 500, 20
MARGIN = 9  # columns of the label in front of a paragraph; a longer one has a colon
MOST_FINDINGS = 6  # findings that are shown unasked
MOST_DECIMALS = 6  # decimals of a value with σ; smaller ones have an exponent
MIN_TEXT_WIDTH = 8  # columns of a text in a narrow table
# Characters of the progress bar: room is left for a label on a terminal of 80 columns.
BAR_WIDTH = 24
GAP = '  '  # between columns of a table
# Without a terminal: seconds until the first line on the progress, and between two at least.
FIRST_LINE, NEXT_LINE = 2.0, 10.0
# Of a step whose iterations nobody can count, each leaves so much of what was left.
LEFT_BY_ITERATION = 0.7
COMMAND = re.compile(r'(?<=: )robotid [^:]*$')  # which a paragraph ends with
# What a terminal acts upon, and what cannot be encoded.
_CONTROL = re.compile(
    '[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]'
)
STYLES = {'good': 'green', 'doubtful': 'yellow', 'bad': 'red', 'heading': 'bold'}
LABELS = dict(error='bad', warning='doubtful', ok='good')


def printable(text: str, longest: int = MAX_LINE) -> str:
    """Escape what a terminal acts upon, and cut lines that nobody reads."""
    text = _CONTROL.sub(lambda match: ascii(match.group())[1:-1], text)
    return '\n'.join(
        line
        if len(line) <= longest
        else f'{line[: longest - KEPT_END]} … {len(line) - longest} characters more … '
        f'{line[-KEPT_END:]}'
        for line in text.split('\n')
    )


def show(
    text: str = '', style: str = '', head: int | None = None, stream: TextIO | None = None
) -> None:
    """Print what is `printable`, as all here does; `head` characters, or all, in a style."""
    stream, text = stream or sys.stdout, printable(text)
    if not style or not stream.isatty():
        print(text, file=stream)
        return
    from rich.text import Text

    styled = Text(text)
    styled.stylize(STYLES[style], 0, head)
    _console(stream).print(styled, soft_wrap=True)


def _console(stream: TextIO) -> 'Console':
    from rich.console import Console

    # Without colours (no-color.org) bold goes, too: a terminal may show it as a colour.
    return Console(file=stream, color_system=None if os.environ.get('NO_COLOR') else 'auto')


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
    filled = textwrap.fill(
        kept.replace(' %', '\xa0%'),  # no line begins with it
        width,
        subsequent_indent=' ' * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.replace('\xa0', ' ')


def print_error(text: str) -> None:
    """Print a sentence on standard error: a line, broken between words on a terminal."""
    text = printable(f'robotid: {text}', MAX_ERROR)
    show(wrapped(text, sys.stderr) if sys.stderr.isatty() else text, 'bad', stream=sys.stderr)


def print_table(headers: Sequence[str], rows: Iterable[Sequence[str]], align: str = '') -> None:
    """Print a table as `format_table` lays it out, and an empty line."""
    show(format_table(headers, rows, align) + '\n')


def format_table(headers: Sequence[str], rows: Iterable[Sequence[str]], align: str = '') -> str:
    """Lay out a table, `align` has '<' or '>' for each column; texts wrap, no number is cut."""
    from rich.cells import cell_len

    body = [[printable(str(cell)) for cell in row] for row in rows]
    more, body = len(body) - MAX_ROWS, body[:MAX_ROWS]
    columns = [*zip(headers, *body, strict=True)]
    right, widths, least = list[bool](), list[int](), list[int]()
    for k, (_, *cells) in enumerate(columns):
        numbers = (not c or c[0] in '+-−0123456789.—∞' or c in ('nan', 'inf') for c in cells)
        right.append(align[k] == '>' if align else bool(cells) and all(numbers))
        widths.append(max(map(cell_len, columns[k])))
        least.append(widths[k] if right[k] else min(widths[k], MIN_TEXT_WIDTH))
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else MAX_LINE
    room -= len(GAP) * (len(columns) - 1)
    while sum(widths) > room and widths != least:
        _, widest = max((w, k) for k, w in enumerate(widths) if w > least[k])
        widths[widest] -= 1

    def laid_out(row: Sequence[str]) -> Iterator[str]:
        for pieces in itertools.zip_longest(*map(_folded, row, widths), fillvalue=''):
            spaces = [' ' * (w - cell_len(piece)) for w, piece in zip(widths, pieces, strict=True)]
            each = zip(pieces, spaces, right, strict=True)
            yield GAP.join(s + piece if r else piece + s for piece, s, r in each).rstrip()

    rule = '─' * (sum(widths) + len(GAP) * (len(columns) - 1))
    lines = [*laid_out(headers), rule, *itertools.chain.from_iterable(map(laid_out, body))]
    return '\n'.join([*lines, f'… and {more} more'] if more > 0 else lines)


def _folded(cell: str, width: int) -> list[str]:
    """Break a cell into lines of a width, between words where these fit."""
    from rich.cells import cell_len

    if cell_len(cell) <= width and '\n' not in cell:
        return [cell]
    from rich.text import Text  # takes longer to import than most tables to lay out

    return [line.plain.rstrip() for line in Text(cell).wrap(_console(sys.stdout), width)]


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
    """
    How far a command is, and about how long it still takes; quiet ones show nothing.

    A bar on a terminal; elsewhere lines on standard error, from `FIRST_LINE` on, with a label
    until a step says more. It never goes back, and is full only when the work is done. What this
    process, C functions and processes that it starts write to standard error meanwhile, as ROS
    logs, stands above the bar.
    """

    def __init__(self, label: str = '', *, quiet: bool = False):
        super().__init__()
        self.plan(1)
        self._step, self._within, self.fraction, self.label = -1, 0.0, 0.0, label
        self._began = self._end = time.monotonic()
        self.shown = sys.stderr.isatty() and not quiet
        self._lines = not (self.shown or quiet)
        self._done = threading.Event()
        self._console: Console | None = None
        self._bar: Any = None

    def plan(self, steps: int | Sequence[tuple[str, float]]) -> None:
        """Take other steps, a number or labels with shares of time; the present place stays."""
        self._plan = [('', 1.0)] * steps if isinstance(steps, int) else list(steps)
        self._total = sum(weight for _, weight in self._plan)

    def step(self, label: str) -> None:
        """Begin the next step of this label; any other label says how the present one goes."""
        later = range(self._step + 1, len(self._plan))
        found = next((k for k in later if self._plan[k][0] in ('', label)), None)
        if found is None:
            within = 1.0 - LEFT_BY_ITERATION * (1.0 - self._within)
        else:
            self._step, within = found, 0.0
        self._name = label
        self.share(within, label)

    def share(self, part: float, label: str = '') -> None:
        """Show how much of the present step is done."""
        self._within = min(max(part, 0.0), 1.0)
        done = sum(weight for _, weight in self._plan[: max(self._step, 0)])
        if self._step >= 0:
            done += self._within * self._plan[self._step][1]
        self.show(done / self._total, label or f'{self._name}, {100 * self._within:.0f} %')

    def show(self, fraction: float, label: str) -> None:
        """Draw the bar at a fraction of the whole, not before where it was; '': the old label."""
        self.fraction = max(self.fraction, min(max(fraction, 0.0), 1.0))
        self.label = label or self.label
        if self.fraction > 0.0:
            took = time.monotonic() - self._began
            self._end = self._began + took / self.fraction
        if self._bar is not None:
            self._bar.update(0, completed=self.fraction, description=printable(self.label))

    def expect(self, seconds: float) -> None:
        """Say how long the work takes from now on, where it is known."""
        self._end = time.monotonic() + seconds

    def left(self) -> str:
        """Say how long it still takes, '' where that is not known or over."""
        seconds = self._end - time.monotonic()
        text = f'{seconds:.0f} s' if seconds < 100.0 else f'{seconds / 60.0:.0f} min'
        return f'about {text} left' if seconds >= 1.0 else ''

    __rich__ = left  # what the column of a bar shows

    def print_line(self, text: str) -> None:
        """Print a line above the bar."""
        if self._console is None:
            show(text, stream=sys.stderr)
        else:
            self._console.print(printable(text), soft_wrap=True, markup=False, highlight=False)

    def __enter__(self) -> 'ProgressBar':
        if self._lines:
            thread = threading.Thread(target=self._print_lines, name='progress', daemon=True)
            thread.start()
            self.callback(thread.join)
            self.callback(self._done.set)
        if self.shown:
            from rich.progress import BarColumn, Progress, RenderableColumn, TextColumn
            from rich.table import Column

            sys.stderr.flush()
            encoding, errors = sys.stderr.encoding, 'backslashreplace'
            terminal = open(os.dup(2), 'w', encoding=encoding, errors=errors)
            self.enter_context(terminal)
            self.callback(setattr, self, '_console', None)
            self._console = _console(terminal)
            one_line = Column(no_wrap=True, overflow='ellipsis')
            self._bar = Progress(
                BarColumn(BAR_WIDTH),
                TextColumn('{task.elapsed:4.0f} s', markup=False),
                RenderableColumn(self),
                TextColumn('{task.description}', markup=False, table_column=one_line),
                console=self._console,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
                refresh_per_second=4,
            )
            self.enter_context(self._bar).add_task(printable(self.label), total=1.0)
            self.enter_context(self._lines_above(terminal.fileno()))
        return self

    def _print_lines(self) -> None:
        """Print a line after `FIRST_LINE`, then every `NEXT_LINE`, of a long work more seldom."""
        wait = FIRST_LINE
        while not self._done.wait(wait):
            took = time.monotonic() - self._began
            left = self.left()
            self.print_line(f'{self.label}: {took:.0f} s' + f', {left}' * bool(left))
            wait = max(NEXT_LINE, 0.1 * took)

    @contextlib.contextmanager
    def _lines_above(self, terminal: int) -> Iterator[None]:
        """Take what goes to standard error, and print it above the bar."""
        source, sink = os.pipe()
        end = os.urandom(16).hex()  # processes that go on may keep the pipe open

        def copy() -> None:
            with open(source, errors='backslashreplace') as lines:
                for line in lines:
                    text, last, _ = line.rstrip('\n').partition(end)
                    if text or not last:
                        with contextlib.suppress(OSError):  # no terminal any more
                            self.print_line(text)
                    if last:
                        return

        reader = threading.Thread(target=copy, name='log', daemon=True)
        os.dup2(sink, 2)
        reader.start()
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            os.write(sink, f'{end}\n'.encode())
            os.close(sink)
            reader.join()
