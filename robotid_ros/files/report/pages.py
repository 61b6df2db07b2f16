"""The pages of results, and of a session that runs."""

from collections.abc import Mapping, Sequence
import math
from pathlib import Path
from typing import Any, NamedTuple

from ..results import (
    BASE,
    CheckedParameters,
    count_within_sigma,
    PRIOR,
    Results,
    STANDARD,
    total_residual,
    verdict_of,
)
from ..verdict_text import next_step, sentences, TITLES
from . import drawing
from .page import GOOD_PERCENT, minute, render
from .plots import Model, Plot, Plots

SETS = {PRIOR: 'robot description', STANDARD: 'identified.urdf', BASE: 'base parameters'}
# What a row of a live page's data holds of each joint, in this order, after the time, see
# `live.js`; latest time that is drawn [s].
LIVE = ('position', 'reference', 'error', 'effort', 'residual')
SHOWN = 60.0


class FirstScreen(NamedTuple):
    """What a reader sees first: 'good', 'fair' or 'poor', what it can be used for, what to do."""

    level: str
    sentence: str
    next_step: str


def identification_page(results: Results, folder: object = 'FOLDER') -> str:
    """Compose the page of an identification; it refers to nothing outside of itself."""
    source = ', '.join(map(_file_name, results.data.get('logs', (results.data,))))
    method, created = results.method.upper(), minute(results.created)
    return render(
        'identification.html',
        title=f'{results.robot or "robot"}: identified dynamic parameters',
        subtitle=f'dynamic parameters by {method} from {source} · {created}',
        **_shown(results, folder),
    )


def validation_page(checked: CheckedParameters) -> str:
    """Compose the page of description, identified and base parameters on one recording."""
    results = checked.checked
    source = _file_name(results.data)
    return render(
        'validation.html',
        title=f'{results.robot or "robot"}: validation',
        subtitle=f'validation of identified parameters on {source} · {minute(results.created)}',
        sets={SETS[name]: checked.sets[name] for name in SETS if name in checked.sets},
        **_shown(results),
    )


def _file_name(log: Mapping[str, Any]) -> str:
    return Path(str(log.get('source', ''))).name


def _shown(results: Results, folder: object = 'FOLDER') -> dict[str, Any]:
    """Return what the template of an identification shows."""
    moves, verdict = drawing.phases(results.torques), verdict_of(results)
    known = any(math.isfinite(joint.from_parameters) for joint in verdict.joints)
    units = {line.joint: line.unit for line in results.identification}
    moved = results.quality.joints if results.quality else {}
    lengths = {joint: line.unit for joint, line in moved.items()}
    both = {j: (lengths.get(j, 'rad'), units.get(j, 'N·m')) for j in results.joints}
    return {
        'heading': results.robot or 'robot',
        'plots': Plots(both),
        'draw': drawing,
        'results': results,
        'joints': results.joints if moves or results.verification else (),
        'validation': {line.joint: line for line in results.validation},
        'total_residual': total_residual,
        'verdict_title': TITLES[verdict.level],
        'first': first_screen(results, folder),
        'within_sigma': count_within_sigma(results.base),
        'good_percent': GOOD_PERCENT,
        'expected': verdict.joints if known else (),
        'found': results.findings,
        'phases': moves,
        'units': units,
        'lengths': lengths,
    }


def first_screen(results: Results, folder: object = 'FOLDER') -> FirstScreen:
    """Say the verdict, and what to do next."""
    found = verdict_of(results)
    css = found.level if found.level in ('good', 'fair') else 'poor'
    return FirstScreen(css, ' '.join(sentences(results)), next_step(results, folder))


def live_page(
    name: str,
    joints: Sequence[str],
    units: Sequence[tuple[str, str]],
    limits: Sequence[tuple[float, float]],
    actions: Sequence[str],
) -> str:
    """
    Compose the page of a session that runs: what a browser shows until it is told more.

    `units` are of each joint's position and effort, `limits` the tracking error and the effort of
    each that stop the motion, 0: none; `actions` what buttons ask the robot for, besides the one
    that stops it.
    """
    drawn = []
    source = drawing.source_of({key: [] for key in ('time', *LIVE)}, name='series')
    time = Model('DataRange1d', follow='end', follow_interval=SHOWN, range_padding=0.0)
    curves = {
        'position [{length}]': {'position': drawing.MEASURED, 'reference': drawing.PREDICTED},
        'tracking error [{length}]': {'error': drawing.RESIDUAL},
        'effort [{effort}]': {'effort': drawing.MEASURED, 'residual': drawing.RESIDUAL},
    }
    for label, lines in curves.items():
        look: dict[str, Any] = {'min_border_left': 66, 'toolbar_location': None}
        plot = Plot('time [s]', label, 200, '', x_range=time, **look)
        plot.left[0].formatter = Model('BasicTickFormatter', use_scientific=False)
        for key, color in lines.items():
            plot.draw('Line', source, color, key, {'x': 'time', 'y': key}, line_width=1.8)
        drawn.append((plot, label.split(' [')[0]))
    return render(
        'live.html', behaviours=('report', 'live'), title=f'{name}: live', heading=name,
        subtitle='', joints=joints, units=units, limits=limits, actions=actions,
        plots=Plots(dict(zip(joints, units, strict=True))), drawn=drawn,
    )  # fmt: skip
