"""Convergence of an iterative method, and comparison with another method's estimate."""

from html import escape
import math

from ..results import Entry, Results, total_residual
from . import figures
from .html import section, table


def convergence(results: Results) -> str:
    """Show the quantities of each iteration; empty for methods that do not iterate."""
    if not results.history:
        return ''
    method = results.compared.method if results.compared else results.method
    return section(
        'Convergence',
        f'{len(results.history)} iterations of {method.upper()}, the initial parameters included.',
        figures.convergence(results.history),
    )


def comparison(results: Results) -> str:
    """Set the base parameters of two methods side by side."""
    other = results.compared
    if other is None:
        return ''
    first, second = results.method.upper(), other.method.upper()
    rows = [_row(a, b) for a, b in zip(results.base, other.base, strict=True)]
    head = ('parameter', first, 'σ', second, 'σ', 'difference / σ', 'unit')
    residuals = ', '.join(
        f'{method} {100 * total_residual(part):.2f} %'
        for method, part in ((first, results.identification), (second, other.identification))
    )
    return section(
        f'{first} and {second}',
        f'Residual of the identification, all joints: {residuals}.',
        table(head, rows, numeric=range(1, 6)),
    )


def normalised_difference(a: Entry, b: Entry) -> float:
    """Return the difference of two estimates of a parameter over its standard deviation."""
    sigma = math.hypot(a.sigma, b.sigma)
    return (b.value - a.value) / sigma if sigma else math.nan


def _row(a: Entry, b: Entry) -> str:
    difference = normalised_difference(a, b)
    css = 'poor' if abs(difference) > 3 else 'good'
    numbers = ''.join(
        f'<td class="n">{value:{form}}</td>'
        for value, form in ((a.value, '.6g'), (a.sigma, '.3g'), (b.value, '.6g'), (b.sigma, '.3g'))
    )
    shown = (
        f'<td class="n {css}">{difference:+.2f}</td>'
        if math.isfinite(difference)
        else '<td>—</td>'
    )
    return f'<tr><td>{escape(a.name)}</td>{numbers}{shown}<td>{escape(a.unit)}</td></tr>'
