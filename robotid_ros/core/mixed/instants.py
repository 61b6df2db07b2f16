"""Rows as a model is used: W of the filtered motion, and the torques through the same filter."""

import dataclasses

import numpy as np

from ..arrays import Array
from ..model.base_parameters import BaseParameters
from ..model.robot import Robot
from ..regression.observation_system import observe, Observed
from ..signals.filters import lowpass
from ..signals.preparation import CUTOFF_FACTOR, MIN_CUTOFF, prepare
from ..signals.recording import Recording
from ..signals.samples import SignalSettings
from .columns import Part

# Rows of a recording at least, where it has so many: a few hundred alias the torques' noise.
ROWS = 10_000
# What they leave, weighted, over what filtered rows leave, less noise, with all kinds of columns
# open. With 0.7, EMPS is validated at 4.14 instead of 4.09 %; without, other motion is predicted
# 3 % worse (benchmarks/foreign.py).
SHARE = 0.5
POWER = 0.99  # of the positions, below their bandwidth


def at_instants(
    recording: Recording, robot: Robot, base: BaseParameters, signals: SignalSettings
) -> Part:
    """
    Return the rows of a recording at instants: W is not filtered, as where a model is evaluated.

    Rows of W and torques that pass one filter together are without bias where the model is exact
    (DIDIM section II), but smooth what a model is off where a joint turns round or rests. The
    filter follows the positions' spectrum, whatever is set: that of the speeds is wider, and of
    positions that repeat it is mostly noise.

    Parameters
    ----------
    recording : whose efforts are not behind its positions
    robot, base : with plain friction
    signals : which rows count

    Raises
    ------
    RecordingError : the recording cannot be used

    """
    bandwidth = position_bandwidth(recording.select(robot.joints).position, recording.rate)
    cutoff = max(MIN_CUTOFF, CUTOFF_FACTOR * bandwidth)
    follow = dataclasses.replace(signals, cutoff=cutoff, band=cutoff, decimation=1)
    samples = prepare(recording, robot, follow)
    keep = slice(None, None, max(1, len(samples.time) // ROWS))
    tau = lowpass(samples.tau, samples.cutoff, samples.rate, signals.order)[keep]
    motion = {k: getattr(samples, k)[keep] for k in ('time', 'q', 'dq', 'ddq', 'valid')}
    thinned = dataclasses.replace(
        samples, **motion, tau=tau, rate=samples.rate / keep.step, measured=None
    )
    system = observe(thinned, robot, base)
    return Observed(system, thinned, (system,))


def position_bandwidth(q: Array, rate: float) -> float:
    """Return the frequency below which 99 % of the power of every position (N, n) lies [Hz]."""
    windowed = np.hanning(len(q))[:, None] * (q - q.mean(axis=0))
    power = np.cumsum(np.abs(np.fft.rfft(windowed, axis=0)) ** 2, axis=0)
    below = np.sum(power < POWER * power[-1], axis=0)
    return float(below.max()) * rate / len(q)
