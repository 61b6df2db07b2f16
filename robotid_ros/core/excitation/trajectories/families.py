"""
Trajectory families: each a basis of scalar functions on one period.

A family is `q(t) = q0 + Φ(t) c`: position, velocity, acceleration and jerk are linear maps of the
coefficients, and one basis serves all joints. A new family is one class and one registry entry.
"""

from typing import Protocol

import numpy as np

from ...arrays import Array


class Family(Protocol):
    """A basis of `size` functions on [0, period]."""

    at_rest: bool

    def size(self, order: int) -> int:
        """Count the basis functions for `order` (harmonics, or free points)."""

    def matrix(self, t: Array, period: float, order: int, derivative: int) -> Array:
        """Evaluate one derivative of the basis, (N, size), at times (N,) in [0, period]."""


def _harmonics(t: Array, period: float, order: int, derivative: int) -> Array:
    """Differentiate `[sin(ω_l t)/ω_l, −cos(ω_l t)/ω_l]`, ω_l = 2π l / period, to (N, order, 2)."""
    omega = 2.0 * np.pi / period * np.arange(1, order + 1)
    phase = np.multiply.outer(t, omega) + derivative * np.pi / 2.0
    scale = omega ** (derivative - 1)
    return np.stack([scale * np.sin(phase), -scale * np.cos(phase)], axis=-1)


class FourierSeries:
    """
    Finite Fourier series: `Σ_l a_l/(ω_f l) sin(ω_f l t) − b_l/(ω_f l) cos(ω_f l t)`.

    Periodic, but neither at rest nor at q0 at its ends. Coefficients: a_1, b_1, a_2, b_2, ….
    """

    at_rest = False

    def size(self, order: int) -> int:
        """Count a sine and a cosine per harmonic."""
        return 2 * order

    def matrix(self, t: Array, period: float, order: int, derivative: int) -> Array:
        """Evaluate the basis; see `Family.matrix`."""
        return _harmonics(t, period, order, derivative).reshape(len(t), -1)


class ModifiedFourierSeries(FourierSeries):
    """
    Fourier series plus the fifth-order polynomial that brings both ends to rest at q0 (MFS, 3).

    Each harmonic gets its own polynomial, whose value, slope and curvature at both ends are
    opposite to the harmonic's; in s = t/period it is
    `p(s) = −[f + v s + w s²/2 − (10 v + w) s³ + (15 v + w/2) s⁴ − 6 v s⁵]`.
    """

    at_rest = True

    def matrix(self, t: Array, period: float, order: int, derivative: int) -> Array:
        """Evaluate the basis; see `Family.matrix`."""
        zero = np.zeros(1)
        f, v, w = (
            period**k * super(ModifiedFourierSeries, self).matrix(zero, period, order, k)[0]
            for k in range(3)
        )
        powers = np.stack([-f, -v, -w / 2, 10 * v + w, -15 * v - w / 2, 6 * v])
        polynomial = np.polynomial.polynomial.polyder(powers, derivative)
        s = np.polynomial.polynomial.polyvander(t / period, len(polynomial) - 1)
        harmonics = super().matrix(t, period, order, derivative)
        return harmonics + s @ polynomial / period**derivative


class FifthOrderBSpline:
    """
    B-spline of fifth order on uniform knots, three control points fixed at each end (ELASTIC, 6).

    Coefficients: the free control points, relative to q0.
    """

    at_rest = True

    def size(self, order: int) -> int:
        """Count one free control point per point."""
        return order

    def matrix(self, t: Array, period: float, order: int, derivative: int) -> Array:
        """Evaluate the basis; see `Family.matrix`."""
        inner = np.linspace(0.0, period, order + 2)
        knots = np.concatenate([np.zeros(5), inner, np.full(5, period)])
        free = np.eye(order + 6)[:, 3:-3]
        from scipy.interpolate import BSpline

        return BSpline(knots, free, 5)(t, nu=derivative)


class QuinticPoints:
    """
    Quintic segments between through-points at equal intervals.

    Coefficients: position relative to q0, velocity and acceleration of each inner point in turn.
    """

    at_rest = True
    # Rows: position, velocity, acceleration at s = 0, then at s = 1; columns: powers of s.
    HERMITE = np.array(
        [
            [1, 0, 0, -10, 15, -6],
            [0, 1, 0, -6, 8, -3],
            [0, 0, 0.5, -1.5, 1.5, -0.5],
            [0, 0, 0, 10, -15, 6],
            [0, 0, 0, -4, 7, -3],
            [0, 0, 0, 0.5, -1, 0.5],
        ]
    )

    def size(self, order: int) -> int:
        """Count position, velocity and acceleration per point."""
        return 3 * order

    def matrix(self, t: Array, period: float, order: int, derivative: int) -> Array:
        """Evaluate the basis; see `Family.matrix`."""
        step = period / (order + 1)
        segment = np.clip((t / step).astype(int), 0, order)
        powers = np.polynomial.polynomial.polyder(self.HERMITE.T, derivative)
        s = np.polynomial.polynomial.polyvander(t / step - segment, len(powers) - 1)
        values = (s @ powers) * np.tile([1.0, step, step**2], 2) / step**derivative
        points = np.zeros((len(t), order + 2, 3))
        rows = np.arange(len(t))
        points[rows, segment] = values[:, :3]
        points[rows, segment + 1] = values[:, 3:]
        return points[:, 1:-1].reshape(len(t), -1)


FAMILIES: dict[str, Family] = {
    'ffs': FourierSeries(),
    'mfs': ModifiedFourierSeries(),
    'bspline': FifthOrderBSpline(),
    'quintic': QuinticPoints(),
}
