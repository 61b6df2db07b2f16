"""Identification from commands and encoders: servos, friction and delay, without an effort."""

from collections.abc import Callable, Sequence
import dataclasses
from typing import NamedTuple

import numpy as np
import pinocchio

from ...exceptions import ConfigurationError
from ..arrays import Array
from ..diagnostics.plausibility import limit_warnings
from ..finding_codes import finding
from ..findings import Finding, in_order
from ..model.friction import UNKNOWN
from ..model.robot import ElasticRobot, Robot
from ..signals.recording import Recording
from .commanded_logs import commanded_log, first_parameters, log_findings, make_windows
from .servo_fit import Fit, fit_servos, ratio_basis, RATIOS, ServoProblem
from .servo_simulation import BODIES, DELAY, ServoArm, UNITS

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
# Residual over the tracking error, and correlation of neighbouring residuals, from which the model
# leaves something out.
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
    simulations: int  # how often all of them were simulated
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
    prior_spread: float = 0.2,
    free_bodies: bool = False,
    known_mass: KnownMass | None = None,
    progress: Progress = lambda _: None,
) -> Commanded:
    """
    Identify servos, friction, delay and perhaps bodies from commands and positions.

    Closed-loop output error on positions ('cloe') of short windows, whose initial states are
    estimated too. No torque is measured: all are in proportion to the bodies, those of the
    description, or to a mass that is known. A RecordingError where a recording cannot be used, a
    ConfigurationError where the robot has parts that are not simulated here, or no inertials, a
    DivergenceError where the model does not follow the log.

    Parameters
    ----------
    recordings : with commanded positions as their reference; the last one carries a known mass
    prior_spread : relative standard deviation of the description's bodies, where they are free
    free_bodies : whether each body has a scale of its own, with that spread
    known_mass : what fixes the scale of all torques, and so of all bodies together

    """
    robot.check_no_mimic_joints('an identification from commands')
    if isinstance(robot, ElasticRobot) or robot.elastic is not None or robot.couplings:
        raise ConfigurationError(
            'an identification from commands is of one rigid servo a joint: leave '
            'robot.elastic and robot.couplings empty'
        )
    if robot.assumed_inertials:
        raise ConfigurationError(
            'the robot description has no inertials, and without an effort nothing else says what '
            'torques are: give one with masses and inertias'
        )
    if known_mass is not None and len(recordings) < 2:
        raise ConfigurationError(
            'a known mass tells the scale of torques by a log with it beside one without: give '
            'both, the one with the mass last'
        )
    progress('reading commands')
    logs = [commanded_log(recording, robot) for recording in recordings]
    windows = make_windows(logs)
    arm = _servo_arm(robot, len(logs), free_bodies, known_mass)
    motions = [
        np.stack([log.commanded(log.time) - log.q, *log.smoothed[1:3]])[:, log.smoothed.valid]
        for log in logs
    ]
    scales = np.sqrt(np.mean(np.concatenate(motions, axis=1) ** 2, axis=1))
    scales = np.maximum(scales, 1e-9)
    progress('simulating the servos')
    problem = ServoProblem(arm, windows, scales, prior_spread, 1.0 / scales[0])
    problem, fit, covariance = fit_servos(problem, first_parameters(arm, logs))
    q = np.vstack([log.q for log in logs])[:, np.argsort(robot.order)]
    findings = log_findings(logs) + limit_warnings(robot, q, LIMIT_MARGIN)
    findings += [] if known_mass else [finding('servo_scale')]
    return _result(robot, problem, fit, covariance, findings)


def _servo_arm(
    robot: Robot, logs: int, free_bodies: bool, known_mass: KnownMass | None
) -> ServoArm:
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
    if free_bodies:
        names += [(BODIES, k) for k in range(robot.n)]
    elif known_mass is not None:
        names.append((BODIES, -1))
    if known_mass is not None:
        model = robot.model
        if not model.existFrame(known_mass.link):
            links = ', '.join(f.name for f in model.frames if f.type == pinocchio.BODY)
            raise ConfigurationError(
                f"'{known_mass.link}' is no link of the robot: name one of {links}"
            )
        frame = model.frames[model.getFrameId(known_mass.link)]
        point = frame.placement.act(np.array(known_mass.place))
        joint = int(frame.parentJoint) - 1
        if joint < 0:
            raise ConfigurationError(
                f"'{known_mass.link}' does not move: a mass there says nothing"
            )
        added[-1] = joint, pinocchio.Inertia(known_mass.mass, point, np.zeros((3, 3)))
    return ServoArm(robot, tuple(names), np.full(robot.n, np.inf), speeds, tuple(added))


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
        slides = joint >= 0 and bool(robot.prismatic[robot.order[joint]])
        unit = UNITS[symbol].format(f='N' if slides else 'N·m', l='m' if slides else 'rad')
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
    back, counts = np.argsort(robot.order), (len(fit.states), problem.simulations)
    names = tuple(f'{symbol} {joints[j]}' if j >= 0 else symbol for symbol, j in arm.names)
    parts = tuple(found), noise[back], tracking[back], *counts, in_order(findings)
    return Commanded(robot, *parts, names, theta, covariance)


def _determined(value: float, sigma: float, size: float) -> tuple[float | None, float | None]:
    """Return a value and its σ, None where the data do not determine it."""
    known = sigma <= max(MAX_RELATIVE_SIGMA * abs(value), MAX_TORQUE_SIGMA * size)
    return (float(value), float(sigma)) if known else (None, None)
