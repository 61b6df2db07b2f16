"""From identified parameters and a recording to what they predict of it."""

from collections.abc import Sequence
import dataclasses
import math

import numpy as np

from ..core.diagnostics.residual_reasons import prediction_warnings
from ..core.findings import Finding
from ..core.model.friction import make_terms
from ..core.model.robot import Robot
from ..core.model.robot_builder import with_friction
from ..core.pipeline.observation import RecordingOrChunks
from ..core.pipeline.validation import validate
from ..core.regression.delays import remove_delay
from ..core.regression.goodness_of_fit import Validation
from ..core.signals.recording import Recording
from ..core.verdict import conclude, JointError, Verdict
from ..exceptions import UnknownNameError
from .collect_results import recording_facts, residual_rows, torques
from .comparison import BASE, CheckedParameters, PRIOR, STANDARD
from .identification_input import AnyRecording, Input
from .results import Residual, Results, verdict_of


def check_parameters(
    results: Results,
    recording: AnyRecording,
    session: Input,
    command: str = '',
    known: Sequence[Finding] = (),
) -> CheckedParameters:
    """
    Predict a recording by base parameters, by identified.urdf, and by the robot description.

    The delays that were removed in the identification are removed here too. `command` repeats it,
    for the page; findings that are `known` come before those of the prediction. Raises
    RecordingError where the recording cannot be used; UnknownNameError where the robot lacks an
    identified parameter.
    """
    robot = session.robot.elastic or _with_identified_friction(session.robot, results)
    settings = session.configuration.identification

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
    findings = tuple(dict.fromkeys([*known, *reasons]))
    checked = dataclasses.replace(
        results,
        identification=(),
        validation=rows[BASE],
        torques={'validation': torques(found[BASE])},
        data={
            **recording_facts(recording),
            'command': command,
            'base_residual': _residual(found[BASE]),
            'consistent_residual': _residual(found.get(STANDARD)),
        },
        settings=session.settings,
        findings=findings,
        history=(),
        # The first reason explains it.
        verdict=_verdict_on(before, rows[BASE], findings.index(reasons[0]) if reasons else None),
    )
    return CheckedParameters(results, checked, rows)


def _with_identified_friction(robot: Robot, results: Results) -> Robot:
    """Return the robot with the friction terms that were identified, the default's included."""
    names, constants = (results.model.get(k, {}) for k in ('friction', 'friction_constants'))
    if not names.keys() >= set(robot.joints):
        return robot
    terms = tuple(make_terms(tuple(names[joint]), constants[joint]) for joint in robot.joints)
    return with_friction(robot, terms)


def _verdict_on(before: Verdict, rows: Sequence[Residual], cause: int | None) -> Verdict:
    """Return the verdict of an identification with what was measured on another recording."""
    known = {joint.joint: joint for joint in before.joints}
    joints = [
        dataclasses.replace(known.get(row.joint, JointError(row.joint)), measured=row.reported)
        for row in rows
    ]
    return conclude(
        joints,
        residual=max((row.reported for row in rows), default=math.nan),
        validated=True,
        unlimited=before.unlimited,
        effort_unit=before.effort_unit,
        cause=cause,
    )


def _residual(validation: Validation | None) -> float:
    return math.nan if validation is None else validation.total_residual(moving=True)


def without_delay(recording: AnyRecording, results: Results, stamps: str) -> RecordingOrChunks:
    """Return a recording without the delays that the identification found, see `remove_delay`."""
    lines = results.quality.get('joints', {})
    delays = {joint: float(line['delay']) for joint, line in lines.items() if line.get('delay')}
    if isinstance(recording, Recording):
        return remove_delay(recording, delays, stamps)
    return (remove_delay(chunk, delays, stamps) for chunk in recording)


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
