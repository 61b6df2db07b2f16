"""Drift: parameters followed by recursive least squares, and the changes of them that last."""

from collections import deque
from collections.abc import Sequence
import dataclasses

import numpy as np
import numpy.typing as npt

from ..arrays import Array
from ..identification_settings import DriftSettings
from ..model.robot import Robot
from .change_tests import (
    ChangeTests,
    follow,
    FollowedParameters,
    FRICTION,
    ParameterGroup,
    PAYLOAD,
)
from .motion_rows import FilteredStates, MotionRows, Row, RowNoise

# Rows that come later have so much time to confirm or refute a change, over what is asked for,
# half of it where other joints alone move. They count as time for the joint as far as it moves
# in this share of it, and refute a change that they would show where this share of the threshold
# is left: it was a contact that comes and goes, or a motion that shows too little.
PATIENCE, OTHERS, MOTION, DOUBT = 3.0, 2.0, 0.15, 0.2
# A push that ended leaves rows at the end of the last ones, so many, e⁵ times as likely without
# the change; and among so many before a look, the change is sought that made it.
LAST, ENDED = 24, 10.0
# It was not there yet in any of these rows that say so e¹⁰ times as likely: what shows then is the
# next push. Rows that begin or end amid a change cost a payload less than that.
NOT_YET = 20.0
# Longer silence starts the filter anew [s]: a few lost messages at 100 Hz do not. What it then
# took for a rest has left it after so many periods of its cut-off.
MAX_GAP, SETTLING = 0.055, 3.0
# Time constants of rows that show a large change at once, and a smaller one soon [s of motion]:
# what is known from the past would hide it for as long as it is remembered.
RECENT = (2.0, 8.0)
FEWEST, WINDOW = 3, 24  # last rows, at least and at most, that show alone what has just begun
# Blocks with motion from one test to the next, and to the next of a trial: some milliseconds.
TEST_EVERY, TRIAL_EVERY = 4, 2
# A joint is known from so much motion that is remembered on [s], and so much at first shows where
# it starts: more exactly than an identification, whose σ counts what another motion may show.
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


class ChangeTrial:
    """
    Rows since a change, alone, have to show it, and rows that come later have to confirm it.

    When a group shows first, it has to last: rows from some time after that, in which a push is
    over, have to show one value of it together with those before, by evidence of their own. The
    value is what made the group's members suspect.
    """

    def __init__(
        self, followed: FollowedParameters, tests: ChangeTests, noise: RowNoise,
        settings: DriftSettings, suspected: ParameterGroup, value: Array,
    ):  # fmt: skip
        self._followed, self._tests, self._noise = followed, tests, noise
        self._settings, self.ended = settings, False
        self.suspected, self._value = suspected, value

    def begin(self, latest: Sequence[Row]) -> DriftChange | None:
        """Look at the latest rows one by one, from the change on; return what is told."""
        whole, change = self._tests.reference.copy(), None
        whole[list(self.suspected.members)] = self._value
        rows, _ = self._since_change(whole, latest)
        self._restart(rows[0])
        for row in rows:
            if not self.ended:
                self.add(row)
                change = self.judge(row.stamp)
        return change

    def _restart(self, first: Row) -> None:
        """Forget all rows; the next one is to be the first."""
        self.since = first.stamp  # when the change was first seen [ns]
        self.rows, self._early, self._late = (self._followed.rows() for _ in range(3))
        self._last = deque[Row](maxlen=LAST)
        self._late_from: int | None = None  # from when on rows are late [ns]

    def add(self, row: Row) -> None:
        """Take in a row."""
        self._last.append(row)
        begin = row.stamp - round(row.duration * 1e9)
        late = self._late_from is not None and begin >= self._late_from
        for rows in (self.rows, self._late if late else self._early):
            rows.add(row.values, row.used, row.duration)

    def judge(self, stamp: int) -> DriftChange | None:
        """Look at the rows so far, of which the last ends at a stamp; return what is told."""
        # σ of rows about their own fit, whatever changed.
        fitted, _ = self._tests.estimate(self.rows, self._noise.per_row(), self._tests.groups)
        noise = self._noise.per_row_of(self.rows, fitted)
        found, clear = self._tests.find(self.rows, noise)
        if found:
            group, *free = found
            value, sigma = self._tests.estimate(self.rows, noise, (group, *free))
            new = group != self.suspected or self._late_from is None
            if new:  # some of the last rows may say that it was not there yet
                rows, against = self._since_change(value, self._last)
                if against > ENDED:
                    self._restart(rows[0])
                    for row in rows:
                        self.add(row)
            if clear and not self._is_over(value):
                if new:  # rows that come later have to confirm it
                    self.suspected, self._value = group, value[list(group.members)]
                    self._late_from = stamp + round(self._duration() * 1e9)
                    self._early, self._late = self.rows.copy(np.inf), self._followed.rows()
                elif self._tests.agree(group, free, self._early, self._late, noise):
                    return self._tell(group, value, sigma)
        self.ended = self._is_unconfirmed(stamp, noise)
        return None

    def _is_unconfirmed(self, stamp: int, noise: Array) -> bool:
        """Whether rows would show the change and do not, or had time enough."""
        rows, since = self._early, self.since
        if self._late_from is not None:
            rows, since = self._late, self._late_from
        asked, motion = self._duration(), float(rows.time[list(self.suspected.joints)].max())
        seen = min((stamp - since) * 1e-9, motion / MOTION) / asked
        if seen >= PATIENCE or float(rows.time.max()) >= OTHERS * asked:
            return True
        if seen < 1.0:
            return False
        shown, expected = self._tests.shown(self.suspected, self._value, rows, noise)
        return shown <= DOUBT and expected >= 1.0

    def _duration(self) -> float:
        """Return how long the suspected group has to last before rows confirm it [s]."""
        settings, payload = self._settings, self.suspected.kind == PAYLOAD
        return settings.payload_duration if payload else settings.duration

    def _is_over(self, value: Array) -> bool:
        """Whether a value (m,) has ended, or has begun just now, by the last rows (Page 1954)."""
        over = most = 0.0
        for row in self._last:
            over = max(0.0, over + self._excess(row, value))
            most = max(most, over)
        return over > ENDED or most > NOT_YET

    def _since_change(self, value: Array, rows: Sequence[Row]) -> tuple[list[Row], float]:
        """Return the last rows, one at least, that a value (m,) explains best, and by how much."""
        excess = np.cumsum([self._excess(row, value) for row in reversed(rows)])
        return list(rows)[-1 - int(np.argmin(excess)) :], float(excess[-1] - excess.min())

    def _excess(self, row: Row, value: Array) -> float:
        """Return (|y − Φ δ|² − |y − Φ δ₀|²)/σ² of a row, δ a value (m,), δ₀ the reference."""
        values = np.column_stack([np.array([-value, -self._tests.reference]), np.ones(2)])
        left = (row.values @ values.T)[row.used] / self._noise.per_row()[row.used, None]
        changed, same = np.sum(left**2, axis=0)
        return float(changed - same)

    def _tell(self, group: ParameterGroup, value: Array, sigma: Array) -> DriftChange:
        self.ended = True
        members = list(group.members)
        changed = np.any(self._tests.reference[members] != self._tests.start[members])
        self._tests.reference[members] = value[members]
        change = value[members] - self._tests.start[members]
        sigma = np.hypot(sigma[members], self._tests.start_sigma[members])
        reverted = bool(changed) and self._tests.is_none(group, change, sigma)
        return DriftChange(group, self.since, change, sigma, self._share(group, change), reverted)

    def _share(self, group: ParameterGroup, change: Array) -> float:
        """Return the torque of a change over the friction of these joints, on this motion."""
        groups = (group,) if group.kind == FRICTION else self._followed.groups
        near = (x for x in groups if x.kind == FRICTION and {*x.joints} & {*group.joints})
        friction = [k for other in near for k in other.members]
        rows = np.concatenate(self.rows.factors[list(group.joints), :, :-1])
        start = self._followed.identified + self._tests.start
        before = rows[:, friction] @ start[friction]
        torque = rows[:, list(group.members)] @ change
        size = float(np.linalg.norm(before))
        if group.kind == PAYLOAD or size == 0.0:
            return float('nan')
        sign = torque @ before if group.kind == FRICTION else change[0]
        return float(np.copysign(np.linalg.norm(torque) / size, sign))


class DriftMonitor:
    """
    Follows friction, offsets and payload, and tells changes that are significant and last.

    All rows pass least squares with forgetting. Where a likelihood ratio says that they, or the
    last of them alone, do not go with what was identified, a trial begins: rows since the change,
    alone, have to show a group, and rows that come later have to confirm it. Either way its rows
    replace the older ones: these are about a robot that has changed, or spoiled by a push.

    Parameters
    ----------
    robot, settings : a rigid one; memory, tolerance, significance, durations
    standard, sigma : (p,) identified parameters, others zero; their σ, 0 where not known
    residual : (n,) root mean square of the efforts that the identification left [N·m or N]
    cutoff : of the causal filter of positions and efforts [Hz]
    standstill : joints slower than this are at rest [rad/s or m/s]

    Attributes
    ----------
    followed, changes : the m parameters; what was told and lasts, by group
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
        self._rows = followed.rows(settings.memory)
        self._recent = [followed.rows(memory) for memory in RECENT]
        self._noise = RowNoise(residual, followed.level)
        own = sigma[followed.columns]
        self._tests = ChangeTests(followed, own, settings.tolerance, settings.significance)
        self._latest = deque[Row](maxlen=WINDOW)
        self._trial: ChangeTrial | None = None
        self._unlearned = list(followed.groups)
        self._blocks = 0
        self.changes: dict[ParameterGroup, DriftChange] = {}
        self.last_motion = np.zeros(robot.n, dtype=np.int64)
        self._fit()

    @property
    def stamp(self) -> int:
        """Stamp of the last joint state [ns], 0 before the first."""
        return self._states.stamp

    @property
    def suspicion(self) -> tuple[ParameterGroup, int] | None:
        """What is being looked at, and since when [ns]."""
        return None if self._trial is None else (self._trial.suspected, self._trial.since)

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

    def enough(self) -> npt.NDArray[np.bool_]:
        """Return for which joints (n,) enough motion is remembered."""
        rows = self._rows if self._trial is None else self._trial.rows
        return np.asarray(np.maximum(self._rows.time, rows.time) >= ENOUGH)

    def _take(self, row: Row) -> DriftChange | None:
        """Take in a row; return what is told."""
        errors = row.values @ np.append(-self._recent_value, 1.0)
        if self._trial is None:
            self._noise.hold(errors, row.used)
        if not row.used.any():
            return None
        self.last_motion[row.used] = row.stamp
        for rows in (self._rows, *self._recent):
            rows.add(row.values, row.used, row.duration)
        self._latest.append(row)
        if self._trial is not None:
            self._trial.add(row)
        self._blocks += 1
        if self._blocks % (TEST_EVERY if self._trial is None else TRIAL_EVERY):
            return None
        self._fit()
        change = self._suspect() if self._trial is None else self._trial.judge(row.stamp)
        if self._trial is not None and self._trial.ended:
            self._rows, self._trial = self._trial.rows, None
            self._rows.memory = self._settings.memory
            self._recent = [self._rows.copy(memory) for memory in RECENT]
            self._fit()
        if change is not None:
            self._noise.drop()
            self.changes.pop(change.group, None)
            if not change.reverted:
                self.changes[change.group] = change
        return change

    def _fit(self) -> None:
        """Estimate the followed parameters, all free, from the rows that are remembered."""
        tests, noise = self._tests, self._noise.per_row()
        self._value, self._sigma = tests.estimate(self._rows, noise, tests.groups)
        # Errors are those of a fit that follows soon: a change is no noise.
        self._recent_value, _ = tests.estimate(self._recent[-1], noise, tests.groups)

    def _suspect(self) -> DriftChange | None:
        """Begin a trial where rows show a change; where not, learn where groups start."""
        tests, noise, last = self._tests, self._noise.per_row(), self.followed.rows()
        for row in reversed(self._latest):
            last.add(row.values, row.used, row.duration)
        alone = [last] if len(self._latest) >= FEWEST else []
        for rows in (*alone, *self._recent, self._rows):
            found, _ = tests.find(rows, noise)
            if found:
                group, parts = found[0], (self.followed, tests, self._noise, self._settings)
                value = tests.estimate(rows, noise, (group,))[0][list(group.members)]
                self._trial = ChangeTrial(*parts, group, value)
                return self._trial.begin(self._latest)
        for group in self._unlearned[:]:
            if self._rows.time[list(group.joints)].min() >= START:
                tests.learn(group, self._rows, noise)
                self._unlearned.remove(group)
        return None
