"""An open recording of any kind: its topics and messages, without what is damaged."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from ...core.finding_codes import finding
from ...core.findings import Finding
from ..bounded import damage_errors, unpack, unpack_limit
from ..formats.joint_table import JointTable
from ..formats.read_options import ReadOptions
from .mcap_reader import McapReader, Messages
from .messages import Decoder, JOINT_STATE, JOINT_STATES_TOPIC, Layout, typestore_of

# Messages of files that are not MCAP that are read at once: some megabytes.
BLOCK = 8192
# Of one message that was compressed by itself [bytes]: those that are read have some kilobytes.
MAX_MESSAGE = 16 << 20
ZSTD = b'\x28\xb5\x2f\xfd'
REPAIR = (
    'copy or export it again, or repair it with the tools of its format (sqlite3 .recover, rosbag '
    'reindex)'
)
# Times of reception from which on and before which messages are read [ns].
Window = tuple[int | None, int | None]
UNBOUNDED: Window = (None, None)
# Messages of equal layout: it, (M, length) bytes, times of reception (M,) [ns], places (M,) among
# the topic's messages.
Group = tuple[Layout, np.ndarray, np.ndarray, np.ndarray]


class Bag:
    """
    An open recording; what is damaged in it is left out, counted and noted.

    Parameters
    ----------
    path : where it is
    readers : of its files
    notes : what was unusual about opening it
    options : how to read it
    size : of its files [bytes]
    table : joint states that are a table already, of `JOINT_STATES_TOPIC`; None in a bag

    Attributes
    ----------
    connections : topics with type, definition and count, as rosbags describes them

    """

    def __init__(
        self,
        path: Path,
        readers: list[Any],
        notes: Sequence[Finding],
        options: ReadOptions,
        size: int,
        table: JointTable | None,
    ):
        self.path, self.options = path, options
        self._readers, self.size = readers, size
        self._notes, self._of_table = notes, table.notes if table else ()
        self.table = replace(table, notes=()) if table else None
        self.connections = [c for reader in readers for c in _connections(reader)]
        self._left_out: dict[tuple[str, str], int] = {}
        self._added: dict[Finding, None] = {}

    @cached_property
    def typestore(self) -> Any:
        """Types of the messages, for rosbags."""
        return typestore_of(self.connections)

    @property
    def notes(self) -> tuple[Finding, ...]:
        """What was unusual, as far as it was read."""
        found = [*self._notes, *self._added, *self._of_table]
        found += (note for reader in self._readers for note in reader.notes)
        found += [
            finding('messages_left_out', count=count, topic=topic, reason=reason)
            for (topic, reason), count in self._left_out.items()
        ]
        return tuple(dict.fromkeys(found))

    def add_note(self, note: Finding) -> None:
        """Note what was unusual while it was read."""
        self._added[note] = None

    def add_left_out(self, topic: str, counts: Mapping[str, int]) -> None:
        """Note messages of a topic that were left out, by reason; it may be read again."""
        for reason, count in counts.items():
            key = topic, reason
            self._left_out[key] = max(count, self._left_out.get(key, 0))

    def topics(self, message_type: str | None = None) -> dict[str, int]:
        """Topics, of one type or all, and how many messages each has."""
        counts = dict[str, int]()
        if self.table and message_type in (None, JOINT_STATE):
            counts[JOINT_STATES_TOPIC] = len(self.table.stamp)
        for c in self.connections:
            if message_type in (None, c.msgtype):
                counts[c.topic] = counts.get(c.topic, 0) + c.msgcount
        return counts

    def count(self, topic: str) -> int:
        """Messages of one topic."""
        return self.topics().get(topic, 0)

    def kind(self, topic: str) -> str:
        """Type of the messages of a topic."""
        kinds = (str(c.msgtype) for c in self.connections if c.topic == topic)
        return JOINT_STATE if self.table else next(kinds)

    def messages(self, topic: str) -> Iterator[tuple[int, bytes]]:
        """Yield time of reception [ns] and serialized message of one topic; see `blocks`."""
        for block in self.blocks(topic):
            yield from zip(block.received.tolist(), block.payloads(), strict=True)

    def blocks(
        self,
        topic: str,
        start: int | None = None,
        stop: int | None = None,
        limit: int | None = None,
    ) -> Iterator[Messages]:
        """
        Yield the messages of one topic, thousands at once, only the first up to a `limit`.

        Of those received at `start` or later, and before `stop` [ns]. Raises RecordingError where
        the file is damaged.
        """
        budget, damaged = [unpack_limit(self.size)], itertools.count(1)

        def sound(messages: Iterable[tuple[Any, Any]]) -> Iterator[tuple[int, bytes]]:
            for time, data in messages:
                content = _content(time, data, budget)
                if content is None:
                    self.add_left_out(topic, {'damaged records': next(damaged)})
                else:
                    yield time, content

        def in_blocks(messages: Iterable[tuple[Any, Any]]) -> Iterator[Messages]:
            good = sound(messages)
            while part := list(itertools.islice(good, BLOCK)):
                yield Messages.of(*zip(*part, strict=True))

        def found() -> Iterator[Messages]:
            for reader in self._readers:
                chosen = [c for c in _connections(reader) if c.topic == topic]
                if isinstance(reader, McapReader):
                    for block in reader.blocks({c.id for c in chosen}, start, stop):
                        data = np.frombuffer(block.data, np.uint8)
                        at = block.starts[block.sizes >= len(ZSTD)]
                        packed = all((data[at + k] == ZSTD[k]).any() for k in range(len(ZSTD)))
                        # None is compressed by itself, or of an impossible time.
                        if not packed and (block.received < 2**63).all():
                            yield block
                        else:
                            times, each = block.received.tolist(), block.payloads()
                            yield from in_blocks(zip(times, each, strict=True))
                elif chosen:
                    yield from in_blocks(x[1:] for x in reader.messages(chosen, start, stop))

        with damage_errors(self.path, REPAIR):
            for block in found():
                yield block if limit is None else block.rows(slice(0, limit))
                limit = None if limit is None else limit - block.total
                if limit is not None and limit <= 0:
                    return

    def groups(
        self,
        topic: str,
        window: Window = UNBOUNDED,
        *,
        limit: int | None = None,
        fault_of: Callable[[Layout], str] = lambda _: '',
    ) -> Iterator[Group]:
        """Yield the messages of one topic by their layout; `fault_of` as of a `Decoder`."""
        decoder, count = Decoder(self.typestore, self.kind(topic), fault_of), 0
        for block in self.blocks(topic, *window, limit):
            received = block.received.astype(np.int64)
            for number, payloads, rows in decoder.groups(block):
                yield decoder.layouts[number], payloads, received[rows], rows + count
            count += block.total
            if limit is None:
                self.add_left_out(topic, decoder.left_out)

    def decoded(self, topic: str) -> Iterator[tuple[int, Any]]:
        """Yield time of reception [ns] and message of one topic, by rosbags: for a few."""
        kind, damaged = self.kind(topic), 0
        for time, data in self.messages(topic):
            try:
                message = self.typestore.deserialize_cdr(data, kind)
            except Exception:  # rosbags raises whatever the bytes lead to
                damaged += 1
                self.add_left_out(topic, {'damaged': damaged})
                continue
            yield time, message


def _connections(reader: Any) -> list[Any]:
    """Return the topics of a file that have a name and a type."""
    return [
        c for c in reader.connections if isinstance(c.topic, str) and isinstance(c.msgtype, str)
    ]


def _content(time: Any, data: Any, budget: list[int]) -> bytes | None:
    """
    Return a message as it was published, None of a damaged one.

    Only metadata.yaml, if anything, announces messages that are compressed one by one. `budget` is
    how many bytes all of them may still take unpacked, and is updated.
    """
    readable = isinstance(data, bytes | bytearray | memoryview)
    if type(time) is not int or not 0 <= time < 2**63 or not readable:
        return None
    content = bytes(data)
    if content.startswith(ZSTD):
        try:
            content = unpack(content, 'zstd', min(MAX_MESSAGE, budget[0]))
        except ValueError:
            return None
        budget[0] -= len(content)
    return content
