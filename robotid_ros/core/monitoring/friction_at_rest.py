"""How well the friction of a joint at rest is known, by when and how it came to rest."""

import numpy as np

from ..arrays import Array

# External efforts that friction bears are taken to change within this time [s]: a hand's.
FORGOTTEN = 5.0
# After it stopped, what is filtered settles within this time [s]: four time constants of 40/s.
SETTLING_TIME = 0.1


class FrictionAtRest:
    """
    The standard deviation of what friction hides of external efforts.

    A joint that has just come to rest has the friction of its last direction. Later, friction may
    have taken what its effort has changed by; and it bears what changes outside without a sign of
    it. After a while all that it may be is evenly likely, with the variance width²/12.

    Parameters
    ----------
    drives : (d, n) speed of each drive per joint speed; a joint slides with all of its drives
    speed : drives that are faster slide [rad/s or m/s]

    """

    def __init__(self, drives: Array, speed: float):
        self._drives, self._speed = drives, speed
        self._turned = (drives != 0.0).astype(float)
        self._rest = np.full(drives.shape[1], np.inf)
        self._effort = np.zeros(drives.shape[1])

    def sigma(self, dq: Array, effort: Array, width: Array, h: float) -> Array:
        """
        Return the standard deviation (n,) after a step of h [s].

        Parameters
        ----------
        dq, effort : (n,) speeds and external efforts
        width : (n,) of what friction may be

        """
        stuck = np.abs(self._drives @ dq) <= self._speed
        self._rest = np.where(stuck @ self._turned > 0.0, self._rest + h, 0.0)
        self._effort = np.where(self._rest < SETTLING_TIME, effort, self._effort)
        largest = width / np.sqrt(12.0)
        forgotten = 1.0 - np.exp(-self._rest / FORGOTTEN)
        return np.minimum(np.hypot(largest * forgotten, effort - self._effort), largest)
