"""When a motion began and how far it is, by the controller's own states; no ROS in here."""

from collections.abc import Sequence
from itertools import pairwise
import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Array
from ...core.excitation.trajectory import Waypoints
from ...exceptions import RobotStateError
from ..common.controller import MIN_SPEED, reference_positions, SpeedScaling
from ..common.messages import stamps_to_nanoseconds
from ..common.waiting import Silence

MOVED = 1e-9  # by more than rounding errors of the controller's interpolation [rad or m]
# Share of the amplitude from which the fit is well conditioned: less hardly differs from rest.
MIN_TRAVEL = 1e-3
# Gauss-Newton: bounded, as the motion is far from linear in its start; down to stamps' rounding.
MAX_ITERATIONS, MAX_STEP, STEP_TOLERANCE = 20, 0.05, 1e-9  # steps in s
# Longest time from one state to the next [s]: watchdogs stop the robot in a longer silence. Stamps
# that step further, or back, are of a clock that was set; the controller's own is a steady one.
MAX_STATE_STEP = 1.0
FIRST_GUESS = 1e-3  # before the first sample, where none at rest precedes it: a cycle [s]


class MotionClock:
    """
    Time within a motion, by the stamps of the controller's states and its speed scaling.

    A controller's own time runs with the speed scaling s of its state, `dt' = s dt`: a motion of
    duration T lasts T of that time. Where the clock of the stamps is set, the times given here
    stay on the clock of the first state. Beyond the duration of its points the controller may need
    a `grace` of its own time, and then its result a `patience` of this machine's to arrive [s].
    """

    def __init__(self, points: Waypoints, grace: float = math.inf, patience: float = 0.0):
        self._points, self.duration = points, points.duration
        self._longest, self._duration_ns = points.duration + grace, round(points.duration * 1e9)
        self._scaling = SpeedScaling()
        self._patience, self._in_time = patience, Silence(time.monotonic())
        # Until the start is known: stamp and time of the controller [ns], reference.
        self._seen: list[tuple[int, int, Array]] = []
        # Stamps of the first and the newest state, without jumps of their clock; and as it came.
        self._first_ns = self._latest_ns = self._stamp_ns = 0
        # Own time of the controller since the first state, now and at the start [ns].
        self._own_ns = self._own_begin_ns = 0
        self._factor = self.lowest = self.highest = 1.0  # shares of the designed speed
        self._end: int | None = None
        # When it began [ns], None before that shows; whether stamps told the time without a step.
        self.start: int | None = None
        self.exact = True

    @property
    def elapsed(self) -> float:
        """Own time since the start, or since the first state while that is unknown [s]."""
        return (self._own_ns - self._own_begin_ns) * 1e-9

    @property
    def known_start(self) -> int:
        """Start, or the first state's stamp while that is unknown [ns]."""
        return self.start or self._first_ns

    @property
    def end(self) -> int:
        """When the motion ended or, at its present speed, will end [ns]."""
        left = self._duration_ns - (self._own_ns - self._own_begin_ns)
        return self._end or self._latest_ns + round(left / max(self._factor, MIN_SPEED))

    @property
    def as_planned(self) -> bool:
        """Whether it has begun, at the designed speed, by stamps that tell the time."""
        return self.start is not None and self.exact and self.lowest == self.highest == 1.0

    def update(self, messages: Sequence[Any]) -> None:
        """Take in new states; `RobotStateError`: no reference, or a motion that does not end."""
        for stamp, message in zip(stamps_to_nanoseconds(messages).tolist(), messages, strict=True):
            self._advance(stamp, self._scaling.read(message))
            if self.start is None:
                reference = reference_positions(message, self._points.joints)
                self._seen.append((self._latest_ns, self._own_ns, reference))
        if messages and self.start is None:
            self._find_start()
        since = (self._latest_ns - self.known_start) * 1e-9
        over = self.elapsed > self._longest or since > self._longest / MIN_SPEED
        if self._in_time.update(time.monotonic(), heard=not over) < self._patience or not over:
            return
        if self.start is None:
            raise RobotStateError(
                "the controller does not begin its motion: let the robot's program run, and raise "
                'its speed where a slider is at 0'
            )
        raise RobotStateError('the controller does not end its motion: it was cancelled')

    def _advance(self, stamp: int, factor: float) -> None:
        self._first_ns, self._latest_ns = self._first_ns or stamp, self._latest_ns or stamp
        step = stamp - (self._stamp_ns or stamp)
        if not 0 <= step <= MAX_STATE_STEP * 1e9:
            step, self.exact = 0, False
        self._own_ns += round(factor * step)
        self._latest_ns += step
        self._stamp_ns, self._factor = stamp, factor
        if self.start is None or self._end is not None:
            return
        self.lowest, self.highest = min(self.lowest, factor), max(self.highest, factor)
        if self._own_ns - self._own_begin_ns >= self._duration_ns:
            self._end = self.end

    def _find_start(self) -> None:
        """Find the start in the controller's own time, then its stamp."""
        stamps, times, references = zip(*self._seen, strict=True)
        begin = estimate_start(self._points, np.array(times, np.int64), np.stack(references))
        if begin is None:
            return
        since = float(np.interp(begin, times, np.array(stamps) - self._first_ns))
        if begin < 0:
            since = begin / max(self._factor, MIN_SPEED)
        self._own_begin_ns, self.start = begin, self._first_ns + round(since)
        self.lowest = self.highest = self._factor


def course_of(clocks: Sequence[MotionClock]) -> dict[str, float]:
    """Return the speed of the motions of a phase, none while it is 1; `rests` of several [s]."""
    low, high = min(c.lowest for c in clocks), max(c.highest for c in clocks)
    course = dict[str, float]()
    if not low == high == 1.0:
        seconds = sum(max(c.end - c.known_start, 1) for c in clocks) * 1e-9
        # Stamps are rounded: no mean is beyond what it is the mean of.
        mean = min(max(sum(c.duration for c in clocks) / seconds, low), high)
        course = {'speed': mean, 'speed_min': low, 'speed_max': high}
    if len(clocks) > 1:
        rests = sum(after.known_start - clock.end for clock, after in pairwise(clocks))
        course['rests'] = round(max(rests, 0) * 1e-9, 6)
    return course


def estimate_start(points: Waypoints, stamp: NDArray[np.int64], reference: Array) -> int | None:
    """
    Find the start [ns] of a motion that was sent with stamp 0 = 'at the next update'.

    The controller's reference at stamp t is the interpolation of the points at t − t0. Starting
    from the last sample at rest, Gauss-Newton finds the t0 that explains all samples; None while
    they do not show it yet. `stamp` (K,) are times of the controller's states since the goal was
    sent, by a clock that runs with its speed scaling [ns], `reference` (K, n) their positions.
    """
    # What was held need not be where the motion begins: controllers may hold what they measured.
    moved = np.abs(reference - reference[0]).max(axis=1) > MOVED
    scale = np.abs(points.q - points.q[0]).max()
    if np.abs(reference - points.q[0]).max(initial=0.0) < MIN_TRAVEL * scale or not moved.any():
        return None
    first = int(np.argmax(moved))
    t = (stamp[first:] - stamp[first]) * 1e-9
    start = -FIRST_GUESS if first == 0 else (stamp[first - 1] - stamp[first]) * 1e-9
    leaves = (points.q != points.q[0]).any(axis=1)  # before, a motion may stand still
    start -= float(points.time[max(int(np.argmax(leaves)) - 1, 0)])
    for _ in range(MAX_ITERATIONS):
        motion = points.sample(np.clip(t - start, 0.0, points.duration))
        residual = motion.q - reference[first:]
        step = float(np.sum(motion.dq * residual) / max(np.sum(motion.dq**2), 1e-300))
        start += np.clip(step, -MAX_STEP, MAX_STEP)
        if abs(step) < STEP_TOLERANCE:
            return int(stamp[first]) + round(start * 1e9)
    return int(stamp[first])
