"""Elements of HTML that the parts of a report are made of."""

from collections.abc import Iterable, Sequence
from html import escape
import math


def section(title: str, text: str, content: str) -> str:
    """Compose a section with a heading and a sentence."""
    note = f'<p>{escape(text)}</p>' if text else ''
    return f'\n<section><h2>{escape(title)}</h2>{note}{content}</section>'


def table(head: Sequence[str], rows: Iterable[str], numeric: Iterable[int] = ()) -> str:
    """Compose a table of rows `<tr>…</tr>`; heads of `numeric` columns are right-aligned."""
    numbers = set(numeric)
    cells = ''.join(
        f'<th{" class=n" if index in numbers else ""}>{escape(text)}</th>'
        for index, text in enumerate(head)
    )
    return f'<table><tr>{cells}</tr>{"".join(rows)}</table>'


def format_number(value: float | None, digits: int) -> str:
    """Show a number with so many digits, '—' where there is none."""
    return '—' if value is None or not math.isfinite(value) else f'{value:.{digits}g}'
