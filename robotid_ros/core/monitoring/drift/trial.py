"""A suspicion on trial: rows since then, by which it stands or falls."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
import dataclasses
from typing import NamedTuple

import numpy as np

from ...arrays import Array
from .change_tests import ChangeTests
from .followed_parameters import FollowedParameters, FRICTION, Group, PAYLOAD
from .forgetting_least_squares import ForgettingLeastSquares
from .motion_rows import Row
from .row_noise import RowNoise
from .settings import DriftSettings

# A change has to show in so many stretches of time one after the other, each by itself: what a
# push does is over by the second one. The joint has to move in this share of it, or it goes on.
STRETCHES, MOTION = 2, 0.15
# Pauses and motion that shows little may have drawn the first stretch out: the second one, which
# begins when the push that the first may have been is over, then need only be so long.
LEAST_SECOND = 0.4
# A stretch that leaves this share of the threshold goes on, for so many times its length: then it
# was a contact that comes and goes, or a motion that shows too little. So it is with so much
# motion of other joints.
DOUBT, PATIENCE, OTHERS = 0.2, 3.0, 2.0
# The second stretch has to find what the first did: within three σ, to which this share of it is
# added, for the first one may begin amid the change. A push leaves something else in each.
AGREEMENT, NEAR = 0.25, 3.0
# A push that ended leaves so many rows at the most, at the end of a stretch, e⁵ times as likely
# without the change; and of so many before a suspicion, the change is sought that made it.
LAST, ENDED = 12, 10.0
# It was not there yet in rows within a stretch that say so e¹⁰ times as likely: what a stretch
# shows then is the next push. Rows that begin or end amid a change cost a payload less than that.
NOT_YET = 20.0


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


class Stretch(NamedTuple):
    """Rows of a stretch, and value and σ of the members of the group that they tell of."""

    rows: ForgettingLeastSquares
    value: Array
    sigma: Array


class Trial:
    """
    Rows since a change, alone, have to say the same of the same group, stretch by stretch.

    Parameters
    ----------
    followed, tests, noise, settings : of the monitor
    suspected : group
    value : of its members that made it suspect
    latest : rows that made it suspect, with some from before the change

    Attributes
    ----------
    rows : of the present stretch
    ended : whether the trial is over

    """

    def __init__(
        self, followed: FollowedParameters, tests: ChangeTests, noise: RowNoise,
        settings: DriftSettings, suspected: Group, value: Array, latest: Sequence[Row],
    ):  # fmt: skip
        self._followed, self._tests, self._noise = followed, tests, noise
        self._settings = settings
        self._first: Stretch | None = None
        self._value = value
        self.ended = False
        whole = tests.reference.copy()
        whole[list(suspected.members)] = value
        rows = self._since_change(whole, latest)
        self._first_began = since = _begin_of(rows[0])
        self._begin(suspected, since, since)
        for row in rows:
            self.add(row)

    def add(self, row: Row) -> None:
        """Take in a row."""
        self._last.append(row)
        self.rows.add(row.values, row.used, row.duration)

    def judge(self, stamp: int) -> Change | None:
        """Look at the rows so far, of which the last ends at a stamp; return what is told."""
        found = self._tests.find(self.rows, noise := self._row_sigma())
        ready = [each for each in found if each.clear and self._seen(each.group, stamp) >= 1.0]
        if ready:
            free = [each.group for each in found]
            value, sigma = self._tests.estimate(self.rows, noise, free)
            if not self._is_over(value):
                return self._pass(ready[0].group, free, value, sigma, stamp)
        seen = self._seen(found[0].group if found else self.suspected, stamp)
        longest = float(self.rows.time.max()) / self._length(self.suspected)
        over = seen >= 1.0 and not found and self._refuted(noise)
        self.ended = over or seen >= PATIENCE or longest >= OTHERS
        return None

    def _refuted(self, noise: Array) -> bool:
        """Whether the rows would show the change, and do not."""
        strength = self._tests.strength(self.suspected, self.rows, noise)
        expected = self._tests.expected(self.suspected, self._value, self.rows, noise)
        return strength <= DOUBT and expected >= 1.0

    def _begin(self, group: Group, since: int, stamp: int) -> None:
        self.suspected, self.since, self._began = group, since, stamp
        n, m = len(self._followed.level), len(self._followed.columns)
        self.rows = ForgettingLeastSquares(n, m, np.inf)
        self._last: deque[Row] = deque(maxlen=LAST)

    def _row_sigma(self) -> Array:
        """Return the σ (n,) of rows about their own fit, whatever changed."""
        value, _ = self._tests.estimate(self.rows, self._noise.per_row(), self._tests.groups)
        return self._noise.per_row_of(self.rows, value)

    def _seen(self, group: Group, stamp: int) -> float:
        """Return how long a group was seen, over what is asked for."""
        motion, length = float(self.rows.time[list(group.joints)].max()), self._length(group)
        seen = min((stamp - self._began) * 1e-9, motion / MOTION) / length
        if self._first is None or group != self.suspected:
            return seen
        both = (stamp - self._first_began) * 1e-9 / (STRETCHES * length)
        return min(both, seen / LEAST_SECOND)

    def _length(self, group: Group) -> float:
        """Return the length of a stretch [s]."""
        settings = self._settings
        whole = settings.payload_duration if group.kind == PAYLOAD else settings.duration
        return whole / STRETCHES

    def _is_over(self, value: Array) -> bool:
        """
        Whether some of the last rows say that what was found, parameters at a value (m,), was not.

        Σ (|y − Φ δ|² − |y − Φ δ₀|²)/σ², δ₀ the reference, over rows in succession, whichever speak
        most against δ (the cumulative sum of Page 1954): it has ended, or has begun just now.
        """
        over = most = 0.0
        for row in self._last:
            over = max(0.0, over + self._excess(row, value))
            most = max(most, over)
        return over > ENDED or most > NOT_YET

    def _since_change(self, value: Array, latest: Sequence[Row]) -> Sequence[Row]:
        """Return the last rows that parameters at a value (m,) explain best, at least one."""
        explained = np.cumsum([-self._excess(row, value) for row in reversed(latest)])
        return list(latest)[-1 - int(np.argmax(explained)) :]

    def _excess(self, row: Row, value: Array) -> float:
        """Return (|y − Φ δ|² − |y − Φ δ₀|²)/σ² of a row, parameters at a value (m,)."""
        noise = self._noise.per_row()
        left = [
            row.values @ np.append(-each, 1.0) / noise for each in (value, self._tests.reference)
        ]
        changed, same = (float(np.sum(each[row.used] ** 2)) for each in left)
        return changed - same

    def _pass(
        self, group: Group, free: Sequence[Group], value: Array, sigma: Array, stamp: int
    ) -> Change | None:
        """End a stretch that told of a change of a group: begin the next one, or tell."""
        members, shown = list(group.members), self._since_change(value, self._last)
        value, sigma = value[members], sigma[members]
        same = group == self.suspected
        if (
            not same
            or self._first is None
            or not self._agree(group, free, value, sigma, self._first)
        ):
            self._first, self._value = Stretch(self.rows, value, sigma), value
            all_show = len(shown) == len(self._last)
            self._first_began = self._began if all_show else _begin_of(shown[0])
            self._begin(group, self.since if same else self._began, stamp)
            return None
        self.ended = True
        self._tests.reference[members] = value
        change = value - self._tests.start[members]
        sigma = np.hypot(sigma, self._tests.start_sigma[members])
        share, reverted = self._share(group, change), self._tests.is_none(group, change)
        return Change(group, self.since, change, sigma, share, reverted)

    def _agree(
        self, group: Group, free: Sequence[Group], value: Array, sigma: Array, first: Stretch
    ) -> bool:
        """Whether this stretch finds the change since the reference that the first one found."""
        size = np.abs(first.value - self._tests.reference[list(group.members)])
        least = first.sigma**2 + sigma**2 + (AGREEMENT * size) ** 2
        others = [each for each in free if each != group]
        return bool(np.all((value - first.value) ** 2 <= NEAR**2 * least)) and self._tests.agree(
            group, others, first.rows, self.rows, self._row_sigma()
        )

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


def _begin_of(row: Row) -> int:
    return row.stamp - round(row.duration * 1e9)
