"""
Gravity and stiction apart: postures in which a robot has come to rest from both sides.

A joint that has stopped under a position controller still carries the friction against which it
was moved: its effort is that of gravity plus friction where it came from below, and gravity minus
friction where it came from above. Their mean is gravity, half their difference stiction.
"""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses

import numpy as np

from ..arrays import Array
from ..excitation.trajectory import Trajectory
from ..model import inverse_dynamics, Robot

# Speed at which the model's friction counts as that of a joint about to stop [rad/s or m/s]: steps
# have their full height there, Stribeck's part nearly so, and viscous friction is next to none.
CREEP = 0.01


@dataclasses.dataclass(frozen=True)
class RestPair:
    """
    Mean position [rad or m] and effort [N·m or N] at rest, (n,) each, of one posture.

    `lower` where the joints came from below, with rising positions; `upper` from above.
    """

    lower_q: Array
    lower_effort: Array
    upper_q: Array
    upper_effort: Array


@dataclasses.dataclass(frozen=True)
class JointStatics:
    """
    What the postures say of one joint [N·m or N].

    Attributes
    ----------
    joint, unit : name, and 'N·m' or 'N'
    gravity : root mean square of the effort that holds it
    gravity_error, gravity_worst : measured minus predicted: root mean square, and largest value
        with its sign
    stiction : mean of half the difference of both sides
    predicted_stiction : the same of the model: its friction of joints about to stop

    """

    joint: str
    unit: str
    gravity: float
    gravity_error: float
    gravity_worst: float
    stiction: float
    predicted_stiction: float


def static_postures(motion: Trajectory, robot: Robot, count: int, distance: float) -> list[Array]:
    """
    Choose postures (n,) of a motion, evenly in time, from which every joint can go both ways.

    Parameters
    ----------
    robot : with limits
    distance : by which joints can go either way [rad or m]

    """
    t = motion.period * (np.arange(count) + 0.5) / count
    lower, upper = robot.limits.lower + distance, robot.limits.upper - distance
    return [np.clip(q, lower, upper) for q in motion.sample(t).q]


def evaluate_postures(
    robot: Robot, chi: Array, pairs: Sequence[RestPair]
) -> tuple[JointStatics, ...]:
    """Compare what holds the robot with standard parameters (p,)."""
    sides = [
        (np.stack([p.lower_q for p in pairs]), np.stack([p.lower_effort for p in pairs]), CREEP),
        (np.stack([p.upper_q for p in pairs]), np.stack([p.upper_effort for p in pairs]), -CREEP),
    ]
    residuals, frictions = [], []
    for q, effort, speed in sides:
        still = np.zeros_like(q)
        held = inverse_dynamics(robot, chi, q, still, still)
        residuals.append(effort - held)
        frictions.append(inverse_dynamics(robot, chi, q, still + speed, still) - held)
    gravity = 0.5 * (sides[0][1] + sides[1][1])
    error = 0.5 * (residuals[0] + residuals[1])
    stiction = 0.5 * (residuals[0] - residuals[1]).mean(axis=0)
    predicted = 0.5 * (frictions[0] - frictions[1]).mean(axis=0)
    return tuple(
        JointStatics(
            joint,
            'N' if robot.prismatic[j] else 'N·m',
            float(np.sqrt(np.mean(gravity[:, j] ** 2))),
            float(np.sqrt(np.mean(error[:, j] ** 2))),
            float(error[np.argmax(np.abs(error[:, j])), j]),
            float(stiction[j]),
            float(predicted[j]),
        )
        for j, joint in enumerate(robot.joints)
    )
