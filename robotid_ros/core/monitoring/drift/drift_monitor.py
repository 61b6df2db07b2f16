"""Drift: parameters followed by recursive least squares, and the changes of them that last."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ...arrays import Array
from ...model.robot import Robot
from ..filtered_states import FilteredStates
from .change_tests import ChangeTests
from .followed_parameters import follow, Group
from .forgetting_least_squares import ForgettingLeastSquares
from .motion_rows import MotionRows, Row
from .row_noise import RowNoise
from .settings import DriftSettings
from .trial import Change, Trial

# Longer silence starts the filter anew [s]: a few lost messages at 100 Hz do not. What it then
# took for a rest has left it after so many periods of its cut-off.
MAX_GAP, SETTLING = 0.055, 3.0
# Time constants of rows that show a large change at once, and a smaller one soon [s of motion]:
# what is known from the past would hide it for as long as it is remembered.
RECENT = (2.0, 8.0)
# Numbers of last rows that show by themselves what has just begun.
WINDOWS = (3, 6, 12, 24)
# Blocks with motion from one test to the next, and to the next of a trial: some milliseconds.
TEST_EVERY, TRIAL_EVERY = 4, 2
# A joint is known from so much motion that is remembered on [s], and so much at first shows where
# it starts: more exactly than an identification, whose σ counts what another motion may show.
ENOUGH, START = 2.0, 10.0


class DriftMonitor:
    """
    Follows friction, offsets and payload, and tells changes that are significant and last.

    All rows pass least squares with forgetting. Where a likelihood ratio says that they, or the
    last of them alone, do not go with what was identified, a trial begins: rows since the change,
    alone, have to show a group, and rows that come later have to confirm it. Either way the
    trial's rows replace the older ones: these are about a robot that has changed, or spoiled by a
    push.

    Parameters
    ----------
    robot : rigid
    standard : (p,) identified parameters, others zero
    sigma : (p,) their standard deviation, 0 where not known
    residual : (n,) root mean square of the efforts that the identification left [N·m or N]
    settings : memory, tolerance, significance, durations
    cutoff : of the causal filter of positions and efforts [Hz]
    standstill : joints slower than this are at rest [rad/s or m/s]

    Attributes
    ----------
    followed : the m parameters
    changes : that were told and last, by group
    stamp : of the last joint state [ns]
    last_motion : (n,) when each joint last moved [ns]; where it never did, the first stamp

    """

    def __init__(
        self, robot: Robot, standard: Array, sigma: Array, residual: Array,
        settings: DriftSettings, cutoff: float, standstill: float,
    ):  # fmt: skip
        self._settings, self._settling = settings, SETTLING / cutoff
        self.followed = followed = follow(robot, standard)
        self._states = FilteredStates(robot.drive_gain, cutoff, MAX_GAP)
        self._builder = MotionRows(robot, standard, followed.columns, standstill)
        n, m = robot.n, len(followed.columns)
        self._rows = ForgettingLeastSquares(n, m, settings.memory)
        self._recent = [ForgettingLeastSquares(n, m, memory) for memory in RECENT]
        self._noise = RowNoise(residual, followed.level)
        own = sigma[followed.columns]
        self._tests = ChangeTests(followed, own, settings.tolerance, settings.significance)
        self._latest: deque[Row] = deque(maxlen=WINDOWS[-1])
        self._trial: Trial | None = None
        self._unlearned = list(followed.groups)
        self._blocks = 0
        self.changes: dict[Group, Change] = {}
        self.last_motion = np.zeros(robot.n, dtype=np.int64)
        self._fit()

    @property
    def stamp(self) -> int:
        """Stamp of the last joint state [ns], 0 before the first."""
        return self._states.stamp

    @property
    def suspicion(self) -> tuple[Group, int] | None:
        """What is being looked at, and since when [ns]."""
        return None if self._trial is None else (self._trial.suspected, self._trial.since)

    def update(self, stamp: npt.NDArray[np.int64], position: Array, effort: Array) -> list[Change]:
        """
        Take in joint states: stamps [ns], positions and efforts as published, (N, n).

        Returns
        -------
        The changes that are told now.

        """
        told = []
        for sample in zip(stamp.tolist(), position, effort, strict=True):
            if (dt := self._states.take(*sample)) is None:
                continue
            if dt == 0.0 or not self._states.effort_reported:
                self._builder.restart()
            if not self.last_motion.any():
                self.last_motion[:] = self._states.stamp
            elif self._states.effort_reported and self._states.age >= self._settling:
                states = self._states
                row = self._builder.add(states.stamp, states.motion, states.effort)
                told += self._take(row) if row is not None else []
        return told

    def estimate(self) -> tuple[Array, Array]:
        """Return the followed parameters now (m,), and their σ (m,)."""
        return self.followed.identified + self._value, self._sigma

    def enough(self) -> npt.NDArray[np.bool_]:
        """Return for which joints (n,) enough motion is remembered."""
        rows = self._rows if self._trial is None else self._trial.rows
        return np.asarray(np.maximum(self._rows.time, rows.time) >= ENOUGH)

    def _take(self, row: Row) -> list[Change]:
        """Take in a row; return what is told."""
        errors = row.values @ np.append(-self._recent_value, 1.0)
        if self._trial is None:
            self._noise.hold(errors, row.used)
        if not row.used.any():
            return []
        self.last_motion[row.used] = row.stamp
        for rows in (self._rows, *self._recent):
            rows.add(row.values, row.used, row.duration)
        self._latest.append(row)
        if self._trial is not None:
            self._trial.add(row)
        self._blocks += 1
        if self._blocks % (TEST_EVERY if self._trial is None else TRIAL_EVERY):
            return []
        self._fit()
        return self._test(row.stamp)

    def _fit(self) -> None:
        """Estimate the followed parameters, all free, from the rows that are remembered."""
        tests, noise = self._tests, self._noise.per_row()
        self._value, self._sigma = tests.estimate(self._rows, noise, tests.groups)
        # Errors are those of a fit that follows soon: a change is no noise.
        self._recent_value, _ = tests.estimate(self._recent[-1], noise, tests.groups)

    def _test(self, stamp: int) -> list[Change]:
        change = self._suspect() if self._trial is None else self._trial.judge(stamp)
        if self._trial is not None and self._trial.ended:
            self._rows, self._trial = self._trial.rows, None
            self._rows.memory = self._settings.memory
            self._recent = [self._rows.copy(memory) for memory in RECENT]
            self._fit()
        if change is None:
            return []
        self._noise.drop()
        self.changes.pop(change.group, None)
        if not change.reverted:
            self.changes[change.group] = change
        return [change]

    def _suspect(self) -> Change | None:
        """Begin a trial where rows show a change; where not, learn where groups start."""
        noise = self._noise.per_row()
        for rows in (*self._windows(), *self._recent, self._rows):
            if found := self._tests.find(rows, noise):
                group = found[0].group
                value = self._tests.estimate(rows, noise, (group,))[0][list(group.members)]
                self._trial = Trial(
                    self.followed, self._tests, self._noise, self._settings, group, value
                )
                return self._trial.begin(self._latest)
        for group in self._unlearned[:]:
            if self._rows.time[list(group.joints)].min() >= START:
                self._tests.learn(group, self._rows, noise)
                self._unlearned.remove(group)
        return None

    def _windows(self) -> Iterator[ForgettingLeastSquares]:
        """Yield the last rows alone, more and more of them."""
        n, m = len(self.followed.level), len(self.followed.columns)
        rows = ForgettingLeastSquares(n, m, np.inf)
        for count, row in enumerate(reversed(self._latest), 1):
            rows.add(row.values, row.used, row.duration)
            if count in WINDOWS:
                yield rows
