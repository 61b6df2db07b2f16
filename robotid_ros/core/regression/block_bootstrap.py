"""Resampling: the block bootstrap of an estimate, and cross-validation by periods."""

import dataclasses

import numpy as np

from ...exceptions import ConfigurationError, RecordingError
from ..arrays import Array, diagonal_scale
from .estimators import fit, WHITEN, WHITENED
from .observation_system import System

# Methods with one weight per joint: Gram matrices of blocks are all that a draw needs.
LINEAR = ('ols', 'wls', 'mle')
# Blocks have to outlast the correlation of residuals: seconds, of recordings of minutes. 500 draws
# leave 3 % of noise in a σ, 1/√(2·500).
BLOCKS, DRAWS = 50, 500
MIN_BLOCKS = 10  # fewer are no population to draw from


def bootstrap(system: System, method: str = 'wls', draws: int = DRAWS) -> Array:
    """
    Return the covariance (b, b) of an estimate by the block bootstrap (Künsch 1989).

    Blocks are intervals of time, the same for all joints, so that residuals may correlate within
    and across joints. Weights stay as they are.

    Parameters
    ----------
    system : rows of all joints, or triangular factors of successive batches
    method : of the estimator: 'ols', 'wls' or 'mle'
    draws : estimates to take the covariance of

    Raises
    ------
    ConfigurationError : another method
    RecordingError : the recording is too short

    """
    if method not in LINEAR:
        raise ConfigurationError(
            f"the bootstrap knows the methods {', '.join(LINEAR)}, not '{method}': "
            "set identification.covariance to 'model_error'"
        )
    grams = _grams(system, method)
    prior = np.zeros(grams.shape[1:])
    if system.prior is not None and method in WHITENED:
        rows = np.column_stack(system.prior.rows)
        prior = rows.T @ rows
    whole = grams.sum(axis=0) + prior
    units = diagonal_scale(whole)
    grams, prior, whole = (each / np.outer(units, units) for each in (grams, prior, whole))
    scale = units[-1] / units[:-1]
    rng = np.random.default_rng(0)
    values = np.empty((draws, len(scale)))
    for k, chosen in enumerate(rng.integers(len(grams), size=(draws, len(grams)))):
        total = grams[chosen].sum(axis=0) + prior
        values[k] = np.linalg.lstsq(total[:-1, :-1], total[:-1, -1], rcond=1e-12)[0]
    # A sample of K blocks varies by (K − 1)/K of what the population does.
    correction = len(grams) / (len(grams) - 1)
    bread = np.linalg.pinv(whole[:-1, :-1])
    known = bread @ prior[:-1, :-1] @ bread / np.outer(units[:-1], units[:-1])
    return np.asarray(np.cov(values * scale, rowvar=False) * correction + known)


def _grams(system: System, method: str) -> Array:
    """Return [W Y]ᵀ Ω² [W Y] of each block (K, b + 1, b + 1)."""
    joint_rows = [system.rows(j) for j in range(len(system.joints))]
    weights = [w[0] if len(w) else 0.0 for w in WHITEN[method](joint_rows, system, None)]
    if system.batches is not None:
        return np.asarray(
            sum(w**2 * np.swapaxes(R, 1, 2) @ R
                for w, R in zip(weights, system.batches, strict=True))
        )  # fmt: skip
    count = min(BLOCKS, system.W.shape[1] // 2)
    if count < MIN_BLOCKS:
        raise RecordingError('too few rows are left to draw blocks from: record longer')
    rows = np.concatenate([system.W, system.Y[:, :, None]], axis=2)
    rows = rows * (system.valid * np.array(weights)[:, None])[:, :, None]
    parts = np.array_split(rows, count, axis=1)
    return np.array([np.einsum('jra,jrb->ab', part, part, optimize=True) for part in parts])


def leave_one_out(system: System, period: float, method: str = 'wls') -> Array:
    """
    Predict each period of a motion from all others: relative residuals (M, n).

    Parameters
    ----------
    system : rows of all joints
    period : of the motion [s]
    method : of the estimator

    Raises
    ------
    RecordingError : fewer than two periods, or no rows by time

    """
    number = np.floor((system.time - system.time[0]) / period).astype(int)
    counts = np.bincount(number)
    whole = np.flatnonzero(counts > 0.5 * counts.max())
    if system.batches is not None or len(whole) < 2:
        raise RecordingError(
            'to leave a period out takes two or more in memory: record another period'
        )
    result = np.empty((len(whole), len(system.joints)))
    for row, period_number in enumerate(whole):
        inside = number == period_number
        rest = dataclasses.replace(system, valid=system.valid & ~inside)
        held_out = dataclasses.replace(system, valid=system.valid & inside)
        result[row] = held_out.relative_residual(fit(rest, method).value)
    return result
