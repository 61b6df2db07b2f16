"""Closed-loop output error on positions of servo arms: least squares, limits, covariance."""

from collections.abc import Sequence
import dataclasses
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import lsq_linear

from ...exceptions import DivergenceError
from ..arrays import Array
from .servo_simulation import BODIES, DELAY, ServoArm, simulate_servos, Windows

# Longest step [s] of a result, and on the way there: at 50 Hz commands that jump by 0.25 rad, the
# first errs by 3 µs of the delay, the second by 50 µs. The fastest of a joint's rates times a step
# is to be below `MAX_RATE_STEP`, where the midpoint rule errs by less than 1 % of what decays.
FINE_STEP, COARSE_STEP, SHORTEST_STEP, MAX_RATE_STEP = 1e-3, 4e-3, 2.5e-4, 0.25
# Steps of finite differences, relative to the size of a parameter, and of states [rad, rad/s].
RELATIVE_STEP, POSITION_STEP, VELOCITY_STEP = 1e-4, 1e-5, 1e-4
# What positions and velocities at a start may be off in an iteration, over the noise [1, 1/s].
STATE_SPREAD = np.array([10.0, 300.0])
# Iterations of each round; weights of joints change between rounds. A cost that falls by less than
# this share has converged. Starts that are refined.
ROUNDS, CONVERGED, STARTS = (3, 8, 10), 1e-5, 2
# Steps of an iteration that are tried, and largest misfit of a position that counts [rad or m].
TRIALS, MAX_MISFIT = 8, 100.0
# Largest delay [s]; fastest servo that commands resolve [1/s]; scales of bodies.
MAX_DELAY, FASTEST, SCALES = 0.5, 400.0, (0.02, 50.0)
# Parameters of torques, which have a ratio to the stiffness.
RATIOS = ('damping', 'armature', 'Fc', 'Fst', 'limit')
# Limits that are tried, as shares of the torque that a servo without one asks for, with gains that
# are larger by these factors; least decrease of a joint's cost that speaks for one; share of the
# asked torque below which a limit was reached.
LIMITS, GAINS, LIMIT_GAIN, REACHED = (0.3, 0.5, 0.7), (1.0, 1.8), 0.05, 0.98


class Fit(NamedTuple):
    """Where a simulation of all windows has come to."""

    theta: Array  # (m,) parameters
    states: Array  # (W, 2, n) initial states
    residual: Array  # (W, S, n)
    cost: float
    asked: Array  # (n,) largest torque that servos ask for

    @property
    def joint_costs(self) -> Array:
        """Sums of squares of each joint, (n,)."""
        return np.asarray((self.residual**2).sum(axis=(0, 1)))


class Linear(NamedTuple):
    """A fit's normal equations, initial states eliminated."""

    gram: Array  # (m, m)
    scores: Array  # (W, m)
    state_change: Array  # (W, 2n)
    state_gain: Array  # (W, 2n, m)


@dataclasses.dataclass
class ServoProblem:
    """Positions of windows as a function of parameters and initial states."""

    arm: ServoArm
    windows: Windows
    scales: Array  # (3, n) usual tracking error, velocity and acceleration
    weight: Array  # (n,) of positions in the cost
    longest_step: float = COARSE_STEP  # of a simulation [s]
    simulations: int = 0  # how many there were

    def of(self, **changes: Any) -> 'ServoProblem':
        """Return the problem of an arm with some fields changed."""
        return dataclasses.replace(self, arm=dataclasses.replace(self.arm, **changes))

    def sizes(self, theta: Array) -> Array:
        """Return the sizes (m,) of parameters whose torque is what a servo usually asks for."""
        error, speed, acceleration = self.scales
        kp = self.arm.values(theta)['stiffness'][0]
        torque = kp * error
        by = {
            'stiffness': kp, 'damping': torque / speed, 'armature': torque / acceleration,
            'Fc': torque, 'Fst': torque, 'Fl': np.full_like(kp, 0.1), 'bias': error,
            'limit': torque, BODIES: np.ones_like(kp), DELAY: np.full_like(kp, 0.01),
        }  # fmt: skip
        return np.array([by[symbol][max(joint, 0)] for symbol, joint in self.arm.names])

    def bounds(self, theta: Array) -> tuple[Array, Array]:
        """Return bounds (m,) of parameters from a start."""
        masses = self.arm.mass_matrices(self.windows, 1.0)
        least = np.diagonal(masses, axis1=1, axis2=2).min(axis=0)
        slowest = self.arm.values(theta)['stiffness'][0] / FASTEST**2 - least
        ranges = {'bias': (-np.inf, np.inf), DELAY: (0.0, MAX_DELAY), BODIES: SCALES}
        pairs = []
        for (symbol, joint), value in zip(self.arm.names, theta, strict=True):
            low = max(slowest[joint], 0.0) if symbol == 'armature' else 0.0
            low = 1e-3 * value if symbol in ('stiffness', 'limit') else low
            pairs.append(ranges.get(symbol, (low, np.inf)))
        low, high = np.array(pairs).T
        return low, high

    def step(self, theta: Array) -> float:
        """Return the step [s] at which the fastest joint of parameters (m,) is followed."""
        values = self.arm.values(theta)
        mass = self.arm.mass_matrices(self.windows, values[BODIES][0])
        inverse = np.linalg.inv(mass + np.diag(values['armature'][0]))
        largest = np.diagonal(inverse, axis1=1, axis2=2).max(axis=0)
        fastest = np.max([values['damping'] * largest, np.sqrt(values['stiffness'] * largest)])
        return float(np.clip(MAX_RATE_STEP / max(fastest, 1e-9), SHORTEST_STEP, self.longest_step))

    def evaluate(self, theta: Array, states: Array) -> Fit:
        """Simulate once."""
        self.simulations += 1
        h, rows = self.step(theta), theta[None]
        q, asked = simulate_servos(self.arm, self.windows, rows, states[:, None], h)
        residual = (self.windows.q - q[:, 0]) * self.windows.valid[:, :, None]
        cost = float(((residual * self.weight) ** 2).sum())
        return Fit(theta, states, residual, cost, asked)

    def linearise(self, fit: Fit, sizes: Array) -> Linear:
        """Differentiate by parameters, whose sizes are (m,), and by initial states."""
        m, n, count = len(fit.theta), self.arm.robot.n, len(fit.states)
        moves = np.repeat([POSITION_STEP, VELOCITY_STEP], n)
        steps = np.concatenate([RELATIVE_STEP * np.maximum(np.abs(fit.theta), sizes), moves])
        rows = np.tile(fit.theta, (1 + m + 2 * n, 1))
        rows[1 : 1 + m] += np.diag(steps[:m])
        states = np.repeat(fit.states[:, None], len(rows), axis=1)
        states[:, 1 + m :] += np.diag(moves).reshape(2 * n, 2, n)
        self.simulations += len(rows)
        q, _ = simulate_servos(self.arm, self.windows, rows, states, self.step(fit.theta))
        change = (q[:, 1:] - q[:, :1]) / steps[:, None, None]
        change *= self.windows.valid[:, None, :, None] * self.weight
        A, X = np.split(change.reshape(count, m + 2 * n, -1), [m], axis=1)
        r = (fit.residual * self.weight).reshape(count, 1, -1)
        # States are where they were, within `STATE_SPREAD`; what they explain is projected off.
        spread = np.repeat(STATE_SPREAD, n) / np.tile(self.weight, 2)
        both = np.concatenate([A, r], axis=1)
        inner = X @ X.swapaxes(1, 2) + np.diag(spread**-2.0)
        gain = np.linalg.solve(inner, X @ both.swapaxes(1, 2))  # (W, 2n, m + 1)
        left = both - gain.swapaxes(1, 2) @ X
        gram = (A @ left[:, :m].swapaxes(1, 2)).sum(axis=0)
        scores = (A @ left[:, m, :, None])[..., 0]
        return Linear(0.5 * (gram + gram.T), scores, gain[:, :, m], gain[:, :, :m])


def minimise(
    problem: ServoProblem, theta: Array, states: Array, rounds: Sequence[int]
) -> tuple[Fit, Linear]:
    """Minimise the squares by Levenberg-Marquardt steps within bounds; raises as `fit_servos`."""
    sizes, (low, high) = problem.sizes(theta), problem.bounds(theta)
    fit = problem.evaluate(np.clip(theta, low, high), states)
    for iterations in rounds:
        # Each joint is weighted by what is left of it.
        noise = np.sqrt(fit.joint_costs / problem.windows.valid.sum())
        problem.weight = 1.0 / np.maximum(noise, max(1e-3 * noise.max(), 1e-9))
        fit, damping = problem.evaluate(fit.theta, fit.states), 1e-3
        for _ in range(iterations):
            before = fit.cost
            linear = problem.linearise(fit, sizes)
            slope, normal = linear.scores.sum(axis=0), linear.gram
            scale = 1.0 / np.sqrt(np.maximum(np.diag(normal), 1e-12 / sizes**2))
            scaled = normal * np.outer(scale, scale)
            for _ in range(TRIALS):
                root = np.linalg.cholesky(scaled + (damping + 1e-9) * np.eye(len(scale))).T
                least = (low - fit.theta) / scale
                most = np.maximum((high - fit.theta) / scale, least + 1e-12)
                target = np.linalg.solve(root.T, slope * scale)
                change = lsq_linear(root, target, (least, most)).x * scale
                moved = (linear.state_change - linear.state_gain @ change).reshape(states.shape)
                trial = problem.evaluate(
                    np.clip(fit.theta + change, low, high), fit.states + moved
                )
                if trial.cost < fit.cost:
                    fit, damping = trial, max(0.2 * damping, 1e-9)
                    break
                damping *= 8.0
            if fit.cost > (1.0 - CONVERGED) * before:
                break
    if not np.isfinite(fit.cost) or np.abs(fit.residual).max() > MAX_MISFIT:
        raise DivergenceError(
            'no servo with these bodies follows the commands as the log does: check the robot '
            'description, the units and the order of the joints',
            sum(rounds),
        )
    return fit, problem.linearise(fit, sizes)


def fit_servos(problem: ServoProblem, starts: Sequence[Array]) -> tuple[ServoProblem, Fit, Array]:
    """
    Fit from the best of several starts (m,), with the torque limits that the log shows.

    Returns the problem with these limits, the fit, and its covariance (m, m) by `ratio_basis`. A
    DivergenceError where no simulation stays near the measured positions.
    """
    states = problem.windows.state
    costs = [problem.evaluate(start, states).cost for start in starts]
    found, failure = list[Fit](), None
    for k in np.argsort(costs)[:STARTS]:
        problem.weight = 1.0 / problem.scales[0]
        try:
            found.append(minimise(problem, starts[k], states, ROUNDS[:1])[0])
        except DivergenceError as error:
            failure = error
    if failure and not found:
        raise failure
    best = min(found, key=lambda fit: float((fit.joint_costs / problem.scales[0] ** 2).sum()))
    fit, _ = minimise(problem, best.theta, best.states, ROUNDS[1:2])
    problem, fit = _with_limits(problem, fit)
    problem.longest_step = FINE_STEP
    fit, linear = minimise(problem, fit.theta, fit.states, ROUNDS[2:])
    return problem, fit, _covariance(problem, fit, linear)


def _with_limits(problem: ServoProblem, fit: Fit) -> tuple[ServoProblem, Fit]:
    """Add the torque limits that a log shows, and fit with them."""
    arm, n, plain = problem.arm, problem.arm.robot.n, fit.joint_costs
    best, gains, least = np.full(n, np.inf), np.ones(n), (1.0 - LIMIT_GAIN) * plain
    of_gains = np.array([symbol in ('stiffness', 'damping') for symbol, _ in arm.names])
    for gain in GAINS:
        theta = np.where(of_gains, gain, 1.0) * fit.theta
        for share in LIMITS:
            tried = problem.of(limit=share * fit.asked)
            costs = tried.evaluate(theta, fit.states).joint_costs
            problem.simulations = tried.simulations
            better = costs < least
            best[better], least[better], gains[better] = share, costs[better], gain
    limited = np.flatnonzero(np.isfinite(best))
    if not limited.size:
        return problem, fit
    names = (*arm.names, *(('limit', int(j)) for j in limited))
    factors = np.where(of_gains, gains[[j for _, j in arm.names]], 1.0)
    start = np.append(factors * fit.theta, best[limited] * fit.asked[limited])
    other = problem.of(names=names)
    found, _ = minimise(other, start, fit.states, ROUNDS[:2])
    reached = other.arm.values(found.theta)['limit'][0] < REACHED * found.asked
    reached &= found.joint_costs < (1.0 - LIMIT_GAIN) * plain
    kept = [k for k, (symbol, j) in enumerate(names) if symbol != 'limit' or reached[j]]
    last = other.of(names=tuple(names[k] for k in kept))
    return last, found._replace(theta=found.theta[kept])


def ratio_basis(arm: ServoArm, theta: Array) -> Array:
    """Return ∂θ/∂φ (m, m), φ with ratios to the stiffness in place of torques' parameters."""
    basis, place = np.eye(len(theta)), {name: k for k, name in enumerate(arm.names)}
    for k, (symbol, joint) in enumerate(arm.names):
        if symbol in RATIOS:
            stiffness = place['stiffness', joint]
            basis[k, k], basis[k, stiffness] = theta[stiffness], theta[k] / theta[stiffness]
    return basis


def _covariance(problem: ServoProblem, fit: Fit, linear: Linear) -> Array:
    """Return the covariance (m, m) by `ratio_basis`: white noise, or windows if that is more."""
    # Residuals of a window correlate, those of different windows do not: G⁻¹ Σ g gᵀ G⁻¹ with the
    # scores g of windows.
    m, n, windows = len(fit.theta), problem.arm.robot.n, len(fit.states)
    basis = ratio_basis(problem.arm, fit.theta)
    normal, scores = basis.T @ linear.gram @ basis, linear.scores @ basis
    scale = 1.0 / np.sqrt(np.maximum(np.diag(normal), 1e-300))
    scale = np.outer(scale, scale)
    inverse = np.linalg.inv(normal * scale + 1e-12 * np.eye(m)) * scale
    freedom = n * problem.windows.valid.sum() - m - 2 * n * windows
    white = inverse * fit.cost / max(freedom, 1)
    # Parameters of a joint act on its own residuals most: they are what windows are spent on.
    spent = windows / max(windows - m / n, 1.0)
    robust = inverse @ (spent * scores.T @ scores) @ inverse
    robust = robust + 1e-6 * white  # where no window has a score
    larger = np.sqrt(np.maximum(np.diag(white) / np.diag(robust), 1.0))
    return np.asarray(robust * np.outer(larger, larger))
