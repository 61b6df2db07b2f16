"""The delay between the recorded positions and efforts, and the recording without it."""

from collections.abc import Iterable, Iterator
import dataclasses

import numpy as np

from ..model.elastic import ElasticRobot
from ..model.parameters import Array
from ..model.robot import Robot
from ..signals.prepare import prepare
from ..signals.recording import Recording
from ..signals.samples import Samples, SignalSettings
from .estimators import fit
from .results import BaseParameters, Estimate
from .system import observe, observed_torque, System

# A delay counts when it is this many times its σ, and this share of the time between samples. What
# the model lacks, springs above all, looks like a delay too: only a clear one is taken for real.
CLEAR, NOTABLE = 6.0, 0.05
# A reported effort is a command of at most so many updates before, to this share of its size.
MOST_HELD, MATCH = 3, 0.1
LONGEST = 0.05  # a longer one is a fault of the recording, not of a bus [s]


def aligned(
    recording: Recording, robot: Robot, base: BaseParameters, settings: SignalSettings
) -> tuple[Samples, System, float, list[str]]:
    """
    Prepare and observe a recording, without the delay of its efforts where that is clear.

    Returns
    -------
    Samples, their system, how long the efforts were behind the positions [s], and a note on that

    """
    wanted = settings.time_offset
    # The columns of an elastic robot are not those of its controller.
    held = hold_delay(recording) if wanted and not isinstance(robot, ElasticRobot) else None
    if held is not None and held < 0.0:
        # A log of the commands themselves, not of what the drives say they did: taken as it is.
        held = 0.0
    samples = prepare(without_delay(recording, held or 0.0), robot, settings)
    system = observe(samples, robot, base)
    if held == 0.0:
        return samples, system, 0.0, []
    if held is not None:
        note = (
            f'the efforts are commands that were held: they belong {1e3 * held:.2f} ms before '
            'their stamps'
        )
        return samples, system, held, [note]
    if not wanted:
        return samples, system, 0.0, []
    delay, sigma = effort_delay(system, fit(system, 'wls'))
    if not is_clear(delay, sigma, samples.rate):
        return samples, system, 0.0, []
    # Only the torque moves: W stays as it is.
    samples = dataclasses.replace(samples, tau=earlier(samples.time, samples.tau, delay))
    note = (
        f'the efforts are {1e3 * delay:.2f} ± {1e3 * sigma:.2f} ms behind the positions: removed, '
        'see signals.time_offset'
    )
    return samples, dataclasses.replace(system, Y=observed_torque(samples)), delay, [note]


def effort_delay(system: System, estimate: Estimate) -> tuple[float, float]:
    """
    Return how long the efforts are behind the positions, and its standard deviation [s].

    Y(t) = τ(t − δ) = W χ − δ d(W χ)/dt to first order, so that the delay is one column more.
    """
    predicted = system.predict(estimate.value)
    rate = np.gradient(predicted, system.time, axis=1)
    # The scale of a column is that of its parameter's unit: a millisecond.
    W = np.concatenate([system.W, -1e-3 * rate[:, :, None]], axis=2)
    joined = dataclasses.replace(
        system, names=(*system.names, 'delay'), units=(*system.units, 'ms'), W=W, Z=None
    )
    found = fit(joined, 'ols' if estimate.method == 'ols' else 'wls')
    return 1e-3 * float(found.value[-1]), 1e-3 * float(found.sigma[-1])


def hold_delay(recording: Recording) -> float | None:
    """
    Return how long before its stamp a reported effort acted, where efforts are commands [s].

    A controller's command is held for a period T. Hardware that reports what it applied shows at a
    stamp the command of k updates before, which acted on average (k − ½) T before that stamp.

    Returns
    -------
    (k − ½) T, or None where the controller's commands were not recorded or do not match

    """
    reference, controller = recording.reference, recording.controller
    if reference is None or reference.command is None or controller is None:
        return None
    if not controller.rate or len(reference.time) < 2:
        return None
    period = 1.0 / controller.rate
    inside = (recording.time > reference.time[0] + (MOST_HELD + 1) * period) & (
        recording.time <= reference.time[-1]
    )
    time, effort = recording.time[inside], recording.effort[inside]
    if len(time) < 100 or not np.isfinite(effort).all():
        return None
    errors = []
    for k in range(MOST_HELD + 1):
        # The stamps of the two messages of one update differ by some ten microseconds.
        row = np.searchsorted(reference.time, time - (k - 0.3) * period, side='right') - 1
        fresh = np.abs(time - k * period - reference.time[row]) < 0.5 * period
        errors.append(float(np.sum((effort[fresh] - reference.command[row[fresh]]) ** 2)))
    best = int(np.argmin(errors))
    if errors[best] > MATCH**2 * float(np.sum(effort**2)):
        return None
    return (best - 0.5) * period


def is_clear(delay: float, sigma: float, rate: float) -> bool:
    """Tell whether a delay is worth removing: known well, not tiny, and no fault."""
    return abs(delay) > max(CLEAR * sigma, NOTABLE / rate) and abs(delay) < LONGEST


def each_without_delay(pieces: Iterable[Recording], delay: float) -> Iterator[Recording]:
    """Yield the pieces of a recording with their efforts `delay` seconds earlier."""
    return (without_delay(piece, delay) for piece in pieces)


def without_delay(recording: Recording, delay: float) -> Recording:
    """Return the recording with its efforts `delay` seconds earlier, by linear interpolation."""
    good = np.isfinite(recording.effort).all(axis=1) & np.isfinite(recording.time)
    time = recording.time[good]
    if not delay or time.size < 2 or np.any(np.diff(time) <= 0.0):
        return recording
    effort: Array = np.full(recording.effort.shape, np.nan)
    effort[good] = earlier(time, recording.effort[good], delay)
    return dataclasses.replace(recording, effort=effort)


def earlier(time: Array, values: Array, delay: float) -> Array:
    """Return what signals (N, n) are `delay` seconds later."""
    return np.column_stack([np.interp(time + delay, time, column) for column in values.T])
