"""A recording on a uniform time grid, checked, and averaged over periods where that is set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ...exceptions import RecordingError, StandstillError
from ..arrays import Array
from ..model.robot import ElasticRobot, Robot
from .derived_efforts import refuse_derived_efforts
from .invalid_samples import clipped_samples, quantization_steps
from .periodic import average_periods, find_period, noise_between_periods, repeated_trajectory
from .recording import Recording
from .resampling import resample_uniformly
from .samples import SignalSettings

if TYPE_CHECKING:
    from ..excitation.trajectory import Trajectory

# A joint that travels less is at rest [rad or m].
MIN_TRAVEL = 1e-3
# Share of clipped samples from which a note is worth reading.
MIN_CLIPPED_SHARE = 0.001


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


def resample(recording: Recording, robot: Robot, settings: SignalSettings) -> UniformRecording:
    """Put a recording on a uniform time grid, averaged over periods where that is set."""
    if isinstance(robot, ElasticRobot):
        recording = replace(recording, effort=robot.motor_efforts(recording.effort))
    even, rate, measured, notes = resample_uniformly(recording, settings)
    _check_efforts(even, robot)
    efforts_of_rows = (recording.position, recording.effort, recording.velocity)
    refuse_derived_efforts(recording.joints, *efforts_of_rows, where=recording.source)
    refuse_derived_efforts(
        even.joints, even.position, even.effort, rate=rate, where=recording.source
    )
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


def _check_efforts(recording: Recording, robot: Robot) -> None:
    """Raise an error where an effort never changes although its joint moves."""
    dead = np.ptp(recording.effort, axis=0) == 0.0
    still = np.ptp(recording.position, axis=0) <= MIN_TRAVEL
    where = recording.source or 'the recording'
    if dead.all() and still.all():
        raise StandstillError(
            f'neither positions nor efforts of {where} change, as with brakes on: record a motion'
        )
    if dead.all():
        raise RecordingError(
            f'{where} has no effort that changes: give the joint_state_broadcaster the effort '
            'interfaces'
        )
    for j in np.flatnonzero(dead):
        unactuated = isinstance(robot, ElasticRobot) and robot.unactuated[j]
        if not unactuated and not still[j]:
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
