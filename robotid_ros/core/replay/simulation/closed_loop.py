"""Closed loop: the direct model under a control law that follows the recorded reference."""

from __future__ import annotations

import dataclasses

import numpy as np

from ....exceptions import DivergenceError, UnknownNameError
from ...arrays import Array, diagonal_scale
from ..laws.control_loop import ControlLaw, Desired
from .direct_dynamics import DirectModel
from .integrators import INTEGRATORS, quickest, substeps

# Updates between two checks for divergence: seldom enough to cost nothing, often enough to end a
# simulation that diverges early.
CHECK_INTERVAL = 100
# Poses of the reference at which M(q) is computed; between them it varies little.
MAX_POSES = 200
# Distance from the reference, over the joint's travel, from which the loop has diverged.
MAX_DEVIATION = 10.0


@dataclasses.dataclass(frozen=True)
class Simulation:
    """
    Motion of the simulated robot at the controller's updates.

    `W(q, q̇, q̈) χ = τ` holds in each row, with `slip_sign` in place of sign(R q̇).

    Attributes
    ----------
    rate : of the controller [Hz]
    q, dq, ddq : (K, n) state, and the acceleration that follows it [rad or m, per s, per s²]
    tau : (K, n) torque, held from its row to the next [N·m or N]
    slip_sign : (K, m) signs of dry friction, between −1 and 1 where it sticks or turns

    """

    rate: float
    q: Array
    dq: Array
    ddq: Array
    tau: Array
    slip_sign: Array


def simulate(
    direct: DirectModel,
    law: ControlLaw,
    desired: Desired,
    *,
    external: Array | None = None,
    integrator: str = 'auto',
    step: float = 1e-3,
    restart: int = 0,
) -> Simulation:
    """
    Integrate the closed loop from the reference's start, at rest relative to it (DIDIM IV).

    Parameters
    ----------
    direct : the robot
    law : how it is controlled
    desired : (K, n) reference at each update
    external : (K, n) known torque or force that acts besides the controller's, or None
    integrator : key of `INTEGRATORS`, 'adaptive' for reference; or 'auto', see `quickest`
    step : longest integration step [s]
    restart : updates after which the state is that of the reference again; 0: never

    Raises
    ------
    DivergenceError : the robot leaves its reference, or the state is not finite

    """
    if integrator not in (*INTEGRATORS, 'auto'):
        raise UnknownNameError('integrator', integrator, (*INTEGRATORS, 'auto'))
    count, n = desired.q.shape
    parts = substeps(direct, desired.q[0], 1.0 / law.rate, step)
    h = 1.0 / (law.rate * parts)
    if integrator == 'auto':
        integrator = quickest(direct, desired.q[0], h)
    advance = INTEGRATORS[integrator](direct, h)
    bound = _divergence_bound(desired.q)
    q, dq, ddq, tau = (np.empty((count, n)) for _ in range(4))
    slip = np.empty((count, direct.slip_directions.shape[0]))
    control = law.start(
        desired, direct.inverse_dynamics(desired.q[0], desired.dq[0], desired.ddq[0])
    )
    position, velocity = desired.q[0].copy(), desired.dq[0].copy()
    for k in range(count):
        if restart and k % restart == 0:
            position, velocity = desired.q[k].copy(), desired.dq[k].copy()
        q[k], dq[k] = position, velocity
        effort = control(k, position, velocity)
        tau[k] = effort
        total = effort if external is None else effort + external[k]
        position, velocity, ddq[k], slip[k] = advance(position, velocity, total)
        for _ in range(parts - 1):
            position, velocity, _, _ = advance(position, velocity, total)
        if k % CHECK_INTERVAL == 0 and not (np.abs(position - desired.q[k]) < bound).all():
            raise _divergence_error(k / law.rate, np.abs(position - desired.q[k]) / bound)
    if not np.isfinite(position).all():
        raise _divergence_error(count / law.rate, np.abs(position - desired.q[-1]) / bound)
    return Simulation(law.rate, q, dq, ddq, tau, slip)


def mass_matrices(direct: DirectModel, q: Array) -> Array:
    """Return M at up to `MAX_POSES` of the positions (K, n), (S, n, n)."""
    data = direct.model.createData()
    poses = q[:: max(1, q.shape[0] // MAX_POSES)]
    return np.array([direct.mass_matrix(data, pose).copy() for pose in poses])


def joint_inertia(mass: Array) -> Array:
    """Return `J_j = max_q M_jj(q)`, (n,), of mass matrices (S, n, n) (DIDIM eq. 51)."""
    return np.asarray(np.diagonal(mass, axis1=1, axis2=2).max(axis=0))


def smallest_eigenvalue(mass: Array) -> float:
    """
    Return the smallest eigenvalue of mass matrices (S, n, n) scaled to a unit diagonal.

    It is positive exactly where M is positive definite everywhere, and has no unit.
    """
    scale = diagonal_scale(mass)
    return float(np.linalg.eigvalsh(mass / scale[:, :, None] / scale[:, None, :]).min())


def _divergence_bound(q: Array) -> Array:
    """Return the distance from its reference at which a joint has diverged, (n,)."""
    travel = np.ptp(q, axis=0)
    return MAX_DEVIATION * np.maximum(travel, 0.1 * travel.max(initial=0.0)) + 1e-3


def _divergence_error(time: float, share: Array) -> DivergenceError:
    joint = int(np.argmax(np.where(np.isfinite(share), share, np.inf))) + 1
    return DivergenceError(
        f'the simulated robot leaves its reference at {time:.3g} s, joint {joint} first: check '
        'the control law and its gains, start from an IDIM solution, or use a slower motion',
        0,
    )
