"""Which groups of parameters changed, by likelihood ratios."""

from collections.abc import Sequence
import dataclasses
from typing import NamedTuple

import numpy as np

from ..arrays import Array, Indices, ReadOnlyArrays
from ..model import regressor, Robot
from ..model.friction import OF_POSITION
from ..model.robot import INERTIAL
from .motion_rows import RowSums

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
