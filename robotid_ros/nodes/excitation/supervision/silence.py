"""How long a source has been silent, by a clock that a busy machine cannot hurry; no ROS here."""

# What one look can add to a silence [s]: a process that had no processor for longer has not
# listened meanwhile. Five such looks are needed for the default of `stale_after`.
LONGEST_STEP = 0.05


class Silence:
    """
    Adds up the time in which a source was listened to in vain.

    Parameters
    ----------
    now : when it begins [s, any monotonic clock]

    """

    def __init__(self, now: float):
        self._last, self._silence = now, 0.0

    def update(self, now: float, *, heard: bool) -> float:
        """Look at a time, at which something was heard or not; return the silence [s]."""
        step, self._last = min(now - self._last, LONGEST_STEP), now
        self._silence = 0.0 if heard else self._silence + step
        return self._silence
