"""Stamps against times of reception: a clock that runs faster or slower than the recorder's."""

import numpy as np
import numpy.typing as npt

# Difference of two clocks in the course of a recording that is no accident: relative, above what
# crystals differ by and busy machines hold up, and absolute [s].
MIN_DRIFT, MIN_SECONDS = 0.02, 0.3
# Beyond this factor times of reception tell no time: they are those of a conversion.
MAX_FACTOR = 2.0
# Share of the messages at either end whose median counts: single ones are held up.
END_SHARE, MIN_MESSAGES = 0.02, 20
SIMULATED = 1e8  # stamps before this count from a simulation's start, not from 1970 [s]


def drift_notes(stamp: npt.NDArray[np.int64], received: npt.NDArray[np.int64]) -> tuple[str, ...]:
    """
    Tell of stamps that take longer or shorter than the reception of their messages.

    Parameters
    ----------
    stamp, received : (N,) of joint states, on one clock each [ns]

    """
    count = len(stamp)
    if count < MIN_MESSAGES:
        return ()
    ends = max(1, int(END_SHARE * count))
    # Joint states may have been put in order; differences, for nanoseconds of 1970 round.
    offset = (stamp - stamp[0]) - (received - received[0])
    passed, told = (float(x[-1] - x[0]) * 1e-9 for x in (received, stamp))
    drift = float(np.median(offset[-ends:]) - np.median(offset[:ends])) * 1e-9
    if passed <= 0.0 or not 1.0 / MAX_FACTOR < told / passed < MAX_FACTOR:
        return ()
    if abs(drift) < max(MIN_DRIFT * passed, MIN_SECONDS):
        return ()
    percent = 100.0 * drift / passed
    why = (
        'the stamps are of simulated time: right, if the simulation was not as fast as real time'
        if stamp[0] * 1e-9 < SIMULATED
        else 'right, if a bag was replayed at another speed; else the clock of the stamps is '
        f'wrong, and speeds are off by as much, inertias by {abs(2.0 * percent):.0f} %'
    )
    return (
        f'the stamps span {told:.1f} s, the reception of their messages {passed:.1f} s '
        f'({percent:+.0f} %): {why}',
    )
