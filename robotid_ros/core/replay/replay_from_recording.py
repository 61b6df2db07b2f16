"""From a recording to the data of a closed-loop method: control law, reference and torque."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses

import numpy as np

from ...exceptions import ControllerError
from ..arrays import Array
from ..model.base_parameters import BaseParameters
from ..model.robot import Robot
from ..signals.recording import Controller, Recording
from ..signals.samples import Samples
from ..timing.delay_compensation import hold_delay
from .laws.control_laws import make_control_law
from .laws.control_loop import Desired
from .laws.recorded_torque import RecordedTorque
from .reference_and_torque import reference_on_grid, Torque, torque_on_grid
from .replay_problem import Motion, ReplayProblem
from .settings import ReplaySettings

# Of an open-loop simulation: time between two starts [s], long enough for torques to move the
# robot by more than encoders are noisy, short enough for it to stay near; rows kept of each.
START_INTERVAL, ROWS_PER_START = 0.5, 25


def make_replay_problem(
    recording: Recording,
    robot: Robot,
    base: BaseParameters,
    settings: ReplaySettings,
    samples: Samples | None = None,
) -> ReplayProblem:
    """
    Collect what a closed-loop method needs of a recording.

    Parameters
    ----------
    recording : with efforts, the reference (or its trajectory) and the controller
    robot, base : the model and its base parameters
    settings : of the replay; a control law given there replaces the recorded one
    samples : measured motion, for comparison only, or None

    Raises
    ------
    ControllerError, UnknownNameError : the control law is not known
    RecordingError : there is no reference

    """
    recording = recording.select(robot.joints)
    law = make_control_law(_controller(recording, settings), robot.joints, robot.drive_gain)
    start, desired = reference_on_grid(recording, law.rate)
    torque = torque_on_grid(
        recording,
        recording.effort * robot.drive_gain,
        start,
        desired.q.shape[0],
        law.rate,
        find_effort_delay(recording, settings),
    )
    time = start + np.arange(desired.q.shape[0]) / law.rate
    measured = None if samples is None else _motion_at(samples, time)
    return ReplayProblem(robot, base, law, desired, torque, settings, measured, start=start)


def make_open_loop_problem(
    samples: Samples, robot: Robot, base: BaseParameters, settings: ReplaySettings
) -> ReplayProblem:
    """
    Collect what an open-loop simulation needs: the torque drives it, the motion starts it.

    The torque of an update is the mean until the next one. A stretch between two starts in which
    samples were made up is left out.
    """
    rate = 1.0 / float(np.median(np.diff(samples.time)))
    restart = max(2, round(START_INTERVAL * rate))
    tau = samples.tau
    held = 0.5 * (tau + np.vstack([tau[1:], tau[-1:]]))
    measured = np.ones(len(tau), bool) if samples.measured is None else samples.measured
    stretch = np.arange(len(tau)) // restart
    valid = (np.bincount(stretch, ~measured) == 0)[stretch]
    motion = samples.q, samples.dq, samples.ddq
    if not settings.decimation:
        settings = dataclasses.replace(settings, decimation=max(1, restart // ROWS_PER_START))
    return ReplayProblem(
        robot,
        base,
        RecordedTorque(rate, held),
        Desired(*motion, np.zeros_like(tau)),
        Torque(np.arange(len(tau), dtype=float), tau, valid, rate),
        settings,
        motion,
        method='oe',
        restart=restart,
        start=float(samples.time[0]),
    )


def _motion_at(samples: Samples, time: Array) -> Motion:
    """Return q, q̇, q̈ at times (K,), (K, n) each."""
    q, dq, ddq = (
        np.column_stack([np.interp(time, samples.time, column) for column in values.T])
        for values in (samples.q, samples.dq, samples.ddq)
    )
    return q, dq, ddq


def find_effort_delay(recording: Recording, settings: ReplaySettings) -> float:
    """
    Return the updates from a torque to the stamp that reports it.

    The reported efforts are compared with the recorded commands; without commands, hardware under
    ros2_control reports the torque of the update before, other logs that of the update itself.
    """
    if settings.effort_delay >= 0.0:
        return settings.effort_delay
    controller, held = recording.controller, hold_delay(recording)
    if controller is None:
        return 0.0
    if held is not None:
        # A command that is held acts half a period after its update on average.
        return held * controller.rate + 0.5
    return 1.0 if '/' in controller.type else 0.0


def _controller(recording: Recording, settings: ReplaySettings) -> Controller:
    """Return the recorded controller, with the fields that the settings replace."""
    recorded = recording.controller
    if recorded is None:
        if not (settings.law and settings.rate and settings.gains):
            raise ControllerError(
                f'{recording.source or "the recording"} does not hold the controller: record it, '
                "or give law, rate and gains under 'identification.replay'"
            )
        recorded = Controller('', settings.law, settings.rate, recording.joints, ('effort',), {})
    gains: Mapping[str, Mapping[str, float]] = settings.gains or recorded.gains
    return dataclasses.replace(
        recorded,
        type=settings.law or recorded.type,
        rate=settings.rate or recorded.rate,
        gains=gains,
        command_interfaces=('effort',) if settings.law else recorded.command_interfaces,
    )
