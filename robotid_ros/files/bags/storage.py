"""Recordings of any kind: opened, with their topics and messages, without what is damaged."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
import contextlib
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePath
import tempfile
from typing import Any

import numpy as np

from ...core.findings import Finding, finding
from ...exceptions import ConfigurationError, RecordingError
from ..atomic import nearest_file, open_regular, read_text
from ..bounded import damage_errors, unpack, unpack_file, unpack_limit
from ..formats.joint_table import JointTable
from ..formats.read_options import BAG_SUFFIXES, DEFAULTS, natural_order, ReadOptions, SUFFIXES
from ..yaml import parse_yaml
from .mcap_reader import MAGIC, McapReader, Messages
from .messages import (
    Decoder,
    Fields,
    Group,
    JOINT_STATE,
    JOINT_STATES_TOPIC,
    Layout,
    typestore_of,
    USUAL_FIELDS,
)

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


class Bag:
    """An open recording, or a table; what is damaged in it is left out, counted and noted."""

    def __init__(
        self,
        path: Path,
        readers: list[Any],
        notes: list[Finding],
        options: ReadOptions,
        size: int,
        table: JointTable | None,
    ):
        self.path, self.options, self.size, self._readers = path, options, size, readers
        self.table, self.add_note = table, notes.append
        self._notes = notes
        self.connections = [c for reader in readers for c in _connections(reader)]
        self.left_out = defaultdict[str, dict[str, int]](dict)  # messages of a topic, by reason

    @cached_property
    def _fields(self) -> Fields:
        known = typestore_of(self.connections).fielddefs
        return {kind: fields for kind, (_, fields) in known.items()}

    def fields(self, kind: str) -> Fields:
        """Fields of message types, of this one among them if it is known."""
        return USUAL_FIELDS if kind in USUAL_FIELDS else self._fields

    @property
    def notes(self) -> tuple[Finding, ...]:
        """What was unusual, as far as it was read."""
        found = [*self._notes, *(note for reader in self._readers for note in reader.notes)]
        found += [
            finding('messages_left_out', count=count, topic=topic, reason=reason)
            for topic, counts in self.left_out.items()
            for reason, count in counts.items()
        ]
        return tuple(dict.fromkeys(found))

    def add_left_out(self, topic: str, counts: Mapping[str, int]) -> None:
        """Note messages of a topic that were left out, by reason; it may be read again."""
        known = self.left_out[topic]
        known |= {reason: max(count, known.get(reason, 0)) for reason, count in counts.items()}

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

    def blocks(
        self,
        topic: str,
        start: int | None = None,
        stop: int | None = None,
        limit: int | None = None,
    ) -> Iterator[Messages]:
        """Yield messages of a topic, thousands at once, the first `limit` of a window [ns]."""
        room, damaged = unpack_limit(self.size), 0

        def in_blocks(messages: Iterable[tuple[Any, Any]]) -> Iterator[Messages]:
            """Join messages, as they were published, without damaged ones."""
            nonlocal room, damaged
            good = list[tuple[int, bytes]]()
            for time, data in messages:
                sound = type(time) is int and 0 <= time < 2**63
                sound &= isinstance(data, bytes | bytearray | memoryview)
                content = bytes(data) if sound else b''
                # Only metadata.yaml, if anything, announces what is compressed one by one.
                if content.startswith(ZSTD):
                    try:
                        content = unpack(content, 'zstd', min(MAX_MESSAGE, room))
                        room -= len(content)
                    except ValueError:
                        sound = False
                if sound:
                    good.append((time, content))
                else:
                    damaged += 1
                    self.add_left_out(topic, {'damaged records': damaged})
                if len(good) == BLOCK:
                    yield Messages.of(*zip(*good, strict=True))
                    good = []
            if good:
                yield Messages.of(*zip(*good, strict=True))

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
    ) -> Iterator[list[Group]]:
        """Yield messages of one topic by their layout, thousands at once; as a `Decoder` does."""
        kind = self.kind(topic)
        decoder = Decoder(self.fields(kind), kind, fault_of)
        for block in self.blocks(topic, *window, limit):
            found = [*decoder.groups(block)]
            if limit is None:
                self.add_left_out(topic, decoder.left_out)
            yield found

    def texts(self, topic: str) -> Iterator[tuple[int, Mapping[str, tuple[str, ...]]]]:
        """Yield time of reception [ns] and texts by path of each message of a topic: of a few."""
        kind, damaged = self.kind(topic), 0
        decoder = Decoder(self.fields(kind), kind)
        for block in self.blocks(topic):
            for time, data in zip(block.received.tolist(), block.payloads(), strict=True):
                layout = decoder.layout_of(data)
                if layout.fault:
                    damaged += 1
                    self.add_left_out(topic, {layout.fault: damaged})
                else:
                    yield time, layout.texts


def _connections(reader: Any) -> list[Any]:
    """Return the topics of a file that have a name and a type."""
    known = reader.connections
    return [c for c in known if isinstance(c.topic, str) and isinstance(c.msgtype, str)]


METADATA, _SQLITE = 'metadata.yaml', b'SQLite format 3\0'


@contextlib.contextmanager
def open_bag(path: str | Path, options: ReadOptions = DEFAULTS) -> Iterator[Bag]:
    """Open a bag of ROS 2 or ROS 1, or a table; RecordingError: it cannot be read."""
    notes: list[Finding] = []
    path = Path(path)
    parts, promised = data_files(path), 0
    if parts != [path] and not (path / METADATA).exists():
        notes.append(finding('metadata_missing'))
    elif parts != [path]:  # in the order that is written there
        try:
            content = parse_yaml(read_text(path / METADATA), METADATA)
            information = content['rosbag2_bagfile_information']
            names = [PurePath(name).name for name in information['relative_file_paths']]
            promised = int(information['message_count'])
        except (ConfigurationError, LookupError, TypeError, ValueError) as error:
            notes.append(finding('metadata_damaged', reason=str(error)))
        else:
            there = {file.name: file for file in parts}
            if missing := [name for name in names if name not in there]:
                notes.append(finding('files_missing', files=missing))
            parts = [there[name] for name in names if name in there] or parts
    with contextlib.ExitStack() as stack:
        readers, table = [], None
        for part in parts:
            reader = _reader_of(part, notes, options, stack)
            if isinstance(reader, JointTable):
                table = replace(reader, notes=())
                notes += reader.notes
                continue
            with damage_errors(path, REPAIR):
                reader.open()
            stack.callback(_close, reader)
            readers.append(reader)
        size = sum(part.stat().st_size for part in parts)
        bag = Bag(path, readers, notes, options, size, table)
        count = sum(bag.topics().values())
        if not count:
            raise RecordingError(f"'{path}' holds no messages: record again")
        if promised > count:
            figures = {'promised': promised, 'count': count}
            notes.append(finding('messages_missing', file=METADATA, **figures))
        if (options.columns or options.units or options.rate) and not bag.table:
            notes.append(finding('options_of_tables'))
        yield bag


def _close(reader: Any) -> None:
    with contextlib.suppress(Exception):
        reader.close()


def data_files(path: Path) -> list[Path]:
    """Find the files that hold messages or rows, by their names; a RecordingError if none do."""
    if not path.exists():
        remedy = nearest_file(path) or ': give a rosbag2 folder or file'
        raise RecordingError(f"there is no recording at '{path}'{remedy}")
    if not path.is_dir():
        return [path]
    files = [f for f in sorted(path.iterdir(), key=natural_order) if f.suffix in BAG_SUFFIXES]
    # What was unpacked beside the packed file counts once.
    files = [f for f in files if f.suffix != '.zstd' or f.with_suffix('') not in files]
    if not files:
        from ..formats.table import is_lerobot

        if is_lerobot(path):
            return [path]
        raise RecordingError(
            f"'{path}' holds no recording (.mcap, .db3 or .bag): give another folder"
        )
    return files


def _reader_of(
    path: Path, notes: list[Finding], options: ReadOptions, stack: contextlib.ExitStack
) -> Any:
    """Return what reads a file, by its first bytes, not opened yet; of a table the table."""
    if path.suffix == '.zstd':
        target = Path(stack.enter_context(tempfile.TemporaryDirectory()), path.stem)
        unpack_file(path, target)
        path = target
    start = b''
    if not path.is_dir():
        with open_regular(path) as stream, damage_errors(path, REPAIR):
            start = stream.read(16)
        if not start:
            raise RecordingError(f"'{path}' is empty: the recorder died at once; record again")
    if start.startswith(_SQLITE):
        wal = path.with_name(f'{path.name}-wal')
        if wal.exists() and wal.stat().st_size:
            notes.append(finding('write_ahead_log', file=wal.name, database=path.name))
        from .foreign import SqliteReader

        return SqliteReader(path)
    if start.startswith(ZSTD):
        raise RecordingError(f"'{path}' is compressed: rename it to '{path.name}.zstd'")
    if start.startswith(b'#ROSBAG'):
        from .foreign import Ros1Reader

        return Ros1Reader(path)
    if start.startswith(MAGIC):
        return McapReader(path)
    # What reads tables takes as long to import as a bag to inspect.
    from ..formats.open_table import open_table

    if (table := open_table(path, options)) is not None:
        return table
    if path.suffix in SUFFIXES:
        raise RecordingError(f"'{path}' is no {path.suffix} file inside: export it again")
    raise RecordingError(
        f"'{path}' is neither MCAP nor SQLite, nor a table by its name: give a bag or one of "
        f'{", ".join(SUFFIXES)}'
    )
