"""A repeated motion: noise and average of its periods."""

import dataclasses

import numpy as np
import numpy.typing as npt

from ..arrays import Array
from .recording import Recording

# Two periods, less the step after the last sample.
MIN_PERIODS = 1.99
# Periods at the start that may hold the controller's transient.
TRANSIENT_PERIODS = 1


def split_periods(values: Array, rate: float, period: float) -> Array:
    """Return whole periods of uniform samples (N, n) as (M, K, n), interpolated if need be."""
    length = max(1, int(np.floor(rate * period + 1e-6)))
    count = int(np.floor(len(values) / (rate * period) + 1e-6))
    wanted = np.arange(count)[:, None] * period + np.arange(length) * (period / length)
    time = np.arange(len(values)) / rate
    columns = [np.interp(wanted.ravel(), time, x).reshape(wanted.shape) for x in values.T]
    return np.stack(columns, axis=-1)


def settled_periods(values: Array, rate: float, period: float) -> Array:
    """Return the periods without the first ones, where two or more are left."""
    periods = split_periods(values, rate, period)
    return periods[TRANSIENT_PERIODS:] if len(periods) > TRANSIENT_PERIODS + 1 else periods


def noise_between_periods(values: Array, rate: float, period: float) -> Array | None:
    """
    Return the standard deviation of the noise (n,), or None with less than two settled periods.

    σ² = 1/((M−1)K) Σ_k Σ_m (x_m(k) − x̄(k))² (MFS section 4.1).
    """
    periods = settled_periods(values, rate, period)
    if len(periods) < 2:
        return None
    variance = np.sum((periods - periods.mean(axis=0)) ** 2, axis=(0, 1))
    return np.asarray(np.sqrt(variance / ((len(periods) - 1) * periods.shape[1])))


def find_period(recording: Recording) -> float | None:
    """Return the period of the recorded motion [s], where it is known and at least two fit."""
    recorded = {phase.name for phase in recording.phases}
    for name, trajectory in recording.trajectories.items():
        long_enough = recording.duration >= MIN_PERIODS * trajectory.period
        if long_enough and (not recorded or name in recorded):
            return float(trajectory.period)
    return None


def average_periods(
    recording: Recording, rate: float, period: float
) -> tuple[Recording, float, npt.NDArray[np.bool_]]:
    """
    Replace uniform samples by the average of their periods, with half a period on either side.

    The halves repeat the average, so that filters have no edges; their rows carry no information.
    Returns the average, its rate [Hz], and (K,) True in the period itself.
    """
    both = np.concatenate([recording.position, recording.effort], axis=1)
    mean = settled_periods(both, rate, period).mean(axis=0)
    half = len(mean) // 2
    around = np.concatenate([mean[-half:], mean, mean[:half]])
    step = period / len(mean)
    time = recording.time[0] + step * (np.arange(len(around)) - half)
    n = len(recording.joints)
    average = dataclasses.replace(
        recording, time=time, position=around[:, :n], velocity=None, effort=around[:, n:],
    )  # fmt: skip
    own = np.zeros(len(around), dtype=bool)
    own[half : half + len(mean)] = True
    return average, 1.0 / step, own
