"""The report's parameters: base ones with their confidence, standard ones, consistent links."""

from html import escape
import math

from ..results import Entry, prediction_text, Results
from . import figures
from .html import format_number, section, table


def base(results: Results) -> str:
    """Show the base parameters, with the true values where there are any."""
    if not results.base:
        return ''
    known = any(entry.true is not None for entry in results.base)
    head = [
        'parameter',
        'value',
        'σ',
        '%σ',
        *(['true', 'error / σ'] if known else []),
        'unit',
        '',
        '=',
    ]
    body = [_base_row(entry, known) for entry in results.base]
    numbers = range(1, 6 if known else 4)
    return section(
        'Base parameters',
        'What the motion identifies: each is a combination of standard parameters.'
        + _essential_text(results),
        figures.confidence(results.base)
        + f'<details><summary>Table</summary>{table(head, body, numeric=numbers)}</details>',
    )


def _essential_text(results: Results) -> str:
    if not results.essential:
        return ''
    path = results.essential['path']
    if results.essential['count'] == len(results.base):
        return ' All are essential.'
    growth = path[-1]['growth'] if path else 1.0
    return (
        f' {results.essential["count"]} of {len(results.base)} are essential: without the others '
        f'the weighted residual is {growth:.3f} times as large.'
    )


def _base_row(entry: Entry, known: bool) -> str:
    cells = _value_cells(entry)
    if known:
        cells += _true_cells(entry)
    cells.append(f'<td>{escape(entry.unit)}</td><td class="c">{escape(entry.kind)}</td>')
    return f'<tr>{"".join(cells)}<td class="c">{escape(entry.combination)}</td></tr>'


def _true_cells(entry: Entry) -> list[str]:
    if entry.true is None:
        return ['<td class="n c">—</td>'] * 2
    css = 'good' if abs(entry.error) <= 3 else 'poor'
    return [f'<td class="n">{entry.true:.5g}</td>', f'<td class="n {css}">{entry.error:+.2f}</td>']


def _value_cells(entry: Entry) -> list[str]:
    css = {figures.GOOD: 'good', figures.FAIR: 'fair'}.get(
        figures.precision_color(entry.percent), 'poor'
    )
    low, high = entry.interval
    percent = f'{entry.percent:.2f}' if entry.percent < 1e4 else '> 10⁴'
    return [
        f'<td>{escape(entry.name)}</td>',
        f'<td class="n" title="95 %: {low:.5g} … {high:.5g}">{entry.value:.6g}</td>',
        f'<td class="n">{format_number(entry.sigma, 3)}</td>',
        f'<td class="n {css}">{percent if math.isfinite(entry.percent) else "—"}</td>',
    ]


def standard(results: Results) -> str:
    """Show the standard parameters, and how many links are physically consistent."""
    body = []
    for entry in results.standard:
        cells = [
            f'<td>{escape(entry.name)}</td><td class="n">{entry.value:.6g}</td>',
            f'<td class="n c">{format_number(entry.prior, 6)}</td><td>{escape(entry.unit)}</td>',
            f'<td>{escape(entry.joint)}</td><td class="c">{escape(entry.kind)}</td>',
        ]
        body.append(f'<tr>{"".join(cells)}</tr>')
    head = ('parameter', 'value', 'before', 'unit', 'joint', 'class')
    bad = [joint for joint, good in results.consistent.items() if not good]
    note = 'One set of standard parameters that agrees with the base parameters.'
    if bad:
        note += f' Not the parameters of physical bodies: {", ".join(bad)}.'
    elif results.consistent:
        note += ' All links are physically consistent.'
    if text := prediction_text(results):
        note += f' {text}'
    listed = table(head, body, numeric=(1, 2))
    return section(
        'Standard parameters',
        note,
        f'{_definite(results)}<details><summary>Table</summary>{listed}</details>',
    )


def _definite(results: Results) -> str:
    """Count consistent links at each tolerance of the Cholesky factorisation (STD table III)."""
    titles = {
        'prior': 'robot description',
        'cad': 'closest to it',
        'cad_essential': 'closest by essential parameters',
        'value': 'identified',
    }
    sets = [name for name in titles if name in results.definite]
    if not sets:
        return ''
    rows = (
        f'<tr><td class="n">{tolerance:g}</td>'
        + ''.join(f'<td class="n">{results.definite[name][k]}</td>' for name in sets)
        + '</tr>'
        for k, tolerance in enumerate(results.definite['tolerances'])
    )
    head = ('tolerance', *(titles[name] for name in sets))
    return (
        '<p>Links with a positive definite inertia at the centre of mass, by tolerance:</p>'
        + table(head, rows, numeric=range(len(head)))
    )
