"""How well predicted efforts agree with measured ones."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import Array, ReadOnlyArrays
from ..table import ResultTable
from .effort_parts import EffortParts


@dataclasses.dataclass(frozen=True)
class Validation(ReadOnlyArrays):
    """
    Measured and predicted efforts on one motion.

    Attributes
    ----------
    joints : names
    time : (N,) [s]
    measured, predicted : (N, n) [N·m or N], filtered and decimated alike
    valid : (N, n) rows where the joint moves
    parts : what the predicted efforts consist of, and the motion, or None

    """

    joints: tuple[str, ...]
    time: Array
    measured: Array
    predicted: Array
    valid: npt.NDArray[np.bool_]
    parts: EffortParts | None = None

    @classmethod
    def concatenate(cls, parts: Sequence[Validation]) -> Validation:
        """Concatenate the parts of one motion."""
        fields = ('time', 'measured', 'predicted', 'valid')
        columns = {n: np.concatenate([getattr(part, n) for part in parts]) for n in fields}
        known = EffortParts.concatenate([part.parts for part in parts])
        return cls(parts[0].joints, parts=known, **columns)

    @property
    def relative_residual(self) -> Array:
        """‖measured − predicted‖/‖measured‖ per joint, all rows, (n,)."""
        return _ratio(self.measured - self.predicted, self.measured, np.ones_like(self.valid))

    @property
    def moving_residual(self) -> Array:
        """The same on the rows where the joint moves, (n,)."""
        return _ratio(self.measured - self.predicted, self.measured, self.valid)

    @property
    def rms(self) -> Array:
        """Root mean square of the residual per joint, (n,) [N·m or N]."""
        return np.asarray(np.sqrt(np.mean((self.measured - self.predicted) ** 2, axis=0)))

    @property
    def r2(self) -> Array:
        """Coefficient of determination per joint, (n,)."""
        deviation = self.measured - self.measured.mean(axis=0)
        error = np.sum((self.measured - self.predicted) ** 2, axis=0)
        with np.errstate(divide='ignore', invalid='ignore'):
            return np.asarray(1.0 - error / np.sum(deviation**2, axis=0))

    def total_residual(self, moving: bool = False) -> float:
        """Return the relative residual of all joints together."""
        rows = self.valid if moving else np.ones_like(self.valid)
        error = np.linalg.norm((self.measured - self.predicted)[rows])
        return float(error / max(float(np.linalg.norm(self.measured[rows])), 1e-300))

    def __repr__(self) -> str:
        return (
            f'<{100.0 * self.total_residual():.2f} % of the efforts of {len(self.joints)} joints '
            f'left over {np.ptp(self.time):.4g} s>'
        )

    def table(self) -> ResultTable:
        """Lay out how well each joint is predicted: shares of its effort, and N·m or N."""
        columns = {
            'residual': self.relative_residual,
            'moving': self.moving_residual,
            'r2': self.r2,
            'rms': self.rms,
        }
        return ResultTable('joint', self.joints, columns)

    def to_pandas(self) -> Any:
        """Return `table` as a `pandas.DataFrame`."""
        return self.table().to_pandas()

    def _repr_html_(self) -> str:
        return self.table().to_html()


def _ratio(error: Array, signal: Array, rows: npt.NDArray[np.bool_]) -> Array:
    top = np.sqrt(np.sum(np.where(rows, error, 0.0) ** 2, axis=0))
    bottom = np.sqrt(np.sum(np.where(rows, signal, 0.0) ** 2, axis=0))
    return np.asarray(top / np.maximum(bottom, 1e-300))
