"""
Drift: friction, offsets and payload followed at work, and the changes of them that last.

The last rows, more and more of them, are compared with what is known: a likelihood ratio says
which group of parameters changed. It is told where rows at either end of these, with more than the
length of a push between them, show the same value each by its own evidence.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
import dataclasses

import numpy as np
import numpy.typing as npt

from ..arrays import Array
from ..identification_settings import DriftSettings
from ..model.robot import Robot
from .change_tests import ChangeTests, follow, FRICTION, ParameterGroup, PAYLOAD, Window
from .motion_rows import FilteredStates, MotionRows, Row, RowNoise

# Numbers of last rows that are compared, and of those that are kept: a minute of motion.
WINDOWS = (24, 32, 40, 52, 68, 90, 120, 160, 210, 280, 370, 480, 600)
KEPT = 1200
# Of the last ones, whose errors say that a push has ended: e⁵ times as likely without the change.
LAST, ENDED = 24, 10.0
# Rows whose fit follows a change soon: errors about it are noise.
RECENT = 160
# Longer silence starts the filter anew [s]: a few lost messages at 100 Hz do not. What it then
# took for a rest has left it after so many periods of its cut-off.
MAX_GAP, SETTLING = 0.055, 3.0
# Blocks with motion from one test to the next: some milliseconds.
TEST_EVERY = 4
# A joint is known from so much motion that is remembered on [s], and so much at first shows where
# it starts: more exactly than an identification, whose σ counts what another motion may show.
ENOUGH, START = 2.0, 10.0


@dataclasses.dataclass(frozen=True)
class DriftChange:
    """
    A change that is told.

    Attributes
    ----------
    group : of parameters
    since : when it was first seen [ns]
    value, sigma : of the group's members, differences from where they started
    share : of the joint's friction torque, signed; NaN of a payload, or without friction
    reverted : whether the parameters are where they started again

    """

    group: ParameterGroup
    since: int
    value: Array
    sigma: Array
    share: float
    reverted: bool


class DriftMonitor:
    """
    Follows friction, offsets and payload, and tells changes that are significant and last.

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
        self._rows: deque[Row] = deque(maxlen=KEPT)
        self._noise = RowNoise(residual, followed.level)
        own = sigma[followed.columns]
        self._tests = ChangeTests(followed, own, settings.tolerance, settings.significance)
        self._unlearned = list(followed.groups)
        self._blocks = 0
        self.changes: dict[ParameterGroup, DriftChange] = {}
        self.last_motion = np.zeros(robot.n, dtype=np.int64)
        nothing = np.zeros((robot.n, len(own) + 1)), np.zeros(robot.n, dtype=bool)
        self._fit(Window.of([Row(0, 0.0, *nothing)]))

    @property
    def stamp(self) -> int:
        """Stamp of the last joint state [ns], 0 before the first."""
        return self._states.stamp

    def update(
        self, stamp: npt.NDArray[np.int64], position: Array, effort: Array
    ) -> list[DriftChange]:
        """Take in stamps [ns], positions and efforts as published, (N, n); return new changes."""
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
        return np.asarray(self._moved >= ENOUGH)

    def _take(self, row: Row) -> list[DriftChange]:
        """Take in a row; return what is told."""
        self._noise.hold(row.values @ np.append(-self._recent_value, 1.0), row.used)
        if not row.used.any():
            return []
        self.last_motion[row.used] = row.stamp
        self._rows.append(row)
        self._blocks += 1
        if self._blocks % TEST_EVERY:
            return []
        rows = Window.of(self._rows)
        self._fit(rows)
        return self._test(rows)

    def _fit(self, rows: Window) -> None:
        """Estimate the followed parameters, all free, from the rows that are remembered."""
        tests, noise = self._tests, self._noise.per_row()
        free = tests.groups, self._settings.memory
        self._value, self._sigma = tests.estimate(rows, noise, *free)
        recent = rows.part(slice(-RECENT, None))
        self._recent_value, _ = tests.estimate(recent, noise, tests.groups)
        self._moved = rows.age[0] + rows.used[0] * 1e-9 * (rows.end[0] - rows.begin[0])

    def _test(self, rows: Window) -> list[DriftChange]:
        """Return the change that the last rows show, learn where groups start without any."""
        noise, suspect = self._noise.per_row(), False
        for count in WINDOWS:
            last = rows.part(slice(-count, None))
            found, clear = self._tests.find(last, noise)
            suspect |= bool(found)
            if found and clear and (change := self._confirmed(found, rows, last)) is not None:
                return [change]
            if count >= len(rows.end):
                break
        for group in self._unlearned[:] if not suspect else ():
            if self._moved[list(group.joints)].min() >= START:
                self._tests.learn(group, *self._tests.estimate(rows, noise, ()))
                self._unlearned.remove(group)
        return []

    def _confirmed(
        self, found: Sequence[ParameterGroup], rows: Window, last: Window
    ) -> DriftChange | None:
        """Return a change that both ends of some last rows show, and these have not ended."""
        group, *free = found
        payload = group.kind == PAYLOAD
        apart = self._settings.payload_duration if payload else self._settings.duration
        span = 1e-9 * (last.end[-1] - last.begin[0])
        half = 0.5 * (span - apart)
        if half <= 0.0:
            return None
        # σ of rows about their own fit, whatever changed.
        fitted, _ = self._tests.estimate(last, self._noise.per_row(), self._tests.groups)
        shown = np.any(last.values[:, :, :-1], axis=0).sum(axis=1)
        noise = self._noise.per_row_of(last.errors(fitted), last.used.sum(axis=0) - shown)
        if self._tests.find(last, noise)[0][:1] != [group]:
            return None
        since = 1e-9 * (last.end - last.begin[0])
        parts = last.part(since <= half), last.part(since >= span - half)
        if not self._tests.agree(group, free, parts, noise):
            return None
        value, sigma = self._tests.estimate(last, noise, found)
        excess = self._excess(rows, value)
        if _is_over(excess[-LAST:]):
            return None
        first = len(excess) - 1 - int(np.argmin(np.cumsum(excess[::-1])))
        self._rows = deque(list(self._rows)[first:], maxlen=KEPT)
        change = self._tell(
            group, int(rows.end[first]), value, sigma, rows.part(slice(first, None))
        )
        self._noise.drop()
        self.changes.pop(group, None)
        if not change.reverted:
            self.changes[group] = change
        return change

    def _excess(self, rows: Window, value: Array) -> Array:
        """Return (|y − Φ δ|² − |y − Φ δ₀|²)/σ² of rows (K,), δ a value (m,), δ₀ the reference."""
        noise = self._noise.per_row()
        changed, same = (rows.errors(x) / noise for x in (value, self._tests.reference))
        return np.asarray(np.sum(changed**2 - same**2, axis=1))

    def _tell(
        self, group: ParameterGroup, since: int, value: Array, sigma: Array, rows: Window
    ) -> DriftChange:
        members, tests = list(group.members), self._tests
        changed = np.any(tests.reference[members] != tests.start[members])
        tests.refer(group, value, sigma)
        change = value[members] - tests.start[members]
        sigma = np.hypot(sigma[members], tests.start_sigma[members])
        reverted = bool(changed) and tests.is_none(group, change, sigma)
        share = self._share(group, change, rows)
        return DriftChange(group, since, change, sigma, share, reverted)

    def _share(self, group: ParameterGroup, change: Array, rows: Window) -> float:
        """Return the torque of a change over the friction of these joints, on these rows."""
        friction = [
            k
            for other in self.followed.groups
            if other.kind == FRICTION and set(other.joints) & set(group.joints)
            and (group.kind != FRICTION or other == group)
            for k in other.members
        ]  # fmt: skip
        values = rows.values[:, list(group.joints)].reshape(-1, rows.values.shape[2])
        start = self.followed.identified + self._tests.start
        before = values[:, friction] @ start[friction]
        torque = values[:, list(group.members)] @ change
        size = float(np.linalg.norm(before))
        if group.kind == PAYLOAD or size == 0.0:
            return float('nan')
        sign = torque @ before if group.kind == FRICTION else change[0]
        return float(np.copysign(np.linalg.norm(torque) / size, sign))


def _is_over(excess: Array) -> bool:
    """
    Whether the last of some rows say that what was found is over, by their excess (K,).

    Over rows in succession, whichever speak most against it (the cumulative sum of Page 1954).
    """
    over = 0.0
    for each in excess.tolist():
        over = max(0.0, over + each)
    return over > ENDED
