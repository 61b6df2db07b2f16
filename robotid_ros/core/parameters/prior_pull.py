"""
How strongly consistent standard parameters are pulled to the prior: as prediction allows.

The pull only has to choose among standard parameters that predict alike. It is loosened until
those chosen predict about as well as the base parameters, and no further: the strongest
regularisation whose residual stays within a factor of what data and model leave is the
discrepancy principle (Morozov 1966; Engl, Hanke and Neubauer 1996, section 4.3).
"""

from collections.abc import Callable
import dataclasses

import numpy as np

from ..arrays import Array
from ..model.base_parameters import BaseParameters
from ..model.friction import NONNEGATIVE
from ..model.robot import Robot
from ..regression.estimate import Estimate
from ..regression.observation_system import System
from .essential import effective_sample_size
from .physical_consistency import Consistent, consistent_parameters

# Standard deviation of the prior of a rotor inertia or a friction coefficient, over its value, and
# at least [SI]: descriptions know little of either, the prior only holds what no data determine.
PRIOR_RELATIVE_SIGMA, MIN_PRIOR_SIGMA = 1.0, 1.0
# The loosest pull, over the tightest: a link without inertial, of which the prior makes a small
# body, may weigh kilograms. Halvings of the range between them, in decades: to a factor of 1.24.
LOOSEST, HALVINGS = 1e3, 5
# Where no body that can exist predicts as well as wanted: so much worse than the best of them.
SLACK = 0.02


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
    obstacle : where it is not, the joint without whose constraints least would be left, and that
        residual; else None

    """

    found: Consistent
    spread: float
    residual: float = float('nan')
    base: float = float('nan')
    attainable: float = float('nan')
    obstacle: tuple[str, float] | None = None


@dataclasses.dataclass(frozen=True)
class _Fit:
    """Consistent parameters by one weighting of the data, for any pull."""

    robot: Robot
    factor: Array
    target: Array
    noise: Array
    spread: float

    def __call__(self, looser: float, without: str = '') -> Consistent:
        """Find the parameters; the link and drive of `without` may be impossible."""
        robot = self.robot
        starts = dict(zip(robot.links, robot.first_columns.tolist(), strict=True))
        positive = nonnegative_columns(robot)
        return consistent_parameters(
            self.factor,
            self.target,
            robot.prior,
            robot.first_columns.tolist(),
            [k for k in positive if robot.parameters[k].joint != without],
            looser * _prior_sigma(robot),
            looser * self.spread,
            noise=self.noise,
            free=[starts[without]] if without in starts else [],
        )


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
    joints with large torques more than it has to; the unweighted sum of squares, which the
    relative residual measures, takes over where only it stays within the tolerance.

    Parameters
    ----------
    robot, base, estimate : the prior, and the base parameters
    system : rows to predict; None: the pull stays at `spread`
    spread : σ_S of the tightest pull
    tolerance : largest increase of the residual over that of the base parameters, relative

    """
    fit = _Fit(robot, *_by_estimate(base, estimate), spread)
    tight = fit(1.0)
    if system is None:
        return Pull(tight, spread)
    R = _triangular(system)

    def residual(found: Consistent) -> float:
        return _relative(R, base.of(found.value))

    reference = _relative(R, estimate.value)
    limit = (1.0 + tolerance) * reference
    if residual(tight) <= limit:
        return Pull(tight, spread, residual(tight), reference)
    loose, attainable, obstacle = fit(LOOSEST), float('nan'), None
    if residual(loose) > limit:
        other = _Fit(robot, *_unweighted(base, estimate, R), spread)
        best = other(LOOSEST)
        if residual(best) <= limit:
            fit, loose = other, best
        else:
            attainable, obstacle = residual(best), _obstacle(other, residual)
            limit = (1.0 + SLACK) * residual(loose)
    looser, found = _tightest(fit, lambda tried: residual(tried) <= limit, loose)
    return Pull(found, looser * spread, residual(found), reference, attainable, obstacle)


def _tightest(
    fit: _Fit, fits: Callable[[Consistent], bool], loose: Consistent
) -> tuple[float, Consistent]:
    """Bisect (in logarithms) between a spread that is too tight, and LOOSEST, which is not."""
    low, high, found = 0.0, np.log(LOOSEST), loose
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        tried = fit(float(np.exp(middle)))
        if fits(tried):
            high, found = middle, tried
        else:
            low = middle
    return float(np.exp(high)), found


def consistency_notes(robot: Robot, pull: Pull) -> tuple[str, ...]:
    """Tell where no body that can exist explains the data."""
    if pull.obstacle is None:
        return ()
    joint, without = pull.obstacle
    left, base, least, rest = (
        f'{100.0 * x:.3g} %' for x in (pull.residual, pull.base, pull.attainable, without)
    )
    return (
        f'{robot.name}: identified.urdf leaves a residual of {left}, the base parameters {base}: '
        f'no physically consistent bodies and friction leave less than {least}; in the way is '
        f"link or drive of '{joint}', without whose constraints {rest} would be left. Predict "
        'with the base parameters; check gravity and axes of the URDF, and whether the efforts '
        'hold gravity and friction',
    )


def nonnegative_columns(robot: Robot) -> list[int]:
    """Columns of rotor inertias and friction coefficients that cannot be negative."""
    return [k for k, p in enumerate(robot.parameters) if p.symbol in NONNEGATIVE]


def _obstacle(fit: _Fit, residual: Callable[[Consistent], float]) -> tuple[str, float]:
    """Return the joint without whose constraints least is left, and what is."""
    left = {joint: residual(fit(LOOSEST, joint)) for joint in fit.robot.links}
    joint = min(left, key=lambda name: left[name])
    return joint, left[joint]


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


def _by_estimate(base: BaseParameters, estimate: Estimate) -> tuple[Array, Array, Array]:
    """
    Whiten by the rows and weights of the estimate: its classical covariance is (WᵀΩ²W)⁻¹ σ².

    Rows count as far as they are independent. The covariance that respects their correlation would
    do as well without constraints; with them it gives way where residuals are large already.
    """
    scale = np.sqrt(np.maximum(np.diag(estimate.classical), 1e-300))
    values, vectors = np.linalg.eigh(estimate.classical / np.outer(scale, scale))
    root = (vectors / np.sqrt(np.maximum(values, 1e-10 * values[-1]))).T / scale
    root = root / np.sqrt(_inflation(estimate))
    return root @ base.matrix, root @ estimate.value, root @ estimate.covariance @ root.T


def _unweighted(base: BaseParameters, estimate: Estimate, R: Array) -> tuple[Array, Array, Array]:
    squares = float(np.sum((R[:, -1] - R[:, :-1] @ estimate.value) ** 2))
    freedom = max(float(estimate.rows.sum()) - len(estimate.value), 1.0)
    sigma = max(float(np.sqrt(squares / freedom * _inflation(estimate))), 1e-300)
    root = R[:, :-1] / sigma
    return root @ base.matrix, R[:, -1] / sigma, root @ estimate.covariance @ root.T


def _inflation(estimate: Estimate) -> float:
    return float(estimate.rows.sum()) / effective_sample_size(estimate)


def _prior_sigma(robot: Robot) -> Array:
    """
    Return the standard deviation of the prior of what is not a link's inertia.

    A stiffness that the configuration does not give has no prior.
    """
    return np.array(
        [
            np.inf
            if p.symbol == 'K' and value == 0.0
            else max(PRIOR_RELATIVE_SIGMA * abs(value), MIN_PRIOR_SIGMA)
            for p, value in zip(robot.parameters, robot.prior, strict=True)
        ]
    )
