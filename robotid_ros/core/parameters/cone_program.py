"""The cone program of consistent parameters: a least norm whose bodies can exist."""

import numpy as np

from ...exceptions import ConfigurationError, RobotIdError
from ..arrays import Array

# Numbers whose squares are some still.
LARGEST = 1e100


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
