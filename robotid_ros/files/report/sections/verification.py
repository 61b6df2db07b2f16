"""What the parameters were worth on the robot: tracking, gains, gravity and stiction at rest."""

from collections.abc import Sequence
from html import escape
from typing import Any

from ...results import Results
from ...verification.values import (
    FEED_FORWARD,
    GainTrial,
    NEW_GAINS,
    PRESENT,
    TrackingRow,
    Verification,
)
from ..html import row as table_row, section, table
from ..plots import curves
from ..plots.canvas import Plots

# Of a position error, in which it is shown: 'mrad' for rad.
MILLI = 1e3
NAMES = {
    PRESENT: 'as it is',
    FEED_FORWARD: 'feed-forward',
    NEW_GAINS: 'proposed gains',
}


def verification(results: Results, plots: Plots) -> str:
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
        parts.append(_pictures(found, plots))
    if found.static:
        parts.append(_static(found))
    return section(
        'On the robot',
        'The validation motion through the robot’s own controller, as it is and with what was '
        'identified: wanted minus measured position. And, where it was asked for, postures '
        'approached from both sides: effort at rest against the prediction.',
        ''.join(parts),
        anchor='robot',
    )


def _cells(joint: str, *cells: str) -> str:
    return table_row(joint, *(f'<td class="n">{escape(cell)}</td>' for cell in cells))


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
    caption = f'Tracking errors {before} and {after}'
    return table(head, body, numeric=range(1, 6), caption=caption)


def _efforts(found: Verification) -> str:
    body = [
        _cells(row.joint, f'{100 * row.relative:.2f} %', f'{row.rms:.4g} {row.unit}')
        for row in found.efforts
    ]
    head = ('effort as it is', 'not predicted', 'RMS')
    return table(head, body, numeric=(1, 2), caption='Efforts of the run as it is')


def _gains(trial: GainTrial) -> str:
    def text(values: Any) -> str:
        return ', '.join(f'{values.get(name, 0.0):.4g}' for name in 'pid')

    body = [_cells(joint, text(trial.old[joint]), text(trial.new[joint])) for joint in trial.new]
    head = ('gains p, i, d', 'present', 'proposed')
    tables = [table(head, body, numeric=(1, 2), caption='Gains of the controller')]
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
    return table(head, body, numeric=range(1, 6), caption='Gravity and stiction at rest')


def _pictures(found: Verification, plots: Plots) -> str:
    """Draw wanted minus measured position of every run, joint by joint."""
    tried = found.gains.tracking if found.gains is not None else ()
    units = {row.joint: row.unit for row in (*found.tracking, *tried)}
    runs = {name: run for name, run in found.series.items() if name in NAMES}
    joints = next(iter(runs.values())).joints
    shared = curves.time_range(*(run.time for run in runs.values()))
    return ''.join(
        plots.place(
            curves.error_over_time(
                {NAMES[name]: (run.time, MILLI * run.error[:, k]) for name, run in runs.items()},
                f'm{units.get(joint, "rad")}',
                shared,
            ),
            f'{joint}: wanted minus measured position',
            wide=True,
        )
        for k, joint in enumerate(joints)
    )
