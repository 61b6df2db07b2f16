"""How far an estimate may be off as the times of the samples are not quite known."""

import dataclasses

import numpy as np
import numpy.typing as npt

from ..arrays import Array, ReadOnlyArrays


@dataclasses.dataclass(frozen=True)
class TimingError(ReadOnlyArrays):
    """
    What errors of the samples' times do to an estimate.

    Attributes
    ----------
    change : (b,) standard deviation, with the signs in which parameters change together
    jitter, left : standard deviation of the stamps about even times, and of the errors of the
        times that are used [s]

    """

    change: Array
    jitter: float
    left: float

    def covariance(self, size: int) -> Array:
        """Return the covariance of an estimate whose first parameters these are, (size, size)."""
        change = np.zeros(size)
        change[: len(self.change)] = self.change
        return np.outer(change, change)

    def select(self, kept: npt.NDArray[np.bool_]) -> 'TimingError':
        """Return the error of some parameters (b,); the others are as they are."""
        return dataclasses.replace(self, change=self.change[kept[: len(self.change)]])
