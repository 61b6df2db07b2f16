"""Text on a terminal: help, paragraphs, numbers, colours; nothing that a terminal acts upon."""

import argparse
import math
import os
import re
import shutil
import sys
import textwrap
from typing import Any, TextIO
import unicodedata

# Columns of paragraphs, and of tables where nobody knows the terminal's.
WIDTH = 80
# Characters of a line: what one can still look at. Of an error: a sentence, not a page.
MAX_LINE, MAX_ERROR = 4000, 1000
# So much of the end of what is cut is kept: the remedy stands there.
KEPT_END = 400
# What a terminal acts upon, and what cannot be encoded.
_CONTROL = re.compile(
    '[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]'
)
# Select Graphic Rendition of ECMA-48.
STYLES = {'good': '32', 'doubtful': '33', 'bad': '31', 'heading': '1'}
LABELS = {'error': 'bad', 'warning': 'doubtful', 'note': 'heading', 'ok': 'good'}


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


def truncated(text: str, size: int) -> str:
    """Cut a text to so many columns."""
    if display_width(text) <= size:
        return text
    while text and display_width(text) > size - 1:
        text = text[:-1]
    return f'{text}…'


def wrapped(text: str, indent: int = 2, width: int = 0) -> str:
    """Break a paragraph into lines; all but the first are indented. No word is broken."""
    return textwrap.fill(
        text,
        width or line_width(),
        subsequent_indent=' ' * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def line_width() -> int:
    """Columns of a paragraph: `WIDTH`, fewer on a narrow terminal."""
    return min(shutil.get_terminal_size().columns, WIDTH) if _is_terminal(sys.stdout) else WIDTH


def print_paragraph(text: str, label: str = '', style: str = '') -> None:
    """
    Print a paragraph, on a terminal with its label in colour, or all of it.

    Parameters
    ----------
    text : without line breaks
    label : one of `LABELS`, or another word in front of a colon
    style : of the whole text, one of `STYLES`

    """
    lines = wrapped(f'{label}: {text}' if label else text)
    head = f'{label}:' if label and not style else lines
    print_styled(head, style or LABELS.get(label, 'heading') if label or style else '')
    print(lines[len(head) :])


def print_error(text: str) -> None:
    """Print a sentence on standard error: a line, broken between words on a terminal."""
    text = printable(text, MAX_ERROR)
    if not _is_terminal(sys.stderr):
        print(text, file=sys.stderr)
        return
    text = wrapped(text, width=min(shutil.get_terminal_size().columns, WIDTH))
    colour = wants_colour(sys.stderr)
    print(f'\x1b[{STYLES["bad"]}m{text}\x1b[0m' if colour else text, file=sys.stderr)


def print_styled(text: str, style: str) -> None:
    """Print without a line break, in colour where standard output shows colours."""
    write = getattr(sys.stdout, 'write_styled', None)
    if write is not None and style:
        write(text, style)
    else:
        print(text, end='')


def wants_colour(stream: Any) -> bool:
    """Whether a stream is a terminal whose user has not turned colours off (no-color.org)."""
    return (
        _is_terminal(stream)
        and not os.environ.get('NO_COLOR')
        and os.environ.get('TERM', '') != 'dumb'
    )


def _is_terminal(stream: Any) -> bool:
    return stream is not None and stream.isatty()


def format_number(value: float, digits: int = 4) -> str:
    """Show a value with so many significant digits, '—' when there is none."""
    if not math.isfinite(value):
        return '—' if math.isnan(value) else '∞' if value > 0 else '-∞'
    text = f'{value:.{digits}g}'
    return f'{value:.{digits - 1}e}' if 'e' in text else text


def printable(text: str, longest: int = MAX_LINE) -> str:
    """Escape what a terminal acts upon, and cut lines that nobody reads."""
    text = _CONTROL.sub(lambda match: ascii(match.group())[1:-1], text)
    if len(text) <= longest:
        return text
    return '\n'.join(
        line
        if len(line) <= longest
        else f'{line[: longest - KEPT_END]} … {len(line) - longest} characters more … '
        f'{line[-KEPT_END:]}'
        for line in text.split('\n')
    )


class PrintableStream:
    """A stream, None for one that is closed, to which only what is `printable` is written."""

    def __init__(self, stream: TextIO | None):
        self._stream = stream or open(os.devnull, 'w', encoding='utf-8')

    def write(self, text: str) -> int:
        """Write a text."""
        return self._stream.write(printable(text))

    def write_styled(self, text: str, style: str) -> int:
        """Write a text in one of `STYLES`, where the stream is a terminal that wants colours."""
        if not wants_colour(self._stream):
            return self.write(text)
        return self._stream.write(f'\x1b[{STYLES[style]}m{printable(text)}\x1b[0m')

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
