"""The page that sets results of several sessions or methods side by side."""

from collections.abc import Mapping
import itertools

from ..comparison.differences import differences
from ..results import Residual, Results, total_residual
from .html import number, page, percent, row, section, table, text
from .plots import curves
from .plots.canvas import Plots
from .sections.convergence import difference_table, LARGE
from .sections.verdict import residual_class


def render(results: Mapping[str, Results]) -> str:
    """Compose the page; it refers to nothing outside of itself."""
    plots = Plots()
    body = _overview(results) + _residuals(results)
    names = list(results)
    for name in names[1:]:
        body += _pair(names[0], name, results, plots)
    title = ' and '.join(dict.fromkeys(each.robot or 'robot' for each in results.values()))
    subtitle = f'comparison of {", ".join(names)}'
    return page(f'{title}: comparison', title, subtitle, body, plots.script())


def _overview(results: Mapping[str, Results]) -> str:
    rows = [
        row(
            name,
            text(each.method.upper()),
            text(each.created),
            number(len(each.base), 'd'),
            number(each.condition_number, '.1f'),
            number(100 * total_residual(each.identification), '.2f', ' %'),
            number(100 * total_residual(each.validation), '.2f', ' %'),
        )
        for name, each in results.items()
    ]
    head = ('result', 'method', 'identified', 'base parameters', 'condition', 'fit', 'validation')
    listed = table(head, rows, numeric=range(3, 7), caption='Results')
    return section('Results', 'Residuals of all joints together, at all times.', listed)


def _residuals(results: Mapping[str, Results]) -> str:
    known = {
        name: {line.joint: line for line in each.validation or each.identification}
        for name, each in results.items()
    }
    joints = dict.fromkeys(itertools.chain.from_iterable(known.values()))
    rows = [row(joint, *(_cell(lines.get(joint)) for lines in known.values())) for joint in joints]
    return section(
        'Residual per joint',
        'On the validation, or on the fit where there is none, while the joint moves.',
        table(('joint', *known), rows, numeric=range(1, len(known) + 1), caption='Residuals'),
    )


def _cell(line: Residual | None) -> str:
    if line is None:
        return number(None)
    css = residual_class(line.reported)
    return f'<td class="n {css}" data-v="{line.reported:.9g}">{percent(line.reported)}</td>'


def _pair(first: str, second: str, results: Mapping[str, Results], plots: Plots) -> str:
    found = differences(results[first].base, results[second].base)
    missing = len(results[first].base) + len(results[second].base) - 2 * len(found)
    known = [abs(each.normalised) for each in found if each.normalised is not None]
    beyond = sum(size > LARGE for size in known)
    note = (
        f'{beyond} of {len(known)} parameters differ by more than {LARGE:g} σ of the difference '
        f'of independent estimates: {second} minus {first}.'
    )
    if missing:
        note += f' {missing} parameters are in one of both only, or combine others.'
    picture = ''
    if any(each.normalised is not None for each in found):
        picture = plots.place(
            curves.normalised_differences(found),
            f'{second} minus {first}, in σ',
            wide=True,
            least_width=curves.width_of(known),
        )
    return section(f'{first} and {second}', note, picture + difference_table(first, second, found))
