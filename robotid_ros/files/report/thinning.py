"""Series of any length as few points, the peaks kept, and the time axis that they share."""

from collections.abc import Mapping
import itertools
from typing import NamedTuple

import numpy as np

from ...core.regression.validation import Validation

# A break: nothing recorded for so many usual steps.
BREAK = 10.0
# Share of a recording that its torques cover, below which its stretches are set side by side: the
# samples of a long recording cover little of it, those of one with gaps more.
MIN_COVERAGE = 0.6
# Between stretches set side by side, and between two phases, as a share of the time shown.
SPACING = 0.01


def breaks(time: np.ndarray) -> np.ndarray:
    """Return the rows before which nothing was recorded for longer than ten usual steps."""
    steps = np.diff(time)
    if not steps.size:
        return np.array([], dtype=int)
    return np.flatnonzero(steps > BREAK * np.median(steps)) + 1


def thin(time: np.ndarray, columns: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """
    Reduce series for drawing to the least and the largest value of each of `rows`/2 bins.

    A break in time becomes a row of NaN, so that the line breaks too. Times (N,) and values (N, k)
    of more rows than that become about so many, (M,) and (M, k).
    """
    gaps = breaks(time)
    if len(time) > rows:
        size = -(-len(time) // max(rows // 2, 1))
        starts = np.unique([*range(0, len(time), size), *gaps])
        lasts = np.append(starts[1:], len(time)) - 1
        low = np.minimum.reduceat(columns, starts, axis=0)
        high = np.maximum.reduceat(columns, starts, axis=0)
        rising = columns[starts] <= columns[lasts]
        pairs = np.stack([np.where(rising, low, high), np.where(rising, high, low)], axis=1)
        gaps = 2 * np.searchsorted(starts, gaps)
        time = np.stack([time[starts], time[lasts]], axis=1).ravel()
        columns = pairs.reshape(-1, columns.shape[1])
    return np.insert(time, gaps, np.nan), np.insert(columns, gaps, np.nan, axis=0)


def longest_stretch(time: np.ndarray) -> slice:
    """Return the rows of the longest stretch without a break."""
    edges = [0, *breaks(time), len(time)]
    return max((slice(a, b) for a, b in itertools.pairwise(edges)), key=lambda s: s.stop - s.start)


class PlacedMotion(NamedTuple):
    """A motion on the time axis of the page."""

    name: str  # 'identification' or 'validation'
    data: Validation
    place: np.ndarray  # (N,) where its rows stand on the axis [s]
    stretches: int  # of a long recording that are set side by side; 1: none


def phases(torques: Mapping[str, Validation]) -> tuple[PlacedMotion, ...]:
    """Place the motions on one time axis: at their own times where these do not overlap."""
    found = [
        PlacedMotion(name, torques[name], *_side_by_side(torques[name].time))
        for name in ('identification', 'validation')
        if name in torques and len(torques[name].time) > 1
    ]
    if len(found) < 2:
        return tuple(found)
    first, second = found
    between, spans = second.place[0] - first.place[-1], [np.ptp(each.place) for each in found]
    if not 0.0 < between <= 2.0 * spans[0] or max(first.stretches, second.stretches) > 1:
        place = second.place - second.place[0] + first.place[-1] + SPACING * sum(spans)
        second = second._replace(place=place)
    return first, second


def _side_by_side(time: np.ndarray) -> tuple[np.ndarray, int]:
    """Return times without the long breaks of a recording that is covered in part only."""
    found = breaks(time)
    edges = [0, *found, len(time)]
    covered = sum(time[b - 1] - time[a] for a, b in itertools.pairwise(edges))
    if not found.size or covered > MIN_COVERAGE * (time[-1] - time[0]):
        return time, 1
    shift = np.zeros(len(time))
    shift[found] = time[found] - time[found - 1] - SPACING * covered
    return time - time[0] - np.cumsum(shift), len(found) + 1
