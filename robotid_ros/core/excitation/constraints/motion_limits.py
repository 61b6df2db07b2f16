"""The limits that a motion must keep, with those that a URDF lacks."""

from dataclasses import asdict, replace

import numpy as np

from ....exceptions import ConfigurationError, LimitError
from ...arrays import Array
from ...model.robot import Limits, Robot
from ..settings import ExcitationSettings, Margins

QUANTITIES = ('position', 'velocity', 'acceleration', 'jerk', 'effort')


def motion_limits(robot: Robot, settings: ExcitationSettings) -> Limits:
    """
    Complete the robot's limits.

    A joint without position limits is bounded by ±`amplitude`; a joint without acceleration limit
    gets `velocity/acceleration_time`, one without jerk limit `acceleration/jerk_time`.

    Raises
    ------
    ConfigurationError : no velocity or effort limit, one that is not a number or below zero, or a
        lower one that is not below the upper

    """
    limits = robot.limits
    for name, values in asdict(limits).items():
        for joint, value in zip(robot.joints, values, strict=True):
            if np.isnan(value) or (name in QUANTITIES and value < 0.0):
                raise ConfigurationError(
                    f'the {name} limit of {joint} is {value:g}: correct robot.{name}'
                )
    for name in ('velocity', 'effort'):
        values = np.asarray(getattr(limits, name))
        for joint, value in zip(robot.joints, values, strict=True):
            if not 0.0 < value < np.inf:
                raise ConfigurationError(
                    f'{joint} has no {name} limit in the robot description: set robot.{name}'
                )
    lower = np.where(np.isfinite(limits.lower), limits.lower, -settings.amplitude)
    upper = np.where(np.isfinite(limits.upper), limits.upper, settings.amplitude)
    for joint, low, high in zip(robot.joints, lower, upper, strict=True):
        if not low < high:
            raise ConfigurationError(
                f'{joint} has a lower limit {low:g} that is not below its upper limit {high:g}: '
                'correct robot.lower and robot.upper'
            )
    acceleration = _fill_missing(limits.acceleration, limits.velocity / settings.acceleration_time)
    jerk = _fill_missing(limits.jerk, acceleration / settings.jerk_time)
    return replace(limits, lower=lower, upper=upper, acceleration=acceleration, jerk=jerk)


def _fill_missing(values: Array, default: Array) -> Array:
    return np.where(np.isfinite(values) & (values > 0.0), values, default)


def apply_margins(limits: Limits, margins: Margins) -> Limits:
    """Take the margins off the limits."""
    inset = 0.5 * margins.position * (limits.upper - limits.lower)
    return replace(
        limits,
        lower=limits.lower + inset,
        upper=limits.upper - inset,
        velocity=limits.velocity * (1.0 - margins.velocity),
        acceleration=limits.acceleration * (1.0 - margins.acceleration),
        jerk=limits.jerk * (1.0 - margins.jerk),
        effort=limits.effort * (1.0 - margins.effort),
    )


def check_position(robot: Robot, limits: Limits, q: Array) -> None:
    """
    Raise an error for a configuration outside the position limits.

    Raises
    ------
    LimitError : names the first joint that is outside

    """
    for j, joint in enumerate(robot.joints):
        low, high = limits.lower[j], limits.upper[j]
        if not low <= q[j] <= high:
            bound = float(low if q[j] < low else high)
            raise LimitError(joint, 'position', 0.0, float(q[j]), bound)
