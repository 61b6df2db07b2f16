"""
Standard parameters that explain the base parameters, and whether a body can have them.

Consistent parameters are pulled to the prior as strongly as the data allow. The pull only has to
choose among standard parameters that predict alike: the strongest regularisation whose residual
stays within a factor of what data and model leave is the discrepancy principle (Morozov 1966;
Engl, Hanke and Neubauer 1996, section 4.3). A sum over many rows tells little of one parameter: no
base parameter may move by more than ±3 σ either.
"""

from collections.abc import Callable
import dataclasses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import Array, diagonal_scale, ReadOnlyArrays, whitening
from ..findings import Finding, finding
from ..model.friction import NONNEGATIVE, OF_POSITION, PLAIN_SYMBOLS, SHRUNK
from ..model.robot import BaseParameters, Robot
from ..regression.estimate import Estimate
from ..regression.observation_system import System
from .essential import effective_sample_size
from .physical_consistency import (
    BodyPrior,
    Consistent,
    consistent_parameters,
    pseudo_inertia,
    SolverError,
)

# Standard deviation of the prior of a rotor inertia or a friction coefficient, over its value, and
# at least [SI]: descriptions know little of either, the prior only holds what no data determine.
PRIOR_RELATIVE_SIGMA, MIN_PRIOR_SIGMA = 1.0, 1.0
# The loosest pull, over the tightest: a link without inertial, of which the prior makes a small
# body, may weigh kilograms. Halvings of the range between them, in decades: to a factor of 1.24.
LOOSEST, HALVINGS = 1e3, 5
# Smallest eigenvalue of S: simulators like no needles. Where nothing else predicts well, bodies
# may be as thin as the second, which is as good as no bound.
MARGIN, THIN = 0.01, 1e-4
# A relative residual that is as good as none: noise-free data leave what the solver does.
NEGLIGIBLE = 1e-5
# How far the pull may move a base parameter, in its σ: of a description that is right, the
# farthest of sixty is so far. With 2, noise of short logs outweighs a good description; without a
# bound friction made up for a wrong one (decision 8).
NEAR = 3.0
# Where no body that can exist predicts as well as wanted: so much worse than the best of them.
SLACK = 0.02


@dataclasses.dataclass(frozen=True)
class Standard(ReadOnlyArrays):
    """Physically consistent standard parameters that explain the data, closest to the prior."""

    value: Array  # (p,)
    sigma: Array  # (p,) their standard deviation; inf where the data determine nothing
    # (n,) whether each link of `value` is one that a body can have.
    consistent: npt.NDArray[np.bool_]
    # Relative residual of `value`, all joints; NaN where it was not computed.
    residual: float = float('nan')
    base_residual: float = float('nan')  # that of the base parameters on the same rows
    spread: float = float('nan')  # σ_S of the links, relative standard deviation of their prior
    # The joint or coupling whose link or drive keeps consistent parameters from predicting well.
    obstacle: Finding | None = None


# F, g and the covariance of g, see `consistent_parameters`.
Data = tuple[Array, Array, Array]


@dataclasses.dataclass(frozen=True)
class _ConsistentFit:
    """Consistent parameters by one weighting of the data, for any pull."""

    robot: Robot
    data: Data
    spread: float
    margin: float = MARGIN

    def __call__(self, looser: float, without: str = '') -> Consistent:
        """Find the parameters; the link and drive of `without` may be impossible."""
        robot = self.robot
        starts = dict(zip(robot.links, robot.first_columns.tolist(), strict=True))
        positive = nonnegative_columns(robot)
        prior = BodyPrior(
            value=robot.prior,
            links=robot.first_columns.tolist(),
            positive=[k for k in positive if robot.parameters[k].joint != without],
            sigma=looser * prior_sigma(robot),
            link_sigma=looser * self.spread,
            margin=self.margin,
            free=[starts[without]] if without in starts else [],
            centre_sigma=self.spread,
        )
        factor, target, noise = self.data
        return consistent_parameters(factor, target, prior, noise)


class _Cost(NamedTuple):
    """What a pull to the prior costs."""

    penalised: float  # relative residual, penalties included
    moved: float  # most σ that a base parameter moves by
    residual: float  # relative, without penalties


def standard_parameters(
    robot: Robot,
    base: BaseParameters,
    estimate: Estimate,
    system: System,
    spread: float = 0.2,
    tolerance: float = 0.05,
) -> Standard:
    """
    Return consistent parameters, pulled to the prior as strongly as the data allow.

    That is as far as the residual of the system's rows is at most the `tolerance` above that of
    the base parameters, a mixed model's penalties included, and base parameters within ±3 σ. The
    tightest pull has σ_S = `spread`.

    The data are weighted as the estimate weighted them. Where constraints are active this leaves
    joints with large torques more than it has to: the unweighted sum of squares, which the
    relative residual measures, takes over where only it stays within the tolerance, and after
    it the same with bodies that may be thinner. What these leave is what is attainable.
    """
    weighted = _ConsistentFit(robot, _by_estimate(base, estimate, system), spread)
    tight = weighted(1.0)
    R, sigma = _triangular(system), np.maximum(np.sqrt(np.diag(estimate.covariance)), 1e-300)
    R /= max(float(np.linalg.norm(R[:, -1])), 1e-300)
    penalised = R
    if (penalty := system.penalty) is not None:  # what others than the estimate add to its sum
        pulled = _root(penalty.curvature * (_variance(R, estimate) / penalty.noise))
        penalised = np.vstack([R, np.column_stack([pulled, pulled @ estimate.value])])

    def cost(found: Consistent) -> _Cost:
        value = base.of(found.value)
        moved = float(np.max(np.abs(value - estimate.value) / sigma))
        return _Cost(_left(penalised, value), moved, _left(R, value))

    def tried(fit: _ConsistentFit, looser: float = LOOSEST, without: str = '') -> _Cost:
        """Return the cost of a pull; infinite where the solver finds nothing."""
        try:
            return cost(fit(looser, without))
        except SolverError:
            return _Cost(np.inf, np.inf, np.inf)

    def near(fit: _ConsistentFit) -> float:
        """Return how far base parameters may move: constraints alone may move them farther."""
        return max(NEAR, (1.0 + SLACK) * tried(fit).moved)

    first, apart, least = cost(tight), dict[str, float](), _left(R, estimate.value)
    limit = max((1.0 + tolerance) * least, NEGLIGIBLE)
    found, looser = tight, 1.0
    if first.penalised > limit or (first.moved > NEAR and first.moved > near(weighted)):
        plain = dataclasses.replace(weighted, data=_unweighted(base, estimate, penalised))
        thin = dataclasses.replace(plain, margin=THIN)
        for fit in (weighted, plain, thin):
            if tried(fit).penalised <= limit:
                break
        else:
            # No possible body explains the data; the residual without the joint in the way.
            fit = dataclasses.replace(weighted, margin=THIN)
            limit = (1.0 + SLACK) * tried(fit).penalised
            owners = dict.fromkeys(p.joint for p in robot.parameters)  # couplings too
            apart = {k: min(tried(f, without=k).residual for f in (thin, fit)) for k in owners}
            attainable = min(tried(f).residual for f in (plain, thin, fit))
        limits = np.array([limit, near(fit)])
        looser = _least(lambda pull: bool(np.all(tried(fit, pull)[:2] <= limits)))
        found = fit(looser)
    residual, obstacle = _left(R, base.of(found.value)), None
    if apart:
        owner = min(apart, key=apart.__getitem__)
        values = {'residual': residual, 'attainable': attainable, 'without': apart[owner]}
        obstacle = finding('not_physical', [owner], robot=robot.name, base=least, **values)
    links = physically_consistent_links(found.value, robot.first_columns)
    both = found.value, found.sigma
    return Standard(*both, links, residual, least, looser * spread, obstacle)


def _least(fits: Callable[[float], bool]) -> float:
    """Bisect (in logarithms) between 1, which does not fit, and LOOSEST, which does."""
    low, high = 0.0, float(np.log(LOOSEST))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fits(float(np.exp(middle))) else (middle, high)
    return float(np.exp(high))


def _triangular(system: System) -> Array:
    """Return R of all rows of [W Y], unweighted: ‖Y − W χ‖ = ‖R [−χ; 1]‖."""
    R = np.zeros((0, len(system.names) + 1))
    for W, Y in system.blocks:
        R = np.asarray(np.linalg.qr(np.vstack([R, np.column_stack([W, Y])]), mode='r'))
    return R


def _variance(R: Array, estimate: Estimate) -> float:
    """Return the variance of a row."""
    freedom = max(float(estimate.rows.sum()) - len(estimate.value), 1.0)
    return _left(R, estimate.value) ** 2 / freedom


def _left(R: Array, chi: Array) -> float:
    return float(np.linalg.norm(R[:, -1] - R[:, :-1] @ chi))


def _by_estimate(base: BaseParameters, estimate: Estimate, system: System | None = None) -> Data:
    """
    Whiten by the rows and weights of the estimate: its classical covariance is (WᵀΩ²W)⁻¹ σ².

    Rows count as far as they are independent. The covariance that respects their correlation would
    do as well without constraints; with them it gives way where residuals are large already. Of a
    mixed model the sum that the estimate minimises counts, penalties included.
    """
    inflation = _inflation(estimate)
    if system is not None and (penalty := system.penalty) is not None:
        rows = [k * w for k, (w, _) in zip(penalty.weights, system.blocks, strict=True)]
        normal = penalty.curvature + sum(w.T @ w for w in rows)
        root = _root(normal / (penalty.noise * inflation))
    else:
        root = whitening(estimate.classical) / np.sqrt(inflation)
    return _data(root, base, root @ estimate.value, estimate)


def _unweighted(base: BaseParameters, estimate: Estimate, R: Array) -> Data:
    """Weight all rows alike; a mixed model's penalties stay."""
    R = R / max(float(np.sqrt(_variance(R, estimate) * _inflation(estimate))), 1e-300)
    return _data(R[:, :-1], base, R[:, -1], estimate)


def _root(normal: Array) -> Array:
    """Return R (b, b) with RᵀR a matrix that is positive definite, but for rounding."""
    scale = diagonal_scale(normal)
    values, vectors = np.linalg.eigh(normal / np.outer(scale, scale))
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))).T * scale)


def _data(root: Array, base: BaseParameters, target: Array, estimate: Estimate) -> Data:
    return root @ base.matrix, target, root @ estimate.covariance @ root.T


def _inflation(estimate: Estimate) -> float:
    """Return by how much more the variance of rows is than a white residual's."""
    # The solver takes what is nearly an equation for infeasible.
    exact = max(1.0, NEGLIGIBLE / max(estimate.total_residual, 1e-300))
    return float(estimate.rows.sum()) / effective_sample_size(estimate) * exact**2


def nonnegative_columns(robot: Robot) -> list[int]:
    """
    Columns of rotor inertias and friction coefficients that cannot be negative.

    Beside friction that a mixed model adds, F_v and F_c are no friction of their own: exports hold
    what is nearest to the sum (`plain_friction`), which has the signs of friction.
    """
    added = {p.joint for p in robot.parameters if p.symbol in SHRUNK - OF_POSITION}
    bounded = [k for k, p in enumerate(robot.parameters) if p.symbol in NONNEGATIVE]
    own = (robot.parameters[k] for k in bounded)
    part = [p.symbol in PLAIN_SYMBOLS and p.joint in added for p in own]
    return [k for k, of_sum in zip(bounded, part, strict=True) if not of_sum]


def prior_sigma(robot: Robot) -> Array:
    """Return σ (p,) of the prior beside links, inf of stiffnesses that are not configured."""
    symbols = np.array([p.symbol for p in robot.parameters])
    unknown = np.isin(symbols, ('K', *OF_POSITION)) & (robot.prior == 0.0)
    known = np.maximum(PRIOR_RELATIVE_SIGMA * np.abs(robot.prior), MIN_PRIOR_SIGMA)
    return np.where(unknown, np.inf, known)


def basic_solution(base: BaseParameters, value: Array) -> Array:
    """Return standard parameters (p,) with base parameters (b,): columns not in the basis zero."""
    chi = np.zeros(base.matrix.shape[1])
    chi[base.columns] = value
    return chi


def physically_consistent_links(chi: Array, starts: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return for each link whether a body can have its parameters: pseudo-inertia ≻ 0."""
    links = [pseudo_inertia(chi[start : start + 10]) for start in np.asarray(starts)]
    return np.array([np.linalg.eigvalsh(link)[0] > 0.0 for link in links])
