"""
Triangular factors of any number of rows (TSQR).

Per joint, they are R of [W D Y] = Q R, with ‖Y − W χ‖ = ‖R [−χ 0 1]ᵀ‖ for every χ, of fewer than
MAX_BATCHES successive batches, whose scores show the covariance of correlated residuals.
"""

from dataclasses import fields, replace

import numpy as np
import numpy.typing as npt

from ..arrays import Array
from .observation_system import Factors, Rows, System

# Batches of one chunk, and at how many neighbours merge. A batch has to outlast the correlation of
# residuals; the covariance is estimated from the scores of 64 batches or more of a long recording.
BATCHES_PER_CHUNK, MAX_BATCHES = 32, 128


class TriangularFactors:
    """
    Triangular factors of [W D Y] of all batches so far, (n, K, b + d + 1, b + d + 1).

    Parameters
    ----------
    joints, columns : n and b + d, without Y

    """

    def __init__(self, joints: int, columns: int):
        self._factors = np.empty((joints, MAX_BATCHES, columns + 1, columns + 1))
        self._count = 0
        self.counts = np.zeros(joints, dtype=np.intp)
        # So many batches of a chunk make one that is as long as those that were merged.
        self._merged, self._waiting = 1, list[Array]()

    def add(self, system: Rows, batches: int = BATCHES_PER_CHUNK) -> None:
        """Add the rows of a chunk, as so many batches."""
        rows = joined(system)
        rows *= system.valid[:, :, None]
        self.counts += system.valid.sum(axis=1)
        for part in np.array_split(rows, batches, axis=1):
            self._waiting.append(triangular_factor(part))
            if len(self._waiting) == self._merged:
                self._keep(np.concatenate(self._waiting, axis=1))
                self._waiting = []

    def _keep(self, rows: Array) -> None:
        self._factors[:, self._count] = triangular_factor(rows)
        self._count += 1
        if self._count == MAX_BATCHES:
            n, _, size, _ = self._factors.shape
            self._count //= 2
            pairs = self._factors.reshape(n, self._count, 2 * size, size)
            self._factors[:, : self._count] = triangular_factor(pairs)
            self._merged *= 2

    def system(self, template: System) -> Factors:
        """Return the system of all rows; names, units and joints are those of the template."""
        kept = self._factors[:, : self._count]
        if self._waiting:
            rest = triangular_factor(np.concatenate(self._waiting, axis=1))
            kept = np.concatenate([kept, rest[:, None]], axis=1)
        return _of_batches(template, kept, self.counts.copy())


def joined(system: System) -> Array:
    """Return [W D Y] (n, N, b + d + 1)."""
    D = [] if system.D is None else [system.D]
    return np.concatenate([system.W, *D, system.Y[:, :, None]], axis=2)


def split(
    template: System, factors: Array, counts: npt.NDArray[np.intp], batches: Array
) -> Factors:
    """Return the system of the rows of factors of [W D Y] (n, b + d + 1, b + d + 1)."""
    b, own = len(template.names), {f.name: getattr(template, f.name) for f in fields(System)}
    own |= {
        'W': factors[:, :, :b],
        'Y': factors[:, :, -1],
        'valid': np.ones(factors.shape[:2], bool),
    }
    own['D'] = None if template.D is None else factors[:, :, b:-1]
    return Factors(**own, counts=counts, batches=batches)


def _of_batches(template: System, factors: Array, counts: npt.NDArray[np.intp]) -> Factors:
    """Return the system of factors of [W D Y] of batches (n, K, b + d + 1, b + d + 1)."""
    n, count, size, _ = factors.shape
    own = [*range(len(template.names)), size - 1]
    total = triangular_factor(factors.reshape(n, count * size, size))
    return split(template, total, counts, triangular_factor(factors[..., own]))


def compress(system: System, most_batches: int) -> Factors:
    """
    Return the triangular factors of all rows, of at most so many successive batches.

    Of rows in memory, or of factors already, whose neighbouring batches are merged.
    """
    if not isinstance(system, Factors):
        rows = joined(system) * system.valid[:, :, None]
        parts = map(triangular_factor, np.array_split(rows, most_batches, axis=1))
        return _of_batches(system, np.stack([*parts], axis=1), system.valid.sum(axis=1))
    groups = np.array_split(system.batches, min(most_batches, system.batches.shape[1]), axis=1)
    merged = [triangular_factor(g.reshape(len(g), -1, g.shape[-1])) for g in groups]
    return replace(system, batches=np.stack(merged, axis=1))


def triangular_factor(rows: Array) -> Array:
    """Return R (…, b, b) of rows (…, N, b), filled up with zeros."""
    count, size = rows.shape[-2:]
    R: Array = np.asarray(np.linalg.qr(rows, mode='r'))
    if count < size:
        R = np.concatenate([R, np.zeros((*R.shape[:-2], size - count, size))], axis=-2)
    return R
