"""From a bag to a `Recording`, or to a `ChunkedRecording` where it is too long for memory."""

from collections.abc import Sequence
import dataclasses
from pathlib import Path

from ....core.signals.recording import MAX_SAMPLES, range_of_positions, Recording
from ....exceptions import RecordingError
from ...formats.read_options import DEFAULTS, ReadOptions
from . import session_context
from .chunked_recording import ChunkedRecording, ProgressCallback
from .clock_alignment import Clock, correct_clock
from .clock_drift import drift_notes
from .controller_states import add_reference, UNBOUNDED, Window
from .joint_state_checks import data_available, ranges_of_others, to_recording, usable_joints
from .joint_states import read_joint_states
from .joint_topics import read_temperatures
from .publishers import find_topic, select_joints
from .storage import Bag, open_bag


def open_recording(
    path: str | Path,
    joints: Sequence[str] | None = None,
    *,
    options: ReadOptions = DEFAULTS,
    progress: ProgressCallback | None = None,
    max_samples: int = MAX_SAMPLES,
) -> Recording | ChunkedRecording:
    """
    Read one recording, or index it where it has more than `max_samples` joint states.

    Parameters
    ----------
    path, joints, options : as in `read_recording`
    progress : called with the share that is read of a long recording
    max_samples : that are held in memory

    Raises
    ------
    RecordingError, UnknownNameError : as in `read_recording`

    """
    with open_bag(path, options) as bag:
        topic = find_topic(bag, joints)
        if bag.count(topic) <= max_samples:
            return _read(bag, topic, joints)
        return ChunkedRecording.open(bag, topic, joints, progress or (lambda _: None), max_samples)


def read_recording(
    path: str | Path,
    joints: Sequence[str] | None = None,
    *,
    options: ReadOptions = DEFAULTS,
    window: Window = UNBOUNDED,
) -> Recording:
    """
    Read one recording; its time counts from the first joint state.

    Parameters
    ----------
    path : rosbag2 folder, .mcap or .db3 file, also one that was cut short; a ROS 1 bag or a table
    joints : names to keep, in this order; None: all that one publisher sends
    options : what the recording does not say of itself
    window : only joint states received at the first of these times or later, and before the
        second [ns]

    Raises
    ------
    RecordingError : missing, empty, damaged, without joint states or without effort
    UnknownNameError : a joint that the recording lacks

    """
    with open_bag(path, options) as bag:
        return _read(bag, find_topic(bag, joints), joints, window)


def pieces_of(
    path: str | Path,
    joints: Sequence[str] | None,
    seconds: float,
    *,
    options: ReadOptions = DEFAULTS,
) -> list[Window]:
    """
    Cut a recording too long for memory into windows for `read_recording`, without reading it.

    Parameters
    ----------
    path, joints, options : as in `read_recording`
    seconds : length of a piece

    Returns
    -------
    Windows of reception [ns]; one without bounds where it fits into memory or is of a kind whose
    times only reading tells

    Raises
    ------
    RecordingError : as in `read_recording`

    """
    with open_bag(path, options) as bag:
        if bag.count(find_topic(bag, joints)) <= MAX_SAMPLES or bag.time_range is None:
            return [UNBOUNDED]
        first, last = bag.time_range
        edges = list(range(first, last, round(seconds * 1e9)))
        # What would be left at the end belongs to the last piece.
        edges = edges[: max(1, round((last - first) / (seconds * 1e9)))]
        return [*zip(edges, [*edges[1:], None], strict=True)]


def _read(
    bag: Bag, topic: str, joints: Sequence[str] | None, window: Window = UNBOUNDED
) -> Recording:
    tables = next(read_joint_states(bag, topic, start=window[0], stop=window[1]), None)
    if tables is None:
        raise RecordingError(f"'{bag.path}' has no joint states in that part: choose another")
    states = select_joints(tables, joints)
    states = states.columns(
        usable_joints(states.joints, data_available(states), str(bag.path), joints is None)
    )
    states, jumped = correct_clock(states)
    recording = to_recording(states, states.stamp[0], str(bag.path))
    notes = (*recording.notes, *drift_notes(states.stamp, states.received))
    published = tuple(dict.fromkeys(joint for table in tables for joint in table.joints))
    temperature = states.temperature
    if temperature is None:
        temperature = read_temperatures(bag, published, states.received)
        if temperature is not None:
            temperature = temperature[:, [published.index(joint) for joint in recording.joints]]
    recording = dataclasses.replace(recording, notes=notes, temperature=temperature)
    clock = Clock(states.received, states.stamp, jumped)
    recording = session_context.add_context(bag, recording, clock, float(recording.time[-1]))
    # The stamps of the reference jump as well, and nothing says where.
    recording = recording if jumped else add_reference(bag, recording, window)
    notes = (*bag.notes, *recording.notes)
    left_out = dict[str, tuple[float, float]]()
    for table in tables:
        ends = range_of_positions(table.position)
        left_out |= ranges_of_others(table.joints, ends, recording.joints)
    return dataclasses.replace(recording, notes=notes, left_out=left_out)
