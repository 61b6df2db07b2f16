"""Parameters, state, goals and tolerances of the trajectory controller."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from enum import Enum
from typing import Any

from ..simulation_settings import ConstraintSettings, GainSettings, JointConstraintSettings
from .trajectory import Goal, Point, Values

# float's epsilon: a lower velocity counts as zero, as in the original.
EPSILON = 1.1920929e-07


@dataclass(frozen=True)
class Tolerance:
    """Allowed errors of one joint; 0: not checked."""

    position: float = 0.0
    velocity: float = 0.0

    def allows(self, position: float, velocity: float) -> bool:
        """Whether errors are within the tolerance; NaN counts as within, as in the original."""
        return not (0.0 < self.position < abs(position)) and not (
            0.0 < self.velocity < abs(velocity)
        )


@dataclass(frozen=True)
class GoalTolerances:
    """
    Tolerances by joint along a goal's path and at its end, and time to reach that [s].

    In a goal's message, 0 stands for the default and -1 for what is not checked.
    """

    path: Mapping[str, Tolerance] = field(default_factory=dict)
    goal: Mapping[str, Tolerance] = field(default_factory=dict)
    goal_time: float = 0.0


def default_tolerances(settings: ConstraintSettings, joints: Sequence[str]) -> GoalTolerances:
    """Tolerances of every joint from the controller's parameters."""
    of = {joint: settings.joints.get(joint, JointConstraintSettings()) for joint in joints}
    stopped = settings.stopped_velocity_tolerance
    return GoalTolerances(
        {joint: Tolerance(own.trajectory) for joint, own in of.items()},
        {joint: Tolerance(own.goal, stopped) for joint, own in of.items()},
        settings.goal_time,
    )


def goal_tolerances(default: GoalTolerances, requested: GoalTolerances) -> GoalTolerances:
    """Merge a goal's tolerances with the defaults."""

    def merged(
        own: Mapping[str, Tolerance], wanted: Mapping[str, Tolerance]
    ) -> dict[str, Tolerance]:
        pairs = {joint: (each, wanted.get(joint, Tolerance())) for joint, each in own.items()}
        return {
            joint: Tolerance(*map(_resolve, astuple(each), astuple(asked)))
            for joint, (each, asked) in pairs.items()
        }

    return GoalTolerances(
        merged(default.path, requested.path),
        merged(default.goal, requested.goal),
        _resolve(default.goal_time, requested.goal_time),
    )


def _resolve(default: float, requested: float) -> float:
    return max(requested, 0.0) if requested else default


def rejection_reason(goal: Goal, joints: Sequence[str], now: int, *, effort: bool) -> str:
    """
    Return why a goal is rejected, or ''; `effort`: whether efforts are commanded.

    Values, NaN ones too, are not checked.
    """
    if sorted(goal.joints) != sorted(joints):
        named = ', '.join(map(repr, goal.joints))
        return f"the goal's joints {named} are not the controller's"
    if not goal.points:
        return 'the goal has no points'
    if any(abs(velocity) > EPSILON for velocity in goal.points[-1].velocities):
        return 'the velocity of the last point is not zero'
    if goal.stamp and goal.stamp + goal.points[-1].time < now:
        return 'the trajectory ends in the past'
    for index, point in enumerate(goal.points):
        if index and point.time <= goal.points[index - 1].time:
            return f'the times of points {index - 1} and {index} do not increase'
        if point.effort and not effort:
            return f'point {index} has efforts, which are not commanded'
        for name in ('positions', 'velocities', 'accelerations'):
            values = getattr(point, name)
            if len(values) != len(joints) and (values or name == 'positions'):
                return f'point {index} has {len(values)} {name} for {len(joints)} joints'
    return ''


def sort_to_local_joint_order(goal: Goal, joints: Sequence[str]) -> Goal:
    """Sort a goal's joints; an effort array of the wrong length is left as it is."""
    order = [goal.joints.index(joint) for joint in joints]

    def sort(values: Values) -> Values:
        return [values[i] for i in order] if len(values) == len(order) else values

    points = [
        Point(p.time, *map(sort, (p.positions, p.velocities, p.accelerations, p.effort)))
        for p in goal.points
    ]
    return Goal(tuple(joints), goal.stamp, points)


@dataclass(frozen=True)
class ControllerSettings:
    """The controller's parameters."""

    joints: tuple[str, ...]
    wraparound: tuple[bool, ...]
    period: int
    gains: dict[str, GainSettings] = field(default_factory=dict)
    constraints: ConstraintSettings = field(default_factory=ConstraintSettings)
    command_interface: str = 'effort'


@dataclass
class ControllerState:
    """
    Measured and desired state of an update; the content of controller_state.

    `output` is the command, in the unit of the command interface.
    """

    desired: Point
    current: Point
    error: Values
    error_velocity: Values
    output: Values
    speed_scaling: float = 1.0


class GoalOutcome(Enum):
    """How a goal ended."""

    SUCCEEDED = 'succeeded'
    ABORTED = 'aborted'
    CANCELED = 'canceled'


class GoalHandle:
    """State of a running goal: written by the controller, read by the action server."""

    def __init__(self) -> None:
        self.outcome: GoalOutcome | None = None
        self.code, self.text = 0, ''
        self.feedback: Any = None

    def finish(self, outcome: GoalOutcome, code: int, text: str) -> None:
        """End it; the outcome is written last: who reads it finds code and text complete."""
        self.code, self.text = code, text
        self.outcome = outcome
