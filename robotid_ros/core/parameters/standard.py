"""Standard parameters that explain the base parameters, and whether a body can have them."""

from collections.abc import Mapping
import dataclasses

import numpy as np
import numpy.typing as npt

from ..arrays import Array, ReadOnlyArrays
from ..model.base_parameters import BaseParameters
from ..model.robot import Robot
from ..regression.estimate import Estimate
from ..regression.observation_system import System
from .essential import Essential
from .physical_consistency import mass_properties, pseudo_inertia
from .prior_pull import choose_pull, consistency_notes

# Of the Cholesky factorisation of a link's inertia at its centre of mass (STD table III) [kg·m²].
TOLERANCES = (0.0, -0.01, -0.02, -0.04)


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
    notes : the same as a sentence
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
    notes: tuple[str, ...] = ()


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
        notes=consistency_notes(robot, pull),
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
