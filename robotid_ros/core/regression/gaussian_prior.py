"""What is known of parameters before a recording: a normal distribution."""

import dataclasses
from functools import cached_property

import numpy as np

from ..arrays import Array, ReadOnlyArrays


@dataclasses.dataclass(frozen=True)
class GaussianPrior(ReadOnlyArrays):
    """
    Parameters before any data, normally distributed.

    Attributes
    ----------
    mean : (b,)
    covariance : (b, b)

    """

    mean: Array
    covariance: Array

    @cached_property
    def whitening(self) -> Array:
        """V (b, b) with `‖V (χ − mean)‖² = (χ − mean)ᵀ covariance⁻¹ (χ − mean)`."""
        from scipy.linalg import solve_triangular

        root = np.linalg.cholesky(self.covariance)
        return np.asarray(solve_triangular(root, np.eye(len(root)), lower=True))

    @property
    def rows(self) -> tuple[Array, Array]:
        """Equations `V χ = V mean` of unit variance: (b, b) and (b,)."""
        return self.whitening, self.whitening @ self.mean
