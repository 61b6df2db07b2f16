"""From a recording to samples: repaired, filtered, differentiated, with rows that may be used."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.ndimage import minimum_filter1d

from ...exceptions import RecordingError, StandstillError
from ..arrays import Array
from ..model.robot import ElasticRobot, Robot
from .analytic_derivatives import fitted
from .filters import differences, lowpass, motion_bandwidth
from .invalid_samples import clipped, coarse
from .periodic import averaged, noise_of, period_of, repeated, wrapped
from .recording import Recording
from .resampling import uniform
from .samples import Samples, SignalSettings

if TYPE_CHECKING:
    from ..excitation.trajectories.trajectory import Trajectory

# Automatic cut-off over the motion's bandwidth, and the least [Hz].
CUTOFF, LEAST = 10.0, 5.0
# What the ends of a recording spoil, in periods of the cut-off.
END = 3.0
# A joint that travels less is at rest [rad or m].
STILL = 1e-3
# A rate that stamps give is never exact.
ROUNDING = 1e-6


@dataclass(frozen=True)
class _Even:
    """
    A recording on an even grid of time, before it is filtered.

    Attributes
    ----------
    recording : positions and efforts, as published
    rate : [Hz]
    measured : (N,) False where samples were invented to fill gaps
    clipped : (N, n) efforts at their limit
    noise : (n,) of the torques, from the differences between periods, or None
    trajectory, rows : of averaged periods: what they follow, and one period of them
    notes : what was done, in words

    """

    recording: Recording
    rate: float
    measured: npt.NDArray[np.bool_]
    clipped: npt.NDArray[np.bool_]
    noise: Array | None
    trajectory: Trajectory | None
    rows: npt.NDArray[np.bool_] | None
    notes: tuple[str, ...]


def prepare(recording: Recording, robot: Robot, settings: SignalSettings) -> Samples:
    """
    Turn a recording into samples (DIDIM section II).

    The position is low-passed without phase, its derivatives are central differences. The torque
    stays as it is: it is filtered together with the columns of W (parallel decimation).

    Parameters
    ----------
    recording : joints by name; those of the robot are picked
    robot : whose joints and drive gains
    settings : zero means: chosen from the data

    Raises
    ------
    RecordingError : the recording cannot be used; says why
    UnknownNameError : a joint that was not recorded

    """
    even = _even(recording.select(robot.joints), robot, settings)
    cutoff, decimation = _cutoff_and_decimation(even, settings)
    q, dq, ddq = _motion(even, cutoff, settings)
    valid = _usable_rows(even, robot, dq, cutoff, decimation, settings)
    return Samples(
        robot.joints,
        even.recording.time,
        q,
        dq,
        ddq,
        even.recording.effort * robot.drive_gain,
        even.rate,
        valid,
        even.noise,
        decimation,
        notes=even.notes,
        cutoff=cutoff,
    )


def _even(recording: Recording, robot: Robot, settings: SignalSettings) -> _Even:
    """Put a recording on an even grid, one period of it where periods are to be averaged."""
    if isinstance(robot, ElasticRobot):
        recording = replace(recording, effort=robot.motor_efforts(recording.effort))
    even, rate, measured, notes = uniform(recording, settings)
    _check_channels(even, robot)
    with np.errstate(divide='ignore'):  # a link on a spring has no drive
        largest = robot.limits.effort / np.abs(robot.drive_gain)
    cut = clipped(even.effort, largest)
    notes += [*_clipping(robot, cut), *_rounding(robot, even.effort)]
    period, rows, trajectory = period_of(recording), None, None
    noise = None if period is None else noise_of(even.effort * robot.drive_gain, rate, period)
    if settings.averaging and period is not None and measured.all() and not cut.any():
        even, rate, measured = averaged(even, rate, period)
        rows, trajectory = measured, _own_trajectory(recording) if settings.analytic else None
        cut = np.zeros(even.position.shape, dtype=bool)
        notes.append(f'the periods of {period:g} s were averaged')
    if settings.analytic and trajectory is None:
        notes.append(
            'derivatives come from differences: signals.analytic needs signals.averaging, and two '
            'periods or more of a recorded trajectory of all joints'
        )
    return _Even(even, rate, measured, cut, noise, trajectory, rows, (*notes,))


def _cutoff_and_decimation(even: _Even, settings: SignalSettings) -> tuple[float, int]:
    cutoff = settings.cutoff or max(
        LEAST, CUTOFF * motion_bandwidth(even.recording.position, even.rate)
    )
    # A filter needs room below half the rate, and so does the decimation's.
    cutoff = min(cutoff, 0.4 * even.rate)
    return cutoff, settings.decimation or max(1, int(0.4 * even.rate / cutoff + ROUNDING))


def _motion(even: _Even, cutoff: float, settings: SignalSettings) -> tuple[Array, Array, Array]:
    """Return positions, velocities, accelerations (N, n)."""
    position = even.recording.position
    if even.trajectory is not None and even.rows is not None:
        one = fitted(position[even.rows], even.rate, even.trajectory, cutoff)
        q, dq, ddq = map(wrapped, one)
        return q, dq, ddq
    q = lowpass(position, cutoff, even.rate, settings.order)
    dq = differences(q, even.rate)
    return q, dq, differences(dq, even.rate)


def _usable_rows(
    even: _Even,
    robot: Robot,
    dq: Array,
    cutoff: float,
    decimation: int,
    settings: SignalSettings,
) -> npt.NDArray[np.bool_]:
    """Tell the rows (N, n) that the fit may use: measured, moving, away from ends and clipping."""
    edge = int(np.ceil(END * even.rate / cutoff - ROUNDING))
    measured = _eroded(even.measured, edge)
    valid = _moving(robot, dq, settings.standstill) & measured[:, None] & ~even.clipped
    valid = _eroded(valid, _guard(settings, decimation))
    valid[:edge] = valid[len(valid) - edge :] = False
    if not valid.any():
        raise StandstillError(
            f'no joint of {even.recording.source or "the recording"} moves faster than '
            f'{settings.standstill:g} rad/s: record a motion, or lower signals.standstill'
        )
    return valid


def _own_trajectory(recording: Recording) -> Trajectory | None:
    """Return the trajectory of the recording's joints, or None where it does not move them all."""
    trajectory = repeated(recording)
    if trajectory is None or not set(recording.joints) <= set(trajectory.joints):
        return None
    order = [trajectory.joints.index(joint) for joint in recording.joints]
    return replace(
        trajectory,
        joints=recording.joints,
        start=trajectory.start[order],
        coefficients=trajectory.coefficients[:, order],
    )


def _moving(robot: Robot, dq: Array, standstill: float) -> npt.NDArray[np.bool_]:
    """Tell where a joint moves, and every motor that it shares with another one."""
    moving = np.abs(dq) >= standstill
    for coupling in robot.couplings:
        turning = np.abs(dq @ coupling.ratios) >= standstill
        moving[:, coupling.ratios != 0.0] &= turning[:, None]
    return moving


def _guard(settings: SignalSettings, decimation: int) -> int:
    """Count the samples to leave out beside others; only decimation mixes more than one."""
    return int(np.ceil(settings.guard * decimation)) if decimation > 1 else 1


def _eroded(valid: npt.NDArray[np.bool_], reach: int) -> npt.NDArray[np.bool_]:
    """Leave out what the decimation's filter mixes with rows that are not valid."""
    size = 2 * reach + 1
    return np.asarray(minimum_filter1d(valid, size, axis=0, mode='nearest'))


def _check_channels(recording: Recording, robot: Robot) -> None:
    """Refuse efforts that tell nothing although their joint moves."""
    dead = np.ptp(recording.effort, axis=0) == 0.0
    where = recording.source or 'the recording'
    if dead.all():
        raise RecordingError(
            f'{where} has no effort that changes: give the joint_state_broadcaster the effort '
            'interfaces'
        )
    for j in np.flatnonzero(dead):
        sprung = isinstance(robot, ElasticRobot) and robot.sprung[j]
        if not sprung and np.ptp(recording.position[:, j]) > STILL:
            raise RecordingError(
                f'the effort of {robot.joints[j]} never changes while it moves, its channel is '
                'dead: repair it and record again, or record with this joint at rest and name it '
                'in robot.locked'
            )


def _clipping(robot: Robot, cut: npt.NDArray[np.bool_]) -> list[str]:
    return [
        f'the effort of {joint} is clipped in {100 * share:.1f} % of the samples: left out, run a '
        'slower trajectory'
        for joint, share in zip(robot.joints, cut.mean(axis=0), strict=True)
        if share >= 0.001
    ]


def _rounding(robot: Robot, effort: Array) -> list[str]:
    return [
        f'the effort of {joint} comes in steps of {step:.3g}: rounding is no noise, errors may be '
        'larger than σ says'
        for joint, step in zip(robot.joints, coarse(effort), strict=True)
        if step > 0.0
    ]
