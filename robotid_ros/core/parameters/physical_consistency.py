"""
Physically consistent standard parameters: a semidefinite program around the prior.

A link exists if its pseudo-inertia matrix is positive definite, [[Σ, h], [hᵀ, M]] ≻ 0 with
Σ = ½ tr(J) I − J, J the inertia and h the first moments at the joint frame; this implies M > 0, a
positive definite inertia at the centre of mass and the triangle inequality of its principal
moments. With P_ref = L Lᵀ the prior's, S = L⁻¹ P L⁻ᵀ are coordinates in which the prior is the
identity and ‖S − I‖_F is, to second order, the entropic (log-det) divergence from it, in any unit
and frame.
"""

from collections.abc import Sequence
import dataclasses

import numpy as np
import numpy.typing as npt

from ...exceptions import ConfigurationError, RobotIdError
from ..arrays import Array, ReadOnlyArrays

# Numbers whose squares are some still.
LARGEST = 1e100
# Of a link whose prior has no mass or an impossible inertia [kg], and its radius of gyration [m]:
# small beside any link, so that the data decide; its σ_S is so many times that of the others.
SMALLEST_MASS, SMALLEST_RADIUS = 1e-3, 1e-2
UNKNOWN = 1e3
UPPER = tuple((i, j) for j in range(4) for i in range(j + 1))  # column by column, as Clarabel
IDENTITY = np.array([float(i == j) for i, j in UPPER])  # svec(I)
UNITS = np.zeros((10, 4, 4))  # S of each svec of length one
UNITS[(range(10), *np.transpose(UPPER))] = np.where(IDENTITY, 1.0, np.sqrt(0.5))
UNITS += np.triu(UNITS, 1).swapaxes(1, 2)


class SolverError(RobotIdError, RuntimeError):
    """The semidefinite program was not solved."""


def least_norm(rows: Array, limits: Array, scalars: int, matrices: int) -> Array:
    """Return the w of least ‖w‖ with `rows w + limits` in ℝ₊ (scalars) and 𝕊₊⁴ (matrices)."""
    try:
        import clarabel
    except ImportError as error:
        raise ConfigurationError(
            "consistent parameters need the solver clarabel: 'pip install clarabel'"
        ) from error
    from scipy import sparse

    remedy = 'raise identification.prior_spread or check the inertias of the URDF'
    # The solver does not survive what overflows in it.
    if not max(np.abs(rows).max(), np.abs(limits).max()) < LARGEST:
        raise SolverError(f'consistent parameters were not found (no numbers): {remedy}')
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    # A possible body always exists, so what looks infeasible is only badly scaled.
    settings.tol_infeas_abs = settings.tol_infeas_rel = 1e-14
    solution = clarabel.DefaultSolver(
        sparse.identity(rows.shape[1], format='csc'),
        np.zeros(rows.shape[1]),
        sparse.csc_matrix(-rows),
        limits,
        [clarabel.NonnegativeConeT(scalars)] * bool(scalars)
        + [clarabel.PSDTriangleConeT(4)] * matrices,
        settings,
    ).solve()
    if 'Solved' not in str(solution.status):
        raise SolverError(f'consistent parameters were not found ({solution.status}): {remedy}')
    return np.asarray(solution.x)


@dataclasses.dataclass(frozen=True)
class Consistent(ReadOnlyArrays):
    """Standard parameters that a real robot can have."""

    value: Array  # (p,) standard parameters
    sigma: Array  # (p,) standard deviation from data and prior together, constraints left aside


def pseudo_inertia(inertial: Array) -> Array:
    """Return the 4×4 pseudo-inertia of `XX XY XZ YY YZ ZZ MX MY MZ M` (10,)."""
    J, h = np.asarray(inertial)[[[0, 1, 2], [1, 3, 4], [2, 4, 5]]], np.asarray(inertial)[6:9]
    P = np.empty((4, 4))
    P[:3, :3] = 0.5 * np.trace(J) * np.eye(3) - J
    P[:3, 3] = P[3, :3] = h
    P[3, 3] = inertial[9]
    return P


def inertial_parameters(pseudo: Array) -> Array:
    """Return `XX XY XZ YY YZ ZZ MX MY MZ M` (10,) of a 4×4 pseudo-inertia."""
    sigma = pseudo[:3, :3]
    J = np.trace(sigma) * np.eye(3) - sigma
    return np.array([*J[0], *J[1, 1:], J[2, 2], *pseudo[:3, 3], pseudo[3, 3]])


def mass_properties(pseudo: Array) -> tuple[float, Array, Array]:
    """Return mass, centre of mass and inertia (3, 3) at it, of a 4×4 pseudo-inertia."""
    mass = float(pseudo[3, 3])
    com = pseudo[:3, 3] / mass if mass else np.zeros(3)
    scatter = pseudo[:3, :3] - mass * np.outer(com, com)
    return mass, com, np.trace(scatter) * np.eye(3) - scatter


def link_coordinates(prior: Array) -> Array:
    """Return T (10, 10), `inertial = T svec(S)`; `svec(I)` gives the possible prior (10,)."""
    L = np.linalg.cholesky(_repair(pseudo_inertia(prior)))
    return np.column_stack([inertial_parameters(P) for P in L @ UNITS @ L.T])


@dataclasses.dataclass(frozen=True)
class BodyPrior:
    """Standard parameters before the data, how sure they are, and which of them bodies bound."""

    value: Array  # χ_ref (p,)
    links: Sequence[int]  # column of XX of each link; nine more follow in the standard order
    positive: Sequence[int] = ()  # columns of rotor inertias and friction coefficients
    # σ_ref (p,) of the columns outside the links, inf where there is no prior, None where none has
    # one.
    sigma: Array | None = None
    link_sigma: float = 0.2  # σ_S of the links' S: 0.2 says that the prior is right to about 20 %
    margin: float = 0.01  # smallest allowed eigenvalue of S
    free: Sequence[int] = ()  # links that need not be possible bodies
    # By how much of its distance from the joint the prior's centre of mass may be off.
    centre_sigma: float = 0.0


def consistent_parameters(
    factor: Array, target: Array, prior: BodyPrior, noise: Array | None = None
) -> Consistent:
    """
    Solve min ‖F χ − g‖² + Σ_links ‖S − I‖²_F/σ_S² + Σ_others ((χ − χ_ref)/σ_ref)².

    ‖S − I‖² is its mean over the centres of mass that the link may have, see `centre_sigma`.
    Subject to S ⪰ margin·I for each link and χ_i ≥ 0 for `positive`.

    Parameters
    ----------
    factor, target : F (b, p) and g (b,), whitened: ‖F χ − g‖² is the data's χ²
    prior : what is known besides
    noise : (b, b) covariance of g, where whitening did not make it the identity; for `sigma`

    Raises
    ------
    SolverError : the program has no solution or the solver is missing

    """
    T, origin, weight = scaled_coordinates(prior)
    F, W = np.asarray(factor), np.diag(weight)
    for block in (slice(start, start + 10) for start in prior.links if prior.centre_sigma):
        W[block, block] @= _mean_metric(prior.value[block], prior.centre_sigma)
    least, root = minimiser_and_root(np.vstack([F @ T, W]), [*target, *W @ origin])
    z = least + root @ project(least, root, prior)
    # √diag(R (Dᵀ C D + Pᵀ P) Rᵀ), R Rᵀ being the inverse of Dᵀ D + Pᵀ P.
    data, known, root = F @ T @ root, W @ root, T @ root
    covariance = data.T @ (data if noise is None else noise @ data) + known.T @ known
    variance = np.sum((root @ covariance) * root, axis=1)
    return Consistent(T @ z, np.sqrt(np.maximum(variance, 0.0)))


def _is_known(P: Array) -> bool:
    values = np.linalg.eigvalsh(P)
    return bool(values[0] > 1e-9 * max(values[-1], SMALLEST_MASS * SMALLEST_RADIUS**2))


def _repair(P: Array) -> Array:
    return P if _is_known(P) else _thickened(P, SMALLEST_RADIUS)


def _thickened(P: Array, least: float) -> Array:
    """Return a body whose radii of gyration about its centre of mass are at least so much [m]."""
    mass = max(P[3, 3], SMALLEST_MASS)
    centre = np.append(P[:3, 3] / mass if P[3, 3] > 0 else np.zeros(3), 1.0)
    thick = mass * np.outer(centre, centre)
    scatter, vectors = np.linalg.eigh((P - thick)[:3, :3])
    thick[:3, :3] += (vectors * np.maximum(scatter, mass * least**2)) @ vectors.T
    return thick


def scaled_coordinates(prior: BodyPrior, slenderness: float = 0.0) -> tuple[Array, Array, Array]:
    """
    Return coordinates z of standard parameters χ = T z in which the prior is independent.

    `slenderness` is the least radius of gyration, over its largest, by which a link is scaled:
    what is known of a rod's axis is no share of its thickness. Returns T (p, p), the prior's z
    (p,), links made possible bodies, and 1/σ of each z (p,).
    """
    p = len(prior.value)
    T, origin = np.eye(p), np.array(prior.value, dtype=float)
    weight = np.zeros(p) if prior.sigma is None else 1.0 / np.asarray(prior.sigma, dtype=float)
    for start in prior.links:
        block = slice(start, start + 10)
        known = _is_known(pseudo_inertia(origin[block]))
        T[block, block] = exact = link_coordinates(origin[block])
        origin[block] = IDENTITY
        if slenderness:
            P = _repair(pseudo_inertia(prior.value[block]))
            scatter = P[:3, :3] - np.outer(P[:3, 3], P[:3, 3]) / P[3, 3]
            largest = np.sqrt(np.linalg.eigvalsh(scatter)[-1] / P[3, 3])
            thick = inertial_parameters(_thickened(P, slenderness * largest))
            T[block, block] = link_coordinates(thick)
            origin[block] = np.linalg.solve(T[block, block], exact @ IDENTITY)
        weight[block] = 1.0 / (prior.link_sigma if known else UNKNOWN * prior.link_sigma)
    return T, origin, weight


def _mean_metric(prior: Array, sigma: float) -> Array:
    """
    Return R (10, 10): ‖R svec(S − I)‖² is the mean of ‖S − I‖² over links of other centres.

    These have S in their own units; centres are those of the prior (10,) times normal factors
    around one (Gauss-Hermite, exact here). Of a thin link that is far from its joint a
    change that is small for the prior is large for many that the true link may be.
    """
    P = _repair(pseudo_inertia(prior))
    L, shift, rows = np.linalg.cholesky(P), np.eye(4), []
    i, j = np.transpose(UPPER)
    scales = np.where(i == j, 1.0, np.sqrt(2.0))
    for step, share in ((-np.sqrt(3.0), 1 / 6), (0.0, 2 / 3), (np.sqrt(3.0), 1 / 6)):
        shift[:3, 3] = step * sigma * P[:3, 3] / P[3, 3]
        B = np.linalg.solve(L, shift @ L)
        rows.append((np.sqrt(share) * scales * (B @ UNITS @ B.T)[:, i, j]).T)
    return np.asarray(np.linalg.qr(np.concatenate(rows), mode='r'))


def minimiser_and_root(rows: Array, target: npt.ArrayLike) -> tuple[Array, Array]:
    """Return the minimiser z, and a root of its covariance: χ² = min + ‖w‖² at z + root w."""
    norms = np.linalg.norm(rows, axis=0)
    norms = np.where(norms > 0, norms, np.inf)
    U, s, Vt = np.linalg.svd(rows / norms, full_matrices=False)
    kept = s > s[0] * 1e-13
    root = Vt[kept].T / s[kept] / norms[:, None]
    return root @ (U[:, kept].T @ np.asarray(target)), root


def project(free: Array, root: Array, prior: BodyPrior) -> Array:
    """Return the w of least ‖w‖ for which `free + root w` is possible: in w, χ² is a sphere."""
    positive, bound = list(prior.positive), prior.margin * IDENTITY
    blocks = [slice(start, start + 10) for start in prior.links if start not in prior.free]
    if np.all(free[positive] >= 0) and all(
        np.linalg.eigvalsh(np.tensordot(free[block] - bound, UNITS, 1))[0] >= 0 for block in blocks
    ):
        return np.zeros(root.shape[1])
    cones = [(root[[k]], free[[k]]) for k in positive]
    cones += [(root[block], free[block] - bound) for block in blocks]
    # Stiffnesses and inertias differ by many decades, and so do links that the data tell.
    sizes = [max(*(float(np.linalg.norm(part)) for part in cone), 1e-300) for cone in cones]
    rows = np.vstack([rows / size for (rows, _), size in zip(cones, sizes, strict=True)])
    limits = [limit / size for (_, limit), size in zip(cones, sizes, strict=True)]
    unit = np.linalg.norm(rows, axis=0).max()
    return least_norm(rows / unit, np.concatenate(limits), len(positive), len(blocks)) / unit
