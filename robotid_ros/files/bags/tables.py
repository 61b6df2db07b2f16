"""A table as a bag of joint states: what reads bags reads, cuts, inspects and converts it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
)

from ...core.signals.clock_correction import MAX_STEP_BACK, MIN_PART_SAMPLES
from ...exceptions import RecordingError, RobotIdError
from ..formats.arrays import EPISODE_GAP
from ..formats.column_selection import describe, find, select
from ..formats.joint_table import JointTable
from ..formats.open_table import open_table
from ..formats.read_options import ReadOptions
from ..formats.records import from_records
from ..formats.table import from_arrays, Table
from ..formats.table_joints import read_joint_table
from .mcap_reader import Messages
from .messages import Decoder, JOINT_STATE, JOINT_STATES_TOPIC, Layout


class TableReader:
    """
    Reader in the manner of those of `rosbags`, whose one topic is a table instead of messages.

    Parameters
    ----------
    path : of the table
    options : how to read it
    made : joint states that are read already
    topic : what to call it

    """

    table: JointTable

    def __init__(
        self,
        path: Path,
        options: ReadOptions,
        made: JointTable | None = None,
        topic: str = JOINT_STATES_TOPIC,
    ):
        self.path, self.options, self.topic, self._made = path, options, topic, made
        self.connections: list[Connection] = []
        self.notes: tuple[str, ...] = ()

    def open(self) -> None:
        """Read the table."""
        table = self._made or open_table(self.path, self.options)
        stamp, self.notes = join_trials(table.stamp), table.notes
        if stamp is not table.stamp:
            self.notes += (
                f"the times of '{self.path}' start again within it: taken for trials one after "
                f'another, {EPISODE_GAP:g} s apart',
            )
        received = np.maximum.accumulate(stamp)
        warm = _steady(received, table.temperature)
        self.table = dataclasses.replace(
            table, stamp=stamp, received=received, temperature=warm, notes=()
        )
        definition = MessageDefinition(MessageDefinitionFormat.NONE, '')
        kind = ConnectionExtRosbag2('cdr', [])
        self.connections = [
            Connection(0, self.topic, JOINT_STATE, definition, '', len(stamp), kind, self)
        ]

    def close(self) -> None:
        """Nothing is held open."""


def once_a_second(passed: np.ndarray) -> np.ndarray:
    """Return the first row of each second of times [ns]: temperatures change within minutes."""
    return np.unique(passed // 10**9, return_index=True)[1]


def _steady(received: np.ndarray, temperature: np.ndarray | None) -> np.ndarray | None:
    """Return temperatures (N, n) by one value a second, None where there are none."""
    if temperature is None or np.isnan(temperature).all():
        return None
    result, passed = np.full_like(temperature, np.nan), received - received[0]
    for own, column in zip(result.T, temperature.T, strict=True):
        known = np.flatnonzero(np.isfinite(column))
        if known.size:
            rows = known[once_a_second(passed[known])]
            own[:] = np.interp(passed, passed[rows], column[rows])
    return result


def join_trials(stamp: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """
    Let the times of trials that are appended to one another go on after a pause.

    No times of reception say how long passed between them. Steps ahead nearby that make up for a
    step back are those of stamps that are far off: they stay.

    Parameters
    ----------
    stamp : (N,) [ns], which start again with each trial

    Returns
    -------
    (N,) [ns]; the same array where none starts again

    """
    step = np.diff(stamp)
    back = step < -MAX_STEP_BACK * 1e9
    if not back.any():
        return stamp
    from scipy.ndimage import maximum_filter1d

    restart = back & (2 * maximum_filter1d(step, 2 * MIN_PART_SAMPLES + 1) < -step)
    if not restart.any():
        return stamp
    shift = np.where(restart, round(EPISODE_GAP * 1e9) - step, 0)
    return stamp + np.concatenate([[0], np.cumsum(shift)])


# Messages of a topic that are looked at, and fewer than which are no recording of a motion.
FIRST, FEWEST = 50, 10
_TIME = 'time of reception'
# Returns the messages of a topic.
Blocks = Callable[[str], Iterable[Messages]]


def joint_states_of_topics(
    source: str, connections: Sequence[Any], blocks: Blocks, typestore: Any, options: ReadOptions
) -> tuple[str, JointTable] | None:
    """
    Return the topic whose fields are positions and efforts of joints, and its joint states.

    Of several it is the one with most messages. None where there is none.

    Parameters
    ----------
    source : of the bag, for messages
    connections : topics as rosbags describes them
    blocks : returns the messages of a topic
    typestore : that knows their types
    options : joints and columns that the user names

    Raises
    ------
    RobotIdError : the fields do not fit the robot or the options

    """
    for connection in sorted(connections, key=lambda c: -c.msgcount):
        if connection.msgcount < FEWEST:
            continue
        first = _first(blocks(connection.topic))
        # Whatever messages of unknown types lead to: they are not joint states then.
        with contextlib.suppress(Exception):
            if not _is_of_joints(_table(source, connection, first, typestore, options), options):
                continue
            table = _table(source, connection, blocks(connection.topic), typestore, options)
            note = f'there are no sensor_msgs/JointState: those of {connection.topic} are taken'
            table = dataclasses.replace(table, notes=(*table.notes, note))
            break
    else:
        return None
    return connection.topic, read_joint_table(table, options)


def _first(blocks: Iterable[Messages]) -> list[Messages]:
    """Return some of the first messages; a flush of the recorder may end a block after any one."""
    found: list[Messages] = []
    for block in blocks:
        found.append(block.rows(slice(0, FIRST)))
        if sum(part.total for part in found) >= FIRST:
            break
    return found


def _is_of_joints(table: Table, options: ReadOptions) -> bool:
    """Whether positions and efforts are among the columns, by their names or the user's."""
    if not table.has_header:
        return True
    found = set(find(table, describe(options.urdf).names or options.joints))
    for quantity, pattern in options.columns:
        try:
            select(table, quantity, pattern)
        except RecordingError:
            return False
        found.add(quantity)
    return {'position', 'effort'} <= found


def _table(
    source: str, connection: Any, blocks: Iterable[Messages], typestore: Any, options: ReadOptions
) -> Table:
    """Make a table of the messages of a topic, whose columns are called after their fields."""
    encoding = connection.ext.serialization_format
    name = f'{connection.topic} of {source}'
    if encoding in ('json', 'protobuf'):
        parse: Callable[[bytes], Any] = json.loads
        if encoding == 'protobuf':
            schema = connection.owner.channels[connection.id][1]
            parse = parser_of(schema.data, connection.msgtype)
        return from_records(name, _records(blocks, parse))
    arrays, words = _of_layouts(connection.msgtype, blocks, typestore)
    named = {key: np.array(values) for key, values in words.items()}
    table = from_arrays(name, arrays | named, {_TIME: 'ns'})
    return _without_names(table, arrays, options) or table


def _records(blocks: Iterable[Messages], parse: Callable[[bytes], Any]) -> Iterator[Any]:
    for block in blocks:
        for received, payload in zip(block.received.tolist(), block.payloads(), strict=True):
            yield {**parse(payload), f'{_TIME} [ns]': received}


def _of_layouts(
    message_type: str, blocks: Iterable[Messages], typestore: Any
) -> tuple[dict[str, np.ndarray], dict[str, tuple[str, ...]]]:
    """Return numbers (N,) or (N, n) and words of the messages of the layout that most have."""
    decoder = Decoder(typestore, message_type)
    parts: dict[int, list[tuple[np.ndarray, dict[str, np.ndarray]]]] = {}
    for block in blocks:
        received = block.received.astype(np.int64)
        for number, payloads, rows in decoder.groups(block):
            columns = _columns(decoder.layouts[number], payloads)
            parts.setdefault(number, []).append((received[rows], columns))
    best = max(parts, key=lambda number: sum(len(time) for time, _ in parts[number]))
    joined = {_TIME: np.concatenate([time for time, _ in parts[best]])}
    for name in parts[best][0][1]:
        values = np.concatenate([columns[name] for _, columns in parts[best]])
        if not (name.startswith('header.stamp') and not values.any()):
            joined[name] = values[:, 0] if values.shape[1] == 1 else values
    return joined, decoder.layouts[best].texts


def _columns(layout: Layout, payloads: np.ndarray) -> dict[str, np.ndarray]:
    """Return the numbers of messages, (M, n) each, by the names of joints and interfaces."""
    joints = next((t for path, t in layout.texts.items() if path.endswith('joint_names')), ())
    found = {}
    for path in layout.numbers:
        values = layout.column(payloads, path)
        parent = path.rpartition('.')[0]
        own = next((t for p, t in layout.texts.items() if p.rpartition('.')[0] == parent), ())
        place, _, number = parent.rpartition('.')
        if number.isdecimal() and int(number) < len(joints) and len(own) == values.shape[1]:
            for k, interface in enumerate(own):
                found[f'{place}.{joints[int(number)]}.{interface}'] = values[:, k : k + 1]
        else:
            found[path] = values
    return found


def _without_names(
    table: Table, arrays: dict[str, np.ndarray], options: ReadOptions
) -> Table | None:
    """Return a table without header of the one array of a message, two or three of each joint."""
    wide = [name for name, values in arrays.items() if values.ndim == 2]
    try:
        count = len(describe(options.urdf).names)
    except RobotIdError:
        return None
    if options.columns or len(wide) != 1 or not count:
        return None
    if arrays[wide[0]].shape[1] not in (2 * count, 3 * count) or _is_of_joints(table, options):
        return None
    columns = {'column1': arrays[_TIME]}
    columns |= {f'column{k + 2}': column for k, column in enumerate(arrays[wide[0]].T)}
    made = from_arrays(table.source, columns, {'column1': 'ns'})
    return dataclasses.replace(made, has_header=False)


def parser_of(definition: bytes, message_type: str) -> Callable[[bytes], dict[str, Any]]:
    """
    Return what turns messages of a type into {field: number, text, list or further fields}.

    Parameters
    ----------
    definition : a FileDescriptorSet
    message_type : full name

    Raises
    ------
    DecodeError, TypeError, LookupError : the definition is damaged, or lacks the type

    """
    from google.protobuf import descriptor_pb2, message_factory

    files = descriptor_pb2.FileDescriptorSet.FromString(definition).file
    message = message_factory.GetMessages(files)[message_type]
    return lambda data: _fields(message.FromString(data))


def _fields(message: Any) -> dict[str, Any]:
    """Return the fields of a message; numbers that are 0, which are not sent, as well."""
    unset = {
        field.name: field.default_value
        for field in message.DESCRIPTOR.fields
        if field.message_type is None and field.default_value not in ('', b'')
    }
    return unset | {field.name: _value(value) for field, value in message.ListFields()}


def _value(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors='replace')
    if isinstance(value, int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _value(item) for key, item in value.items()}
    return _fields(value) if hasattr(value, 'DESCRIPTOR') else [_value(item) for item in value]
