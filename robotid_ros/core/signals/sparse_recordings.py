"""Recordings of which messages are missing all over: how long a gap a motion can be bridged."""

import numpy as np

from ..arrays import Array
from .akima import interpolate
from .filters import motion_bandwidth

# Messages are missing all over where gaps that could be bridged are so many, and so large a share
# of the time: elsewhere a gap is an interruption, and what lies in it is not missed.
MIN_GAPS, MIN_SHARE = 10, 0.1
# Longest gap that is bridged, of a period of the fastest motion: at a fifth of it, positions
# between samples are right to a few per mille of the motion; and in any case [s].
SHARE_OF_PERIOD, MAX_BRIDGED = 0.2, 0.5
# Share of the power of the speeds that makes the motion: what interpolation distorts is not of it.
POWER_SHARE = 0.95


def longest_bridged_gap(
    time: Array, position: Array, usual: float, longest: float
) -> tuple[float, list[str]]:
    """
    Return the longest gap to bridge: a longer one where messages are missing all over.

    Parameters
    ----------
    time, position : (N,) [s], (N, n) of the samples
    usual : time between neighbours [s]
    longest : gap that is bridged anyway [s]

    Returns
    -------
    The longest gap to bridge [s], and a note where it is another one

    """
    steps = np.diff(time)
    if not _missing_all_over(steps, longest, MAX_BRIDGED):
        return longest, []
    squeezed = np.concatenate([[0.0], np.cumsum(np.minimum(steps, MAX_BRIDGED))])
    grid = np.arange(0.0, squeezed[-1], usual)
    motion = interpolate(squeezed, position, grid)
    bandwidth = motion_bandwidth(motion, 1.0 / usual, POWER_SHARE)
    bridged = min(MAX_BRIDGED, SHARE_OF_PERIOD / max(bandwidth, 1e-3))
    if not _missing_all_over(steps, longest, bridged):
        return longest, []
    rate = np.count_nonzero(steps <= bridged) / steps[steps <= bridged].sum()
    return bridged, [
        f'messages are missing all over, {rate:.3g} come in a second: gaps of up to {bridged:.2f} '
        's were interpolated, record without losses for better accelerations'
    ]


def _missing_all_over(steps: Array, longest: float, bridged: float) -> bool:
    gaps = (steps > longest) & (steps <= bridged)
    return bool(gaps.sum() >= MIN_GAPS and steps[gaps].sum() > MIN_SHARE * steps.sum())
