"""Motions: families, the trajectory as a frozen value, waypoints that are sent, ordinary work."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
import hashlib
import json
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...exceptions import TrajectoryError, UnknownNameError
from ..arrays import Array, ReadOnlyArrays

# Rows: position, velocity, acceleration at s = 0, then at s = 1; columns: powers of s.
HERMITE = np.array([
    [1, 0, 0, -10, 15, -6], [0, 1, 0, -6, 8, -3], [0, 0, 0.5, -1.5, 1.5, -0.5],
    [0, 0, 0, 10, -15, 6], [0, 0, 0, -4, 7, -3], [0, 0, 0, 0.5, -1, 0.5],
])  # fmt: skip
# Peaks of the derivatives of 10 u³ − 15 u⁴ + 6 u⁵.
PEAK_SPEED, PEAK_ACCELERATION = 1.875, 10.0 / math.sqrt(3.0)


class Family(NamedTuple):
    """A basis of functions on [0, period]."""

    size: int  # functions per harmonic or free point
    at_rest: bool  # whether each period starts and ends at rest at q0
    # One derivative (N, size · order), by times (N,), the period, the order and which derivative.
    matrix: Callable[[Array, float, int, int], Array]


def fourier_series(t: Array, period: float, order: int, derivative: int) -> Array:
    """
    Evaluate a finite Fourier series: `Σ_l a_l/(ω_f l) sin(ω_f l t) − b_l/(ω_f l) cos(ω_f l t)`.

    Periodic, but neither at rest nor at q0 at its ends. Coefficients: a_1, b_1, a_2, b_2, ….
    """
    omega = 2.0 * np.pi / period * np.arange(1, order + 1)
    phase = np.multiply.outer(t, omega) + derivative * np.pi / 2.0
    scale = omega ** (derivative - 1)
    both = np.stack([scale * np.sin(phase), -scale * np.cos(phase)], axis=-1)
    return both.reshape(len(t), -1)


def modified_fourier_series(t: Array, period: float, order: int, derivative: int) -> Array:
    """
    Add the fifth-order polynomial that brings both ends of a series to rest at q0 (MFS, 3).

    Each harmonic gets its own polynomial, whose value, slope and curvature at both ends are
    opposite to the harmonic's; in s = t/period it is
    `p(s) = −[f + v s + w s²/2 − (10 v + w) s³ + (15 v + w/2) s⁴ − 6 v s⁵]`.
    """
    f, v, w = (period**k * fourier_series(np.zeros(1), period, order, k)[0] for k in range(3))
    powers = np.stack([-f, -v, -w / 2, 10 * v + w, -15 * v - w / 2, 6 * v])
    polynomial = np.polynomial.polynomial.polyder(powers, derivative)
    s = np.polynomial.polynomial.polyvander(t / period, len(polynomial) - 1)
    return fourier_series(t, period, order, derivative) + s @ polynomial / period**derivative


def fifth_order_b_spline(t: Array, period: float, order: int, derivative: int) -> Array:
    """Evaluate uniform B-splines of free points from q0, three fixed at each end (ELASTIC, 6)."""
    inner = np.linspace(0.0, period, order + 2)
    knots = np.concatenate([np.zeros(5), inner, np.full(5, period)])
    from scipy.interpolate import BSpline

    return np.asarray(BSpline(knots, np.eye(order + 6)[:, 3:-3], 5)(t, nu=derivative))


def quintic_points(t: Array, period: float, order: int, derivative: int) -> Array:
    """
    Evaluate quintic segments between through-points at equal intervals.

    Coefficients: position relative to q0, velocity and acceleration of each inner point in turn.
    """
    size = 3 * order
    points = np.zeros((3, order + 2, size))
    points[:, 1:-1] = np.eye(size).reshape(order, 3, size).swapaxes(0, 1)
    knots = np.linspace(0.0, period, order + 2)
    return np.asarray(Waypoints(('',) * size, knots, *points).polynomial(t, derivative))


FAMILIES = {
    'ffs': Family(2, False, fourier_series),
    'mfs': Family(2, True, modified_fourier_series),
    'bspline': Family(1, True, fifth_order_b_spline),
    'quintic': Family(3, True, quintic_points),
}


class Motion(NamedTuple):
    """Positions, velocities, accelerations at N times, (N, n) [rad, rad/s, rad/s² or m]."""

    q: Array
    dq: Array
    ddq: Array


@dataclass(frozen=True)
class Trajectory(ReadOnlyArrays):
    """
    A periodic motion `q(t) = q0 + Φ(t) c` of named joints.

    TrajectoryError: shapes do not fit, or values are not finite.
    """

    joints: tuple[str, ...]  # in the order of the columns
    family: str  # key of `FAMILIES`
    period: float  # [s]
    order: int  # harmonics of a Fourier series, free points of the others
    start: Array  # (n,) q0; every family but 'ffs' starts and ends each period there, at rest
    coefficients: Array  # (k, n), k = `FAMILIES[family].size · order`

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, 'joints', tuple(self.joints))
        UnknownNameError.check('trajectory family', [self.family], FAMILIES)
        shape = (FAMILIES[self.family].size * self.order, len(self.joints))
        if self.start.shape != shape[1:] or self.coefficients.shape != shape:
            raise TrajectoryError(
                f'a {self.family} trajectory of order {self.order} for {shape[1]} joints needs '
                f'coefficients of shape {shape}, not {self.coefficients.shape}: design it again'
            )
        finite = np.isfinite(self.start).all() and np.isfinite(self.coefficients).all()
        if not finite or not 0.0 < self.period < np.inf:
            raise TrajectoryError('a trajectory holds values that are not finite: design it again')

    @property
    def at_rest(self) -> bool:
        """Whether each period starts and ends at rest at `start`."""
        return FAMILIES[self.family].at_rest

    def matrix(self, t: ArrayLike, derivative: int) -> Array:
        """Evaluate one derivative of the basis, (N, k), at any times (N,) [s]."""
        times = np.mod(np.atleast_1d(t), self.period)
        return FAMILIES[self.family].matrix(times, self.period, self.order, derivative)

    def sample(self, t: ArrayLike) -> Motion:
        """Evaluate the motion at any times (N,) [s], period after period."""
        q, dq, ddq = (self.matrix(t, k) @ self.coefficients for k in range(3))
        return Motion(self.start + q, dq, ddq)

    def jerk(self, t: ArrayLike) -> Array:
        """Evaluate the third derivative, (N, n) [rad/s³ or m/s³]."""
        return self.matrix(t, 3) @ self.coefficients

    def at_speed(self, share: float) -> 'Trajectory':
        """Return the motion along its path at a share of the speed: a family holds it exactly."""
        period = self.period / share
        phase = (np.arange(8 * len(self.coefficients)) + 0.5) / (8 * len(self.coefficients))
        path = self.matrix(phase * self.period, 0) @ self.coefficients
        slower = FAMILIES[self.family].matrix(phase * period, period, self.order, 0)
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
        """Build a trajectory from what `to_dict` gave, or raise a TrajectoryError."""
        try:
            return cls(**{field.name: values[field.name] for field in fields(cls)})
        except (TrajectoryError, UnknownNameError):
            raise
        except (KeyError, TypeError, ValueError) as error:
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


@dataclass(frozen=True)
class Waypoints(ReadOnlyArrays):
    """Points of a joint trajectory, the first at time 0, the last at rest."""

    joints: tuple[str, ...]
    time: Array  # (P,) strictly increasing from 0 [s]
    q: Array  # (P, n) [rad or m], as its derivatives
    dq: Array
    ddq: Array
    tau: Array | None = None  # feed-forward effort, in the unit of the controller's commands

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ('time', 'q', 'dq', 'ddq', 'tau'):
            if (array := getattr(self, name)) is not None and not np.isfinite(array).all():
                remedy = 'identify' if name == 'tau' else 'design'
                raise TrajectoryError(f'{name} of the waypoints is not finite: {remedy} again')
        if self.tau is not None and self.tau.shape != self.q.shape:
            # A controller would read what is behind a short list.
            raise TrajectoryError('waypoints need an effort of each joint at each point')
        steps = np.diff(self.time)
        if len(self.time) < 2 or self.time[0] != 0.0 or (steps <= 0.0).any():
            raise TrajectoryError('waypoints need increasing times that start at 0: design again')

    @property
    def duration(self) -> float:
        """Time of the last point [s]."""
        return float(self.time[-1])

    def leading(self, periods: int, of: int) -> 'Waypoints':
        """Return the first of so many equal periods."""
        end = (len(self.time) - 1) // of * periods + 1
        columns = (getattr(self, name)[:end] for name in ('time', 'q', 'dq', 'ddq'))
        return Waypoints(self.joints, *columns)

    @cached_property
    def polynomial(self) -> Any:
        """Positions by time, a `scipy.interpolate.PPoly` of (n,): quintics between the points."""
        from scipy.interpolate import PPoly

        h = np.diff(self.time)[:, None]
        # From where each begins: powers of a short time amplify rounding of positions.
        step = np.diff(self.q, axis=0)
        start = np.zeros_like(step), h * self.dq[:-1], h**2 * self.ddq[:-1]
        ends = np.stack([*start, step, h * self.dq[1:], h**2 * self.ddq[1:]])
        powers = np.einsum('ck,cpn->kpn', HERMITE, ends) / h ** np.arange(6)[:, None, None]
        powers[0] += self.q[:-1]
        return PPoly.construct_fast(powers[::-1], self.time)

    def sample(self, t: NDArray[np.float64]) -> Motion:
        """Interpolate as the controller does, at times (N,) within [0, duration]."""
        return Motion(*(np.asarray(self.polynomial(t, k)) for k in range(3)))


@dataclass(frozen=True)
class CubicWaypoints(Waypoints):
    """Points without accelerations: a controller joins them by cubics."""

    @cached_property
    def polynomial(self) -> Any:
        """Positions by time, cubics between the points."""
        from scipy.interpolate import CubicHermiteSpline

        return CubicHermiteSpline(self.time, self.q, self.dq)


def waypoints(trajectory: Trajectory, rate: float = 50.0, periods: int = 1) -> Waypoints:
    """Sample periods, from rest to rest or a TrajectoryError, as points at a rate [Hz] or more."""
    if not trajectory.at_rest:
        raise TrajectoryError(
            f"a '{trajectory.family}' trajectory does not start at rest: design it as 'mfs'"
        )
    points = sample_waypoints(trajectory, rate, periods)
    count = (len(points.time) - 1) // periods
    q, dq, ddq = points.q.copy(), points.dq.copy(), points.ddq.copy()
    # Exactly at rest and exactly at q0 where the periods meet: a controller refuses 1e-6 rad/s.
    q[::count], dq[::count], ddq[::count] = trajectory.start, 0.0, 0.0
    return Waypoints(trajectory.joints, points.time, q, dq, ddq)


def sample_waypoints(trajectory: Trajectory, rate: float, periods: int = 1) -> Waypoints:
    """Sample periods of any trajectory, at rest or not; see `waypoints`."""
    # A multiple of the pieces of a spline: its knots, where the jerk jumps, are points.
    pieces = trajectory.order + 1
    count = pieces * max(1, int(np.ceil(rate * trajectory.period / pieces - 1e-9)))
    time = np.arange(count * periods + 1, dtype=np.float64) * (trajectory.period / count)
    q, dq, ddq = trajectory.sample(np.resize(time[:count], len(time)))
    return Waypoints(trajectory.joints, time, q, dq, ddq)


def point_to_point(
    joints: tuple[str, ...], start: Array, goal: Array, velocity: Array, acceleration: Array
) -> Waypoints:
    """
    Move from rest to rest on one quintic, `q = q0 + (q1 − q0)(10 s³ − 15 s⁴ + 6 s⁵)`.

    The duration follows from the bounds (n,) of velocity and acceleration.
    """
    ends = np.array([start, goal], dtype=float)
    distance = np.abs(ends[1] - ends[0])
    by_speed = np.max(PEAK_SPEED * distance / velocity, initial=0.0)
    by_acceleration = np.sqrt(np.max(PEAK_ACCELERATION * distance / acceleration, initial=0.0))
    duration = max(float(by_speed), float(by_acceleration), 0.5)
    still = np.zeros((2, len(joints)))
    return Waypoints(joints, np.array([0.0, duration]), ends, still, still)
