"""
Rows of any number as triangular factors (TSQR).

What is kept per joint is R of [W Y] = Q R, with ‖Y − W χ‖ = ‖R [−χ 1]ᵀ‖ for every χ, and factors
of at most `2 MOST` successive batches, whose scores tell the covariance of correlated residuals.
"""

import dataclasses

import numpy as np

from ..arrays import Array
from .observation_system import System

# Batches of one piece, and half the batches that are kept at the most.
BATCHES, MOST = 32, 64


class TriangularFactors:
    """
    Triangular factors of [W Y] of all batches so far, (n, K, b + 1, b + 1).

    Parameters
    ----------
    joints, parameters : n and b

    """

    def __init__(self, joints: int, parameters: int):
        self.kept = np.zeros((joints, 0, parameters + 1, parameters + 1))
        self.counts = np.zeros(joints, dtype=np.intp)
        # Batches of a piece become one when as many pieces were joined.
        self.merged, self.waiting = 1, list[Array]()

    def add(self, system: System) -> None:
        """Add the rows of a piece."""
        rows = np.concatenate([system.W, system.Y[:, :, None]], axis=2)
        rows *= system.valid[:, :, None]
        self.counts += system.valid.sum(axis=1)
        for part in np.array_split(rows, BATCHES, axis=1):
            self.waiting.append(triangular_factor(part))
            if len(self.waiting) == self.merged:
                self._keep(np.concatenate(self.waiting, axis=1))
                self.waiting = []

    def _keep(self, rows: Array) -> None:
        self.kept = np.concatenate([self.kept, triangular_factor(rows)[:, None]], axis=1)
        if self.kept.shape[1] == 2 * MOST:
            n, count, size, _ = self.kept.shape
            self.kept = triangular_factor(self.kept.reshape(n, count // 2, 2 * size, size))
            self.merged *= 2

    def system(self, like: System) -> System:
        """Return the system of all rows."""
        rest = triangular_factor(np.concatenate(self.waiting, axis=1)) if self.waiting else None
        kept = self.kept
        if rest is not None:
            kept = np.concatenate([kept, rest[:, None]], axis=1)
        n, count, size, _ = kept.shape
        total = triangular_factor(kept.reshape(n, count * size, size))
        return dataclasses.replace(
            like,
            time=np.arange(size, dtype=float),
            W=total[:, :, :-1],
            Y=total[:, :, -1],
            valid=np.ones((n, size), dtype=bool),
            noise=None,
            counts=self.counts.copy(),
            batches=kept,
        )


def triangular_factor(rows: Array) -> Array:
    """Return R (…, b, b) of rows (…, N, b), filled up with zeros."""
    count, size = rows.shape[-2:]
    R: Array = np.asarray(np.linalg.qr(rows, mode='r'))
    if count < size:
        R = np.concatenate([R, np.zeros((*R.shape[:-2], size - count, size))], axis=-2)
    return R
