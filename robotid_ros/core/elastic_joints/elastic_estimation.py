"""Estimates of elastic robots without bias from encoder noise."""

import dataclasses

import numpy as np

from ...exceptions import RecordingError
from ..arrays import Array
from ..diagnostics.joint_elasticity import (
    elasticity_warnings,
    MIN_DEFLECTION,
    second_encoder_warnings,
    spring_warnings,
)
from ..finding_codes import finding
from ..findings import Finding
from ..model.base_parameters import BaseParameters
from ..model.robot import ElasticRobot, Robot
from ..parameters.standard import basic_solution
from ..regression.estimate import Estimate
from ..regression.estimators import fit
from ..regression.observation_system import Rows
from ..signals.invalid_samples import clipped_samples
from ..signals.periodic import AveragePeriod, find_period, noise_between_periods, settled_periods
from ..signals.recording import Recording
from ..signals.resampling import resample_uniformly
from ..signals.samples import Samples, SignalSettings
from .maximum_likelihood import maximum_likelihood, MotionSolution

# Most rounds of instruments, computations of the weights in each, and the change over σ that ends
# them: a hundredth of the uncertainty matters to nobody.
ROUNDS, REWEIGHTINGS, CONVERGED = 8, 3, 0.01
# Relative residual of links, of encoder noise. Its square is the bias of least squares, up to the
# first one in a million; up to the second instruments remove it, see docs/guide/elastic.md.
HARMLESS, NOISY = 1e-3, 0.05
# Scatter of the periods over the motion that is rounding: the recording is one period, repeated.
EXACT = 1e-9


def account_for_springs(
    recording: Recording,
    samples: Samples,
    system: Rows,
    robot: Robot,
    base: BaseParameters,
    estimate: Estimate,
) -> tuple[Rows, Estimate, list[Finding]]:
    """
    Remove the bias of an elastic robot's estimate, or check a rigid one's for springs.

    Returns
    -------
    The system and the estimate, without bias if the robot is elastic, and findings

    """
    twins, notes = second_encoder_warnings(recording, robot), list[Finding]()
    if not isinstance(robot, ElasticRobot):
        chi = basic_solution(base, estimate.value)
        signs = elasticity_warnings(samples, system, robot, estimate, chi)
        return system, estimate, [*twins, *signs]
    if estimate.method == 'wls':
        system, estimate = fit_with_instruments(system, robot, estimate)
        estimate, notes = fit_with_motion(recording, system, robot, base, estimate)
    return system, estimate, [*notes, *twins, *spring_warnings(system, robot, estimate)]


def fit_with_instruments(
    system: Rows, robot: ElasticRobot, estimate: Estimate
) -> tuple[Rows, Estimate]:
    """
    Estimate again by instrumental variables, without the bias of springs from encoder noise.

    A deflection is a small difference of two encoders, and in least squares its noise correlates
    with itself: every spring is estimated softer than it is. In Z the deflection that the link's
    torque predicts, −(W χ − W_K K)/K, replaces the measured one, until it converges.

    Parameters
    ----------
    estimate : by least squares, the initial one

    Returns
    -------
    The system with its instruments, and the estimate; both as given where noise is too small to
    matter, or where a stiffness is not found positive

    """
    if estimate.residual[robot.elastic_joints].max() < HARMLESS:
        return system, estimate
    springs = [(int(j), system.names.index(f'K{j + 1}')) for j in robot.elastic_joints]
    instrumented, found = system, estimate
    for _ in range(ROUNDS):
        Z = np.array(system.W)
        for row, column in springs:
            if not found.value[column] > 0.0:
                return system, estimate
            spring = system.W[row][:, column] * found.value[column]
            Z[row][:, column] = (spring - system.W[row] @ found.value) / found.value[column]
        instrumented, previous = dataclasses.replace(system, Z=Z), found.value
        found = fit(instrumented, 'iv', REWEIGHTINGS)
        if np.all(np.abs(found.value - previous) <= CONVERGED * found.sigma):
            break
    softest = min(found.value[column] for _, column in springs)
    return (instrumented, found) if softest > 0.0 else (system, estimate)


def fit_with_motion(
    recording: Recording, system: Rows, robot: ElasticRobot, base: BaseParameters, start: Estimate
) -> tuple[Estimate, list[Finding]]:
    """Estimate again with the motion where encoders are noisy and periods known, and note it."""
    if start.residual[robot.elastic_joints].max() < NOISY:
        return start, []
    periods = average_periods(recording, robot)
    found = None if periods is None else _maximise(periods, robot, base, start)
    if found is None:
        return start, []
    estimate = dataclasses.replace(
        start,
        value=found.value,
        covariance=found.covariance,
        classical=found.covariance,
        residual=system.relative_residual(found.value),
        method='ml',
    )
    return estimate, [finding('encoder_noise')]


def _maximise(
    periods: AveragePeriod, robot: ElasticRobot, base: BaseParameters, start: Estimate
) -> MotionSolution | None:
    """
    Estimate motion and parameters together from an estimate, or else from the description.

    Rows of a link have no torque: where noise is all that they hold, instruments may end near the
    trivial solution, parameters of a link and its spring that are next to zero. The estimate
    stands where it knows each spring better: a series hardly follows joints that stick for long.
    """
    springs = [base.names.index(f'K{j + 1}') for j in robot.elastic_joints]

    def worst(value: Array, covariance: Array) -> float:
        sigma = np.sqrt(np.diag(covariance))[springs]
        return float(np.max(sigma / np.maximum(np.abs(value[springs]), 1e-300)))

    known = worst(start.value, start.covariance)
    for first in (start.value, base.of(robot.prior)):
        if np.all(first[springs] > 0.0):
            found = maximum_likelihood(periods, robot, base, first)
            if found is not None and worst(found.value, found.covariance) < known:
                return found
    return None


def average_periods(recording: Recording, robot: ElasticRobot) -> AveragePeriod | None:
    """Average the periods of a motion, or return None where that is not possible."""
    period = find_period(recording)
    if period is None:
        return None
    recording = recording.select(robot.joints)
    effort = robot.motor_efforts(recording.effort)
    resampled, rate, covered, _ = resample_uniformly(
        dataclasses.replace(recording, effort=effort), SignalSettings()
    )
    if not covered.all() or clipped_samples(resampled.effort, robot.largest_efforts).any():
        return None
    sigma = noise_between_periods(resampled.position, rate, period)
    if sigma is None or np.any(sigma <= EXACT * np.ptp(resampled.position, axis=0)):
        return None
    signals = resampled.position, resampled.effort
    position, effort = (settled_periods(values, rate, period) for values in signals)
    torque = robot.torques(effort.mean(axis=0))
    sigma = sigma / np.sqrt(len(position))
    return AveragePeriod(position.mean(axis=0), torque, sigma, period)


def check_deflections(samples: Samples, robot: Robot) -> None:
    """Raise a `RecordingError` where the two positions of an elastic joint never differ."""
    if not isinstance(robot, ElasticRobot):
        return
    for j in robot.elastic_joints:
        deflection = np.ptp(samples.q[:, j] - samples.q[:, robot.motors[j]])
        if deflection < MIN_DEFLECTION:
            raise RecordingError(
                f'{robot.joints[j]} and {robot.joints[robot.motors[j]]} never differ by more than '
                f'{deflection:.1g}: take the joint out of robot.elastic.joints, or record the '
                "link's and the motor's own encoder"
            )
