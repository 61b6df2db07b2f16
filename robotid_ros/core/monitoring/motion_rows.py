"""From filtered joint states to rows of the regression, their sums, and how much a row counts."""

from collections import deque
import dataclasses
import math
from typing import NamedTuple

import numpy as np

from ..arrays import any_effort, Array, Indices, Mask
from ..model import regressor, Robot

# Steps are rounded to this, so that few transition matrices are made, and kept up to a number [s].
STEP_RESOLUTION, MAX_KEPT_STEPS = 1e-5, 1000
LIVE_CUTOFF = 10.0  # corner of the filter of live predictions and of drift [Hz]


class StateVariableFilter:
    """
    Third-order Butterworth low-pass, x''' + 2ω x'' + 2ω² x' + ω³ x = ω³ u, exact for any step.

    The input is a straight line between its samples: held, its staircase would reach x''. Of a
    corner `cutoff` [Hz], and the `initial` signals (m,), taken to be at rest.
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
    filter starts anew: after a silence longer than `max_gap` [s], or a clock that was set back by
    more. Samples with NaN in what counts are passed over. The drive gains (n,) are torque or force
    per unit of published effort, or of another signal in its place; the cut-off is the filter's
    [Hz].
    """

    def __init__(self, drive_gain: Array, cutoff: float, max_gap: float):
        self._drive_gain, self._cutoff, self._max_gap = drive_gain, cutoff, max_gap
        self._filter: StateVariableFilter | None = None
        self.stamp, self.age = 0, 0.0  # of the last sample [ns]; of the filter [s]
        self.effort_reported = False  # whether efforts count

    @property
    def started(self) -> bool:
        """Whether there was a sample."""
        return self._filter is not None

    @property
    def motion(self) -> Array:
        """Filtered positions and their two derivatives, (3, n)."""
        assert self._filter is not None
        return self._filter.state[:, : -len(self._drive_gain)]

    @property
    def effort(self) -> Array:
        """Filtered efforts (n,) [N·m or N]."""
        assert self._filter is not None
        return self._filter.state[0, -len(self._drive_gain) :]

    def take(self, stamp: int, position: Array, effort: Array) -> float | None:
        """
        Take in one sample as published: its stamp [ns], positions and efforts (n,).

        Returns the time since the one before [s], 0 for a filter anew, None if it is passed over.
        """
        tau = effort * self._drive_gain
        dt = (stamp - self.stamp) * 1e-9
        anew = self._filter is None or abs(dt) > self._max_gap
        reported = (self.effort_reported and not anew) or any_effort(tau)
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


# Length of a block [s]: a fraction of the shortest moves, as a block with rest counts for nothing,
# but longer than the filter's memory, so that rows of white noise hardly correlate.
ROW_TIME = 0.05
# Fewest instants of a block, and their least distance [s]: more add nothing but a regressor each.
MIN_INSTANTS, MIN_STEP = 4, 0.0045
# Rows that are remembered, half a minute of motion; how many the residual of the identification
# counts as, and the variance before a trial in it.
MEMORY, FIRST_ROWS, PRIOR_ROWS = 600.0, 60.0, 20.0
# Most rows that are summed, two seconds: model errors last as long as the phase of a motion.
# Stretches remembered (minutes of motion), those known at first, and their correlation.
MAX_STRETCH, STRETCHES, PRIOR_STRETCHES, PRIOR_CORRELATION = 40, 100.0, 30.0, 2.0
# Errors of rows, and sums of them, beyond so many σ count as these: a change must be told before
# it passes for noise. Of the squares of normal sums so much is then left, relative to their own κ.
OUTLIER, OUTLYING_SUM, SHARE_LEFT = 3.0, 2.0, 0.9
# σ of a row over the joint's ordinary torque: least, as of any model, and where none is known.
LEAST, UNKNOWN = 1e-4, 0.1


class Row(NamedTuple):
    """Means over a block of time."""

    stamp: int  # of its end [ns]
    duration: float  # [s]
    values: Array  # (n, m + 1) columns of the followed parameters, measured less predicted effort
    used: Mask  # (n,) joints that moved throughout, and in the block before


class MotionRows:
    """
    Collects instants of filtered motion and effort into rows.

    The block after a standstill or a turn is left out as well: the filter mixes into its effort
    what the joint bore at rest, which has no model. Of the identified parameters (p,), those
    `columns` (m,) are followed; joints slower than `standstill` are at rest [rad/s or m/s].
    """

    def __init__(self, robot: Robot, standard: Array, columns: Indices, standstill: float):
        # Friction that grows with the load takes the load from what was identified.
        self._robot = dataclasses.replace(robot, load_parameters=standard)
        self._standard, self._columns, self._standstill = standard, columns, standstill
        self._drives = np.vstack([np.eye(robot.n), *(each.ratios for each in robot.couplings)])
        self.restart()

    def restart(self) -> None:
        """Begin anew after a gap."""
        self._moved = np.zeros(self._robot.n, dtype=bool)
        self._instants: list[tuple[int, Array, Array]] = []

    def add(self, stamp: int, motion: Array, effort: Array) -> Row | None:
        """Take in a stamp [ns], motion (3, n) and effort (n,); return the row that ends here."""
        instants = self._instants
        if instants and (stamp - instants[-1][0]) * 1e-9 < MIN_STEP:
            return None
        instants.append((stamp, motion, effort))
        duration = (stamp - instants[0][0]) * 1e-9
        if duration < ROW_TIME or len(instants) < MIN_INSTANTS:
            return None
        self._instants = instants[-1:]
        _, motions, efforts = zip(*instants[1:], strict=True)
        q, dq, ddq = np.stack(motions, axis=1)
        # Joints that move one way throughout, with every motor that they share.
        speeds, slow = dq @ self._drives.T, self._standstill
        turning = np.all(speeds >= slow, axis=0) | np.all(speeds <= -slow, axis=0)
        moving = np.all(turning[:, None] | (self._drives == 0.0), axis=0)
        used, self._moved = moving & self._moved, moving
        values = np.zeros((self._robot.n, len(self._columns) + 1))
        if used.any():
            W = regressor(self._robot, q, dq, ddq)
            values[:, :-1] = W[:, :, self._columns].mean(axis=1)
            values[:, -1] = np.mean(np.transpose(efforts) - W @ self._standard, axis=1)
        return Row(stamp, duration, values, used)


class RowSums(NamedTuple):
    """Sums over rows of each joint while it moved, which add up and can be taken apart again."""

    products: Array  # (n, m + 1, m + 1) of [φ y] with itself
    time: Array  # (n,) [s]
    counts: Array  # (n,) of rows

    @classmethod
    def none(cls, joints: int, columns: int) -> 'RowSums':
        """Return those of no rows."""
        return cls(np.zeros((joints, columns + 1, columns + 1)), *np.zeros((2, joints)))

    def with_row(self, row: Row, memory: float = math.inf) -> 'RowSums':
        """
        Add a row, in which old ones weigh less.

        With c_j the time in which joint j moved, a row of age a by that clock weighs e^(−a/T). A
        joint that rests forgets nothing. Of a memory T [s].
        """
        weight = np.where(row.used, np.exp(-row.duration / memory), 1.0)
        values = np.where(row.used[:, None], row.values, 0.0)
        products = weight[:, None, None] * self.products + values[:, :, None] * values[:, None]
        time = self.time + np.where(row.used, row.duration, 0.0)
        return RowSums(products, time, weight * self.counts + row.used)

    def plus(self, other: 'RowSums') -> 'RowSums':
        """Add others."""
        return RowSums(*(a + b for a, b in zip(self, other, strict=True)))

    def minus(self, other: 'RowSums') -> 'RowSums':
        """Take others out."""
        return RowSums(*(a - b for a, b in zip(self, other, strict=True)))

    def information(self, noise: Array) -> tuple[Array, Array]:
        """Return Φᵀ Φ (m, m) and Φᵀ y (m,) of all joints, rows in units of their σ (n,)."""
        gram = np.tensordot(noise**-2.0, self.products, 1)
        return gram[:-1, :-1], gram[:-1, -1]

    def squares(self, value: Array) -> Array:
        """Return the sums of squares that parameters (m,) leave of each joint (n,)."""
        way = np.append(-value, 1.0)
        return np.maximum(self.products @ way @ way, 0.0)


class RowNoise:
    """
    Standard deviation that a row of each joint counts with.

    Sums over stretches of N successive rows have the variance κ N s² when errors correlate, N s²
    when they do not: each row counts as 1/κ of an independent one (batch means, Law and Kelton
    2000, section 9.5). `variance` (n,) is s². It begins with the root mean square that the
    identification left [N·m or N], 0 where that is not known, beside ordinary torques, (n,) each.
    """

    def __init__(self, residual: Array, level: Array):
        self._least = (LEAST * level) ** 2
        known = np.where(residual > 0.0, residual, UNKNOWN * level)
        self.variance = np.maximum(known**2, self._least)
        n = len(level)
        self._rows = np.full(n, FIRST_ROWS)
        self._sum, self._length = np.zeros(n), np.zeros(n, dtype=int)
        # Σ (sum of a stretch)²/(N s²) and the number of stretches, older ones less.
        self._ratio = np.full(n, PRIOR_STRETCHES * PRIOR_CORRELATION)
        self._count = np.full(n, PRIOR_STRETCHES)
        self._held: deque[tuple[Array, Mask]] = deque()
        self._taken = 0

    @property
    def correlation(self) -> Array:
        """κ (n,), at least one."""
        return np.maximum(self._ratio / self._count, 1.0)

    def hold(self, errors: Array, used: Mask) -> None:
        """
        Take in the errors (n,) of a row's joints that moved, once they are old.

        Of the rows so far the newer half is held back, as many as are remembered at the most: a
        small change is told after tens of seconds, and would hide behind errors of its own making.
        """
        self._held.append((errors, used))
        if len(self._held) > min(self._taken, MEMORY):
            self.add(*self._held.popleft())
            self._taken += 1

    def drop(self) -> None:
        """Forget what is held back: a change made these errors."""
        self._held.clear()

    def add(self, errors: Array, used: Mask) -> None:
        """Take in the errors (n,) of a row's joints that moved, now."""
        square = np.minimum(errors**2, OUTLIER**2 * self.variance)
        self._rows = np.minimum(self._rows + used, MEMORY)
        new = self.variance + (square - self.variance) / self._rows
        self._sum += np.where(used, errors, 0.0)
        self._length += used
        ends = (self._length > 0) & (~used | (self._length >= MAX_STRETCH))
        if ends.any():
            ratio = self._sum[ends] ** 2 / (self._length[ends] * self.variance[ends])
            ratio = np.minimum(ratio / SHARE_LEFT, OUTLYING_SUM**2 * self.correlation[ends])
            keep = 1.0 - 1.0 / STRETCHES
            self._ratio[ends] = keep * self._ratio[ends] + ratio
            self._count[ends] = keep * self._count[ends] + 1.0
            self._sum[ends], self._length[ends] = 0.0, 0
        self.variance = np.maximum(np.where(used, new, self.variance), self._least)

    def per_row(self) -> Array:
        """Return the σ (n,) that a row counts with."""
        return np.sqrt(self.variance * self.correlation)

    def per_row_of(self, rows: RowSums, value: Array) -> Array:
        """Return the same of rows that leave more about parameters (m,) fitted to them."""
        followed = np.count_nonzero(np.any(rows.products[:, :, :-1], axis=1), axis=1)
        own = np.maximum(rows.counts - followed, 0.0)
        squares = np.where(own > 0.0, rows.squares(value), 0.0)
        variance = (PRIOR_ROWS * self.variance + squares) / (PRIOR_ROWS + own)
        return np.sqrt(np.maximum(variance, self.variance) * self.correlation)
