"""Reference and measured torque at the updates of the controller."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...exceptions import RecordingError
from ..arrays import Array
from ..signals.recording import Recording, Reference
from .laws.control_loop import Desired

# Share of the power of the reference's velocity below its bandwidth.
BANDWIDTH_POWER = 0.99
# Strides this close to a whole number of updates, relative, are one: stamps jitter by less.
STRIDE_TOLERANCE = 0.02
# Longest gap that is interpolated [s], where it is not 1.5 times the usual spacing.
MAX_GAP = 0.05


class Torque(NamedTuple):
    """
    Measured torque where it can be compared with a simulated one.

    Attributes
    ----------
    row : (N,) rows of the simulation, fractional where the rates differ
    tau : (N, n) torque that acted in that row [N·m or N]
    valid : (N,) False where it was not measured
    rate : of the rows [Hz]

    """

    row: Array
    tau: Array
    valid: npt.NDArray[np.bool_]
    rate: float


def reference_on_grid(recording: Recording, rate: float) -> tuple[float, Desired]:
    """
    Return the recorded reference at every update of the controller.

    Where stamps jitter, repeat or are missing, it is interpolated by quintics that meet position,
    velocity and acceleration at both ends, as the controller itself does. Without a recorded
    reference it is taken from the trajectory that was run.

    Parameters
    ----------
    recording : with `reference`, or with one trajectory
    rate : of the controller [Hz]

    Returns
    -------
    time of the first update [s, the recording's clock] and the reference from there on

    Raises
    ------
    RecordingError : neither was recorded

    """
    if recording.reference is not None and recording.reference.time.size > 1:
        return _interpolated(recording.reference, rate)
    for name, trajectory in recording.trajectories.items():
        spans = [phase for phase in recording.phases if phase.name == name]
        start, stop = (spans[0].start, spans[0].stop) if spans else recording.time[[0, -1]]
        grid = np.arange(int((min(stop, recording.time[-1]) - start) * rate) + 1) / rate
        index = [trajectory.joints.index(joint) for joint in recording.joints]
        q, dq, ddq = (value[:, index] for value in trajectory.sample(grid))
        return float(start), Desired(q, dq, ddq, np.zeros_like(q))
    raise RecordingError(
        f'{recording.source or "the recording"} holds neither the reference nor the trajectory: '
        "record the controller's state, or identify by WLS"
    )


def _interpolated(reference: Reference, rate: float) -> tuple[float, Desired]:
    time, rows = np.unique(reference.time, return_index=True)
    grid = time[0] + np.arange(round((time[-1] - time[0]) * rate) + 1) / rate
    q, dq, ddq = (value[rows] for value in (reference.q, reference.dq, reference.ddq))
    dq = np.where(np.isfinite(dq), dq, np.gradient(q, time, axis=0))
    ddq = np.where(np.isfinite(ddq), ddq, 0.0)
    # Controllers that have no acceleration in their reference report none, or zeros.
    ddq = np.where(ddq.any(axis=0), ddq, np.gradient(dq, time, axis=0))
    motion = interpolate_quintic(time, q, dq, ddq, np.minimum(grid, time[-1]))
    return float(time[0]), Desired(*motion, np.zeros_like(motion[0]))


def torque_on_grid(
    recording: Recording,
    effort: Array,
    start: float,
    updates: int,
    rate: float,
    delay: float = 0.0,
) -> Torque:
    """
    Return the measured torque at the updates that a simulation has rows for.

    Parameters
    ----------
    recording : its stamps are used
    effort : (N, n) torque at the recording's stamps [N·m or N]
    start : time of the first update [s]
    updates : number of rows
    rate : of the controller [Hz]
    delay : from the start of a hold to the stamp that reports its torque, in updates

    """
    time, rows = np.unique(recording.time, return_index=True)
    effort = effort[rows]
    spacing = float(np.median(np.diff(time)))
    stride = max(1.0, spacing * rate)
    stride = round(stride) if abs(stride - round(stride)) < STRIDE_TOLERANCE * stride else stride
    lag = start + delay / rate
    first = np.ceil((time[0] - lag) * rate - 1e-3)
    # Rows coincide with stamps, so that torques are interpolated only where stamps jitter.
    first += stride * np.ceil(max(-first, 0.0) / stride)
    last = min(updates - 1.0, np.floor((time[-1] - lag) * rate + 1e-3))
    row = np.arange(first, last + 1e-9, stride)
    at = lag + row / rate
    tau = np.column_stack([np.interp(at, time, column) for column in effort.T])
    after = np.clip(np.searchsorted(time, at), 1, time.size - 1)
    close = time[after] - time[after - 1] <= max(MAX_GAP, 1.5 * spacing)
    return Torque(row, np.nan_to_num(tau), close & np.isfinite(tau).all(axis=1), rate / stride)


def interpolate_quintic(
    time: Array, q: Array, dq: Array, ddq: Array, at: Array
) -> tuple[Array, Array, Array]:
    """Interpolate by quintics through `q dq ddq` (K, n) of `time` (K,), all three at `at` (N,)."""
    left = np.clip(np.searchsorted(time, at, side='right') - 1, 0, time.size - 2)
    h = (time[left + 1] - time[left])[:, None]
    u = (at - time[left])[:, None] / h
    start, end = ((q[i], dq[i] * h, ddq[i] * h**2 / 2.0) for i in (left, left + 1))
    gap = end[0] - start[0] - start[1] - start[2]
    slope = end[1] - start[1] - 2.0 * start[2]
    bend = end[2] - start[2]
    c3 = 10.0 * gap - 4.0 * slope + bend
    c4 = -15.0 * gap + 7.0 * slope - 2.0 * bend
    c5 = 6.0 * gap - 3.0 * slope + bend
    position = start[0] + u * (start[1] + u * (start[2] + u * (c3 + u * (c4 + u * c5))))
    velocity = start[1] + u * (2 * start[2] + u * (3 * c3 + u * (4 * c4 + u * 5 * c5)))
    acceleration = 2 * start[2] + u * (6 * c3 + u * (12 * c4 + u * 20 * c5))
    return position, velocity / h, acceleration / h**2


def interpolate_rows(values: Array, row: Array) -> Array:
    """Interpolate the rows of `values` (K, n) linearly at fractional rows (N,)."""
    low = np.minimum(row.astype(int), values.shape[0] - 1)
    high = np.minimum(low + 1, values.shape[0] - 1)
    share = (row - low)[:, None]
    return values[low] if not share.any() else values[low] * (1 - share) + values[high] * share


def bandwidth(dq: Array, rate: float) -> Array:
    """Return the angular frequency below which the velocity (K, n) has 99 % of its power, (n,)."""
    power = np.abs(np.fft.rfft(dq * np.hanning(dq.shape[0])[:, None], axis=0)) ** 2
    total = np.cumsum(power, axis=0)
    reached = np.argmax(total >= BANDWIDTH_POWER * total[-1], axis=0)
    return np.asarray(2.0 * np.pi * np.maximum(reached, 1) * rate / dq.shape[0])
