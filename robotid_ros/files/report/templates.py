"""Elements of HTML that pages are made of."""

from collections.abc import Iterable, Sequence
from html import escape
import math
from pathlib import Path

_HERE = Path(__file__).parent
# Rows from which a table can be searched.
SEARCHED = 8
# Sections of pages that the line of links names, by their anchors.
CONTENTS = (
    *(('residuals', 'Residuals'), ('joints', 'Joints'), ('robot', 'On the robot')),
    *(('data', 'Data'), ('choice', 'Choice of the model'), ('base', 'Base parameters')),
    *(('methods', 'Methods'), ('convergence', 'Convergence'), ('links', 'Links')),
    *(('standard', 'Standard parameters'), ('motion', 'Motion'), ('shares', 'Limits')),
    *(('search', 'Search'), ('provenance', 'Provenance')),
)


def page(
    title: str,
    heading: str,
    subtitle: str,
    body: str,
    scripts: str,
    behaviours: Sequence[str] = ('report',),
) -> str:
    """
    Compose a page that refers to nothing outside of itself.

    Parameters
    ----------
    title : of the window
    heading, subtitle : at the top
    body : sections
    scripts : of the plots, see `Plots.script`
    behaviours : scripts of our own, by the names of their files

    """
    style = (_HERE / 'report.css').read_text()
    behaviour = '\n'.join((_HERE / f'{name}.js').read_text() for name in behaviours)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f'<title>{escape(title)}</title><style>\n{style}</style></head><body>\n'
        '<a class="skip" href="#content">Skip to the content</a>\n'
        f'<header><div><h1>{escape(heading)}</h1><p>{escape(subtitle)}</p>'
        '<button type="button" id="theme" aria-pressed="false">Dark</button></div></header>\n'
        f'<main id="content">\n{body}\n'
        '<noscript><p>Plots and sorting need JavaScript, which is in this page.</p></noscript>'
        f'</main>\n{scripts}<script>\n{behaviour}</script></body></html>\n'
    )


def section(title: str, text: str, content: str, *, anchor: str = '', css: str = '') -> str:
    """Compose a section with a heading and a sentence; `anchor` puts it into the contents."""
    note = f'<p>{escape(text)}</p>' if text else ''
    name = f' id="{escape(anchor)}"' if anchor else ''
    kind = f' class="{css}"' if css else ''
    return f'\n<section{name}{kind}><h2>{escape(title)}</h2>{note}{content}</section>'


def contents(shown: str) -> str:
    """List the sections that are there."""
    links = ''.join(
        f'<a href="#{anchor}">{title}</a>'
        for anchor, title in CONTENTS
        if f'<section id="{anchor}"' in shown
    )
    return f'\n<nav aria-label="Sections">{links}</nav>'


def table(
    head: Sequence[str],
    rows: Iterable[str],
    numeric: Iterable[int] = (),
    *,
    caption: str,
    sortable: bool = False,
) -> str:
    """
    Compose a table of rows `<tr>…</tr>`.

    Parameters
    ----------
    head : of the columns
    rows : of the body
    numeric : columns whose heads are right-aligned
    caption : what it is, for those who do not see where it stands
    sortable : whether its heads sort it, and a field above searches it where it is long

    """
    numbers, body = set(numeric), list(rows)
    cells = ''.join(
        _head_cell(text, index in numbers, sortable) for index, text in enumerate(head)
    )
    header = f'<thead><tr>{cells}</tr></thead>' if any(head) else ''
    name = escape(caption, quote=True)
    search = ''
    if sortable and len(body) >= SEARCHED:
        search = (
            f'<label class="search">Search <input type="search" aria-label="Search: {name}">'
            '</label>'
        )
    return (
        f'{search}<div class="scroll" role="region" tabindex="0" aria-label="{name}">'
        f'<table{" class=sortable" if sortable else ""}><caption>{escape(caption)}</caption>'
        f'{header}<tbody>{"".join(body)}</tbody></table></div>'
    )


def _head_cell(text: str, number: bool, sortable: bool) -> str:
    css = ' class="n"' if number else ''
    shown = escape(text)
    if sortable and text:
        shown = f'<button type="button">{shown}</button>'
    if not text:
        return '<td></td>'
    return f'<th scope="col"{css}>{shown}</th>'


def row(name: str, *cells: str, css: str = '') -> str:
    """Compose a row: its name, and cells `<td>…</td>`."""
    kind = f' class="{css}"' if css else ''
    return f'<tr{kind}><th scope="row">{_breakable(name)}</th>{"".join(cells)}</tr>'


def number(value: float | None, form: str = '.4g', unit: str = '', css: str = '') -> str:
    """Compose a cell of a number, '—' where there is none; it is sorted by its value."""
    kind = f'n {css}'.strip()
    if value is None or not math.isfinite(value):
        return f'<td class="{kind}" data-v="">—</td>'
    text = escape(f'{value:{form}}{unit}')
    return f'<td class="{kind}" data-v="{value:.12g}">{text}</td>'


def text(value: object, css: str = '') -> str:
    """Compose a cell of text."""
    kind = f' class="{css}"' if css else ''
    return f'<td{kind}>{_breakable(str(value))}</td>'


def _breakable(text: str) -> str:
    """Escape a text whose names may go on in another line behind each underscore."""
    return escape(text).replace('_', '_<wbr>')


def bar(share: float, label: str, css: str = '') -> str:
    """Compose a bar of a share of its cell's width, for the eye only."""
    width = 100.0 * min(max(share, 0.0), 1.0) if math.isfinite(share) else 100.0
    return (
        f'<span class="bar {css}" aria-hidden="true"><i style="width:{width:.1f}%"></i></span>'
        f'<span class="value">{escape(label)}</span>'
    )


def time_window() -> str:
    """Compose the fields of the time that all linked plots show."""
    return (
        '<form class="window" aria-label="Time shown of all joints"><label>from '
        '<input type="number" step="any"> s</label><label>to <input type="number" step="any"> s'
        '</label><button type="button">Show all</button></form>'
    )


def turn_sliders() -> str:
    """Compose what turns a view of the arm, besides the pointer and the arrow keys."""
    return (
        '<div class="turn"><label>turn '
        '<input type="range" min="-180" max="180" value="-50"></label>'
        '<label>from above <input type="range" min="-90" max="90" value="20"></label></div>'
    )


def details(summary: str, content: str) -> str:
    """Compose what is shown when it is asked for, and in print."""
    return f'<details><summary>{escape(summary)}</summary>{content}</details>'


def format_number(value: float | None, digits: int) -> str:
    """Show a number with so many digits, '—' where there is none."""
    return '—' if value is None or not math.isfinite(value) else f'{value:.{digits}g}'


def percent(value: float | None, digits: int = 2) -> str:
    """Show a share in per cent, '—' where there is none."""
    if value is None or not math.isfinite(value):
        return '—'
    return f'{100 * value:.{digits}f} %'
