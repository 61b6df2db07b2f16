"""The design of a motion as an optimisation problem."""

from collections.abc import Sequence
from dataclasses import astuple, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...exceptions import ConfigurationError
from ..arrays import Array
from ..model.base_parameters import reduce_by_qr
from ..model.dynamics import inverse_dynamics
from ..model.robot import Robot
from .collision_bodies import body_frame
from .collision_scene import CollisionScene
from .criteria import Criterion, criterion, subset_d_optimal
from .limits import apply_margins, motion_limits, QUANTITIES
from .observation_matrix import ObservationModel, ObservedMotion, PINOCCHIO_SYMBOLS
from .settings import ExcitationSettings, Margins
from .trajectory import FAMILIES, Motion, Trajectory

# Samples of a period that the criterion sees: so many a harmonic, so many at least, and so many
# times more where friction has a shape of its own about standstill, which few samples would miss.
HARMONIC_SAMPLES, MIN_SAMPLES, STRIBECK_FACTOR = 8, 80, 4
# So many times more samples hold the peaks of a motion to a thousandth: the last check sees all.
EXACT_FACTOR = 8
# Relative slack below which the logarithm is continued by its parabola, so that it is finite.
BARRIER_RELAXATION = 1e-2
# Weight of the barrier of efforts against the objective: small, so that limits bend the optimum
# only where it meets them.
BARRIER_WEIGHT = 1e-4
# Times at which a motion is checked [Hz]; the search measures distances at each third of them,
# which saves time, and the check sees the rest.
CHECK_RATE, COLLISION_STRIDE = 50.0, 3
# Weights of the mean penalties of collisions and of efforts above their limits, from round to
# round: small ones let a start in collision find its way out, large ones leave no contact.
PENALTY_WEIGHTS = (10.0, 100.0, 1000.0)
# Share of an effort limit from which the penalty counts: a motion that keeps a little off needs
# no shrinking, which does not mend an effort that gravity needs along all of it.
EFFORT_SHARE = 0.97
# Weight of that penalty beside the scene's, which counts bodies in centimetres: with less, motions
# of arms that can hardly hold themselves were still a few percent above in the end.
EFFORT_WEIGHT = 5.0
# The optimiser sees sign(dq) as tanh(SIGN_STEEPNESS dq / velocity limit): steeper is nearer to the
# robot's friction and harder to follow by gradients.
SIGN_STEEPNESS = 20.0


def barrier(slack: Array) -> tuple[float, Array]:
    """Sum `−ln s` with its derivative, continued by a parabola below `BARRIER_RELAXATION`."""
    inside = np.maximum(slack, BARRIER_RELAXATION)
    excess = np.minimum(slack - BARRIER_RELAXATION, 0.0) / BARRIER_RELAXATION
    value = np.sum(-np.log(inside) - excess + 0.5 * excess**2)
    return float(value), -1.0 / inside + excess / BARRIER_RELAXATION


class _Evaluated(NamedTuple):
    """Where `value` was last evaluated, and what its gradient needs of that."""

    x: Array
    seen: ObservedMotion
    slope: Array
    effort_slope: Array
    q: Array
    penalty_slope: Array


class Problem:
    """Variables x = [q0 (when free), coefficients], each scaled by what it alone may reach."""

    def __init__(self, robot: Robot, settings: ExcitationSettings, scene: CollisionScene) -> None:
        self.robot, self.settings, self.scene = robot, settings, scene
        self.limits = motion_limits(robot, settings)
        self.design_limits = apply_margins(self.limits, settings.margins)
        # Between the samples the motion may use up to half of the margins.
        half = Margins(*(0.5 * margin for margin in astuple(settings.margins)))
        self.relaxed_limits = apply_margins(self.limits, half)
        self.middle = 0.5 * (self.design_limits.lower + self.design_limits.upper)
        self.half = 0.5 * (self.design_limits.upper - self.design_limits.lower)
        self.start = np.array(settings.start, dtype=float) if settings.start else None
        self.observation = ObservationModel(robot, SIGN_STEEPNESS / self.limits.velocity)
        self.prior = robot.prior[[robot.column(name) for name in self.observation.names]]
        self.columns = self._columns()
        self.weights = 1.0 / np.array(settings.noise) if settings.noise else np.ones(robot.n)
        self.criterion = criterion(settings.criterion)
        # R with RᵀR what is known already, as a mean over the rows of the motion.
        self.known = np.zeros((0, len(self.columns)))
        size = FAMILIES[settings.family].size * settings.order
        self.template = self.trajectory(np.zeros(robot.n), np.zeros((size, robot.n)))
        # Midpoints: no sample sits at rest at the ends, where Coulomb friction has no sign.
        count = max(MIN_SAMPLES, HARMONIC_SAMPLES * settings.order)
        shaped = any(term.constants for terms in robot.friction for term in terms)
        factor = STRIBECK_FACTOR if shaped else 1
        self.times, self.bases = self._midpoints(factor * count, 3)
        _, self.fine_bases = self._midpoints(2 * count, 4)
        _, self.exact_bases = self._midpoints(EXACT_FACTOR * count, 4)
        dense = int(np.ceil(CHECK_RATE * settings.period)) + 1
        self.dense_times = np.linspace(0.0, settings.period, dense)
        self.dense_basis = self.template.matrix(self.dense_times, 0)
        self.collision_basis = self.dense_basis[::COLLISION_STRIDE]
        tight = self.design_limits
        self.bounds = [self.half, tight.velocity, tight.acceleration, tight.jerk]
        reach = [
            bound / np.maximum(np.abs(basis).max(axis=0), 1e-12)[:, None]
            for basis, bound in zip(self.fine_bases, self.bounds, strict=True)
        ]
        self.scale: Array = np.min(reach, axis=0)
        self.set_penalty_stage(len(PENALTY_WEIGHTS))

    def _midpoints(self, count: int, derivatives: int) -> tuple[Array, list[Array]]:
        """Return times of a period, and the basis there with its derivatives."""
        times = (np.arange(count) + 0.5) / count * self.settings.period
        return times, [self.template.matrix(times, k) for k in range(derivatives)]

    def _columns(self) -> NDArray[np.intp]:
        """Return the essential columns of the settings, or the first independent ones."""
        flat = self._random_rows()
        names, wanted = self.observation.names, self.settings.columns
        if not wanted:
            return reduce_by_qr(flat)[0]
        for name in wanted:
            self.robot.column(name)
        chosen = np.array([names.index(name) for name in wanted])
        free = reduce_by_qr(flat[:, chosen])[0]
        bound = [name for k, name in enumerate(wanted) if k not in free]
        if bound:
            raise ConfigurationError(
                f'{", ".join(bound)} of excitation.columns depends on the columns before or '
                'has no effect: leave it out'
            )
        return chosen

    @property
    def columns_note(self) -> str:
        """Which columns the criterion is about."""
        chosen = self.settings.columns
        which = 'as configured' if chosen else "the first independent in Pinocchio's order"
        return f'{which}, then rotors and friction'

    def _random_rows(self) -> Array:
        """Return rows of W at random states, (rows, columns)."""
        rng = np.random.default_rng(0)
        shape = (60 + 10 * self.robot.n, self.robot.n)
        q = self.middle + self.half * rng.uniform(-1.0, 1.0, shape)
        dq, ddq = rng.uniform(-2.0, 2.0, (2, *shape))
        w = self.observation.matrix(Motion(q, dq, ddq))
        return w.reshape(-1, w.shape[2])

    def trajectory(self, start: Array, coefficients: Array) -> Trajectory:
        """Build the trajectory of q0 (n,) and coefficients (k, n)."""
        s = self.settings
        return Trajectory(self.robot.joints, s.family, s.period, s.order, start, coefficients)

    def unpack(self, x: Array) -> tuple[Array, Array]:
        """Return q0 (n,) and coefficients (k, n) of x."""
        n = self.robot.n
        if self.start is not None:
            return self.start, x.reshape(-1, n) * self.scale
        return self.middle + x[:n] * self.half, x[n:].reshape(-1, n) * self.scale

    def pack(self, start: Array, coefficients: Array) -> Array:
        """Invert `unpack`."""
        free = [] if self.start is not None else [(start - self.middle) / self.half]
        return np.concatenate([*free, (coefficients / self.scale).ravel()])

    def set_penalty_stage(self, stage: int, sharpness: float = np.inf) -> None:
        """Choose the weight of the collision penalty by the stage, and how sharp `value` is."""
        self.sharpness = sharpness
        self.penalty = PENALTY_WEIGHTS[min(stage, len(PENALTY_WEIGHTS) - 1)]
        self._last: _Evaluated | None = None

    def value(self, x: Array) -> float:
        """Evaluate the objective, barrier and penalty of efforts, and the scene's penalty."""
        start, c = self.unpack(x)
        motion = self.motion(start, c)
        seen = ObservedMotion(self.observation, motion)
        objective, slope = self.information(seen.matrix, self.sharpness)
        effort, effort_slope = self._effort(seen.matrix)
        q = start + self.collision_basis @ c
        penalty, penalty_slope = self.scene.penalty(q)
        self._last = _Evaluated(x.copy(), seen, slope, effort_slope, q, penalty_slope)
        value = objective + effort + self.penalty / len(q) * penalty
        return value if np.isfinite(value) else 1e30

    def gradient(self, x: Array) -> Array:
        """Differentiate `value`, exactly."""
        if self._last is None or not np.array_equal(self._last.x, x):
            self.value(x)
        assert self._last is not None
        _, seen, slope, effort_slope, q, penalty_slope = self._last
        # Objective, barrier and penalty of effort act through W.
        w = seen.matrix
        padded = np.zeros((len(slope), w.shape[2]))
        padded[:, self.columns] = 2.0 / len(w) * slope
        pull = (self._weighted_columns(w).reshape(-1, len(slope)) @ padded).reshape(w.shape)
        pull *= self.weights[:, None]
        pull += effort_slope[:, :, None] * self.prior
        pulled = seen.gradient(pull)
        pushed = self.penalty / len(q) * self.scene.gradient(q, penalty_slope)
        c = sum(b.T @ y for b, y in zip(self.bases, pulled, strict=True))
        c = ((c + self.collision_basis.T @ pushed) * self.scale).ravel()
        if self.start is not None:
            return c
        start = (pulled.q.sum(axis=0) + pushed.sum(axis=0)) * self.half
        return np.concatenate([start, c])

    def _weighted_columns(self, w: Array) -> Array:
        return np.take(w, self.columns, axis=2) * self.weights[:, None]

    def motion(self, start: Array, c: Array) -> Motion:
        """Evaluate the motion of q0 and coefficients at the samples."""
        phi, dphi, ddphi = self.bases
        return Motion(start + phi @ c, dphi @ c, ddphi @ c)

    def information(self, w: Array, sharpness: float = np.inf) -> tuple[float, Array]:
        """
        Return the objective of W (N, n, columns) and its gradient in S = WᵀW/N + RᵀR, (b, b).

        It is infinite where S is singular: of a motion that limits shrink to nothing.
        """
        rows = self.rows(w)
        s = rows.T @ rows
        smoothing = (sharpness,) if self.criterion.smoothable else ()
        try:
            return self.criterion.objective(s, *smoothing)
        except np.linalg.LinAlgError:
            return np.inf, np.zeros_like(s)

    def rows(self, w: Array) -> Array:
        """Return rows whose sum of squares is S: of W (N, n, columns), and of what is known."""
        flat = self._weighted_columns(w).reshape(-1, len(self.columns))
        return np.vstack([flat / np.sqrt(len(w)), self.known])

    def _effort(self, w: Array) -> tuple[float, Array]:
        """Return barrier and penalty of the efforts that W (N, n, columns) predicts, and slope."""
        limit = self.design_limits.effort
        u = w @ self.prior / limit
        upper, lower = barrier(1.0 - u), barrier(1.0 + u)
        excess = np.sign(u) * np.maximum(0.0, np.abs(u) - EFFORT_SHARE)
        weight = EFFORT_WEIGHT * self.penalty / len(u)
        value = BARRIER_WEIGHT * (upper[0] + lower[0]) + weight * float(np.sum(excess**2))
        slope = BARRIER_WEIGHT * (lower[1] - upper[1]) + 2.0 * weight * excess
        return value, slope / limit

    def usage(self, x: Array) -> Array:
        """Return share of position, velocity, acceleration and jerk bounds, (4, M, n), signed."""
        start, c = self.unpack(x)
        pairs = zip(self.fine_bases, self.bounds, strict=True)
        shares = np.stack([basis @ c / bound for basis, bound in pairs])
        shares[0] += (start - self.middle) / self.half
        return shares

    def linear_rows(self, index: NDArray[np.intp]) -> tuple[Array, Array]:
        """Return A (R, variables) and b (R,): `usage` of indices (R, 3), q t j, is A x + b."""
        size, n = self.scale.shape
        result = np.zeros((len(index), size, n))
        quantity, _, joint = index.T
        basis = np.stack(self.fine_bases)[quantity, index[:, 1]]
        bound = np.stack(self.bounds)[quantity, joint]
        result[np.arange(len(index)), :, joint] = basis * self.scale.T[joint] / bound[:, None]
        flat = result.reshape(len(index), -1)
        of_position = quantity == 0
        if self.start is not None:
            return flat, of_position * ((self.start - self.middle) / self.half)[joint]
        start = np.eye(n)[joint] * of_position[:, None]
        return np.hstack([start, flat]), np.zeros(len(index))

    def objective(self, x: Array) -> float:
        """Evaluate the criterion's objective alone."""
        motion = self.motion(*self.unpack(x))
        return self.information(self.observation.matrix(motion))[0]


def carrying(robot: Robot, settings: ExcitationSettings) -> Robot:
    """Return the robot whose prior carries the payload of the settings, as a point."""
    com, mass = settings.payload.com, settings.payload.mass
    if len(com) != 3:
        raise ConfigurationError("'excitation.payload.com' needs three coordinates x y z")
    frame = body_frame(robot, settings.workspace.frame)
    c = (frame.placement @ [*com, 1.0])[:3]
    moments = (c @ c) * np.eye(3) - np.outer(c, c)
    prior = robot.prior.copy()
    prior[robot.body_columns[frame.link]] += mass * np.array(
        [*moments[np.triu_indices(3)], *c, 1.0]
    )
    return replace(robot, prior=prior)


class PayloadProblem(Problem):
    """
    The columns are the carrying link's ten, then friction, which may change between recordings.

    All else cancels: the arm is the same with the payload and without. Efforts are bounded with
    the payload. Rows count by `excitation.noise`, or in parts of the effort limits where these are
    known: noise and errors of the model grow with a drive.
    """

    def __init__(self, robot: Robot, settings: ExcitationSettings, scene: CollisionScene) -> None:
        self.link = body_frame(robot, settings.workspace.frame).link
        super().__init__(carrying(robot, settings), settings, scene)
        limits = self.limits.effort
        if not settings.noise and np.isfinite(limits).all():
            self.weights: Array = limits.max() / limits
        objective = partial(subset_d_optimal, count=self.payload_columns)
        self.criterion: Criterion = Criterion('d_optimal', objective, float)

    @property
    def columns_note(self) -> str:
        """Which columns the criterion is about."""
        joint = self.robot.links[self.link]
        return f'the {self.payload_columns} that tell a payload at {joint}, then friction'

    def _columns(self) -> NDArray[np.intp]:
        names = self.observation.names
        own = [names.index(f'{symbol}{self.link + 1}') for symbol in PINOCCHIO_SYMBOLS]
        places, parameters = self.observation.places.items(), self.robot.parameters
        friction = (k for column, k in places if parameters[column].symbol != 'Ia')
        chosen = np.array([*own, *friction])
        free = reduce_by_qr(self._random_rows()[:, chosen])[0]
        self.payload_columns = int(np.sum(free < len(own)))
        return np.asarray(chosen[free])


def make_feasible(problem: Problem, x: Array) -> Array:
    """
    Shrink the motion about q0 until every bound holds.

    The linear bounds are met exactly on a dense grid, joint by joint; effort and scene by
    bisection on a common factor.
    """
    start, c = problem.unpack(shrink_into_bounds(problem, x, bases=problem.exact_bases))
    low, high = 0.0, 1.0
    if not _feasible(problem, start, c):
        for _ in range(12):
            middle = 0.5 * (low + high)
            inside = _feasible(problem, start, middle * c)
            low, high = (middle, high) if inside else (low, middle)
        c = low * c
    return problem.pack(start, c)


def shrink_into_bounds(
    problem: Problem, x: Array, share: float = 1.0, bases: Sequence[Array] = ()
) -> Array:
    """Shrink each joint's motion about q0 into its linear bounds, at the times of `bases`."""
    start, c = problem.unpack(x)
    middle, half = problem.middle, problem.half
    if problem.start is None:
        start = middle + np.clip(start - middle, -0.9 * half, 0.9 * half)
    factor = np.ones(len(start))
    offset = start - middle
    for basis, bound in zip(bases or problem.fine_bases, problem.bounds, strict=True):
        y = basis @ c
        room = np.stack([bound - offset, bound + offset])
        offset = 0.0 * offset  # of the position alone
        used = np.maximum(np.stack([y.max(axis=0), -y.min(axis=0)]), 1e-12)
        factor = np.minimum(factor, (share * room / used).min(axis=0))
    return problem.pack(start, c * np.maximum(factor, 0.0))


def _feasible(problem: Problem, start: Array, c: Array) -> bool:
    tau = problem.observation.matrix(problem.motion(start, c)) @ problem.prior
    within = bool((np.abs(tau) <= problem.design_limits.effort).all())
    return within and problem.scene.is_free(start + problem.dense_basis @ c)


def random_point(problem: Problem, rng: np.random.Generator) -> Array:
    """Draw a point whose motion keeps the linear bounds."""
    n, k = problem.robot.n, len(problem.scale)
    start = problem.start
    if start is None:
        start = problem.middle + 0.3 * problem.half * rng.uniform(-1.0, 1.0, n)
    c = rng.normal(size=(k, n)) * problem.scale
    return shrink_into_bounds(problem, problem.pack(start, c), 0.9)


def keeps_bounds(problem: Problem, trajectory: Trajectory) -> bool:
    """Return whether a trajectory keeps limits and distances at the dense times."""
    times, limits = problem.dense_times, problem.relaxed_limits
    motion = trajectory.sample(times)
    tau = inverse_dynamics(problem.robot, problem.robot.prior, *motion)
    values = motion.dq, motion.ddq, trajectory.jerk(times), tau
    bounds = (getattr(limits, name) for name in QUANTITIES[1:])
    return bool(
        ((motion.q >= limits.lower) & (motion.q <= limits.upper)).all()
        and all((np.abs(x) <= y).all() for x, y in zip(values, bounds, strict=True))
        and problem.scene.is_free(motion.q)
    )
