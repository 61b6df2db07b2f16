"""Friction that falls while joints warm up, estimated beside all else of the warm robot."""

import dataclasses

import numpy as np

from ..arrays import Array
from ..model.friction import WARM_UPS
from ..model.robot import ElasticRobot, Robot
from ..model.robot_builder import with_friction
from ..regression.estimate import Estimate
from ..regression.estimators import fit
from ..regression.observation_system import decimate, System
from ..signals.samples import Samples


def fit_warm(
    samples: Samples, system: System, robot: Robot, method: str, iterations: int
) -> tuple[System, Estimate, list[str]]:
    """
    Fit a system together with what the joints' friction falls by along the recording.

    Y = W χ + W_w χ_w + ρ with the columns W_w of `WARM_UPS`, which are zero at the end. What is
    returned is of χ: the covariance is that of both together, the torque without W_w χ_w.

    Parameters
    ----------
    samples, system : of the whole recording
    robot : the model
    method, iterations : as of `fit`

    Returns
    -------
    The system of the robot as warm as it ended, the estimate, and notes on what fell

    """
    names, columns = _warm_up_columns(samples, robot)
    if not names:
        return system, fit(system, method, iterations), []
    b, n = len(system.names), len(system.joints)
    W = np.zeros((n, len(system.time), len(names)))
    for k, (j, values) in enumerate(columns):
        W[j, :, k] = values
    units = ('',) * len(names)
    wider = dataclasses.replace(
        system, names=system.names + names, units=system.units + units,
        W=np.concatenate([system.W, W], axis=2),
    )  # fmt: skip
    found = fit(wider, method, iterations)
    value, sigma = found.value[b:], found.sigma[b:]
    notes = [
        f'friction of {robot.joints[j]} fell by {name} = {v:.3g} ± {s:.2g} as it warmed up: '
        'the parameters are those at the end of the recording'
        for (j, _), name, v, s in zip(columns, names, value, sigma, strict=True)
    ]
    extra = None if found.model_error is None else found.model_error[:b, :b]
    estimate = dataclasses.replace(
        found, names=system.names, units=system.units, value=found.value[:b],
        covariance=found.covariance[:b, :b], classical=found.classical[:b, :b], model_error=extra,
    )  # fmt: skip
    return dataclasses.replace(system, Y=system.Y - W @ value), estimate, notes


def warm_robot(robot: Robot) -> Robot:
    """Return the robot as warm as it ended, without terms of what fell."""
    terms = tuple(tuple(t for t in own if t.name not in WARM_UPS) for own in robot.friction)
    if isinstance(robot, ElasticRobot) or terms == robot.friction:
        return robot
    warm, load = with_friction(robot, terms), robot.load_parameters
    if load is not None:
        load = load[[robot.column(parameter.name) for parameter in warm.parameters]]
    return dataclasses.replace(warm, load_parameters=load)


def _warm_up_columns(
    samples: Samples, robot: Robot
) -> tuple[tuple[str, ...], list[tuple[int, Array]]]:
    """Return names, joints and decimated columns (N,) of what falls."""
    names, columns = list[str](), list[tuple[int, Array]]()
    if isinstance(robot, ElasticRobot):
        return (), columns
    for j, terms in enumerate(robot.friction):
        for term in terms:
            if term.name in WARM_UPS:
                (values,) = term.columns(samples.q[:, j], samples.dq[:, j], successive=True)
                columns.append((j, decimate(values[None], samples.decimation)[0]))
                names.append(f'{term.kind.symbols[0]}{j + 1}')
    return tuple(names), columns
