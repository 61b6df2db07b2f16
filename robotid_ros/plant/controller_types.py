"""Parameters, state, goals and tolerances of the trajectory controller."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from enum import Enum
from typing import Any

from ..simulation_settings import ConstraintSettings, GainSettings, JointConstraintSettings
from .trajectory import Goal, Point, Values

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


def goal_tolerances(
    default: GoalTolerances, requested: GoalTolerances
) -> tuple[GoalTolerances, str]:
    """Merge a goal's tolerances with the defaults; these, and a warning, if it has wrong ones."""

    def merged(
        own: Mapping[str, Tolerance], wanted: Mapping[str, Tolerance]
    ) -> dict[str, Tolerance]:
        for joint in wanted:
            if joint not in own:
                raise ValueError(f"joint '{joint}' of the goal's tolerances does not exist")
        pairs = {joint: (each, wanted.get(joint, Tolerance())) for joint, each in own.items()}
        return {
            joint: Tolerance(*map(_resolve, astuple(each), astuple(asked)))
            for joint, (each, asked) in pairs.items()
        }

    try:
        return GoalTolerances(
            merged(default.path, requested.path),
            merged(default.goal, requested.goal),
            _resolve(default.goal_time, requested.goal_time),
        ), ''
    except ValueError as error:
        return default, f'{error}: using the default tolerances'


def _resolve(default: float, requested: float) -> float:
    if abs(requested + 1.0) < EPSILON:
        return 0.0
    if requested < 0.0:
        raise ValueError(f'illegal tolerance {requested}')
    return requested if requested > 0.0 else default


@dataclass(frozen=True)
class AcceptanceRules:
    """Parameters that decide what is accepted, and whether efforts are commanded."""

    partial_joints: bool = False
    nonzero_end_velocity: bool = False
    integration: bool = False
    effort: bool = True


def rejection_reason(goal: Goal, joints: Sequence[str], now: int, rules: AcceptanceRules) -> str:
    """Return why a goal is rejected, or ''. Values, NaN ones too, are not checked."""
    if not rules.partial_joints and len(goal.joints) != len(joints):
        return "the goal's joints are not the controller's"
    if not goal.joints:
        return 'the goal names no joints'
    if not goal.points:
        return 'the goal has no points'
    for name in goal.joints:
        if name not in joints:
            return f"joint '{name}' is not one of the controller's"
    if not rules.nonzero_end_velocity and any(
        abs(velocity) > EPSILON for velocity in goal.points[-1].velocities
    ):
        return 'the velocity of the last point is not zero'
    if goal.stamp and goal.stamp + goal.points[-1].time < now:
        return 'the trajectory ends in the past'
    for index, point in enumerate(goal.points):
        if index and point.time <= goal.points[index - 1].time:
            return f'the times of points {index - 1} and {index} do not increase'
        if point.effort and not rules.effort:
            return f'point {index} has efforts, which are not commanded'
        fields = {
            'positions': point.positions,
            'velocities': point.velocities,
            'accelerations': point.accelerations,
        }
        if rules.integration and not any(fields.values()):
            return f'point {index} is empty'
        for name, values in fields.items():
            required = name == 'positions' and not rules.integration
            if len(values) != len(goal.joints) and (required or values):
                return f'point {index} has {len(values)} {name} for {len(goal.joints)} joints'
    return ''


def sort_to_local_joint_order(goal: Goal, joints: Sequence[str], position: Values) -> Goal:
    """
    Sort a goal's joints; joints that a partial goal leaves out stay at `position`.

    An effort array of the wrong length is left as it is, as in the original.
    """
    names = list(goal.joints)
    missing = [joint for joint in joints if joint not in names]
    if not missing and names == list(joints):
        return goal
    positions = [position[list(joints).index(joint)] for joint in missing]
    order = [(names + missing).index(joint) for joint in joints]

    def sort(values: Values, missing_values: Values) -> Values:
        full = [*values, *missing_values] if values else []
        return [full[i] for i in order] if len(full) == len(order) else full

    zeros = [0.0] * len(missing)
    added = {'positions': positions, 'velocities': zeros, 'accelerations': zeros, 'effort': zeros}
    points = [
        Point(p.time, *(sort(getattr(p, name), values) for name, values in added.items()))
        for p in goal.points
    ]
    return replace(goal, joints=tuple(joints), points=points)


@dataclass(frozen=True)
class ControllerSettings:
    """The controller's parameters."""

    joints: tuple[str, ...]
    wraparound: tuple[bool, ...]
    period: int
    gains: dict[str, GainSettings] = field(default_factory=dict)
    constraints: ConstraintSettings = field(default_factory=ConstraintSettings)
    rules: AcceptanceRules = field(default_factory=AcceptanceRules)
    cmd_timeout: float = 0.0
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
