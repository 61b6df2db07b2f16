"""Tolerances of joint_trajectory_controller (Jazzy): defaults, replaced by those of a goal."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from ...simulation_settings import ConstraintSettings, JointConstraintSettings

# float's epsilon, by which the original recognises -1 and a velocity that counts as zero.
EPSILON = 1.1920929e-07


@dataclass(frozen=True)
class Tolerance:
    """Allowed errors of one joint; 0: not checked."""

    position: float = 0.0
    velocity: float = 0.0
    acceleration: float = 0.0

    def allows(self, position: float, velocity: float) -> bool:
        """Whether errors are within the tolerance; NaN counts as within, as in the original."""
        return not (0.0 < self.position < abs(position)) and not (
            0.0 < self.velocity < abs(velocity)
        )


@dataclass(frozen=True)
class Tolerances:
    """Tolerances of a goal: along its path, at its end, and time to reach it [s]."""

    path: tuple[Tolerance, ...]
    goal: tuple[Tolerance, ...]
    goal_time: float


@dataclass(frozen=True)
class GoalTolerances:
    """Tolerances in a goal's message by joint, and a time [s]; 0: default, -1: not checked."""

    path: tuple[tuple[str, Tolerance], ...] = ()
    goal: tuple[tuple[str, Tolerance], ...] = ()
    goal_time: float = 0.0


def default_tolerances(settings: ConstraintSettings, joints: Sequence[str]) -> Tolerances:
    """Tolerances from the controller's parameters."""
    of = [settings.joints.get(joint, JointConstraintSettings()) for joint in joints]
    stopped = settings.stopped_velocity_tolerance
    return Tolerances(
        tuple(Tolerance(c.trajectory) for c in of),
        tuple(Tolerance(c.goal, stopped) for c in of),
        settings.goal_time,
    )


def goal_tolerances(
    default: Tolerances, requested: GoalTolerances, joints: Sequence[str]
) -> tuple[Tolerances, str]:
    """
    Merge a goal's tolerances with the defaults.

    Returns
    -------
    The tolerances, and a warning where the defaults were taken because the goal's are invalid

    """
    try:
        return Tolerances(
            _merged(default.path, requested.path, joints),
            _merged(default.goal, requested.goal, joints),
            _resolve(default.goal_time, requested.goal_time),
        ), ''
    except ValueError as error:
        return default, f'{error}: using the default tolerances'


def _merged(
    default: tuple[Tolerance, ...],
    requested: Sequence[tuple[str, Tolerance]],
    joints: Sequence[str],
) -> tuple[Tolerance, ...]:
    merged = list(default)
    for joint, tolerance in requested:
        if joint not in joints:
            raise ValueError(f"joint '{joint}' of the goal's tolerances does not exist")
        index = list(joints).index(joint)
        pairs = zip(astuple(default[index]), astuple(tolerance), strict=True)
        merged[index] = Tolerance(*(_resolve(*pair) for pair in pairs))
    return tuple(merged)


def _resolve(default: float, requested: float) -> float:
    if requested > 0.0:
        return requested
    if abs(requested + 1.0) < EPSILON:
        return 0.0
    if requested < 0.0:
        raise ValueError(f'illegal tolerance {requested}')
    return default
