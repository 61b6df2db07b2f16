"""
A motion in pieces that each end at rest: a controller whose client dies comes to rest in time.

A piece goes on as the motion does, and stops on the path that its velocity v and acceleration a
lead to, with v (1 − 3 s² + 2 s³) + a T s (1 − s)² over s = t/T. The next piece takes its place
halfway, before it stops: it holds the motion's own points around that instant, so that what the
controller interpolates stays as it is.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...exceptions import CollisionError, LimitError, TrajectoryError
from .trajectory import Waypoints

# Of the horizon, in which a piece may come to rest: the first that keeps all limits is taken, and
# a gentle one leaves a controller less to settle.
STOPPING = 0.3, 0.4, 0.5, 0.2, 0.1
LEAST = 0.3  # least horizon [s]: half of it is left for the next piece to arrive
# The second piece needs to know when the motion began: from this share of its amplitude on it is
# seen, and so much later it has arrived [s].
SEEN, ARRIVED = 2e-3, 0.2


@dataclass(frozen=True)
class Piece:
    """A part of a motion that ends at rest."""

    due: float  # when it takes the place of the one before, in the motion's time [s]
    begin: float  # when its first point is, not later [s]
    points: Waypoints  # the part, with times from there


def in_pieces(
    motion: Waypoints, horizon: float, check: Callable[[Waypoints], object]
) -> list[Piece]:
    """
    Divide a motion from rest to rest into pieces, each at rest a horizon [s] after it is due.

    `check` raises LimitError or CollisionError where a way to rest leaves a limit. A
    TrajectoryError is raised where the motion cannot be stopped in time.
    """
    if horizon < LEAST:
        raise TrajectoryError(
            f'a horizon of {horizon:g} s is too short: set excitation.horizon to {LEAST} or more, '
            'or to 0 for motions that are sent whole'
        )
    time = np.arange(0.0, motion.duration, 0.01)
    moved = np.abs(motion.sample(time).q - motion.q[0]).max(axis=1)
    seen = float(time[np.argmax(moved >= SEEN * moved.max())])
    pieces, due = list[Piece](), 0.0
    while (end := max(due + horizon, seen + ARRIVED + max(STOPPING) * horizon)) < motion.duration:
        for T in (share * horizon for share in STOPPING):
            stop = end - T
            q, dq, ddq = (x[0] for x in motion.sample(np.array([stop])))
            rest, still = q + T * dq / 2.0 + T**2 * ddq / 12.0, np.zeros_like(q)
            ways = [[q, rest], [dq, still], [ddq, still]]
            way = Waypoints(motion.joints, np.array([0.0, T]), *map(np.array, ways))
            try:
                check(way)
            except (LimitError, CollisionError) as error:
                why = error
            else:
                break
        else:
            raise TrajectoryError(
                f'within a horizon of {horizon:g} s the motion cannot be stopped by {end:.2f} s '
                f'({why}): raise excitation.horizon, or set it to 0'
            )
        pieces.append(_piece(motion, due, stop, way))
        due += 0.5 * (stop - due)
    return [*pieces, _piece(motion, due, motion.duration + 1.0)]


def _piece(motion: Waypoints, due: float, stop: float, way: Waypoints | None = None) -> Piece:
    """Return the motion from the last point before an instant on, until it goes another way."""
    begin = int(np.searchsorted(motion.time, due, side='right')) - 1
    rows = slice(begin, int(np.searchsorted(motion.time, stop - 1e-6)))
    parts = [getattr(motion, name)[rows] for name in ('time', 'q', 'dq', 'ddq')]
    if way is not None:
        ends = stop + way.time, way.q, way.dq, way.ddq
        parts = [np.concatenate(pair) for pair in zip(parts, ends, strict=True)]
    time, *rest = parts
    return Piece(due, float(time[0]), Waypoints(motion.joints, time - time[0], *rest))
