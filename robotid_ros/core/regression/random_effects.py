"""Estimates of the same parameters from several sessions or robots: do they agree, and on what."""

import dataclasses

import numpy as np
from scipy.special import chdtrc

from ..arrays import Array, ReadOnlyArrays


@dataclasses.dataclass(frozen=True)
class RandomEffects(ReadOnlyArrays):
    """
    What K groups have in common, x_k = μ + u_k + e_k with u_k ~ N(0, τ²) and e_k ~ N(0, σ_k²).

    Attributes
    ----------
    mean, sigma : (b,) μ and its standard error
    between : (b,) τ
    statistic : (b,) Cochran's Q = Σ (x_k − x̄)²/σ_k²
    p : (b,) of Q where τ = 0, χ² with K − 1 degrees of freedom

    """

    mean: Array
    sigma: Array
    between: Array
    statistic: Array
    p: Array


def random_effects(values: Array, sigmas: Array) -> RandomEffects:
    """
    Estimate by moments what groups (K, b), K > 1, have in common (DerSimonian and Laird 1986).

    The standard error is that of Hartung and Knapp (2001), never below the one with τ known
    (Röver, Knapp and Friede 2015): of a few groups τ itself is uncertain.
    """
    variance = np.maximum(sigmas, 1e-300) ** 2
    # Weights relative to the largest, so that nothing overflows.
    scale = variance.min(axis=0)
    w = scale / variance
    centre = (w * values).sum(axis=0) / w.sum(axis=0)
    statistic = (w * (values - centre) ** 2).sum(axis=0) / scale
    freedom = len(values) - 1
    spread = (w.sum(axis=0) - (w**2).sum(axis=0) / w.sum(axis=0)) / scale
    between = np.sqrt(np.maximum(statistic - freedom, 0.0) / np.maximum(spread, 1e-300))
    total = variance + between**2
    scale = total.min(axis=0)
    w = scale / total
    mean = (w * values).sum(axis=0) / w.sum(axis=0)
    excess = (w * (values - mean) ** 2).sum(axis=0) / scale / freedom
    sigma = np.sqrt(np.maximum(excess, 1.0) * scale / w.sum(axis=0))
    return RandomEffects(mean, sigma, between, statistic, chdtrc(freedom, statistic))


def holm(p: Array) -> Array:
    """Return p-values (…,) adjusted so that the chance of any false one is bounded (Holm 1979)."""
    flat = np.ravel(p)
    order = np.argsort(flat)
    factors = np.arange(len(flat), 0, -1)
    adjusted = np.empty(len(flat))
    adjusted[order] = np.minimum(np.maximum.accumulate(flat[order] * factors), 1.0)
    return adjusted.reshape(np.shape(p))


def agreement(values: Array, sigmas: Array) -> tuple[float, int, int]:
    """
    Test whether sessions (K, b) agree on all parameters: Cochran's Q with Holm's correction.

    Returns the probability of so large a disagreement in any parameter, where there is none, and
    the places of the parameter that agrees least, and of the session in it.
    """
    found = random_effects(values, sigmas)
    parameter = int(np.argmin(found.p))
    # Where all round to zero, the largest statistic tells them apart.
    if found.p[parameter] == 0.0:
        parameter = int(np.argmax(found.statistic))
    rest = np.abs(values[:, parameter] - np.median(values[:, parameter]))
    session = int(np.argmax(rest / np.maximum(sigmas[:, parameter], 1e-300)))
    return float(holm(found.p).min()), parameter, session
