"""Open recordings of every kind: their topics and messages, without what is damaged."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
from contextlib import contextmanager, ExitStack
import itertools
from pathlib import Path, PurePath
import tempfile
from typing import Any

import numpy as np

from ...exceptions import ConfigurationError, FileError, RecordingError, RobotIdError
from ..atomic import nearest_file, open_regular, read_text
from ..bounded import unpack, unpack_file, unpack_limit
from ..formats.joint_table import JointTable
from ..formats.read_options import BAG_SUFFIXES, DEFAULTS, natural_order, ReadOptions, SUFFIXES
from ..remote.remote_file import is_url, RemoteFile
from ..yaml import parse_yaml
from .mcap_reader import is_mcap, McapReader, Messages
from .messages import JOINT_STATE, JOINT_STATES_TOPIC, typestore_of

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
    from .tables import joint_states_of_topics, TableReader

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


METADATA = 'metadata.yaml'
ZSTD = b'\x28\xb5\x2f\xfd'
_SQLITE = b'SQLite format 3\0'


def find_files(path: Path, notes: list[str]) -> tuple[list[Path], dict[str, Any]]:
    """
    Find what to open: a file, or those of a folder in their order.

    Parameters
    ----------
    path : of a recording
    notes : what is unusual is appended to it, in words

    Returns
    -------
    The files, and what their metadata say of them.

    Raises
    ------
    RecordingError : there are none

    """
    files = data_files(path)
    if files == [path]:
        return files, {}
    metadata, unusual = _read_metadata(path)
    files, missing = _in_order(files, metadata)
    notes += [*unusual, *missing]
    return files, metadata


def data_files(path: Path) -> list[Path]:
    """Find the files that hold messages or rows, by their names; raises as `find_files`."""
    if not path.exists():
        remedy = nearest_file(path) or ': give a rosbag2 folder or file'
        raise RecordingError(f"there is no recording at '{path}'{remedy}")
    if not path.is_dir():
        return [path]
    files = [f for f in sorted(path.iterdir(), key=natural_order) if f.suffix in BAG_SUFFIXES]
    # What was unpacked beside the packed file counts once.
    files = [f for f in files if f.suffix != '.zstd' or f.with_suffix('') not in files]
    if not files and _is_table(path):
        return [path]
    if not files:
        raise RecordingError(
            f"'{path}' holds no recording (.mcap, .db3 or .bag): give another folder"
        )
    return files


def _read_metadata(folder: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """
    Read the metadata of a recording, which is not needed to read it.

    Returns
    -------
    What is in it, {} where it is missing or damaged, and that in words.

    """
    path = folder / METADATA
    if not path.exists():
        return {}, ('metadata.yaml is missing: read from the data files themselves',)
    try:
        content = parse_yaml(read_text(path), METADATA)
        information = content['rosbag2_bagfile_information']
        names, count = information['relative_file_paths'], information['message_count']
        if not isinstance(information, Mapping) or not isinstance(count, int):
            raise TypeError(f'message_count is {count!r}')
        return {'files': [PurePath(name).name for name in names], 'count': count}, ()
    except (ConfigurationError, LookupError, TypeError) as error:
        note = f'metadata.yaml is damaged ({error}): read from the data files themselves'
        return {}, (note,)


def _in_order(files: Sequence[Path], metadata: Mapping[str, Any]) -> tuple[list[Path], list[str]]:
    """Return the files that the metadata name, in their order, else all; and what is missing."""
    named = metadata.get('files', ())
    there = {file.name: file for file in files}
    found = [there[name] for name in named if name in there]
    missing = [name for name in named if name not in there]
    notes = [f'of the recording {", ".join(missing)} is missing'] if missing else []
    return found or list(files), notes


def missing_notes(metadata: Mapping[str, Any], count: int) -> list[str]:
    """Say where a recording has fewer messages than its metadata promise."""
    promised = metadata.get('count', 0)
    if promised <= count:
        return []
    return [f'metadata.yaml promises {promised} messages, {count} were found']


def remote_mcap(url: str) -> RemoteFile:
    """Return the file behind a URL; raises `RecordingError` where it is no MCAP file."""
    file = RemoteFile(url)
    if file.suffix != '.mcap':
        raise RecordingError(
            f"'{url}' is no .mcap file, which alone are read in parts: copy it here"
        )
    return file


def _unpacked(path: Path, stack: ExitStack) -> Path:
    """Undo the compression of a file for as long as it is read."""
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    target = Path(folder, path.stem)
    unpack_file(path, target)
    return target


def reader_of(
    path: Path | RemoteFile, notes: list[str], options: ReadOptions, stack: ExitStack
) -> Any:
    """
    Return what reads a file, by its first bytes, or a folder of tables; not opened yet.

    Parameters
    ----------
    path : what is compressed is unpacked until `stack` is closed
    notes : what is unusual is appended to it, in words
    options : how to read it

    Raises
    ------
    RecordingError : it is empty or of an unknown kind

    """
    if isinstance(path, RemoteFile):
        if not is_mcap(path):
            raise RecordingError(f"'{path}' is not MCAP inside: copy it again from the robot")
        return McapReader(path)
    if path.suffix == '.zstd':
        path = _unpacked(path, stack)
    if path.is_dir():
        return _table(path, options)
    with open_regular(path) as stream, recording_errors(path):
        start = stream.read(16)
    if not start:
        raise RecordingError(f"'{path}' is empty: the recorder died at once; record again")
    if start.startswith(_SQLITE):
        wal = path.with_name(f'{path.name}-wal')
        if wal.exists() and wal.stat().st_size:
            notes.append(f"'{wal.name}' was not merged: run sqlite3 {path.name} .dump to do so")
        from .foreign import SqliteReader

        return SqliteReader(path)
    if start.startswith(ZSTD):
        raise RecordingError(f"'{path}' is compressed: rename it to '{path.name}.zstd'")
    if start.startswith(b'#ROSBAG'):
        from .foreign import Ros1Reader

        return Ros1Reader(path)
    if is_mcap(path):
        return McapReader(path)
    if _is_table(path):
        return _table(path, options)
    raise RecordingError(
        f"'{path}' is neither MCAP nor SQLite, nor a table by its name: give a bag or one of "
        f'{", ".join(SUFFIXES)}'
    )


def _is_table(path: Path) -> bool:
    # What reads tables takes as long to import as a bag to inspect.
    from ..formats.open_table import table_reader

    return table_reader(path) is not None


def _table(path: Path, options: ReadOptions) -> Any:
    from .tables import TableReader

    return TableReader(path, options)


@contextmanager
def recording_errors(path: Path | RemoteFile) -> Iterator[None]:
    """Turn whatever a parser says about damaged bytes into one sentence."""
    try:
        yield
    except RobotIdError:
        raise
    except PermissionError as error:
        raise RecordingError(f"'{path}' cannot be read: permission denied") from error
    except Exception as error:
        reason = str(error).rstrip('.') or type(error).__name__
        if isinstance(path, RemoteFile):
            raise FileError(
                f"'{path}' cannot be read to its end ({reason}): try again, or copy it here"
            ) from error
        raise RecordingError(
            f"'{path}' is damaged ({reason}): copy it again from the robot, or repair it with the "
            'tools of its format (sqlite3 .recover, rosbag reindex)'
        ) from error
