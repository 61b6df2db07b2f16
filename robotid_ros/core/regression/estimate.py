"""An estimate: values, their uncertainty, and residuals."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import Array, ReadOnlyArrays
from ..table import ResultTable


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
