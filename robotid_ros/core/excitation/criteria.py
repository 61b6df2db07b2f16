"""
Criteria of a design: each a function of the information matrix S = WᵀW/N, with its gradient.

Every criterion is minimised. The condition numbers are minimised as their logarithms, which scale
better; `Criterion.report` turns the objective into the figure that people compare.
"""

from collections.abc import Callable
from dataclasses import dataclass
import math

import numpy as np

from ...exceptions import UnknownNameError
from ..arrays import Array

# S (b, b) -> objective and ∂objective/∂S (b, b), symmetric.
Objective = Callable[..., tuple[float, Array]]


@dataclass(frozen=True)
class Criterion:
    """
    An objective of S, with its gradient, and what makes of it the figure that people compare.

    One that is smoothable takes a finite `sharpness`.
    """

    name: str
    objective: Objective
    report: Callable[[float], float]
    smoothable: bool = False


def condition(s: Array, sharpness: float = math.inf) -> tuple[float, Array]:
    """
    Return `ln cond(W) = ½ ln(λ_max/λ_min)`, or a smooth bound above it.

    Of sharpness p it is `½ ln(‖λ‖_p ‖1/λ‖_p)`; the larger p, the nearer to the condition number.
    Its gradient is `½ V diag((a − b)/λ) Vᵀ` with a, b the shares of λᵖ and λ⁻ᵖ in their sums.
    """
    values, vectors = np.linalg.eigh(s)
    values = np.maximum(values, 1e-30 * values[-1])
    high, low = (values / values[-1]) ** sharpness, (values[0] / values) ** sharpness
    norms = math.log(high.sum()) + math.log(low.sum())
    objective = 0.5 * (math.log(values[-1] / values[0]) + norms / sharpness)
    weights = 0.5 * (high / high.sum() - low / low.sum()) / values
    return objective, (vectors * weights) @ vectors.T


def normalised_condition(s: Array, sharpness: float = math.inf) -> tuple[float, Array]:
    """Return `ln cond(W D)`, where D scales each column of W to unit norm."""
    scale = 1.0 / np.sqrt(np.diag(s))
    scaled = s * np.outer(scale, scale)
    value, gradient = condition(scaled, sharpness)
    diagonal = np.diag(np.sum(gradient * scaled, axis=1) * scale**2)
    return value, gradient * np.outer(scale, scale) - diagonal


def frobenius(s: Array) -> tuple[float, Array]:
    """Return `ln(‖S‖_F ‖S⁻¹‖_F)`, the Frobenius condition of WᵀW (STICTION eq. 20)."""
    inverse = np.linalg.inv(s)
    norm, inverse_norm = np.sum(s**2), np.sum(inverse**2)
    gradient = s / norm - inverse @ inverse @ inverse / inverse_norm
    return 0.5 * math.log(norm * inverse_norm), gradient


def d_optimal(s: Array) -> tuple[float, Array]:
    """Return `−ln det(S)/b`: D-optimality, per parameter."""
    sign, logarithm = np.linalg.slogdet(s)
    value = -logarithm / len(s) if sign > 0 else math.inf
    return float(value), -np.linalg.inv(s) / len(s)


def subset_d_optimal(s: Array, count: int) -> tuple[float, Array]:
    """
    Return `−ln det(S_pp − S_pf S_ff⁻¹ S_fp)/p`: D-optimality of the first p = `count`.

    The others are estimated too but do not matter (D_S-optimality, Atkinson, Donev and Tobias
    2007, chapter 10.3). Neither units nor the frame of a body change the best motion.
    """
    if count == len(s):
        return d_optimal(s)
    value, gradient = d_optimal(s)
    others, slope = d_optimal(s[count:, count:])
    share, rest = len(s) / count, len(s) / count - 1.0
    gradient = share * gradient
    gradient[count:, count:] -= rest * slope
    return share * value - rest * others, gradient


def prediction_error(s: Array, goal: Array) -> tuple[float, Array]:
    """
    Return `½ ln tr(G S⁻¹)`: V-optimality, the mean square error of prediction.

    `goal` is G (b, b), the mean of wᵀw over the rows to predict (Atkinson, Donev and Tobias 2007,
    chapter 10.6).
    """
    inverse = np.linalg.inv(s)
    squares = float(np.sum(goal * inverse))
    if not squares > 0.0:  # rounding: S is singular
        return math.inf, np.zeros_like(s)
    return 0.5 * math.log(squares), inverse @ goal @ inverse * (-0.5 / squares)


def smallest(s: Array) -> tuple[float, Array]:
    """Return `−σ_min(W)/√N`."""
    values, vectors = np.linalg.eigh(s)
    sigma = math.sqrt(max(values[0], 1e-30 * values[-1]))
    return -sigma, -np.outer(vectors[:, 0], vectors[:, 0]) / (2.0 * sigma)


CRITERIA: dict[str, Criterion] = {
    each.name: each
    for each in (
        Criterion('condition', condition, math.exp, smoothable=True),
        Criterion('normalised_condition', normalised_condition, math.exp, smoothable=True),
        Criterion('frobenius', frobenius, math.exp),
        Criterion('d_optimal', d_optimal, float),
        Criterion('smallest', smallest, float),
    )
}


def criterion(name: str) -> Criterion:
    """Look a criterion up, or raise an `UnknownNameError`."""
    if name not in CRITERIA:
        raise UnknownNameError('criterion', name, tuple(CRITERIA))
    return CRITERIA[name]
