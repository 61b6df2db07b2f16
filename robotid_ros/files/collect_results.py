"""An identification as plain values; what its parameters predict of another recording."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
from datetime import datetime, timezone
import math
from pathlib import Path
from typing import Any, cast

import numpy as np

from ..core.diagnostics.data_warnings import prediction_warnings
from ..core.findings import Finding, finding
from ..core.mixed.variances import KINDS
from ..core.model import Robot
from ..core.model.friction import make_terms
from ..core.model.robot import BaseParameters, unit_label
from ..core.model.robot_builder import with_friction
from ..core.parameters.essential import effective_sample_size
from ..core.pipeline.identification import Identification, MAX_COPIED
from ..core.pipeline.observation import LogSet, RecordingOrChunks, validate, without_delays
from ..core.regression.validation import Validation
from ..core.verdict import decide_level, JointError, judge
from ..exceptions import UnknownNameError
from .atomic import write_text
from .export.identified_model import identified_urdf, model_settings
from .identification_input import AnyRecording, Input
from .provenance import hash_of_recording, versions
from .report.page import save_page_if_possible
from .results import (
    BASE,
    Comparison,
    Entry,
    PRIOR,
    REPORT,
    Residual,
    Results,
    STANDARD,
    URDF,
    verdict_of,
    write_results,
)


def collect_results(
    identification: Identification,
    recording: AnyRecording | LogSet,
    settings: Mapping[str, Any] | None = None,
    command: str = '',
) -> Results:
    """Gather an identification's results as plain values; parameters as in `save`."""
    found, robot, verdict = identification, identification.robot, judge(identification)
    effort, other, settings = verdict.effort_unit, found.compared, dict(settings or {})
    if found.mixed is not None and found.mixed.signals is not None:
        # With the filters and rows that were chosen: validating takes them.
        given = settings.get('identification') or {}
        chosen = {name: getattr(found.mixed.signals, name) for name in ('cutoff', 'band', 'rows')}
        signals = {**(given.get('signals') or {}), **chosen}
        settings['identification'] = {**given, 'signals': signals}

    def series(each: Identification) -> dict[str, Validation]:
        both = {'identification': each.fitted, 'validation': each.validation}
        return {name: value for name, value in both.items() if value is not None}

    def outcome(each: Identification) -> dict[str, Any]:
        """Return base parameters and residuals, by keyword."""
        rows = {name: residual_rows(each.robot, v, effort) for name, v in series(each).items()}
        return {'base': tuple(_base(each, effort)), **rows}

    return Results(
        robot=robot.name,
        method=found.method,
        created=datetime.now(timezone.utc).isoformat(timespec='seconds'),
        joints=robot.joints,
        **outcome(found),
        standard=tuple(_standard(found, effort)),
        condition_number=float(found.estimate.condition_number),
        data=_data(recording, found) | ({'command': command} if command else {}),
        consistent=dict(zip(robot.links, map(bool, found.standard.consistent), strict=True)),
        essential=_essential(found),
        findings=found.findings,
        history=tuple(found.history.rows() if found.history else ()),
        compared=None if other is None else Comparison(other.method, **outcome(other)),
        selection=_selection(found),
        settings=settings,
        versions=versions(),
        torques=series(found),
        model=model_settings(robot),
        quality=found.quality,
        plain_friction=found.plain_friction,
        verdict=verdict,
    )


def _selection(found: Identification) -> dict[str, Any]:
    """Say what the mixed model opened, and what it predicts of parts that were not fitted."""
    if found.mixed is None:
        return {}
    chosen, names = found.mixed.shrinkage, ('residual', 'plain_residual')
    errors = np.array([chosen.joint_errors, chosen.plain_joint_errors])
    shares = np.sqrt(errors / np.maximum(chosen.powers, 1e-300)).T.tolist()
    rows = [dict(zip(names, each, strict=True)) for each in shares]
    return {
        'summary': found.mixed.describe(),
        **{name: getattr(chosen, name) for name in names},
        'kinds': {k: float(v) for k, v in zip(KINDS, chosen.penalty, strict=True) if v < np.inf},
        'pull': float(chosen.pull),
        'joints': dict(zip(found.robot.joints, rows, strict=True)),
    }


def residual_rows(robot: Robot, validation: Validation, effort: str = '') -> tuple[Residual, ...]:
    """Return the goodness of fit of each joint; `effort` is the unit of efforts, '' N·m or N."""
    units = [unit_label(unit, effort) for _, unit in robot.units.values()]
    measured = np.sqrt(np.mean(np.square(validation.measured), axis=0))
    columns = (validation.relative_residual, validation.rms, measured)
    numbers = np.array([*columns, validation.moving_residual, validation.r2]).T.tolist()
    return tuple(
        Residual(joint, relative, rms, torque, unit, moving, r2)
        for joint, unit, (relative, rms, torque, moving, r2) in zip(
            validation.joints, units, numbers, strict=True
        )
    )


def add_true_values(
    results: Results, base: BaseParameters, names: Sequence[str], truth: np.ndarray
) -> Results:
    """Return results with true standard parameters (p,) beside them, NaN where not known."""
    true = base.of(np.nan_to_num(truth))
    known = [np.isfinite(truth[row != 0.0]).all() for row in base.matrix]
    values = {name: float(x) for name, x, k in zip(base.names, true, known, strict=True) if k}
    values |= {name: float(x) for name, x in zip(names, truth, strict=True) if np.isfinite(x)}

    def with_true(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        return tuple(dataclasses.replace(e, true=values.get(e.name)) for e in entries)

    return dataclasses.replace(
        results, base=with_true(results.base), standard=with_true(results.standard)
    )


def _base(found: Identification, effort: str) -> Iterator[Entry]:
    base, estimate, prior = found.base, found.estimate, found.base.of(found.robot.prior)
    essential = range(base.rank) if found.essential is None else found.essential.indices
    for k, column in enumerate(base.columns):
        owner, kind = found.robot.parameters[column], 'essential' if k in essential else 'small'
        yield Entry(
            base.names[k],
            float(estimate.value[k]),
            float(estimate.sigma[k]),
            float(estimate.relative_sigma[k]),
            unit_label(base.units[k], effort),
            owner.joint,
            'prior' if k in estimate.from_prior else kind,
            base.combinations[k].partition(' = ')[2] or base.combinations[k],
            owner.name,
            float(prior[k]),
        )


def _standard(found: Identification, effort: str) -> Iterator[Entry]:
    robot, standard = found.robot, found.standard
    columns = (robot.parameters, standard.value, standard.sigma, found.base.classes, robot.prior)
    for parameter, value, sigma, kind, prior in zip(*columns, strict=True):
        yield Entry(
            parameter.name,
            float(value),
            float(sigma),
            float(100 * sigma / abs(value)) if value else math.inf,
            unit_label(parameter.unit, effort),
            parameter.joint,
            kind,
            prior=float(prior),
        )


def _essential(found: Identification) -> dict[str, Any]:
    """Say how many parameters are essential, what they leave, and in which order others went."""
    if found.essential is None:
        return {}
    steps = ('dropped', 'percent', 'growth', 'p_value')
    estimate = found.essential.estimate
    return {
        'count': len(found.essential.indices),
        'relative_residual': estimate.total_residual,
        'values': dict(zip(estimate.names, estimate.value.tolist(), strict=True)),
        'path': [dict(zip(steps, step, strict=True)) for step in found.essential.path],
    }


def _data(recording: AnyRecording | LogSet, found: Identification) -> dict[str, Any]:
    standard = found.standard
    fit: dict[str, Any] = {
        'rows': [int(rows) for rows in found.estimate.rows],
        'independent_rows': effective_sample_size(found.estimate),
        'relative_residual': float(found.estimate.total_residual),
        'base_residual': float(standard.base_residual),
        'consistent_residual': float(standard.residual),
        'prior_spread': float(standard.spread),
    }
    if (obstacle := standard.obstacle) is not None:
        fit |= {'attainable': float(obstacle.values['attainable'])}
        fit |= {'obstacle': obstacle.joints[0]}
    if isinstance(recording, LogSet):
        logs = [recording_facts(cast(AnyRecording, log)) for log in recording.logs]
        return {'source': recording.source, 'messages': recording.size, 'logs': logs, **fit}
    return {**recording_facts(recording), **fit}


def recording_facts(recording: AnyRecording) -> dict[str, Any]:
    """Say where data come from, and how many."""
    first, last = recording.time_range
    return {
        'source': recording.source,
        'sha256': hash_of_recording(recording.source),
        'origin': recording.origin,  # [ns]
        'from': first,
        'to': last,
        'rate': recording.rate,
        'messages': recording.size,
    }


def save(
    identification: Identification,
    recording: AnyRecording | LogSet,
    folder: str | Path,
    settings: Mapping[str, Any] | None = None,
    command: str = '',
) -> Results:
    """
    Write `parameters.yaml`, `torques.npz`, `identified.urdf` and `report.html`.

    Files of the same names are replaced. The `settings` are the configuration's nested mapping,
    the `command` repeats it. Returns the results as plain values, with a warning where the
    report's plotting library is missing. FileError: the folder cannot be written.
    """
    results = collect_results(identification, recording, settings, command)
    description = identified_urdf(
        identification.robot, identification.standard.value, identification.plain_friction
    )
    write_text(Path(folder) / URDF, description)
    write_results(results, folder)
    report, place = Path(folder) / REPORT, Path(folder).absolute()
    if reason := save_page_if_possible('identification', report, results, place):
        missing = finding('no_report', reason=reason)
        results = dataclasses.replace(results, findings=(*results.findings, missing))
    return results


def check_parameters(
    results: Results,
    recording: AnyRecording,
    session: Input,
    command: str = '',
    known: Sequence[Finding] = (),
) -> Results:
    """Predict a recording by base parameters, by identified.urdf and by the description."""
    robot, settings = session.robot, session.configuration.identification
    names, constants = (results.model.get(k, {}) for k in ('friction', 'friction_constants'))
    if robot.elastic is not None:
        robot = robot.elastic
    elif names.keys() >= set(robot.joints):  # the friction that was identified, or by default
        terms = (make_terms(tuple(names[joint]), constants[joint]) for joint in robot.joints)
        robot = with_friction(robot, tuple(terms))

    def predicted(chi: np.ndarray) -> Validation:
        log = without_delay(recording, results, settings.signals.stamps)
        return validate(log, robot, chi, settings)

    sets = {BASE: _standard_parameters(results.minimal_parameters, robot)}
    for name, attribute in ((STANDARD, 'value'), (PRIOR, 'prior')):
        values = {entry.name: getattr(entry, attribute) for entry in results.standard}
        if values and None not in values.values():
            sets[name] = _standard_parameters(values, robot)
    found = {name: predicted(chi) for name, chi in sets.items()}
    before = verdict_of(results)
    rows = {name: residual_rows(robot, each, before.effort_unit) for name, each in found.items()}
    reasons = prediction_warnings(found[BASE])
    facts = recording_facts(recording)
    start, stop = facts['from'], facts['to']
    common = [  # with those fitted, by hash and times
        min(stop, each['to']) - max(start, each['from'])
        for each in (results.data, *results.data.get('logs', ()))
        if facts['sha256'] and each.get('sha256') == facts['sha256']
    ]
    share = max([0.0, *common]) / max(stop - start, 1e-9)
    copied = [finding('validation_copied', share=share)] if share > MAX_COPIED else []
    findings = tuple(dict.fromkeys([*known, *copied, *reasons]))
    joints = {joint.joint: joint for joint in before.joints}
    measured = [
        dataclasses.replace(joints.get(row.joint, JointError(row.joint)), measured=row.reported)
        for row in rows[BASE]
    ]
    verdict = decide_level(
        measured,
        residual=max((row.reported for row in rows[BASE]), default=math.nan),
        validated=not copied,
        unlimited=before.unlimited,
        effort_unit=before.effort_unit,
        cause=findings.index(reasons[0]) if reasons else None,  # the first one explains it
    )
    totals = {name: each.total_residual(moving=True) for name, each in found.items()}
    return dataclasses.replace(
        results,
        identification=(),
        validation=rows[BASE],
        torques={'validation': found[BASE]},
        data={
            **facts,
            'command': command,
            'base_residual': totals[BASE],
            'consistent_residual': totals.get(STANDARD, math.nan),
        },
        settings=session.settings,
        findings=findings,
        history=(),
        verdict=verdict,
        sets=rows,
    )


def without_delay(recording: AnyRecording, results: Results, stamps: str) -> RecordingOrChunks:
    """Return a recording without the delays that the identification found, see `remove_delay`."""
    lines = results.quality.joints if results.quality else {}
    delays = {joint: line.delay for joint, line in lines.items() if line.delay}
    return without_delays(recording, delays, stamps)


def _standard_parameters(values: dict[str, float], robot: Robot) -> np.ndarray:
    """Place values by name on the robot's standard parameters, (p,)."""
    chi = np.zeros(robot.p)
    for name, value in values.items():
        try:
            chi[robot.column(name)] = value
        except UnknownNameError:
            if value:
                raise
    return chi
