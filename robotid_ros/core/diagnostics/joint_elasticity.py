"""Elastic joints that the model takes for rigid, and springs in the model that do not show."""

from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.ndimage import uniform_filter1d

from ..arrays import Array, rms
from ..finding_codes import finding
from ..findings import Finding
from ..model.dynamics import inverse_dynamics
from ..model.robot import ElasticRobot, Robot
from ..rank import PROJECTED
from ..regression.estimate import Estimate
from ..regression.least_squares import project_out
from ..regression.observation_system import Rows
from ..signals.filters import lowpass, motion_bandwidth, with_derivatives
from ..signals.recording import Recording
from ..signals.samples import Samples

# Deflections below this are rounding [rad or m]; encoders resolve some 1e-6.
MIN_DEFLECTION = 1e-9
# Share of a deflection's power that the link's torque has to explain: none of noise, all of a
# spring but its noise.
MIN_EXPLAINED = 0.5
# A spring between motor and link is looked for up to so many times the bandwidth of the motion:
# there a rigid link follows it; above, friction and noise move it against the stiffness of the
# control loop. At most this share of the rows' rate; rows, and samples of the motion, to a period.
BANDS, LARGEST_BAND, ROWS_PER_BAND, OVERSAMPLING = 4.0, 0.4, 2.5, 16.0
# It has to explain so much of a joint's residual there, in either half of the recording too, with
# stiffnesses that agree within a factor, and so many σ with as many rows as signals of that band
# have that are independent. Springs of simulated arms that are told are 0.6 to 1.5 times the true
# ones; of rigid arms, with friction, delays, drifts or noise that the model lacks, and of three
# real logs one half always stays below or the halves differ by 2.
MIN_ELASTIC_SHARE, SAME_STIFFNESS, SIGNIFICANT = 0.1, 1.5, 3.0
# Deflection for the derivative [rad or m].
# MAX_SAMPLES bounds the time that the test takes.
DEFLECTION, MAX_SAMPLES = 1e-3, 40_000
# A second encoder of a joint: largest deflection over motion, least correlation of deflection and
# effort, and what both are averaged over, which is longer than noise and shorter than motions [s].
MAX_DEFLECTION_SHARE, MIN_CORRELATION, AVERAGING = 0.1, 0.7, 0.05


def spring_warnings(system: Rows, robot: ElasticRobot, estimate: Estimate) -> list[Finding]:
    """Name the springs whose deflection the torque of the link does not explain."""
    warnings = list[Finding]()
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
            spring = {'parameter': name, 'stiffness': stiffness, 'deflection': rms(W[:, column])}
            share = max(explained, 0.0)
            warnings.append(
                finding('spring_not_shown', [robot.joints[j]], explained=share, **spring)
            )
    return warnings


def elasticity_warnings(
    samples: Samples, system: Rows, robot: Robot, estimate: Estimate, chi: Array
) -> list[Finding]:
    """
    Name the joints whose residual is that of a spring behind the encoder of the motor.

    The link is behind the motor by τ_link/K: to first order a rigid model leaves
    −∂τ/∂q_k · τ_k/K_k, the derivative along the deflection of joint k with its speed and
    acceleration, at every joint. The compliances 1/K are fitted to what is orthogonal to W, all
    together, in the band of the motion. `chi` (p,) has the estimated base parameters.
    """
    rate = samples.rate / samples.decimation
    bandwidth = motion_bandwidth(samples.q[:MAX_SAMPLES], samples.rate)
    band = min(BANDS * bandwidth, LARGEST_BAND * rate)
    rows = _BandRows.of(samples, system, robot, estimate, chi, band) if band > 0.0 else None
    if rows is None:
        return []
    whole = rows.springs(np.ones(len(rows.error), dtype=bool))
    halves = [rows.springs(half) for half in (rows.late, ~rows.late)]
    warnings = list[Finding]()
    for j, joint in enumerate(robot.joints):
        compliance, share = np.array([(c[j], own[j]) for c, own in (whole, *halves)]).T
        alike = 0.0 < compliance.max() <= SAME_STIFFNESS * compliance.min()
        independent = 2.0 * band * system.valid[j].sum() / rate
        clear = share[0] * independent > SIGNIFICANT**2 and share.min() > MIN_ELASTIC_SHARE
        if alike and clear:
            unit = 'N/m' if robot.prismatic[j] else 'N·m/rad'
            spring = {'stiffness': 1.0 / compliance[0], 'unit': unit, 'band': band}
            warnings.append(finding('elastic_transmission', [joint], share=share[0], **spring))
    return warnings


class _BandRows(NamedTuple):
    """
    Rows (N,) of all joints in the band of the motion, in units of their joint's residual.

    Whose row it is, whether in the second half of the recording, columns (N, b) of the model and
    its residual, and torques (N, n) for a compliance of one of each joint.
    """

    joint: npt.NDArray[np.intp]
    late: npt.NDArray[np.bool_]
    W: Array
    error: Array
    deflected: Array

    @classmethod
    def of(
        cls,
        samples: Samples,
        system: Rows,
        robot: Robot,
        estimate: Estimate,
        chi: Array,
        band: float,
    ) -> '_BandRows | None':
        """Low-pass the rows of a system; None where these are too few."""
        rate, b = samples.rate / samples.decimation, len(system.names)
        first = slice(0, MAX_SAMPLES // samples.decimation)
        kept = slice(0, first.stop, max(1, int(rate / (ROWS_PER_BAND * band))))
        time, error = system.time[kept], system.Y - system.predict(estimate.value)
        deflected = _torques_of_compliance(samples, system.time[first], robot, chi, band)
        parts = []
        for j, valid in enumerate(system.valid[:, kept]):
            columns = np.column_stack([system.W[j, first], error[j, first], deflected[j]])
            own = lowpass(columns, band, rate)[kept][valid]
            late = time[valid] > (time[0] + time[-1]) / 2.0
            size = max(float(np.linalg.norm(own[:, b])), 1e-300)
            parts.append((np.full(len(own), j), late, own / size))
        joint, late, rows = (np.concatenate(part) for part in zip(*parts, strict=True))
        if min(late.sum(), (~late).sum()) < 2 * rows.shape[1]:
            return None
        return cls(joint, late, rows[:, :b], rows[:, b], rows[:, b + 1 :])

    def springs(self, rows: npt.NDArray[np.bool_]) -> tuple[Array, list[float]]:
        """Return compliances (n,) by some rows, and the share of its joint's error each saves."""
        project = project_out(self.W[rows], PROJECTED)
        error, columns = project(self.error[rows]), project(self.deflected[rows])

        def left(chosen: Array) -> tuple[Array, Array]:
            value = np.linalg.lstsq(chosen, error, rcond=PROJECTED)[0]
            return np.asarray(value), np.square(error - chosen @ value)

        compliance, squares = left(columns)
        shares = []
        for j in range(columns.shape[1]):
            own = self.joint[rows] == j
            without = float(left(np.delete(columns, j, axis=1))[1][own].sum())
            shares.append(1.0 - float(squares[own].sum()) / without if without > 0.0 else 0.0)
        return compliance, shares


def _torques_of_compliance(
    samples: Samples, times: Array, robot: Robot, chi: Array, band: float
) -> Array:
    """Return −∂τ/∂q_k · τ_k of the motion in a band, for each joint k at all, (n, rows, n)."""
    step = max(1, int(samples.rate / (OVERSAMPLING * band)))
    rate, time = samples.rate / step, samples.time[:MAX_SAMPLES:step]
    q = lowpass(samples.q[:MAX_SAMPLES], band, samples.rate)[::step]
    motion = with_derivatives(q, rate)
    inertial = robot.of_links(chi)
    links = inverse_dynamics(robot, inertial, *motion)
    result = np.zeros((robot.n, len(times), robot.n))
    for k, load in enumerate(links.T):
        scale = DEFLECTION / max(float(np.abs(load).max()), 1e-300)
        bent = np.zeros_like(links)
        bent[:, k] = scale * load
        deflection = with_derivatives(bent, rate)
        ahead, behind = (
            inverse_dynamics(
                robot, inertial, *(x + sign * d for x, d in zip(motion, deflection, strict=True))
            )
            for sign in (1.0, -1.0)
        )
        for j, torque in enumerate((behind - ahead).T / (2.0 * scale)):
            result[j, :, k] = np.interp(times, time, torque)
    return result


def second_encoder_warnings(recording: Recording, robot: Robot) -> list[Finding]:
    """Name recorded channels that are a joint's position on the other side of a spring."""
    rigid = [joint for joint in robot.links if joint in recording.joints]
    others = [joint for joint in recording.joints if joint not in robot.joints]
    if isinstance(robot, ElasticRobot):
        rigid = [joint for joint in rigid if not robot.unactuated[robot.joints.index(joint)]]
    warnings = list[Finding]()
    for joint, other in product(rigid, others):
        j, c = recording.joints.index(joint), recording.joints.index(other)
        deflection = recording.position[:, c] - recording.position[:, j]
        finite = np.isfinite(deflection) & np.isfinite(recording.effort[:, j])
        if finite.sum() < 3:
            continue
        step = float(np.median(np.diff(recording.time)))
        rows = max(1, round(AVERAGING / step)) if step > 0.0 else 1
        deflection, effort, position = (
            uniform_filter1d(x[finite], rows)
            for x in (deflection, recording.effort[:, j], recording.position[:, j])
        )
        largest = MAX_DEFLECTION_SHARE * np.std(position)
        if not MIN_DEFLECTION < np.std(deflection) < largest or not np.ptp(effort):
            continue
        correlation = float(np.corrcoef(deflection, effort)[0, 1])
        if abs(correlation) > MIN_CORRELATION:
            size = float(np.abs(deflection).max())
            values = {'encoder': other, 'deflection': size, 'correlation': correlation}
            warnings.append(finding('second_encoder', [joint], **values))
    return warnings
