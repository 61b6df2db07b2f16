"""Values that an identification ends in; each certifies itself."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses

import numpy as np
import numpy.typing as npt

from ..model.parameters import Array, frozen
from ..model.robot import Robot
from ..regression.goodness_of_fit import Validation
from ..replay.history import History

# Of the Cholesky factorisation of a link's inertia at its centre of mass (STD table III) [kg·m²].
TOLERANCES = (0.0, -0.01, -0.02, -0.04)
CLASSES = ('unidentifiable', 'identifiable', 'in combination')


def _freeze(instance: object, *fields: str) -> None:
    for field in fields:
        value = getattr(instance, field)
        if value is not None:
            object.__setattr__(instance, field, frozen(value))


@dataclasses.dataclass(frozen=True)
class BaseParameters:
    """
    The minimal set of parameters that the dynamics depend on: χ_b = χ_L + B χ_K.

    Attributes
    ----------
    names : of the b base parameters; 'R' marks a regrouped one, 'ZZ1R'
    units : of the base parameters
    combinations : printed, 'ZZ1R = ZZ1 + Ia1 + 0.25·M2'
    matrix : (b, p) every base parameter as a combination of the standard ones, χ_b = matrix χ
    columns : (b,) columns of the standard regressor that are kept, W_b = W[:, columns]
    classes : of each standard parameter, one of CLASSES

    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    combinations: tuple[str, ...]
    matrix: Array
    columns: npt.NDArray[np.intp]
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        _freeze(self, 'matrix')

    @property
    def rank(self) -> int:
        """Number of base parameters."""
        return len(self.names)

    def of(self, standard: Array) -> Array:
        """Return the base parameters (b,) of standard ones (p,)."""
        return np.asarray(self.matrix @ standard)


@dataclasses.dataclass(frozen=True)
class Estimate:
    """
    Estimated parameters with their uncertainty.

    Attributes
    ----------
    names, units : of the b parameters
    value : (b,)
    covariance : (b, b) of the estimate, residuals taken as they are (correlated in time)
    classical : (b, b) covariance if the residuals were white
    residual : (n,) relative residual per joint, ‖Y_j − W_j χ‖/‖Y_j‖
    total_residual : relative residual of all joints together
    sigma_torque : (n,) standard deviation of the joints' residuals [N·m or N]
    rows : (n,) rows used per joint, after decimation
    condition_number : of the observation matrix, columns scaled to length one
    method : 'ols', 'wls', ...

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

    def __post_init__(self) -> None:
        _freeze(self, 'value', 'covariance', 'classical', 'residual', 'sigma_torque')

    @property
    def sigma(self) -> Array:
        """Standard deviation of each parameter (b,)."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def relative_sigma(self) -> Array:
        """%σ = 100 σ/|χ| (b,); inf for a parameter that is zero."""
        with np.errstate(divide='ignore', invalid='ignore'):
            return np.where(self.value == 0.0, np.inf, 100.0 * self.sigma / np.abs(self.value))

    def interval(self, factor: float = 3.0) -> tuple[Array, Array]:
        """Return the lower and upper bounds at ±factor·σ."""
        return self.value - factor * self.sigma, self.value + factor * self.sigma


@dataclasses.dataclass(frozen=True)
class Essential:
    """
    The parameters that the data really determine, and how the others were dropped.

    Attributes
    ----------
    estimate : of the essential parameters alone
    indices : (e,) their places among the base parameters
    path : per step, (dropped parameter, its %σ, weighted residual after over that of all base
        parameters, p-value of the F-test)

    """

    estimate: Estimate
    indices: npt.NDArray[np.intp]
    path: tuple[tuple[str, float, float, float], ...]


@dataclasses.dataclass(frozen=True)
class Standard:
    """
    Standard parameters that explain the data, of the many that do.

    Attributes
    ----------
    value : (p,) physically consistent ones, closest to the prior
    sigma : (p,) their standard deviation; inf where the data say nothing
    cad : (p,) closest to the prior without constraints, by SVD (STD eq. 26-30)
    cad_essential : (p,) the same, weighted by the essential parameters (eq. 31-33), or None
    consistent : (n,) whether each link of `value` is one that a body can have
    cad_consistent : (n,) whether each link of `cad` is
    residual : relative residual of `value`, all joints; NaN where it was not computed
    definite : links with a positive definite inertia at the centre of mass and a positive mass, at
        each of TOLERANCES (STD table III), of 'prior', 'cad', 'cad_essential' and 'value'

    """

    value: Array
    sigma: Array
    cad: Array
    cad_essential: Array | None
    consistent: npt.NDArray[np.bool_]
    cad_consistent: npt.NDArray[np.bool_]
    residual: float
    definite: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        _freeze(self, 'value', 'sigma', 'cad', 'cad_essential')


@dataclasses.dataclass(frozen=True)
class Identification:
    """
    All that one identification found out.

    Attributes
    ----------
    robot : what was identified
    method : 'ols', 'wls', 'mle', 'irls', 'tls', 'iv' or 'didim'
    base : which parameters can be identified
    estimate : of the base parameters
    essential : of the essential ones, or None
    standard : standard parameters with their consistency
    fitted : efforts on the identification motion, on some of it where it is long
    validation : efforts on another motion, or None
    warnings : in words a user can act on
    history : course of an iterative method, or None
    compared : the same by another method, or None

    """

    robot: Robot
    method: str
    base: BaseParameters
    estimate: Estimate
    essential: Essential | None
    standard: Standard
    fitted: Validation
    validation: Validation | None = None
    warnings: tuple[str, ...] = ()
    history: History | None = None
    compared: Identification | None = None
