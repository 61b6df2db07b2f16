"""Text on a terminal: help, tables, numbers, progress."""

import argparse
from collections.abc import Iterable, Sequence
import math
import os
import re
import shutil
import sys
import time
from typing import Any, TextIO
import unicodedata

# Characters of the bar: room is left for a label on a terminal of 80 columns.
BAR_WIDTH = 24
# A cut column of text keeps so many.
MIN_TEXT_WIDTH = 8
_SEPARATOR = '  '
# Rows of a table, characters of a line: what one can still look at.
MAX_ROWS, MAX_LINE = 500, 4000
# What a terminal acts upon, and what cannot be encoded.
_CONTROL = re.compile(
    '[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]'
)


class HelpFormatter(argparse.HelpFormatter):
    """Wraps descriptions, keeps the lines of examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith('examples:'):
            return ''.join(indent + line for line in text.splitlines(keepends=True))
        return super()._fill_text(text, width, indent)


def display_width(text: str) -> int:
    """Columns that a text takes on a terminal."""
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in 'WF' else 1


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
            _pad(_truncate(cell, size), size, side)
            for cell, size, side in zip(line, widths, align, strict=True)
        ).rstrip()
        for line in lines
    ]
    more = len(whole) - len(body)
    return '\n'.join([*texts, f'… and {more} more'] if more else texts)


def _is_number(text: str) -> bool:
    return not text or text[0] in '+-−0123456789.—∞' or text in ('nan', 'inf')


def _fit_to_terminal(widths: list[int], align: str) -> None:
    """Narrow the widest text until a table fits its terminal; numbers are never cut."""
    if sys.stdout is None or not sys.stdout.isatty():
        return
    room = shutil.get_terminal_size().columns
    excess = sum(widths) + len(_SEPARATOR) * (len(widths) - 1) - room
    texts = [k for k, side in enumerate(align) if side == '<']
    if excess > 0 and texts:
        widest = max(texts, key=lambda k: widths[k])
        widths[widest] = max(min(MIN_TEXT_WIDTH, widths[widest]), widths[widest] - excess)


def _truncate(text: str, size: int) -> str:
    if display_width(text) <= size:
        return text
    while text and display_width(text) > size - 1:
        text = text[:-1]
    return f'{text}…'


def _pad(text: str, size: int, side: str) -> str:
    space = ' ' * (size - display_width(text))
    return space + text if side == '>' else text + space


def format_number(value: float, digits: int = 4) -> str:
    """Show a value with so many significant digits, '—' when there is none."""
    if not math.isfinite(value):
        return '—' if math.isnan(value) else '∞' if value > 0 else '-∞'
    text = f'{value:.{digits}g}'
    return f'{value:.{digits - 1}e}' if 'e' in text else text


def printable(text: str) -> str:
    """Escape what a terminal acts upon, and cut lines that nobody reads."""
    text = _CONTROL.sub(lambda match: ascii(match.group())[1:-1], text)
    if len(text) <= MAX_LINE:
        return text
    return '\n'.join(
        line
        if len(line) <= MAX_LINE
        # The remedy is at the end.
        else f'{line[: MAX_LINE - 400]} … {len(line) - MAX_LINE} characters more … {line[-400:]}'
        for line in text.split('\n')
    )


class PrintableStream:
    """A stream, None for one that is closed, to which only what is `printable` is written."""

    def __init__(self, stream: TextIO | None):
        self._stream = stream or open(os.devnull, 'w', encoding='utf-8')

    def write(self, text: str) -> int:
        """Write a text."""
        return self._stream.write(printable(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class ProgressBar:
    """
    Steps of a long work on one line of a terminal; silent where standard error is no terminal.

    Parameters
    ----------
    steps : how many there will be
    stream : where to; standard error by default, so that output can be piped

    """

    def __init__(self, steps: int, stream: TextIO | None = None):
        self.steps, self.done, self.label = steps, 0, ''
        self.stream = stream or sys.stderr
        self.shown = self.stream is not None and self.stream.isatty()
        self.began = time.monotonic()

    def step(self, label: str) -> None:
        """Begin the next step."""
        self.label = label
        self.show(self.done / self.steps, label)
        self.done = min(self.done + 1, self.steps)

    def share(self, part: float) -> None:
        """Show how much of the present step is done."""
        done = max(0, self.done - 1) + min(max(part, 0.0), 1.0)
        self.show(done / self.steps, f'{self.label}, {100 * part:.0f} %')

    def show(self, fraction: float, label: str) -> None:
        """Draw the bar at a fraction of the whole."""
        if self.shown:
            full = round(BAR_WIDTH * min(max(fraction, 0.0), 1.0))
            bar = '█' * full + '░' * (BAR_WIDTH - full)
            seconds = time.monotonic() - self.began
            line = _truncate(
                f'{bar} {seconds:5.1f} s  {label}', shutil.get_terminal_size().columns - 1
            )
            self.stream.write(f'\r\x1b[K{line}')
            self.stream.flush()

    def __enter__(self) -> 'ProgressBar':
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown:
            self.stream.write('\r\x1b[K')
            self.stream.flush()
