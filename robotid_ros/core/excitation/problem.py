"""The design of a motion as an optimisation problem: of an arm, its payload, or what is left."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
import math
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from ...exceptions import ConfigurationError, FEW, shortened, UnknownNameError
from ..arrays import Array, Indices, whitening
from ..model.base_parameters import base_parameters, reduce_by_qr
from ..model.pinocchio_model import body_frame
from ..model.robot import from_pinocchio, PINOCCHIO_ORDER, Robot
from .collision_scene import CollisionScene
from .limits import apply_margins, motion_limits
from .observation_matrix import ObservationModel, ObservedMotion
from .settings import ExcitationSettings
from .trajectory import FAMILIES, Motion, Trajectory
from .working_motion import working_errors


class Criterion(NamedTuple):
    """An objective of S (b, b) with its gradient, and the figure of it that people compare."""

    name: str
    objective: Callable[..., tuple[float, Array]]
    report: Callable[[float], float]
    smoothable: bool = False


def condition(s: Array, sharpness: float = math.inf) -> tuple[float, Array]:
    """
    Return `ln cond(W) = ½ ln(λ_max/λ_min)`, or a smooth bound above it.

    Of sharpness p it is `½ ln(‖λ‖_p ‖1/λ‖_p)`; the larger p, the nearer to the condition number.
    Its gradient is `½ V diag((a − b)/λ) Vᵀ` with a, b the shares of λᵖ and λ⁻ᵖ in their sums.
    """
    values, vectors = np.linalg.eigh(s)
    values = np.maximum(values, 1e-30 * values[-1])
    high, low = (values / values[-1]) ** sharpness, (values[0] / values) ** sharpness
    norms = math.log(high.sum()) + math.log(low.sum())
    objective = 0.5 * (math.log(values[-1] / values[0]) + norms / sharpness)
    weights = 0.5 * (high / high.sum() - low / low.sum()) / values
    return objective, (vectors * weights) @ vectors.T


def normalised_condition(s: Array, sharpness: float = math.inf) -> tuple[float, Array]:
    """Return `ln cond(W D)`, where D scales each column of W to unit norm."""
    scale = 1.0 / np.sqrt(np.diag(s))
    scaled = s * np.outer(scale, scale)
    value, gradient = condition(scaled, sharpness)
    diagonal = np.diag(np.sum(gradient * scaled, axis=1) * scale**2)
    return value, gradient * np.outer(scale, scale) - diagonal


def frobenius(s: Array) -> tuple[float, Array]:
    """Return `ln(‖S‖_F ‖S⁻¹‖_F)`, the Frobenius condition of WᵀW (STICTION eq. 20)."""
    inverse = np.linalg.inv(s)
    norm, inverse_norm = np.sum(s**2), np.sum(inverse**2)
    gradient = s / norm - inverse @ inverse @ inverse / inverse_norm
    return 0.5 * math.log(norm * inverse_norm), gradient


def d_optimal(s: Array) -> tuple[float, Array]:
    """Return `−ln det(S)/b`: D-optimality, per parameter."""
    sign, logarithm = np.linalg.slogdet(s)
    value = -logarithm / len(s) if sign > 0 else math.inf
    return float(value), -np.linalg.inv(s) / len(s)


def subset_d_optimal(s: Array, count: int) -> tuple[float, Array]:
    """
    Return `−ln det(S_pp − S_pf S_ff⁻¹ S_fp)/p`: D-optimality of the first p = `count`.

    The others are estimated too but do not matter (D_S-optimality, Atkinson, Donev and Tobias
    2007, chapter 10.3). Neither units nor the frame of a body change the best motion.
    """
    if count == len(s):
        return d_optimal(s)
    value, gradient = d_optimal(s)
    others, slope = d_optimal(s[count:, count:])
    share, rest = len(s) / count, len(s) / count - 1.0
    gradient = share * gradient
    gradient[count:, count:] -= rest * slope
    return share * value - rest * others, gradient


def prediction_error(s: Array, goal: Array) -> tuple[float, Array]:
    """
    Return `½ ln tr(G S⁻¹)`: V-optimality, the mean square error of prediction.

    G (b, b) is the mean of wᵀw over rows to predict (Atkinson, Donev and Tobias 2007, 10.6).
    """
    inverse = np.linalg.inv(s)
    squares = float(np.sum(goal * inverse))
    if not squares > 0.0:  # rounding: S is singular
        return math.inf, np.zeros_like(s)
    return 0.5 * math.log(squares), inverse @ goal @ inverse * (-0.5 / squares)


def smallest(s: Array) -> tuple[float, Array]:
    """Return `−σ_min(W)/√N`."""
    values, vectors = np.linalg.eigh(s)
    sigma = math.sqrt(max(values[0], 1e-30 * values[-1]))
    return -sigma, -np.outer(vectors[:, 0], vectors[:, 0]) / (2.0 * sigma)


CRITERIA: dict[str, Criterion] = {
    each.name: each
    for each in (
        Criterion('condition', condition, math.exp, smoothable=True),
        Criterion('normalised_condition', normalised_condition, math.exp, smoothable=True),
        Criterion('frobenius', frobenius, math.exp),
        Criterion('d_optimal', d_optimal, float),
        Criterion('smallest', smallest, float),
    )
}


# Samples of a period that the criterion sees: so many a harmonic, so many at least, and so many
# times more where friction has a shape of its own about standstill, which few samples would miss.
HARMONIC_SAMPLES, MIN_SAMPLES, STRIBECK_FACTOR = 8, 80, 4
EXACT_FACTOR = 8  # so many more samples hold the peaks of a motion to a thousandth
# Times at which a motion is checked [Hz]; the search measures distances at each third of them,
# which saves time, and the check sees the rest.
CHECK_RATE, COLLISION_STRIDE = 50.0, 3
# Share of a limit from which the penalty counts: a motion that keeps a little off needs hardly any
# shrinking. Efforts count so many times as much: shrinking does not mend one that gravity needs.
BOUND_SHARE, EFFORT_WEIGHT = 0.97, 10.0
SCENE_WEIGHT = 0.2  # of the scene's penalty, in centimetres, beside that of the limits
OF_POSITION = (0, 3, -1)  # places of what acts on positions, among the pushes of `evaluate`
# The optimiser sees sign(dq) as tanh(SIGN_STEEPNESS dq / velocity limit): steeper is nearer to the
# robot's friction and harder to follow by gradients.
SIGN_STEEPNESS = 20.0
NEGLIGIBLE = 1e-5  # residuals are at least this share of the effort: noise-free data leave none
LEAST = 1e-12  # efforts of a joint are more, no sensor shows so little [N·m or N, squared]


def excess(share: Array) -> tuple[float, Array]:
    """Return the mean of `Σ max(0, |u| − BOUND_SHARE)²` over rows of shares u, and its slope."""
    beyond = np.sign(share) * np.maximum(0.0, np.abs(share) - BOUND_SHARE)
    return float(np.sum(beyond**2)) / len(share), 2.0 / len(share) * beyond


class Problem:
    """
    Variables x = [q0 (when free), coefficients], each scaled by what it alone may reach.

    A search changes the `sharpness` of the criterion and the `weight` of what exceeds limits.
    """

    def __init__(self, robot: Robot, settings: ExcitationSettings, scene: CollisionScene) -> None:
        self.sharpness, self.weight = np.inf, 1.0
        self.robot, self.settings, self.scene = robot, settings, scene
        self.limits = motion_limits(robot, settings)
        self.design_limits = apply_margins(self.limits, settings.margins)
        self.middle = 0.5 * (self.design_limits.lower + self.design_limits.upper)
        self.half = 0.5 * (self.design_limits.upper - self.design_limits.lower)
        start = np.array(settings.start, dtype=float)
        if start.size not in (0, robot.n):
            raise ConfigurationError(
                f"'excitation.start' has {start.size} values: give one per joint ({robot.n})"
            )
        if not np.isfinite(start).all():
            raise ConfigurationError("'excitation.start' holds a value that is not finite")
        self.start = start if start.size else None
        self.observation = ObservationModel(robot, SIGN_STEEPNESS / self.limits.velocity)
        self.base = base_parameters(robot)
        columns = self._columns()
        self.columns = columns[reduce_by_qr(self.base.matrix[:, columns])[0]]
        self.weights = np.ones(robot.n)
        UnknownNameError.check('criterion', [settings.criterion], CRITERIA)
        self.criterion = CRITERIA[settings.criterion]
        # R with RᵀR what is known already, as a mean over the rows of the motion.
        self.known = np.zeros((0, len(self.columns)))
        size = FAMILIES[settings.family].size * settings.order
        self.template = self.trajectory(np.zeros(robot.n), np.zeros((size, robot.n)))
        # Midpoints: no sample sits at rest at the ends, where Coulomb friction has no sign.
        count = max(MIN_SAMPLES, HARMONIC_SAMPLES * settings.order)
        shaped = any(term.constants for terms in robot.friction for term in terms)
        factor = STRIBECK_FACTOR if shaped else 1
        self.bases = self._midpoints(factor * count, 3)
        self.fine_bases = self._midpoints(2 * count, 4)
        self.exact_bases = self._midpoints(EXACT_FACTOR * count, 4)
        dense = int(np.ceil(CHECK_RATE * settings.period)) + 1
        self.dense_basis = self.template.matrix(np.linspace(0.0, settings.period, dense), 0)
        self.collision_basis = self.dense_basis[::COLLISION_STRIDE]
        tight = self.design_limits
        self.bounds = [self.half, tight.velocity, tight.acceleration, tight.jerk]
        reach = [
            bound / np.maximum(np.abs(basis).max(axis=0), 1e-12)[:, None]
            for basis, bound in zip(self.fine_bases, self.bounds, strict=True)
        ]
        self.scale: Array = np.min(reach, axis=0)

    def _midpoints(self, count: int, derivatives: int) -> list[Array]:
        """Return the basis with derivatives, between so many instants of a period."""
        times = (np.arange(count) + 0.5) / count * self.settings.period
        return [self.template.matrix(times, k) for k in range(derivatives)]

    def _columns(self) -> Indices:
        """Return the columns of which the first independent ones count."""
        return self.observation.columns

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

    def evaluate(self, x: Array) -> tuple[float, Array]:
        """Return the objective with the penalties of what exceeds limits, and their gradient."""
        start, c = self.unpack(x)
        seen = ObservedMotion(self.observation, self.motion(start, c))
        w, limit = seen.matrix, self.design_limits.effort
        value, slope = self.information(w, self.sharpness)
        # Objective and efforts act through W.
        padded = np.zeros((len(slope), w.shape[2]))
        padded[:, self.columns] = 2.0 / len(w) * slope
        pull = (self._weighted_columns(w).reshape(-1, len(slope)) @ padded).reshape(w.shape)
        pull *= self.weights[:, None]
        of_effort, by_effort = excess(w @ self.robot.prior / limit)
        pull += (EFFORT_WEIGHT * self.weight / limit * by_effort)[:, :, None] * self.robot.prior
        pushes = list(zip(self.bases, seen.gradient(pull), strict=True))
        beyond = EFFORT_WEIGHT * of_effort
        for basis, bound, share in zip(self.fine_bases, self.bounds, self.usage(x), strict=True):
            of_bound, by_share = excess(share)
            beyond += of_bound
            pushes.append((basis, self.weight / bound * by_share))
        q = start + self.collision_basis @ c
        weight = SCENE_WEIGHT * self.weight / len(q)
        near, by_pose = self.scene.penalty(q)
        pushes.append((self.collision_basis, weight * by_pose))
        value += self.weight * beyond + weight * near
        gradient = (sum(basis.T @ push for basis, push in pushes) * self.scale).ravel()
        if self.start is None:
            by_start = sum(pushes[k][1].sum(axis=0) for k in OF_POSITION) * self.half
            gradient = np.concatenate([by_start, gradient])
        return value if np.isfinite(value) else 1e30, gradient

    def _weighted_columns(self, w: Array) -> Array:
        return np.take(w, self.columns, axis=2) * self.weights[:, None]

    def motion(self, start: Array, c: Array) -> Motion:
        """Evaluate the motion of q0 and coefficients at the samples."""
        phi, dphi, ddphi = self.bases
        return Motion(start + phi @ c, dphi @ c, ddphi @ c)

    def information(self, w: Array, sharpness: float = np.inf) -> tuple[float, Array]:
        """Return the objective of W (N, n, columns) and its gradient in S = WᵀW/N + RᵀR."""
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

    def usage(self, x: Array) -> Array:
        """Return share of position, velocity, acceleration and jerk bounds, (4, M, n), signed."""
        start, c = self.unpack(x)
        pairs = zip(self.fine_bases, self.bounds, strict=True)
        shares = np.stack([basis @ c / bound for basis, bound in pairs])
        shares[0] += (start - self.middle) / self.half
        return shares

    def objective(self, x: Array) -> float:
        """Evaluate the criterion's objective alone."""
        motion = self.motion(*self.unpack(x))
        return self.information(self.observation.matrix(motion))[0]

    def feasible(self, x: Array) -> Array:
        """
        Shrink the motion about q0 until every bound holds.

        Linear ones exactly on a dense grid, joint by joint; effort and scene by a common factor.
        """
        start, c = self.unpack(self._in_bounds(x, self.exact_bases))
        low, high = 0.0, 1.0
        if not self._is_feasible(start, c):
            for _ in range(12):
                middle = 0.5 * (low + high)
                inside = self._is_feasible(start, middle * c)
                low, high = (middle, high) if inside else (low, middle)
            c = low * c
        return self.pack(start, c)

    def random_point(self, rng: np.random.Generator) -> Array:
        """Draw a point whose motion keeps the linear bounds."""
        start = self.start
        if start is None:
            start = self.middle + 0.3 * self.half * rng.uniform(-1.0, 1.0, self.robot.n)
        c = rng.normal(size=self.scale.shape) * self.scale
        return self._in_bounds(self.pack(start, c), self.fine_bases, 0.9)

    def _in_bounds(self, x: Array, bases: list[Array], share: float = 1.0) -> Array:
        """Shrink each joint's motion about q0 into its linear bounds, at the times of `bases`."""
        start, c = self.unpack(x)
        if self.start is None:
            reach = 0.9 * self.half
            start = self.middle + np.clip(start - self.middle, -reach, reach)
        factor, offset = np.ones(len(start)), start - self.middle
        for basis, bound in zip(bases, self.bounds, strict=True):
            y = basis @ c
            room = np.stack([bound - offset, bound + offset])
            offset = 0.0 * offset  # of the position alone
            used = np.maximum(np.stack([y.max(axis=0), -y.min(axis=0)]), 1e-12)
            factor = np.minimum(factor, (share * room / used).min(axis=0))
        return self.pack(start, c * np.maximum(factor, 0.0))

    def _is_feasible(self, start: Array, c: Array) -> bool:
        tau = self.observation.matrix(self.motion(start, c)) @ self.robot.prior
        within = bool((np.abs(tau) <= self.design_limits.effort).all())
        return within and self.scene.is_free(start + self.dense_basis @ c)


def with_payload(robot: Robot, settings: ExcitationSettings) -> Robot:
    """Return the robot whose prior carries the payload of the settings, as a point."""
    com, mass = settings.payload.com, settings.payload.mass
    if len(com) != 3:
        raise ConfigurationError("'excitation.payload.com' needs three coordinates x y z")
    frame = body_frame(robot, settings.workspace.frame)
    point = pin.Inertia(mass, (frame.placement @ [*com, 1.0])[:3], np.zeros((3, 3)))
    prior = robot.prior.copy()
    prior[robot.body_columns[frame.link]] += from_pinocchio(point.toDynamicParameters())
    return replace(robot, prior=prior)


class PayloadProblem(Problem):
    """
    The columns are the carrying link's ten, then friction, which may change between recordings.

    All else cancels: the arm is the same with the payload and without. Efforts are bounded with
    the payload. Rows count in parts of the effort limits where these are known: noise and errors
    of the model grow with a drive.
    """

    def __init__(self, robot: Robot, settings: ExcitationSettings, scene: CollisionScene) -> None:
        self.link = body_frame(robot, settings.workspace.frame).link
        super().__init__(with_payload(robot, settings), settings, scene)
        limits = self.limits.effort
        if np.isfinite(limits).all():
            self.weights = limits.max() / limits
        own = self.robot.body_columns[self.link]
        count = int(np.isin(self.columns, own).sum())
        objective = partial(subset_d_optimal, count=count)
        self.criterion = Criterion('d_optimal', objective, float)

    def _columns(self) -> Indices:
        own = self.robot.body_columns[self.link, np.argsort(PINOCCHIO_ORDER)]
        others = (k for drive in self.robot.transmissions for k in drive.columns)
        friction = [k for k in others if self.robot.parameters[k].symbol != 'Ia']
        return np.concatenate([own, friction]).astype(np.intp)


@dataclass(frozen=True)
class Known:
    """What an identification knows of a robot: base parameters, and how it came by them."""

    joints: tuple[str, ...]
    names: tuple[str, ...]
    value: Array  # (b,)
    covariance: Array  # (b, b)
    expected: Array  # (n,) error on working motions, see `verdict.parameter_error`; NaN: unknown
    noise: Array  # (n,) root mean square of the residual [N·m or N]
    effort: Array  # (n,) that of the measured effort
    rate: float  # independent rows of a joint in a second of motion [1/s]


class NextProblem(Problem):
    """
    Minimise the expected error of prediction on working motions, with what is known already.

    Rows count by the residual of their joint, and as many as are independent. The covariance is
    scaled to the error that the verdict expects of the parameters: what the model leaves out
    widens σ, and no motion reduces it. `before` is that error, relative, of all joints together.
    Efforts are those of what is known.
    """

    def __init__(
        self, robot: Robot, settings: ExcitationSettings, scene: CollisionScene, known: Known
    ) -> None:
        super().__init__(robot, settings, scene)
        base = self.base
        lacking = [name for name in base.names if name not in known.names]
        if known.joints != robot.joints or lacking:
            what = f'parameters {shortened(lacking, FEW)}' if lacking else 'other joints'
            raise ConfigurationError(
                f"the results have another robot, joints or friction than '{robot.name}' "
                f'({what}): give other results, or set robot.joints and robot.friction as there'
            )
        places = [known.names.index(name) for name in base.names]
        covariance = known.covariance[np.ix_(places, places)]
        if not np.isfinite(covariance).all():
            raise ConfigurationError(
                'the results have parameters of infinite σ: design a motion without these results'
            )
        limited, limits = replace(robot, limits=self.limits), self.limits
        reached = limits.lower, limits.upper, limits.velocity
        # As if the values were exact: the covariance is too wide yet.
        of = known.value[places], np.zeros_like(covariance)
        _, goals, _ = working_errors(limited, base, *of, reached, known.effort)
        told, errors = np.isfinite(known.expected), np.sum(goals * covariance, axis=(1, 2))
        if told.any():
            share = np.sum(known.expected[told] ** 2) / np.sum(errors[told])
            covariance *= min(share, 1.0)
        goal = goals.sum(axis=0) / robot.n
        self.before = math.sqrt(np.sum(goal * covariance))
        prior = robot.prior.copy()
        prior[base.columns] += of[0] - base.of(prior)
        self.robot = replace(robot, prior=prior)
        # In the coordinates of the design's columns, as means over the rows of the motion.
        count = known.rate * settings.period * settings.periods
        turn = base.matrix[:, self.columns]
        self.weights = 1.0 / np.maximum(known.noise, NEGLIGIBLE * known.effort + LEAST)
        self.known = whitening(covariance) @ turn / math.sqrt(count)
        objective = partial(prediction_error, goal=turn.T @ goal @ turn / count)
        self.criterion = Criterion('prediction_error', objective, math.exp)
