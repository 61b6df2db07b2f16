"""Elastic joints that the model takes for rigid, and springs in the model that do not show."""

import numpy as np
from scipy.ndimage import uniform_filter1d

from ..arrays import Array
from ..model.drive_torques import friction
from ..model.dynamics import inverse_dynamics
from ..model.parameters import INERTIAL
from ..model.robot import ElasticRobot, Robot
from ..regression.estimate import Estimate
from ..regression.observation_system import decimate, System
from ..signals.filters import central_differences, lowpass
from ..signals.recording import Recording
from ..signals.samples import Samples

# Deflections below this are rounding [rad or m]; encoders resolve some 1e-6.
MIN_DEFLECTION = 1e-9
# Share of a deflection's power that the link's torque has to explain: none of noise, all of a
# spring but its noise.
MIN_EXPLAINED = 0.5
# Share of a rigid model's residual that a spring has to explain; lower, and other errors of the
# model would be taken for springs: friction that the filter blurs reaches 18 % (TX-40, demo).
# MAX_SAMPLES bounds the time that the test takes.
MIN_ELASTIC_SHARE, MAX_SAMPLES = 0.25, 40000
# Least effect of a spring, Ia/K, in squares of a sample's time: numerical derivatives err by less.
MIN_EFFECT = 20.0
# A second encoder of a joint: largest deflection over motion, least correlation of deflection and
# effort, and what both are averaged over, which is longer than noise and shorter than motions [s].
MAX_DEFLECTION_SHARE, MIN_CORRELATION, AVERAGING = 0.1, 0.7, 0.05


def spring_warnings(system: System, robot: ElasticRobot, estimate: Estimate) -> list[str]:
    """Name the springs whose deflection the torque of the link does not explain."""
    warnings = []
    for j in robot.elastic_joints:
        name = f'K{j + 1}'
        W, _ = system.rows(int(j))
        column = system.names.index(name)
        stiffness = float(estimate.value[column])
        measured = W[:, column] * stiffness
        link = -(W @ estimate.value - measured)
        power = float(measured @ measured)
        explained = 1.0 - float(np.sum((measured - link) ** 2)) / power if power else 0.0
        if stiffness <= 0.0 or explained < MIN_EXPLAINED:
            size = float(np.sqrt(np.mean(W[:, column] ** 2)))
            warnings.append(
                f'the torque of {robot.joints[j]} explains {100 * max(explained, 0.0):.0f} % of '
                f'its deflection of {size:.1e} rad, {name} = {stiffness:.3g}: these data show no '
                'spring, take the joint out of robot.elastic.joints or improve its encoders'
            )
    return warnings


def elasticity_warnings(
    samples: Samples, system: System, robot: Robot, estimate: Estimate, chi: Array
) -> list[str]:
    """
    Name the joints whose residual looks like that of a spring.

    With a spring, motor and link differ by τ_link/K: a rigid model leaves a multiple of the second
    derivative of the link's torque, of which the part orthogonal to all columns of W shows. That
    torque is computed twice, from the motion and from the effort: noise of the encoders correlates
    with the one, noise of the efforts with the other, and a spring with both.

    Parameters
    ----------
    samples, system : of the rigid robot
    robot, estimate : the rigid one
    chi : (p,) standard parameters that have the estimated base parameters

    """
    count = min(MAX_SAMPLES, len(samples.time)) // samples.decimation
    rows = slice(0, count * samples.decimation)
    q, dq, ddq, tau = (x[rows] for x in (samples.q, samples.dq, samples.ddq, samples.tau))
    inertial = np.where([p.symbol in INERTIAL for p in robot.parameters], chi, 0.0)
    by_motion = _second_derivative(samples, inverse_dynamics(robot, inertial, q, dq, ddq))
    smooth = lowpass(
        tau - friction(robot, chi, q, dq), samples.cutoff or samples.rate, samples.rate
    )
    by_effort = _second_derivative(samples, smooth)
    error = (system.Y - system.predict(estimate.value))[:, :count]
    warnings = []
    for j, joint in enumerate(robot.joints):
        used = system.valid[j, :count]
        if used.sum() < 10 * system.W.shape[2]:
            continue
        W, columns = system.W[j, :count][used], (error[j], by_motion[j], by_effort[j])
        effect, share = _partial_regression(W, np.stack([x[used] for x in columns], axis=1))
        if share > MIN_ELASTIC_SHARE and abs(effect) * samples.rate**2 > MIN_EFFECT:
            warnings.append(
                f'an elastic transmission would explain {100 * share:.0f} % of what the rigid '
                f'model leaves at {joint}: add a link encoder and robot.elastic, or move slower'
            )
    return warnings


def _second_derivative(samples: Samples, torque: Array) -> Array:
    """Return the second derivative of torques (N, n), filtered like the system, (n, rows)."""
    derivative = central_differences(central_differences(torque, samples.rate), samples.rate).T
    return decimate(derivative, samples.decimation)


def _partial_regression(W: Array, columns: Array) -> tuple[float, float]:
    """Regress an error on two measures of one cause, all orthogonal to W: effect and its share."""
    scale = np.maximum(np.linalg.norm(W, axis=0), 1e-300)
    orthogonal = columns - W / scale @ np.linalg.lstsq(W / scale, columns, rcond=1e-10)[0]
    (ee, e1, e2), (_, _, both), _ = orthogonal.T @ orthogonal
    if ee <= 0.0 or both <= 0.0:
        return 0.0, 0.0
    return float(e2 / both), float(e1 * e2 / (both * ee))


def second_encoder_warnings(recording: Recording, robot: Robot) -> list[str]:
    """Name recorded channels that are a joint's position on the other side of a spring."""
    rigid = [joint for joint in robot.links if joint in recording.joints]
    others = [joint for joint in recording.joints if joint not in robot.joints]
    if isinstance(robot, ElasticRobot):
        rigid = [joint for joint in rigid if not robot.unactuated[robot.joints.index(joint)]]
    warnings = []
    for joint in rigid:
        for other in others:
            size, correlation = _second_encoder(recording, joint, other)
            if abs(correlation) > MIN_CORRELATION:
                warnings.append(
                    f'{other} moves with {joint} but for up to {size:.2g} rad, in step with its '
                    f'effort (correlation {correlation:.2f}): {joint} is elastic, add it to '
                    'robot.elastic.joints'
                )
    return warnings


def _second_encoder(recording: Recording, joint: str, other: str) -> tuple[float, float]:
    """Return the largest deflection and its correlation with the effort; 0 where there is none."""
    j, c = recording.joints.index(joint), recording.joints.index(other)
    deflection = recording.position[:, c] - recording.position[:, j]
    finite = np.isfinite(deflection) & np.isfinite(recording.effort[:, j])
    if finite.sum() < 3:
        return 0.0, 0.0
    step = float(np.median(np.diff(recording.time)))
    rows = max(1, round(AVERAGING / step)) if step > 0.0 else 1
    deflection, effort, position = (
        uniform_filter1d(x[finite], rows)
        for x in (deflection, recording.effort[:, j], recording.position[:, j])
    )
    largest = MAX_DEFLECTION_SHARE * np.std(position)
    if not MIN_DEFLECTION < np.std(deflection) < largest or not np.ptp(effort):
        return 0.0, 0.0
    return float(np.abs(deflection).max()), float(np.corrcoef(deflection, effort)[0, 1])
