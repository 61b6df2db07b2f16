"""Standard parameters closest to CAD, without constraints (Gautier and Venture)."""

import numpy as np
import numpy.typing as npt

from robotid_ros.core.arrays import Array
from robotid_ros.core.model.robot import BaseParameters, Robot
from robotid_ros.core.parameters.essential import Essential
from robotid_ros.core.parameters.physical_consistency import mass_properties, pseudo_inertia
from robotid_ros.core.pipeline.identification import Identification
from robotid_ros.core.regression.estimate import Estimate

# Of the Cholesky factorisation of a link's inertia at its centre of mass (STD table III) [kg·m²].
TOLERANCES = (0.0, -0.01, -0.02, -0.04)


def closest(found: Identification, robot: Robot) -> tuple[Array, Array]:
    """Return the parameters (p,) closest to a robot's prior, by eq. 30 and by eq. 32."""
    assert found.essential is not None
    known = prior_with_drive_parameters(robot, found.base, found.estimate, found.essential)
    return (
        closest_to_prior(found.base.matrix, found.estimate.value, known),
        closest_essential(found.base, found.estimate, found.essential, known),
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


def positive_definite_links(
    chi: Array, starts: npt.ArrayLike, tolerance: float = 0.0
) -> npt.NDArray[np.bool_]:
    """
    Return for each link whether M > 0 and J_com ≻ tolerance (STD IV).

    J_com = J − (‖MS‖² I − MS MSᵀ)/M.
    """
    bodies = (mass_properties(pseudo_inertia(chi[k : k + 10])) for k in np.asarray(starts))
    return np.array([m > 0.0 and np.linalg.eigvalsh(J)[0] > tolerance for m, _, J in bodies])
