"""Open recordings of every kind: their topics and messages, without what is damaged."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from ....exceptions import RecordingError
from ...bounded import unpack, unpack_limit
from ...formats.joint_table import JointTable
from ...formats.read_options import DEFAULTS, ReadOptions
from ...remote.remote_file import is_url, RemoteFile
from ..repair.mcap_reader import McapReader
from ..repair.mcap_records import Messages
from ..schema.message_definitions import JOINT_STATE, typestore_of
from ..schema.session_header import JOINT_STATES_TOPIC
from .bag_files import find_files, missing_notes, reader_of, recording_errors, remote_mcap, ZSTD

# Messages of files that are not MCAP that are read at once: some megabytes.
BLOCK = 8192
# Of one message that was compressed by itself [bytes]: those that are read have some kilobytes.
MAX_MESSAGE = 16 << 20


class Bag:
    """
    An open recording; what is damaged in it is left out, counted and told.

    Parameters
    ----------
    path : where it is
    readers : of its files
    notes : what was unusual about opening it, in words
    options : how to read it
    size : of its files [bytes]

    Attributes
    ----------
    connections : topics with type, definition and count, as rosbags describes them

    """

    def __init__(
        self,
        path: Path | RemoteFile,
        readers: list[Any],
        notes: Sequence[str],
        options: ReadOptions,
        size: int,
    ):
        self.path, self.options = path, options
        self._readers, self._notes, self.size = readers, notes, size
        self.connections = [c for reader in readers for c in _connections(reader)]
        self.typestore = typestore_of(self.connections)
        self._left_out: dict[tuple[str, str], int] = {}
        self._added: dict[str, None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What was unusual, as far as it was read, in words."""
        found = [*self._notes, *self._added]
        for reader in self._readers:
            found += reader.notes
        found += [
            f'{count} messages of {topic} were left out: {reason}'
            for (topic, reason), count in self._left_out.items()
        ]
        return tuple(dict.fromkeys(found))

    def add_note(self, note: str) -> None:
        """Note what was unusual while it was read."""
        self._added[note] = None

    def add_left_out(self, topic: str, counts: Mapping[str, int]) -> None:
        """Note messages of a topic that were left out, by reason; it may be read again."""
        for reason, count in counts.items():
            key = topic, reason
            self._left_out[key] = max(count, self._left_out.get(key, 0))

    @property
    def has_tables(self) -> bool:
        """Whether options for tables count."""
        return any(hasattr(reader, 'table') for reader in self._readers)

    def table(self, topic: str) -> JointTable | None:
        """Joint states of a topic that are a table already, None where they are messages."""
        own = {r.topic: r.table for r in self._readers if hasattr(r, 'table')}
        return own.get(topic)

    @property
    def time_range(self) -> tuple[int, int] | None:
        """Reception of the first and the last message [ns], None where only reading tells."""
        known = [getattr(reader, 'time_range', None) for reader in self._readers]
        ranges = [found for found in known if found is not None]
        if len(ranges) < len(known):
            return None
        return min(first for first, _ in ranges), max(last for _, last in ranges)

    def topics(self, message_type: str) -> dict[str, int]:
        """Topics of one type and how many messages each has."""
        counts: dict[str, int] = {}
        for connection in self.connections:
            if connection.msgtype == message_type:
                counts[connection.topic] = counts.get(connection.topic, 0) + connection.msgcount
        return counts

    def count(self, topic: str) -> int:
        """Messages of one topic."""
        return sum(c.msgcount for c in self.connections if c.topic == topic)

    def messages(self, topic: str) -> Iterator[tuple[int, bytes]]:
        """Yield time of reception [ns] and serialized message of one topic; see `blocks`."""
        for block in self.blocks(topic):
            yield from zip(block.received.tolist(), block.payloads(), strict=True)

    def blocks(
        self, topic: str, start: int | None = None, stop: int | None = None
    ) -> Iterator[Messages]:
        """
        Yield the messages of one topic, thousands at once.

        Parameters
        ----------
        topic : whose messages
        start, stop : only what was received at `start` or later, and before `stop` [ns]

        Raises
        ------
        RecordingError : the file is damaged

        """
        budget, damaged = [unpack_limit(self.size)], itertools.count(1)

        def sound(messages: Iterable[tuple[Any, Any]]) -> Iterator[tuple[int, bytes]]:
            for time, data in messages:
                content = _content(time, data, budget)
                if content is None:
                    self.add_left_out(topic, {'damaged records': next(damaged)})
                else:
                    yield time, content

        for reader in self._readers:
            chosen = [c for c in _connections(reader) if c.topic == topic]
            with recording_errors(self.path):
                if isinstance(reader, McapReader):
                    for block in reader.blocks({c.id for c in chosen}, start, stop):
                        if _is_plain(block):
                            yield block
                            continue
                        each = zip(block.received.tolist(), block.payloads(), strict=True)
                        yield from _in_blocks(sound(each))
                elif chosen:
                    found = reader.messages(chosen, start, stop)
                    yield from _in_blocks(sound(x[1:] for x in found))

    def decoded(self, topic: str) -> Iterator[tuple[int, Any]]:
        """Yield time of reception [ns] and message of one topic."""
        kinds = {c.topic: c.msgtype for c in self.connections}
        damaged = 0
        for time, data in self.messages(topic):
            try:
                message = self.typestore.deserialize_cdr(data, kinds[topic])
            except Exception:  # rosbags raises whatever the bytes lead to
                damaged += 1
                self.add_left_out(topic, {'damaged': damaged})
                continue
            yield time, message


def _in_blocks(messages: Iterator[tuple[int, bytes]]) -> Iterator[Messages]:
    while part := list(itertools.islice(messages, BLOCK)):
        received, payloads = zip(*part, strict=True)
        yield Messages.of(received, payloads)


def _is_plain(block: Messages) -> bool:
    """Tell whether no message is compressed by itself, or of an impossible time."""
    if (block.received >= 2**63).any():
        return False
    data, starts = np.frombuffer(block.data, np.uint8), block.starts[block.sizes >= len(ZSTD)]
    return not all((data[starts + k] == ZSTD[k]).any() for k in range(len(ZSTD)))


def _connections(reader: Any) -> list[Any]:
    """Return the topics of a file that have a name and a type."""
    return [
        c for c in reader.connections if isinstance(c.topic, str) and isinstance(c.msgtype, str)
    ]


def _content(time: Any, data: Any, budget: list[int]) -> bytes | None:
    """
    Return a message as it was published, None of a damaged one.

    Parameters
    ----------
    time : of reception [ns]
    data : as recorded, perhaps compressed, which nothing but metadata.yaml announces
    budget : how many bytes all messages together may still take unpacked, updated

    """
    if type(time) is not int or not 0 <= time < 2**63:
        return None
    if not isinstance(data, bytes | bytearray | memoryview):
        return None
    content = bytes(data)
    if not content.startswith(ZSTD):
        return content
    try:
        content = unpack(content, 'zstd', min(MAX_MESSAGE, budget[0]))
    except ValueError:
        return None
    budget[0] -= len(content)
    return content


@contextlib.contextmanager
def open_bag(path: str | Path | RemoteFile, options: ReadOptions = DEFAULTS) -> Iterator[Bag]:
    """
    Open a recording for reading: a bag of ROS 2 or ROS 1, or a table; a URL: of an MCAP file.

    Raises
    ------
    RecordingError : it is missing, empty, damaged or of an unknown kind
    RobotIdError : a table lacks something, or does not fit the options

    """
    notes: list[str] = []
    parts: Sequence[Path | RemoteFile]
    metadata: Mapping[str, Any] = {}
    if is_url(str(path)):
        path = remote_mcap(str(path))
        parts = [path]
    else:
        path = Path(str(path))
        parts, metadata = find_files(path, notes)
    with contextlib.ExitStack() as stack:
        readers = [reader_of(part, notes, options, stack) for part in parts]
        for reader in readers:
            with recording_errors(path):
                reader.open()
            stack.callback(_close, reader)
        bag = Bag(path, readers, notes, options, sum(part.stat().st_size for part in parts))
        count = sum(connection.msgcount for connection in bag.connections)
        if not count:
            raise RecordingError(f"'{path}' holds no messages: record again")
        notes += missing_notes(metadata, count)
        bag = _with_joint_states(bag, readers, notes)
        if (options.columns or options.units or options.rate) and not bag.has_tables:
            notes.append('columns, units and rate are of tables: passed over for a bag')
        yield bag


def _with_joint_states(bag: Bag, readers: list[Any], notes: list[str]) -> Bag:
    """Return a bag without joint states with those that the fields of another topic make."""
    if any(bag.topics(JOINT_STATE).values()):
        return bag
    from ..foreign.table_reader import TableReader
    from ..messages.topic_tables import joint_states_of_topics

    found = joint_states_of_topics(
        str(bag.path), bag.connections, bag.blocks, bag.typestore, bag.options
    )
    if found is None:
        return bag
    taken = {connection.topic for connection in bag.connections}
    name = f'{found[0]}{JOINT_STATES_TOPIC}' if JOINT_STATES_TOPIC in taken else JOINT_STATES_TOPIC
    reader = TableReader(Path(str(bag.path)), bag.options, found[1], name)
    reader.open()
    return Bag(bag.path, [reader, *readers], notes, bag.options, bag.size)


def _close(reader: Any) -> None:
    with contextlib.suppress(Exception):
        reader.close()
