"""
Identification from commands and encoders alone: servos, friction and delay, without an effort.

Closed-loop output error on positions ('cloe') of short windows. Each starts from a state that is
estimated with the parameters, see `servo_simulation`. No torque is measured: all torques are in
proportion to the bodies, those of the description, or to a mass that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import dataclasses
from typing import NamedTuple

import numpy as np
import pinocchio
from scipy.optimize import lsq_linear

from ...exceptions import ConfigurationError, DivergenceError
from ..arrays import Array
from ..finding_codes import finding
from ..findings import Finding, in_order
from ..model.friction import UNKNOWN
from ..model.robot import ElasticRobot, Robot
from ..signals.recording import Recording
from .commanded_logs import commanded_log, first_parameters, make_windows, smooth
from .servo_simulation import (
    BODIES,
    COARSE_STEP,
    DELAY,
    FINE_STEP,
    ServoArm,
    simulate_servos,
    step_of,
    SYMBOLS,
    Windows,
)

# Friction terms of a configuration and the parameters that stand for them; viscous friction brakes
# as the servo's damping does, an offset moves the servo as a bias does.
TERMS = {'viscous': '', 'offset': '', 'coulomb': 'Fc', 'stribeck': 'Fst', 'load_coulomb': 'Fl'}
# Steps of finite differences, relative to the size of a parameter, and of states [rad, rad/s].
RELATIVE_STEP, POSITION_STEP, VELOCITY_STEP = 1e-4, 1e-5, 1e-4
# What positions and velocities at a start may be off at first, over the noise [1, 1/s].
STATE_SPREAD = np.array([10.0, 300.0])
# Iterations of each round; weights of joints change between rounds. A cost that falls by less than
# this share has converged.
ROUNDS, CONVERGED = (3, 8, 10), 1e-5
# Starts that are refined.
STARTS = 2
MAX_DELAY, FASTEST = 0.5, 400.0
# A parameter counts as determined where its σ is below this share of it, or its torque's σ below
# this share of what the servo usually asks for.
MAX_RELATIVE_SIGMA, MAX_TORQUE_SIGMA = 0.5, 0.1
# Limits that are tried, as shares of the torque that a servo without one asks for, with gains that
# are larger by these factors; least decrease of a joint's cost that speaks for one, the share of
# the asked torque below which a limit was reached.
LIMITS, GAINS, LIMIT_GAIN, REACHED = (0.3, 0.5, 0.7), (1.0, 1.8), 0.05, 0.98
# Residual over the tracking error, and correlation of neighbouring residuals, from which the model
# leaves something out.
UNEXPLAINED, CORRELATED = 0.1, 0.5
Progress = Callable[[str], None]


class KnownMass(NamedTuple):
    """A point mass [kg] that the last log carries, at a place (3,) [m] in a link's frame."""

    mass: float
    link: str
    place: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class ServoParameter:
    """
    A parameter of a servo, joint or body.

    Attributes
    ----------
    symbol, joint : key of `SYMBOLS`, 'delay' or 'bodies'; '' of all joints
    value, sigma : [unit]; None where the log does not determine it
    unit : SI
    ratio, ratio_sigma : value over the stiffness of the joint; None where that is not determined

    """

    symbol: str
    joint: str
    value: float | None
    sigma: float | None
    unit: str
    ratio: float | None = None
    ratio_sigma: float | None = None


@dataclasses.dataclass(frozen=True)
class Commanded:
    """
    What commands and positions tell of a robot.

    Attributes
    ----------
    robot : with the bodies that count
    parameters : in the order of the robot's joints
    residual, tracking : (n,) root mean square of what is left of positions, and of commands less
        positions [rad or m]
    windows, simulations : number of stretches, and how often all of them were simulated
    findings : what was observed
    chi : (p,) standard parameters: bodies, armature, friction
    estimate, covariance : (m,), (m, m) of all that was free, determined or not, by `names`

    """

    robot: Robot
    parameters: tuple[ServoParameter, ...]
    residual: Array
    tracking: Array
    windows: int
    simulations: int
    findings: tuple[Finding, ...]
    names: tuple[str, ...]
    estimate: Array
    covariance: Array

    def value(self, symbol: str, joint: str = '') -> float | None:
        """Return a parameter's value, None where it is not determined or was not asked for."""
        found = (p.value for p in self.parameters if (p.symbol, p.joint) == (symbol, joint))
        return next(found, None)


class Fit(NamedTuple):
    """Parameters (m,), states (W, 2, n), residuals (W, S, n), cost, torque asked for (n,)."""

    theta: Array
    states: Array
    residual: Array
    cost: float
    asked: Array


class Linear(NamedTuple):
    """Gram matrix (m, m), scores of windows (W, m); changes of states by them, of parameters."""

    gram: Array
    scores: Array
    state_change: Array  # (W, 2n)
    state_gain: Array  # (W, 2n, m)


class Problem:
    """Positions of windows as a function of parameters and initial states."""

    def __init__(
        self, arm: ServoArm, windows: Windows, prior: tuple[Array, Array], simulations: int = 0
    ) -> None:
        self.arm, self.windows, self.simulations = arm, windows, simulations
        self.mean, self.precision = prior  # (m,) each
        self.weight, self.longest_step = np.ones(arm.robot.n), COARSE_STEP

    def evaluate(self, theta: Array, states: Array) -> Fit:
        """Simulate once."""
        self.simulations += 1
        h = step_of(self.arm, self.windows, theta, self.longest_step)
        run = simulate_servos(self.arm, self.windows, theta[None], states[:, None], h)
        residual = (self.windows.q - run.q[:, 0]) * self.windows.valid[:, :, None]
        cost = float(((residual * self.weight) ** 2).sum())
        cost += float((self.precision * (theta - self.mean) ** 2).sum())
        return Fit(theta, states, residual, cost, run.asked)

    def reweighted(self, fit: Fit) -> Fit:
        """Weigh each joint by what is left of it."""
        count = self.windows.valid.sum()
        noise = np.sqrt((fit.residual**2).sum(axis=(0, 1)) / count)
        self.weight = 1.0 / np.maximum(noise, max(1e-3 * noise.max(), 1e-9))
        return self.evaluate(fit.theta, fit.states)

    def linearise(self, fit: Fit, sizes: Array) -> Linear:
        """Differentiate by parameters, whose sizes are (m,), and by initial states."""
        m, n = len(fit.theta), self.arm.robot.n
        steps = RELATIVE_STEP * sizes
        rows = np.vstack([fit.theta, fit.theta + np.diag(steps), np.tile(fit.theta, (2 * n, 1))])
        moved = np.repeat(POSITION_STEP, n), np.repeat(VELOCITY_STEP, n)
        states = np.repeat(fit.states[:, None], len(rows), axis=1)
        for k in range(2 * n):
            states[:, 1 + m + k, k // n, k % n] += moved[k // n][k % n]
        self.simulations += len(rows)
        h = step_of(self.arm, self.windows, fit.theta, self.longest_step)
        run = simulate_servos(self.arm, self.windows, rows, states, h).q
        change = (run[:, 1:] - run[:, :1]) / np.concatenate([steps, *moved])[:, None, None]
        change *= self.windows.valid[:, None, :, None] * self.weight
        flat = change.reshape(len(run), m + 2 * n, -1)
        A, X = flat[:, :m], flat[:, m:]
        r = (fit.residual * self.weight).reshape(len(run), -1)
        # The initial states are what they are measured as, within a spread, see `STATE_SPREAD`.
        spread = np.repeat(STATE_SPREAD, n) / np.tile(self.weight, 2)
        inner = X @ X.swapaxes(1, 2) + np.diag(spread**-2.0)
        both = np.concatenate([A, r[:, None]], axis=1)
        gain = np.linalg.solve(inner, X @ both.swapaxes(1, 2))  # (W, 2n, m + 1)
        free = both - gain.swapaxes(1, 2) @ X
        scores = (A @ free[:, m, :, None])[..., 0]
        gram = (A @ free[:, :m].swapaxes(1, 2)).sum(axis=0)
        return Linear(0.5 * (gram + gram.T), scores, gain[:, :, m], gain[:, :, :m])


def minimise(
    problem: Problem, theta: Array, states: Array, bounds: tuple[Array, Array], sizes: Array,
    rounds: Sequence[int] = ROUNDS,
) -> tuple[Fit, Linear]:  # fmt: skip
    """
    Minimise the weighted squares by Levenberg-Marquardt steps within bounds (m,).

    Raises
    ------
    DivergenceError : no simulation stays near the measured positions

    """
    fit, n = problem.evaluate(np.clip(theta, *bounds), states), problem.arm.robot.n
    for iterations in rounds:
        fit, damping = problem.reweighted(fit), 1e-3
        for _ in range(iterations):
            before = fit.cost
            linear = problem.linearise(fit, np.maximum(np.abs(fit.theta), sizes))
            slope = linear.scores.sum(axis=0) + problem.precision * (problem.mean - fit.theta)
            normal = linear.gram + np.diag(problem.precision)
            scale = 1.0 / np.sqrt(np.maximum(np.diag(normal), 1e-12 / sizes**2))
            scaled = normal * np.outer(scale, scale)
            for _ in range(8):
                root = np.linalg.cholesky(scaled + (damping + 1e-9) * np.eye(len(scale))).T
                target = np.linalg.solve(root.T, slope * scale)
                limits = [(bound - fit.theta) / scale for bound in bounds]
                limits[1] = np.maximum(limits[1], limits[0] + 1e-12)
                change = lsq_linear(root, target, tuple(limits)).x * scale
                update = linear.state_change - linear.state_gain @ change
                trial = problem.evaluate(
                    np.clip(fit.theta + change, *bounds), fit.states + update.reshape(-1, 2, n)
                )
                if trial.cost < fit.cost:
                    fit, damping = trial, max(0.2 * damping, 1e-9)
                    break
                damping *= 8.0
            if fit.cost > (1.0 - CONVERGED) * before:
                break
    if not np.isfinite(fit.cost) or np.abs(fit.residual).max() > 100.0:
        raise DivergenceError(
            'no servo with these bodies follows the commands as the log does: check the robot '
            'description, the units and the order of the joints', sum(rounds)
        )  # fmt: skip
    return fit, problem.linearise(fit, np.maximum(np.abs(fit.theta), sizes))


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

    Parameters
    ----------
    recordings : with commanded positions as their reference; the last one carries a known mass
    prior_spread : relative standard deviation of the description's bodies, where they are free
    free_bodies : whether each body has a scale of its own, with that spread
    known_mass : what fixes the scale of all torques, and so of all bodies together

    Raises
    ------
    RecordingError : a recording cannot be used
    ConfigurationError : the robot has parts that are not simulated here, or no inertials
    DivergenceError : the model does not follow the log

    """
    _check_robot(robot)
    if known_mass is not None and len(recordings) < 2:
        raise ConfigurationError(
            'a known mass tells the scale of torques by a log with it beside one without: give '
            'both, the one with the mass last'
        )
    progress('reading commands')
    logs = [commanded_log(recording, robot) for recording in recordings]
    smoothed = [smooth(log) for log in logs]
    windows = make_windows(logs, smoothed)
    arm = _servo_arm(robot, len(logs), free_bodies, known_mass)
    rows = [s.valid for s in smoothed]
    errors = [log.commanded(log.time) - log.q for log in logs]
    tracking, speed, acceleration = (
        _rms([x[own] for x, own in zip(values, rows, strict=True)])
        for values in (errors, [s.dq for s in smoothed], [s.ddq for s in smoothed])
    )
    scales = np.maximum(np.stack([tracking, speed, acceleration]), 1e-9)
    precision = np.array([
        prior_spread**-2.0 if symbol == BODIES and joint >= 0 else 0.0
        for symbol, joint in arm.names
    ])  # fmt: skip
    progress('simulating the servos')
    starts = first_parameters(arm, logs, smoothed)
    problem = Problem(arm, windows, (np.ones(len(arm.names)), precision))
    fit = _best_start(problem, starts, scales)
    fit, problem = _with_limits(problem, fit, scales)
    problem.longest_step = FINE_STEP
    sizes, bounds = (
        f(problem.arm, fit.theta, x) for f, x in ((_sizes, scales), (_bounds, windows))
    )
    fit, linear = minimise(problem, fit.theta, fit.states, bounds, sizes, ROUNDS[2:])
    progress('judging what is determined')
    covariance = _covariance(problem, fit, linear)
    return _result(robot, problem, fit, covariance, scales, known_mass is not None)


def _rms(parts: Sequence[Array]) -> Array:
    return np.asarray(np.sqrt((np.concatenate(parts) ** 2).mean(axis=0)))


def _check_robot(robot: Robot) -> None:
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
    for joint, terms in zip(robot.joints, robot.friction, strict=True):
        if other := [term.name for term in terms if term.name not in TERMS]:
            raise ConfigurationError(
                f'friction {", ".join(other)} of {joint} is not simulated with servos: take '
                f'{", ".join(TERMS)}'
            )


def _servo_arm(
    robot: Robot, logs: int, free_bodies: bool, known_mass: KnownMass | None
) -> ServoArm:
    names, speeds = list[tuple[str, int]](), np.ones(robot.n)
    for k, j in enumerate(robot.order):
        chosen = ['stiffness', 'damping', *(['armature'] if robot.rotor_inertia else [])]
        for term in robot.friction[j]:
            chosen += [TERMS[term.name]] if TERMS[term.name] else []
            speeds[k] = term.constants.get('stribeck_velocity', UNKNOWN) or speeds[k]
        names += [(symbol, k) for symbol in (*chosen, 'bias')]
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
    return ServoArm(robot, tuple(names), {'limit': np.full(robot.n, np.inf)}, speeds, tuple(added))


def _sizes(arm: ServoArm, theta: Array, scales: Array) -> Array:
    """Return the sizes (m,) of parameters whose torque is what the servo usually asks for."""
    error, speed, acceleration = scales
    kp = arm.values(theta)['stiffness'][0]
    torque = kp * error
    by = {
        'stiffness': kp, 'damping': torque / speed, 'armature': torque / acceleration,
        'Fc': torque, 'Fst': torque, 'Fl': np.full_like(kp, 0.1), 'bias': error,
        'limit': torque, BODIES: np.ones_like(kp), DELAY: np.full_like(kp, 0.01),
    }  # fmt: skip
    return np.array([by[symbol][max(joint, 0)] for symbol, joint in arm.names])


def _bounds(arm: ServoArm, theta: Array, windows: Windows) -> tuple[Array, Array]:
    values = arm.values(theta)
    low, high = np.zeros_like(theta), np.full_like(theta, np.inf)
    model = arm.models(np.ones(arm.robot.n))[0]
    data = model.createData()
    mass = [np.diag(pinocchio.crba(model, data, q)).copy() for q in windows.state[::5, 0]]
    slowest = values['stiffness'][0] / FASTEST**2 - np.min(mass, axis=0)
    for k, (symbol, joint) in enumerate(arm.names):
        if symbol == 'bias':
            low[k] = -np.inf
        elif symbol == 'armature':  # no log of commands resolves a faster servo
            low[k] = max(slowest[joint], 0.0)
        elif symbol == DELAY:
            high[k] = MAX_DELAY
        elif symbol == BODIES:
            low[k], high[k] = 0.02, 50.0
        elif symbol in ('stiffness', 'limit'):
            low[k] = 1e-3 * theta[k]
    return low, high


def _best_start(problem: Problem, starts: Sequence[Array], scales: Array) -> Fit:
    """Refine the best starts a little, and return what the best of them leads to."""
    found, failures = list[Fit](), list[DivergenceError]()
    problem.weight = 1.0 / scales[0]
    costs = [problem.evaluate(start, problem.windows.state).cost for start in starts]
    for start in (starts[k] for k in np.argsort(costs)[:STARTS]):
        sizes = _sizes(problem.arm, start, scales)
        bounds = _bounds(problem.arm, start, problem.windows)
        problem.weight = 1.0 / scales[0]
        try:
            found.append(
                minimise(problem, start, problem.windows.state, bounds, sizes, ROUNDS[:1])[0]
            )
        except DivergenceError as error:
            failures.append(error)
    if not found:
        raise failures[0]
    best = min(found, key=lambda fit: float(((fit.residual / scales[0]) ** 2).sum()))
    sizes = _sizes(problem.arm, best.theta, scales)
    bounds = _bounds(problem.arm, best.theta, problem.windows)
    return minimise(problem, best.theta, best.states, bounds, sizes, ROUNDS[1:2])[0]


def _with_limits(problem: Problem, fit: Fit, scales: Array) -> tuple[Fit, Problem]:
    """Add the torque limits that a log shows, and fit with these."""
    arm, windows = problem.arm, problem.windows
    plain = _joint_costs(fit)
    best, least = np.full(arm.robot.n, np.inf), (1.0 - LIMIT_GAIN) * plain
    gains = np.ones(arm.robot.n)
    places = [k for k, (symbol, _) in enumerate(arm.names) if symbol in ('stiffness', 'damping')]
    for gain in GAINS:
        theta = fit.theta.copy()
        theta[places] *= gain
        for share in LIMITS:
            limit = share * fit.asked
            tried = dataclasses.replace(arm, fixed={'limit': limit})
            run = Problem(tried, windows, (problem.mean, problem.precision))
            costs = _joint_costs(run.evaluate(theta, fit.states))
            problem.simulations += 1
            better = costs < least
            best[better], least[better], gains[better] = limit[better], costs[better], gain
    limited = np.flatnonzero(np.isfinite(best))
    if limited.size:
        theta = fit.theta.copy()
        for k in places:
            theta[k] *= gains[arm.names[k][1]]
        names = (*arm.names, *(('limit', int(j)) for j in limited))
        more = np.ones(len(limited))
        other = Problem(
            dataclasses.replace(arm, names=names),
            windows,
            (np.append(problem.mean, more), np.append(problem.precision, 0.0 * more)),
            problem.simulations,
        )
        other.weight = problem.weight
        theta = np.append(theta, best[limited])
        sizes, bounds = _sizes(other.arm, theta, scales), _bounds(other.arm, theta, windows)
        found, _ = minimise(other, theta, fit.states, bounds, sizes, ROUNDS[:2])
        limits = other.arm.values(found.theta)['limit'][0]
        reached = limits < REACHED * found.asked
        gained = _joint_costs(found) < (1.0 - LIMIT_GAIN) * plain
        if (reached & gained)[limited].all():
            return found, other
        problem.simulations = other.simulations
        if (reached & gained).any():
            kept = [
                k for k, (symbol, j) in enumerate(names)
                if symbol != 'limit' or (reached & gained)[j]
            ]  # fmt: skip
            fewer = dataclasses.replace(arm, names=tuple(names[k] for k in kept))
            prior = other.mean[kept], other.precision[kept]
            problem = Problem(fewer, windows, prior, other.simulations)
            problem.weight = other.weight
            fit = Fit(found.theta[kept], *found[1:])
    return fit, problem


def _joint_costs(fit: Fit) -> Array:
    return np.asarray((fit.residual**2).sum(axis=(0, 1)))


def _covariance(problem: Problem, fit: Fit, linear: Linear) -> Array:
    """
    Return the covariance (m, m): by white noise, or by blocks of time where that is more.

    Residuals of a window correlate, those of different windows do not: `G⁻¹ Σ g gᵀ G⁻¹` with the
    scores g of windows.
    """
    m, n, windows = len(fit.theta), problem.arm.robot.n, len(fit.states)
    normal = linear.gram + np.diag(problem.precision)
    scale = 1.0 / np.sqrt(np.maximum(np.diag(normal), 1e-300))
    scaled = normal * np.outer(scale, scale)
    inverse = np.linalg.inv(scaled + 1e-12 * np.eye(m)) * np.outer(scale, scale)
    count = n * problem.windows.valid.sum() - m - 2 * n * windows
    white = inverse * fit.cost / max(count, 1)
    # Parameters of a joint act on its own residuals most: they are what windows are spent on.
    spent = windows / max(windows - m / n, 1.0)
    blocks = spent * linear.scores.T @ linear.scores
    prior = np.diag(problem.precision)
    robust = inverse @ (blocks + prior) @ inverse
    sigma = np.sqrt(np.maximum(np.diag(white), np.diag(robust)))
    root = np.sqrt(np.diag(robust))
    return np.asarray(robust * np.outer(sigma / root, sigma / root))


def _result(
    robot: Robot, problem: Problem, fit: Fit, covariance: Array, scales: Array, scale_known: bool
) -> Commanded:
    arm, theta = problem.arm, fit.theta
    joints = tuple(robot.joints[j] for j in robot.order)
    sigma, sizes = np.sqrt(np.diag(covariance)), _sizes(arm, theta, scales)
    place = {name: k for k, name in enumerate(arm.names)}
    found, open_names, by_ratio = list[ServoParameter](), list[str](), list[str]()
    for k, (symbol, joint) in enumerate(arm.names):
        known = _is_determined(theta[k], sigma[k], sizes[k])
        ratio = ratio_sigma = None
        if symbol in ('damping', 'armature', 'Fc', 'Fst', 'limit'):
            at = [k, place['stiffness', joint]]
            kp = theta[at[1]]
            gradient = np.array([1.0 / kp, -theta[k] / kp**2])
            spread = float(np.sqrt(gradient @ covariance[np.ix_(at, at)] @ gradient))
            if _is_determined(theta[k] / kp, spread, sizes[k] / kp):
                ratio, ratio_sigma = float(theta[k] / kp), spread
        name = joints[joint] if joint >= 0 else ''
        if not known:
            (open_names if ratio is None else by_ratio).append(f'{symbol} {name}'.strip())
        value = (float(theta[k]), float(sigma[k])) if known else (None, None)
        unit = _unit(symbol, joint >= 0 and bool(robot.prismatic[robot.order[joint]]))
        found.append(ServoParameter(symbol, name, *value, unit, ratio, ratio_sigma))
    found.sort(key=lambda p: robot.joints.index(p.joint) if p.joint else robot.n)
    noise = np.sqrt(_joint_costs(fit) / problem.windows.valid.sum())
    findings = [
        *_scale_findings(problem, scale_known),
        *([finding('servo_ratios', parameters=by_ratio)] if by_ratio else []),
        *([finding('servo_undetermined', parameters=open_names)] if open_names else []),
        *_limit_findings(arm, fit, joints),
        *_misfit_findings(problem, fit, noise, scales[0], joints),
    ]
    back = np.argsort(robot.order)
    return Commanded(
        robot,
        tuple(found),
        noise[back],
        scales[0][back],
        len(fit.states),
        problem.simulations,
        in_order(findings),
        tuple(f'{symbol} {joints[j]}' if j >= 0 else symbol for symbol, j in arm.names),
        theta,
        covariance,
    )


def _is_determined(value: float, sigma: float, size: float) -> bool:
    return bool(sigma <= max(MAX_RELATIVE_SIGMA * abs(value), MAX_TORQUE_SIGMA * size))


def _unit(symbol: str, slides: bool) -> str:
    if symbol in (DELAY, BODIES):
        return 's' if symbol == DELAY else '1'
    return SYMBOLS[symbol].format(f='N' if slides else 'N·m', l='m' if slides else 'rad')


def _scale_findings(problem: Problem, scale_known: bool) -> list[Finding]:
    return [] if scale_known else [finding('servo_scale')]


def _limit_findings(arm: ServoArm, fit: Fit, joints: Sequence[str]) -> list[Finding]:
    open_joints = [
        k for k in range(arm.robot.n) if ('limit', k) not in arm.names
    ]  # fmt: skip
    if not open_joints:
        return []
    names = [joints[k] for k in open_joints]
    return [finding('servo_not_saturated', names, torques=tuple(fit.asked[open_joints].tolist()))]


def _misfit_findings(
    problem: Problem, fit: Fit, noise: Array, tracking: Array, joints: Sequence[str]
) -> list[Finding]:
    r, both = fit.residual, problem.windows.valid[:, 1:] & problem.windows.valid[:, :-1]
    products = (r[:, 1:] * r[:, :-1] * both[:, :, None]).sum(axis=(0, 1))
    correlation = products / np.maximum((r**2).sum(axis=(0, 1)), 1e-300)
    share = noise / tracking
    bad = np.flatnonzero((share > UNEXPLAINED) & (correlation > CORRELATED))
    if not bad.size:
        return []
    names = [joints[k] for k in bad]
    return [finding('servo_misfit', names, shares=tuple(share[bad].tolist()))]
