"""
What is known of the parameters before the recording: it stands where the motion tells nothing.

The posterior of a linear model with a normal prior is Tikhonov's regularisation with the weights
that noise and prior give (Gelman et al. 2013, section 14.8): parameters that the motion excites
are those of the least squares, the others stay at the prior, whatever the iteration starts from.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..parameters.physical_consistency import consistent_parameters, scaled_coordinates
from ..parameters.prior_pull import nonnegative_columns
from ..regression.estimate import Estimate
from ..regression.gaussian_prior import GaussianPrior
from ..regression.observation_system import System
from .initial_parameters import estimate_a_priori_inertia, own_inertia_columns, prior_parameters
from .replay_problem import ReplayProblem

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


def prior_distribution(replay: ReplayProblem) -> GaussianPrior:
    """
    Return the prior of the base parameters, (b,) and (b, b).

    Links are those of the description to LINK_SIGMA, in the coordinates of their pseudo-inertia.
    Descriptions know little of drives: a joint's own inertia is as uncertain as the one that its
    loop was tuned for, friction may take all of its torque, and neither is known to less than
    what the description says.
    """
    robot, matrix = replay.robot, replay.base.matrix
    inertia, drive_sigma = estimate_a_priori_inertia(replay), _drive_sigma(replay)
    T, origin, weight = scaled_coordinates(
        prior_parameters(replay),
        robot.first_columns.tolist(),
        drive_sigma,
        LINK_SIGMA,
        SLENDERNESS,
    )
    root = T / weight
    if not robot.rotor_inertia:
        rotors = np.eye(robot.p)[:, own_inertia_columns(robot)] * inertia
        root = np.column_stack([root, rotors])
    root = matrix @ root
    return GaussianPrior(matrix @ T @ origin, root @ root.T)


def consistent_fit(replay: ReplayProblem, system: System, estimate: Estimate) -> Array:
    """
    Fit standard parameters (p,) that a real robot can have, with the same prior.

    Their M(q) is positive definite, whatever motion the observation matrix is of, with a share of
    the a-priori inertia on its diagonal. They stand in for a fit that cannot be simulated.

    Raises
    ------
    SolverError : the solver finds none

    """
    robot = replay.robot
    effort = np.sqrt(np.mean(system.Y**2, axis=1))
    sigma = np.maximum(estimate.sigma_torque, EXACT * np.maximum(effort, EXACT * effort.max()))
    rows = [np.column_stack(system.rows(j)) / sigma[j] for j in range(robot.n)]
    triangle = np.asarray(np.linalg.qr(np.vstack(rows), mode='r'))
    factor, least = triangle[:-1, :-1] @ replay.base.matrix, np.zeros(robot.p)
    least[own_inertia_columns(robot)] = MIN_INERTIA_SHARE * estimate_a_priori_inertia(replay)
    found = consistent_parameters(
        factor,
        triangle[:-1, -1] - factor @ least,
        prior_parameters(replay),
        robot.first_columns.tolist(),
        nonnegative_columns(robot),
        _drive_sigma(replay),
        LINK_SIGMA,
    )
    return found.value + least


def _drive_sigma(replay: ReplayProblem) -> Array:
    """Return the standard deviations (p,) of what is not a link's: friction and couplings."""
    robot, torque = replay.robot, replay.torque
    inertia = estimate_a_priori_inertia(replay)
    effort = np.sqrt(np.mean(torque.tau[torque.valid] ** 2, axis=0))
    speed = np.sqrt(np.mean(replay.desired.dq**2, axis=0)).max()
    driven = {joint: [j] for j, joint in enumerate(robot.joints)}
    driven |= {each.name: np.flatnonzero(each.ratios).tolist() for each in robot.couplings}
    sigma = np.ones(robot.p)
    for k, parameter in enumerate(robot.parameters):
        joints = driven[parameter.joint]
        if parameter.symbol == 'Ia':
            sigma[k] = inertia[joints].max()
        elif parameter.unit != '1':
            sigma[k] = effort[joints].max() / (speed if 's/' in parameter.unit else 1.0)
    said = [0.0 if parameter.unit == '1' else abs(float(value))
            for parameter, value in zip(robot.parameters, robot.prior, strict=True)]  # fmt: skip
    return np.maximum(sigma, np.maximum(said, 1e-12))
