"""
Parameters and motion together, from the periods of noisy encoders, by maximum likelihood.

Where encoders err, so does every column of W. Here the motion is unknown as well: its Fourier
coefficients c are estimated with χ, from those of the averaged positions ĉ and torques y,

    ĉ = c + ε,    y = F W(c) χ + X x + e,    ε ~ N(0, σ²),  e ~ N(0, s²)

(Olsen, Swevers and Verdonck 2002). F takes the Fourier coefficients of a time series, which are
orthonormal: σ and s are those of one averaged sample. X are free parameters: friction around
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
from ..signals.fourier_series import AveragePeriod
from .linearised_motion import LinearisedPeriod

# Most iterations; those after which free friction keeps its intervals and steps get shorter; and
# the change over σ that ends them.
ITERATIONS, FULL_STEPS, CONVERGED = 30, 6, 0.1
MAX_STIFFNESS_FACTOR = 2.0  # by which a stiffness changes in an iteration: keeps it positive
MAX_MISFIT = 3.0  # χ² of positions per degree of freedom; above, the model is wrong


@dataclasses.dataclass(frozen=True)
class MotionSolution:
    """The maximum: χ (b,) and its covariance, c (m, n), the delay [s], χ² of the positions."""

    value: Array
    covariance: Array
    motion: Array
    delay: float
    misfit: float


def maximum_likelihood(
    periods: AveragePeriod, robot: ElasticRobot, base: BaseParameters, start: Array
) -> MotionSolution | None:
    """
    Estimate base parameters and motion together.

    Parameters
    ----------
    periods : averages
    robot, base : the model
    start : (b,) rough base parameters

    Returns
    -------
    The outcome, or None where there is none: it diverges, or positions do not fit the model

    """
    problem = LinearisedPeriod(periods, robot, base)
    springs = problem.springs
    value, c = np.array(start), problem.measured
    s, free, delay = None, None, 0.0
    for number in range(ITERATIONS):
        if number < FULL_STEPS or free is None:
            free = problem.standstill(c)
        try:
            step = problem.step(value, c, s, free, delay)
        except LinAlgError:
            return None
        # Signs of noisy speeds alternate between iterations: shorter steps converge between them.
        share = min(1.0, FULL_STEPS / (number + 1.0))
        change = share * step.change
        factor = 1.0 - change[springs] / value[springs]
        factor = np.clip(factor, 1.0 / MAX_STIFFNESS_FACTOR, MAX_STIFFNESS_FACTOR)
        stiffness = value[springs] / factor
        value = value + change
        value[springs] = stiffness
        c, s, delay = c + share * (step.motion - c), step.deviation, delay + share * step.delay
        if not np.all(np.isfinite(value)) or np.any(stiffness <= 0.0):
            return None
        if number <= FULL_STEPS:
            continue
        if step.misfit > MAX_MISFIT:
            return None
        relative_change = np.abs(change) / np.sqrt(np.diag(step.covariance))
        if relative_change.max() < CONVERGED:
            return MotionSolution(value, step.covariance, c, delay, step.misfit)
    return None
