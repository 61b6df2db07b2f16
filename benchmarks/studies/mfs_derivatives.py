"""Derivatives of averaged periods by the trajectory's own basis (MFS, section 4.1)."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from robotid_ros.core.arrays import Array
from robotid_ros.core.excitation.trajectory import Trajectory
from robotid_ros.core.model import Robot
from robotid_ros.core.signals.preparation import prepare, resample
from robotid_ros.core.signals.recording import Recording, Samples, SignalSettings

# Gauss-Newton steps of the time delay, which start within a sample of it, and alternations of
# basis and harmonics, which are small beside the basis.
SHIFT_ITERATIONS, FIT_ITERATIONS = 10, 3
# Residual over the whole below which only rounding is left.
ROUNDING = 1e-12


def prepare_by_basis(recording: Recording, robot: Robot, signals: SignalSettings) -> Samples:
    """Prepare averaged periods of a recorded trajectory, derivatives by its basis."""
    samples = prepare(recording, robot, signals)
    even = resample(recording.select(robot.joints), robot, signals)
    (trajectory,) = recording.trajectories.values()
    period = even.recording.position[even.measured]
    motion = fit_and_differentiate(period, even.rate, trajectory, samples.cutoff)
    half = len(period) // 2
    q, dq, ddq = (np.concatenate([x[-half:], x, x[:half]]) for x in motion)
    return replace(samples, q=q, dq=dq, ddq=ddq)


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
