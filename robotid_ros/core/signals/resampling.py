"""From a recording as published to uniform samples, with notes on what was repaired."""

import dataclasses

import numpy as np
import numpy.typing as npt

from ...exceptions import RecordingError
from ..arrays import Array
from .akima import interpolate
from .clock_correction import (
    MAX_GRID_GAP,
    sampling_times,
    SamplingTimes,
    shorten_gaps,
    spread_equal_stamps,
)
from .invalid_samples import find_usable_samples, unwrap_angles
from .recording import Recording
from .samples import SignalSettings
from .sparse_recordings import longest_bridged_gap

# Fewer usable samples identify nothing.
MIN_SAMPLES = 100
# Stamps that lie closer to a uniform grid than this share of a sample need no interpolation.
GRID_TOLERANCE = 1e-3
# More gaps are summed up in one note.
MAX_LISTED_GAPS = 3
# So many gaps that take so large a share of the time are losses and no interruptions.
MANY_GAPS, LARGE_SHARE = 10, 0.5


def resample_uniformly(
    recording: Recording, settings: SignalSettings
) -> tuple[Recording, float, npt.NDArray[np.bool_], list[str]]:
    """
    Bring a recording onto a uniform time grid.

    Returns
    -------
    The recording, its rate [Hz], (N,) whether a sample lies between measured ones that are closer
    than `max_gap`, and notes on what was repaired.

    Raises
    ------
    RecordingError : too short, too many missing values, or stamps that jump back

    """
    recording, spread = _with_distinct_stamps(recording)
    kept, notes = find_usable_samples(recording, settings.max_gap)
    notes = [*recording.notes, *spread, *notes]
    if kept.sum() < MIN_SAMPLES:
        raise RecordingError(
            f'{recording.source or "the recording"} has {int(kept.sum())} usable samples: record '
            f'at least {MIN_SAMPLES}'
        )
    time, effort = recording.time[kept], recording.effort[kept]
    position, jumps = unwrap_angles(recording.position[kept], recording.joints)
    if settings.stamps == 'auto':
        times = sampling_times(time, position, _sampling_period(time))
        if times is not None and times.note:
            time, notes = times.time, [*notes, times.note]
    usual = _sampling_period(time)
    step = usual if settings.rate == 0.0 else 1.0 / settings.rate
    longest = max(settings.max_gap, 1.5 * max(step, usual))
    longest, sparse = longest_bridged_gap(time, position, usual, longest)
    notes += [*jumps, *sparse, *_gap_notes(time, longest, usual)]
    short = shorten_gaps(time, max(MAX_GRID_GAP, longest))
    grid = time[0] + step * np.arange(int(np.floor((short[-1] - short[0]) / step + 0.5)) + 1)
    if grid.size != time.size or np.abs(grid - short).max() >= GRID_TOLERANCE * step:
        # Smooth for the position, which is differentiated; without overshoot for the effort.
        position = interpolate(short, position, np.clip(grid, short[0], short[-1]))
        effort = np.column_stack([np.interp(grid, short, column) for column in effort.T])
    covered = _covered(grid, short, np.flatnonzero(np.diff(time) > longest))
    stamps = grid if short[-1] == time[-1] else np.interp(grid, short, time)
    temperature = recording.temperature
    if temperature is not None:
        temperature = _temperatures_at(grid, short, temperature[kept])
    result = Recording(
        recording.joints,
        stamps,
        position,
        effort,
        source=recording.source,
        temperature=temperature,
    )
    return result, 1.0 / step, covered, notes


def is_finite(recording: Recording) -> npt.NDArray[np.bool_]:
    """Return which samples (N,) have a time, positions and efforts."""
    finite = np.isfinite(recording.effort).all(axis=1) & np.isfinite(recording.time)
    return np.asarray(finite & np.isfinite(recording.position).all(axis=1))


def sampling_times_of(recording: Recording) -> SamplingTimes | None:
    """Return when the finite samples were taken; None as of `sampling_times`, and out of order."""
    good = is_finite(recording)
    time = recording.time[good]
    if time.size < MIN_SAMPLES or np.any(np.diff(time) <= 0.0):
        return None
    position, _ = unwrap_angles(recording.position[good], recording.joints)
    return sampling_times(time, position, _sampling_period(time))


def with_sampling_times(recording: Recording) -> Recording:
    """Return the recording without the jitter of its stamps that samples do not have, noted."""
    times = sampling_times_of(recording)
    if times is None or not times.note:
        return recording
    time: Array = np.full(recording.time.shape, np.nan)
    time[is_finite(recording)] = times.time
    return dataclasses.replace(recording, time=time, notes=(*recording.notes, times.note))


def _with_distinct_stamps(recording: Recording) -> tuple[Recording, list[str]]:
    """Return the recording with a time for each sample, and a note where it had none."""
    values = np.column_stack([recording.position, recording.effort])
    time, note = spread_equal_stamps(recording.time, values)
    return (dataclasses.replace(recording, time=time), [note]) if note else (recording, [])


def _covered(grid: Array, time: Array, gaps: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Return which times of the grid do not lie in gaps, given by the samples before them."""
    covered = np.ones(grid.size, dtype=bool)
    first = np.searchsorted(grid, time[gaps], 'right')
    for start, stop in zip(first, np.searchsorted(grid, time[gaps + 1]), strict=True):
        covered[start:stop] = False
    return covered


def _temperatures_at(grid: Array, time: Array, values: Array) -> Array:
    """Interpolate temperatures (N, n) between those that are numbers; NaN of a joint without."""
    found = np.full((len(grid), values.shape[1]), np.nan)
    for column, own in zip(found.T, values.T, strict=True):
        known = np.isfinite(own)
        if known.any():
            column[:] = np.interp(grid, time[known], own[known])
    return found


def _sampling_period(time: Array) -> float:
    """Return the time between neighbours: the mean, as stamps since 1970 resolve 0.2 µs only."""
    steps = np.diff(time)
    usual = np.median(steps)
    return float(np.mean(steps[np.abs(steps - usual) <= 0.5 * usual]))


def _gap_notes(time: Array, longest: float, usual: float) -> list[str]:
    """Describe gaps that are left out and samples that are missing between others."""
    steps = np.diff(time)
    gaps = np.flatnonzero(steps > longest)
    if gaps.size > MAX_LISTED_GAPS:
        lost = float(steps[gaps].sum())
        notes = [f'nothing was recorded for {lost:.2f} s in {gaps.size} gaps: left out']
        if gaps.size >= MANY_GAPS and lost > LARGE_SHARE * steps.sum():
            share = 100.0 * lost / steps.sum()
            notes = [
                f'{notes[0]}, which is {share:.0f} % of the time; the parameters are those of a '
                'few short bursts and may be far off, record without losses'
            ]
    else:
        notes = [
            f'nothing was recorded for {steps[gap]:.2f} s at {time[gap]:.2f} s: left out'
            for gap in gaps
        ]
    missing = int(np.sum(np.round(steps[steps <= longest] / usual) - 1.0))
    if missing > 0:
        notes.append(f'{missing} of {time.size + missing} samples are missing: interpolated')
    return notes
