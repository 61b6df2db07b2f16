"""A payload: the ten parameters of a body with what is known of them, in a named frame."""

import dataclasses

import numpy as np

from ..arrays import Array, ReadOnlyArrays
from ..model.parameters import INERTIAL, INERTIAL_UNITS
from ..parameters.physical_consistency import inertial_parameters, mass_properties, pseudo_inertia
from ..parameters.standard import physically_consistent_links

# Mass, centre of mass and inertia at it, in this order.
CENTRAL = ('mass', 'x', 'y', 'z', 'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
CENTRAL_UNITS = ('kg', 'm', 'm', 'm') + ('kg·m²',) * 6
# Terms that cancel up to this share have cancelled: base parameters are known to 1e-7 or so, and
# what the data leave open changes by much more.
CANCELLED = 1e-3
ROUNDING = 1e-9  # share of a sum of products below which it is rounding
UPPER = np.triu_indices(3)


@dataclasses.dataclass(frozen=True)
class Payload(ReadOnlyArrays):
    """
    A body that a link carries.

    Attributes
    ----------
    frame : name of the frame that everything is expressed in
    value : (10,) `XX XY XZ YY YZ ZZ MX MY MZ M` of the body that can exist and explains the data
        best
    covariance : (10, 10) without that condition, of what the data determine
    undetermined : (10, k) directions of which the data say nothing
    unconstrained : (10,) best fit, possible or not; of minimum norm where the data leave it open

    """

    frame: str
    value: Array
    covariance: Array
    undetermined: Array
    unconstrained: Array

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the ten parameters."""
        return INERTIAL

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the ten parameters."""
        return INERTIAL_UNITS

    @property
    def sigma(self) -> Array:
        """σ (10,); infinite where the data do not determine a parameter."""
        return self._sigma(np.eye(10))

    @property
    def consistent(self) -> bool:
        """Whether a body can have the parameters of the best fit."""
        return bool(physically_consistent_links(self.unconstrained, [0])[0])

    @property
    def distance(self) -> float:
        """Largest distance of a parameter from the best fit, over its σ."""
        change = np.abs(self.value - self.unconstrained)
        return float(np.max(change / np.maximum(self.sigma, 1e-300)))

    @property
    def mass(self) -> float:
        """M [kg]."""
        return float(self.value[9])

    @property
    def centre_of_mass(self) -> Array:
        """Centre of mass (3,) [m]."""
        return np.asarray(self.value[6:9] / self.mass)

    @property
    def inertia(self) -> Array:
        """Inertia at the centre of mass, axes of the frame, (3, 3) [kg·m²]."""
        return mass_properties(pseudo_inertia(self.value))[2]

    @property
    def central(self) -> Array:
        """Mass, centre of mass and inertia at it, (10,) in the order of `CENTRAL`."""
        return np.array([self.mass, *self.centre_of_mass, *self.inertia[UPPER]])

    @property
    def central_sigma(self) -> Array:
        """σ (10,) of `central` to first order; infinite where the data do not determine it."""
        # What is determined is so wherever along the undetermined directions the body may be.
        elsewhere = self.value + np.abs(self.undetermined).sum(axis=1)
        here, there = (central_gradient(value) for value in (self.value, elsewhere))
        unknown = _product(there, self.undetermined).any(axis=1)
        return np.where(unknown, np.inf, self._sigma(here))

    def moved(self, frame: str, change: Array) -> 'Payload':
        """Return it in another frame, of this name, with the parameters T π; T (10, 10)."""
        return Payload(
            frame,
            change @ self.value,
            change @ self.covariance @ change.T,
            _product(change, self.undetermined),
            change @ self.unconstrained,
        )

    def _sigma(self, rows: Array) -> Array:
        """Return σ (m,) of combinations (m, 10), infinite where the data leave them open."""
        variance = np.einsum('ij,jk,ik->i', rows, self.covariance, rows)
        unknown = _product(rows, self.undetermined).any(axis=1)
        return np.where(unknown, np.inf, np.sqrt(np.maximum(variance, 0.0)))


def central_gradient(value: Array) -> Array:
    """
    Differentiate `CENTRAL` by the parameters π (10,), (10, 10).

    c = h/m and I = J − (hᵀh 1 − h hᵀ)/m, h the first moments and J the inertia at the frame.
    """
    h, m = value[6:9], value[9]
    result = np.zeros((10, 10))
    result[0, 9] = 1.0
    result[1:4, 6:9], result[1:4, 9] = np.eye(3) / m, -h / m**2
    result[4:, :6] = np.eye(6)
    for k, e in enumerate(np.eye(3)):
        by_moment = np.outer(h, e) + np.outer(e, h) - 2.0 * h[k] * np.eye(3)
        result[4:, 6 + k] = by_moment[UPPER] / m
    result[4:, 9] = ((h @ h) * np.eye(3) - np.outer(h, h))[UPPER] / m**2
    return result


def _product(rows: Array, columns: Array) -> Array:
    """Return rows @ columns, zero where the terms of a sum cancel."""
    result = rows @ columns
    terms = np.abs(rows) @ np.abs(columns)
    size = np.outer(np.linalg.norm(rows, axis=1), np.linalg.norm(columns, axis=0))
    return np.where(np.abs(result) > np.maximum(CANCELLED * terms, ROUNDING * size), result, 0.0)


def frame_change(placement: Array) -> Array:
    """
    Return T (10, 10) with π' = T π: from a frame to one that is placed in it at H (4, 4).

    Pseudo-inertias move as P' = H⁻¹ P H⁻ᵀ (Wensing, Kim and Slotine 2018), which holds rotation
    and parallel axes in one.
    """
    back = np.linalg.inv(placement)
    columns = [inertial_parameters(back @ pseudo_inertia(e) @ back.T) for e in np.eye(10)]
    return np.array(columns).T
