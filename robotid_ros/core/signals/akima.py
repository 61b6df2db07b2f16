"""Interpolation by Akima's cubics, which follow a motion without overshoot."""

import numpy as np

from ..arrays import Array

# Of the largest change of a slope: where those to both sides change less, they are alike.
ALIKE = 1e-9


def interpolate(time: Array, values: Array, at: Array) -> Array:
    """
    Interpolate values by piecewise cubics (Akima 1970).

    A polynomial's slope at a sample is the mean of those of the straight lines before and after
    it, each weighted with how much the other side's changes. It is what SciPy's
    `Akima1DInterpolator` gives, whose import takes longer.

    Parameters
    ----------
    time : (N,) increasing, two at least
    values : (N, n)
    at : (M,) within `time`

    Returns
    -------
    (M, n)

    """
    step = np.diff(time)[:, None]
    line = np.diff(values, axis=0) / step
    if len(time) == 2:
        return np.asarray(values[:1] + (at - time[0])[:, None] * line)
    # Two lines more at either end, by parabolas.
    before = [2.0 * line[0] - line[1], 3.0 * line[0] - 2.0 * line[1]]
    after = [2.0 * line[-1] - line[-2], 3.0 * line[-1] - 2.0 * line[-2]]
    lines = np.vstack([before[1], before[0], line, after[0], after[1]])
    change = np.abs(np.diff(lines, axis=0))
    weight = change[2:] + change[:-2]
    slope = 0.5 * (lines[3:] + lines[:-3])
    known = weight > ALIKE * weight.max(initial=0.0)
    mean = change[2:] * lines[1:-2] + change[:-2] * lines[2:-1]
    slope[known] = mean[known] / weight[known]
    place = np.clip(np.searchsorted(time, at, side='right') - 1, 0, len(step) - 1)
    share = (at - time[place])[:, None]
    h, first, last, mid = step[place], slope[place], slope[place + 1], line[place]
    cubic = (first + last - 2.0 * mid) / h**2
    square = (3.0 * mid - 2.0 * first - last) / h
    return np.asarray(values[place] + share * (first + share * (square + share * cubic)))
