"""Trajectories as joint_trajectory_controller (Jazzy) takes them."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
import math
from typing import TypeAlias

import numpy as np

from .urdf_reading import Array

Values: TypeAlias = list[float]

# float's epsilon: a lower velocity counts as zero, as in the original.
EPSILON = 1.1920929e-07
FIELDS = 'positions', 'velocities', 'accelerations', 'effort'  # of a point, but for its time


@dataclass
class Point:
    """A point of a trajectory; an empty list stands for a field that was not given."""

    time: int  # from the trajectory's start [ns]
    positions: Values
    velocities: Values = field(default_factory=list)
    accelerations: Values = field(default_factory=list)
    effort: Values = field(default_factory=list)

    @property
    def fields(self) -> tuple[Values, ...]:
        """Values of all `FIELDS`."""
        return self.positions, self.velocities, self.accelerations, self.effort


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
    c, order = np.zeros((6, len(a.positions))), np.arange(6)
    ends = [(p.positions, p.velocities, p.accelerations) for p in (a, b)]
    given = [bool(first and last) for first, last in zip(*ends, strict=True)]
    if given[2] and not given[1]:
        return c
    k = sum(given)
    first, last = (np.array(end[:k]) for end in ends)
    c[:k] = first / [[1.0], [1.0], [2.0]][:k]
    if T:
        # Derivatives of the powers at the end, (k, 6): the other coefficients follow from them.
        factors = np.array([order**0, order, order * (order - 1)])
        powers = factors[:k] * T ** np.maximum(order - np.arange(k)[:, None], 0)
        c[k : 2 * k] = np.linalg.solve(powers[:, k : 2 * k], last - powers[:, :k] @ c[:k])
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
