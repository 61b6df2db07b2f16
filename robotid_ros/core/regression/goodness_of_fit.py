"""Efforts that parameters predict of samples or rows, beside the measured ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..arrays import Array, Mask
from ..model.dynamics import inverse_dynamics, link_torques, spring_torque
from ..model.friction import OF_POSITION
from ..model.robot import BaseParameters, ElasticRobot, INERTIAL, Robot
from ..signals.recording import Samples
from .observation_system import decimate, Rows
from .validation import PARTS, Validation

OFFSET = 'offset'
RIGID = (*INERTIAL, 'Ia', *OF_POSITION)


def rigid_and_offset(robot: Robot, columns: Iterable[int]) -> tuple[Mask, Mask]:
    """Tell which standard parameters are of links, rotors or counterbalances; which offsets."""
    symbols = [robot.parameters[column].symbol for column in columns]
    offset = [symbol.startswith('off') for symbol in symbols]
    return np.array([symbol in RIGID for symbol in symbols]), np.array(offset)


def validate_samples(samples: Samples, robot: Robot, chi: Array) -> Validation:
    """Predict the torques of samples with standard parameters (p,)."""
    q, dq, ddq, keep, measured = samples.q, samples.dq, samples.ddq, samples.decimation, None
    known = link_torques(robot, chi, q, dq, ddq)
    tau = inverse_dynamics(robot, chi, q, dq, ddq, successive=True, links=known)
    pair, parts = np.stack([samples.tau, tau]), {'position': q[::keep], 'velocity': dq[::keep]}
    if isinstance(robot, ElasticRobot):  # which counts as the measured one at a link
        pair += spring_torque(robot, chi, q)
    else:
        rigid, offset = rigid_and_offset(robot, range(robot.p))
        still, links = np.zeros_like(q), np.where(rigid, chi, 0.0)
        gravity = inverse_dynamics(robot, links, q, still, still)
        inertial = inverse_dynamics(robot, links, q, dq, ddq, links=known) - gravity
        constant = inverse_dynamics(robot, np.where(offset, chi, 0.0), still, still, still)
        # What is left depends on the direction of motion: friction that grows with the load, too.
        rest = tau - gravity - inertial - constant
        each = decimate(np.stack([inertial, gravity, rest, constant]), keep)
        parts |= zip(PARTS, each, strict=True)
    tau, predicted = decimate(pair, keep)
    moving, time = samples.moving[::keep], samples.time[::keep]
    if samples.measured is not None:
        measured = samples.measured[::keep]
    return _trim(Validation(samples.joints, time, tau, predicted, moving, **parts), measured)


def validate_system(system: Rows, robot: Robot, base: BaseParameters, value: Array) -> Validation:
    """Compare the torques of a system's rows with those of its base parameters (b,)."""
    valid = (system.valid if system.moving is None else system.moving).T
    parts = dict[str, Any]()
    own = system.W.shape[2] == len(base.columns) and not isinstance(robot, ElasticRobot)
    if own and system.q is not None and system.dq is not None:
        rigid, offset = rigid_and_offset(robot, base.columns)
        chi, still = np.zeros(robot.p), np.zeros_like(system.q)
        chi[base.columns[rigid]] = value[rigid]
        gravity = inverse_dynamics(robot, chi, system.q, still, still)
        links, constant, friction = (
            (system.W[:, :, own] @ value[own]).T for own in (rigid, offset, ~rigid & ~offset)
        )
        each = links - gravity, gravity, friction, constant
        parts = dict(zip(PARTS, each, strict=True))
        parts |= {'position': system.q, 'velocity': system.dq}
    pair = system.Y.T, system.predict(value).T
    return _trim(Validation(system.joints, system.time, *pair, valid, **parts), system.measured)


def _trim(found: Validation, counted: Mask | None) -> Validation:
    """Leave out what lies before the first and after the last row that is used, and in gaps."""
    rows = np.ones(len(found.time), dtype=bool) if counted is None else counted.copy()
    moving = np.flatnonzero(found.valid.any(axis=1))
    if moving.size:
        rows[: moving[0]] = rows[moving[-1] + 1 :] = False
    return Validation(found.joints, **{name: x[rows] for name, x in found.series.items()})
