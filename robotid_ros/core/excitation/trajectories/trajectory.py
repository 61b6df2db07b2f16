"""The trajectory as a frozen value: a family, its coefficients, a start and a period."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
import hashlib
import json
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ....exceptions import TrajectoryError, UnknownNameError
from ...arrays import Array, freeze_fields
from .families import FAMILIES, Family


class Motion(NamedTuple):
    """Positions, velocities, accelerations at N times, (N, n) [rad, rad/s, rad/s² or m]."""

    q: Array
    dq: Array
    ddq: Array


@dataclass(frozen=True)
class Trajectory:
    """
    A periodic motion `q(t) = q0 + Φ(t) c` of named joints.

    Parameters
    ----------
    joints : names, in the order of the columns
    family : key of `FAMILIES`: 'ffs', 'mfs', 'bspline' or 'quintic'
    period : length of one period [s]
    order : harmonics of a Fourier series, free points of the others
    start : (n,) q0; every family but 'ffs' starts and ends each period there, at rest
    coefficients : (k, n), k = `FAMILIES[family].size(order)`

    Raises
    ------
    TrajectoryError : shapes that do not fit, or values that are not finite

    """

    joints: tuple[str, ...]
    family: str
    period: float
    order: int
    start: Array
    coefficients: Array

    def __post_init__(self) -> None:
        freeze_fields(self, 'start', 'coefficients')
        object.__setattr__(self, 'joints', tuple(self.joints))
        if self.family not in FAMILIES:
            raise UnknownNameError('trajectory family', self.family, tuple(FAMILIES))
        shape = (self.basis_family.size(self.order), len(self.joints))
        if self.start.shape != shape[1:] or self.coefficients.shape != shape:
            raise TrajectoryError(
                f'a {self.family} trajectory of order {self.order} for {shape[1]} joints needs '
                f'coefficients of shape {shape}, not {self.coefficients.shape}: design it again'
            )
        finite = np.isfinite(self.start).all() and np.isfinite(self.coefficients).all()
        if not finite or not 0.0 < self.period < np.inf:
            raise TrajectoryError('a trajectory holds values that are not finite: design it again')

    @property
    def basis_family(self) -> Family:
        """The family's basis."""
        return FAMILIES[self.family]

    @property
    def at_rest(self) -> bool:
        """Whether each period starts and ends at rest at `start`."""
        return self.basis_family.at_rest

    def matrix(self, t: ArrayLike, derivative: int) -> Array:
        """Evaluate one derivative of the basis, (N, k), at any times (N,) [s]."""
        times = np.mod(np.atleast_1d(np.asarray(t, dtype=float)), self.period)
        return self.basis_family.matrix(times, self.period, self.order, derivative)

    def sample(self, t: ArrayLike) -> Motion:
        """Evaluate the motion at any times (N,) [s], period after period."""
        q, dq, ddq = (self.matrix(t, k) @ self.coefficients for k in range(3))
        return Motion(self.start + q, dq, ddq)

    def jerk(self, t: ArrayLike) -> Array:
        """Evaluate the third derivative, (N, n) [rad/s³ or m/s³]."""
        return self.matrix(t, 3) @ self.coefficients

    def at_speed(self, share: float) -> 'Trajectory':
        """
        Return the motion along the same path at a share of the speed, `q'(t) = q(share t)`.

        Every family holds its slower motions, so that a fit of the path finds them exactly.
        """
        period = self.period / share
        phase = (np.arange(8 * len(self.coefficients)) + 0.5) / (8 * len(self.coefficients))
        path = self.matrix(phase * self.period, 0) @ self.coefficients
        slower = self.basis_family.matrix(phase * period, period, self.order, 0)
        coefficients = np.asarray(np.linalg.lstsq(slower, path, rcond=None)[0], np.float64)
        return replace(self, period=period, coefficients=coefficients)

    def to_dict(self) -> dict[str, Any]:
        """Describe the trajectory by plain values; `from_dict` gives exactly the same one back."""
        return {
            'family': self.family,
            'joints': list(self.joints),
            'period': float(self.period),
            'order': int(self.order),
            'start': self.start.tolist(),
            'coefficients': self.coefficients.tolist(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> 'Trajectory':
        """
        Build a trajectory from what `to_dict` gave.

        Raises
        ------
        TrajectoryError : a key is missing or a value cannot be read

        """
        try:
            return cls(
                joints=tuple(str(name) for name in values['joints']),
                family=str(values['family']),
                period=float(values['period']),
                order=int(values['order']),
                start=np.array(values['start'], dtype=float),
                coefficients=np.array(values['coefficients'], dtype=float),
            )
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, TrajectoryError | UnknownNameError):
                raise
            raise TrajectoryError(
                f'a trajectory cannot be read ({type(error).__name__}: {error}): design it again'
            ) from error

    @property
    def hash(self) -> str:
        """Identify the trajectory by the first 12 hexadecimal digits of its SHA-256."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(',', ':'))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trajectory) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.hash)
