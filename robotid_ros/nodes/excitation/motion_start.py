"""When a motion began, from the controller's own reference; no ROS in here."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Array
from ...core.excitation import Waypoints
from ..common.joint_states import reference_positions, stamps_to_nanoseconds

# The reference moves at all: above rounding errors of the controller's interpolation [rad or m].
MOVED = 1e-9
# Share of the motion's amplitude from which the fit is conditioned well enough. Less would know
# the start earlier, from samples that hardly differ from rest.
MIN_TRAVEL = 1e-3
# Gauss-Newton: bounded steps, as the motion is far from linear in its start; the last one is as
# small as the rounding of stamps.
MAX_ITERATIONS, MAX_STEP, STEP_TOLERANCE = 20, 0.05, 1e-9  # steps in s
# First guess before the first sample, where none at rest precedes it: a cycle at 1 kHz [s].
FIRST_GUESS = 1e-3


class MotionClock:
    """
    Time within a motion, by the stamps of the controller's states.

    Parameters
    ----------
    points : the motion that was sent

    Attributes
    ----------
    start : when it began [ns], None while the reference does not show it

    """

    def __init__(self, points: Waypoints):
        self._points = points
        self._stamps: list[int] = []
        self._references: list[Array] = []
        self._first = self._latest = 0
        self.start: int | None = None

    @property
    def elapsed(self) -> float:
        """Time since the start, or since the first state while that is unknown [s]."""
        return (self._latest - self.known_start) * 1e-9

    @property
    def known_start(self) -> int:
        """Start, or the first state's stamp while that is unknown [ns]."""
        return self.start or self._first

    def update(self, messages: Sequence[Any]) -> None:
        """
        Take in the controller's states that have arrived: all until the start is known.

        Raises
        ------
        RobotStateError : a state holds no reference

        """
        if not messages:
            return
        stamps = stamps_to_nanoseconds(messages).tolist()
        self._latest = stamps[-1]
        self._first = self._first or self._latest
        if self.start is None:
            self._stamps += stamps
            self._references += [reference_positions(m, self._points.joints) for m in messages]
            self.start = estimate_start(
                self._points, np.array(self._stamps, np.int64), np.stack(self._references)
            )


def estimate_start(points: Waypoints, stamp: NDArray[np.int64], reference: Array) -> int | None:
    """
    Find the start of a motion that was sent with stamp 0 = 'at the next update'.

    The controller's reference at stamp t is the interpolation of the points at t − t0. Starting
    from the last sample at rest, Gauss-Newton finds the t0 that explains all samples.

    Parameters
    ----------
    points : what was sent
    stamp : (K,) stamps of the controller's states since the goal was sent [ns]
    reference : (K, n) their reference positions

    Returns
    -------
    The start [ns], None while the samples do not show it yet.

    """
    moved = np.abs(reference - points.q[0]).max(axis=1) > MOVED
    scale = np.abs(points.q - points.q[0]).max()
    if np.abs(reference - points.q[0]).max(initial=0.0) < MIN_TRAVEL * scale or not moved.any():
        return None
    first = int(np.argmax(moved))
    rows = slice(first, None)
    t = (stamp[rows] - stamp[first]) * 1e-9
    start = -FIRST_GUESS if first == 0 else (stamp[first - 1] - stamp[first]) * 1e-9
    for _ in range(MAX_ITERATIONS):
        motion = points.sample(np.clip(t - start, 0.0, points.duration))
        residual = motion.q - reference[rows]
        step = float(np.sum(motion.dq * residual) / max(np.sum(motion.dq**2), 1e-300))
        start += np.clip(step, -MAX_STEP, MAX_STEP)
        if abs(step) < STEP_TOLERANCE:
            return int(stamp[first]) + round(start * 1e9)
    return int(stamp[first])
