"""
Arms whose servos follow commanded positions: simulated in many short windows at once, and fitted.

The fit is closed-loop output error on positions: least squares, limits, covariance.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pinocchio
from scipy.optimize import lsq_linear

from ...exceptions import DivergenceError
from ..arrays import Array, Indices, Mask
from ..model.dynamics import model_with
from ..model.robot import Robot

DELAY, BODIES = 'delay', 'bodies'
# Symbols of the parameters, of a joint but for the delay, with their units as of `TermKind`.
UNITS: Mapping[str, str] = {
    'stiffness': '{f}/{l}', 'damping': '{f}·s/{l}', 'armature': '{f}·s²/{l}', 'Fc': '{f}',
    'Fst': '{f}', 'Fl': '1', 'bias': '{l}', 'limit': '{f}', BODIES: '1', DELAY: 's',
}  # fmt: skip
# Sweeps over joints whose dry friction acts on each other; the change of a sign that ends them.
MAX_SWEEPS, TOLERANCE = 30, 1e-9
# A simulated joint farther off than this has diverged [rad or m].
FAR = 1e3
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


class Windows(NamedTuple):
    """Short stretches of logs; joints are in the model's order."""

    start: Array  # (W,) time of the first sample [s]
    log: Indices  # (W,) number of the log
    time: Array  # (W, S) of the samples since the start, 0 where there is none [s]
    valid: Mask  # (W, S) which samples there are
    q: Array  # (W, S, n) measured positions
    state: Array  # (W, 2, n) position and velocity at the start, filtered
    # Of each log, stamps (K,) [s] and commands (K, n), held from each to the next.
    commands: tuple[tuple[Array, Array], ...]

    def commanded(self, delay: float, h: float, count: int) -> Array:
        """Return the mean commands of `count` steps of h [s], (W, count, n)."""
        ends = self.start[:, None] + h * np.arange(count + 1) - delay
        result = np.empty((len(self.start), count, self.q.shape[2]))
        for number, (time, u) in enumerate(self.commands):
            own = self.log == number
            # The first command is held before it as well.
            area = np.cumsum(u * np.diff(time, append=time[-1])[:, None], axis=0)
            area = np.vstack([np.zeros(u.shape[1]), area[:-1]])
            row = np.maximum(np.searchsorted(time, ends[own], side='right') - 1, 0)
            once = area[row] + u[row] * (ends[own] - time[row])[..., None]
            result[own] = np.diff(once, axis=1) / h
        return result


@dataclasses.dataclass(frozen=True)
class ServoArm:
    """
    A robot with servos, and which of its parameters are free.

    `M(q) q̈ + h(q, q̇) + Ia q̈ + f = sat(k_p (u(t − d) + b − q) − k_d q̇)` with commands u that are
    held, dry friction f that sticks at rest, and the bodies M, h of the description.
    """

    robot: Robot  # rigid, its prior are the bodies
    # (m,) (symbol, number of the joint in the order of the model), −1 of the delay and of bodies.
    names: tuple[tuple[str, int], ...]
    stribeck_velocity: Array  # (n,) [rad/s or m/s]
    # Of each log, what its robot carries: (number of the joint, inertia) or None.
    added: tuple[tuple[int, pinocchio.Inertia] | None, ...] = (None,)

    def values(self, theta: Array) -> dict[str, Array]:
        """Return the parameters by symbol of rows theta (R, m): (R, n), those of all (R,)."""
        theta = np.atleast_2d(theta)
        found: dict[str, Array] = {s: np.zeros((len(theta), self.robot.n)) for s in UNITS}
        found['limit'] += np.inf
        found[BODIES], found[DELAY] = np.ones(len(theta)), np.zeros(len(theta))
        for column, (symbol, joint) in zip(theta.T, self.names, strict=True):
            if joint < 0:
                found[symbol] = column
            else:
                found[symbol][:, joint] = column
        return found

    def models(self, scale: float) -> list[Any]:
        """Return the Pinocchio model of each log, of bodies times their scale."""
        models = []
        for added in self.added:
            model = model_with(self.robot, self.robot.prior, armature=False)
            for k in range(self.robot.n):
                own = model.inertias[k + 1].toDynamicParameters() * scale
                body = pinocchio.Inertia.FromDynamicParameters(own)
                model.inertias[k + 1] = body + added[1] if added and added[0] == k else body
            models.append(model)
        return models

    def mass_matrices(self, windows: Windows, scale: float) -> Array:
        """Return M where some windows start, (P, n, n), of bodies times their scale."""
        model, starts = self.models(scale)[0], windows.state[:, 0]
        data = model.createData()
        some = starts[:: max(1, len(starts) // 10)]
        return np.array([np.array(pinocchio.crba(model, data, q)) for q in some])


def _rigid_terms(
    arm: ServoArm, models: list[Any], log: Indices, with_bodies: bool
) -> Callable[[Array, Array, Array], tuple[Array, Array, Array, Array, Array]]:
    """Return M, ∂τ/∂q, ∂τ/∂q̇, bias and torques of the bodies (W, n), by q, q̇, q̈ (W, n)."""
    datas = [model.createData() for model in models]
    n, count = arm.robot.n, len(log)
    mass, by_q, by_v = (np.zeros((count, n, n)) for _ in range(3))
    torque, bodies = np.zeros((2, count, n))
    plain = model_with(arm.robot, arm.robot.prior, armature=False)
    other = plain.createData()
    upper = np.triu(np.ones((n, n)))

    def terms(q: Array, v: Array, a: Array) -> tuple[Array, Array, Array, Array, Array]:
        for w in range(count):
            data = datas[log[w]]
            pinocchio.computeRNEADerivatives(models[log[w]], data, q[w], v[w], a[w])
            mass[w], by_q[w], by_v[w], torque[w] = data.M, data.dtau_dq, data.dtau_dv, data.tau
            if with_bodies:
                bodies[w] = pinocchio.rnea(plain, other, q[w], v[w], a[w])
        whole = mass * upper + (mass * (upper - np.eye(n))).swapaxes(1, 2)
        return whole, by_q, by_v, torque - _of(whole, a), bodies

    return terms


def _of(matrix: Array, rows: Array) -> Array:
    """Return matrices (W, R, n, n) times rows (W, R, n)."""
    return np.asarray((matrix @ rows[..., None])[..., 0])


def batch_mean_sign(speed: Array, rest: Array, friction: Array, h: float) -> Array:
    """`simulation.mean_sign` elementwise; `rest` is the acceleration without friction."""
    known = np.maximum(friction, 1e-300)
    after = np.clip(rest / known, -1.0, 1.0)
    before = np.sign(speed)
    braking = (rest - friction * before) * before  # below 0: it slows down
    share = np.abs(speed) / np.maximum(-braking * h, 1e-300)
    stops = (braking < 0.0) & (share < 1.0)
    share = np.where(stops, share, 1.0)
    return np.where(before == 0.0, after, share * before + (1.0 - share) * after)


def _dry_friction(v: Array, free: Array, inverse: Array, bound: Array, h: float) -> Array:
    """Return the mean dry friction (W, R, n), at most `bound`; `free` are q̈ without it."""
    sign = np.sign(v)
    force = bound * sign
    after = v + h * (free - _of(inverse, force))
    change = ((np.sign(after) != sign) & (bound > 0.0)).any(axis=2)
    window, row = np.nonzero(change)
    if not window.size:
        return force
    speed, rest, own, f = v[window, row], free[window, row], bound[window, row], force[change]
    coupling = inverse[window, row]
    for _ in range(MAX_SWEEPS):
        largest = 0.0
        for j in range(v.shape[2]):
            diagonal = coupling[:, j, j]
            others = rest[:, j] - (coupling[:, j] * f).sum(axis=1) + diagonal * f[:, j]
            now = own[:, j] * batch_mean_sign(speed[:, j], others, diagonal * own[:, j], h)
            moved = np.abs(now - f[:, j]) / np.maximum(own[:, j], 1e-300)
            largest = max(largest, float(moved.max()))
            f[:, j] = now
        if largest < TOLERANCE:
            break
    force[change] = f
    return force


def simulate_servos(
    arm: ServoArm, windows: Windows, theta: Array, states: Array, h: float
) -> tuple[Array, Array]:
    """
    Simulate rows of parameters (R, m) in all windows, from initial states (W, R, 2, n).

    The first row is exact; others are near it: their rigid-body terms are its to first order, so
    that all sensitivities cost about as much as one simulation. Steps are of h [s]. Returns
    positions at the samples (W, R, S, n), and the largest torque that servos ask for (n,).
    """
    values = {name: value[None] for name, value in arm.values(theta).items()}
    kp, kd, armature, limit = (values[s] for s in ('stiffness', 'damping', 'armature', 'limit'))
    scale = values[BODIES][0]
    with_bodies = bool((scale != scale[0]).any())
    terms = _rigid_terms(arm, arm.models(scale[0]), windows.log, with_bodies)
    steps = int(np.ceil(windows.time.max() / h - 1e-9)) + 1
    delays, which = np.unique(values[DELAY][0], return_inverse=True)
    rotors, rotor = np.unique(armature[0], axis=0, return_inverse=True)
    diagonals = rotors[:, :, None] * np.eye(rotors.shape[1])
    commands = np.stack([windows.commanded(d, h, steps) for d in delays])
    q, v = states[:, :, 0].copy(), states[:, :, 1].copy()
    a = np.zeros_like(q)
    path = np.empty((steps + 1, *q.shape))
    path[0], largest = q, np.zeros(q.shape[2])
    speeds = arm.stribeck_velocity
    dry = values['Fc'].any() or values['Fst'].any() or values['Fl'].any()
    for k in range(steps):
        middle, speed = q + 0.5 * h * v, v + 0.5 * h * a
        last = a[:, 0]
        mass, by_position, by_velocity, bias, bodies = terms(middle[:, 0], speed[:, 0], last)
        inverse = np.asarray(np.linalg.inv(mass[:, None] + diagonals)[:, rotor], float)
        wanted = commands[which, :, k].swapaxes(0, 1) + values['bias']
        drive = kp * (wanted - middle) - kd * speed
        largest = np.maximum(largest, np.abs(drive[:, 0]).max(axis=0))
        passive = bias[:, None] + (middle - middle[:, :1]) @ by_position.swapaxes(1, 2)
        passive += (speed - speed[:, :1]) @ by_velocity.swapaxes(1, 2)
        if with_bodies:
            passive += (scale - scale[0])[:, None] * bodies[:, None]
        a = _of(inverse, np.clip(drive, -limit, limit) - passive)
        if dry:
            load = np.abs(bias + _of(mass, last))[:, None]
            bound = values['Fc'] + values['Fl'] * load
            bound = bound + values['Fst'] * np.exp(-((v / speeds) ** 2))
            bound = np.broadcast_to(bound, v.shape)
            a = a - _of(inverse, _dry_friction(v, a, inverse, bound, h))
        after = v + h * a
        q, v = q + 0.5 * h * (v + after), after
        if not np.isfinite(q).all() or np.abs(q).max() > FAR:
            path[k + 1 :] = FAR
            break
        path[k + 1] = q
    at = np.minimum(windows.time / h, steps - 1e-9)
    row = at.astype(int)
    share = (at - row)[..., None, None]
    number = np.arange(len(q))[:, None]
    sampled = path[row, number] * (1.0 - share) + path[row + 1, number] * share
    return sampled.swapaxes(1, 2), largest


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

    def of(self, names: Sequence[tuple[str, int]]) -> 'ServoProblem':
        """Return the problem with other free parameters."""
        return dataclasses.replace(self, arm=dataclasses.replace(self.arm, names=tuple(names)))

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
        h = self.step(theta)
        q, asked = simulate_servos(self.arm, self.windows, theta[None], states[:, None], h)
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
    free, n, plain = problem.arm.names, problem.arm.robot.n, fit.joint_costs
    names = (*free, *(('limit', j) for j in range(n)))
    other, of_gains = problem.of(names), np.array([s in ('stiffness', 'damping') for s, _ in free])
    best, gains, least = np.full(n, np.inf), np.ones(n), (1.0 - LIMIT_GAIN) * plain
    for gain in GAINS:
        theta = np.where(of_gains, gain, 1.0) * fit.theta
        for share in LIMITS:
            tried = other.evaluate(np.append(theta, share * fit.asked), fit.states)
            better = tried.joint_costs < least
            best[better], least[better] = share, tried.joint_costs[better]
            gains[better] = gain
    limited = np.flatnonzero(np.isfinite(best))
    if not limited.size:
        return problem, fit
    names = (*free, *(('limit', int(j)) for j in limited))
    factors = np.where(of_gains, gains[[j for _, j in free]], 1.0)
    start = np.append(factors * fit.theta, best[limited] * fit.asked[limited])
    other = problem.of(names)
    found, _ = minimise(other, start, fit.states, ROUNDS[:2])
    reached = other.arm.values(found.theta)['limit'][0] < REACHED * found.asked
    reached &= found.joint_costs < (1.0 - LIMIT_GAIN) * plain
    kept = [k for k, (symbol, j) in enumerate(names) if symbol != 'limit' or reached[j]]
    return other.of([names[k] for k in kept]), found._replace(theta=found.theta[kept])


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
