"""
Parameters and motion together, from the periods of noisy encoders, by maximum likelihood.

Where encoders err, so does every column of W. Here the motion is unknown as well: its Fourier
coefficients c are estimated with χ, from those of the averaged positions ĉ and torques y,

    ĉ = c + ε,    y = F W(c) χ + X x + e,    ε ~ N(0, σ²),  e ~ N(0, s²)

(Olsen, Swevers and Verdonck 2002). F takes the Fourier coefficients of a time series, which are
orthonormal: σ and s are those of one averaged sample. X are what is left free: friction around
standstill, where it has no sign, and a delay of the torques. s follows by restricted maximum
likelihood. Linearised about c, this is a generalised least squares problem in χ and x alone,

    y − F W(c) χ − G (ĉ − c) = F W dχ + X x + e − G ε,    V = G σ² Gᵀ + s²,    G = ∂(F W χ)/∂c.
"""

import dataclasses

import numpy as np
from scipy.linalg import LinAlgError

from ..arrays import Array
from ..model.base_parameters import BaseParameters
from ..model.robot import ElasticRobot
from ..regression.estimate import Estimate
from ..signals.fourier_series import AveragePeriod
from .linearised_motion import LinearisedPeriod

# Rounds, those after which free friction keeps its place, and the change, over σ, that ends them.
ROUNDS, SETTLED, CONVERGED = 30, 6, 0.1
FACTOR = 2.0  # by which a spring changes in a round at the most
MISFIT = 3.0  # of positions, over their noise: the model, not the encoders, is to blame


@dataclasses.dataclass(frozen=True)
class MotionSolution:
    """
    What was found: χ (b,) and its covariance, c (m, n), the delay [s], χ² of the positions.

    `error` (n,) is the torque that is left, per row, within the band of the motion.
    """

    value: Array
    covariance: Array
    motion: Array
    delay: float
    misfit: float
    error: Array


def maximum_likelihood(
    periods: AveragePeriod, robot: ElasticRobot, base: BaseParameters, start: Estimate
) -> MotionSolution | None:
    """
    Estimate base parameters and motion together.

    Parameters
    ----------
    periods : averages
    robot, base : the model
    start : a rough estimate of all base parameters, and the torques that it leaves unexplained

    Returns
    -------
    The outcome, or None where there is none: it diverges, positions do not fit the model, or more
    torque is left than at the start (a series cannot follow joints that stick for long)

    """
    problem = LinearisedPeriod(periods, robot, base)
    springs = [base.names.index(f'K{j + 1}') for j in robot.elastic_joints]
    value, c = np.array(start.value), problem.measured
    s, free, delay, drives = None, None, 0.0, ~robot.unactuated
    for number in range(ROUNDS):
        if number < SETTLED or free is None:
            free = problem.standstill(c)
        try:
            step = problem.step(value, c, s, free, delay)
        except LinAlgError:
            return None
        # Signs of noisy speeds flip to and fro: steps that get shorter come to rest between them.
        share = min(1.0, SETTLED / (number + 1.0))
        change = share * step.change
        soft = 1.0 - change[springs] / value[springs]
        stiffness = value[springs] / np.clip(soft, 1.0 / FACTOR, FACTOR)
        value = value + change
        value[springs] = stiffness
        c, s, delay = c + share * (step.motion - c), step.deviation, delay + share * step.delay
        if not np.all(np.isfinite(value)) or np.any(stiffness <= 0.0):
            return None
        if number <= SETTLED:
            continue
        error = s * np.sqrt(len(problem.low) / len(problem.times))
        if np.any(error[drives] > start.sigma_torque[drives]) or step.misfit > MISFIT:
            return None
        moved = np.abs(change) / np.sqrt(np.diag(step.covariance))
        if moved.max() < CONVERGED:
            return MotionSolution(value, step.covariance, c, delay, step.misfit, error)
    return None


def cramer_rao_bound(
    periods: AveragePeriod, robot: ElasticRobot, base: BaseParameters, value: Array
) -> Array:
    """
    Return the covariance (b, b) that no unbiased estimate falls below (Cramér and Rao).

    Torques are right to 1e-4 but for an unknown delay, and friction is as modelled at all times.

    Parameters
    ----------
    periods : of a motion free of noise, with the noise that encoders would add
    robot, base : the model
    value : (b,) true base parameters

    """
    problem = LinearisedPeriod(periods, robot, base)
    return problem.step(value, problem.measured, np.zeros(robot.n), [], 0.0).covariance
