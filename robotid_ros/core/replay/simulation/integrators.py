"""Integrators of the direct model over one hold of the torque: a fast one and a reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

from ...arrays import Array
from .direct_dynamics import DirectModel, mean_signs

Integrate = Callable[[Array, Array, Array], 'Advance']

# Share of the step that the fastest friction rate may fill: RK4 is stable up to 2.78.
MAX_FRICTION_STEP = 1.0


class Advance(NamedTuple):
    """
    One step: the state at its end, and what acted at its start.

    Attributes
    ----------
    q, dq : (n,) at the end of the step
    ddq : (n,) acceleration at its start, with the friction signs `slip`
    slip : (m,) signs of dry friction that acted

    """

    q: Array
    dq: Array
    ddq: Array
    slip: Array


def runge_kutta(direct: DirectModel, h: float) -> Integrate:
    """
    Return the classical fourth-order step, with dry friction held at its mean sign.

    A step is tried with the signs of its start. Where they are those of its end too, as nearly
    always, it stands, and is of fourth order. Else a slip stops or turns within it: the step is
    done again with `mean_signs`, exact for constant acceleration, and a slip that ends the step
    held stands exactly still. No event is looked for and nothing gets stiff.

    Parameters
    ----------
    direct : the robot
    h : step [s]

    """
    n = direct.model.nv
    accelerate, advance = direct.acceleration_function(), _rk4(direct, h, n)
    data, slip, coulomb = direct.model.createData(), direct.slip, direct.coulomb
    joints = np.array([row.nonzero()[0][0] if (row != 0).sum() == 1 else -1 for row in slip])
    single = bool(slip.shape == (n, n) and np.array_equal(slip, np.eye(n)))
    load, offset = slip.T * coulomb, direct.offset
    sign = np.empty(slip.shape[0])
    signed, moving = b'', False
    friction = offset

    def step(q: Array, dq: Array, tau: Array) -> Advance:
        nonlocal sign, signed, moving, friction
        now = np.sign(dq if single else slip @ dq)
        key = now.tobytes()
        if key != signed:
            sign, signed, moving = now, key, bool(now.all())
            friction = offset + load @ now
        if moving:
            q1, dq1, ddq = advance(q, dq, tau - friction)
            if np.sign(dq1 if single else slip @ dq1).tobytes() == signed:
                return Advance(q1, dq1, ddq, sign)
        return step_with_reversal(q, dq, tau)

    def step_with_reversal(q: Array, dq: Array, tau: Array) -> Advance:
        speed = slip @ dq
        free = slip @ accelerate(q, dq, tau - offset)
        s = mean_signs(speed, free, direct.delassus_matrix(data, q), coulomb, np.sign(speed), h)
        q1, dq1, ddq = advance(q, dq, tau - offset - load @ s)
        stuck = (
            (np.abs(s) < 1.0) & (np.abs(slip @ dq1) < _rest_speed(speed, free, h)) & (joints >= 0)
        )
        dq1[joints[stuck]] = 0.0
        return Advance(q1, dq1, ddq, s)

    return (
        step if slip.shape[0] else lambda q, dq, tau: Advance(*advance(q, dq, tau - offset), sign)
    )


def _rest_speed(speed: Array, free: Array, h: float) -> Array:
    """Bound what a fourth-order step leaves of a speed that friction brought to rest."""
    return 1e-3 * (np.abs(speed) + np.abs(free) * h) + 1e-15


def _rk4(direct: DirectModel, h: float, n: int) -> Callable[..., tuple[Array, Array, Array]]:
    """Return the step itself; factors are arrays because numpy is slow with Python's numbers."""
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
    Return a reference step: scipy's LSODA on `s = tanh(w/smoothing)`, stiff but sure.

    Parameters
    ----------
    direct : the robot
    h : step [s]
    smoothing : slip speed below which the sign is not what it should be
    tolerance : relative, and a thousandth of it absolute

    """
    accelerate, slip, n = direct.acceleration_function(), direct.slip, direct.model.nv
    load, offset = slip.T * direct.coulomb, direct.offset

    def signs(dq: Array) -> Array:
        return np.tanh(slip @ dq / smoothing)

    def step(q: Array, dq: Array, tau: Array) -> Advance:
        def rate(_: float, state: Array) -> Array:
            speed = state[n:]
            ddq = accelerate(state[:n].copy(), speed.copy(), tau - offset - load @ signs(speed))
            return np.concatenate([speed, ddq])

        start = np.concatenate([q, dq])
        result = solve_ivp(
            rate, (0.0, h), start, method='LSODA', rtol=tolerance, atol=1e-3 * tolerance
        )
        end = result.y[:, -1]
        return Advance(end[:n].copy(), end[n:].copy(), rate(0.0, start)[n:], signs(dq))

    return step


def substeps(direct: DirectModel, q: Array, period: float, longest: float) -> int:
    """
    Count the steps that a control period needs: none too long, none unstable.

    Parameters
    ----------
    direct : the robot
    q : (n,) a typical position
    period : of the controller [s]
    longest : step [s]

    """
    by_length = np.ceil(period / longest - 1e-9)
    by_friction = np.ceil(period * direct.fastest_friction_rate(q) / MAX_FRICTION_STEP)
    return int(max(1, by_length, by_friction))


INTEGRATORS: dict[str, Callable[..., Integrate]] = {'rk4': runge_kutta, 'adaptive': adaptive}
