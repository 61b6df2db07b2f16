"""Values at other times than their own, apart from all that tables need: bags need it alone."""

from collections.abc import Callable

import numpy as np

# Usual intervals between two values beyond which nothing is interpolated.
MAX_SPACING = 4.5


def interpolate(
    wanted: np.ndarray, time: np.ndarray, values: np.ndarray, beyond: float = 0.0
) -> np.ndarray:
    """
    Interpolate values (M, …) at times (M,) linearly at others (N,).

    Returns
    -------
    (N, …), NaN where no two neighbours are near; `beyond` as in `interpolator`

    """
    time, first = np.unique(time, return_index=True)
    near, at = interpolator(wanted, time, MAX_SPACING, beyond)
    flat = values[first].astype(float).reshape(len(first), -1)
    found = np.column_stack([np.where(near, at(column), np.nan) for column in flat.T])
    return found.reshape(len(wanted), *values.shape[1:])


def interpolator(
    wanted: np.ndarray, time: np.ndarray, spacing: float, beyond: float
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """
    Return where times (N,) lie between others, and how to interpolate values (M,) there.

    Not where the others, which grow, are more than `spacing` of their usual intervals apart; still
    as far as `beyond` of one outside their ends.
    """
    if len(time) < 2:
        return np.zeros(len(wanted), dtype=bool), lambda v: np.full(len(wanted), np.nan)
    after = np.clip(np.searchsorted(time, wanted), 1, len(time) - 1)
    usual = float(np.median(np.diff(time)))
    near = time[after] - time[after - 1] <= spacing * usual
    near &= (wanted >= time[0] - beyond * usual) & (wanted <= time[-1] + beyond * usual)
    return near, lambda v: np.interp(wanted - time[0], time - time[0], v)
