"""Convergence of an iterative method, its simulated motion, comparison with another method."""

from ...comparison.differences import Difference, differences
from ...results import Results, total_residual
from ..html import number, percent, row, section, table, text
from ..plots import curves
from ..plots.canvas import Plots

LARGE = 3.0  # difference over its σ from which it is none of noise


def convergence(results: Results, plots: Plots) -> str:
    """Show the figures of each iteration; empty for methods that do not iterate."""
    if not results.history:
        return ''
    method = (results.compared.method if results.compared else results.method).upper()
    parts = [
        plots.place(
            curves.convergence(results.history), f'{method}: figures of each iteration', wide=True
        )
    ]
    return section(
        'Convergence',
        f'{len(results.history)} iterations of {method}, the initial parameters included.',
        ''.join([*parts, _simulated(results, plots)]),
        anchor='convergence',
    )


def _simulated(results: Results, plots: Plots) -> str:
    units = {joint: line['unit'] for joint, line in results.quality.get('joints', {}).items()}
    parts = []
    for method, data in results.simulated.items():
        shared = curves.time_range(data.time)
        other = 'reference' if data.measured is None else 'measured position'
        parts += [
            plots.place(
                curves.simulated_motion(data, k, units.get(joint, 'rad'), shared),
                f'{joint}: position simulated by {method.upper()} minus {other}',
                wide=True,
            )
            for k, joint in enumerate(data.joints)
        ]
    return f'<h3>Simulated motion</h3>{"".join(parts)}' if parts else ''


def comparison(results: Results) -> str:
    """Set the base parameters of two methods side by side."""
    other = results.compared
    if other is None:
        return ''
    first, second = results.method.upper(), other.method.upper()
    residuals = ', '.join(
        f'{method} {percent(total_residual(part))}'
        for method, part in ((first, results.identification), (second, other.identification))
    )
    return section(
        f'{first} and {second}',
        f'Residual of the identification, all joints: {residuals}.',
        difference_table(first, second, differences(results.base, other.base)),
        anchor='methods',
    )


def difference_table(first: str, second: str, rows: list[Difference]) -> str:
    """Lay out parameters of two results, with their difference over its σ."""
    body = []
    for each in rows:
        css = '' if each.normalised is None else 'poor' if abs(each.normalised) > LARGE else 'good'
        body.append(
            row(
                each.name,
                number(each.first, '.6g'),
                number(each.first_sigma, '.3g'),
                number(each.second, '.6g'),
                number(each.second_sigma, '.3g'),
                number(each.difference, '+.3g'),
                number(each.normalised, '+.2f', css=css),
                text(each.unit),
            )
        )
    head = ('parameter', first, 'σ', second, 'σ', 'difference', 'difference / σ', 'unit')
    caption = f'{first} and {second}: the difference is the second minus the first'
    return table(head, body, numeric=range(1, 7), caption=caption, sortable=True)
