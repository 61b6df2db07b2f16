"""A repeated motion: noise and average of its periods, its Fourier series and derivatives."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..arrays import Array
from .recording import Recording

if TYPE_CHECKING:
    from ..excitation.trajectory import Trajectory


# The highest harmonic is so many times the last one that stands out of the noise by so many σ:
# more cost noise, fewer cost bias.
HARMONICS_FACTOR, MIN_SIGMAS = 2.0, 5.0
# Least number of harmonics, and the most unknowns of all joints: their normal matrix is dense.
MIN_HARMONICS, MAX_UNKNOWNS = 40, 1500
# Two periods, less the step after the last sample.
MIN_PERIODS = 1.99
# Periods at the start that may hold the controller's transient.
TRANSIENT_PERIODS = 1
# Gauss-Newton steps of the time delay, which start within a sample of it, and alternations of
# basis and harmonics, which are small beside the basis.
SHIFT_ITERATIONS, FIT_ITERATIONS = 10, 3
# Residual over the whole below which only rounding is left.
ROUNDING = 1e-12


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


def split_periods(values: Array, rate: float, period: float) -> Array:
    """Return whole periods of uniform samples (N, n) as (M, K, n), interpolated if need be."""
    length = max(1, int(np.floor(rate * period + 1e-6)))
    count = int(np.floor(len(values) / (rate * period) + 1e-6))
    wanted = np.arange(count)[:, None] * period + np.arange(length) * (period / length)
    time = np.arange(len(values)) / rate
    columns = [np.interp(wanted.ravel(), time, x).reshape(wanted.shape) for x in values.T]
    return np.stack(columns, axis=-1)


def _settled_periods(values: Array, rate: float, period: float) -> Array:
    """Return the periods without the first ones, where two or more are left."""
    periods = split_periods(values, rate, period)
    return periods[TRANSIENT_PERIODS:] if len(periods) > TRANSIENT_PERIODS + 1 else periods


def noise_between_periods(values: Array, rate: float, period: float) -> Array | None:
    """
    Return the standard deviation of the noise (n,), or None with less than two settled periods.

    σ² = 1/((M−1)K) Σ_k Σ_m (x_m(k) − x̄(k))² (MFS section 4.1).
    """
    periods = _settled_periods(values, rate, period)
    if len(periods) < 2:
        return None
    variance = np.sum((periods - periods.mean(axis=0)) ** 2, axis=(0, 1))
    return np.asarray(np.sqrt(variance / ((len(periods) - 1) * periods.shape[1])))


def repeated_trajectory(recording: Recording) -> Trajectory | None:
    """Return the trajectory of the recorded motion, where it is known and two periods fit."""
    recorded = {phase.name for phase in recording.phases}
    for name, trajectory in recording.trajectories.items():
        long_enough = recording.duration >= MIN_PERIODS * trajectory.period
        if long_enough and (not recorded or name in recorded):
            return trajectory
    return None


def find_period(recording: Recording) -> float | None:
    """Return the period of the recorded motion [s], where it is known and at least two fit."""
    trajectory = repeated_trajectory(recording)
    return None if trajectory is None else float(trajectory.period)


def average_periods(
    recording: Recording, rate: float, period: float
) -> tuple[Recording, float, npt.NDArray[np.bool_]]:
    """
    Replace uniform samples by the average of their periods, with half a period on either side.

    The halves repeat the average, so that filters have no edges; their rows carry no information.

    Returns
    -------
    The average, its rate [Hz], and (K,) True in the period itself

    """
    both = np.concatenate([recording.position, recording.effort], axis=1)
    mean = _settled_periods(both, rate, period).mean(axis=0)
    half = len(mean) // 2
    around = extend_periodically(mean)
    step = period / len(mean)
    time = recording.time[0] + step * (np.arange(len(around)) - half)
    n = len(recording.joints)
    average = dataclasses.replace(
        recording, time=time, position=around[:, :n], velocity=None, effort=around[:, n:],
        temperature=None,
    )  # fmt: skip
    own = np.zeros(len(around), dtype=bool)
    own[half : half + len(mean)] = True
    return average, 1.0 / step, own


def extend_periodically(values: Array) -> Array:
    """Put half of a period (K, n) on either side of it."""
    half = len(values) // 2
    return np.concatenate([values[-half:], values, values[:half]])


def fit_and_differentiate(
    position: Array, rate: float, trajectory: Trajectory, cutoff: float
) -> tuple[Array, Array, Array]:
    """
    Fit one period and differentiate the fit: q, dq, ddq (K, n) (MFS section 4.1).

    A robot that follows its trajectory well moves in the span of the trajectory's basis, with a
    constant and a time delay. Tracking errors are periodic too: harmonics follow, as many for each
    joint as the Bayesian information criterion asks for.

    Parameters
    ----------
    position : (K, n) one period of uniform samples, joints as the trajectory's
    rate : [Hz]
    trajectory : what the robot was asked to do, any time shift
    cutoff : frequency of the highest harmonic at the most [Hz]

    """
    time = np.arange(len(position)) / rate
    time = time - _time_shift(position, time, rate, trajectory)
    constants = ([float(derivative == 0)] * len(time) for derivative in range(3))
    basis = [np.column_stack([trajectory.matrix(time, k), x]) for k, x in enumerate(constants)]
    inverse = np.linalg.pinv(basis[0])
    highest = min(int(cutoff * len(position) / rate), (len(position) - 1) // 2)
    least = ROUNDING * np.linalg.norm(position, axis=0)
    coefficients = inverse @ position
    spectrum = np.fft.rfft(position - basis[0] @ coefficients, axis=0)
    used = _significant_harmonics(spectrum, len(position), highest, least)
    for _ in range(FIT_ITERATIONS):
        spectrum *= used
        residual = np.fft.irfft(spectrum, len(position), axis=0)
        coefficients = inverse @ (position - residual)
        spectrum = np.fft.rfft(position - basis[0] @ coefficients, axis=0)
    turn = 2j * np.pi * np.fft.rfftfreq(len(position), 1.0 / rate)[:, None]
    q, dq, ddq = (
        part @ coefficients
        + np.fft.irfft(turn**derivative * spectrum * used, len(position), axis=0)
        for derivative, part in enumerate(basis)
    )
    return q, dq, ddq


def _time_shift(position: Array, time: Array, rate: float, trajectory: Trajectory) -> float:
    """Return the time delay of the robot behind the trajectory [s], by least squares."""
    reference = trajectory.sample(time).q
    spectra = [np.fft.rfft(x - x.mean(axis=0), axis=0) for x in (position, reference)]
    match = np.fft.irfft((spectra[0] * spectra[1].conj()).sum(axis=1), len(time))
    delay = float(np.argmax(match)) / rate
    for _ in range(SHIFT_ITERATIONS):
        motion = trajectory.sample(time - delay)
        error = position - motion.q
        error = error - error.mean(axis=0)
        delay -= float(np.sum(error * motion.dq) / max(float(np.sum(motion.dq**2)), 1e-300))
    return delay


def _significant_harmonics(
    spectrum: npt.NDArray[np.complex128], samples: int, highest: int, least: Array
) -> npt.NDArray[np.bool_]:
    """Select harmonics (K // 2 + 1, n), from the lowest on, by the Bayesian criterion."""
    power = np.abs(spectrum) ** 2 * 2.0 / samples
    total = power.sum(axis=0)
    left = total - np.cumsum(power[: highest + 1], axis=0)
    parameters = 2.0 * np.arange(highest + 1)[:, None]
    criterion = samples * np.log(np.maximum(left, least**2)) + parameters * np.log(samples)
    number = np.arange(len(spectrum))[:, None]
    return (number <= np.argmin(criterion, axis=0)) & (number > 0)
