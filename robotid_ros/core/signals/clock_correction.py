"""Stamps as they should have been: one clock, no outliers, evenly spaced where jitter hides it."""

import itertools

import numpy as np
import numpy.typing as npt

from ..arrays import Array

# Stamps may be this late or early without a clock having jumped [s]: back, and ahead.
MAX_STEP_BACK, MAX_STEP_AHEAD = 0.1, 5.0
# What is put between parts of a recording where the position jumps too, to tell them apart [s].
SEPARATION = 0.2
MIN_PART_SAMPLES = 100  # samples of a part
MAX_ODD_SHARE = 0.2  # share of samples with odd stamps beyond which nothing is repaired
# Jitter below this share of a sample is not looked at; how much smoother even spacing must be.
MIN_JITTER, MAX_ROUGHNESS_RATIO = 0.01, 0.7


def undo_clock_jumps(
    stamp: Array, received: Array, position: Array, before: float = 0.0
) -> tuple[Array, npt.NDArray[np.bool_], npt.NDArray[np.float64], list[str]]:
    """
    Join the parts of a recording whose clock was set, by the times of reception.

    Parameters
    ----------
    stamp, received : (N,) [s]
    position : (N, n); where it jumps with the clock, the robot was put somewhere else
    before : how much of the recording went before, for what is told [s]

    Returns
    -------
    (N,) stamps on the clock of the first part, (N,) which ones to keep, the jumps [s] that were
    taken back, and what was done, in words

    """
    step = np.diff(stamp)
    odd = (step < -MAX_STEP_BACK) | (step - np.diff(received) > MAX_STEP_AHEAD)
    edges = np.concatenate([[0], np.flatnonzero(odd) + 1, [stamp.size]])
    pieces = [slice(a, b) for a, b in itertools.pairwise(edges)]
    long = [p for p in pieces if p.stop - p.start >= MIN_PART_SAMPLES]
    kept = np.zeros(stamp.size, dtype=bool)
    for piece in long:
        kept[piece] = True
    if len(pieces) == 1 or kept.sum() < (1.0 - MAX_ODD_SHARE) * stamp.size:
        return stamp, np.ones(stamp.size, dtype=bool), np.zeros(0), []
    time, jumps, notes = stamp.copy(), [], []
    shift = 0.0
    for early, late in itertools.pairwise(long):
        tail, head = slice(early.stop - 50, early.stop), slice(late.start, late.start + 50)
        jump = np.median(stamp[head] - received[head]) - np.median(stamp[tail] - received[tail])
        if abs(jump) > MAX_STEP_BACK:
            shift -= jump
            if _position_jumps(position, early.stop - 1, late.start):
                shift += SEPARATION
            jumps.append(float(jump))
            since = before + time[early.stop - 1] - time[long[0].start]
            notes.append(
                f'the clock of the stamps jumped by {jump:+.6g} s after '
                f'{since:.2f} s: taken back by the times of '
                'reception'
            )
        time[late] += shift
    if not kept.all():
        notes.append(f'{int((~kept).sum())} samples with stamps far off were left out')
    return time, kept, np.array(jumps), notes


def _position_jumps(position: Array, last: int, first: int) -> bool:
    """Tell whether positions jump from one row to another, compared with the steps before."""
    usual = np.nanmax(np.abs(np.diff(position[max(0, last - 50) : last + 1], axis=0)), axis=0)
    return bool(np.any(np.abs(position[first] - position[last]) > 5.0 * usual + 1e-4))


def remove_jitter(time: Array, position: Array, step: float) -> tuple[Array, str]:
    """
    Replace stamps that jitter more than the samples themselves by evenly spaced ones.

    A stamp is taken when a message is made, not when the encoder is read. Which of the two is
    even shows in the positions: they are smooth over the right times.

    Parameters
    ----------
    time : (N,) increasing stamps [s]
    position : (N, n)
    step : usual time between samples [s]

    Returns
    -------
    (N,) times, and what was done, '' for nothing

    """
    number = np.concatenate([[0.0], np.cumsum(np.round(np.diff(time) / step))])
    slope, start = np.polyfit(number, time, 1)
    number = np.round((time - start) / slope)
    if np.any(np.diff(number) < 1.0):
        return time, ''
    even = start + slope * number
    jitter = float(np.std(time - even))
    if not MIN_JITTER * step < jitter < step or _roughness(
        even, position, step
    ) > MAX_ROUGHNESS_RATIO * _roughness(time, position, step):
        return time, ''
    return even, (
        f'the stamps jitter by {1e3 * jitter:.2f} ms, the samples do not: taken as evenly spaced'
    )


def _roughness(time: Array, position: Array, step: float) -> float:
    """Return how rough positions look over these times, all joints alike."""
    grid = np.arange(time[0], time[-1], step)
    total = 0.0
    for column in position.T:
        size = float(np.ptp(column))
        if size > 0.0:
            total += float(np.mean((np.diff(np.interp(grid, time, column), 3) / size) ** 2))
    return float(np.sqrt(total))
