"""Whether the system clock was set: then stamps and times of reception are no time any more."""

import time

# Change of the clock that is a step [s]: a sample at 50 Hz. Time synchronisation that only slews
# makes none at all, as it slews the steady clock alike.
LEAST_STEP = 0.02
# Readings of which the quickest counts: a thread may lose the processor between two clocks.
READINGS = 3


def read_offset() -> int:
    """Return the time of the system less that of the steady clock [ns]."""
    found = []
    for _ in range(READINGS):
        before, now = time.monotonic_ns(), time.time_ns()
        found.append((time.monotonic_ns() - before, now - before))
    return min(found)[1]


class SystemClock:
    """
    Watches the system clock from now on.

    Attributes
    ----------
    step : by which it was set when `was_set` looked last, 0 where it was not [ns]

    """

    def __init__(self) -> None:
        self._offset, self.step = read_offset(), 0

    def was_set(self) -> bool:
        """Look whether it was set since the beginning."""
        step = read_offset() - self._offset
        self.step = step if abs(step) > LEAST_STEP * 1e9 else 0
        return self.step != 0

    def now(self) -> int:
        """Return the system time as if it had not been set [ns]."""
        return time.time_ns() - self.step
