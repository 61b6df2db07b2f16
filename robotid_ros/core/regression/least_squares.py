"""Solving an overdetermined system W χ = Y: by least squares, and where W has errors too."""

from collections.abc import Callable
import dataclasses

import numpy as np

from ...exceptions import RecordingError
from ..arrays import Array

# Least singular value that is inverted, of columns of length one, so that nothing overflows.
TINY = 1e-16


@dataclasses.dataclass(frozen=True)
class Solution:
    """
    A solution and what its covariance is made of.

    Attributes
    ----------
    value : (b,)
    bread : (b, b) B with χ̂ − χ = B Σ_k z_k ρ_k, z_k the rows of W (of Z, for instruments)
    singular : (b,) singular values of W, columns scaled to length one, descending
    weakest : (b,) right singular vector of the smallest

    """

    value: Array
    bread: Array
    singular: Array
    weakest: Array


def least_squares(W: Array, Y: Array) -> Solution:
    """Return χ̂ = W⁺ Y by QR and the singular values of the triangular factor (DIDIM eq. 15)."""
    scale, R, projected = _factored(W, Y)
    U, s, Vt = np.linalg.svd(R)
    inverse = 1.0 / np.maximum(s, TINY)
    value = scale * (Vt.T @ (inverse * (U.T @ projected)))
    root = scale[:, None] * Vt.T * inverse
    return Solution(value, root @ root.T, s, Vt[-1])


def total_least_squares(W: Array, Y: Array) -> Solution:
    """
    Return χ̂ = (Wᵀ W − σ² I)⁻¹ Wᵀ Y, σ the smallest singular value of [W Y].

    Columns and torque are scaled to length one: errors are taken to be as large, relative to it,
    in every column (Van Huffel and Vandewalle 1991, eq. 3.20).
    """
    scale, R, projected = _factored(W, Y)
    length = float(np.linalg.norm(Y))
    rest = np.sqrt(max(length**2 - float(projected @ projected), 0.0))
    joined = np.zeros((len(R) + 1, R.shape[1] + 1))
    joined[:-1, :-1], joined[:-1, -1], joined[-1, -1] = R, projected / length, rest / length
    smallest = np.linalg.svd(joined, compute_uv=False)[-1]
    _, s, Vt = np.linalg.svd(R)
    inverse = 1.0 / np.maximum(s**2 - smallest**2, TINY)
    value = scale * (Vt.T @ (inverse * (Vt @ (R.T @ projected))))
    bread = (scale[:, None] * Vt.T * inverse) @ (Vt * scale)
    return Solution(value, bread, s, Vt[-1])


def instrumental_variables(W: Array, Y: Array, Z: Array) -> Solution:
    """
    Return χ̂ = (Zᵀ W)⁻¹ Zᵀ Y (IDIM-IV; Janot, Vandanjon, Gautier 2014).

    Z is the observation matrix of a motion without noise, such as the reference.
    """
    length = np.maximum(np.linalg.norm(W, axis=0), 1e-300)
    other = np.maximum(np.linalg.norm(Z, axis=0), 1e-300)
    crossed = (Z / other).T @ (W / length)
    s = np.linalg.svd(crossed, compute_uv=False)
    Vt = np.linalg.svd(np.linalg.qr(W / length, mode='r'))[2]
    if s[-1] < 1e-12 * s[0]:
        return Solution(np.zeros(W.shape[1]), np.zeros(crossed.shape), s, Vt[-1])
    bread = np.linalg.inv(crossed) / length[:, None] / other
    return Solution(bread @ (Z.T @ Y), bread, s, Vt[-1])


def scaled_least_squares(A: Array, y: Array, tolerance: float = 1e-9) -> Array:
    """
    Return the solution of least norm in units in which columns of A (N, b) have the length one.

    Singular values below a share of the largest, `tolerance`, count as none.
    """
    scale = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    return np.asarray(np.linalg.lstsq(A / scale, y, rcond=tolerance)[0] / scale)


def project_out(columns: Array, tolerance: float) -> Callable[[Array], Array]:
    """Return the projection of rows (N, …) on the orthogonal complement of columns (N, b)."""
    norms = np.linalg.norm(columns, axis=0)
    used = norms > 0.0
    U, s, _ = np.linalg.svd(columns[:, used] / norms[used], full_matrices=False)
    U = U[:, s > tolerance * s.max(initial=0.0)]
    return lambda x: x - U @ (U.T @ x)


def _factored(W: Array, Y: Array) -> tuple[Array, Array, Array]:
    if not len(Y):
        raise RecordingError('no row is left to fit: record longer')
    norms = np.linalg.norm(W, axis=0)
    scale, b = 1.0 / np.where(norms > 0.0, norms, 1.0), W.shape[1]
    triangle = np.linalg.qr(np.column_stack([W * scale, Y]), mode='r')[:b]
    padded = np.pad(triangle, ((0, b - len(triangle)), (0, 0)))
    return scale, padded[:, :b], padded[:, b]
