"""Measured efforts of a motion beside predicted ones."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
from typing import Any

import numpy as np

from ..arrays import Array, Mask, ReadOnlyArrays
from ..excitation.trajectory import Motion
from .estimate import data_frame

PARTS = ('inertia', 'gravity', 'friction', 'offset')  # of predicted efforts, which they add up to


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
    position, velocity : (N, n) the motion [rad or m], or None
    inertia : (N, n) what links and rotors predict, with Coriolis' and centrifugal efforts, or None
    gravity : (N, n) what gravity does, and a counterbalance, or None
    friction, offset : (N, n) likewise, or None

    """

    joints: tuple[str, ...]
    time: Array
    measured: Array
    predicted: Array
    # Files of earlier versions do not have it: all rows.
    valid: Mask = dataclasses.field(default_factory=lambda: np.ones((1, 1), dtype=bool))
    position: Array | None = None
    velocity: Array | None = None
    inertia: Array | None = None
    gravity: Array | None = None
    friction: Array | None = None
    offset: Array | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, 'valid', np.broadcast_to(self.valid, self.measured.shape))

    @property
    def parts(self) -> dict[str, Array]:
        """What the predicted efforts consist of, by name; empty where it is not known."""
        parts = {name: getattr(self, name) for name in PARTS}
        return {} if any(part is None for part in parts.values()) else parts

    @property
    def series(self) -> dict[str, Any]:
        """All that is known of each row, by name."""
        every = {name: value for name, value in vars(self).items() if name != 'joints'}
        return {name: value for name, value in every.items() if value is not None}

    @property
    def motion(self) -> Motion | None:
        """The motion, of which the accelerations are differences of speeds; None if unknown."""
        if self.position is None or self.velocity is None or len(self.time) < 2:
            return None
        ddq = np.gradient(self.velocity, self.time, axis=0)
        return Motion(self.position, self.velocity, ddq)

    @classmethod
    def concatenate(cls, parts: Sequence[Validation]) -> Validation:
        """Concatenate the parts of one motion; what is not known of all of them is not known."""
        rows = [part.series for part in parts]
        common = set.intersection(*map(set, rows))
        columns = {name: np.concatenate([row[name] for row in rows]) for name in common}
        return cls(parts[0].joints, **columns)

    @property
    def relative_residual(self) -> Array:
        """‖measured − predicted‖/‖measured‖ per joint, all rows, (n,)."""
        return self._residual(np.ones_like(self.valid), axis=0)

    @property
    def moving_residual(self) -> Array:
        """The same on the rows where the joint moves, (n,)."""
        return self._residual(self.valid, axis=0)

    @property
    def moving_effort(self) -> Array:
        """Root mean square of the measured efforts where the joint moves, (n,) [N·m or N]."""
        squares = np.sum(self.measured**2, axis=0, where=self.valid)
        return np.asarray(np.sqrt(squares / np.maximum(self.valid.sum(axis=0), 1)))

    def total_residual(self, moving: bool = False) -> float:
        """Return the relative residual of all joints together."""
        return float(self._residual(self.valid if moving else np.ones_like(self.valid)))

    def _residual(self, rows: Mask, axis: int | None = None) -> Array:
        parts = self.measured - self.predicted, self.measured
        error, size = (np.sqrt(np.sum(np.where(rows, x**2, 0.0), axis=axis)) for x in parts)
        return np.asarray(error / np.maximum(size, 1e-300))

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

    def __repr__(self) -> str:
        return (
            f'<{100.0 * self.total_residual():.2f} % of the efforts of {len(self.joints)} joints '
            f'left over {np.ptp(self.time):.4g} s>'
        )

    def to_pandas(self) -> Any:
        """Return how well each joint is predicted, shares and N·m or N, as a `DataFrame`."""
        columns = {'residual': self.relative_residual, 'moving': self.moving_residual}
        return data_frame('joint', self.joints, {**columns, 'r2': self.r2, 'rms': self.rms})
