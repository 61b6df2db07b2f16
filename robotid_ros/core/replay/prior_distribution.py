"""What is known of the parameters before the recording: initial parameters, and a prior."""

import dataclasses

import numpy as np
import numpy.typing as npt

from ...exceptions import DivergenceError
from ..arrays import Array
from ..model.dynamics import inverse_dynamics
from ..model.robot import Robot
from ..parameters.physical_consistency import (
    BodyPrior,
    consistent_parameters,
    scaled_coordinates,
    SolverError,
)
from ..parameters.standard import nonnegative_columns
from ..regression.estimate import Estimate
from ..regression.estimators import fit
from ..regression.observation_system import decimate, GaussianPrior, observe, Rows
from ..signals.samples import Samples
from .direct_model import direct_model
from .replay_problem import interpolate_rows, ReplayProblem
from .simulation import mass_matrices

# Share of the velocity that one update's damping may take, d h/J: the velocity changes its sign
# with every update from 1 on, and the sampled loop is unstable from 2 on.
MAX_DAMPING_PER_UPDATE = 0.5
# Standard deviation of a link's inertial parameters, over their values.
LINK_SIGMA = 0.5
# Least radius of gyration, over its largest, of a link of which that is a share: to describe a
# link as a rod is not to say that its centre of mass is on the axis.
SLENDERNESS = 0.2
# Least own inertia of a joint as a share of J_ap: ω_n at most doubles.
MIN_INERTIA_SHARE = 0.25
# Least standard deviation of a torque, relative, for a fit with constraints: the solver takes what
# is nearly an equation for infeasible.
EXACT = 0.01


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


def from_measured_motion(replay: ReplayProblem, samples: Samples) -> Array:
    """Return standard parameters (p,) of an IDIM solution; bodies where it cannot be simulated."""
    system = observe(samples, replay.robot, replay.base)
    system = dataclasses.replace(system, prior=prior_distribution(replay))
    estimate = fit(system, 'wls')
    chi = replay.standard_parameters(estimate.value)
    try:
        replay.inertia(chi)
    except DivergenceError as error:
        try:
            return consistent_fit(replay, system, estimate)
        except SolverError:
            raise error from None
    return chi


def own_inertia_columns(robot: Robot, rotors: bool = True) -> npt.NDArray[np.intp]:
    """Return the column (n,) of what adds to each M_jj alone: Ia, or ZZ (M) without rotors."""
    links = robot.first_columns[: robot.n] + np.where(robot.prismatic, 9, 5)
    return robot.first_columns[: robot.n] + 10 if rotors and robot.rotor_inertia else links


def prior_parameters(replay: ReplayProblem) -> Array:
    """
    Return the prior (p,) with rotor inertias with which the sampled loops are well damped.

    Descriptions leave rotors out, and light wrists without them are not stable at the robot's own
    gains. With least inertias D, the least t D with `M(q) + t D ⪰ D` on the reference is added.
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
    inertia of its own, and friction: `τ_j = α τ_prior,j + J q̈_j + F_v q̇_j + F_c sign(q̇_j) + o`,
    α and J never negative: good enough to scale the gains of the first simulation. Where friction
    hides the inertia, the least of a well damped loop is taken: the robot's own loop is stable.
    """
    from scipy.optimize import lsq_linear

    if replay.a_priori_inertia is not None:
        return replay.a_priori_inertia
    robot, torque = replay.robot, replay.torque
    keep = replay.decimation
    row, valid = torque.row[::keep], torque.valid[::keep]
    q, dq, ddq = (interpolate_rows(x, row) for x in replay.desired)
    rigid = robot.of_links(robot.prior)
    predicted = inverse_dynamics(robot, rigid, q, dq, ddq)
    tau = decimate(torque.tau.T, keep).T
    try:
        inertia = replay.inertia(rigid)
    except DivergenceError:
        inertia = np.zeros(robot.n)
    low = np.array([0.0, 0.0, -np.inf, -np.inf, -np.inf])
    fitted = []
    for j, largest in enumerate(inertia):
        y, own, speed, acceleration = (x[valid, j] for x in (tau, predicted, dq, ddq))
        one = np.ones_like(speed)
        columns = np.column_stack([own, acceleration, speed, np.sign(speed), one])
        scale = np.linalg.norm(columns, axis=0)
        scale[scale == 0.0] = np.inf  # a column of zeros gets the coefficient 0
        alpha, more = (lsq_linear(columns / scale, y, (low, np.inf)).x / scale)[:2]
        fitted.append(alpha * largest + more)
    return np.maximum(fitted, minimum_damped_inertia(replay))


def minimum_damped_inertia(replay: ReplayProblem) -> Array:
    """Return the least inertias (n,) with which the sampled loops are well damped."""
    loop, h, most = replay.law.loop, 1.0 / replay.law.rate, MAX_DAMPING_PER_UPDATE
    return np.maximum(np.maximum(loop.damping * h, loop.stiffness * h**2 / most) / most, 1e-12)


def prior_distribution(replay: ReplayProblem) -> GaussianPrior:
    """
    Return the prior of the base parameters, (b,) and (b, b).

    A fit with it is Tikhonov's regularisation with the weights that noise and prior give (Gelman
    et al. 2013, section 14.8): what the motion does not excite stays there, whatever the start.

    Links are those of the description to LINK_SIGMA, in the coordinates of their pseudo-inertia. A
    joint's own inertia is as uncertain as the one that its loop was tuned for, friction may take
    all of its torque, and neither is known to less than what the description says.
    """
    robot, matrix = replay.robot, replay.base.matrix
    inertia = estimate_a_priori_inertia(replay)
    prior = _body_prior(replay)
    T, origin, weight = scaled_coordinates(prior, SLENDERNESS)
    root = T / weight
    if not robot.rotor_inertia:
        rotors = np.eye(robot.p)[:, own_inertia_columns(robot)] * inertia
        root = np.column_stack([root, rotors])
    root = matrix @ root
    return GaussianPrior(matrix @ T @ origin, root @ root.T)


def consistent_fit(replay: ReplayProblem, system: Rows, estimate: Estimate) -> Array:
    """
    Fit standard parameters (p,) that a real robot can have, with the same prior.

    Their M(q) is positive definite, whatever motion the observation matrix is of, with a share of
    the a-priori inertia on its diagonal. They stand in for a fit that cannot be simulated. A
    SolverError where the solver finds none.
    """
    robot = replay.robot
    effort = np.sqrt(np.mean(system.Y**2, axis=1))
    sigma = np.maximum(estimate.sigma_torque, EXACT * np.maximum(effort, EXACT * effort.max()))
    rows = [np.column_stack(system.rows(j)) / sigma[j] for j in range(robot.n)]
    triangle = np.asarray(np.linalg.qr(np.vstack(rows), mode='r'))
    factor, least = triangle[:-1, :-1] @ replay.base.matrix, np.zeros(robot.p)
    least[own_inertia_columns(robot)] = MIN_INERTIA_SHARE * estimate_a_priori_inertia(replay)
    target = triangle[:-1, -1] - factor @ least
    return consistent_parameters(factor, target, _body_prior(replay)).value + least


def _body_prior(replay: ReplayProblem) -> BodyPrior:
    """Return the prior of the standard parameters, σ by that of friction and couplings."""
    robot, torque = replay.robot, replay.torque
    inertia = estimate_a_priori_inertia(replay)
    effort = np.sqrt(np.mean(torque.tau[torque.valid] ** 2, axis=0))
    speed = np.sqrt(np.mean(replay.desired.dq**2, axis=0)).max()
    driven = {joint: [j] for j, joint in enumerate(robot.joints)}
    driven |= {each.name: np.flatnonzero(each.ratios).tolist() for each in robot.couplings}
    sigma = np.zeros(robot.p)
    for k, parameter in enumerate(robot.parameters):
        joints, unit = driven[parameter.joint], parameter.unit
        if parameter.symbol == 'Ia':
            sigma[k] = inertia[joints].max()
        elif unit != '1':
            sigma[k] = effort[joints].max() / (speed if 's/' in unit else 1.0)
        sigma[k] = 1.0 if unit == '1' else max(sigma[k], abs(robot.prior[k]), 1e-12)
    starts, signs = robot.first_columns.tolist(), nonnegative_columns(robot)
    return BodyPrior(prior_parameters(replay), starts, signs, sigma, LINK_SIGMA)
