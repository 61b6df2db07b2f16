"""Penalties of a mixed model: which parameters are pulled where, and how strongly."""

import dataclasses

import numpy as np
import numpy.typing as npt

from ..arrays import Array, ReadOnlyArrays
from .least_squares import least_squares, Solution


@dataclasses.dataclass(frozen=True)
class Penalty(ReadOnlyArrays):
    """
    Σ_j w_j² ‖y_j − W_j χ‖² + Σ_i p_i χ_i² + ‖R χ − r‖² + Σ_i h_i (χ_i − χ_plain,i)².

    χ_plain is the fit of the same rows without penalties, of the parameters that are not shrunk.

    Attributes
    ----------
    weights : (n,) w of each joint's rows
    precision : (b,) p
    hold : (b,) h
    shrunk : (b,) which parameters are zero in the plain fit
    group : (b,) shrunk parameters of one number share a variance; −1 of others
    rows, target : (k, b), (k,) R and r, of what pulls the bodies

    """

    weights: Array
    precision: Array
    hold: Array
    shrunk: npt.NDArray[np.bool_]
    group: npt.NDArray[np.intp]
    rows: Array
    target: Array

    def solve(self, W: Array, Y: Array) -> tuple[Solution, Array]:
        """
        Solve weighted rows (N, b), (N,); return the solution, and what the penalties leave (b, b).

        The solution's bread is that of the data: χ̂ = B Wᵀ Y, the pull to the plain fit included.
        Its singular values are those of the plain fit. A parameter that is pulled is taken to be
        off by as much as the others of its group are from their means.
        """
        free = np.flatnonzero(~self.shrunk)
        plain = least_squares(W[:, free], Y)
        target = np.zeros(W.shape[1])
        target[free] = plain.value
        total = self.precision + self.hold
        pulled = np.flatnonzero(total)
        root = np.sqrt(total[pulled])
        rows = np.zeros((len(pulled), W.shape[1]))
        rows[np.arange(len(pulled)), pulled] = root
        wanted = (self.hold * target)[pulled] / root
        all_rows = np.vstack([W, rows, self.rows])
        found = least_squares(all_rows, np.concatenate([Y, wanted, self.target]))
        whole = np.zeros_like(found.bread)
        whole[np.ix_(free, free)] = plain.bread
        bread = found.bread + found.bread @ (self.hold[:, None] * whole)
        weakest = np.zeros(W.shape[1])
        weakest[free] = plain.weakest
        bias, pull = np.zeros_like(bread), self.precision * found.value**2
        for number in np.unique(self.group[self.group >= 0]):
            own = self.group == number
            half = found.bread[:, own] * np.sqrt(self.precision[own] * pull[own].mean())
            bias += half @ half.T
        if len(self.rows):
            half = found.bread @ self.rows.T
            bias += half @ half.T * np.mean((self.rows @ found.value - self.target) ** 2)
        return Solution(found.value, bread, plain.singular, weakest), bias
