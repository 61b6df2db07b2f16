"""What an identification would say of joint states, without knowing the robot."""

from collections.abc import Sequence

import numpy as np

from ...core.signals.faults import clipped
from ...core.signals.recording import Recording
from ...core.signals.repair import uniform
from ...core.signals.samples import SignalSettings
from ...exceptions import RobotIdError
from .joint_states import choose, JointStates
from .reading import steady

STILL = 1e-3
# Share of the power that a joint may seem to give off: friction takes, springs and weights return.
GIVEN = 0.1


def measured(tables: Sequence[JointStates]) -> JointStates:
    """Bring all joints that have positions and efforts together, on one clock."""
    fullest = max(tables, key=lambda t: (t.has_effort, len(t.stamp)))
    alive = [
        joint
        for table in tables
        if 4 * len(table.stamp) >= len(fullest.stamp)
        for joint, known in zip(
            table.joints,
            (np.isfinite(table.position) & np.isfinite(table.effort)).any(axis=0),
            strict=True,
        )
        if known
    ]
    try:
        states = choose(tables, tuple(dict.fromkeys(alive))) if alive else fullest
    except RobotIdError:
        states = fullest
    return steady(states)[0]


def check(states: JointStates) -> tuple[list[str], str]:
    """
    Look for what is repaired or wrong.

    Returns
    -------
    Remarks, and why no identification is possible ('' when one is)

    """
    recording = Recording(
        joints=states.joints,
        time=(states.stamp - states.stamp[0]) * 1e-9,
        position=states.position,
        effort=states.effort,
        notes=states.notes,
    )
    try:
        even, _, _, notes = uniform(recording, SignalSettings())
    except RobotIdError as error:
        return list(states.notes), str(error)
    cut = clipped(even.effort).mean(axis=0)
    travel = np.ptp(even.position, axis=0)
    for j, joint in enumerate(even.joints):
        effort = even.effort[:, j]
        if np.ptp(effort) == 0.0:
            if travel[j] > STILL:
                notes.append(f'the effort of {joint} never changes while it moves: dead channel')
        elif travel[j] <= STILL:
            notes.append(f'{joint} did not move: name it in robot.locked, or move it')
        elif cut[j] < 0.01 and gives_power(even.position[:, j], effort):
            notes.append(
                f'the effort of {joint} drives against its motion on the whole: its sign may be '
                'opposite, see robot.drive_gain'
            )
        if cut[j] > 0.0:
            notes.append(
                f'the effort of {joint} is clipped in {100 * cut[j]:.1f} % of the samples'
            )
    return notes, ''


def gives_power(position: np.ndarray, effort: np.ndarray) -> bool:
    """Tell whether the work of an effort along a motion is clearly negative."""
    power = (effort[1:] + effort[:-1]) * np.diff(position)
    return bool(power.sum() < -GIVEN * np.abs(power).sum())
