"""How well a robot tracked a motion, in some runs and in others."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses

import numpy as np

from ..arrays import Array, ReadOnlyArrays

# What the root mean square of a tracking error differs by from run to run at least, as noise and
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


def tracks_better(before: Sequence[Tracking], after: Sequence[Tracking]) -> bool:
    """
    Whether the joints together have a smaller error, and none a larger one, in later runs.

    By more than the runs before, and those after, differ among themselves.
    """
    tiny, both = 1e-300, [np.array([run.rms for run in runs]) for runs in (before, after)]
    first, second = (np.maximum(rms.mean(axis=0), tiny) for rms in both)
    spread = [np.ptp(rms, axis=0) / np.maximum(rms.mean(axis=0), tiny) for rms in both]
    spread = np.maximum(np.max(spread, axis=0), REPEATABILITY)
    ratio = second / first
    together = float(np.exp(np.mean(np.log(ratio))))
    return bool((ratio <= 1.0 + spread).all() and together < 1.0 - spread.max())
