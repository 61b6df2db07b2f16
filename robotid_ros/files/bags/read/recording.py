"""From a bag to a `Recording`, or to a `ChunkedRecording` where it is too long for memory."""

from collections.abc import Iterator, Sequence
import dataclasses
from pathlib import Path

from ....core.signals.recording import MAX_SAMPLES, Recording
from . import session_context
from .chunked_recording import ChunkedRecording, ProgressCallback
from .clock_alignment import Clock, correct_clock, correct_clock_chunks
from .joint_state_checks import data_available, to_recording, usable_joints
from .joint_states import find_topic, JointStates, read_joint_states, select_joints
from .storage import Bag, open_bag


def open_recording(
    path: str | Path,
    joints: Sequence[str] | None = None,
    *,
    topic: str = '',
    progress: ProgressCallback | None = None,
    max_samples: int = MAX_SAMPLES,
) -> Recording | ChunkedRecording:
    """
    Read one recording, or look through it where it has more than `max_samples` joint states.

    Parameters
    ----------
    path, joints, topic : as in `read_recording`
    watch : told the share that is read, of a long recording
    longest : samples that are held in memory

    Raises
    ------
    RecordingError, UnknownNameError : as in `read_recording`

    """
    with open_bag(path) as bag:
        topic = topic or find_topic(bag)
        count = sum(c.msgcount for c in bag.connections if c.topic == topic)
    if count <= max_samples:
        return read_recording(path, joints, topic=topic)
    return ChunkedRecording.open(path, joints, topic, progress or (lambda _: None), max_samples)


def read_recording(
    path: str | Path, joints: Sequence[str] | None = None, *, topic: str = ''
) -> Recording:
    """
    Read one recording; its time counts from the first joint state.

    Parameters
    ----------
    path : rosbag2 folder, .mcap or .db3 file, also one that was cut short
    joints : names to keep, in this order; None: all that one publisher sends
    topic : of the joint states, '' to find it

    Raises
    ------
    RecordingError : missing, empty, damaged, without joint states or without effort
    UnknownNameError : a joint that the recording lacks

    """
    with open_bag(path) as bag:
        tables = [
            select_joints(found, joints)
            for found in read_joint_states(bag, topic or find_topic(bag))
        ]
        states, jumped = correct_clock(_with_usable_joints(tables[0], path, joints is None))
        recording = to_recording(states, states.stamp[0], str(path))
        clock = Clock(states.received, states.stamp, jumped)
        recording = session_context.add_context(bag, recording, clock, float(recording.time[-1]))
        # The stamps of the reference jump as well, and nothing says where.
        reference = None if jumped else session_context.reference(bag, recording)
        return dataclasses.replace(recording, reference=reference)


def iter_chunks(
    path: str | Path,
    joints: Sequence[str] | None = None,
    *,
    seconds: float = 60.0,
    topic: str = '',
) -> Iterator[Recording]:
    """
    Read a long recording in pieces of about `seconds`, in bounded memory.

    The pieces share one clock and carry joint states only.
    """
    origin = None
    with open_bag(path) as bag:
        for states, _ in correct_clock_chunks(_tables(bag, path, joints, seconds, topic)):
            origin = states.stamp[0] if origin is None else origin
            yield to_recording(states, origin, str(path))


def _tables(
    bag: Bag, path: str | Path, joints: Sequence[str] | None, seconds: float, topic: str
) -> Iterator[JointStates]:
    optional = joints is None
    for found in read_joint_states(bag, topic or find_topic(bag), seconds):
        states = _with_usable_joints(select_joints(found, joints), path, optional)
        joints, optional = states.joints, False
        yield states


def _with_usable_joints(states: JointStates, path: str | Path, optional: bool) -> JointStates:
    """Refuse what no identification can use; of all joints, keep those that it can."""
    return states.columns(
        usable_joints(states.joints, data_available(states), str(path), optional)
    )
