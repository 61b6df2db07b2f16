"""Trajectories, goals and tolerances as joint_trajectory_controller (Jazzy) takes them."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..simulation_settings import ConstraintSettings, GainSettings
from .urdf_reading import Array

Values: TypeAlias = list[float]

# float's epsilon: a lower velocity counts as zero, as in the original.
EPSILON = 1.1920929e-07


@dataclass
class Point:
    """A point of a trajectory; an empty list stands for a field that was not given."""

    time: int  # from the trajectory's start [ns]
    positions: Values
    velocities: Values = field(default_factory=list)
    accelerations: Values = field(default_factory=list)
    effort: Values = field(default_factory=list)


@dataclass
class Goal:
    """A trajectory as a client sends it: joint names, start (0: at once) [ns], points."""

    joints: tuple[str, ...]
    stamp: int
    points: list[Point]


class RunningTrajectory:
    """
    A goal being run, in the controller's joint order.

    `sample` gives the desired point and the index of the point behind it: 0 before the first
    one is reached, `len(points)` when all are.
    """

    def __init__(self, goal: Goal):
        self.goal, self.start, self.started = goal, goal.stamp, False
        self._times = [point.time for point in goal.points]
        self._before, self._segment, self._begin = goal.points[0], -1, 0
        self._polynomials = list[Array]()
        self._sampled = -1, (goal.points[0], 0)

    def set_point_before_trajectory(
        self, now: int, state: Point, wraparound: tuple[bool, ...]
    ) -> None:
        """
        Set the point before the first one, when the trajectory is first sampled.

        Velocity, acceleration and effort of the segment before the first point come from the
        state: so the effort starts at the last commanded one. Continuous joints take the shortest
        way to the first point.
        """
        first, zeros = self.goal.points[0], [0.0] * len(state.positions)
        positions = [
            r - shortest_angular_distance(q, r) if wrap else q
            for q, r, wrap in zip(state.positions, first.positions, wraparound, strict=True)
        ]
        velocities = list(state.velocities) or (zeros if first.velocities else [])
        accelerations = zeros if first.accelerations else []
        self._before = Point(now, positions, velocities, accelerations, list(state.effort))
        self.start, self.started = self.goal.stamp or now, True

    def sample(self, time: int) -> tuple[Point, int]:
        """Sample at a time [ns]; after the end the last point is repeated, effort included."""
        # What was the next update's is this one's.
        if time != self._sampled[0]:
            self._sampled = time, self._sample(time)
        return self._sampled[1]

    def _sample(self, time: int) -> tuple[Point, int]:
        points, elapsed = self.goal.points, time - self.start
        if elapsed >= points[-1].time:
            last, zeros = points[-1], [0.0] * len(points[-1].positions)
            fields = last.velocities, last.accelerations, last.effort
            end = Point(elapsed, last.positions, *(values or zeros for values in fields))
            return end, len(points)
        index = bisect_right(self._times, elapsed)
        with np.errstate(invalid='ignore'):  # values are not checked, NaN ones too
            if index != self._segment:
                first = points[index - 1] if index else self._before
                self._begin = first.time - (0 if index else self.start)
                duration = (points[index].time - self._begin) * 1e-9
                self._segment = index
                self._polynomials = _polynomials(first, points[index], duration)
            t, values = (elapsed - self._begin) * 1e-9, np.zeros((4, 1))
            for coefficients in self._polynomials:
                values = coefficients + t * values
        return Point(elapsed, *values.tolist()), index


def shortest_angular_distance(start: float, end: float) -> float:
    """Return the shortest distance between two angles, in (-π, π] [rad]."""
    turn = 2.0 * math.pi
    distance = (end - start) % turn
    return distance - turn if distance > turn / 2 else distance


def _polynomials(a: Point, b: Point, T: float) -> list[Array]:
    """Coefficients of positions, their derivatives and efforts, (4, n), from t⁵ down to 1."""
    spline, order = _spline(a, b, T), np.arange(6.0)[:, None]
    speed = np.vstack([(order * spline)[1:], np.zeros(len(a.positions))])
    acceleration = np.vstack([(order * speed)[1:], np.zeros(len(a.positions))])
    effort = np.zeros_like(spline)
    effort[0] = a.effort or 0.0
    effort[1] = (np.array(b.effort or 0.0) - effort[0]) / T if T else 0.0
    return [*np.stack([spline, speed, acceleration, effort], axis=1)[::-1]]


def _spline(a: Point, b: Point, T: float) -> Array:
    """
    Coefficients (6, n) from the constant one up: linear, cubic or quintic by what both ends give.

    Accelerations without velocities match no case of the original: the reference is zero.
    """
    c = np.zeros((6, len(a.positions)))
    with_velocity = bool(a.velocities and b.velocities)
    with_acceleration = bool(a.accelerations and b.accelerations)
    if with_acceleration and not with_velocity:
        return c
    c[0] = a.positions
    d = np.array(b.positions) - c[0]
    if not with_velocity:
        c[1] = d / T if T else 0.0
        return c
    c[1] = v0 = np.array(a.velocities)
    v1 = np.array(b.velocities)
    if with_acceleration:
        a0, a1 = np.array([a.accelerations, b.accelerations])
        c[2] = 0.5 * a0
        if T:
            c[3] = (20 * d - (12 * v0 + 8 * v1) * T - (3 * a0 - a1) * T**2) / (2 * T**3)
            c[4] = (-30 * d + (16 * v0 + 14 * v1) * T + (3 * a0 - 2 * a1) * T**2) / (2 * T**4)
            c[5] = (12 * d - 6 * (v0 + v1) * T - (a0 - a1) * T**2) / (2 * T**5)
    elif T:
        c[2] = (3 * d / T - 2 * v0 - v1) / T
        c[3] = (-2 * d / T + v0 + v1) / T**2
    return c


def stopping_points(state: Point, decelerations: Sequence[float], period: int) -> list[Point]:
    """Points that bring each joint to rest at its deceleration, one per update period [ns]."""
    q, v, a = map(np.array, (state.positions, state.velocities, decelerations))
    end = np.abs(v) / a
    times = period * np.arange(math.ceil(end.max() / (period * 1e-9)) + 2)
    elapsed = times[:, None] * 1e-9
    t, braking, moves = np.minimum(elapsed, end), -np.copysign(a, v), elapsed < end
    positions = q + v * t + 0.5 * braking * t * t
    velocities, accelerations = np.where(moves, [v + braking * t, braking + 0.0 * t], 0.0)
    rows = (x.tolist() for x in (times, positions, velocities, accelerations))
    return [Point(*row) for row in zip(*rows, strict=True)]


class Tolerance(NamedTuple):
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
    """Tolerances by joint; in a goal's message, 0 stands for the default and -1 for none."""

    path: Mapping[str, Tolerance] = field(default_factory=dict)
    goal: Mapping[str, Tolerance] = field(default_factory=dict)  # at its end
    goal_time: float = 0.0  # to reach that [s]


def goal_tolerances(default: GoalTolerances, requested: GoalTolerances) -> GoalTolerances:
    """
    Merge a goal's tolerances with the defaults.

    An unknown joint, or a negative value that is not -1, leaves all of them at their defaults.
    """

    def resolve(value: float, asked: float) -> float:
        if abs(asked + 1.0) < EPSILON:
            return 0.0
        if asked < 0.0:
            raise ValueError
        return asked if asked > 0.0 else value

    def merged(own: Mapping[str, Tolerance], wanted: Mapping[str, Tolerance]) -> Any:
        changed = {j: Tolerance(*map(resolve, own[j], asked)) for j, asked in wanted.items()}
        return {**own, **changed}

    try:
        return GoalTolerances(
            merged(default.path, requested.path),
            merged(default.goal, requested.goal),
            resolve(default.goal_time, requested.goal_time),
        )
    except (KeyError, ValueError):
        return default


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
    """Measured and desired state of an update; the content of controller_state."""

    desired: Point
    current: Point
    error: Values
    error_velocity: Values
    output: Values  # the command, in the unit of the command interface
    speed_scaling: float = 1.0


class GoalOutcome(Enum):
    """How a goal ended."""

    SUCCEEDED = 'succeeded'
    ABORTED = 'aborted'
    CANCELED = 'canceled'


@dataclass
class GoalHandle:
    """State of a running goal: written by the controller, read by the action server."""

    outcome: GoalOutcome | None = None
    code: int = 0
    text: str = ''
    feedback: ControllerState | None = None
