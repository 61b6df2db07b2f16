"""What an identification would say of joint states, without knowing the robot."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ....core.signals.invalid_samples import clipped
from ....core.signals.recording import Recording
from ....core.signals.resampling import uniform
from ....core.signals.samples import SignalSettings
from ....exceptions import RecordingError, RobotIdError
from .clock_alignment import steady
from .joint_states import choose, JointStates

Mask = npt.NDArray[np.bool_]
STILL = 1e-3
# Share of the power that a joint may seem to give off: friction takes, springs and weights return.
GIVEN = 0.5


def as_recording(states: JointStates, origin: int, source: str) -> Recording:
    """Return joint states alone as a recording, its time from `origin` [ns]."""
    velocity = states.velocity if np.isfinite(states.velocity).any() else None
    return Recording(
        joints=states.joints,
        time=(states.stamp - origin) * 1e-9,
        position=states.position,
        velocity=velocity,
        effort=states.effort,
        source=source,
        origin=int(origin),
        notes=states.notes,
    )


def alive(
    joints: Sequence[str], known: Mapping[str, Mask], source: str, optional: bool
) -> list[str]:
    """
    Return the joints that an identification can use.

    Parameters
    ----------
    joints : names
    known : whether there is any 'effort' and any 'position' of each
    source : for messages
    optional : leave out the others; they are refused where they were asked for

    Raises
    ------
    RecordingError : some that were asked for, or all, cannot be used

    """
    kept = list(joints)
    for name, remedy in (
        ('effort', "give the robot's state broadcaster the effort interfaces"),
        ('position', 'an identification needs measured positions'),
    ):
        if not known[name].any():
            raise RecordingError(f"'{source}' has no {name} of any joint: {remedy}")
        dead = [joint for joint, has in zip(joints, known[name], strict=True) if not has]
        if dead and not optional:
            raise RecordingError(
                f"'{source}' has no {name} of {', '.join(dead)}: {remedy}, or leave them out of "
                'robot.joints'
            )
        kept = [joint for joint in kept if joint not in dead]
    if not kept:
        raise RecordingError(f"'{source}' has no joint with both position and effort: {remedy}")
    return kept


def known(states: JointStates) -> dict[str, Mask]:
    """Tell whether there is any effort and any position of each joint."""
    return {
        name: np.isfinite(getattr(states, name)).any(axis=0) for name in ('effort', 'position')
    }


def measured(tables: Sequence[JointStates]) -> JointStates:
    """Bring all joints that have positions and efforts together, on one clock."""
    fullest = max(tables, key=lambda t: (t.has_effort, len(t.stamp)))
    whole = [
        joint
        for table in tables
        if 4 * len(table.stamp) >= len(fullest.stamp)
        for joint, both in zip(
            table.joints,
            (np.isfinite(table.position) & np.isfinite(table.effort)).any(axis=0),
            strict=True,
        )
        if both
    ]
    try:
        states = choose(tables, tuple(dict.fromkeys(whole))) if whole else fullest
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
    recording = as_recording(states, states.stamp[0], '')
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
