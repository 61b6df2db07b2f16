"""Signs of springs that the model lacks, and of springs in the model that are not there."""

import numpy as np

from ..model.dynamics import inverse_dynamics
from ..model.elastic import ElasticRobot
from ..model.parameters import Array, INERTIAL
from ..model.robot import Robot
from ..signals.filters import differences
from ..signals.recording import Recording
from ..signals.samples import Samples
from .results import Estimate
from .system import decimated, System

# Deflections below this are rounding [rad or m].
NO_DEFLECTION = 1e-9
# Share of a deflection's power that the link's torque has to explain.
EXPLAINED = 0.5
# Share of what a rigid model leaves that springs have to explain, in samples of this many rows.
SPRINGY, ROWS = 0.15, 40000
# Least effect of a spring, Ia/K, over the square of a sample's time: derivatives err by less.
LEAST_EFFECT = 20.0
# A channel that moves with a joint: deflection over motion, and correlation with the effort.
TWIN, FOLLOWS = 0.1, 0.7


def spring_warnings(system: System, robot: ElasticRobot, estimate: Estimate) -> list[str]:
    """Name the springs whose deflection does not follow the torque of the link."""
    warnings = []
    for j in robot.springs:
        name = f'K{j + 1}'
        W, _ = system.rows(int(j))
        column = system.names.index(name)
        stiffness = float(estimate.value[column])
        measured = W[:, column] * stiffness
        link = -(W @ estimate.value - measured)
        power = float(measured @ measured)
        explained = 1.0 - float(np.sum((measured - link) ** 2)) / power if power else 0.0
        if stiffness <= 0.0 or explained < EXPLAINED:
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
    Name the joints whose residual looks like a spring's work.

    With a spring, motor and link differ by τ_link/K: a rigid model leaves a multiple of the second
    derivative of the link's torque. Its share in the residual is told apart from all columns of W.

    Parameters
    ----------
    samples, system : of the rigid robot
    robot, estimate : the rigid one
    chi : (p,) standard parameters that have the estimated base parameters

    """
    count = min(ROWS, len(samples.time)) // samples.decimation
    rows = slice(0, count * samples.decimation)
    link = inverse_dynamics(
        robot,
        np.where([p.symbol in INERTIAL for p in robot.parameters], chi, 0.0),
        *(x[rows] for x in (samples.q, samples.dq, samples.ddq)),
    )
    work = differences(differences(link, samples.rate), samples.rate).T
    if samples.decimation > 1:
        work = decimated(work, samples.decimation)
    work = work[:, :: samples.decimation]
    error = (system.Y - system.predict(estimate.value))[:, :count]
    warnings = []
    for j, joint in enumerate(robot.joints):
        used = system.valid[j, :count]
        if used.sum() < 10 * system.W.shape[2]:
            continue
        effect, share = _partial(system.W[j, :count][used], error[j][used], work[j][used])
        if share > SPRINGY and abs(effect) * samples.rate**2 > LEAST_EFFECT:
            warnings.append(
                f'an elastic transmission would explain {100 * share:.0f} % of what the rigid '
                f'model leaves at {joint}: add a link encoder and robot.elastic, or move slower'
            )
    return warnings


def _partial(W: Array, error: Array, column: Array) -> tuple[float, float]:
    """Regress an error on a column, both cleared of W: coefficient and share explained."""
    scale = np.maximum(np.linalg.norm(W, axis=0), 1e-300)
    both = np.stack([error, column], axis=1)
    both = both - W / scale @ np.linalg.lstsq(W / scale, both, rcond=1e-10)[0]
    (ee, ec), (_, cc) = both.T @ both
    if ee <= 0.0 or cc <= 0.0:
        return 0.0, 0.0
    return float(ec / cc), float(ec**2 / (ee * cc))


def twin_warnings(recording: Recording, robot: Robot) -> list[str]:
    """Name recorded channels that are a joint's position on the other side of a spring."""
    warnings = []
    for joint in robot.joints:
        j = recording.joints.index(joint)
        position, effort = recording.position[:, j], recording.effort[:, j]
        for c, other in enumerate(recording.joints):
            if other in robot.joints:
                continue
            deflection = recording.position[:, c] - position
            finite = np.isfinite(deflection) & np.isfinite(effort)
            spread = float(np.std(deflection[finite])) if finite.sum() > 2 else 0.0
            if not NO_DEFLECTION < spread < TWIN * float(np.std(position[finite])):
                continue
            follows = float(np.corrcoef(deflection[finite], effort[finite])[0, 1])
            if abs(follows) > FOLLOWS:
                warnings.append(
                    f'{other} moves with {joint} but for up to '
                    f'{np.abs(deflection[finite]).max():.2g} rad, in step with its effort '
                    f'(correlation {follows:.2f}): {joint} is elastic, add it to '
                    'robot.elastic.joints'
                )
    return warnings
