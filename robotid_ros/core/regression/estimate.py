"""Estimates: values, their uncertainty, residuals; and whether several of them agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from html import escape
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from ...exceptions import ConfigurationError
from ..arrays import Array, ReadOnlyArrays


@dataclasses.dataclass(frozen=True)
class ResultTable:
    """Columns of equal length by their names, and what the rows are with the name of each."""

    index_name: str
    index: Sequence[str]
    columns: Mapping[str, Iterable[Any]]

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame`; ConfigurationError where pandas is not installed."""
        try:
            pandas = import_module('pandas')
        except ImportError as error:
            raise ConfigurationError('this table needs pandas: pip install pandas') from error
        return pandas.DataFrame(
            {name: list(values) for name, values in self.columns.items()},
            index=pandas.Index(list(self.index), name=self.index_name),
        )

    def to_html(self) -> str:
        """Return the table as HTML."""
        head = ''.join(f'<th>{escape(name)}</th>' for name in (self.index_name, *self.columns))
        rows = zip(self.index, *self.columns.values(), strict=True)
        body = ''.join(
            f'<tr><th>{escape(name)}</th>'
            + ''.join(
                f'<td>{escape(v) if isinstance(v, str) else f"{v:.5g}"}</td>' for v in values
            )
            for name, *values in rows
        )
        return f'<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


@dataclasses.dataclass(frozen=True)
class Estimate(ReadOnlyArrays):
    """
    Estimated parameters with their uncertainty.

    Attributes
    ----------
    names, units : of the b parameters
    value : (b,)
    covariance : (b, b) of the estimate, residuals taken as they are (correlated in time), with
        `model_error`
    classical : (b, b) covariance if the residuals were white
    residual : (n,) relative residual per joint, ‖Y_j − W_j χ‖/‖Y_j‖
    total_residual : relative residual of all joints together
    sigma_torque : (n,) standard deviation of the joints' residuals [N·m or N]
    rows : (n,) rows used per joint, after decimation
    condition_number : of the observation matrix, columns scaled to length one
    method : 'ols', 'wls', ...
    model_error : (b, b) part of the covariance that counts what the model leaves out, or None
    of_noise : (b, b) covariance if the model left nothing out and blocks of residuals were many,
        or None: `covariance`
    from_prior : places of the parameters that a prior knows better than the data; none without

    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    value: Array
    covariance: Array
    classical: Array
    residual: Array
    total_residual: float
    sigma_torque: Array
    rows: npt.NDArray[np.intp]
    condition_number: float
    method: str
    model_error: Array | None = None
    of_noise: Array | None = None
    from_prior: tuple[int, ...] = ()

    @property
    def noise_covariance(self) -> Array:
        """Covariance (b, b) of the estimate if the model left nothing out."""
        return self.covariance if self.of_noise is None else self.of_noise

    @property
    def sigma(self) -> Array:
        """Standard deviation of each parameter (b,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def relative_sigma(self) -> Array:
        """%σ = 100 σ/|χ| (b,); inf for a parameter that is zero."""
        with np.errstate(divide='ignore', invalid='ignore'):
            return np.where(self.value == 0.0, np.inf, 100.0 * self.sigma / np.abs(self.value))

    def select(self, kept: npt.NDArray[np.intp]) -> Estimate:
        """Return the estimate of some of the parameters, the others as they are."""
        fields = ('covariance', 'classical', 'model_error', 'of_noise')
        square, parts = np.ix_(kept, kept), dict[str, Any]()
        for name in fields:
            matrix = getattr(self, name)
            parts[name] = None if matrix is None else matrix[square]
        return dataclasses.replace(
            self,
            names=tuple(self.names[k] for k in kept),
            units=tuple(self.units[k] for k in kept),
            value=self.value[kept],
            from_prior=tuple(i for i, k in enumerate(kept) if k in self.from_prior),
            **parts,
        )

    def __repr__(self) -> str:
        return (
            f'<{len(self.names)} parameters by {self.method}, '
            f'{100.0 * self.total_residual:.2f} % of the torque left>'
        )

    def table(self) -> ResultTable:
        """Lay the parameters out, a row each."""
        columns = {'value': self.value, 'sigma': self.sigma, 'percent': self.relative_sigma}
        return ResultTable('parameter', self.names, {**columns, 'unit': self.units})


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
