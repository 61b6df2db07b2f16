"""Anderson's mixing, which speeds up a fixed-point iteration."""

from __future__ import annotations

import numpy as np

from ..arrays import Array

# Full steps that are combined, and the largest sum of |γ|: beyond it the steps are nearly
# parallel, and the extrapolation leaves the region that they describe.
ANDERSON_DEPTH, MAX_MIXING_WEIGHT = 2, 3.0


def anderson_mixing(values: Array, fits: Array, sigma: Array) -> Array | None:
    """
    Extrapolate the newest fit g(χ_k) by Anderson's mixing of the last full steps.

    `χ_{k+1} = g_k − Σ γ_i (g_{i+1} − g_i)`, γ the least squares of `f_k − Σ γ_i (f_{i+1} − f_i)`,
    `f = g − χ` in units of σ. The fixed point of the iteration does not change.

    Parameters
    ----------
    values, fits : (m, b) χ and g(χ) of the last steps, the newest last
    sigma : (b,) standard deviations

    Returns
    -------
    (b,) parameters, or None where the steps are too parallel

    """
    sigma = np.maximum(sigma, 1e-9 * np.abs(fits).max())
    steps = (fits - values) / sigma
    mixing = np.linalg.lstsq(np.diff(steps, axis=0).T, steps[-1], rcond=1e-6)[0]
    if np.abs(mixing).sum() > MAX_MIXING_WEIGHT:
        return None
    return np.asarray(fits[-1] - mixing @ np.diff(fits, axis=0))
