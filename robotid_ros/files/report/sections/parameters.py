"""The parameters: base ones with their confidence and correlation, standard ones, bodies."""

from collections.abc import Sequence
import math

from ...results import Entry, prediction_text, Results
from ..html import bar, details, number, row, section, table, text
from ..plots import curves
from ..plots.canvas import Plots
from .verdict import precision_class

# Correlations of base parameters that are listed: most of them, from which size on.
MOST_PAIRS, CORRELATED = 20, 0.8
KINDS = {'essential': '● essential', 'small': 'small', 'prior': 'prior'}


def base(results: Results, plots: Plots) -> str:
    """Show the base parameters, with the true values where there are any."""
    if not results.base:
        return ''
    known = any(entry.true is not None for entry in results.base)
    before = any(entry.prior is not None for entry in results.base)
    head = [
        *('parameter', 'value', *(['URDF'] if before else []), 'σ', '%σ'),
        *(['true', 'error / σ'] if known else []),
        *('unit', 'joint', 'class', 'combination'),
    ]
    body = [_base_row(entry, known, before) for entry in results.base]
    numbers = range(1, 4 + before + 2 * known)
    listed = table(
        head, body, numeric=numbers, caption='Base parameters; bars show %σ', sortable=True
    )
    return section(
        'Base parameters',
        'What the motion identifies: each is a combination of standard parameters.'
        + _essential_text(results),
        listed + _correlation(results, plots),
        anchor='base',
    )


def _essential_text(results: Results) -> str:
    if not results.essential:
        return ''
    path = results.essential['path']
    if results.essential['count'] == len(results.base):
        return ' All are essential.'
    growth = path[-1]['growth'] if path else 1.0
    return (
        f' {results.essential["count"]} of {len(results.base)} are essential (●): without the '
        f'others the weighted residual is {growth:.3f} times as large.'
    )


def _base_row(entry: Entry, known: bool, before: bool) -> str:
    cells = [
        _value_cell(entry),
        *([number(entry.prior, '.5g', css='c')] if before else []),
        number(entry.sigma, '.3g'),
        percent_cell(entry.percent),
        *(_true_cells(entry) if known else []),
        text(entry.unit),
        text(entry.joint),
        text(KINDS.get(entry.kind, entry.kind), 'c keep'),
        text(entry.combination, 'c wrap'),
    ]
    return row(entry.name, *cells)


def _value_cell(entry: Entry) -> str:
    low, high = entry.interval
    return (
        f'<td class="n" data-v="{entry.value:.12g}" title="95 %: {low:.5g} … {high:.5g}">'
        f'{entry.value:.6g}</td>'
    )


def percent_cell(percent: float) -> str:
    """Show a %σ as a bar, full at 100 %, and a number."""
    if not math.isfinite(percent):
        return number(None)
    shown = f'{percent:.2f}' if percent < 1e4 else '> 10⁴'
    css = precision_class(percent)
    return f'<td class="n {css}" data-v="{percent:.9g}">{bar(percent / 100, shown, css)}</td>'


def _true_cells(entry: Entry) -> list[str]:
    if entry.true is None:
        return [number(None), number(None)]
    css = 'good' if abs(entry.error) <= 3 else 'poor'
    return [number(entry.true, '.5g'), number(entry.error, '+.2f', css=css)]


def _correlation(results: Results, plots: Plots) -> str:
    lower = results.quality.get('correlation')
    names = [entry.name for entry in results.base]
    if not lower or len(lower) != len(names) or len(names) < 2:
        return ''
    picture = plots.place(
        curves.correlation(names, lower),
        'Correlation of the base parameters, blue −1 to orange +1',
        wide=True,
        least_width=curves.width_of(names),
    )
    pairs = sorted(
        (
            (value, names[i], names[k])
            for i, line in enumerate(lower)
            for k, value in enumerate(line[:i])
            if abs(value) >= CORRELATED
        ),
        key=lambda pair: -abs(pair[0]),
    )
    if not pairs:
        return f'{picture}<p>No two are correlated by {CORRELATED} or more.</p>'
    rows = [row(a, text(b), number(value, '+.3f')) for value, a, b in pairs[:MOST_PAIRS]]
    listed = table(
        ('parameter', 'and', 'correlation'),
        rows,
        numeric=(2,),
        caption=f'The strongest of {len(pairs)} correlations of {CORRELATED} or more',
    )
    return picture + listed


def standard(results: Results) -> str:
    """Show the standard parameters, and how many links are physically consistent."""
    body = [
        row(
            entry.name,
            number(entry.value, '.6g'),
            number(entry.prior, '.6g', css='c'),
            number(entry.sigma, '.3g'),
            percent_cell(entry.percent),
            text(entry.unit),
            text(entry.joint),
            text(entry.kind, 'c'),
        )
        for entry in results.standard
    ]
    if not body:
        return ''
    head = ('parameter', 'value', 'URDF', 'σ', '%σ', 'unit', 'joint', 'class')
    bad = [joint for joint, good in results.consistent.items() if not good]
    note = 'One set of standard parameters that agrees with the base parameters.'
    if bad:
        note += f' Not the parameters of physical bodies: {", ".join(bad)}.'
    elif results.consistent:
        note += ' All links are physically consistent.'
    if said := prediction_text(results):
        note += f' {said}'
    listed = table(head, body, numeric=range(1, 5), caption='Standard parameters', sortable=True)
    return section(
        'Standard parameters',
        note,
        f'{_definite(results)}{details(f"All {len(body)}, beside those of the URDF", listed)}',
        anchor='standard',
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
    rows: Sequence[str] = [
        row(f'{tolerance:g}', *(number(results.definite[name][k], 'g') for name in sets))
        for k, tolerance in enumerate(results.definite['tolerances'])
    ]
    return table(
        ('tolerance', *(titles[name] for name in sets)),
        rows,
        numeric=range(1, len(sets) + 1),
        caption='Links with a positive definite inertia at the centre of mass, by tolerance',
    )
