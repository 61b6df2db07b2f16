"""Solving an overdetermined system W χ = Y: least squares, and penalties of a mixed model."""

from collections.abc import Callable
import dataclasses

import numpy as np
import numpy.typing as npt

from ...exceptions import RecordingError
from ..arrays import Array, ReadOnlyArrays

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


# Pull to the plain fit of the same rows, relative to the columns' size: without it a short log was
# 1.48 times worse than plain friction.
HOLD = 3e-4
# Of the plain fit, relative to the same: what the rows do not tell stays near zero. With 1e-9 a
# motion of one way (gen3, /swap of benchmarks/foreign.py) is predicted 4.4 times worse than plain.
RIDGE = 1e-7


@dataclasses.dataclass(frozen=True)
class Penalty(ReadOnlyArrays):
    """
    Of min Σ_j w_j² ‖y_j − W_j χ‖² + ‖U [χ; −1]‖² + the following, over χ.

    Σ_i p_i χ_i² + ‖R χ − r‖² + Σ_i z_i [h (χ_i − χ_plain,i)² + ε χ_i²].

    χ_plain is the fit of the same rows, of the parameters that are not shrunk, without the second
    and the h term. ε counts only where the rows tell nothing, as of one that turns one way or
    hardly moves: parameters stay small there, and σ is as large as one that explains all torques.

    Attributes
    ----------
    weights : (n,) w of each joint's rows
    precision : (b,) p
    spread : (b,) variance of friction before the data, whose p is known; zero of others
    size : (b,) z, squares of the weighted columns; zero of those that are shrunk
    shrunk : (b,) which parameters are zero in the plain fit
    group : (b,) shrunk parameters of one number share a variance; −1 of others
    rows, target : (k, b), (k,) R and r, of what pulls the bodies
    doubt : least variance of R χ − r; where R is stronger than that, σ is of a weaker one
    instants : (k, b + 1) U, a factor of the same data seen another way (core/mixed/columns.py)

    """

    weights: Array
    precision: Array
    spread: Array
    size: Array
    shrunk: npt.NDArray[np.bool_]
    group: npt.NDArray[np.intp]
    rows: Array
    target: Array
    doubt: float
    instants: Array

    @property
    def curvature(self) -> Array:
        """Half the second derivative (b, b) of the sum by χ, without that of the rows."""
        used = self.instants[:, :-1]
        weak = self.precision + (HOLD + RIDGE) * self.size
        return np.asarray(np.diag(weak) + self.rows.T @ self.rows + used.T @ used)

    @property
    def noise(self) -> float:
        """Mean variance of a weighted row: w is the root of 1/σ."""
        return float(np.mean(self.weights**-2.0))

    def solve(self, W: Array, Y: Array) -> tuple[Solution, Array, Array]:
        """
        Solve weighted rows (N, b), (N,).

        The solution's bread is that of the data: χ̂ = B Wᵀ Y, the pull to the plain fit included.
        Its singular values are those of the plain fit without R. A parameter that is pulled is
        taken to be off by as much as the others of its group are from their means; bodies by as
        much as those that the rows tell are from the description's (MacKay 1992). Rows at instants
        have the errors of the others, as they are of the same data; the estimate may be off by how
        far they move it.

        Returns the solution, the covariance (b, b) of what the penalties leave, and how far (b,)
        rows at instants move the estimate.
        """
        R = np.asarray(np.linalg.qr(np.column_stack([W, Y]), mode='r'))
        W, Y = R[:, :-1], R[:, -1]
        noise = self.noise
        if self.doubt > noise:
            # A pull that the rows do not contradict may be stronger than what is known.
            share = np.sqrt(noise / self.doubt)
            less, as_is = (
                dataclasses.replace(self, rows=k * self.rows, target=k * self.target, doubt=own)
                for k, own in ((share, noise), (1.0, 0.0))
            )
            solution, bias, moved = less.solve(W, Y)
            return dataclasses.replace(solution, value=as_is.solve(W, Y)[0].value), bias, moved
        free = np.flatnonzero(~self.shrunk)
        length = np.sqrt(self.size)
        weak = np.diag(np.sqrt(RIDGE * self.size + self.precision)[free])
        weak = np.vstack([W[:, free], weak])
        torques = np.append(Y, 0.0 * free)
        plain = least_squares(weak, torques)
        held = plain
        if len(self.rows):
            bodies = np.vstack([weak, self.rows[:, free]])
            held = least_squares(bodies, np.append(torques, self.target))
        target = np.zeros(W.shape[1])
        target[free] = held.value
        hold = HOLD * self.size
        total = self.precision + hold + RIDGE * self.size
        pulled = np.flatnonzero(total)
        root = np.sqrt(total[pulled])
        rows = np.zeros((len(pulled), W.shape[1]))
        rows[np.arange(len(pulled)), pulled] = root
        wanted = (hold * target)[pulled] / root
        all_rows = np.vstack([W, rows, self.rows])
        wanted = np.concatenate([Y, wanted, self.target])
        found = alone = least_squares(all_rows, wanted)
        used = self.instants[:, :-1]
        if len(used):
            both = np.append(wanted, self.instants[:, -1])
            found = least_squares(np.vstack([all_rows, used]), both)
        whole = np.zeros_like(found.bread)
        whole[np.ix_(free, free)] = held.bread
        bread = found.bread + found.bread @ (hold[:, None] * whole + used.T @ used @ alone.bread)
        weakest = np.zeros(W.shape[1])
        weakest[free] = plain.weakest
        half = bread * (RIDGE * length * np.linalg.norm(Y))
        bias, pull = half @ half.T, self.precision * found.value**2
        half = bread * (self.precision * np.sqrt(self.spread))
        bias += half @ half.T
        for number in np.unique(self.group[self.group >= 0]):
            own = self.group == number
            half = found.bread[:, own] * np.sqrt(self.precision[own] * pull[own].mean())
            bias += half @ half.T
        if len(self.rows):
            half = found.bread @ self.rows.T
            told = max(len(self.rows) - float(np.sum(self.rows.T * half)), 1.0)
            off = float(np.sum((self.rows @ found.value - self.target) ** 2)) / told
            bias += half @ half.T * max(off, self.doubt)
        solution = Solution(found.value, bread, plain.singular, weakest)
        return solution, bias, found.value - alone.value
