"""
Standard parameters that explain the base parameters, and whether a body can have them.

Consistent parameters are pulled to the prior as strongly as prediction allows. The pull only has
to choose among standard parameters that predict alike: the strongest regularisation whose residual
stays within a factor of what data and model leave is the discrepancy principle (Morozov 1966;
Engl, Hanke and Neubauer 1996, section 4.3).
"""

from collections.abc import Callable, Mapping
import dataclasses

import numpy as np
import numpy.typing as npt

from ..arrays import Array, diagonal_scale, ReadOnlyArrays
from ..finding_codes import finding
from ..findings import Finding
from ..model.base_parameters import BaseParameters
from ..model.friction import NONNEGATIVE, OF_POSITION
from ..model.robot import Robot
from ..regression.estimate import Estimate
from ..regression.observation_system import System
from .essential import effective_sample_size, Essential
from .physical_consistency import (
    BodyPrior,
    Consistent,
    consistent_parameters,
    mass_properties,
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
# Where no body that can exist predicts as well as wanted: so much worse than the best of them.
SLACK = 0.02
# Of the Cholesky factorisation of a link's inertia at its centre of mass (STD table III) [kg·m²].
TOLERANCES = (0.0, -0.01, -0.02, -0.04)


@dataclasses.dataclass(frozen=True)
class Pull:
    """
    Consistent parameters with the pull that they were found with.

    Attributes
    ----------
    found : the parameters
    spread : σ_S of the links, relative standard deviation of the prior
    residual, base : relative residual of these and of the base parameters, all joints; NaN without
        a system
    attainable : least residual of any consistent parameters; NaN where it is small enough
    obstacle : where it is not, the joint or coupling without whose constraints least would be
        left, and that residual; else None

    """

    found: Consistent
    spread: float
    residual: float = float('nan')
    base: float = float('nan')
    attainable: float = float('nan')
    obstacle: tuple[str, float] | None = None


@dataclasses.dataclass(frozen=True)
class _Data:
    """F, g and the covariance of g, see `consistent_parameters`."""

    factor: Array
    target: Array
    noise: Array


@dataclasses.dataclass(frozen=True)
class _ConsistentFit:
    """Consistent parameters by one weighting of the data, for any pull."""

    robot: Robot
    data: _Data
    spread: float
    margin: float = MARGIN

    def __call__(self, looser: float, without: str = '') -> Consistent:
        """Find the parameters; the link and drive of `without` may be impossible."""
        robot = self.robot
        starts = dict(zip(robot.links, robot.first_columns.tolist(), strict=True))
        positive = nonnegative_columns(robot)
        prior = BodyPrior(
            robot.prior,
            robot.first_columns.tolist(),
            [k for k in positive if robot.parameters[k].joint != without],
            looser * _prior_sigma(robot),
            looser * self.spread,
            self.margin,
            [starts[without]] if without in starts else [],
            self.spread,
        )
        return consistent_parameters(self.data.factor, self.data.target, prior, self.data.noise)


def choose_pull(
    robot: Robot,
    base: BaseParameters,
    estimate: Estimate,
    system: System | None,
    spread: float,
    tolerance: float,
) -> Pull:
    """
    Return consistent parameters, pulled to the prior as strongly as their residual allows.

    The data are weighted as the estimate weighted them. Where constraints are active this leaves
    joints with large torques more than it has to: the unweighted sum of squares, which the
    relative residual measures, takes over where only it stays within the tolerance, and after
    it the same with bodies that may be thinner. What these leave is what is attainable.

    Parameters
    ----------
    robot, base, estimate : the prior, and the base parameters
    system : rows to predict; None: the pull stays at `spread`
    spread : σ_S of the tightest pull
    tolerance : largest increase of the residual over that of the base parameters, relative

    """
    weighted = _ConsistentFit(robot, _by_estimate(base, estimate), spread)
    tight = weighted(1.0)
    if system is None:
        return Pull(tight, spread)
    R = _triangular(system)

    def left(fit: _ConsistentFit, looser: float = LOOSEST, without: str = '') -> float:
        """Return the residual; inf where the solver finds nothing."""
        try:
            return _relative(R, base.of(fit(looser, without).value))
        except SolverError:
            return float('inf')

    first, reference = _relative(R, base.of(tight.value)), _relative(R, estimate.value)
    limit = max((1.0 + tolerance) * reference, NEGLIGIBLE)
    if first <= limit:
        return Pull(tight, spread, first, reference)
    plain = dataclasses.replace(weighted, data=_unweighted(base, estimate, R))
    thin = dataclasses.replace(plain, margin=THIN)
    attainable, obstacle = float('nan'), None
    for fit in (weighted, plain, thin):
        if left(fit) <= limit:
            break
    else:
        fit, attainable = weighted, min(left(plain), left(thin), first)
        limit = (1.0 + SLACK) * left(weighted)
        owners = dict.fromkeys(p.joint for p in robot.parameters)  # couplings too
        without = {k: min(left(f, without=k) for f in (thin, weighted)) for k in owners}
        obstacle = min(without.items(), key=lambda item: item[1])
    looser = _least(lambda tried: left(fit, tried) <= limit)
    found = fit(looser)
    final = _relative(R, base.of(found.value))
    return Pull(found, looser * spread, final, reference, attainable, obstacle)


def _least(fits: Callable[[float], bool]) -> float:
    """Bisect (in logarithms) between 1, which does not fit, and LOOSEST, which does."""
    low, high = 0.0, float(np.log(LOOSEST))
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fits(float(np.exp(middle))) else (middle, high)
    return float(np.exp(high))


def consistency_findings(robot: Robot, pull: Pull) -> tuple[Finding, ...]:
    """Tell where no body that can exist explains the data."""
    if pull.obstacle is None:
        return ()
    joint, without = pull.obstacle
    return (
        finding(
            'not_physical', [joint],
            robot=robot.name, residual=pull.residual, base=pull.base, attainable=pull.attainable,
            without=without,
        ),
    )  # fmt: skip


def refit(
    robot: Robot,
    base: BaseParameters,
    estimate: Estimate,
    spreads: tuple[float, float],
    normal: Array,
    right: Array,
) -> Array:
    """
    Return the base parameters (b,) of consistent ones, from normal equations of some rows.

    Parameters
    ----------
    robot, base, estimate : as of `choose_pull`
    spreads : its tightest σ_S, and the one that it found
    normal, right : N (b, b) and r (b,) of rows over their σ, N χ = r

    """
    scale = diagonal_scale(normal)
    values, vectors = np.linalg.eigh(normal / np.outer(scale, scale))
    roots = np.sqrt(np.maximum(values, 1e-10 * values[-1]) / _inflation(estimate))
    root = roots[:, None] * vectors.T * scale
    target = roots / np.maximum(values, 1e-10 * values[-1]) * (vectors.T @ (right / scale))
    fit = _ConsistentFit(robot, _data(root, base, target, estimate), spreads[0])
    return base.of(fit(spreads[1] / spreads[0]).value)


def nonnegative_columns(robot: Robot) -> list[int]:
    """Columns of rotor inertias and friction coefficients that cannot be negative."""
    return [k for k, p in enumerate(robot.parameters) if p.symbol in NONNEGATIVE]


def _triangular(system: System) -> Array:
    """Return R of all rows of [W Y], unweighted: ‖Y − W χ‖ = ‖R [−χ; 1]‖."""
    R = np.zeros((0, len(system.names) + 1))
    for joint in range(len(system.joints)):
        W, Y = system.rows(joint)
        R = np.asarray(np.linalg.qr(np.vstack([R, np.column_stack([W, Y])]), mode='r'))
    return R


def _relative(R: Array, chi: Array) -> float:
    error = np.linalg.norm(R[:, -1] - R[:, :-1] @ chi)
    return float(error / max(float(np.linalg.norm(R[:, -1])), 1e-300))


def _by_estimate(base: BaseParameters, estimate: Estimate) -> _Data:
    """
    Whiten by the rows and weights of the estimate: its classical covariance is (WᵀΩ²W)⁻¹ σ².

    Rows count as far as they are independent. The covariance that respects their correlation would
    do as well without constraints; with them it gives way where residuals are large already.
    """
    scale = diagonal_scale(estimate.classical)
    values, vectors = np.linalg.eigh(estimate.classical / np.outer(scale, scale))
    root = (vectors / np.sqrt(np.maximum(values, 1e-10 * values[-1]))).T / scale
    root = root / np.sqrt(_inflation(estimate))
    return _data(root, base, root @ estimate.value, estimate)


def _unweighted(base: BaseParameters, estimate: Estimate, R: Array) -> _Data:
    squares = float(np.sum((R[:, -1] - R[:, :-1] @ estimate.value) ** 2))
    freedom = max(float(estimate.rows.sum()) - len(estimate.value), 1.0)
    sigma = max(float(np.sqrt(squares / freedom * _inflation(estimate))), 1e-300)
    root = R[:, :-1] / sigma
    return _data(root, base, R[:, -1] / sigma, estimate)


def _data(root: Array, base: BaseParameters, target: Array, estimate: Estimate) -> _Data:
    return _Data(root @ base.matrix, target, root @ estimate.covariance @ root.T)


def _inflation(estimate: Estimate) -> float:
    """
    Return by how much more the variance of rows is than a white residual's.

    Correlated rows count as far as they are independent, and none as more exact than NEGLIGIBLE:
    the solver takes what is nearly an equation for infeasible.
    """
    exact = max(1.0, NEGLIGIBLE / max(estimate.total_residual, 1e-300))
    return float(estimate.rows.sum()) / effective_sample_size(estimate) * exact**2


def _prior_sigma(robot: Robot) -> Array:
    """
    Return the standard deviation of the prior of what is not a link's inertia.

    A stiffness that the configuration does not give has no prior.
    """
    return np.array(
        [
            np.inf
            if p.symbol in ('K', *OF_POSITION) and value == 0.0
            else max(PRIOR_RELATIVE_SIGMA * abs(value), MIN_PRIOR_SIGMA)
            for p, value in zip(robot.parameters, robot.prior, strict=True)
        ]
    )


@dataclasses.dataclass(frozen=True)
class Standard(ReadOnlyArrays):
    """
    Standard parameters that explain the data.

    Attributes
    ----------
    value : (p,) physically consistent ones, closest to the prior
    sigma : (p,) their standard deviation; inf where the data determine nothing
    cad : (p,) closest to the prior without constraints, by SVD (STD eq. 26-30)
    cad_essential : (p,) the same, weighted by the essential parameters (eq. 31-33), or None
    consistent : (n,) whether each link of `value` is one that a body can have
    residual : relative residual of `value`, all joints; NaN where it was not computed
    base_residual : that of the base parameters on the same rows
    spread : relative standard deviation of the prior of the links that `value` was found with
    attainable, obstacle : where no consistent parameters predict as well as wanted, the least
        residual that any have, and the joint whose link or drive is in the way
    findings : the same as a finding
    definite : links with a positive definite inertia at the centre of mass and a positive mass, at
        each of TOLERANCES (STD table III), of 'prior', 'cad', 'cad_essential' and 'value'

    """

    value: Array
    sigma: Array
    cad: Array
    cad_essential: Array | None
    consistent: npt.NDArray[np.bool_]
    residual: float
    definite: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    base_residual: float = float('nan')
    spread: float = float('nan')
    attainable: float = float('nan')
    obstacle: str = ''
    findings: tuple[Finding, ...] = ()


def standard_parameters(
    robot: Robot,
    base: BaseParameters,
    estimate: Estimate,
    essentials: Essential | None,
    system: System | None = None,
    link_sigma: float = 0.2,
    tolerance: float = 0.05,
) -> Standard:
    """
    Choose standard parameters among all that have the estimated base parameters.

    Three choices: closest to the prior (STD eq. 26-30), the same weighted by the essential
    parameters (eq. 31-33), and physically consistent ones, see `consistent_parameters`.

    Parameters
    ----------
    robot, base : the model with its prior
    estimate, essentials : of the base parameters, and the essential ones
    system : for the residuals, which are NaN without it
    link_sigma : relative standard deviation of the prior of the links, at least
    tolerance : how much larger than that of the base parameters the residual may become before the
        prior counts less, relative; see `choose_pull`

    """
    known = prior_with_drive_parameters(robot, base, estimate, essentials)
    cad = closest_to_prior(base.matrix, estimate.value, known)
    weighted = None if essentials is None else closest_essential(base, estimate, essentials, known)
    pull = choose_pull(robot, base, estimate, system, link_sigma, tolerance)
    found = pull.found
    sets = {'prior': robot.prior, 'cad': cad, 'cad_essential': weighted, 'value': found.value}
    return Standard(
        value=found.value,
        sigma=found.sigma,
        cad=cad,
        cad_essential=weighted,
        consistent=physically_consistent_links(found.value, robot.first_columns),
        residual=pull.residual,
        base_residual=pull.base,
        spread=pull.spread,
        attainable=pull.attainable,
        obstacle=pull.obstacle[0] if pull.obstacle else '',
        findings=consistency_findings(robot, pull),
        definite={
            name: tuple(
                int(positive_definite_links(chi, robot.first_columns, tolerance).sum())
                for tolerance in TOLERANCES
            )
            for name, chi in sets.items()
            if chi is not None
        },
    )


def prior_with_drive_parameters(
    robot: Robot, base: BaseParameters, estimate: Estimate, essentials: Essential | None
) -> Array:
    """
    Return the prior (p,) with friction and rotor inertias from the estimate (STD V.B).

    Descriptions do not hold them: those that are identified alone replace the prior's, those that
    are not essential are zero.
    """
    chi = np.array(robot.prior)
    links = {column for start in robot.first_columns for column in range(start, start + 10)}
    found = np.array(estimate.value) if essentials is None else np.zeros(base.rank)
    if essentials is not None:
        found[essentials.indices] = essentials.estimate.value
    for column, value in zip(base.columns, found, strict=True):
        if column not in links and base.classes[column] == 'identifiable':
            chi[column] = value
    return chi


def basic_solution(base: BaseParameters, value: Array) -> Array:
    """Return standard parameters (p,) with base parameters (b,): columns not in the basis zero."""
    chi = np.zeros(base.matrix.shape[1])
    chi[base.columns] = value
    return chi


def closest_to_prior(matrix: Array, value: Array, prior: Array) -> Array:
    """
    Return χ_ref + A⁺ (χ_b − A χ_ref), the least change of the prior that explains χ_b.

    With W = W_b A this is STD eq. 29, χ_ref + V₁ Σ₁⁻¹ U₁ᵀ (Y − W χ_ref).
    """
    return prior + np.linalg.pinv(matrix) @ (value - matrix @ prior)


def closest_essential(
    base: BaseParameters, estimate: Estimate, essentials: Essential, prior: Array
) -> Array:
    """
    Return χ_ref + diag(χ̂_e) V₁e Σ₁e⁻¹ U₁eᵀ (Y − W χ_ref) (STD eq. 31-33).

    Columns of W diag(χ̂_e) vanish but for the n_e standard parameters that stand for essential
    ones; these are independent, so that the weights cancel and the least squares solution of
    Y − W χ_ref on these columns remains. All other parameters keep their prior. With C the
    covariance of χ̂_b, σ² (W_bᵀ W_b)⁻¹, the torques themselves are not needed.
    """
    kept = essentials.indices
    values, vectors = np.linalg.eigh(estimate.classical)
    root = vectors / np.sqrt(np.maximum(values, 1e-14 * values[-1]))
    change = estimate.value - base.of(prior)
    chi = np.array(prior)
    chi[base.columns[kept]] += np.linalg.lstsq(root.T[:, kept], root.T @ change, rcond=None)[0]
    return chi


def physically_consistent_links(chi: Array, starts: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return for each link whether a body can have its parameters: pseudo-inertia ≻ 0."""
    links = [pseudo_inertia(chi[start : start + 10]) for start in np.asarray(starts)]
    return np.array([np.linalg.eigvalsh(link)[0] > 0.0 for link in links])


def positive_definite_links(
    chi: Array, starts: npt.ArrayLike, tolerance: float = 0.0
) -> npt.NDArray[np.bool_]:
    """
    Return for each link whether M > 0 and J_com ≻ tolerance (STD IV).

    J_com = J − (‖MS‖² I − MS MSᵀ)/M.
    """
    bodies = (mass_properties(pseudo_inertia(chi[k : k + 10])) for k in np.asarray(starts))
    return np.array([m > 0.0 and np.linalg.eigvalsh(J)[0] > tolerance for m, _, J in bodies])
