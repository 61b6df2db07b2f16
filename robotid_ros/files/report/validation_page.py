"""The page of a validation: description, identified and base parameters on one recording."""

from html import escape
from pathlib import Path

from ..comparison.checked_parameters import BASE, CheckedParameters, PRIOR, STANDARD
from ..results import Residual, total_residual
from .html import bar, contents, page, percent, row, section, table, text
from .plots.canvas import Plots
from .sections.joints import joints
from .sections.parameters import base
from .sections.provenance import provenance
from .sections.verdict import residual_class, verdict, warnings

NAMES = {PRIOR: 'robot description', STANDARD: 'identified.urdf', BASE: 'base parameters'}


def render(checked: CheckedParameters) -> str:
    """Compose the page; it refers to nothing outside of itself."""
    results, plots = checked.checked, Plots()
    shown = ''.join(
        (
            _residuals(checked),
            joints(results, plots),
            base(results, plots),
            provenance(results),
        )
    )
    body = verdict(results) + warnings(results) + contents(shown) + shown
    name = results.robot or 'robot'
    source = Path(str(results.data.get('source', ''))).name
    subtitle = f'validation of identified parameters on {source} · {results.created}'
    return page(f'{name}: validation', name, subtitle, body, plots.script())


def _residuals(checked: CheckedParameters) -> str:
    """Set the residuals of all sets of parameters side by side, and explain them."""
    sets = [name for name in NAMES if name in checked.sets]
    body = [
        row(line.joint, *(_cell(checked.sets[name][k]) for name in sets))
        for k, line in enumerate(checked.checked.validation)
    ]
    if len(body) > 1:
        sums = (text(percent(total_residual(checked.sets[name]))) for name in sets)
        body.append(row('all joints, at all times', *sums, css='sum'))
    said = ''.join(f'<p>{escape(each)}</p>' for each in checked.explanation())
    return section(
        'Residual per joint',
        'Norm of measured minus predicted effort over the norm of the measured one, while the '
        'joint moves, by three sets of parameters.',
        table(('joint', *(NAMES[name] for name in sets)), body, caption='Residuals') + said,
        anchor='residuals',
    )


def _cell(line: Residual) -> str:
    css = residual_class(line.reported)
    return f'<td class="{css} keep">{bar(line.reported, percent(line.reported), css)}</td>'
