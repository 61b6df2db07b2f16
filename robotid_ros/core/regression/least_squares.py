"""Solving an overdetermined system W χ = Y: least squares, and penalties of a mixed model."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses

import numpy as np

from ...exceptions import RecordingError
from ..arrays import Array, column_sizes, Indices, Mask, ReadOnlyArrays

# Least singular value that is inverted, of columns of length one, so that nothing overflows.
TINY = 1e-16


@dataclasses.dataclass(frozen=True)
class Solution:
    """A solution and what its covariance is made of."""

    value: Array  # (b,)
    bread: Array  # (b, b) B with χ̂ − χ = B Σ_k z_k ρ_k, z_k the rows of W (of Z, for instruments)
    singular: Array  # (b,) singular values of W, columns scaled to length one, descending
    weakest: Array  # (b,) right singular vector of the smallest
    # Of penalties: covariance (b, b) of what they leave, and how far rows at instants move it.
    bias: Array | float = 0.0
    moved: Array | float = 0.0


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
    """Return χ̂ = (Zᵀ W)⁻¹ Zᵀ Y, Z of a motion without noise (Janot, Vandanjon, Gautier 2014)."""
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
    """Return the solution of least norm, columns of A (N, b) scaled to the length one."""
    scale = column_sizes(A)
    return np.asarray(np.linalg.lstsq(A / scale, y, rcond=tolerance)[0] / scale)


def project_out(columns: Array, tolerance: float) -> Callable[[Array], Array]:
    """Return the projection of rows (N, …) on the orthogonal complement of columns (N, b)."""
    U, s, _ = np.linalg.svd(columns / column_sizes(columns), full_matrices=False)
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
HOLD = 3e-3
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
    """

    weights: Array  # (n,) w of each joint's rows
    precision: Array  # (b,) p
    spread: Array  # (b,) variance of friction before the data, whose p is known; zero of others
    size: Array  # (b,) z, squares of the weighted columns; zero of those that are shrunk
    shrunk: Mask  # (b,) which parameters are zero in the plain fit
    # (b,) shrunk parameters of one number share a variance; −1 of others.
    group: Indices
    rows: Array  # (k, b) R, of what pulls the bodies
    target: Array  # (k,) r
    doubt: float  # least variance of R χ − r; where R is stronger than that, σ is of a weaker one
    instants: Array  # (k, b + 1) U, a factor of the same data at instants (`at_instants`)

    def of(self, kept: list[int], rows: float) -> Penalty:
        """Return that of some of the parameters, for so many rows instead of one."""
        root = np.sqrt(rows)
        return dataclasses.replace(
            self,
            precision=rows * self.precision[kept],
            spread=self.spread[kept],
            size=rows * self.size[kept],
            shrunk=self.shrunk[kept],
            group=self.group[kept],
            rows=root * self.rows[:, kept],
            target=root * self.target,
            doubt=rows * self.doubt,
            instants=root * self.instants[:, [*kept, -1]],
        )

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

    def solve(self, W: Array, Y: Array) -> Solution:
        """
        Solve weighted rows.

        The solution's bread is that of the data: χ̂ = B Wᵀ Y, the pull to the plain fit included.
        Its singular values are those of the plain fit without R. A parameter that is pulled is
        taken to be off by as much as the others of its group are from their means; bodies by as
        much as those that the rows tell are from the description's (MacKay 1992). Rows at instants
        have the errors of the others, as they are of the same data; the estimate may be off by how
        far they move it.
        """
        R = np.asarray(np.linalg.qr(np.column_stack([W, Y]), mode='r'))
        W, Y = R[:, :-1], R[:, -1]
        if self.doubt > self.noise:
            # A pull that the rows do not contradict may be stronger than what is known.
            share = np.sqrt(self.noise / self.doubt)
            known = {'rows': share * self.rows, 'target': share * self.target}
            weaker = dataclasses.replace(self, doubt=self.noise, **known).solve(W, Y)
            stronger = dataclasses.replace(self, doubt=0.0).solve(W, Y)
            return dataclasses.replace(weaker, value=stronger.value)
        b, free, hold = W.shape[1], np.flatnonzero(~self.shrunk), HOLD * self.size
        # The plain fit, without and with the bodies.
        weak = np.diag(np.sqrt(RIDGE * self.size + self.precision)[free])
        rows, wanted = np.vstack([W[:, free], weak]), np.append(Y, 0.0 * free)
        plain = held = least_squares(rows, wanted)
        if len(self.rows):
            bodies = np.vstack([rows, self.rows[:, free]])
            held = least_squares(bodies, np.append(wanted, self.target))
        near, weakest, bread_of_held = np.zeros(b), np.zeros(b), np.zeros((b, b))
        near[free], weakest[free] = held.value, plain.weakest
        bread_of_held[np.ix_(free, free)] = held.bread
        # All of the sum, without and with rows at instants.
        pull = self.precision + hold + RIDGE * self.size
        pulled = np.flatnonzero(pull)
        root, used = np.sqrt(pull[pulled]), self.instants[:, :-1]
        rows = np.vstack([W, root[:, None] * np.eye(b)[pulled], self.rows])
        wanted = np.concatenate([Y, (hold * near)[pulled] / root, self.target])
        found = alone = least_squares(rows, wanted)
        if len(used):
            wanted = np.append(wanted, self.instants[:, -1])
            found = least_squares(np.vstack([rows, used]), wanted)
        bread = hold[:, None] * bread_of_held + used.T @ used @ alone.bread
        bread = found.bread + found.bread @ bread
        # Roots of what each of the penalties leaves.
        off, size = self.precision * found.value**2, np.sqrt(self.size)
        halves = [bread * (RIDGE * size * np.linalg.norm(Y))]
        halves.append(bread * (self.precision * np.sqrt(self.spread)))
        for number in np.unique(self.group[self.group >= 0]):
            own = self.group == number
            halves.append(found.bread[:, own] * np.sqrt(self.precision[own] * off[own].mean()))
        bias = sum((half @ half.T for half in halves), np.zeros((b, b)))
        if len(self.rows):
            half = found.bread @ self.rows.T
            told = max(len(self.rows) - float(np.sum(self.rows.T * half)), 1.0)
            left = float(np.sum((self.rows @ found.value - self.target) ** 2)) / told
            bias = bias + half @ half.T * max(left, self.doubt)
        moved = found.value - alone.value
        return Solution(found.value, bread, plain.singular, weakest, bias, moved)
