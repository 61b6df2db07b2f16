"""Whether the controller still follows what it was sent; no ROS in here."""

from collections.abc import Sequence
import time
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.excitation import Waypoints
from ...exceptions import RobotStateError
from ..common.joint_states import reference_positions
from .motion_start import MotionClock

# How often the two are compared [s], and how long they have to differ: whoever steps the system's
# clock moves the stamps, which the recorder tells.
PERIOD, PERSISTENCE = 0.1, 0.25
# What stamps and the estimated start may be off [s].
LATE = 0.05


class ReferenceWatch:
    """
    Compares the controller's reference with the motion that was sent.

    A trajectory on its topic replaces the one of a goal, which then ends well: nobody has checked
    where that goes. The topic's publisher may be one that nobody here has heard of yet.

    Parameters
    ----------
    points : the motion
    tolerance : (n,) how far the reference may be from it [rad or m]

    """

    def __init__(self, points: Waypoints, tolerance: Array):
        self._points, self._tolerance = points, tolerance
        self._compared = -PERIOD
        # When the two began to differ [s], and where the reference was then.
        self._since: float | None = None
        self._left = np.empty(0)

    def check(self, states: Sequence[Any], clock: MotionClock, now: float | None = None) -> None:
        """
        Compare the newest of the controller's states.

        Parameters
        ----------
        states : that the clock has taken in
        clock : time within the motion
        now : time [s], by default that of this machine

        Raises
        ------
        RobotStateError : another motion is followed

        """
        now = time.monotonic() if now is None else now
        # At another speed than the planned one the time within the motion is not exact.
        known = clock.start is not None and clock.exact and not clock.speed
        if not states or not known or now < self._compared + PERIOD:
            return
        self._compared = now
        reference = reference_positions(states[-1], self._points.joints)
        at = np.clip([clock.elapsed], 0.0, self._points.duration)
        motion = self._points.sample(at)
        beyond = np.abs(reference - motion.q[0]) - self._tolerance - LATE * np.abs(motion.dq[0])
        worst = int(np.argmax(beyond))
        if beyond[worst] <= 0.0:
            self._since = None
            return
        if self._since is None:
            self._since, self._left = now, reference
        if now - self._since >= PERSISTENCE:
            away = abs(reference[worst] - motion.q[0, worst])
            stands = np.array_equal(reference, self._left)
            raise RobotStateError(
                f"the controller's reference of {self._points.joints[worst]} "
                f'{"stands" if stands else "is"} {away:.4g} away from the motion that was sent: '
                f'{"it was cancelled" if stands else "somebody else commands it, end that first"}'
            )
