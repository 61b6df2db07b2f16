"""Integrators of the direct model under a constant torque: RK4, and LSODA for reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

from ...arrays import Array
from .direct_dynamics import DirectModel, mean_signs

Advance = Callable[[Array, Array, Array], tuple[Array, Array, Array]]
Integrate = Callable[[Array, Array, Array], 'IntegrationStep']

# Largest product of step and fastest friction rate: RK4 is stable up to 2.78; at 1 its error is
# 0.7 % of the speed that decays.
MAX_FRICTION_STEP = 1.0


class IntegrationStep(NamedTuple):
    """
    One step: the state at its end, and what acted at its start.

    Attributes
    ----------
    q, dq : (n,) at the end of the step
    ddq : (n,) acceleration at its start, with the friction signs `slip_sign`
    slip_sign : (m,) signs of dry friction that acted

    """

    q: Array
    dq: Array
    ddq: Array
    slip_sign: Array


def runge_kutta(direct: DirectModel, h: float) -> Integrate:
    """
    Return the classical fourth-order step, with dry friction held at its mean sign.

    A step is computed with the friction signs of its start. Where they are also those of its end,
    as nearly always, it is accepted, and of fourth order. Else a slip stops or reverses within it:
    the step is repeated with `mean_signs`, exact for constant acceleration, and a slip that sticks
    at its end gets the speed 0. This needs no event detection and is not stiff.

    Parameters
    ----------
    direct : the robot
    h : step [s]

    """
    n, slip, offset = direct.model.nv, direct.slip_directions, direct.offset
    advance = _rk4(direct, h, n)
    if not slip.shape[0]:
        none = np.empty(0)
        return lambda q, dq, tau: IntegrationStep(*advance(q, dq, tau - offset), none)
    step_with_reversal = _reversal(direct, h, advance)
    identity = bool(slip.shape == (n, n) and np.array_equal(slip, np.eye(n)))
    dry_torque = slip.T * direct.coulomb
    sign, friction = np.empty(slip.shape[0]), offset
    signature, moving = b'', False

    def step(q: Array, dq: Array, tau: Array) -> IntegrationStep:
        nonlocal sign, signature, moving, friction
        now = np.sign(dq if identity else slip @ dq)
        key = now.tobytes()
        if key != signature:
            sign, signature, moving = now, key, bool(now.all())
            friction = offset + dry_torque @ now
        if moving:
            q1, dq1, ddq = advance(q, dq, tau - friction)
            if np.sign(dq1 if identity else slip @ dq1).tobytes() == signature:
                return IntegrationStep(q1, dq1, ddq, sign)
        return step_with_reversal(q, dq, tau)

    return step


def _reversal(direct: DirectModel, h: float, advance: Advance) -> Integrate:
    """Return the step in which slips stop, reverse or stick."""
    accelerate, data = direct.acceleration_function(), direct.model.createData()
    slip, coulomb, offset = direct.slip_directions, direct.coulomb, direct.offset
    joints = np.array([row.nonzero()[0][0] if (row != 0).sum() == 1 else -1 for row in slip])
    dry_torque = slip.T * coulomb

    def step(q: Array, dq: Array, tau: Array) -> IntegrationStep:
        speed = slip @ dq
        free = slip @ accelerate(q, dq, tau - offset)
        s = mean_signs(speed, free, direct.delassus_matrix(data, q), coulomb, np.sign(speed), h)
        q1, dq1, ddq = advance(q, dq, tau - offset - dry_torque @ s)
        stuck = (np.abs(s) < 1.0) & (np.abs(slip @ dq1) < _rest_speed(speed, free, h))
        dq1[joints[stuck & (joints >= 0)]] = 0.0
        return IntegrationStep(q1, dq1, ddq, s)

    return step


def _rest_speed(speed: Array, free: Array, h: float) -> Array:
    """Return the speeds (m,) that a fourth-order step may leave where friction stopped a slip."""
    return 1e-3 * (np.abs(speed) + np.abs(free) * h) + 1e-15


def _rk4(direct: DirectModel, h: float, n: int) -> Advance:
    """Return the step itself; factors are arrays: NumPy is slower with Python's numbers."""
    accelerate = direct.acceleration_function()
    whole, half, sixth, square = (np.full(n, x) for x in (h, h / 2.0, h / 6.0, h * h / 6.0))

    def advance(q: Array, dq: Array, held: Array) -> tuple[Array, Array, Array]:
        k1 = accelerate(q, dq, held)
        dq2 = dq + k1 * half
        k2 = accelerate(q + dq * half, dq2, held)
        dq3 = dq + k2 * half
        k3 = accelerate(q + dq2 * half, dq3, held)
        k4 = accelerate(q + dq3 * whole, dq + k3 * whole, held)
        middle = k2 + k3
        q1 = q + dq * whole + (k1 + middle) * square
        return q1, dq + (k1 + middle + middle + k4) * sixth, k1

    return advance


def adaptive(
    direct: DirectModel,
    h: float,
    smoothing: float = 1e-6,
    tolerance: float = 1e-9,
) -> Integrate:
    """
    Return a reference step: SciPy's LSODA with the friction sign `s = tanh(w/smoothing)`.

    Parameters
    ----------
    direct : the robot
    h : step [s]
    smoothing : slip speed below which friction is too small
    tolerance : relative, and a thousandth of it absolute

    """
    accelerate, slip, n = direct.acceleration_function(), direct.slip_directions, direct.model.nv
    dry_torque, offset = slip.T * direct.coulomb, direct.offset

    def signs(dq: Array) -> Array:
        return np.tanh(slip @ dq / smoothing)

    def step(q: Array, dq: Array, tau: Array) -> IntegrationStep:
        def rate(_: float, state: Array) -> Array:
            speed = state[n:]
            ddq = accelerate(
                state[:n].copy(), speed.copy(), tau - offset - dry_torque @ signs(speed)
            )
            return np.concatenate([speed, ddq])

        start = np.concatenate([q, dq])
        result = solve_ivp(
            rate, (0.0, h), start, method='LSODA', rtol=tolerance, atol=1e-3 * tolerance
        )
        end = result.y[:, -1]
        return IntegrationStep(end[:n].copy(), end[n:].copy(), rate(0.0, start)[n:], signs(dq))

    return step


def substeps(direct: DirectModel, q: Array, period: float, longest: float) -> int:
    """
    Count the steps per control period, by the longest step and by the friction's stability.

    Parameters
    ----------
    direct : the robot
    q : (n,) a typical position
    period : of the controller [s]
    longest : longest step [s]

    """
    by_length = np.ceil(period / longest - 1e-9)
    by_friction = np.ceil(period * direct.fastest_friction_rate(q) / MAX_FRICTION_STEP)
    return int(max(1, by_length, by_friction))


INTEGRATORS: dict[str, Callable[..., Integrate]] = {'rk4': runge_kutta, 'adaptive': adaptive}
