"""Message definitions: from the recording itself, from the installed packages, from rosbags."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import contextlib
from dataclasses import dataclass, field
import functools
import os
from pathlib import Path
import re
import struct
import sys
from typing import Any

import numpy as np
from rosbags.interfaces import MessageDefinitionFormat

from ...exceptions import RecordingError
from ..formats.joint_table import FIELDS
from .mcap_reader import Messages

JOINT_STATES_TOPIC = '/joint_states'
JOINT_STATE = 'sensor_msgs/msg/JointState'
STRING = 'std_msgs/msg/String'
STATUS = 'diagnostic_msgs/msg/DiagnosticStatus'
# Of one message type with all that it uses, and of all types of a recording together [characters]:
# those of MoveIt, the longest that are known, have 100 kB, and 1 MB takes a second.
MAX_DEFINITION, MAX_DEFINITIONS = 256 << 10, 1 << 20
CONTROLLER_STATE = 'control_msgs/msg/JointTrajectoryControllerState'


# Names and kinds of the fields of each message type, as rosbags describes them.
Fields = Mapping[str, Sequence[tuple[str, Any]]]
_BASE, _NAME, _ARRAY, _SEQUENCE = 1, 2, 3, 4
_TEXT, _KEY_VALUE = (_BASE, ('string', 0)), 'diagnostic_msgs/msg/KeyValue'
_TIME, _HEADER_TYPE = 'builtin_interfaces/msg/Time', 'std_msgs/msg/Header'
# Those that nearly all recordings need. The types of rosbags, all of ROS, take longer to import
# than most logs to read.
USUAL_FIELDS: Fields = {
    _TIME: [('sec', (_BASE, ('int32', 0))), ('nanosec', (_BASE, ('uint32', 0)))],
    _HEADER_TYPE: [('stamp', (_NAME, _TIME)), ('frame_id', _TEXT)],
    STRING: [('data', _TEXT)],
    JOINT_STATE: [
        ('header', (_NAME, _HEADER_TYPE)),
        ('name', (_SEQUENCE, (_TEXT, 0))),
        *((x, (_SEQUENCE, ((_BASE, ('float64', 0)), 0))) for x in FIELDS),
    ],
    _KEY_VALUE: [('key', _TEXT), ('value', _TEXT)],
    STATUS: [
        ('level', (_BASE, ('byte', 0))),
        *((x, _TEXT) for x in ('name', 'message', 'hardware_id')),
        ('values', (_SEQUENCE, ((_NAME, _KEY_VALUE), 0))),
    ],
}


def typestore_of(connections: Iterable[Any]) -> Any:
    """Typestore for a recording: rosbags' own types, and its own where they are not known."""
    from rosbags.typesys import get_typestore, Stores

    store = get_typestore(Stores.ROS2_JAZZY)
    room = MAX_DEFINITIONS
    for connection in connections:
        size = len(str(connection.msgdef.data))
        if connection.msgtype not in store.fielddefs and size <= min(MAX_DEFINITION, room):
            _register(store, connection.msgtype, connection.msgdef)
            room -= size
    return store


@functools.cache
def definition(message_type: str) -> tuple[str, str]:
    """Definition of a type with all it uses, and its hash (REP-2011); RecordingError: unknown."""
    store = installed_types(message_type)
    text, _ = store.generate_msgdef(message_type, ros_version=2)
    return text, store.hash_rihs01(message_type)


def installed_types(message_type: str) -> Any:
    """Typestore with a type as it is installed and all it uses; RecordingError: unknown."""
    from rosbags.typesys import get_typestore, Stores

    store = get_typestore(Stores.ROS2_JAZZY)
    _add_installed(store, message_type)
    if message_type not in store.fielddefs:
        raise RecordingError(
            f'no definition of {message_type} was found: install the package '
            f'{message_type.split("/")[0]} and source its workspace'
        )
    return store


def _register(store: Any, message_type: str, embedded: Any) -> None:
    from rosbags.typesys import get_types_from_msg

    # The parser takes a time that grows with the square of the number of empty lines.
    text = re.sub(r'\n\s*\n', '\n', str(embedded.data or ''))
    # Rosbags raises whatever the text leads to, which only matters when its topic is asked for.
    with contextlib.suppress(Exception):
        if embedded.format == MessageDefinitionFormat.MSG:
            types = get_types_from_msg(text, message_type)
            store.register({k: v for k, v in types.items() if k not in store.fielddefs})
        else:
            _add_installed(store, message_type)


def _add_installed(store: Any, message_type: str) -> None:
    """Register a type from the `.msg` files of installed packages, with the types it uses."""
    from rosbags.typesys import get_types_from_msg

    package, _, name = message_type.partition('/msg/')
    plain = re.fullmatch(r'\w+', package) and re.fullmatch(r'\w+', name)
    if message_type in store.fielddefs or not plain:
        return
    prefixes = [p for p in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if p]
    files = [Path(p, 'share', package, 'msg', f'{name}.msg') for p in (*prefixes, sys.prefix)]
    path = next((file for file in files if file.is_file()), None)
    if path is None:
        return
    types = get_types_from_msg(path.read_text(), message_type)
    for _, fields in types.values():
        for _, description in fields:
            item: Any = description
            while int(item[0]) in (_ARRAY, _SEQUENCE):
                item = item[1][0]
            if int(item[0]) == _NAME:
                _add_installed(store, str(item[1]))
    store.register({k: v for k, v in types.items() if k not in store.fielddefs})


# Layouts on one topic, of use and of none, each of which takes a walk: further messages are left
# out. Where hardly more messages share a layout than there are, decoding in bulk is in vain, as
# for a frame_id that counts up.
MAX_LAYOUTS = 1000
DAMAGED, FURTHER = 'damaged', f'of more than {MAX_LAYOUTS} different layouts'
_DTYPES = {'bool': 'u1', 'byte': 'u1', 'char': 'u1'}  # all others NumPy knows by name
_HEADER = 4  # encapsulation: alignment counts from its end


@dataclass
class Layout:
    """Where the fields of one message lie, by their paths."""

    sample: bytes  # the message that was walked
    strings: list[slice]  # where strings and lengths lie
    # Offset [bytes], type and count.
    numbers: dict[str, tuple[int, np.dtype[Any], int]] = field(default_factory=dict)
    texts: dict[str, tuple[str, ...]] = field(default_factory=dict)  # equal in all messages
    fault: str = ''  # why its messages are of no use

    def matches(self, payloads: np.ndarray) -> np.ndarray:
        """Return which payloads (M, length) have the same strings and lengths, (M,)."""
        same = np.ones(len(payloads), bool)
        for run in self.strings:  # compared as texts, in an eighth of the time
            own = self.sample[run]
            same &= payloads[:, run].view(f'S{len(own)}')[:, 0] == own
        return same

    def column(self, payloads: np.ndarray, path: str) -> np.ndarray:
        """Numbers of one field, (M, count), of payloads that match."""
        offset, dtype, count = self.numbers.get(path, (0, np.dtype(float), 0))
        block = np.ascontiguousarray(payloads[:, offset : offset + count * dtype.itemsize])
        return block.view(dtype).reshape(len(payloads), count)


# Messages of equal layout: it, (M, length) bytes, times of reception (M,) [ns], places (M,) among
# all messages.
Group = tuple[Layout, np.ndarray, np.ndarray, np.ndarray]


class Decoder:
    """Groups the messages of one topic by layout; those with a fault are left out, counted."""

    def __init__(
        self, fields: Fields, message_type: str, fault_of: Callable[[Layout], str] = lambda _: ''
    ):
        self.fields, self.message_type, self._fault_of = fields, message_type, fault_of
        self.layouts: list[Layout] = []
        self.left_out: Counter[str] = Counter()
        self._total = self._used = 0

    def groups(self, messages: Messages) -> Iterator[Group]:
        """Yield the next messages by their layout."""
        received, before = messages.received.astype(np.int64), self._total
        self._total += messages.total
        found, counts = np.unique(messages.sizes, return_counts=True)
        # Those of most messages first: of few, there may be too many layouts.
        for length in found[np.argsort(-counts, kind='stable')]:
            rows = np.flatnonzero(messages.sizes == length)
            if length <= _HEADER:
                self.left_out[DAMAGED] += len(rows)
                continue
            matrix = messages.matrix(rows)
            known = [layout for layout in self.layouts if len(layout.sample) == length]
            while len(rows):
                if not known and len(self.layouts) == MAX_LAYOUTS:
                    self.left_out[FURTHER] += len(rows)
                    break
                if not known:
                    known.append(self.layout_of(matrix[0].tobytes()))
                    self.layouts += known
                layout = known.pop(0)
                same = layout.matches(matrix)
                count = int(same.sum())
                alike = slice(None) if count == len(rows) else same  # a slice copies nothing
                if count and layout.fault:
                    self.left_out[layout.fault] += count
                elif count:
                    self._used += count
                    yield layout, matrix[alike], received[rows[alike]], rows[alike] + before
                matrix, rows = matrix[~same], rows[~same]
        useful = sum(not layout.fault for layout in self.layouts)
        if len(self.layouts) == MAX_LAYOUTS and self._used < 2 * useful:
            raise RecordingError(
                f'{MAX_LAYOUTS} different layouts of {self.message_type} on one topic: record one '
                'publisher with constant joint names and frame_id'
            )

    def layout_of(self, payload: bytes) -> Layout:
        """Return where the fields of one message lie."""
        try:
            walker = _Walker(self.fields, payload)
            walker.message(self.message_type, '')
        except (struct.error, IndexError, ValueError, KeyError, RecursionError):
            return Layout(payload, [slice(len(payload))], fault=DAMAGED)  # of this message alone
        walker.layout.fault = self._fault_of(walker.layout)
        return walker.layout


class _Walker:
    """Walks one message along its type's fields."""

    def __init__(self, fields: Fields, payload: bytes):
        self.fields, self.payload, self.position = fields, payload, _HEADER
        self.order = '<' if payload[1] & 1 else '>'
        self.layout = Layout(payload, [slice(2)])

    def message(self, message_type: str, prefix: str) -> None:
        for name, description in self.fields[message_type]:
            self.field(description, f'{prefix}{name}')

    def field(self, description: tuple[Any, Any], path: str) -> None:
        kind, detail, count = int(description[0]), description[1], 1
        several = kind in (_ARRAY, _SEQUENCE)
        if several:
            inner, size = detail
            count = size if kind == _ARRAY else self.length()
            kind, detail = int(inner[0]), inner[1]
        if several and kind != _BASE:
            for index in range(count):
                self.field(inner, f'{path}.{index}')
        elif kind == _NAME:
            self.message(detail, f'{path}.')
        elif detail[0] == 'string':
            self.layout.texts[path] = tuple(self.text() for _ in range(count))
        elif count:
            dtype = np.dtype(_DTYPES.get(detail[0], detail[0])).newbyteorder(self.order)
            start = self.advance(dtype.itemsize, dtype.itemsize * count)
            self.layout.numbers[path] = (start, dtype, count)

    def text(self) -> str:
        length = self.length()
        start = self.advance(1, length)
        self.add_string(start)
        return self.payload[start : self.position - 1].decode()

    def length(self) -> int:
        start = self.advance(4, 4)
        self.add_string(start)
        length = int(struct.unpack_from(self.order + 'I', self.payload, start)[0])
        if length > len(self.payload):
            raise IndexError(f'{length} items in {len(self.payload)} bytes')
        return length

    def add_string(self, start: int) -> None:
        runs = self.layout.strings
        first = runs.pop().start if runs[-1].stop == start else start
        runs.append(slice(first, self.position))

    def advance(self, alignment: int, size: int) -> int:
        start = self.position + (_HEADER - self.position) % alignment
        if start + size > len(self.payload):
            raise IndexError(f'it ends at byte {len(self.payload)} of {start + size}')
        self.position = start + size
        return start


def by_place(parts: Iterable[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """Join columns of groups of messages by the first one, the messages' places; the others."""
    order, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    sequence = np.argsort(order, kind='stable')
    return [column[sequence] for column in columns]


def stamps(layout: Layout, payloads: np.ndarray) -> np.ndarray:
    """Return the times of messages, (M,) int64 [ns]."""
    seconds = layout.column(payloads, 'header.stamp.sec')[:, 0].astype(np.int64)
    return seconds * 1_000_000_000 + layout.column(payloads, 'header.stamp.nanosec')[:, 0]
