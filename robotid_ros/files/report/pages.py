"""The pages of results: an identification, a validation, results beside others."""

from collections.abc import Mapping, Sequence
import itertools
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...core.model.parameters import in_effort_unit
from ..results import (
    BASE,
    CheckedParameters,
    count_within_sigma,
    differences,
    prediction_text,
    PRIOR,
    Results,
    STANDARD,
    Torques,
    total_residual,
    verdict_of,
)
from ..verdict_text import next_step, sentences, TITLES
from ..verification import FEED_FORWARD, NEW_GAINS, PRESENT, Verification
from . import drawing
from .moving_arm import bodies_of, known_shares, scene
from .page import GOOD_PERCENT, render
from .thinning import phases

COLORS = {
    'inertia': drawing.PREDICTED,
    'gravity': drawing.MEASURED,
    'friction': drawing.RESIDUAL,
    'offset': drawing.NEUTRAL,
}
NOTHING = 1e-9  # of the effort: rounding
# Correlations of base parameters that are listed, from which size on.
CORRELATED = 0.8
SETS = {PRIOR: 'robot description', STANDARD: 'identified.urdf', BASE: 'base parameters'}
RUNS = {PRESENT: 'as it is', FEED_FORWARD: 'feed-forward', NEW_GAINS: 'proposed gains'}


class FirstScreen(NamedTuple):
    """What a reader sees first: 'good', 'fair' or 'poor', what it can be used for, what to do."""

    level: str
    sentence: str
    next_step: str


def identification_page(results: Results, folder: object = 'FOLDER') -> str:
    """Compose the page of an identification; it refers to nothing outside of itself."""
    source = ', '.join(map(_file_name, results.data.get('logs', (results.data,))))
    parts = ('dynamic parameters by', results.method.upper(), 'from', source, '·', results.created)
    return render(
        'identification.html',
        title=f'{results.robot or "robot"}: identified dynamic parameters',
        subtitle=' '.join(filter(None, parts)),
        **_shown(results, folder),
    )


def validation_page(checked: CheckedParameters) -> str:
    """Compose the page of description, identified and base parameters on one recording."""
    results = checked.checked
    source = _file_name(results.data)
    return render(
        'validation.html',
        title=f'{results.robot or "robot"}: validation',
        subtitle=f'validation of identified parameters on {source} · {results.created}',
        sets={SETS[name]: checked.sets[name] for name in SETS if name in checked.sets},
        explanation=checked.explanation(),
        **_shown(results),
    )


def comparison_page(results: Mapping[str, Results]) -> str:
    """Compose the page that sets results of several sessions or methods side by side."""
    lines = {
        name: {line.joint: line for line in each.validation or each.identification}
        for name, each in results.items()
    }
    title = ' and '.join(dict.fromkeys(each.robot or 'robot' for each in results.values()))
    return render(
        'comparison.html',
        title=f'{title}: comparison',
        heading=title,
        subtitle=f'comparison of {", ".join(results)}',
        plots=drawing.Plots(),
        draw=drawing,
        results=results,
        lines=lines,
        joints=list(dict.fromkeys(itertools.chain.from_iterable(lines.values()))),
        differences_of=differences,
        total_residual=total_residual,
    )


def _file_name(log: Mapping[str, Any]) -> str:
    return Path(str(log.get('source', ''))).name


def _shown(results: Results, folder: object = 'FOLDER') -> dict[str, Any]:
    """Return what the template of an identification shows."""
    moves, verdict = phases(results.torques), verdict_of(results)
    bodies, before = (bodies_of(results, which) for which in ('value', 'prior'))
    columns = {'mass': 'kg', 'centre': 'm', 'principal inertias': 'kg·m²'}.items()
    known = any(math.isfinite(joint.from_parameters) for joint in verdict.joints)
    units = {line.joint: line.unit for line in results.identification}
    lengths = {j: line['unit'] for j, line in results.quality.get('joints', {}).items()}
    plots = drawing.Plots()
    plots.data['joints'] = [
        {'name': j, 'effort': units.get(j, 'N·m'), 'length': lengths.get(j, 'rad')}
        for j in results.joints
    ]
    return {
        'heading': results.robot or 'robot',
        'plots': plots,
        'draw': drawing,
        'results': results,
        'joints': results.joints if moves or results.verification else (),
        'validation': {line.joint: line for line in results.validation},
        'total_residual': total_residual,
        'differences_of': differences,
        'verdict_title': TITLES[verdict.level],
        'first': first_words(results, folder),
        'within_sigma': count_within_sigma(results.base),
        'good_percent': GOOD_PERCENT,
        'expected': verdict.joints if known else (),
        'found': results.findings,
        'phases': moves,
        'units': units,
        'lengths': lengths,
        'shares_of': shares_of,
        'runs': _runs(results.verification, results.joints),
        'correlated': strongest_correlations(results),
        'bodies': bodies,
        'bodies_before': before,
        'scene': scene(results.frames, bodies, before, known_shares(results)),
        'link_head': [
            'link of',
            *(f'{name} [{in_effort_unit(u, verdict.effort_unit)}]' for name, u in columns),
            *(f'URDF: {name} [{u}]' for name, u in columns),
        ],
        'prediction': prediction_text(results),
    }


def first_words(results: Results, folder: object = 'FOLDER') -> FirstScreen:
    """Say the verdict, and what to do next."""
    found = verdict_of(results)
    css = found.level if found.level in ('good', 'fair') else 'poor'
    return FirstScreen(css, ' '.join(sentences(results)), next_step(results, folder))


class Share(NamedTuple):
    """A part of the predicted effort: its root mean square, and the share in all parts [%]."""

    name: str
    color: str
    size: float
    share: float


def shares_of(data: Torques, joint: int) -> list[Share]:
    """Return what the predicted effort of a joint consists of."""
    sizes = {k: float(np.sqrt(np.mean(part[:, joint] ** 2))) for k, part in data.parts.items()}
    total = sum(sizes.values()) or 1.0
    return [
        Share(name, COLORS[name], size if size > NOTHING * total else 0.0, 100.0 * size / total)
        for name, size in sizes.items()
    ]


def _runs(found: Verification | None, joints: Sequence[str]) -> Any | None:
    """Draw wanted minus measured position of every run."""
    series = {}
    for kind, run in found.series.items() if found else ():
        if kind in RUNS:
            error = np.full((len(run.time), len(joints)), np.nan)
            for k, joint in enumerate(joints):
                if joint in run.joints:
                    error[:, k] = 1e3 * run.error[:, run.joints.index(joint)]
            series[RUNS[kind]] = run.time, error
    return drawing.error_over_time(series) if series else None


def strongest_correlations(results: Results) -> Sequence[tuple[float, str, str]] | None:
    """Return the correlations of base parameters, largest first; None where they are unknown."""
    lower = results.quality.get('correlation')
    names = [entry.name for entry in results.base]
    if not lower or len(lower) != len(names) or len(names) < 2:
        return None
    pairs = [
        (value, names[i], names[k])
        for i, line in enumerate(lower)
        for k, value in enumerate(line[:i])
        if abs(value) >= CORRELATED
    ]
    return sorted(pairs, key=lambda pair: -abs(pair[0]))
