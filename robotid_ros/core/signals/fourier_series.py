"""The motion of one period as a Fourier series, and the average that it is taken from."""

import dataclasses

import numpy as np
import numpy.typing as npt

from ..arrays import Array

# The highest harmonic is so many times the last one that stands out of the noise by so many σ:
# more cost noise, fewer cost bias.
HARMONICS_FACTOR, MIN_SIGMAS = 2.0, 5.0
# Least number of harmonics, and the most unknowns of all joints: their normal matrix is dense.
MIN_HARMONICS, MAX_UNKNOWNS = 40, 1500


@dataclasses.dataclass(frozen=True)
class AveragePeriod:
    """
    The average of the periods of a motion.

    Attributes
    ----------
    position, torque : (K, n) of the robot's joints
    sigma : (n,) standard deviation of an averaged position
    period : [s]

    """

    position: Array
    torque: Array
    sigma: Array
    period: float


def count_harmonics(periods: AveragePeriod) -> int:
    """Return how many harmonics the series of a motion needs."""
    count, joints = periods.position.shape
    size = np.abs(np.fft.rfft(periods.position, axis=0)) * np.sqrt(2.0 / count)
    clear = np.flatnonzero((size > MIN_SIGMAS * periods.sigma).any(axis=1))
    wanted = max(MIN_HARMONICS, int(HARMONICS_FACTOR * clear[-1]) if clear.size else 0)
    return min(wanted, MAX_UNKNOWNS // (2 * joints), count // 8)


def fourier_bases(
    time: Array, period: float, harmonics: int, count: int
) -> tuple[Array, Array, Array]:
    """Return a Fourier series, orthonormal on `count` samples of a period, and its derivatives."""
    omega = 2.0 * np.pi / period * np.arange(1, harmonics + 1)
    size = np.sqrt(2.0 / count)
    cos, sin = (size * f(np.outer(time, omega)) for f in (np.cos, np.sin))
    constant, zero = np.full((len(time), 1), size / np.sqrt(2.0)), np.zeros((len(time), 1))
    return (
        np.hstack([constant, cos, sin]),
        np.hstack([zero, -omega * sin, omega * cos]),
        np.hstack([zero, -(omega**2) * cos, -(omega**2) * sin]),
    )


def lowest_harmonics(harmonics: int, kept: int) -> npt.NDArray[np.intp]:
    """Return the columns of the lowest harmonics in a series, with that of the constant."""
    return np.concatenate([[0], np.arange(1, kept + 1), harmonics + np.arange(1, kept + 1)])
