"""Whether a motion repeats, told by its positions alone."""

import numpy as np

from ..arrays import Array

# A motion repeats where positions come back within this share of their variance (4 % of their
# standard deviation in each), having been apart by the other one.
REPEATED, MOVED = 1e-3, 0.5
# Least share of the largest standard deviation that counts as a motion of a joint.
STILL = 0.01


def find_repetition(q: Array) -> float | None:
    """
    Return after how many rows a motion repeats, a fraction between rows, or None: it does not.

    The first minimum below `REPEATED` of Σ |q(k + L) − q(k)|² over the sum of squares of both,
    after it has been above `MOVED`. Half of the rows are the longest period.

    Parameters
    ----------
    q : (N, n) positions, uniform in time

    """
    spread = q.std(axis=0)
    if len(q) < 4 or not spread.any():
        return None
    x = (q - q.mean(axis=0)) / np.maximum(spread, STILL * spread.max())
    length, lags = len(x), np.arange(len(x) // 2 + 2)
    power = (np.abs(np.fft.rfft(x, 2 * length, axis=0)) ** 2).sum(axis=1)
    squares = np.concatenate([[0.0], np.cumsum(np.sum(x**2, axis=1))])
    both = squares[length - lags] + squares[-1] - squares[lags]
    apart = 1.0 - 2.0 * np.fft.irfft(power)[lags] / np.maximum(both, 1e-300)
    left, here, right = apart[:-2], apart[1:-1], apart[2:]
    # A parabola through three of them: the period lies between rows.
    bend = np.maximum(left + right - 2.0 * here, 1e-300)
    shift = 0.5 * (left - right) / bend
    lowest = here - 0.25 * (left - right) * shift
    moved = np.maximum.accumulate(here) > MOVED
    found = np.flatnonzero(moved & (here <= left) & (here <= right) & (lowest <= REPEATED))
    return float(1 + found[0] + shift[found[0]]) if len(found) else None
