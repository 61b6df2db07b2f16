"""From a recording to samples: repaired, filtered, differentiated, with the rows to use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.ndimage import minimum_filter1d

from ...exceptions import RecordingError, StandstillError
from ..arrays import Array
from ..model.robot import ElasticRobot, Robot
from .analytic_derivatives import fit_and_differentiate
from .filters import central_differences, lowpass, motion_bandwidth
from .invalid_samples import clipped_samples, quantization_steps
from .periodic import (
    average_periods,
    extend_periodically,
    find_period,
    noise_between_periods,
    repeated_trajectory,
)
from .recording import Recording
from .resampling import resample_uniformly
from .samples import Samples, SignalSettings

if TYPE_CHECKING:
    from ..excitation.trajectories.trajectory import Trajectory

# Automatic cut-off over the motion's bandwidth: lower distorts accelerations, higher lets noise of
# the encoders pass; and the least one [Hz], for recordings of a slow motion.
CUTOFF_FACTOR, MIN_CUTOFF = 10.0, 5.0
# Highest share of a rate that a cut-off may be: filters need room below Nyquist's half.
MAX_CUTOFF_SHARE = 0.4
# Periods of the cut-off that the filter's transient takes at the ends of a recording.
EDGE_PERIODS = 3.0
# A joint that travels less is at rest [rad or m].
MIN_TRAVEL = 1e-3
# A joint that moves for less of the time is at rest.
MIN_MOVING_SHARE = 0.01
# Where less of a recording lies away from gaps, these are why no row is left.
MIN_MEASURED_SHARE = 0.5
# Share of clipped samples from which a note is worth reading.
MIN_CLIPPED_SHARE = 0.001
# Relative: a rate that stamps give is never exact.
ROUNDING = 1e-6


@dataclass(frozen=True)
class UniformRecording:
    """
    A recording on a uniform time grid, before it is filtered.

    Attributes
    ----------
    recording : positions and efforts, as published
    rate : [Hz]
    measured : (N,) True where samples lie in no gap, and in the one period of averages
    clipped : (N, n) True where efforts are at their limit
    noise : (n,) of the torques, from the differences between periods, or None
    trajectory : that averaged periods follow, where its basis is to be fitted
    notes : what was repaired

    """

    recording: Recording
    rate: float
    measured: npt.NDArray[np.bool_]
    clipped: npt.NDArray[np.bool_]
    noise: Array | None
    trajectory: Trajectory | None
    notes: tuple[str, ...]


def prepare(recording: Recording, robot: Robot, settings: SignalSettings) -> Samples:
    """
    Turn a recording into samples (DIDIM section II).

    The position is low-passed without phase, its derivatives are central differences. The torque
    stays as it is: it is filtered together with the columns of W (parallel decimation).

    Parameters
    ----------
    recording : with the robot's joints, in any order
    robot : gives joints and drive gains
    settings : zero means: chosen from the data

    Raises
    ------
    RecordingError : the recording cannot be used
    UnknownNameError : a joint that was not recorded

    """
    even = resample(recording.select(robot.joints), robot, settings)
    cutoff, decimation = _cutoff_and_decimation(even, settings)
    q, dq, ddq = _differentiate(even, cutoff, settings)
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
        measured=np.asarray(measured_rows(even, cutoff).any(axis=1)),
    )


def resample(recording: Recording, robot: Robot, settings: SignalSettings) -> UniformRecording:
    """Put a recording on a uniform time grid, averaged over periods where that is set."""
    if isinstance(robot, ElasticRobot):
        recording = replace(recording, effort=robot.motor_efforts(recording.effort))
    even, rate, measured, notes = resample_uniformly(recording, settings)
    _check_efforts(even, robot)
    with np.errstate(divide='ignore'):  # a link on a spring has no drive
        largest = robot.limits.effort / np.abs(robot.drive_gain)
    cut = clipped_samples(even.effort, largest)
    notes += [*_clipping_notes(robot, cut), *_quantization_notes(robot, even.effort)]
    period, noise, trajectory = find_period(recording), None, None
    if period is not None:
        noise = noise_between_periods(even.effort * robot.drive_gain, rate, period)
    if settings.averaging and period is not None and measured.all() and not cut.any():
        even, rate, measured = average_periods(even, rate, period)
        trajectory = _trajectory_of_joints(recording) if settings.analytic else None
        cut = np.zeros(even.position.shape, dtype=bool)
        notes.append(f'the periods of {period:g} s were averaged')
    if settings.analytic and trajectory is None:
        notes.append(
            'derivatives come from differences: signals.analytic needs signals.averaging, and two '
            'periods or more of a recorded trajectory of all joints'
        )
    return UniformRecording(even, rate, measured, cut, noise, trajectory, tuple(notes))


def _cutoff_and_decimation(even: UniformRecording, settings: SignalSettings) -> tuple[float, int]:
    cutoff = settings.cutoff or max(
        MIN_CUTOFF, CUTOFF_FACTOR * motion_bandwidth(even.recording.position, even.rate)
    )
    cutoff = min(cutoff, MAX_CUTOFF_SHARE * even.rate)
    automatic = max(1, int(MAX_CUTOFF_SHARE * even.rate / cutoff + ROUNDING))
    return cutoff, settings.decimation or automatic


def _differentiate(
    even: UniformRecording, cutoff: float, settings: SignalSettings
) -> tuple[Array, Array, Array]:
    """Return positions, velocities, accelerations (N, n)."""
    position = even.recording.position
    if even.trajectory is not None:
        one = fit_and_differentiate(position[even.measured], even.rate, even.trajectory, cutoff)
        q, dq, ddq = map(extend_periodically, one)
        return q, dq, ddq
    q = lowpass(position, cutoff, even.rate, settings.order)
    dq = central_differences(q, even.rate)
    return q, dq, central_differences(dq, even.rate)


def _usable_rows(
    even: UniformRecording,
    robot: Robot,
    dq: Array,
    cutoff: float,
    decimation: int,
    settings: SignalSettings,
) -> npt.NDArray[np.bool_]:
    """Return the rows (N, n) to use: measured, moving, away from ends and clipping."""
    edge = int(np.ceil(EDGE_PERIODS * even.rate / cutoff - ROUNDING))
    measured = _erode(even.measured, edge)
    guard = _guard_samples(settings, decimation)
    if settings.rows == 'all':
        valid = _all_rows(even, robot, dq, cutoff, guard, settings)
    else:
        valid = _moving_rows(robot, dq, settings.standstill) & measured[:, None] & ~even.clipped
        valid = _erode(valid, guard)
        valid[:edge] = valid[len(valid) - edge :] = False
    if not valid.any():
        where = even.recording.source or 'the recording'
        if measured.mean() < MIN_MEASURED_SHARE:
            raise StandstillError(
                f'messages of {where} are missing: only {100 * measured.mean():.0f} % of it lie '
                f'{edge / even.rate:.2g} s or more away from a gap; record without losses, or '
                'raise signals.max_gap'
            )
        raise StandstillError(
            f'no joint of {where} moves faster than '
            f'{settings.standstill:g} rad/s: record a motion, or lower signals.standstill'
        )
    return valid


def _all_rows(
    even: UniformRecording,
    robot: Robot,
    dq: Array,
    cutoff: float,
    guard: int,
    settings: SignalSettings,
) -> npt.NDArray[np.bool_]:
    """Return every measured row (N, n), but for standstill where friction has a step there."""
    moving = _moving_rows(robot, dq, settings.standstill)
    steps = np.array([any(term.has_step for term in terms) for terms in robot.friction])
    # Noise of a joint that never moves has a sign too.
    joints = moving.mean(axis=0) > MIN_MOVING_SHARE
    return measured_rows(even, cutoff) & joints & (_erode(moving, guard) | ~steps)


def measured_rows(even: UniformRecording, cutoff: float) -> npt.NDArray[np.bool_]:
    """
    Return the rows (N, n) that hold what was measured, after a filter of that cut-off [Hz].

    What was made up to bridge a gap, what was clipped, and the ends of the recording reach a
    period of the cut-off far.
    """
    edge = int(even.rate / cutoff)
    good = even.measured[:, None] & ~even.clipped
    good[:1] = good[-1:] = False
    return _erode(good, edge)


def _trajectory_of_joints(recording: Recording) -> Trajectory | None:
    """Return the trajectory of the recording's joints, or None where it does not move them all."""
    trajectory = repeated_trajectory(recording)
    if trajectory is None or not set(recording.joints) <= set(trajectory.joints):
        return None
    order = [trajectory.joints.index(joint) for joint in recording.joints]
    return replace(
        trajectory,
        joints=recording.joints,
        start=trajectory.start[order],
        coefficients=trajectory.coefficients[:, order],
    )


def _moving_rows(robot: Robot, dq: Array, standstill: float) -> npt.NDArray[np.bool_]:
    """Return where a joint moves, and every motor that it shares with another one, (N, n)."""
    moving = np.abs(dq) >= standstill
    for coupling in robot.couplings:
        turning = np.abs(dq @ coupling.ratios) >= standstill
        moving[:, coupling.ratios != 0.0] &= turning[:, None]
    return moving


def _guard_samples(settings: SignalSettings, decimation: int) -> int:
    """Count the samples to leave out beside others; only decimation mixes more than one."""
    return int(np.ceil(settings.guard * decimation)) if decimation > 1 else 1


def _erode(valid: npt.NDArray[np.bool_], reach: int) -> npt.NDArray[np.bool_]:
    """Leave out the rows within `reach` of others: the decimation's filter mixes them."""
    return np.asarray(minimum_filter1d(valid, 2 * reach + 1, axis=0, mode='nearest'))


def _check_efforts(recording: Recording, robot: Robot) -> None:
    """Raise an error where an effort never changes although its joint moves."""
    dead = np.ptp(recording.effort, axis=0) == 0.0
    where = recording.source or 'the recording'
    if dead.all():
        raise RecordingError(
            f'{where} has no effort that changes: give the joint_state_broadcaster the effort '
            'interfaces'
        )
    for j in np.flatnonzero(dead):
        unactuated = isinstance(robot, ElasticRobot) and robot.unactuated[j]
        if not unactuated and np.ptp(recording.position[:, j]) > MIN_TRAVEL:
            raise RecordingError(
                f'the effort of {robot.joints[j]} never changes while it moves, its channel is '
                'dead: repair it and record again, or record with this joint at rest and name it '
                'in robot.locked'
            )


def _clipping_notes(robot: Robot, cut: npt.NDArray[np.bool_]) -> list[str]:
    return [
        f'the effort of {joint} is clipped in {100 * share:.1f} % of the samples: left out, run a '
        'slower trajectory'
        for joint, share in zip(robot.joints, cut.mean(axis=0), strict=True)
        if share >= MIN_CLIPPED_SHARE
    ]


def _quantization_notes(robot: Robot, effort: Array) -> list[str]:
    return [
        f'the effort of {joint} comes in steps of {step:.3g}: rounding is no noise, errors may be '
        'larger than σ says'
        for joint, step in zip(robot.joints, quantization_steps(effort), strict=True)
        if step > 0.0
    ]
