"""Joint states on one clock, whole or chunk by chunk, whenever a clock was set meanwhile."""

from collections.abc import Iterable, Iterator
import dataclasses

import numpy as np
import numpy.typing as npt

from ...core.finding_codes import finding
from ...core.findings import Finding
from ...core.signals.clock_correction import undo_clock_jumps
from ..formats.joint_table import concatenate, JointTable

# Messages of a chunk that wait for the next one, as a jump shows from both of its sides: ten times
# what a part between two jumps must hold to be kept.
OVERLAP = 1000
OFFSET_TOLERANCE = 1000  # offsets of one clock differ by rounding only [ns]


@dataclasses.dataclass(frozen=True)
class Clock:
    """How times of reception and stamps of joint states, not necessarily all, go together."""

    received: npt.NDArray[np.int64]  # (N,) [ns]
    stamp: npt.NDArray[np.int64]  # (N,) on one clock [ns]
    jumped: bool  # whether the clock of the stamps was set meanwhile

    def stamp_of(self, received: int) -> int:
        """Return the stamp [ns] that belongs to a time of reception [ns]."""
        if not self.jumped:
            # With simulated time the two are different clocks; a constant apart is enough.
            return received + int(np.median(self.stamp - self.received))
        return _interpolated(received, self.received, self.stamp)

    def received_at(self, stamp: int) -> int:
        """Return the time of reception [ns] that belongs to a stamp [ns]."""
        return _interpolated(stamp, self.stamp, self.received)


def _interpolated(at: int, x: npt.NDArray[np.int64], y: npt.NDArray[np.int64]) -> int:
    return int(y[0]) + round(float(np.interp(at - int(x[0]), x - x[0], y - y[0])))


def on_one_clock(
    states: JointTable, before: float = 0.0
) -> tuple[JointTable, npt.NDArray[np.bool_], bool]:
    """
    Join what was recorded before and after a clock was set, `before` seconds after a beginning.

    Returns the states on the first clock, which ones to keep, and whether a clock jumped.
    """
    origin, began = states.stamp[0], states.received[0]
    time, kept, jumps, notes = undo_clock_jumps(
        (states.stamp - origin) * 1e-9, (states.received - began) * 1e-9, states.position, before
    )
    if kept.all() and not jumps.size:
        return states, kept, False
    stamp = origin + np.round(time * 1e9).astype(np.int64)
    fixed = dataclasses.replace(states, stamp=stamp, notes=(*states.notes, *notes))
    return fixed, kept, bool(jumps.size)


def correct_clock_chunks(tables: Iterable[JointTable]) -> Iterator[tuple[JointTable, bool]]:
    """
    Join successive chunks of one recording on the clock of the first, in bounded memory.

    Yields chunks of about the same size, up to `OVERLAP` messages later, and whether a clock
    jumped.
    """
    overlap: JointTable | None = None
    rest: JointTable | None = None
    origin, shift = None, 0
    for states in tables:
        raw = states if overlap is None else concatenate(overlap, states)
        origin = raw.stamp[0] if origin is None else origin
        fixed, kept, jumped = on_one_clock(raw, float(raw.stamp[0] + shift - origin) * 1e-9)
        offset = fixed.stamp - raw.stamp
        last = int(np.flatnonzero(kept)[-1])
        others = np.flatnonzero(kept & (np.abs(offset - offset[last]) > OFFSET_TOLERANCE))
        # The overlap is of one clock, the last.
        cut = max(len(raw.stamp) - OVERLAP, int(others[-1]) + 1 if others.size else 0)
        fixed = dataclasses.replace(fixed, stamp=fixed.stamp + shift)
        if kept[:cut].any():
            yield fixed.rows(np.flatnonzero(kept[:cut])), jumped
        rest = dataclasses.replace(fixed.rows(np.flatnonzero(kept[cut:]) + cut), notes=())
        overlap, shift = raw.rows(slice(cut, None)), shift + int(offset[last])
    if rest is not None and len(rest.stamp):
        yield rest, False


# Difference of two clocks in the course of a recording that is no accident: relative, above what
# crystals differ by and busy machines hold up, and absolute [s].
MIN_DRIFT, MIN_SECONDS = 0.02, 0.3
# Beyond this factor times of reception tell no time: they are those of a conversion.
MAX_FACTOR = 2.0
# Share of the messages at either end whose median counts: single ones are held up.
END_SHARE, MIN_MESSAGES = 0.02, 20
SIMULATED = 1e8  # stamps before this count from a simulation's start, not from 1970 [s]


def drift_notes(
    stamp: npt.NDArray[np.int64], received: npt.NDArray[np.int64]
) -> tuple[Finding, ...]:
    """Tell of stamps (N,) [ns] that take longer or shorter than their reception, (N,) [ns]."""
    if len(stamp) < MIN_MESSAGES:
        return ()
    ends = max(1, int(END_SHARE * len(stamp)))
    # Joint states may have been put in order; differences, for nanoseconds of 1970 round.
    offset = (stamp - stamp[0]) - (received - received[0])
    passed, told = (float(x[-1] - x[0]) * 1e-9 for x in (received, stamp))
    drift = float(np.median(offset[-ends:]) - np.median(offset[:ends])) * 1e-9
    converted = passed <= 0.0 or not 1.0 / MAX_FACTOR < told / passed < MAX_FACTOR
    if converted or abs(drift) < max(MIN_DRIFT * passed, MIN_SECONDS):
        return ()
    figures = {'stamped': told, 'received': passed, 'share': drift / passed}
    if stamp[0] * 1e-9 < SIMULATED:
        return (finding('simulated_time', **figures),)
    return (finding('clock_drifts', inertia=abs(2.0 * drift / passed), **figures),)
