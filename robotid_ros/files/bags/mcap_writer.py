"""Writing a rosbag2 MCAP recording that survives the death of its process at any time."""

from collections.abc import Iterator, Mapping
import contextlib
import itertools
import os
from pathlib import Path
import struct
import time
from typing import Any

from ...exceptions import FileError, RecordingError
from ..atomic import file_errors, make_new_folder, write_text
from ..yaml import dump_yaml, parse_yaml
from .messages import definition, STRING

CHUNK_SIZE = 1 << 20  # of a chunk that no flush ends [bytes], the default of `mcap`
STORAGE_VERSION = 9
# rosbag2's infinite duration.
_FOREVER = {'sec': 9223372036, 'nsec': 854775807}


class ExclusiveStream:
    """Append-only file that never replaces another and keeps no half record on a full disk."""

    def __init__(self, path: Path):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, 'O_BINARY', 0)
        self.path, self._handle = path, os.open(path, flags, 0o666)
        self._size = 0

    def write(self, data: bytes) -> int:
        """Append all of `data` or nothing."""
        view, done = memoryview(data), 0
        try:
            while done < len(view):
                done += os.write(self._handle, view[done:])
        except OSError:
            os.ftruncate(self._handle, self._size)
            os.lseek(self._handle, self._size, os.SEEK_SET)
            raise
        self._size += done
        return done

    def tell(self) -> int:
        """Bytes written so far."""
        return self._size

    def flush(self) -> None:
        """Nothing is held back here."""

    def check_there(self) -> None:
        """
        Check that others will find what was written.

        Raises
        ------
        FileError : the file was removed or moved

        """
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(self._handle), os.stat(self.path)):
                return
        folder = self.path.parent
        what = f"file '{self.path}'" if folder.exists() else f"folder '{folder}'"
        if os.fstat(self._handle).st_nlink:
            raise FileError(f'the {what} was moved while recording: only its beginning is there')
        raise FileError(f'the {what} was removed while recording: nothing of it is left')

    def close(self) -> None:
        """Close after everything has reached the disk."""
        if self._handle >= 0:
            handle, self._handle = self._handle, -1
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


class McapFile:
    """
    MCAP file in rosbag2's profile; after its first failure all further calls fail alike.

    Parameters
    ----------
    path : of the .mcap file, which must not exist

    Raises
    ------
    FileError : the path is taken or cannot be written

    """

    def __init__(self, path: Path):
        # Who only reads does without it.
        from mcap.writer import CompressionType, Writer

        self.path = path
        self.topics: dict[int, dict[str, Any]] = {}
        self.failed: FileError | None = None
        self._schemas: dict[tuple[str, bytes], int] = {}
        self._span = (2**63 - 1, 0)
        with self._errors():
            self._stream = ExclusiveStream(path)
            self._writer = Writer(
                self._stream,  # type: ignore[arg-type]  # it needs write, tell and flush only
                chunk_size=CHUNK_SIZE,
                compression=CompressionType.NONE,
            )
            try:
                self._writer.start(profile='ros2', library='robotid_ros')
            except OSError:
                self._stream.close()
                raise
            self._start = self._stream.tell()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Remember the first failure: a file that missed data must not look complete."""
        if self.failed is not None:
            raise self.failed
        try:
            with file_errors(self.path):
                yield
        except FileError as error:
            self.failed = error
            raise

    def add_channel(
        self,
        topic: str,
        message_type: str,
        schema: tuple[str, bytes],
        metadata: Mapping[str, str],
    ) -> int:
        """Declare a channel, of schema (encoding, definition); return its number for `write`."""
        key = (message_type, schema[1])
        with self._errors():
            if key not in self._schemas:
                self._schemas[key] = self._writer.register_schema(message_type, *schema)
            number = self._schemas[key]
            channel = self._writer.register_channel(topic, 'cdr', number, dict(metadata))
        self.topics[channel] = {'name': topic, 'type': message_type, 'count': 0, **metadata}
        return channel

    def write(
        self, channel: int, data: bytes, received: int, published: int, sequence: int
    ) -> None:
        """Append one message; times in ns."""
        if self.failed is not None:
            raise self.failed
        try:  # not `_errors`, which costs a microsecond
            self._writer.add_message(channel, received, data, published, sequence)
        except OSError as error:
            with self._errors():
                raise error
        self.topics[channel]['count'] += 1
        self._span = (min(self._span[0], received), max(self._span[1], received))

    def flush(self) -> None:
        """Hand the open chunk to the operating system; see that the file is still there."""
        with self._errors():
            self._stream.check_there()
            self._writer.flush()  # type: ignore[no-untyped-call]

    def finish(self) -> None:
        """Write index and footer, and close."""
        with self._errors():
            try:
                self._stream.check_there()
                # What rosbag2 keeps inside the file, to rebuild `metadata.yaml` from.
                text = dump_yaml(self._information())
                self._writer.add_metadata('rosbag2', {'serialized_metadata': text})
                self._writer.finish()  # type: ignore[no-untyped-call]
            finally:
                self._stream.close()

    def abandon(self) -> None:
        """Close without index and footer, as after a kill."""
        with file_errors(self.path):
            self._stream.close()

    @property
    def is_empty(self) -> bool:
        """Whether nothing but its beginning was written."""
        return self._stream.tell() == self._start

    def write_metadata(self, path: Path) -> None:
        """Write `metadata.yaml` beside the recording."""
        with self._errors():
            write_text(path, dump_yaml({'rosbag2_bagfile_information': self._information()}))

    def _information(self) -> dict[str, Any]:
        start, stop = self._span if self._span[1] else (0, 0)
        total = sum(topic['count'] for topic in self.topics.values())
        times = {
            'duration': {'nanoseconds': stop - start},
            'starting_time': {'nanoseconds_since_epoch': start},
            'message_count': total,
        }
        return {
            'version': STORAGE_VERSION,
            'storage_identifier': 'mcap',
            **times,
            'topics_with_message_count': [
                {'topic_metadata': _topic_metadata(topic), 'message_count': topic['count']}
                for topic in self.topics.values()
            ],
            'compression_format': '',
            'compression_mode': '',
            'relative_file_paths': [self.path.name],
            'files': [{'path': self.path.name, **times}],
            'custom_data': None,
            'ros_distro': os.environ.get('ROS_DISTRO', 'jazzy'),
        }


def _topic_metadata(topic: Mapping[str, Any]) -> dict[str, Any]:
    return {
        'name': topic['name'],
        'type': topic['type'],
        'serialization_format': 'cdr',
        'offered_qos_profiles': parse_yaml(topic.get('offered_qos_profiles', ''), 'qos') or [],
        'type_description_hash': topic.get('topic_type_hash', ''),
    }


def qos_profile(latched: bool) -> str:
    """Quality of service of a publisher, as rosbag2 stores it."""
    profile = {
        'history': 'keep_last',
        'depth': 1 if latched else 10,
        'reliability': 'reliable',
        'durability': 'transient_local' if latched else 'volatile',
        'deadline': _FOREVER,
        'lifespan': _FOREVER,
        'liveliness': 'automatic',
        'liveliness_lease_duration': _FOREVER,
        'avoid_ros_namespace_conventions': False,
    }
    return dump_yaml([profile])


# What a kill may lose [s]. Each flush ends a chunk and costs its index: at 500 Hz a chunk holds
# 100 joint states, 30 kB.
FLUSH_PERIOD = 0.2


class BagWriter:
    """
    One recording: `<folder>/<name>/<name>.mcap` and, once closed, `metadata.yaml` beside it.

    At least every `flush_period` of writing the open chunk goes to the operating system: a process
    killed at any time loses at most that much, and `read_recording` reads the rest. An existing
    recording is never touched: a taken name gets a number (`name_2`). All methods raise
    `FileError` from the first failure on, such as a full disk; what was written before stays
    readable.

    Parameters
    ----------
    folder : where recordings go; made when missing
    name : of the recording, for example the robot's name and the date
    flush_period : how much a kill may lose [s]; call `flush` from a timer too, for silent topics

    """

    def __init__(self, folder: str | Path, name: str, flush_period: float = FLUSH_PERIOD):
        self.path = _new_folder(Path(folder), name)
        self.flush_period = flush_period
        file = self.path / f'{self.path.name}.mcap'
        try:
            self._file = McapFile(file)
        except FileError:
            _remove(file)
            raise
        self._channels: dict[str, int] = {}
        self._sequence = itertools.count(1)
        self._flushed = time.monotonic()
        self._open = True

    def add_topic(
        self,
        topic: str,
        message_type: str,
        *,
        latched: bool = False,
        definition_and_hash: tuple[str, str] | None = None,
    ) -> None:
        """
        Declare a topic before its first message; declaring it again changes nothing.

        Parameters
        ----------
        topic : full name, with the leading slash
        message_type : 'sensor_msgs/msg/JointState'
        latched : its publisher is transient local: `ros2 bag play` will then publish it so
        definition_and_hash : of the type, where it is not that of the installed package

        Raises
        ------
        RecordingError : the definition of the type is not installed

        """
        if topic not in self._channels:
            self._check()
            text, type_hash = definition_and_hash or definition(message_type)
            metadata = {'offered_qos_profiles': qos_profile(latched), 'topic_type_hash': type_hash}
            schema = ('ros2msg', text.encode())
            self._channels[topic] = self._file.add_channel(topic, message_type, schema, metadata)

    def write(self, topic: str, data: bytes, received: int, published: int | None = None) -> None:
        """
        Append one serialized message (CDR, as raw subscriptions deliver it).

        Parameters
        ----------
        topic : a declared one
        data : the serialized message
        received, published : times [ns]

        """
        channel = self._channels.get(topic)
        if channel is None:
            raise RecordingError(f"'{topic}' was not declared: call add_topic first")
        self._check()
        published = received if published is None else published
        self._file.write(channel, bytes(data), received, published, next(self._sequence))
        if time.monotonic() - self._flushed > self.flush_period:
            self.flush()

    def write_text(self, topic: str, text: str, received: int) -> None:
        """Append a std_msgs/String, for example the session's snapshot, and flush."""
        self.add_topic(topic, STRING, latched=True)
        data = text.encode() + b'\0'
        self.write(topic, b'\0\1\0\0' + struct.pack('<I', len(data)) + data, received)
        self.flush()

    def flush(self) -> None:
        """Hand everything written so far to the operating system."""
        self._check()
        self._file.flush()
        self._flushed = time.monotonic()

    def close(self) -> Path:
        """
        Write index and metadata, and return the recording's folder; a second call does nothing.

        After a failure the file is only closed: it stays readable up to there. Where not even its
        first messages were written it is removed.
        """
        if not self._open:
            return self.path
        self._open = False
        if self._file.failed is None:
            self._file.finish()
            self._file.write_metadata(self.path / 'metadata.yaml')
            return self.path
        self._file.abandon()
        if self._file.is_empty:
            _remove(self._file.path)
        return self.path

    def _check(self) -> None:
        if not self._open and self._file.failed is None:
            raise RecordingError(f"the recording '{self.path}' is closed: start another one")

    def __enter__(self) -> 'BagWriter':
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _remove(file: Path) -> None:
    """Remove a recording without any message, as far as that is possible."""
    with contextlib.suppress(OSError):
        file.unlink(missing_ok=True)
        file.parent.rmdir()


def _new_folder(folder: Path, name: str) -> Path:
    """Make the first of `name`, `name_2`, `name_3`, … that does not exist."""
    if not name or '/' in name or name.startswith('.'):
        raise FileError(f"'{name}' cannot name a recording: use letters, digits, - and _")
    return make_new_folder(folder / name)
