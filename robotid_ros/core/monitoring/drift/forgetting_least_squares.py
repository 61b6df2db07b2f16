"""Recursive least squares in square-root form, with forgetting in time of motion."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...arrays import Array
from ...regression.triangular_factors import triangular_factor


class ForgettingLeastSquares:
    """
    Triangular factors of all rows so far, one of each joint, old rows weighing less.

    With c_j the time in which joint j moved, a row of age a by that clock weighs e^(−a/T):
    R_jᵀ R_j = Σ e^(−a/T) [φ y]ᵀ [φ y], the QR update of information filters (Bierman 1977). A
    joint that rests forgets nothing, and what its rows do not show is not forgotten for them:
    information leaves as new one of the same joint comes, so that nothing winds up.

    Parameters
    ----------
    joints, columns : n and m, without the right-hand side
    memory : T, inf to forget nothing [s]

    Attributes
    ----------
    factors : (n, m + 1, m + 1) R_j of [φ y]
    time : (n,) c_j [s]
    counts : (n,) sum of the weights of the rows

    """

    def __init__(self, joints: int, columns: int, memory: float):
        self.memory = memory
        self.factors = np.zeros((joints, columns + 1, columns + 1))
        self.time, self.counts = np.zeros((2, joints))

    def add(self, rows: Array, used: npt.NDArray[np.bool_], duration: float) -> None:
        """
        Take in one row a joint.

        Parameters
        ----------
        rows : (n, m + 1) [φ y]
        used : (n,) joints that moved; the rows of others are passed over
        duration : that a row stands for [s]

        """
        decay = np.where(used, np.exp(-duration / self.memory), 1.0)
        old = self.factors * np.sqrt(decay)[:, None, None]
        new = np.where(used[:, None], rows, 0.0)
        self.factors = triangular_factor(np.concatenate([old, new[:, None]], axis=1))
        self.time = self.time + np.where(used, duration, 0.0)
        self.counts = decay * self.counts + used

    def copy(self, memory: float) -> ForgettingLeastSquares:
        """Return the same rows with another memory from here on."""
        n, size, _ = self.factors.shape
        result = ForgettingLeastSquares(n, size - 1, memory)
        result.factors, result.time, result.counts = self.factors, self.time, self.counts
        return result

    def information(self, noise: Array) -> tuple[Array, Array]:
        """
        Return Φᵀ Φ (m, m) and Φᵀ y (m,) of all joints.

        `noise` (n,) is the standard deviation that a row of each joint counts with.
        """
        rows = (self.factors / noise[:, None, None]).reshape(-1, self.factors.shape[-1])
        gram = rows.T @ rows
        return gram[:-1, :-1], gram[:-1, -1]

    def squares(self, value: Array) -> Array:
        """Return the weighted sums of squares that parameters (m,) leave of each joint (n,)."""
        left = self.factors @ np.append(-value, 1.0)
        return np.asarray(np.sum(left**2, axis=1))
