"""
Joint states as they come, through one causal filter: positions, their derivatives, efforts.

Off line, velocity and acceleration come from a filter without lag. Live, only the past is known:
position passes a causal low-pass whose states are its derivatives, and the measured effort passes
the same one, so that both sides of a comparison lag alike (by about 2/ω seconds).
"""

import math

import numpy as np

from ..arrays import Array

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
        self._inputs = np.empty((5, len(initial)))

    def step(self, value: Array, dt: float) -> None:
        """Advance by dt [s] to the input `value` (m,)."""
        key = max(1, round(dt / STEP_RESOLUTION))
        if key not in self._steps:
            if len(self._steps) > MAX_KEPT_STEPS:
                self._steps.clear()
            from scipy.linalg import expm

            self._steps[key] = expm(self._system * key * STEP_RESOLUTION)[:3]
        self._inputs[:3], self._inputs[3] = self.state, self._input
        self._inputs[4] = (value - self._input) / (key * STEP_RESOLUTION)
        self.state = self._steps[key] @ self._inputs
        self._input = value


class FilteredStates:
    """
    Joint states through one filter.

    Drivers without sensors report NaN or 0: efforts count once one was another number, until the
    filter starts anew. Samples with NaN in what counts are passed over.

    Parameters
    ----------
    drive_gain : (n,) torque or force per unit of published effort
    cutoff : of the filter [Hz]
    max_gap : longer silence, and a clock that was set back by more, start the filter anew [s]

    Attributes
    ----------
    stamp : of the last sample [ns]
    age : how long the filter has run [s]
    effort_reported : whether efforts count

    """

    def __init__(self, drive_gain: Array, cutoff: float, max_gap: float):
        self._drive_gain, self._cutoff, self._max_gap = drive_gain, cutoff, max_gap
        self._filter: StateVariableFilter | None = None
        self.stamp, self.age, self.effort_reported = 0, 0.0, False

    @property
    def started(self) -> bool:
        """Whether there was a sample."""
        return self._filter is not None

    @property
    def motion(self) -> Array:
        """Filtered positions and their two derivatives, (3, n)."""
        assert self._filter is not None
        return self._filter.state[:, : len(self._drive_gain)]

    @property
    def effort(self) -> Array:
        """Filtered efforts (n,) [N·m or N]."""
        assert self._filter is not None
        return self._filter.state[0, len(self._drive_gain) :]

    def take(self, stamp: int, position: Array, effort: Array) -> float | None:
        """
        Take in one sample.

        Parameters
        ----------
        stamp : [ns]
        position, effort : (n,) as published

        Returns
        -------
        Time since the sample before [s], 0 where the filter starts anew; None: passed over

        """
        tau = effort * self._drive_gain
        dt = (stamp - self.stamp) * 1e-9
        anew = self._filter is None or abs(dt) > self._max_gap
        reported = (self.effort_reported and not anew) or bool(np.nan_to_num(tau).any())
        sample = np.concatenate([position, tau])
        known = math.isfinite((sample if reported else position).sum())
        if not known or (dt <= 0.0 and not anew):
            return None
        self.stamp = stamp
        if self._filter is None or anew or reported != self.effort_reported:
            self.effort_reported, self.age = reported, 0.0
            self._filter = StateVariableFilter(self._cutoff, sample)
            return 0.0
        with np.errstate(over='ignore', invalid='ignore'):
            self._filter.step(sample, dt)
        if not math.isfinite(self.motion.sum()):
            self._filter = None
            return None
        self.age += dt
        return dt
