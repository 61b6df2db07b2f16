"""What terms of friction are made of: functions of position, speed, path and temperature."""

from collections.abc import Mapping

import numpy as np

from .arrays import Array

# Of the columns that a mixed model shrinks: speeds over which friction fades or changes its sign,
# as shares of the joint's fast ones, and ways of presliding [rad or m].
SPEED_SHARES, SLIP_DISTANCES = (0.02, 0.06, 0.2), (0.001, 0.003, 0.01)


def stiction(dq: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Stiction and Stribeck effect, 2/π·atan(K_v·dq) and 2/π·atan(δ·dq) (STICTION eq. 7-9)."""
    scale = 2.0 / np.pi
    return (
        scale * np.arctan(constants['stiction_steepness'] * dq),
        scale * np.arctan(constants['stribeck_slope'] * dq),
    )


def stribeck(dq: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Return static friction above Coulomb's, exp(−(dq/vs)²)·sign(dq) (Armstrong et al. 1994)."""
    return (np.exp(-((dq / constants['stribeck_velocity']) ** 2)) * np.sign(dq),)


def makkar(dq: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Stribeck bump tanh(γ2·dq) − tanh(γ3·dq) and Coulomb tanh(γ5·dq) (Makkar et al. 2005)."""
    bump = np.tanh(constants['makkar_gamma2'] * dq) - np.tanh(constants['makkar_gamma3'] * dq)
    return bump, np.tanh(constants['makkar_gamma5'] * dq)


def ripple(order: str, q: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Torque that comes back with the position, Rc cos(k q) + Rs sin(k q): cogging, gear teeth."""
    return np.cos(constants[order] * q), np.sin(constants[order] * q)


def backlash(q: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """
    Return the deflection q, but no more than the play lets pass to either side.

    A spring K with a dead zone of width w is K q + K_b clip(q, ±w/2) with K_b = −K; where it is
    only softer there, as a harmonic drive, K_b is between that and 0.
    """
    half = 0.5 * constants['backlash_width']
    return (np.clip(q, -half, half),)


def maxwell_slip(
    distance_name: str, q: Array, dq: Array, constants: Mapping[str, float]
) -> tuple[Array, ...]:
    """
    Return the force of a Maxwell-slip element along a path (Al-Bender, Lampaert and Swevers 2005).

    A spring that slips where its deflection z reaches the presliding distance Δ: z/Δ, with
    dz = dq while |z| < Δ (the stop operator). Of each stretch between two turning points only
    the ends of the stretches before count.
    """
    distance = constants[distance_name]
    turns = np.flatnonzero(np.diff(np.sign(np.diff(q)))) + 1
    ends = np.concatenate([[0], turns])
    z = float(np.sign(dq[0])) * distance
    states = [z]
    for step in np.diff(q[ends]).tolist():
        z = min(max(z + step, -distance), distance)
        states.append(z)
    stretch = np.searchsorted(turns, np.arange(len(q)), side='right')
    start = np.array(states) - q[ends]
    return (np.clip(start[stretch] + q, -distance, distance) / distance,)


def low_speed_columns(dq: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Return sign(v) exp(−|v|/f) of v = dq/v95: friction that fades with the speed (Stribeck)."""
    v = dq / constants['speed_scale']
    return tuple(np.sign(v) * np.exp(-np.abs(v) / f) for f in SPEED_SHARES)


def rounded_sign_columns(dq: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Return tanh(v/f) − sign(v): Coulomb friction that changes its sign over some speed."""
    v = dq / constants['speed_scale']
    return tuple(np.tanh(v / f) - np.sign(v) for f in SPEED_SHARES)


def slip_columns(q: Array, dq: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Return z/Δ − sign(dq) of Maxwell-slip elements: Coulomb friction that sets in over a way."""
    return tuple(
        maxwell_slip('', q, dq, {'': distance})[0] - np.sign(dq) for distance in SLIP_DISTANCES
    )


def load_columns(dq: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Return sign(v) and v, which stops growing where the fit has seen no higher speed."""
    v = dq / constants['speed_scale']
    return np.sign(v), np.clip(v, -1.0, 1.0)


def position_column(q: Array, constants: Mapping[str, float]) -> tuple[Array, ...]:
    """Return q − mean within the range that the fit has seen, and its limit outside."""
    inside = np.clip(q, constants['position_low'], constants['position_high'])
    return (inside - constants['position_mean'],)


def coldness(q: Array, way: float) -> Array:
    """Return exp(−s/L) of the way s along a path (N,), shifted and scaled to go from 1 to 0."""
    gone = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(q)))]) / way
    span = -np.expm1(-gone[-1])
    return np.asarray((np.exp(-gone) - np.exp(-gone[-1])) / max(float(span), 1e-300))
