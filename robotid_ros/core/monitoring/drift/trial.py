"""A suspicion on trial: rows since then, by which it stands or falls."""

from __future__ import annotations

import dataclasses

import numpy as np

from ...arrays import Array
from .change_tests import ChangeTests, Finding
from .followed_parameters import FollowedParameters, FRICTION, Group, PAYLOAD
from .forgetting_least_squares import ForgettingLeastSquares
from .motion_rows import Row
from .row_noise import RowNoise
from .settings import DriftSettings

# A change has to show in so many stretches of time one after the other, each by itself: what a
# push does is over by the second one. The joint has to move in this share of it, or it goes on.
STRETCHES, MOTION = 2, 0.15
# A stretch that leaves this share of the threshold goes on, for so many times its length: then it
# was a contact that comes and goes, or a motion that shows too little. So it is with so much
# motion of other joints.
DOUBT, PATIENCE, OTHERS = 0.2, 3.0, 2.0
# The second stretch has to find what the first did: within three σ, to which this share of it is
# added, for the first one may begin amid the change. A push leaves something else in each.
AGREEMENT, NEAR = 0.25, 3.0


@dataclasses.dataclass(frozen=True)
class Change:
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

    group: Group
    since: int
    value: Array
    sigma: Array
    share: float
    reverted: bool


class Trial:
    """
    Rows from a suspicion on, alone, have to say the same of the same group, stretch by stretch.

    Parameters
    ----------
    followed, tests, noise, settings : of the monitor
    suspected : group
    since : stamp of the suspicion [ns]

    Attributes
    ----------
    rows : of the present stretch
    ended : whether the trial is over

    """

    def __init__(
        self, followed: FollowedParameters, tests: ChangeTests, noise: RowNoise,
        settings: DriftSettings, suspected: Group, since: int,
    ):  # fmt: skip
        self._followed, self._tests, self._noise = followed, tests, noise
        self._settings = settings
        self._first: tuple[Array, Array] | None = None
        self.ended = False
        self._begin(suspected, since, since)

    def add(self, row: Row) -> None:
        """Take in a row."""
        self.rows.add(row.values, row.used, row.duration)

    def judge(self, stamp: int) -> Change | None:
        """Look at the rows so far, of which the last ends at a stamp; return what is told."""
        found = self._tests.find(self.rows, noise := self._row_sigma())
        ready = [each for each in found if each.clear and self._seen(each.group, stamp) >= 1.0]
        if ready:
            return self._pass(ready[0], found, noise, stamp)
        seen = self._seen(found[0].group if found else self.suspected, stamp)
        longest = float(self.rows.time.max()) / self._length(self.suspected)
        doubt = bool(found) or self._tests.strength(self.suspected, self.rows, noise) > DOUBT
        self.ended = seen >= (PATIENCE if doubt else 1.0) or longest >= OTHERS
        return None

    def _begin(self, group: Group, since: int, stamp: int) -> None:
        self.suspected, self.since, self._began = group, since, stamp
        n, m = len(self._followed.level), len(self._followed.columns)
        self.rows = ForgettingLeastSquares(n, m, np.inf)

    def _row_sigma(self) -> Array:
        """Return the σ (n,) of rows about their own fit, whatever changed."""
        value, _ = self._tests.estimate(self.rows, self._noise.per_row(), self._tests.groups)
        return self._noise.per_row_of(self.rows, value)

    def _seen(self, group: Group, stamp: int) -> float:
        """Return how long a group was seen, over the length of a stretch."""
        motion = float(self.rows.time[list(group.joints)].max())
        return min((stamp - self._began) * 1e-9, motion / MOTION) / self._length(group)

    def _length(self, group: Group) -> float:
        """Return the length of a stretch [s]."""
        settings = self._settings
        whole = settings.payload_duration if group.kind == PAYLOAD else settings.duration
        return whole / STRETCHES

    def _pass(
        self, best: Finding, found: list[Finding], noise: Array, stamp: int
    ) -> Change | None:
        """End a stretch that told of a change: begin the next one, or tell."""
        value, sigma = self._tests.estimate(self.rows, noise, [f.group for f in found])
        members = list(best.group.members)
        value, sigma = value[members], sigma[members]
        same = best.group == self.suspected
        if not same or self._first is None or not self._agree(best.group, value, sigma):
            self._begin(best.group, self.since if same else stamp, stamp)
            self._first = value, sigma
            return None
        self.ended = True
        self._tests.reference[members] = value
        change = value - self._tests.start[members]
        sigma = np.hypot(sigma, self._tests.start_sigma[members])
        share, reverted = self._share(best.group, change), self._tests.is_none(best.group, change)
        return Change(best.group, self.since, change, sigma, share, reverted)

    def _agree(self, group: Group, value: Array, sigma: Array) -> bool:
        """Whether a stretch finds the change since the reference that the first one found."""
        assert self._first is not None
        first, spread = self._first
        size = np.abs(first - self._tests.reference[list(group.members)])
        least = spread**2 + sigma**2 + (AGREEMENT * size) ** 2
        return bool(np.all((value - first) ** 2 <= NEAR**2 * least))

    def _share(self, group: Group, change: Array) -> float:
        """Return the torque of a change over the friction of these joints, on this motion."""
        friction = [
            k
            for other in self._followed.groups
            if other.kind == FRICTION and set(other.joints) & set(group.joints)
            and (group.kind != FRICTION or other == group)
            for k in other.members
        ]  # fmt: skip
        rows = np.concatenate(self.rows.factors[list(group.joints), :, :-1])
        start = self._followed.identified + self._tests.start
        before = rows[:, friction] @ start[friction]
        torque = rows[:, list(group.members)] @ change
        size = float(np.linalg.norm(before))
        if group.kind == PAYLOAD or size == 0.0:
            return float('nan')
        sign = torque @ before if group.kind == FRICTION else change[0]
        return float(np.copysign(np.linalg.norm(torque) / size, sign))
