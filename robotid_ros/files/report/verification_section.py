"""What the parameters were worth on the robot: tracking, gains, gravity and stiction at rest."""

from collections.abc import Sequence
from html import escape
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from ..results import Results
from ..verification.values import (
    FEED_FORWARD,
    GainTrial,
    NEW_GAINS,
    PRESENT,
    TrackingRow,
    Verification,
)
from . import figures
from .html import section, table

# Of a position error, in which it is shown: 'mrad' for rad.
MILLI = 1e3
NAMES = {
    PRESENT: 'as it is',
    FEED_FORWARD: 'with feed-forward',
    NEW_GAINS: 'with the proposed gains',
}
COLORS = {
    PRESENT: figures.MEASURED,
    FEED_FORWARD: figures.PREDICTED,
    NEW_GAINS: figures.TRUE,
}


def verification(results: Results) -> str:
    """Show what was verified; empty where nothing was."""
    found = results.verification
    if found is None:
        return ''
    parts = []
    if found.tracking:
        parts.append(_tracking('without', 'with feed-forward', found.tracking))
    if found.reason:
        parts.append(f'<p>{escape(found.reason)}</p>')
    if found.efforts:
        parts.append(_efforts(found))
    if found.gains is not None:
        parts.append(_gains(found.gains))
    if found.series:
        parts.append(_picture(found))
    if found.static:
        parts.append(_static(found))
    return section(
        'On the robot',
        'The validation motion through the robot’s own controller, as it is and with what was '
        'identified: wanted minus measured position. And, where it was asked for, postures '
        'approached from both sides: effort at rest against the prediction.',
        ''.join(parts),
    )


def _cells(joint: str, *cells: str) -> str:
    numbers = ''.join(f'<td class="n">{escape(cell)}</td>' for cell in cells)
    return f'<tr><td>{escape(joint)}</td>{numbers}</tr>'


def _tracking(before: str, after: str, rows: Sequence[TrackingRow]) -> str:
    body = [
        _cells(
            row.joint,
            f'{MILLI * row.rms_before:.4g}',
            f'{MILLI * row.rms_after:.4g} m{row.unit}',
            f'{row.ratio:.1f}',
            f'{MILLI * row.peak_before:.4g}',
            f'{MILLI * row.peak_after:.4g} m{row.unit}',
        )
        for row in rows
    ]
    head = ('tracking error', f'RMS {before}', after, 'times smaller', f'peak {before}', after)
    return table(head, body, numeric=range(1, 6))


def _efforts(found: Verification) -> str:
    body = [
        _cells(row.joint, f'{100 * row.relative:.2f} %', f'{row.rms:.4g} {row.unit}')
        for row in found.efforts
    ]
    head = ('effort as it is', 'not predicted', 'RMS')
    return table(head, body, numeric=(1, 2))


def _gains(trial: GainTrial) -> str:
    def text(values: Any) -> str:
        return ', '.join(f'{values.get(name, 0.0):.4g}' for name in 'pid')

    body = [_cells(joint, text(trial.old[joint]), text(trial.new[joint])) for joint in trial.new]
    tables = [table(('gains p, i, d', 'present', 'proposed'), body, numeric=(1, 2))]
    if trial.tracking:
        tables.append(_tracking('with the old', 'with the proposed gains', trial.tracking))
    sentence = trial.sentence[:1].upper() + trial.sentence[1:]
    return f'<p>{escape(sentence)}.</p>{"".join(tables)}'


def _static(found: Verification) -> str:
    body = [
        _cells(
            row.joint,
            f'{row.gravity:.4g}',
            f'{row.gravity_error:.3g}',
            f'{row.gravity_worst:+.3g} {row.unit}',
            f'{row.stiction:.4g}',
            f'{row.predicted_stiction:.4g} {row.unit}',
        )
        for row in found.static
    ]
    names = ('gravity, RMS', 'error, RMS', 'largest', 'stiction', 'predicted')
    head = (f'at rest in {found.postures} postures', *names)
    return table(head, body, numeric=range(1, 6))


def _picture(found: Verification) -> str:
    with matplotlib.rc_context(figures.STYLE):
        return figures.to_svg(draw_tracking(found))


def draw_tracking(found: Verification) -> Figure:
    """Draw wanted minus measured position of every run, a row a joint, as a matplotlib figure."""
    units = {row.joint: row.unit for row in (*found.tracking, *_trial_rows(found))}
    runs = {name: run for name, run in found.series.items() if name in NAMES}
    joints = next(iter(runs.values())).joints
    with matplotlib.rc_context(figures.STYLE):
        figure = Figure(figsize=(10.5, 1.6 * len(joints) + 0.5), layout='constrained')
        axes = figure.subplots(len(joints), 1, sharex=True, squeeze=False)[:, 0]
        for index, axis in enumerate(axes):
            for name, run in runs.items():
                series = figures.envelope(run.time, MILLI * run.error[:, index])
                axis.plot(*series, color=COLORS[name], lw=0.9, label=NAMES[name])
            axis.set_title(joints[index])
            axis.set_ylabel(f'error [m{units.get(joints[index], "rad")}]')
            axis.margins(x=0.0)
        axes[0].legend(ncols=3, loc='lower right', bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
        axes[-1].set_xlabel('time [s]')
        return figure


def _trial_rows(found: Verification) -> tuple[TrackingRow, ...]:
    return found.gains.tracking if found.gains is not None else ()
