"""Drift: parameters followed by least squares that forgets, and changes of them that last."""

from collections.abc import Sequence
import dataclasses
import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import Array, Indices, Mask, ReadOnlyArrays
from ..identification_settings import DriftSettings
from ..model import regressor, Robot
from ..model.friction import OF_POSITION
from ..model.robot import INERTIAL
from .motion_rows import FilteredStates, MotionRows, Row, RowNoise, RowSums

FRICTION, OFFSET, PAYLOAD = 'friction', 'offset', 'payload'
# What a body at the last link adds to its parameters, the mass first. Its inertia about the joint
# would need faster motions than those of work to be told from the rest.
LOAD = ('M', 'MX', 'MY', 'MZ')
# Random states that show which torques are ordinary: speeds up to this share of the limit, or up
# to the first figure where there is none, accelerations up to the second [rad/s, rad/s²].
STATES, SPEED_SHARE, MAX_SPEED, MAX_ACCELERATION = 200, 0.2, 1.0, 2.0
# A parameter of friction is measured by its value, or by what makes this share of its group's
# torque where that is more; offset and payload by this share of the joint's friction, or this one
# of its whole torque. A small parameter need not be known to a per cent of itself, and the links'
# weight, which looks like offset and payload, is not.
FRICTION_SHARE, TORQUE_SHARE = 0.5, 0.25
# A change may be so many times its scale: bounds what few rows make of it, and σ of the unseen.
WIDE = 5.0
# By how much twice the logarithm of the likelihood has to exceed that of any other single group,
# e⁵ times as likely, and what each further parameter of a group has to explain (Akaike 1974).
MARGIN, PRICE = 10.0, 2.0
# Late rows have to show so much of a threshold, and either part to add it to the other one.
CONFIRMED = 0.5
NONE = 3.0  # parameters are as identified again within so many σ of what is no change
LEAST = 1e-6  # least standard deviation of what is no change, over its scale: a numerical bound
# σ from which a change is told if later rows agree: one chance hit in 1.7 million.
SIGNIFICANT = 5.0


class ParameterGroup(NamedTuple):
    """Parameters that change together."""

    kind: str  # FRICTION, OFFSET or PAYLOAD
    name: str  # joint or coupling; the last joint of a payload
    members: tuple[int, ...]  # their places among the followed parameters
    joints: tuple[int, ...]  # numbers of the joints whose motion shows them


@dataclasses.dataclass(frozen=True)
class FollowedParameters(ReadOnlyArrays):
    """The m parameters that are followed, and how large their changes may be."""

    columns: Indices  # (m,) of the standard parameters
    names: tuple[str, ...]
    units: tuple[str, ...]
    identified: Array  # (m,) value
    scale: Array  # (m,) change that counts as large
    level: Array  # (n,) ordinary torque of each joint [N·m or N]
    groups: tuple[ParameterGroup, ...]  # what changes together


def followed_parameters(robot: Robot, standard: Array) -> FollowedParameters:
    """Choose the parameters that a rigid robot at work may change, of standard ones (p,)."""
    columns, members = list[int](), dict[tuple[str, str], list[int]]()
    first, payload = robot.first_columns[robot.n - 1], (PAYLOAD, robot.joints[-1])
    for k, parameter in enumerate(robot.parameters):
        if parameter.symbol in INERTIAL:
            stays = not first <= k < first + len(INERTIAL) or parameter.symbol not in LOAD
            key = payload
        else:
            stays = parameter.symbol == 'Ia' or parameter.symbol in OF_POSITION
            key = (OFFSET if parameter.symbol == 'off' else FRICTION), parameter.joint
        if not stays:
            members.setdefault(key, []).append(len(columns))
            columns.append(k)
    own = [robot.parameters[k] for k in columns]
    if payload in members:  # last, and the mass first
        members[payload] = sorted(members.pop(payload), key=lambda i: LOAD.index(own[i].symbol))
    shown: dict[str, tuple[int, ...]] = {joint: (j,) for j, joint in enumerate(robot.joints)}
    shown |= {each.name: tuple(np.flatnonzero(each.ratios).tolist()) for each in robot.couplings}
    every = tuple(range(robot.n))
    groups = tuple(
        ParameterGroup(kind, name, tuple(found), every if kind == PAYLOAD else shown[name])
        for (kind, name), found in members.items()
    )
    chosen, value = np.array(columns, dtype=np.intp), np.asarray(standard)
    names, units = tuple(p.name for p in own), tuple(p.unit for p in own)
    scale, level = _sizes(robot, value, chosen, groups)
    return FollowedParameters(chosen, names, units, value[chosen], scale, level, groups)


def _sizes(
    robot: Robot, standard: Array, columns: Indices,
    groups: tuple[ParameterGroup, ...],
) -> tuple[Array, Array]:  # fmt: skip
    """Return scales (m,) and levels (n,), from random states."""
    rng, shape = np.random.default_rng(0), (STATES, robot.n)
    lower = np.maximum(robot.limits.lower, -np.pi)
    upper = np.maximum(np.minimum(robot.limits.upper, np.pi), lower + 0.1)
    speed = SPEED_SHARE * robot.limits.velocity
    speed = np.where(np.isfinite(speed) & (speed > 0.0), speed, MAX_SPEED)
    q, dq = rng.uniform(lower, upper, shape), rng.uniform(-speed, speed, shape)
    W = regressor(robot, q, dq, rng.uniform(-MAX_ACCELERATION, MAX_ACCELERATION, shape))
    followed, value = W[:, :, columns], standard[columns]

    def friction(*some: ParameterGroup) -> Array:
        members = [k for group in some for k in group.members]
        return FRICTION_SHARE * _rms(followed[:, :, members] @ value[members])

    of_friction = [group for group in groups if group.kind == FRICTION]
    level = np.maximum(friction(*of_friction), TORQUE_SHARE * _rms(W @ standard))
    level = np.maximum(level, 1e-9)
    shown = np.tile(level[:, None], len(columns))
    for group in of_friction:
        shown[:, list(group.members)] = friction(group)[:, None]
    size = _rms(followed)
    with np.errstate(divide='ignore', invalid='ignore'):
        noticed = np.nanmin(np.where(size > 0.0, shown / size, np.inf), axis=0)
    scale = np.maximum(np.abs(value), noticed)
    # Of a column that no torque depends on nothing is ever known, whatever the scale.
    return np.where(np.isfinite(scale) & (scale > 0.0), scale, 1.0), level


def _rms(torque: Array) -> Array:
    return np.asarray(np.sqrt(np.mean(torque**2, axis=1)))


class Evidence(NamedTuple):
    """What rows say of changes of the followed parameters."""

    information: Array  # (m, m) Φᵀ Φ, rows in units of their σ
    score: Array  # (m,) Φᵀ y
    variance: Array  # (m,) of the changes before the rows

    def estimate(self) -> tuple[Array, Array]:
        """Return mean (m,) and covariance (m, m) of the changes, given the rows."""
        root = np.sqrt(self.variance)
        scaled = root[:, None] * self.information * root + np.eye(len(root))
        covariance = root[:, None] * np.linalg.inv(scaled) * root
        return covariance @ self.score, covariance

    def statistics(self, groups: Sequence[ParameterGroup], wide: Array) -> Array:
        """
        Return what each group explains, (g,): yᵀ (Σ₀⁻¹ − Σ_k⁻¹) y.

        The rows are y = Φ δ + Φ_k γ + ρ with δ ~ N(0, diag(variance)), which all parameters may
        be off by, and γ ~ N(0, diag(wide)) of group k; Σ₀ and Σ_k are their covariances without
        and with γ. For a wide γ it is twice the logarithm of the generalised likelihood ratio
        (Willsky and Jones 1976), χ² of as many degrees as the group has members.
        """
        (mean, covariance), result = self.estimate(), []
        inside = self.information - self.information @ covariance @ self.information
        score = self.score - self.information @ mean
        for group in groups:
            members = np.array(group.members)
            block = inside[np.ix_(members, members)] + np.diag(1.0 / wide[members])
            result.append(float(score[members] @ np.linalg.solve(block, score[members])))
        return np.array(result)


class ChangeTests:
    """
    Tests of the followed parameters against a reference.

    All values are differences from what was identified, to within σ (m,). A change is none up to a
    tolerance over the scale of a parameter.
    """

    def __init__(self, followed: FollowedParameters, sigma: Array, tolerance: float):
        from scipy.special import chdtri, erfc

        self.groups = followed.groups
        self.reference = np.zeros(len(followed.columns))  # (m,) with the changes that are known
        self._tolerated = (np.maximum(tolerance, LEAST) * followed.scale) ** 2
        self._narrow = self._tolerated + sigma**2
        self._wide = (WIDE * followed.scale) ** 2
        self._sizes = np.array([len(group.members) for group in self.groups])
        # χ² that chance exceeds as seldom as a normal variable so many σ.
        self._thresholds = chdtri(self._sizes, erfc(SIGNIFICANT / np.sqrt(2.0)))

    def largest_gain(self, rows: RowSums, noise: Array) -> float:
        """Return what the group explains that explains most, 0 where none is significant."""
        statistics = self._evidence(rows, noise).statistics(self.groups, self._wide)
        return float((statistics - PRICE * self._sizes).max(
            initial=0.0, where=statistics > self._thresholds
        ))  # fmt: skip

    def find(self, rows: RowSums, noise: Array) -> tuple[list[ParameterGroup], bool]:
        """
        Return the groups that changed, the one that explains most first, and whether it is clear.

        No other group explains nearly as much then. Each next group has to be significant beside
        those before it. `noise` (n,) is the σ that a row of each joint counts with.
        """
        chosen, clear = list[int](), False
        while len(chosen) < len(self.groups):
            free = [self.groups[k] for k in chosen]
            statistics = self._evidence(rows, noise, free).statistics(self.groups, self._wide)
            statistics[chosen] = 0.0
            gain = statistics - PRICE * self._sizes
            best = int(np.argmax(np.where(statistics > self._thresholds, gain, -np.inf)))
            if statistics[best] <= self._thresholds[best]:
                break
            if not chosen:
                others = np.delete(gain, best)
                clear = gain[best] - float(others.max(initial=-np.inf)) > MARGIN
            chosen.append(best)
        return [self.groups[k] for k in chosen], clear

    def agree(
        self, group: ParameterGroup, free: Sequence[ParameterGroup], early: RowSums,
        late: RowSums, noise: Array,
    ) -> bool:  # fmt: skip
        """Whether one value of a group explains early and late rows, by evidence of each."""
        a, b = (self._evidence(rows, noise, free) for rows in (early, late))
        both = Evidence(a.information + b.information, a.score + b.score, a.variance)
        together, first, then = (x.statistics((group,), self._wide)[0] for x in (both, a, b))
        threshold = float(self._thresholds[self.groups.index(group)])
        gain = min(then, together - first, together - then)
        return bool(first >= threshold and gain >= CONFIRMED * threshold)

    def estimate(
        self, rows: RowSums, noise: Array, free: Sequence[ParameterGroup] = ()
    ) -> tuple[Array, Array]:
        """Return values (m,), `free` groups far from the reference, and their σ (m,)."""
        mean, covariance = self._evidence(rows, noise, free).estimate()
        return self.reference + mean, np.sqrt(np.diag(covariance))

    def take(self, group: ParameterGroup, value: Array, sigma: Array) -> None:
        """Take values of a group, to within their σ, for the reference."""
        members = list(group.members)
        self.reference[members] = value
        self._narrow[members] = self._tolerated[members] + sigma**2

    def is_none(self, group: ParameterGroup, change: Array, sigma: Array) -> bool:
        """Whether a change, known to within σ, is within what is none."""
        tolerated = self._tolerated[list(group.members)]
        return bool(np.all(change**2 <= NONE**2 * (tolerated + sigma**2)))

    def _evidence(
        self, rows: RowSums, noise: Array, free: Sequence[ParameterGroup] = ()
    ) -> Evidence:
        information, score = rows.information(noise)
        variance, members = self._narrow.copy(), [k for group in free for k in group.members]
        variance[members] += self._wide[members]
        return Evidence(information, score - information @ self.reference, variance)


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
