"""Estimates: values, their uncertainty, residuals; and whether several of them agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from importlib import import_module
from typing import Any

import numpy as np

from ...exceptions import ConfigurationError
from ..arrays import Array, Indices, ReadOnlyArrays


def data_frame(name: str, index: Sequence[str], columns: Mapping[str, Iterable[Any]]) -> Any:
    """Return a `pandas.DataFrame` of rows of this name; ConfigurationError without pandas."""
    try:
        pandas = import_module('pandas')
    except ImportError as error:
        raise ConfigurationError('this table needs pandas: pip install pandas') from error
    return pandas.DataFrame(columns, index=pandas.Index(index, name=name))


@dataclasses.dataclass(frozen=True)
class Estimate(ReadOnlyArrays):
    """Estimated parameters with their uncertainty."""

    names: tuple[str, ...]  # of the b parameters
    units: tuple[str, ...]  # likewise
    value: Array  # (b,)
    # (b, b) of the estimate, residuals taken as they are (correlated in time), with `model_error`.
    covariance: Array
    classical: Array  # (b, b) covariance if the residuals were white
    residual: Array  # (n,) relative residual per joint, ‖Y_j − W_j χ‖/‖Y_j‖
    total_residual: float  # relative residual of all joints together
    sigma_torque: Array  # (n,) standard deviation of the joints' residuals [N·m or N]
    rows: Indices  # (n,) rows used per joint, after decimation
    # Singular values of the weighted rows, columns of length one; of a mixed model, its plain fit.
    singular: Array
    method: str  # 'ols', 'wls', ...
    # (b, b) part of the covariance that counts what the model leaves out, or None.
    model_error: Array | None = None
    # (b, b) covariance without model errors, if blocks were many, or None: `covariance`.
    of_noise: Array | None = None
    # Places of the parameters that a prior knows better than the data; none without.
    from_prior: tuple[int, ...] = ()

    @property
    def condition_number(self) -> float:
        """Condition number of the weighted rows, columns scaled to length one."""
        return float(self.singular[0] / self.singular[-1])

    @property
    def noise_covariance(self) -> Array:
        """Covariance (b, b) of the estimate if the model left nothing out."""
        return self.covariance if self.of_noise is None else self.of_noise

    @property
    def reducible_covariance(self) -> Array:
        """Covariance (b, b) that more motion reduces: without what the model leaves out."""
        return self.covariance - (0.0 if self.model_error is None else self.model_error)

    @property
    def sigma(self) -> Array:
        """Standard deviation of each parameter (b,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def relative_sigma(self) -> Array:
        """%σ = 100 σ/|χ| (b,); inf for a parameter that is zero."""
        with np.errstate(divide='ignore', invalid='ignore'):
            return np.where(self.value == 0.0, np.inf, 100.0 * self.sigma / np.abs(self.value))

    def select(self, kept: Indices) -> Estimate:
        """Return the estimate of some of the parameters, the others as they are."""
        parts: dict[str, Any] = {}
        for name in ('covariance', 'classical', 'model_error', 'of_noise'):
            matrix = getattr(self, name)
            parts[name] = None if matrix is None else matrix[np.ix_(kept, kept)]
        for name in ('names', 'units'):
            parts[name] = tuple(getattr(self, name)[k] for k in kept)
        known = tuple(i for i, k in enumerate(kept) if k in self.from_prior)
        return dataclasses.replace(self, value=self.value[kept], from_prior=known, **parts)

    def __repr__(self) -> str:
        return (
            f'<{len(self.names)} parameters by {self.method}, '
            f'{100.0 * self.total_residual:.2f} % of the torque left>'
        )

    def to_pandas(self) -> Any:
        """Return the parameters as a `pandas.DataFrame`: value, sigma, percent, unit."""
        columns = {'value': self.value, 'sigma': self.sigma, 'percent': self.relative_sigma}
        return data_frame('parameter', self.names, {**columns, 'unit': self.units})


@dataclasses.dataclass(frozen=True)
class RandomEffects(ReadOnlyArrays):
    """What K groups share, x_k = μ + u_k + e_k with u_k ~ N(0, τ²) and e_k ~ N(0, σ_k²)."""

    mean: Array  # (b,) μ
    sigma: Array  # (b,) its standard error
    between: Array  # (b,) τ
    statistic: Array  # (b,) Cochran's Q = Σ (x_k − x̄)²/σ_k²
    p: Array  # (b,) of Q where τ = 0, χ² with K − 1 degrees of freedom


def random_effects(values: Array, sigmas: Array) -> RandomEffects:
    """
    Estimate by moments what groups (K, b), K > 1, have in common (DerSimonian and Laird 1986).

    The standard error is that of Hartung and Knapp (2001), never below the one with τ known
    (Röver, Knapp and Friede 2015): of a few groups τ itself is uncertain.
    """
    from scipy.special import chdtrc  # who only reads results starts without it

    variance, freedom = np.maximum(sigmas, 1e-300) ** 2, len(values) - 1

    def weighted(variance: Array) -> tuple[Array, Array, Array, Array]:
        """Return weights relative to the largest, so that nothing overflows; mean, χ², scale."""
        scale = variance.min(axis=0)
        w = scale / variance
        mean = (w * values).sum(axis=0) / w.sum(axis=0)
        return w, mean, (w * (values - mean) ** 2).sum(axis=0) / scale, scale

    w, _, statistic, scale = weighted(variance)
    spread = (w.sum(axis=0) - (w**2).sum(axis=0) / w.sum(axis=0)) / scale
    between = np.sqrt(np.maximum(statistic - freedom, 0.0) / np.maximum(spread, 1e-300))
    w, mean, excess, scale = weighted(variance + between**2)
    sigma = np.sqrt(np.maximum(excess / freedom, 1.0) * scale / w.sum(axis=0))
    return RandomEffects(mean, sigma, between, statistic, chdtrc(freedom, statistic))


def holm(p: Array) -> Array:
    """Return p-values (…,) adjusted so that the chance of any false one is bounded (Holm 1979)."""
    order, adjusted = np.argsort(p, axis=None), np.empty(np.shape(p))
    factors = np.arange(len(order), 0, -1)
    raised = np.maximum.accumulate(np.ravel(p)[order] * factors)
    adjusted.flat[order] = np.minimum(raised, 1.0)
    return adjusted


def agreement(values: Array, sigmas: Array) -> tuple[float, int, int]:
    """
    Test whether sessions (K, b) agree on all parameters: Cochran's Q with Holm's correction.

    Returns the probability of so large a disagreement in any parameter, where there is none, and
    the places of the parameter that agrees least, and of the session in it.
    """
    found = random_effects(values, sigmas)
    # The degrees of freedom are the same: the least probable has the largest statistic.
    parameter = int(np.argmax(found.statistic))
    rest = np.abs(values[:, parameter] - np.median(values[:, parameter]))
    session = int(np.argmax(rest / np.maximum(sigmas[:, parameter], 1e-300)))
    return float(holm(found.p).min()), parameter, session
