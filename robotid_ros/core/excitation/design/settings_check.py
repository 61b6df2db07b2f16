"""Checks before any search: settings that contradict the robot, or each other."""

import numpy as np

from ....exceptions import ConfigurationError, LimitError
from ...arrays import Array
from ...model.dynamics import inverse_dynamics
from ...model.robot import Robot
from ..constraints.motion_limits import check_position, motion_limits
from ..settings import ExcitationSettings
from .criteria import criterion
from .optimisation_problem import Problem


def check_settings(robot: Robot, settings: ExcitationSettings) -> None:
    """
    Raise an error for settings that do not fit the robot.

    Raises
    ------
    ConfigurationError : names the setting

    """
    for name in ('start', 'noise'):
        values = getattr(settings, name)
        if len(values) not in (0, robot.n):
            raise ConfigurationError(
                f"'excitation.{name}' has {len(values)} values: give one per joint ({robot.n})"
            )
        if not np.isfinite(values).all():
            raise ConfigurationError(f"'excitation.{name}' holds a value that is not finite")
    if settings.noise and min(settings.noise) <= 0.0:
        raise ConfigurationError("'excitation.noise' must be above zero for each joint")
    criterion(settings.criterion, settings.mix)
    for name, weight in settings.mix.items():
        if not 0.0 <= weight < np.inf:
            raise ConfigurationError(
                f"'excitation.mix.{name}' is {weight:g}: all criteria are minimised, so that "
                'weights must be zero or more'
            )
    motion_limits(robot, settings)


def check_start(problem: Problem, start: Array) -> None:
    """
    Raise an error for a start outside its limits, that efforts cannot hold, or in collision.

    Raises
    ------
    LimitError, CollisionError : name the joint or the bodies

    """
    robot, design_limits = problem.robot, problem.design_limits
    check_position(robot, design_limits, start)
    still = np.zeros((1, robot.n))
    tau = inverse_dynamics(robot, robot.prior, start[None], still, still)[0]
    for j, joint in enumerate(robot.joints):
        if abs(tau[j]) > design_limits.effort[j]:
            raise LimitError(joint, 'effort', 0.0, float(tau[j]), float(design_limits.effort[j]))
    problem.scene.check_path(start[None], np.zeros(1))
