"""Opening recordings of every kind: rosbag2 folders, bare files, unfinished ones."""

from collections.abc import Iterator
import contextlib
from pathlib import Path
import re
from typing import Any

from rosbags.rosbag2 import Reader
from zstandard import ZstdDecompressor

from ....exceptions import RecordingError, RobotIdError
from ...formats.open_table import SUFFIXES, table_reader
from ...formats.read_options import DEFAULTS, ReadOptions
from ..foreign.ros1_reader import Ros1Reader
from ..foreign.table_reader import TableReader
from ..repair.mcap_recovery import is_finished, is_mcap, RecoveringReader
from ..schema.message_definitions import typestore_of

BAG_SUFFIXES = ('.mcap', '.db3', '.bag')
_SQLITE = b'SQLite format 3\0'
_ZSTD = b'\x28\xb5\x2f\xfd'


class Bag:
    """
    An open recording.

    Attributes
    ----------
    path : where it is
    connections : topics with type, definition and count, as rosbags describes them
    notes : what was unusual about opening it, in words
    options : how to read it

    """

    def __init__(self, path: Path, readers: list[Any], notes: list[str], options: ReadOptions):
        self.path, self.notes, self.options = path, tuple(notes), options
        self._readers = readers
        self.connections = [c for reader in readers for c in reader.connections]
        self.typestore = typestore_of(self.connections)

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

    def messages(
        self, *topics: str, start: int | None = None, stop: int | None = None
    ) -> Iterator[tuple[str, int, bytes]]:
        """
        Yield topic, time of reception [ns] and serialized message of these topics (none: all).

        Parameters
        ----------
        topics : whose messages
        start, stop : only what was received at `start` or later, and before `stop` [ns]

        Raises
        ------
        RecordingError : the file is damaged

        """
        for reader in self._readers:
            chosen = [c for c in reader.connections if not topics or c.topic in topics]
            if chosen:
                with _recording_errors(self.path):
                    for connection, time, data in reader.messages(chosen, start, stop):
                        yield connection.topic, time, _decompressed(bytes(data))

    def decoded(self, topic: str) -> Iterator[tuple[int, Any]]:
        """Yield time of reception [ns] and message of one topic."""
        kinds = {c.topic: c.msgtype for c in self.connections}
        for _, time, data in self.messages(topic):
            with _recording_errors(self.path):
                message = self.typestore.deserialize_cdr(data, kinds[topic])
            yield time, message


def _decompressed(data: bytes) -> bytes:
    """Undo the compression of one message, which nothing but metadata.yaml announces."""
    return (
        bytes(ZstdDecompressor().decompressobj().decompress(data))
        if data.startswith(_ZSTD)
        else data
    )


@contextlib.contextmanager
def open_bag(path: str | Path, options: ReadOptions = DEFAULTS) -> Iterator[Bag]:
    """
    Open a recording for reading: a bag of ROS 2 or ROS 1, or a table.

    Raises
    ------
    RecordingError : it is missing, empty, damaged or of an unknown kind
    RobotIdError : a table lacks something, or does not fit the options

    """
    path = Path(path)
    notes: list[str] = []
    readers = [_reader(part, notes, options) for part in _parts(path, notes)]
    with contextlib.ExitStack() as stack:
        for reader in readers:
            with _recording_errors(path):
                reader.open()
            stack.callback(_close, reader)
            notes += getattr(reader, 'notes', ())
        if (options.columns or options.units or options.rate) and not any(
            isinstance(reader, TableReader) for reader in readers
        ):
            notes.append('columns, units and rate are of tables: passed over for a bag')
        bag = Bag(path, readers, notes, options)
        if not any(connection.msgcount for connection in bag.connections):
            raise RecordingError(f"'{path}' holds no messages: record again")
        yield bag


def _parts(path: Path, notes: list[str]) -> list[Path]:
    """Find what to open: the folder itself when it has metadata, else its files in order."""
    if not path.exists():
        raise RecordingError(f"there is no recording at '{path}': give a rosbag2 folder or file")
    if not path.is_dir() or table_reader(path):
        return [path]
    files = [f for f in sorted(path.iterdir(), key=_natural_order) if f.suffix in BAG_SUFFIXES]
    if (path / 'metadata.yaml').exists() and all(_finished(f) for f in files):
        return [path]
    packed = sorted(f.name for f in path.iterdir() if f.suffix == '.zstd')
    if packed and not files:
        raise RecordingError(
            f"'{path}' is compressed and lacks metadata.yaml: run zstd -d {packed[0]} in it"
        )
    if not files:
        raise RecordingError(
            f"'{path}' holds no recording (.mcap, .db3 or .bag): give another folder"
        )
    if not (path / 'metadata.yaml').exists():
        notes.append('metadata.yaml is missing: read from the data files themselves')
    return files


def _finished(path: Path) -> bool:
    return path.suffix != '.mcap' or (is_mcap(path) and is_finished(path))


def _natural_order(path: Path) -> list[Any]:
    """Sort key that puts part 2 before part 10."""
    return [int(x) if x.isdigit() else x for x in re.split(r'(\d+)', path.name)]


def _reader(path: Path, notes: list[str], options: ReadOptions) -> Any:
    if path.is_dir():
        return TableReader(path, options) if table_reader(path) else Reader(path)
    with _recording_errors(path), path.open('rb') as stream:
        start = stream.read(16)
    if not start:
        raise RecordingError(f"'{path}' is empty: the recorder died at once; record again")
    if start.startswith(_SQLITE):
        wal = path.with_name(f'{path.name}-wal')
        if wal.exists() and wal.stat().st_size:
            notes.append(f"'{wal.name}' was not merged: run sqlite3 {path.name} .dump to do so")
        return _reader_with_suffix(path, '.db3')
    if start.startswith(_ZSTD):
        raise RecordingError(
            f"'{path}' is compressed: give its folder with metadata.yaml, or run zstd -d on it"
        )
    if start.startswith(b'#ROSBAG'):
        return Ros1Reader(path)
    if not is_mcap(path):
        if table_reader(path):
            return TableReader(path, options)
        raise RecordingError(
            f"'{path}' is neither MCAP nor SQLite, nor a table by its name: give a bag or one of "
            f'{", ".join(SUFFIXES)}'
        )
    if is_finished(path):
        return _reader_with_suffix(path, '.mcap')
    notes.append('the recording was cut short: read up to its last whole message')
    return RecoveringReader(path)


def _reader_with_suffix(path: Path, suffix: str) -> Reader:
    if path.suffix != suffix:
        raise RecordingError(f"'{path}' is a {suffix} file by another name: rename it")
    return Reader(path)


def _close(reader: Any) -> None:
    with contextlib.suppress(Exception):
        reader.close()


@contextlib.contextmanager
def _recording_errors(path: Path) -> Iterator[None]:
    """Turn whatever a parser says about damaged bytes into one sentence."""
    try:
        yield
    except RobotIdError:
        raise
    except PermissionError as error:
        raise RecordingError(f"'{path}' cannot be read: permission denied") from error
    except Exception as error:
        reason = str(error).rstrip('.') or type(error).__name__
        raise RecordingError(
            f"'{path}' is damaged ({reason}): copy it again from the robot, or repair it with "
            "'robotid inspect --repair'"
        ) from error
