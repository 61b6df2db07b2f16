"""Time stamps on one clock, without outliers, evenly spaced where only the stamps jitter."""

import itertools

import numpy as np
import numpy.typing as npt

from ...exceptions import RecordingError
from ..arrays import Array

# A stamp that goes back further than this, or ahead of its reception by more than that [s], is an
# outlier or of a clock that was set: buses and schedulers delay by less.
MAX_STEP_BACK, MAX_STEP_AHEAD = 0.1, 5.0
# Time between two parts where the position jumps too [s]: longer than any gap that is bridged.
SEPARATION = 0.2
# A part with fewer samples is taken for outliers.
MIN_PART_SAMPLES = 100
# Fewer different stamps tell no course of time.
MIN_STAMPS = 20
# Samples at either end of a part whose median tells the offset of its clock.
OFFSET_SAMPLES = 50
# Share of outliers beyond which the stamps are left as they are: no part of them can be trusted.
MAX_ODD_SHARE = 0.2
# A position jumps when it moves by more than this multiple of the largest of the steps before.
JUMP_FACTOR = 5.0
# Jitter below this share of a sample costs nothing. Above, even stamps must make the positions
# this much smoother: of two stamps that are alike, those that were recorded win.
MIN_JITTER, MAX_ROUGHNESS_RATIO = 0.01, 0.7
# What is left of a longer gap on a grid [s]: the whole of it would only fill memory.
MAX_GRID_GAP = 1.0


def undo_clock_jumps(
    stamp: Array, received: Array, position: Array, before: float = 0.0
) -> tuple[Array, npt.NDArray[np.bool_], npt.NDArray[np.float64], list[str]]:
    """
    Join the parts of a recording whose clock was set, by the times of reception.

    Parameters
    ----------
    stamp, received : (N,) [s]
    position : (N, n); where it jumps with the clock, the robot was put somewhere else
    before : duration of the recording before these samples, for the notes [s]

    Returns
    -------
    (N,) stamps on the clock of the first part, (N,) which ones to keep, the jumps [s] that were
    taken back, and notes

    """
    parts = _continuous_parts(stamp, received)
    kept = np.zeros(stamp.size, dtype=bool)
    for part in parts:
        kept[part] = True
    unbroken = kept.all() and len(parts) < 2
    if unbroken or kept.sum() < (1.0 - MAX_ODD_SHARE) * stamp.size:
        return stamp, np.ones(stamp.size, dtype=bool), np.zeros(0), []
    time, jumps, notes = stamp.copy(), [], []
    shift = 0.0
    for early, late in itertools.pairwise(parts):
        jump = _clock_jump(stamp - received, early, late)
        if abs(jump) > MAX_STEP_BACK:
            shift -= jump
            if _position_jumps(position, early.stop - 1, late.start):
                shift += SEPARATION
            jumps.append(jump)
            since = before + time[early.stop - 1] - time[parts[0].start]
            notes.append(
                f'the clock of the stamps jumped by {jump:+.6g} s after {since:.2f} s: taken back '
                'by the times of reception'
            )
        time[late] += shift
    if not kept.all():
        notes.append(f'{int((~kept).sum())} samples with stamps far off were left out')
    return time, kept, np.array(jumps), notes


def _continuous_parts(stamp: Array, received: Array) -> list[slice]:
    """Return the parts between outliers and clock jumps that are long enough to be used."""
    step = np.diff(stamp)
    odd = (step < -MAX_STEP_BACK) | (step - np.diff(received) > MAX_STEP_AHEAD)
    edges = np.concatenate([[0], np.flatnonzero(odd) + 1, [stamp.size]])
    return [slice(a, b) for a, b in itertools.pairwise(edges) if b - a >= MIN_PART_SAMPLES]


def _clock_jump(offset: Array, early: slice, late: slice) -> float:
    """Return by how much the offset of the stamps jumps between two parts [s]."""
    before = np.median(offset[early.stop - OFFSET_SAMPLES : early.stop])
    return float(np.median(offset[late.start : late.start + OFFSET_SAMPLES]) - before)


def _position_jumps(position: Array, last: int, first: int) -> bool:
    """Return whether positions jump between two rows, compared with the steps before."""
    recent = position[max(0, last - OFFSET_SAMPLES) : last + 1]
    usual = np.nanmax(np.abs(np.diff(recent, axis=0)), axis=0)
    return bool(np.any(np.abs(position[first] - position[last]) > JUMP_FACTOR * usual + 1e-4))


def spread_equal_stamps(time: Array, values: Array) -> tuple[Array, str]:
    """
    Spread samples that share a stamp evenly up to the next stamp, where stamps were rounded.

    Parameters
    ----------
    time : (N,) stamps [s]
    values : (N, m) what was measured; samples that repeat one another are repeated messages

    Returns
    -------
    (N,) times, and a note, '' where nothing was changed

    Raises
    ------
    RecordingError : most samples share a few stamps

    """
    same = np.diff(time) == 0.0
    rounded = same & (np.diff(values, axis=0) != 0.0).any(axis=1)
    if rounded.mean() <= MAX_ODD_SHARE:
        return time, ''
    first = np.flatnonzero(np.concatenate([[True], ~same]))
    if len(first) < MIN_STAMPS:
        raise RecordingError(
            f'{len(time)} samples share {len(first)} stamps: record the time of each sample, or '
            'convert the log with its rate'
        )
    steps = np.diff(time[first])
    counts = np.diff(np.concatenate([first, [len(time)]]))
    usual = float(np.median(steps))
    # The next stamp counts unless it lies behind a gap.
    spans = np.append(np.where((steps > 0.0) & (steps < 2.0 * usual), steps, usual), usual)
    place = np.arange(len(time)) - np.repeat(first, counts)
    return np.repeat(time[first], counts) + place * np.repeat(spans / counts, counts), (
        f'{int(rounded.sum())} samples have the stamp of the one before: the stamps are rounded '
        f'to {1e3 * usual:.3g} ms, the samples were spread evenly between them'
    )


def remove_jitter(time: Array, position: Array, step: float) -> tuple[Array, str]:
    """
    Replace stamps that jitter more than the samples themselves by evenly spaced ones.

    A stamp is taken when a message is made, not when the encoder is read. Positions are smooth
    over the times at which they were read, and rough over others.

    Parameters
    ----------
    time : (N,) increasing stamps [s]
    position : (N, n)
    step : usual time between samples [s]

    Returns
    -------
    (N,) times, and a note, '' where nothing was changed

    """
    number = np.concatenate([[0.0], np.cumsum(np.round(np.diff(time) / step))])
    slope, start = np.polyfit(number, time, 1)
    number = np.round((time - start) / slope)
    if np.any(np.diff(number) < 1.0):
        return time, ''
    even = start + slope * number
    jitter = float(np.std(time - even))
    if not MIN_JITTER * step < jitter < step:
        return time, ''
    if _roughness(even, position, step) > MAX_ROUGHNESS_RATIO * _roughness(time, position, step):
        return time, ''
    return even, (
        f'the stamps jitter by {1e3 * jitter:.2f} ms, the samples do not: taken as evenly spaced'
    )


def _roughness(time: Array, position: Array, step: float) -> float:
    """Return the RMS third difference of positions over these times, as share of their range."""
    time = shorten_gaps(time, max(MAX_GRID_GAP, 2.0 * step))
    grid = np.arange(time[0], time[-1], step)
    total = 0.0
    for column in position.T:
        size = float(np.ptp(column))
        if size > 0.0:
            total += float(np.mean((np.diff(np.interp(grid, time, column), 3) / size) ** 2))
    return float(np.sqrt(total))


def shorten_gaps(time: Array, longest: float) -> Array:
    """Return times (N,) whose steps are no longer than this [s]."""
    return np.concatenate([[0.0], np.cumsum(np.minimum(np.diff(time), longest))]) + time[0]
