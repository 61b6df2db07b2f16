"""
Predicted effort while the robot moves; no ROS in here.

Off line, velocity and acceleration come from a filter without lag. Live, only the past is known:
position passes a causal low-pass whose states are its derivatives, and the measured effort passes
the same one, so that both sides of the comparison lag alike (by about 2/ω seconds).
"""

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Array
from ...core.model import inverse_dynamics, Robot

# Longer silence, and a clock that was set back by more, start the filter anew [s]: the straight
# line between two samples would bridge it with a velocity that the robot never had.
MAX_GAP = 0.5
# Steps are rounded to this, so that few transition matrices are made, and kept up to a number [s].
STEP_RESOLUTION, MAX_KEPT_STEPS = 1e-5, 1000


class StateVariableFilter:
    """
    Third-order Butterworth low-pass, x''' + 2ω x'' + 2ω² x' + ω³ x = ω³ u, exact for any step.

    The input is a straight line between its samples: held, its staircase would reach x''.

    Parameters
    ----------
    cutoff : corner [Hz]
    initial : (m,) signals at the start, taken to be at rest

    """

    def __init__(self, cutoff: float, initial: Array):
        omega = 2.0 * np.pi * cutoff
        self._system = np.zeros((5, 5))
        self._system[0, 1] = self._system[1, 2] = self._system[3, 4] = 1.0
        self._system[2, :4] = [-(omega**3), -2.0 * omega**2, -2.0 * omega, omega**3]
        self._steps: dict[int, Array] = {}
        self.state = np.zeros((3, len(initial)))
        self.state[0] = self._input = initial

    def step(self, value: Array, dt: float) -> None:
        """Advance by dt [s] to the input `value` (m,)."""
        key = max(1, round(dt / STEP_RESOLUTION))
        if key not in self._steps:
            if len(self._steps) > MAX_KEPT_STEPS:
                self._steps.clear()
            from scipy.linalg import expm

            self._steps[key] = expm(self._system * key * STEP_RESOLUTION)[:3]
        slope = (value - self._input) / (key * STEP_RESOLUTION)
        self.state = self._steps[key] @ np.vstack([self.state, self._input, slope])
        self._input = value


class LivePrediction:
    """
    Follows the joint states and predicts the efforts.

    Parameters
    ----------
    robot : model
    standard : (p,) identified parameters
    cutoff : of the causal filter [Hz]

    """

    def __init__(self, robot: Robot, standard: Array, cutoff: float):
        self._robot, self._standard, self._cutoff = robot, standard, cutoff
        self._filter: StateVariableFilter | None = None
        self._stamp = 0
        self._effort_reported = False

    def update(self, stamp: NDArray[np.int64], position: Array, effort: Array) -> None:
        """
        Take in joint states: stamps [ns], positions and efforts as published, (N, n).

        Drivers without sensors report NaN or 0: efforts count once one was another number, until
        the filter starts anew. Samples with NaN in what counts are skipped.
        """
        efforts = effort * self._robot.drive_gain
        for time, q, tau in zip(stamp.tolist(), position, efforts, strict=True):
            sample = np.concatenate([q, tau])
            dt = (time - self._stamp) * 1e-9
            anew = self._filter is None or abs(dt) > MAX_GAP
            reported = bool(np.nan_to_num(tau).any()) or (self._effort_reported and not anew)
            known = np.isfinite(sample if reported else q).all()
            if not known or (dt <= 0.0 and not anew):
                continue
            if self._filter is None or anew or reported != self._effort_reported:
                self._effort_reported = reported
                self._filter = StateVariableFilter(self._cutoff, sample)
            else:
                self._filter.step(sample, dt)
            self._stamp = time

    def predict(self) -> tuple[int, Array, Array | None] | None:
        """
        Predict at the last stamp.

        Returns
        -------
        Stamp [ns], predicted effort (n,) and residual, measured minus predicted (n,) [N·m or N],
        the latter None where no effort is reported; None before the first joint state.

        """
        if self._filter is None:
            return None
        n = len(self._robot.joints)
        q, dq, ddq = (row[None, :n] for row in self._filter.state)
        predicted = inverse_dynamics(self._robot, self._standard, q, dq, ddq)[0]
        residual = self._filter.state[0, n:] - predicted if self._effort_reported else None
        return self._stamp, predicted, residual
