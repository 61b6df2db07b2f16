"""Checks of joint states that need no model of the robot."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ....core.signals.derived_efforts import refuse_derived_efforts
from ....core.signals.invalid_samples import clipped_samples
from ....core.signals.recording import Recording
from ....core.signals.resampling import resample_uniformly
from ....core.signals.samples import SignalSettings
from ....exceptions import RecordingError, RobotIdError
from ...formats.joint_table import JointTable
from .clock_alignment import correct_clock
from .publishers import select_joints

Mask = npt.NDArray[np.bool_]
MIN_TRAVEL = 1e-3  # a joint that travels less is at rest [rad or m]
# Work against the motion, as a share of all work that is exchanged, beyond which the sign of an
# effort looks wrong: friction takes work, weights and springs give back what they took. A smaller
# share would also suspect efforts of joints that weights move.
NEGATIVE_WORK = 0.5
MAX_CLIPPED = 0.01  # share of clipped samples beyond which work says nothing about the sign
MIN_MESSAGES = 0.25  # share of the fullest publisher's messages below which another is left out


def to_recording(states: JointTable, origin: int, source: str) -> Recording:
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


def usable_joints(
    joints: Sequence[str], data_available: Mapping[str, Mask], source: str, optional: bool
) -> list[str]:
    """
    Return the joints that an identification can use.

    Parameters
    ----------
    joints : names
    data_available : whether there is any 'effort' and any 'position' of each
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
        if not data_available[name].any():
            raise RecordingError(f"'{source}' has no {name} of any joint: {remedy}")
        lacking = [
            joint for joint, has in zip(joints, data_available[name], strict=True) if not has
        ]
        if lacking and not optional:
            raise RecordingError(
                f"'{source}' has no {name} of {', '.join(lacking)}: {remedy}, or leave them out "
                'of robot.joints'
            )
        kept = [joint for joint in kept if joint not in lacking]
    if not kept:
        raise RecordingError(f"'{source}' has no joint with both position and effort: {remedy}")
    return kept


def data_available(states: JointTable) -> dict[str, Mask]:
    """Return whether there is any effort and any position of each joint."""
    return {
        name: np.isfinite(getattr(states, name)).any(axis=0) for name in ('effort', 'position')
    }


def ranges_of_others(
    joints: Sequence[str], ends: np.ndarray, kept: Collection[str]
) -> dict[str, tuple[float, float]]:
    """Return lowest and highest position, of `ends` (2, n), of joints but those that are kept."""
    pairs = zip(joints, ends.T.tolist(), strict=True)
    return {k: (low, high) for k, (low, high) in pairs if k not in kept and low <= high}


def join_measured_joints(tables: Sequence[JointTable]) -> JointTable:
    """Bring all joints that have positions and efforts together, on one clock."""
    fullest = max(tables, key=lambda t: (t.has_effort, len(t.stamp)))
    whole = [
        joint
        for table in tables
        if len(table.stamp) >= MIN_MESSAGES * len(fullest.stamp)
        for joint, both in zip(
            table.joints,
            (np.isfinite(table.position) & np.isfinite(table.effort)).any(axis=0),
            strict=True,
        )
        if both
    ]
    try:
        states = select_joints(tables, tuple(dict.fromkeys(whole))) if whole else fullest
    except RobotIdError:
        states = fullest
    return correct_clock(states)[0]


def check_joint_states(states: JointTable) -> tuple[list[str], str]:
    """
    Check for what is repaired or wrong.

    Returns
    -------
    Notes, and why no identification is possible ('' when one is)

    """
    recording = to_recording(states, states.stamp[0], '')
    try:
        resampled, rate, _, notes = resample_uniformly(recording, SignalSettings())
        refuse_derived_efforts(resampled.joints, resampled.position, resampled.effort, rate=rate)
    except RobotIdError as error:
        return list(states.notes), str(error)
    saturated = clipped_samples(resampled.effort).mean(axis=0)
    travel = np.ptp(resampled.position, axis=0)
    for j, joint in enumerate(resampled.joints):
        effort = resampled.effort[:, j]
        if np.ptp(effort) == 0.0:
            if travel[j] > MIN_TRAVEL:
                notes.append(
                    f'the effort of {joint} never changes while it moves: check its sensor'
                )
        elif travel[j] <= MIN_TRAVEL:
            notes.append(f'{joint} did not move: name it in robot.locked, or move it')
        elif saturated[j] < MAX_CLIPPED and does_negative_work(resampled.position[:, j], effort):
            notes.append(
                f'the effort of {joint} drives against its motion on the whole, as one of the '
                'opposite sign does; identify tries it'
            )
        if saturated[j] > 0.0:
            notes.append(
                f'the effort of {joint} is clipped in {100 * saturated[j]:.1f} % of the samples'
            )
    return notes, ''


def does_negative_work(position: np.ndarray, effort: np.ndarray) -> bool:
    """Return whether the work of an effort along a motion is clearly negative."""
    power = (effort[1:] + effort[:-1]) * np.diff(position)
    return bool(power.sum() < -NEGATIVE_WORK * np.abs(power).sum())
