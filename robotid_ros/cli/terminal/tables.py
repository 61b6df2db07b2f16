"""Tables: columns aligned by what letters take on a terminal, cut to its width."""

from collections.abc import Iterable, Sequence
import shutil
import sys

from .text import display_width, printable, truncated

# A cut column of text keeps so many.
MIN_TEXT_WIDTH = 8
# Rows of a table: what one can still look at; what is shown unasked fits on a screen.
MAX_ROWS, SHORT = 500, 20
_SEPARATOR = '  '


def format_table(headers: Sequence[str], rows: Iterable[Sequence[str]], align: str = '') -> str:
    """
    Align rows in columns below their headers.

    Parameters
    ----------
    headers : one per column
    rows : texts
    align : '<' or '>' for each column; left out: text left, numbers right

    """
    whole = [[printable(str(cell)) for cell in row] for row in rows]
    body = whole[:MAX_ROWS]
    columns = list(zip(*body, strict=True)) if body else [()] * len(headers)
    align = align or ''.join('>' if all(map(_is_number, column)) else '<' for column in columns)
    widths = [
        max([display_width(header), *map(display_width, column)])
        for header, column in zip(headers, columns, strict=True)
    ]
    _fit_to_terminal(widths, align)
    rule = ['─' * size for size in widths]
    lines = [list(headers), rule, *body]
    texts = [
        _SEPARATOR.join(
            _pad(truncated(cell, size), size, side)
            for cell, size, side in zip(line, widths, align, strict=True)
        ).rstrip()
        for line in lines
    ]
    more = len(whole) - len(body)
    return '\n'.join([*texts, f'… and {more} more'] if more else texts)


def _is_number(text: str) -> bool:
    return not text or text[0] in '+-−0123456789.—∞' or text in ('nan', 'inf')


def _fit_to_terminal(widths: list[int], align: str) -> None:
    """Narrow the widest texts until a table fits its terminal; numbers are never cut."""
    if sys.stdout is None or not sys.stdout.isatty():
        return
    room = shutil.get_terminal_size().columns - len(_SEPARATOR) * (len(widths) - 1)
    texts = [k for k, side in enumerate(align) if side == '<']
    while sum(widths) > room and texts:
        widest = max(texts, key=lambda k: widths[k])
        if widths[widest] <= MIN_TEXT_WIDTH:
            return
        others = [widths[k] for k in texts if k != widest]
        enough = widths[widest] - (sum(widths) - room)
        widths[widest] = max(
            MIN_TEXT_WIDTH, enough, min(widths[widest] - 1, max(others, default=0))
        )


def _pad(text: str, size: int, side: str) -> str:
    space = ' ' * (size - display_width(text))
    return space + text if side == '>' else text + space
