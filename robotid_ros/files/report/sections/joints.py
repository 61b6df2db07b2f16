"""Each joint: efforts, residual, spectrum, histogram, autocorrelation, friction, shares."""

from collections.abc import Sequence
from html import escape

import numpy as np

from ....core.parameters.plain_friction import PlainFriction
from ...results import Residual, Results, total_residual
from ...torques_file import Torques
from ..html import bar, number, percent, row, section, table, time_window
from ..plots.canvas import MEASURED, NEUTRAL, Plots, PREDICTED, RESIDUAL
from ..plots.efforts import effort_series, efforts, EffortSeries
from ..plots.residuals import autocorrelation, friction_curve, histogram, spectrum
from ..plots.thinning import Phase, phases
from .verdict import residual_class

COLORS = {'inertia': PREDICTED, 'gravity': MEASURED, 'friction': RESIDUAL, 'offset': NEUTRAL}
NOTHING = 1e-9  # of the effort: rounding


def residuals(results: Results) -> str:
    """Show the residuals of each joint and of all together."""
    validation = {line.joint: line for line in results.validation}
    body = []
    for line in results.identification:
        same = validation.get(line.joint)
        cells = _residual_cells(line)
        if validation:
            cells += _residual_cells(same) if same else [number(None)] * 4
        body.append(row(line.joint, *cells))
    if len(body) > 1:
        sums = [
            number(None) + _share_cell(total_residual(rows)) + number(None) * 2
            for rows in (results.identification, results.validation)
            if rows
        ]
        body.append(row('all joints', *sums, css='sum'))
    columns = ('at all times', 'R²', 'RMS')
    other = ('validation', *columns) if validation else ()
    head = ('joint', 'fit', *columns, *other)
    return section(
        'Residual per joint',
        'Norm of measured minus predicted torque, relative to the norm of the measured torque, '
        'while the joint moves and at all times: at standstill friction may be anything.',
        table(head, body, numeric=range(1, len(head)), caption='Residuals of the joints'),
        anchor='residuals',
    )


def _share_cell(value: float) -> str:
    return number(100 * value, '.2f', ' %')


def _residual_cells(line: Residual) -> list[str]:
    css = residual_class(line.reported)
    shown = bar(line.reported / 0.3, percent(line.reported), css)
    return [
        f'<td class="n {css}" data-v="{line.reported:.9g}">{shown}</td>',
        _share_cell(line.relative),
        number(line.r2, '.4f'),
        number(line.rms, '.4g', f' {line.unit}'),
    ]


def joints(results: Results, plots: Plots) -> str:
    """Show every joint, its efforts linked in time with those of all others."""
    found = phases(results.torques)
    if not found:
        return ''
    series = effort_series(found)
    units = {line.joint: line.unit for line in results.identification}
    lengths = {j: values['unit'] for j, values in results.quality.get('joints', {}).items()}
    parts = [
        _joint(
            number_,
            joint,
            (units.get(joint, 'N·m'), lengths.get(joint, 'rad')),
            series,
            plots,
            results.plain_friction.get(joint),
        )
        for number_, joint in enumerate(found[0].data.joints)
    ]
    return section('Joints', _time_text(found), time_window() + ''.join(parts), anchor='joints')


def _time_text(found: Sequence[Phase]) -> str:
    text = 'Drag over an effort to zoom in time, all joints together; a click on a legend hides.'
    if len(found) > 1:
        text += ' Shaded: the validation, which the fit has not seen.'
        second = found[1]
        if second.place[0] != second.data.time[0]:
            text += ' It is another recording or part, and set behind the first.'
    for phase in found:
        if phase.stretches > 1:
            text += (
                f' The {phase.stretches} stretches sampled from a long recording '
                f'({phase.name}) stand side by side.'
            )
    return text


def _joint(
    joint: int,
    name: str,
    units: tuple[str, str],
    series: EffortSeries,
    plots: Plots,
    plain: PlainFriction | None,
) -> str:
    found, (unit, length) = series.phases, units
    above, below = efforts(series, joint, unit)
    small = [
        (spectrum(found, joint, unit), 'spectrum of the residual'),
        (histogram(found, joint, unit), 'histogram of the residual'),
        (autocorrelation(found, joint), 'autocorrelation of the residual; dashed: white noise'),
    ]
    curve = friction_curve(found, joint, unit, length, plain)
    if curve is not None:
        small.insert(0, (curve, 'friction curve: effort without inertia and gravity'))
    parts = [
        f'<h3>{escape(name)}</h3>',
        plots.place(above, f'{name}: measured and predicted effort', wide=True),
        plots.place(below, f'{name}: measured minus predicted effort', wide=True),
        _shares(found[0].data, joint, unit),
        _plain_text(plain, unit, length),
        '<div class="grid">',
        *(plots.place(plot, f'{name}: {text}') for plot, text in small),
        '</div>',
    ]
    return ''.join(parts)


def _plain_text(plain: PlainFriction | None, unit: str, length: str) -> str:
    """Tell the plain equivalent of friction that is not plain, and how far it is from that."""
    if plain is None or plain.exact:
        return ''
    speeds = 'the recorded speeds' if plain.recorded else 'all speeds up to the limit'
    return (
        f'<p>Plain equivalent of the friction: viscous {plain.viscous:.4g} '
        f'{escape(unit)}·s/{escape(length)}, Coulomb {plain.coulomb:.4g} {escape(unit)}, offset '
        f'{plain.offset:.4g} {escape(unit)}. At {speeds} it differs from the identified friction '
        f'by {100 * plain.relative:.2g} % ({plain.rms:.2g} {escape(unit)}, root mean square). '
        'Formats without other friction hold it.</p>'
    )


def _shares(data: Torques, joint: int, unit: str) -> str:
    """Show what the predicted effort consists of: root mean squares, and their shares."""
    parts = data.parts
    if not parts:
        return ''
    sizes = {name: float(np.sqrt(np.mean(part[:, joint] ** 2))) for name, part in parts.items()}
    total = sum(sizes.values()) or 1.0
    bars = ''.join(
        f'<i style="width:{100 * size / total:.2f}%;background:{COLORS[name]}"></i>'
        for name, size in sizes.items()
    )
    items = ''.join(
        f'<li><i style="background:{COLORS[name]}"></i>{name} {100 * size / total:.0f} % '
        f'({size if size > NOTHING * total else 0.0:.3g} {escape(unit)})</li>'
        for name, size in sizes.items()
    )
    return (
        f'<div class="shares" aria-hidden="true">{bars}</div><ul class="key" '
        f'aria-label="Shares of the predicted effort, root mean square">{items}</ul>'
    )
