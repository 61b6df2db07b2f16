"""Initial parameters of an iteration, and the inertias that the control loops were tuned for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...exceptions import DivergenceError
from ..arrays import Array
from ..model.dynamics import inverse_dynamics
from ..model.parameters import INERTIAL
from ..model.robot import Robot
from ..regression.observation_system import decimate
from .reference_and_torque import interpolate_rows
from .replay_problem import ReplayProblem
from .simulation.closed_loop import mass_matrices
from .simulation.direct_model import direct_model

# Share of the velocity that one update's damping may take, d h/J: the velocity changes its sign
# with every update from 1 on, and the sampled loop is unstable from 2 on.
MAX_DAMPING_PER_UPDATE = 0.5


def initial_parameters(replay: ReplayProblem, start: str) -> Array:
    """
    Return standard parameters (p,) to start from: 'regular', 'regular_zz' or 'prior'.

    The regular ones make M(q) the identity, Ia_j = 1 and all else 0 (DIDIM eq. 61), or ZZ_j = 1
    (eq. 63), which is also taken where the robot has no rotor inertias; on a prismatic joint the
    mass stands for ZZ.
    """
    if start == 'prior':
        return prior_parameters(replay)
    chi = np.zeros(replay.robot.p)
    chi[own_inertia_columns(replay.robot, rotors=start == 'regular')] = 1.0
    return replay.standard_parameters(replay.base.of(chi))


def own_inertia_columns(robot: Robot, rotors: bool = True) -> npt.NDArray[np.intp]:
    """Return the column (n,) of what adds to each M_jj alone: Ia, or ZZ (M) without rotors."""
    links = robot.first_columns[: robot.n] + np.where(robot.prismatic, 9, 5)
    return robot.first_columns[: robot.n] + 10 if rotors and robot.rotor_inertia else links


def prior_parameters(replay: ReplayProblem) -> Array:
    """
    Return the prior (p,) with rotor inertias with which the sampled loops are well damped.

    Descriptions leave rotors out, and light wrists without them are not stable at the robot's own
    gains, which on the robot itself they are. With least inertias D, what is added is the least
    t D with `M(q) + t D ⪰ D` on the reference.
    """
    chi, least = replay.filled_prior(), minimum_damped_inertia(replay)
    mass = mass_matrices(direct_model(replay.robot, chi), replay.desired.q)
    scaled = mass / np.sqrt(np.outer(least, least))
    missing = max(0.0, 1.0 - float(np.linalg.eigvalsh(scaled).min()))
    chi[own_inertia_columns(replay.robot)] += missing * least
    return chi


def estimate_a_priori_inertia(replay: ReplayProblem) -> Array:
    """
    Return J_ap (n,): what the law was tuned for, estimated where that is unknown.

    Each joint's torque is fitted along the reference itself by the prior's rigid body, scaled, an
    inertia of its own, and friction: `τ_j = α τ_prior,j + J q̈_j + F_v q̇_j + F_c sign(q̇_j) + o`.
    It is a poor model, but α and J are never negative and good enough to scale the gains of the
    first simulation; after it the inertias of the estimate are used. Where friction hides the
    inertia, the least of a well damped loop is taken, since the robot's own loop is stable.
    """
    if replay.a_priori_inertia is not None:
        return replay.a_priori_inertia
    robot, torque = replay.robot, replay.torque
    keep = replay.decimation
    row, valid = torque.row[::keep], torque.valid[::keep]
    q, dq, ddq = (interpolate_rows(x, row) for x in replay.desired[:3])
    rigid = prior_inertial_parameters(robot)
    predicted = inverse_dynamics(robot, rigid, q, dq, ddq)
    tau = decimate(torque.tau.T, keep).T
    try:
        inertia = replay.inertia(rigid)
    except DivergenceError:
        inertia = np.zeros(robot.n)
    fitted = [
        _fit_joint_inertia(
            tau[valid, j], predicted[valid, j], dq[valid, j], ddq[valid, j], inertia[j]
        )
        for j in range(robot.n)
    ]
    return np.maximum(fitted, minimum_damped_inertia(replay))


def minimum_damped_inertia(replay: ReplayProblem) -> Array:
    """Return the least inertias (n,) with which the sampled loops are well damped."""
    law, h = replay.law, 1.0 / replay.law.rate
    return np.maximum(
        np.maximum(law.damping * h, law.stiffness * h**2 / MAX_DAMPING_PER_UPDATE)
        / MAX_DAMPING_PER_UPDATE,
        1e-12,
    )


def _fit_joint_inertia(
    tau: Array, predicted: Array, dq: Array, ddq: Array, inertia: float
) -> float:
    """Return `α max M_jj + J` of one joint."""
    from scipy.optimize import lsq_linear

    columns = np.column_stack([predicted, ddq, dq, np.sign(dq), np.ones_like(dq)])
    scale = np.linalg.norm(columns, axis=0)
    # A column of zeros gets the coefficient 0.
    scale[scale == 0.0] = np.inf
    low = np.array([0.0, 0.0, -np.inf, -np.inf, -np.inf])
    alpha, own = (lsq_linear(columns / scale, tau, (low, np.inf)).x / scale)[:2]
    return float(alpha * inertia + own)


def prior_inertial_parameters(robot: Robot) -> Array:
    """Return the prior's inertial parameters alone, without rotors and friction, (p,)."""
    inertial = [p.symbol in INERTIAL for p in robot.parameters]
    return np.where(inertial, robot.prior, 0.0)
