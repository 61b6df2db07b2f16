"""Covariances of estimates whose residuals are correlated."""

import numpy as np

from ..arrays import Array


def with_minimum_variance(covariance: Array, variance: Array) -> Array:
    """
    Enlarge a covariance (b, b) where its variances are below what white noise leaves (b,).

    A fit makes residuals smaller than errors, most along its columns, which hides some of their
    correlation.
    """
    scale = np.sqrt(np.maximum(1.0, variance / np.maximum(np.diag(covariance), 1e-300)))
    return np.asarray(covariance * np.outer(scale, scale))


def batch_covariance(batches: Array, value: Array) -> Array:
    """
    Return the covariance of the sum of scores from triangular factors of [W Y], (K, ·, b + 1).

    A batch outlasts the residual's memory, so that the scores of batches do not correlate.
    """
    W = batches[:, :, :-1]
    scores = np.einsum('krb,kr->kb', W, batches[:, :, -1] - W @ value)
    return np.asarray(scores.T @ scores * len(scores) / max(len(scores) - 1, 1))


def newey_west(scores: Array) -> Array:
    """
    Return the covariance of the sum of scores (N, b), neighbours being correlated.

    Bartlett weights over 4 (N/100)^(2/9) rows (Newey and West 1987, 1994).
    """
    meat = scores.T @ scores
    lags = int(np.ceil(4.0 * (len(scores) / 100.0) ** (2.0 / 9.0)))
    for lag in range(1, min(lags, len(scores) - 1) + 1):
        crossed = scores[lag:].T @ scores[:-lag]
        meat += (1.0 - lag / (lags + 1.0)) * (crossed + crossed.T)
    return np.asarray(meat)
