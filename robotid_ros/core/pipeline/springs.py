"""Joints with springs: instruments against encoder noise, and findings about deflections."""

from __future__ import annotations

import dataclasses

import numpy as np

from ...exceptions import RecordingError
from ..arrays import rms
from ..findings import Finding, finding
from ..model.robot import ElasticRobot, Robot
from ..regression.estimate import Estimate
from ..regression.estimators import fit
from ..regression.observation_system import Rows
from ..signals.recording import Samples

# Most rounds of instruments, computations of the weights in each, and the change over σ that ends
# them: a hundredth of the uncertainty matters to nobody.
ROUNDS, REWEIGHTINGS, CONVERGED = 8, 3, 0.01
# Relative residual of links, of encoder noise. Its square is the bias of least squares, up to the
# first one in a million; instruments remove it, see docs/guide/elastic.md.
HARMLESS = 1e-3
# Deflections below this are rounding [rad or m]; encoders resolve some 1e-6.
MIN_DEFLECTION = 1e-9
# Share of a deflection's power that the link's torque has to explain: none of noise, all of a
# spring but its noise.
MIN_EXPLAINED = 0.5


def fit_with_instruments(
    system: Rows, robot: ElasticRobot, estimate: Estimate
) -> tuple[Rows, Estimate]:
    """
    Estimate again by instrumental variables, without the bias of springs from encoder noise.

    A deflection is a small difference of two encoders, and in least squares its noise correlates
    with itself: every spring is estimated softer than it is. In Z the deflection that the link's
    torque predicts, −(W χ − W_K K)/K, replaces the measured one, until it converges. Returns the
    system with its instruments, and the estimate; both as given, by least squares, where noise is
    too small to matter, or where a stiffness is not found positive.
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


def check_deflections(samples: Samples, robot: Robot) -> None:
    """Raise a `RecordingError` where the two positions of an elastic joint never differ."""
    for j in robot.elastic_joints:
        motor = robot.motors[j]
        deflection = np.ptp(samples.q[:, j] - samples.q[:, motor])
        if deflection < MIN_DEFLECTION:
            raise RecordingError(
                f'{robot.joints[j]} and {robot.joints[motor]} never differ by more than '
                f'{deflection:.1g}: take the joint out of robot.elastic.joints, or record the '
                "link's and the motor's own encoder"
            )


def spring_warnings(system: Rows, robot: ElasticRobot, estimate: Estimate) -> list[Finding]:
    """Name the springs whose deflection the torque of the link does not explain."""
    warnings = list[Finding]()
    for j in robot.elastic_joints:
        column = system.names.index(f'K{j + 1}')
        W, stiffness = system.rows(int(j))[0], float(estimate.value[column])
        measured = W[:, column] * stiffness
        left, power = W @ estimate.value, float(measured @ measured)
        explained = 1.0 - float(left @ left) / power if power else 0.0
        if stiffness <= 0.0 or explained < MIN_EXPLAINED:
            spring = {'parameter': f'K{j + 1}', 'stiffness': stiffness}
            shown = {'deflection': rms(W[:, column]), 'explained': max(explained, 0.0)}
            warnings.append(finding('spring_not_shown', [robot.joints[j]], **spring, **shown))
    return warnings
