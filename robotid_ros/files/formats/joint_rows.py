"""Rows of a table that hold joint data, in order: positions and efforts of one time together."""

import math

import numpy as np

Values = dict[str, np.ndarray]
# Rows with efforts and without positions, as a share of those with positions, that are only lost.
MAX_LONELY = 0.1
# Share of steps back in time up to which they are restarts of a clock: newest first has all of
# them, shuffled rows have half.
MAX_RESTARTS = 0.1


def align_rows(stamp: np.ndarray, values: Values) -> tuple[np.ndarray, Values, list[str]]:
    """
    Bring rows into the order of time, and what was logged in rows of its own onto the positions.

    Parameters
    ----------
    stamp : (N,) [ns]
    values : {position, velocity, effort and perhaps more: (N, n)}, NaN where there is none

    Returns
    -------
    The rows that hold positions or efforts, and notes

    """
    notes: list[str] = []
    own = np.asarray(np.isfinite(values['position']).any(axis=1))
    lonely = np.asarray(np.isfinite(values['effort']).any(axis=1) & ~own)
    if not own.any():
        return stamp, values, notes  # which is refused where it is used
    apart = bool(lonely.sum() > MAX_LONELY * own.sum())
    if is_disordered(stamp) or (apart and _one_by_one(stamp, own, lonely)):
        stamp, values = _taken(np.argsort(stamp, kind='stable'), stamp, values)
        notes.append('the rows are not in the order of their stamps: sorted by them')
    if apart:
        parts = [_joined(*_taken(run, stamp, values)) for run in _runs(stamp)]
        stamp = np.concatenate([part for part, _ in parts])
        values = {quantity: np.concatenate([v[quantity] for _, v in parts]) for quantity in values}
        notes.append('positions and efforts are in different rows: interpolated')
    elif not (own | lonely).all():
        held = np.isfinite(values['position']) | np.isfinite(values['effort'])
        stamp, values = _taken(np.flatnonzero(held.any(axis=1)), stamp, values)
        notes.append(f'{own.size - stamp.size} rows without positions and efforts are left out')
    return stamp, values, notes


def is_disordered(time: np.ndarray) -> bool:
    """Whether times (N,) go back more often than a clock that starts again."""
    return time.size > 1 and bool((np.diff(time) < 0).mean() > MAX_RESTARTS)


def _one_by_one(stamp: np.ndarray, own: np.ndarray, lonely: np.ndarray) -> bool:
    """Whether efforts come behind all positions, or before them, with times of their own."""
    return not any(own[run].any() and lonely[run].any() for run in _runs(stamp))


def _runs(stamp: np.ndarray) -> list[np.ndarray]:
    """Return the rows between which stamps grow."""
    return np.split(np.arange(stamp.size), np.flatnonzero(np.diff(stamp) < 0) + 1)


def _taken(rows: np.ndarray, stamp: np.ndarray, values: Values) -> tuple[np.ndarray, Values]:
    return stamp[rows], {quantity: array[rows] for quantity, array in values.items()}


def _joined(stamp: np.ndarray, values: Values) -> tuple[np.ndarray, Values]:
    """Interpolate all else onto the rows that hold positions; stamps grow."""
    own = np.isfinite(values['position']).any(axis=1)
    time = (stamp - stamp[0]).astype(float)
    result = {'position': values['position'][own]}
    for quantity in values.keys() - result.keys():
        found = np.full(result['position'].shape, math.nan)
        for k, column in enumerate(values[quantity].T):
            known = np.isfinite(column)
            if known.any():
                found[:, k] = np.interp(time[own], time[known], column[known], math.nan, math.nan)
        result[quantity] = found
    return stamp[own], result
