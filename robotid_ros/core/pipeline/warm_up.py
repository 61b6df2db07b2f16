"""Friction that changes as joints warm up, estimated beside all else of the robot as it ended."""

from collections.abc import Mapping
import dataclasses
from typing import Any

import numpy as np

from ...exceptions import RecordingError
from ..arrays import Array
from ..finding_codes import finding
from ..findings import Finding
from ..model.friction import FrictionTerm
from ..model.robot import ElasticRobot, Robot
from ..model.robot_builder import with_friction
from ..regression.estimate import Estimate
from ..regression.estimators import fit
from ..regression.observation_system import decimate, System
from ..signals.samples import Samples


def fit_warm(
    samples: Samples, system: System, robot: Robot, method: str, iterations: int
) -> tuple[System, Estimate, list[Finding]]:
    """
    Fit a system together with what the joints' friction changes by along the recording.

    Y = W χ + W_w χ_w + ρ with the columns W_w of terms `of_recording`, which are zero at the end,
    or at the reference temperature. What is returned is of χ: the covariance is that of both
    together, the torque without W_w χ_w.

    Parameters
    ----------
    samples, system : of the whole recording
    robot : the model
    method, iterations : as of `fit`

    Returns
    -------
    The system of the robot as warm as it ended, the estimate, and notes on what changed

    Raises
    ------
    RecordingError : friction of a joint is to change with a temperature that was not recorded

    """
    terms = _changing(robot)
    names = tuple(f'{term.kind.symbols[0]}{j + 1}' for j, term in terms)
    if not names:
        return system, fit(system, method, iterations), []
    b, n = len(system.names), len(system.joints)
    W = np.zeros((n, len(system.time), len(names)))
    for k, (j, term) in enumerate(terms):
        W[j, :, k] = _column(samples, j, term)
    units = ('',) * len(names)
    wider = dataclasses.replace(
        system, names=system.names + names, units=system.units + units,
        W=np.concatenate([system.W, W], axis=2),
    )  # fmt: skip
    found = fit(wider, method, iterations)
    value, sigma = found.value[b:], found.sigma[b:]
    notes = [
        _note(robot.joints[j], term, {'parameter': name, 'value': v, 'sigma': s})
        for (j, term), name, v, s in zip(terms, names, value, sigma, strict=True)
    ]
    extra, of_noise = (
        None if c is None else c[:b, :b] for c in (found.model_error, found.of_noise)
    )
    estimate = dataclasses.replace(
        found, names=system.names, units=system.units, value=found.value[:b],
        covariance=found.covariance[:b, :b], classical=found.classical[:b, :b], model_error=extra,
        of_noise=of_noise,
    )  # fmt: skip
    return dataclasses.replace(system, Y=system.Y - W @ value), estimate, notes


def warm_robot(robot: Robot) -> Robot:
    """Return the robot as warm as it ended, without terms of what changed."""
    terms = tuple(tuple(t for t in own if not t.kind.of_recording) for own in robot.friction)
    if isinstance(robot, ElasticRobot) or terms == robot.friction:
        return robot
    warm, load = with_friction(robot, terms), robot.load_parameters
    if load is not None:
        load = load[[robot.column(parameter.name) for parameter in warm.parameters]]
    return dataclasses.replace(warm, load_parameters=load)


def _changing(robot: Robot) -> list[tuple[int, FrictionTerm]]:
    """Return the terms of what changes, with the numbers of their joints."""
    if isinstance(robot, ElasticRobot):
        return []
    return [(j, t) for j, terms in enumerate(robot.friction) for t in terms if t.kind.of_recording]


def _column(samples: Samples, joint: int, term: FrictionTerm) -> Array:
    """Return the decimated column (N,) of what changes."""
    temperature = None if samples.temperature is None else samples.temperature[:, joint]
    if term.kind.by_temperature and (temperature is None or np.isnan(temperature).any()):
        raise RecordingError(
            f"friction '{term.name}' needs the temperature of {samples.joints[joint]}: record it, "
            'or take the term out of robot.friction'
        )
    motion = samples.q[:, joint], samples.dq[:, joint]
    (values,) = term.columns(*motion, successive=True, temperature=temperature)
    return decimate(values[None], samples.decimation)[0]


def _note(joint: str, term: FrictionTerm, values: Mapping[str, Any]) -> Finding:
    if not term.kind.by_temperature:
        return finding('friction_warmed_up', [joint], **values)
    reference = term.constants['reference_temperature']
    return finding('friction_by_temperature', [joint], reference=reference, **values)
