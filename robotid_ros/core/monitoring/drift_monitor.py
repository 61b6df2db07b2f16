"""Drift: parameters followed by least squares that forgets, and changes of them that last."""

from collections.abc import Sequence
import dataclasses
import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import Array, Mask
from ..identification_settings import DriftSettings
from ..model.robot import Robot
from .change_tests import ChangeTests, followed_parameters, FRICTION, ParameterGroup, PAYLOAD
from .motion_rows import FilteredStates, MotionRows, Row, RowNoise, RowSums

# Longer silence starts the filter anew [s]: a few lost messages at 100 Hz do not. What it then
# took for a rest has left it after so many periods of its cut-off.
MAX_GAP, SETTLING = 0.055, 3.0
# Buckets of as many rows that are kept, and the time of motion of all of them, over the memory: a
# change that takes longer to show is one of how the robot is moved.
EACH, KEPT = 4, 3.0
TEST_EVERY = 4  # blocks with motion from one test to the next: some milliseconds of a processor
PATIENCE = 3.0  # times that a change has to last, after which rows that do not agree are forgotten
# A joint is known from so much motion on [s], and so much at first shows where it starts: more
# exactly than an identification, whose σ counts what another motion may show.
ENOUGH, START = 2.0, 10.0


@dataclasses.dataclass(frozen=True)
class DriftChange:
    """A change that is told."""

    group: ParameterGroup
    since: int  # when it was first seen [ns]
    value: Array  # of the group's members, differences from where they started
    sigma: Array
    share: float  # of the joint's friction torque, signed; NaN of a payload, or without friction
    reverted: bool  # whether the parameters are where they started again


class Bucket(NamedTuple):
    """Successive rows."""

    begin: int  # stamp from which they are on [ns]
    size: int  # their number
    rows: RowSums


class AdaptiveWindows:
    """
    The latest rows in buckets whose size grows with their age (Bifet and Gavaldà 2007).

    Wherever a change was, some bucket begins soon after it: later by a share of the time since.
    Rows are kept for some time of motion [s].
    """

    def __init__(self, nothing: RowSums, longest: float):
        self._nothing, self._longest = nothing, longest
        self._buckets: list[Bucket] = []

    def add(self, row: Row) -> None:
        """Take in a row."""
        begin = row.stamp - round(row.duration * 1e9)
        buckets = [*self._buckets, Bucket(begin, 1, self._nothing.with_row(row))]
        k = len(buckets) - 1 - EACH
        # Two of a size become one where there are more of them.
        while k > 0 and buckets[k - 1].size == buckets[k].size:
            old, new = buckets[k - 1 : k + 1]
            both = Bucket(old.begin, old.size + new.size, old.rows.plus(new.rows))
            buckets[k - 1 : k + 1] = [both]
            k -= EACH
        while sum(each.rows.time.max() for each in buckets[1:]) > self._longest:
            buckets.pop(0)
        self._buckets = buckets

    def latest(self) -> list[Bucket]:
        """Return all rows from each bucket on, the fewest first."""
        backwards = reversed(self._buckets)
        return [
            *itertools.accumulate(
                backwards, lambda a, b: Bucket(b.begin, a.size + b.size, a.rows.plus(b.rows))
            )
        ]

    def forget(self, before: int) -> None:
        """Forget rows before a stamp [ns]."""
        self._buckets = [each for each in self._buckets if each.begin >= before]


class DriftMonitor:
    """
    Follows friction, offsets and payload, and tells changes that are significant and last.

    All rows pass least squares with forgetting. A change is told where a likelihood ratio of the
    latest rows, however many, shows one group of parameters, and no other one nearly as well, and
    where two parts of these rows show one value of it, each by evidence of its own: the first one
    lasts longer than a push.

    Of identified parameters (p,), others zero, of a rigid robot, with their σ, 0 where not known,
    and the root mean square of the efforts (n,) that the identification left [N·m or N]; of the
    cut-off of the causal filter of positions and efforts [Hz]; joints slower than `standstill` are
    at rest. `followed` are the m parameters, `changes` what was told and lasts, by group,
    `last_motion` (n,) when each joint last moved [ns]; where it never did, the first stamp.
    """

    def __init__(
        self, robot: Robot, standard: Array, sigma: Array, residual: Array,
        settings: DriftSettings, cutoff: float, standstill: float,
    ):  # fmt: skip
        self._settings, self._settling = settings, SETTLING / cutoff
        self.followed = followed = followed_parameters(robot, standard)
        self._states = FilteredStates(robot.drive_gain, cutoff, MAX_GAP)
        self._builder = MotionRows(robot, standard, followed.columns, standstill)
        nothing = RowSums.none(robot.n, len(followed.columns))
        self._rows, self._windows = nothing, AdaptiveWindows(nothing, KEPT * settings.memory)
        self._noise = RowNoise(residual, followed.level)
        # Where parameters start, over what was identified: by the first motion.
        self._start, self._start_sigma = np.zeros(len(followed.columns)), sigma[followed.columns]
        self._unlearned = list(followed.groups)
        self._tests = ChangeTests(followed, self._start_sigma, settings.tolerance)
        self._blocks = 0
        self.changes: dict[ParameterGroup, DriftChange] = {}
        self.last_motion = np.zeros(robot.n, dtype=np.int64)
        self._fit()

    @property
    def stamp(self) -> int:
        """Stamp of the last joint state [ns], 0 before the first."""
        return self._states.stamp

    def update(
        self, stamp: npt.NDArray[np.int64], position: Array, effort: Array
    ) -> list[DriftChange]:
        """Take in stamps [ns], positions and efforts as published, (N, n); return new changes."""
        told, states = [], self._states
        for sample in zip(stamp.tolist(), position, effort, strict=True):
            if (dt := states.take(*sample)) is None:
                continue
            if dt == 0.0 or not states.effort_reported:
                self._builder.restart()
            if not self.last_motion.any():
                self.last_motion[:] = states.stamp
            elif states.effort_reported and states.age >= self._settling:
                row = self._builder.add(states.stamp, states.motion, states.effort)
                if row is not None and (change := self._take(row)) is not None:
                    told.append(change)
        return told

    def estimate(self) -> tuple[Array, Array]:
        """Return the followed parameters now (m,), and their σ (m,)."""
        return self.followed.identified + self._value, self._sigma

    def enough(self) -> Mask:
        """Return for which joints (n,) there was enough motion."""
        return np.asarray(self._rows.time >= ENOUGH)

    def _take(self, row: Row) -> DriftChange | None:
        """Take in a row; return what is told."""
        self._noise.hold(row.values @ np.append(-self._value, 1.0), row.used)
        if not row.used.any():
            return None
        self.last_motion[row.used] = row.stamp
        self._rows = self._rows.with_row(row, self._settings.memory)
        self._windows.add(row)
        self._blocks += 1
        if self._blocks % TEST_EVERY:
            return None
        self._fit()
        return self._find_change()

    def _fit(self) -> None:
        """Estimate the followed parameters, all free, from the rows that are remembered."""
        tests, noise = self._tests, self._noise.per_row()
        self._value, self._sigma = tests.estimate(self._rows, noise, tests.groups)

    def _find_change(self) -> DriftChange | None:
        """Look for the rows that show a change best, and whether it lasts; return what is told."""
        tests, latest, noise = self._tests, self._windows.latest(), self._noise.per_row()
        gains = [tests.largest_gain(rows, noise) for _, _, rows in latest]
        k = int(np.argmax(gains))
        if not gains[k] > 0.0:
            self._learn(latest[-1].rows)
            return None
        # σ of rows about their own fit, whatever changed.
        fitted, _ = tests.estimate(latest[k].rows, noise, tests.groups)
        noise = self._noise.per_row_of(latest[k].rows, fitted)
        found, clear = tests.find(latest[k].rows, noise)
        # The change is where its value begins to explain more than none.
        value, _ = tests.estimate(latest[k].rows, noise, found)
        left = [x.rows.squares(value) - x.rows.squares(tests.reference) for x in latest]
        # The bucket in which that is may hold rows before it.
        k = max(int(np.argmin(left @ noise**-2.0)) - 1, 0)
        begin, _, rows = since = latest[k]
        duration = self._duration(found)
        # Rows that come so long after the first ones have to confirm it.
        late = [each for each in latest[:k] if each.begin - begin >= duration]
        if not late:
            return None
        group, *free = found or tests.groups[:1]
        early = rows.minus(late[-1].rows)
        if found and clear and tests.agree(group, free, early, late[-1].rows, noise):
            return self._tell(group, found, since, noise)
        if self.stamp - begin > PATIENCE * duration:  # it was a push, or a motion of its own
            self._windows.forget(late[-1].begin)
        return None

    def _learn(self, rows: RowSums) -> None:
        """Take what the first rows show of a group for where it starts."""
        value, sigma = self._tests.estimate(rows, self._noise.per_row())
        for group in self._unlearned[:]:
            if rows.time[list(group.joints)].min() >= START:
                members = list(group.members)
                self._start[members], self._start_sigma[members] = value[members], sigma[members]
                self._tests.take(group, value[members], sigma[members])
                self._unlearned.remove(group)

    def _duration(self, found: Sequence[ParameterGroup]) -> float:
        """Return how long a change of groups has to last before rows confirm it [ns]."""
        settings, payload = self._settings, bool(found) and found[0].kind == PAYLOAD
        return 1e9 * (settings.payload_duration if payload else settings.duration)

    def _tell(
        self, group: ParameterGroup, found: Sequence[ParameterGroup], since: Bucket, noise: Array
    ) -> DriftChange:
        tests, members = self._tests, list(group.members)
        value, sigma = (x[members] for x in tests.estimate(since.rows, noise, found))
        tests.take(group, value, sigma)
        self._unlearned = [each for each in self._unlearned if each != group]
        value = value - self._start[members]
        sigma = np.hypot(sigma, self._start_sigma[members])
        reverted = group in self.changes and tests.is_none(group, value, sigma)
        share = self._share(group, value, since.rows)
        change = DriftChange(group, since.begin, value, sigma, share, reverted)
        # Rows before are about another robot.
        self._windows.forget(since.begin)
        self._rows = since.rows
        self._noise.drop()
        self.changes.pop(group, None)
        if not reverted:
            self.changes[group] = change
        self._fit()
        return change

    def _share(self, group: ParameterGroup, change: Array, rows: RowSums) -> float:
        """Return the torque of a change over the friction of these joints, on this motion."""
        groups = (group,) if group.kind == FRICTION else self.followed.groups
        near = (x for x in groups if x.kind == FRICTION and {*x.joints} & {*group.joints})
        friction, members = [k for x in near for k in x.members], list(group.members)
        gram = rows.products[list(group.joints), :-1, :-1].sum(axis=0)
        start = (self.followed.identified + self._start)[friction]
        before = float(start @ gram[np.ix_(friction, friction)] @ start)
        if group.kind == PAYLOAD or not before > 0.0:
            return float('nan')
        torque = float(change @ gram[np.ix_(members, members)] @ change)
        along = change @ gram[np.ix_(members, friction)] @ start
        sign = along if group.kind == FRICTION else change[0]
        return float(np.copysign(np.sqrt(torque / before), sign))
