"""Which parameters are followed: friction and offset of each drive, and the last link's load."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import Array, ReadOnlyArrays
from ..model.dynamics import regressor
from ..model.friction import OF_POSITION
from ..model.parameters import INERTIAL
from ..model.robot import Robot

FRICTION, OFFSET, PAYLOAD = 'friction', 'offset', 'payload'
# What a body at the last link adds to its parameters, the mass first. Its inertia about the joint
# would need faster motions than those of work to be told from the rest.
LOAD = ('M', 'MX', 'MY', 'MZ')
# Random states that show which torques are ordinary: speeds up to this share of the limit, or up
# to the first figure where there is none, accelerations up to the second [rad/s, rad/s²].
STATES, SPEED_SHARE, MAX_SPEED, MAX_ACCELERATION = 200, 0.2, 1.0, 2.0
# A parameter of friction is measured by its value, or by what makes this share of its group's
# torque where that is more; offset and payload by this share of the joint's friction, or this one
# of its whole torque. A small parameter need not be known to a per cent of itself, and the links'
# weight, which looks like offset and payload, is not.
FRICTION_SHARE, TORQUE_SHARE = 0.5, 0.25


class ParameterGroup(NamedTuple):
    """
    Parameters that change together.

    Attributes
    ----------
    kind : FRICTION, OFFSET or PAYLOAD
    name : joint or coupling; the last joint of a payload
    members : their places among the followed parameters
    joints : numbers of the joints whose motion shows them

    """

    kind: str
    name: str
    members: tuple[int, ...]
    joints: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class FollowedParameters(ReadOnlyArrays):
    """
    The m parameters that are followed, and how large their changes may be.

    Attributes
    ----------
    columns : (m,) of the standard parameters
    names, units : of them
    identified : (m,) value
    scale : (m,) change that counts as large
    level : (n,) ordinary torque of each joint [N·m or N]
    groups : what changes together

    """

    columns: npt.NDArray[np.intp]
    names: tuple[str, ...]
    units: tuple[str, ...]
    identified: Array
    scale: Array
    level: Array
    groups: tuple[ParameterGroup, ...]


def follow(robot: Robot, standard: Array) -> FollowedParameters:
    """
    Choose the parameters that a robot at work may change.

    Parameters
    ----------
    robot : rigid
    standard : (p,) identified parameters, others zero

    """
    keys = [_group_of(robot, k) for k in range(robot.p)]
    columns = np.array([k for k, key in enumerate(keys) if key is not None], dtype=np.intp)
    order = list(dict.fromkeys(key for key in keys if key is not None))
    order.sort(key=lambda key: key[0] == PAYLOAD)
    members = {key: [i for i, k in enumerate(columns) if keys[k] == key] for key in order}
    if (payload := (PAYLOAD, robot.joints[-1])) in members:
        # The mass first.
        members[payload].sort(key=lambda i: LOAD.index(robot.parameters[columns[i]].symbol))
    groups = tuple(
        ParameterGroup(*key, tuple(members[key]), _joints(robot, *key)) for key in order
    )
    scale, level = _sizes(robot, standard, columns, groups)
    parameters = [robot.parameters[k] for k in columns]
    return FollowedParameters(
        columns,
        tuple(p.name for p in parameters),
        tuple(p.unit for p in parameters),
        np.asarray(standard)[columns],
        scale,
        level,
        groups,
    )


def _group_of(robot: Robot, column: int) -> tuple[str, str] | None:
    """Return kind and name of the group of a standard parameter, None of one that stays."""
    parameter = robot.parameters[column]
    first = robot.first_columns[robot.n - 1]
    if parameter.symbol in INERTIAL:
        last = first <= column < first + len(INERTIAL)
        return (PAYLOAD, robot.joints[-1]) if last and parameter.symbol in LOAD else None
    if parameter.symbol == 'Ia' or parameter.symbol in OF_POSITION:
        return None
    return (OFFSET if parameter.symbol == 'off' else FRICTION), parameter.joint


def _joints(robot: Robot, kind: str, name: str) -> tuple[int, ...]:
    if kind == PAYLOAD:
        return tuple(range(robot.n))
    for coupling in robot.couplings:
        if coupling.name == name:
            return tuple(np.flatnonzero(coupling.ratios).tolist())
    return (robot.joints.index(name),)


def _sizes(
    robot: Robot,
    standard: Array,
    columns: npt.NDArray[np.intp],
    groups: tuple[ParameterGroup, ...],
) -> tuple[Array, Array]:
    """Return scales (m,) and levels (n,), from random states."""
    rng, n = np.random.default_rng(0), robot.n
    lower = np.maximum(robot.limits.lower, -np.pi)
    upper = np.maximum(np.minimum(robot.limits.upper, np.pi), lower + 0.1)
    speed = SPEED_SHARE * robot.limits.velocity
    speed = np.where(np.isfinite(speed) & (speed > 0.0), speed, MAX_SPEED)
    q = rng.uniform(lower, upper, (STATES, n))
    dq = rng.uniform(-speed, speed, (STATES, n))
    W = regressor(robot, q, dq, rng.uniform(-MAX_ACCELERATION, MAX_ACCELERATION, (STATES, n)))
    followed, value = W[:, :, columns], np.asarray(standard)[columns]
    own = [k for group in groups if group.kind == FRICTION for k in group.members]
    friction = FRICTION_SHARE * _rms(followed[:, :, own] @ value[own])
    level = np.maximum(np.maximum(friction, TORQUE_SHARE * _rms(W @ standard)), 1e-9)
    shown = np.tile(level[:, None], len(columns))
    for group in groups:
        if group.kind == FRICTION:
            members = list(group.members)
            torque = _rms(followed[:, :, members] @ value[members])
            shown[:, members] = FRICTION_SHARE * torque[:, None]
    size = _rms(followed)
    with np.errstate(divide='ignore', invalid='ignore'):
        noticed = np.nanmin(np.where(size > 0.0, shown / size, np.inf), axis=0)
    scale = np.maximum(np.abs(value), noticed)
    # Of a column that no torque depends on nothing is ever known, whatever the scale.
    return np.where(np.isfinite(scale) & (scale > 0.0), scale, 1.0), level


def _rms(torque: Array) -> Array:
    return np.asarray(np.sqrt(np.mean(torque**2, axis=1)))
