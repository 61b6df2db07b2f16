"""How well a robot tracked a motion, in one run and in another."""

from __future__ import annotations

import dataclasses

import numpy as np

from ..arrays import Array, ReadOnlyArrays

# What the root mean square of a tracking error may differ by from run to run, as noise and
# friction are never the same: simulated arms repeat theirs to some 0.3 %.
REPEATABILITY = 0.01


@dataclasses.dataclass(frozen=True)
class Tracking(ReadOnlyArrays):
    """
    Tracking error of a run.

    Attributes
    ----------
    joints : names
    time : (N,) since the motion began [s]
    error : (N, n) wanted minus measured position [rad or m]

    """

    joints: tuple[str, ...]
    time: Array
    error: Array

    @property
    def rms(self) -> Array:
        """Root mean square per joint, (n,) [rad or m]."""
        return np.asarray(np.sqrt(np.mean(self.error**2, axis=0)))

    @property
    def peak(self) -> Array:
        """Largest absolute value per joint, (n,) [rad or m]."""
        return np.asarray(np.abs(self.error).max(axis=0))


def tracks_better(before: Tracking, after: Tracking) -> bool:
    """Whether the joints together have a smaller error, and none a larger one, in a second run."""
    ratio = after.rms / np.maximum(before.rms, 1e-300)
    together = float(np.exp(np.mean(np.log(np.maximum(ratio, 1e-300)))))
    return bool(ratio.max() <= 1.0 + REPEATABILITY and together < 1.0 - REPEATABILITY)
