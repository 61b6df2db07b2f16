"""Measured velocities beside the derivatives of positions: they tell wrong times and units."""

import numpy as np

from ..arrays import Array
from ..findings import Finding, finding

# A velocity that is a multiple of the position's derivative: correlation, share of the slopes that
# count.
MIN_CORRELATION, WITHOUT_JUMPS = 0.9, 0.99
# Samples over which both are compared where neighbours are too noisy, or polled and repeated.
SPAN = 5
# Rows of a long log that are compared, and the parts of it that they are from.
MANY, PARTS = 100_000, 50
# A factor that is nearer to 1 is the filter of a drive. Velocities in other units of all joints,
# degrees, turns a minute or a second, are no fault: no identification uses their size.
MIN_DEVIATION, SAME_UNIT = 0.15, 0.02
OTHER_UNITS = np.array([180.0, 30.0, 0.5]) / np.pi


def velocity_ratios(time: Array, position: Array, other: Array) -> Array:
    """Return the ratios (n,) of values to the derivatives of positions, (N, n) at times (N,)."""
    if len(time) > MANY:  # parts of it all over tell as much
        parts = np.linspace(0, len(time) - MANY // PARTS, PARTS).astype(int)
        rows = (parts[:, None] + np.arange(MANY // PARTS)).ravel()
        time, position, other = time[rows], position[rows], other[rows]
    ratios = np.full(position.shape[1], np.nan)
    # Differences of neighbours, else over more samples.
    for span in (1, SPAN):
        steps = (time[span:] - time[:-span])[:, None]
        with np.errstate(all='ignore'):
            slope = (position[span:] - position[:-span]) / steps
            areas = 0.5 * (other[1:] + other[:-1]) * np.diff(time)[:, None]
            middle = sum(areas[k : k + len(steps)] for k in range(span)) / steps
            for k in np.flatnonzero(np.isnan(ratios)):
                a, b = slope[:, k], middle[:, k]
                good = np.isfinite(a) & np.isfinite(b) & (steps[:, 0] > 0.0)
                if good.sum() < 10:
                    continue
                # Jumps of the position have no part in its velocity.
                good &= np.abs(a) <= np.quantile(np.abs(a[good]), WITHOUT_JUMPS)
                if np.corrcoef(a[good], b[good])[0, 1] > MIN_CORRELATION:
                    ratios[k] = np.std(b[good]) / np.std(a[good])
    return ratios


def velocity_warnings(
    joints: tuple[str, ...], time: Array, position: Array, velocity: Array | None
) -> list[Finding]:
    """Name the joints whose velocities (N, n) are not the derivatives of their positions."""
    if velocity is None:
        return []
    ratios = velocity_ratios(time, position, velocity)
    known = np.isfinite(ratios)
    off = known & (np.abs(np.log(np.where(known, ratios, 1.0))) > np.log1p(MIN_DEVIATION))
    if not off.any():
        return []
    usual = float(np.median(ratios[known]))
    alike = bool((np.abs(ratios[known] / usual - 1.0) < MIN_DEVIATION).all())
    if alike and (np.abs(usual / OTHER_UNITS - 1.0) < SAME_UNIT).any():
        return []
    rate = usual / float(np.median(np.diff(time))) if alike else None
    names = [joints[j] for j in np.flatnonzero(off)]
    return [finding('velocities_unlike', names, ratios=ratios[off], rate=rate)]
