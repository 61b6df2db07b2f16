"""Identification from commands and encoders: servos, friction and delay, without an effort."""

from collections.abc import Callable, Sequence
import dataclasses
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pinocchio
from scipy.optimize import lsq_linear
from scipy.signal import savgol_filter

from ...exceptions import ConfigurationError, RecordingError
from ..arrays import Array, Indices, interpolated, Mask, rms
from ..diagnostics.plausibility import limit_warnings
from ..excitation.trajectory import Motion
from ..findings import Finding, finding, in_order
from ..model.dynamics import inverse_dynamics
from ..model.friction import UNKNOWN
from ..model.pinocchio_model import tool_frame
from ..model.robot import ElasticRobot, Robot
from ..signals.recording import Recording
from .servos import (
    BODIES,
    DELAY,
    Fit,
    fit_servos,
    ratio_basis,
    RATIOS,
    ServoArm,
    ServoProblem,
    UNITS,
    Windows,
)

# Length of a window [s]: far longer than a servo takes to settle, so that it tells gains and
# friction from its initial state, and short, so that many run side by side. Most of them.
WINDOW, MOST_WINDOWS = 1.0, 60
# Fewest samples of a window, fewest windows, usual steps beyond which there is a gap.
FEWEST_SAMPLES, FEWEST_WINDOWS, GAP = 12, 4, 2.5
# Span of the polynomials of third order that smooth positions [s], and their fewest samples.
SMOOTHING, FEWEST_SMOOTHED = 0.12, 7
# Delays that are tried by least squares, and those around the best that are simulated [s].
DELAYS, AROUND = np.arange(0.0, 0.2001, 0.005), (-8, -4, -2, 0, 2, 4)
# Commands that are the positions, of this or one of so many next samples, over a joint's travel; a
# factor between both that no servo leaves: an XL330 bearing 0.5 kg at 0.1 m left 1.5.
COPY_TOLERANCE, COPY_SHIFTS, UNIT_FACTOR, UNIT_CORRELATION = 1e-9, 3, 3.0, 0.8
# Slower than this share of its fastest speed a joint's friction has no clear sign.
SLOW_SHARE = 0.02


@dataclasses.dataclass(frozen=True)
class CommandedLog:
    """What was commanded and measured; joints are in the model's order."""

    source: str  # of messages
    time: Array  # (N,) [s], growing
    q: Array  # (N, n) measured positions
    command_time: Array  # (K,) [s]
    command: Array  # (K, n) positions, held until the next

    @property
    def period(self) -> float:
        """Usual time between two samples [s]."""
        return float(np.median(np.diff(self.time)))

    def runs(self) -> list[Indices]:
        """Return the rows between gaps."""
        breaks = np.flatnonzero(np.diff(self.time) > GAP * self.period) + 1
        return np.split(np.arange(len(self.time)), breaks)

    def commanded(self, time: Array) -> Array:
        """Return the command that is held at times (N,), (N, n)."""
        row = np.searchsorted(self.command_time, time, side='right') - 1
        return self.command[np.maximum(row, 0)]

    @cached_property
    def smoothed(self) -> tuple[Motion, Mask]:
        """Motion by polynomials (Savitzky and Golay 1964), and which rows (N,) have it."""
        period, shape = self.period, self.q.shape
        length = max(FEWEST_SMOOTHED, 2 * round(0.5 * SMOOTHING / period) + 1)
        motion = Motion(self.q.copy(), np.zeros(shape), np.zeros(shape))
        known = np.zeros(shape[0], dtype=bool)
        for rows in self.runs():
            time = self.time[rows]
            grid = np.arange(time[0], time[-1] + 0.5 * period, period)
            if min(len(rows), len(grid)) < length or len(rows) < FEWEST_SAMPLES:
                continue
            even = interpolated(grid, time, self.q[rows])
            for order, target in enumerate(motion):
                smoothed = savgol_filter(even, length, 3, deriv=order, delta=period, axis=0)
                target[rows] = interpolated(time, grid, smoothed)
            known[rows] = True
        return motion, known


def commanded_log(recording: Recording, robot: Robot) -> CommandedLog:
    """Check a recording; a RecordingError where no commands that servos follow are in it."""
    joints = tuple(robot.joints[j] for j in robot.order)
    chosen, source = recording.select(joints), recording.source or 'the recording'
    reference = chosen.reference
    wanted = np.full((1, len(joints)), np.nan) if reference is None else reference.q
    lacking = [j for j, u in zip(joints, wanted.T, strict=True) if not np.isfinite(u).any()]
    if reference is None or lacking:
        raise RecordingError(
            f"'{source}' has no commanded positions of {', '.join(lacking)}: record what the "
            "servos are sent, name its columns with --columns 'command=…', or leave these joints "
            'out by --joints'
        )
    finite = np.isfinite(chosen.position).all(axis=1) & np.isfinite(chosen.time)
    time, rows = np.unique(chosen.time[finite], return_index=True)
    known = np.isfinite(reference.q).all(axis=1) & np.isfinite(reference.time)
    stamps, first = np.unique(reference.time[known], return_index=True)
    if len(time) < 2 * FEWEST_SAMPLES or not len(stamps):
        raise RecordingError(f"'{source}' has too few samples with positions and commands")
    q, command = chosen.position[finite][rows], reference.q[known][first]
    log = CommandedLog(source, time, q, stamps, command)
    for j, joint in enumerate(joints):
        _check_command(log, j, joint)
    return log


def _check_command(log: CommandedLog, j: int, joint: str) -> None:
    """Raise a RecordingError where commands of a joint cannot be what its servo follows."""
    q, u = log.q[:, j], log.commanded(log.time)[:, j]
    travel = float(np.ptp(q))
    copies = [
        k for k in range(COPY_SHIFTS + 1)
        if np.abs(u[: len(u) - k] - q[k:]).max() <= COPY_TOLERANCE * max(travel, 1e-6)
    ]  # fmt: skip
    if copies:
        which = f'{copies[0]} samples later' if copies[0] else 'at the same time'
        raise RecordingError(
            f"the commands of {joint} in '{log.source}' are its measured positions {which}: they "
            'do not show how its servo behaves; record the commands sent to it'
        )
    if travel <= 0.0 or np.ptp(u) <= 0.0:
        return
    slope, correlation = float(np.polyfit(q, u, 1)[0]), float(np.corrcoef(q, u)[0, 1])
    factor = max(abs(slope), 1.0 / max(abs(slope), 1e-12))
    if abs(correlation) > UNIT_CORRELATION and (slope < 0.0 or factor > UNIT_FACTOR):
        raise RecordingError(
            f"the commands of {joint} in '{log.source}' are {slope:.4g} times its positions: give "
            "the unit of each, as in --units 'command=deg position=rad', or the commands that "
            'this joint is sent'
        )


def make_windows(logs: Sequence[CommandedLog]) -> Windows:
    """Cut logs into at most `MOST_WINDOWS` windows; a RecordingError if they are too short."""
    pieces: list[tuple[int, Indices]] = []
    for number, log in enumerate(logs):
        size = max(round(WINDOW / log.period) + 1, FEWEST_SAMPLES)
        for rows in log.runs():
            if log.smoothed[1][rows].all():
                starts = range(0, len(rows) - size + 1, size - 1)
                pieces += [(number, rows[start : start + size]) for start in starts]
    if len(pieces) < FEWEST_WINDOWS:
        raise RecordingError(
            f"'{logs[0].source}' has {len(pieces)} stretches of {WINDOW:g} s without a gap: "
            f'record at least {FEWEST_WINDOWS}, better 30'
        )
    travel = np.array([
        np.ptp(np.vstack([logs[k].commanded(logs[k].time[rows]), logs[k].q[rows]]), axis=0)
        for k, rows in pieces
    ])  # fmt: skip
    activity = (travel / np.maximum(travel.max(axis=0), 1e-12)).sum(axis=1)
    chosen = np.sort(np.argsort(-activity, kind='stable')[:MOST_WINDOWS])
    return windows_of(logs, [pieces[k] for k in chosen])


def windows_of(logs: Sequence[CommandedLog], pieces: Sequence[tuple[int, Indices]]) -> Windows:
    """Return windows of numbers of logs and their rows."""
    longest, n, count = max(len(rows) for _, rows in pieces), logs[0].q.shape[1], len(pieces)
    time, valid = np.zeros((count, longest)), np.zeros((count, longest), dtype=bool)
    q, state = np.zeros((count, longest, n)), np.zeros((count, 2, n))
    for w, (number, rows) in enumerate(pieces):
        log, own = logs[number], slice(len(rows))
        time[w, own], valid[w, own] = log.time[rows] - log.time[rows[0]], True
        q[w, own] = log.q[rows]
        state[w] = [x[rows[0]] for x in log.smoothed[0][:2]]
    start = np.array([logs[k].time[rows[0]] for k, rows in pieces])
    of_log = np.array([k for k, _ in pieces])
    commands = tuple((log.command_time, log.command) for log in logs)
    return Windows(start, of_log, time, valid, q, state, commands)


def first_parameters(arm: ServoArm, logs: Sequence[CommandedLog]) -> list[Array]:
    """
    Return parameters (m,) to start from, of delays around the likeliest.

    `u(t − d) − q = (τ + Ia q̈ + k_d q̇ + F_c sign q̇)/k_p − b` is linear in the coefficients on its
    right for each delay d, with τ the torque of the bodies along the smoothed motion.
    """
    robot, order = arm.robot, arm.robot.order
    back, links, parts = np.argsort(order), robot.of_links(robot.prior), list[Array]()
    for (q, dq, ddq), valid in (log.smoothed for log in logs):
        torque = inverse_dynamics(robot, links, *(x[:, back] for x in (q, dq, ddq)))[:, order]
        sign = np.sign(dq) * (np.abs(dq) > SLOW_SHARE * np.abs(dq).max(axis=0))
        parts.append(np.stack([torque, ddq, dq, sign, np.ones_like(dq)])[:, valid])
    columns = np.concatenate(parts, axis=1)
    sizes = np.maximum(np.sqrt((columns**2).mean(axis=1)), 1e-12)
    found, costs = list[dict[tuple[str, int], float]](), list[float]()
    symbols = ('stiffness', 'armature', 'damping', 'Fc', 'bias')
    for delay in DELAYS:
        values, cost = {(DELAY, -1): float(delay)}, 0.0
        left = [
            (log.commanded(log.time - delay) - motion.q)[known]
            for log in logs for motion, known in [log.smoothed]
        ]  # fmt: skip
        for j, y in enumerate(np.concatenate(left).T):
            A, size = columns[:, :, j].T, sizes[:, j]
            # Where the bodies weigh next to nothing, they leave the scale of the torques open.
            least = np.array([1e-3 * rms(y) + 1e-12, 0.0, 1e-6, 0.0, -np.inf])
            coefficients = lsq_linear(A / size, y, (least, np.full(5, np.inf))).x / size
            cost += float(np.mean((A @ coefficients - y) ** 2)) / max(float(np.var(y)), 1e-18)
            stiffness = 1.0 / float(coefficients[0])
            terms = [stiffness, *(coefficients[1:4] * stiffness).tolist(), -coefficients[4]]
            values |= {(s, j): float(term) for s, term in zip(symbols, terms, strict=True)}
        found.append(values)
        costs.append(cost)
    near = [int(np.argmin(costs)) + k for k in AROUND]
    return [
        np.array([found[k].get(name, float(name[0] == BODIES)) for name in arm.names])
        for k in near
        if 0 <= k < len(DELAYS)
    ]


# Friction terms of a configuration and the parameters that stand for them; viscous friction brakes
# as the servo's damping does, an offset moves the servo as a bias does.
SERVO_TERMS = {
    'viscous': '',
    'offset': '',
    'coulomb': 'Fc',
    'stribeck': 'Fst',
    'load_coulomb': 'Fl',
}
# A parameter counts as determined where its σ is below this share of it, or its torque's σ below
# this share of what the servo usually asks for.
MAX_RELATIVE_SIGMA, MAX_TORQUE_SIGMA = 0.5, 0.1
# Residual over the tracking error, and correlation of neighbours, where the model lacks something.
UNEXPLAINED, CORRELATED = 0.1, 0.5
# Beyond a limit [rad or m]: the simulated servo stops there, the recorded one went on.
LIMIT_MARGIN = 0.1
Progress = Callable[[str], None]


class KnownMass(NamedTuple):
    """A point mass [kg] that the last log carries, at a place (3,) [m] in a link's frame."""

    mass: float
    link: str
    place: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class ServoParameter:
    """A parameter of a servo, joint or body."""

    symbol: str  # key of `UNITS`
    joint: str  # '' of all joints
    value: float | None  # [unit]; None where the log does not determine it
    sigma: float | None
    unit: str  # SI
    ratio: float | None = None  # value over the stiffness of the joint, or None
    ratio_sigma: float | None = None


@dataclasses.dataclass(frozen=True)
class Commanded:
    """What commands and positions tell of a robot."""

    robot: Robot  # with the bodies that count
    parameters: tuple[ServoParameter, ...]  # in the order of the robot's joints
    residual: Array  # (n,) root mean square of what is left of positions [rad or m]
    tracking: Array  # (n,) that of commands less positions [rad or m]
    windows: int  # number of stretches
    findings: tuple[Finding, ...]
    # Of all that was free, determined or not, (m,), (m, m).
    names: tuple[str, ...]
    estimate: Array
    covariance: Array

    def value(self, symbol: str, joint: str = '') -> float | None:
        """Return a parameter's value, None where it is not determined or was not asked for."""
        found = (p.value for p in self.parameters if (p.symbol, p.joint) == (symbol, joint))
        return next(found, None)


def identify_commanded(
    recordings: Sequence[Recording],
    robot: Robot,
    *,
    known_mass: KnownMass | None = None,
    progress: Progress = lambda _: None,
) -> Commanded:
    """
    Identify servos, friction and delay from commands and positions.

    Closed-loop output error on positions ('cloe') of short windows, whose initial states are
    estimated too. No torque is measured: all are in proportion to the bodies, those of the
    description, or to a mass that is known, which the last recording carries. A RecordingError
    where a recording cannot be used, a ConfigurationError where the robot has parts that are not
    simulated here, or no inertials, a DivergenceError where the model does not follow the log.
    """
    robot.check_no_mimic_joints('an identification from commands')
    if isinstance(robot, ElasticRobot) or robot.elastic is not None or robot.couplings:
        raise ConfigurationError(
            'an identification from commands is of one rigid servo a joint: leave '
            'robot.elastic and robot.couplings empty'
        )
    if robot.assumed_inertials:
        raise ConfigurationError(
            'the robot description has no inertials, which set the scale of torques without '
            'efforts: give one with masses and inertias'
        )
    if known_mass is not None and len(recordings) < 2:
        raise ConfigurationError(
            'a known mass needs two logs: give one without the mass, then one with it'
        )
    progress('reading commands')
    logs = [commanded_log(recording, robot) for recording in recordings]
    windows = make_windows(logs)
    arm = _servo_arm(robot, len(logs), known_mass)
    motions = [
        np.stack([log.commanded(log.time) - log.q, *motion[1:]])[:, known]
        for log in logs for motion, known in [log.smoothed]
    ]  # fmt: skip
    scales = np.sqrt(np.mean(np.concatenate(motions, axis=1) ** 2, axis=1))
    scales = np.maximum(scales, 1e-9)
    progress('simulating the servos')
    problem = ServoProblem(arm, windows, scales, 1.0 / scales[0])
    problem, fit, covariance = fit_servos(problem, first_parameters(arm, logs))
    q = np.vstack([log.q for log in logs])[:, np.argsort(robot.order)]
    findings = limit_warnings(robot, q, LIMIT_MARGIN)
    findings += [] if known_mass else [finding('servo_scale')]
    return _result(robot, problem, fit, covariance, findings)


def _servo_arm(robot: Robot, logs: int, known_mass: KnownMass | None) -> ServoArm:
    names, speeds = list[tuple[str, int]](), np.ones(robot.n)
    of_drive = ('stiffness', 'damping', *(('armature',) if robot.rotor_inertia else ()))
    for k, j in enumerate(robot.order):
        if other := [term.name for term in robot.friction[j] if term.name not in SERVO_TERMS]:
            raise ConfigurationError(
                f'friction {", ".join(other)} of {robot.joints[j]} is not simulated with servos: '
                f'take {", ".join(SERVO_TERMS)}'
            )
        for term in robot.friction[j]:
            speeds[k] = term.constants.get('stribeck_velocity', UNKNOWN) or speeds[k]
        of_friction = filter(None, (SERVO_TERMS[term.name] for term in robot.friction[j]))
        names += [(symbol, k) for symbol in (*of_drive, *of_friction, 'bias')]
    names.append((DELAY, -1))
    added: list[tuple[int, pinocchio.Inertia] | None] = [None] * logs
    if known_mass is not None:
        names.append((BODIES, -1))
        frame = robot.model.frames[tool_frame(robot.model, known_mass.link)]
        point = frame.placement.act(np.array(known_mass.place))
        joint = int(frame.parentJoint) - 1
        if joint < 0:
            raise ConfigurationError(
                f"'{known_mass.link}' does not move: choose a link that moves for the known mass"
            )
        added[-1] = joint, pinocchio.Inertia(known_mass.mass, point, np.zeros((3, 3)))
    return ServoArm(robot, tuple(names), speeds, tuple(added))


def _result(
    robot: Robot, problem: ServoProblem, fit: Fit, covariance: Array, findings: list[Finding]
) -> Commanded:
    arm, theta = problem.arm, fit.theta
    joints = tuple(robot.joints[j] for j in robot.order)
    basis, sizes = ratio_basis(arm, theta), problem.sizes(theta)
    by_ratio, covariance = np.sqrt(np.diag(covariance)), basis @ covariance @ basis.T
    tracking, sigmas, kp = problem.scales[0], np.sqrt(np.diag(covariance)), np.diag(basis)
    found, undetermined, ratios = list[ServoParameter](), list[str](), list[str]()
    for k, (symbol, joint) in enumerate(arm.names):
        name = joints[joint] if joint >= 0 else ''
        value, sigma = _determined(theta[k], sigmas[k], sizes[k])
        ratio = _determined(theta[k] / kp[k], by_ratio[k], sizes[k] / kp[k])
        if symbol not in RATIOS:
            ratio = None, None
        if value is None:
            (undetermined if ratio[0] is None else ratios).append(f'{symbol} {name}'.strip())
        length, force = robot.units.get(name, ('rad', 'N·m'))
        unit = UNITS[symbol].format(f=force, l=length)
        found.append(ServoParameter(symbol, name, value, sigma, unit, *ratio))
    found.sort(key=lambda p: robot.joints.index(p.joint) if p.joint else robot.n)
    noise = np.sqrt(fit.joint_costs / problem.windows.valid.sum())
    if ratios:
        findings.append(finding('servo_ratios', parameters=ratios))
    if undetermined:
        findings.append(finding('servo_undetermined', parameters=undetermined))
    share, limits = noise / tracking, arm.values(theta)['limit'][0]
    # Of neighbouring residuals.
    valid, left_over = problem.windows.valid, fit.residual
    products = left_over[:, 1:] * left_over[:, :-1] * (valid[:, 1:] & valid[:, :-1])[:, :, None]
    correlation = products.sum(axis=(0, 1)) / np.maximum(fit.joint_costs, 1e-300)
    limited = np.array([('limit', k) in arm.names for k in range(robot.n)])
    misfit = (share > UNEXPLAINED) & (correlation > CORRELATED)
    for code, where, key, values in (
        ('servo_not_saturated', ~limited, 'torques', fit.asked),
        ('servo_saturated', limited, 'limits', limits),
        ('servo_misfit', misfit, 'shares', share),
    ):
        if where.any():
            chosen = [joint for joint, said in zip(joints, where, strict=True) if said]
            findings.append(finding(code, chosen, **{key: tuple(values[where].tolist())}))
    back = np.argsort(robot.order)
    names = tuple(f'{symbol} {joints[j]}' if j >= 0 else symbol for symbol, j in arm.names)
    parts = tuple(found), noise[back], tracking[back], len(fit.states), in_order(findings)
    return Commanded(robot, *parts, names, theta, covariance)


def _determined(value: float, sigma: float, size: float) -> tuple[float | None, float | None]:
    """Return a value and its σ, None where the data do not determine it."""
    known = sigma <= max(MAX_RELATIVE_SIGMA * abs(value), MAX_TORQUE_SIGMA * size)
    return (float(value), float(sigma)) if known else (None, None)
