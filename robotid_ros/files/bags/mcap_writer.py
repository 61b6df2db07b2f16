"""Writing a rosbag2 MCAP recording that survives the death of its process at any time."""

from collections.abc import Iterator
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
        # Not a RawIOBase, which `mcap` would buffer.
        self.path, self._file = path, path.open('xb', buffering=0)
        self.tell, self.flush = self._file.tell, self._file.flush

    def write(self, data: Any) -> int:
        """Append all of `data` or nothing."""
        view, start, done = memoryview(data), self.tell(), 0
        try:
            while done < len(view):
                done += self._file.write(view[done:])
        except OSError:
            self._file.truncate(start)
            self._file.seek(start)
            raise
        return done

    def check_there(self) -> None:
        """Raise a FileError where the file was removed or moved: others will not find it."""
        own = os.fstat(self._file.fileno())
        with contextlib.suppress(OSError):
            if os.path.samestat(own, os.stat(self.path)):
                return
        folder = self.path.parent
        what = f"file '{self.path}'" if folder.exists() else f"folder '{folder}'"
        if own.st_nlink:
            raise FileError(f'the {what} was moved while recording: only its beginning is there')
        raise FileError(f'the {what} was removed while recording: nothing of it is left')

    def close(self) -> None:
        """Close after everything has reached the disk."""
        if not self._file.closed:
            with self._file:
                os.fsync(self._file.fileno())


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

    At least every `flush_period` [s] of writing the open chunk goes to the operating system: a
    process killed at any time loses at most that much. Call `flush` from a timer too, for silent
    topics. A taken name gets a number (`name_2`). All methods raise `FileError` from the first
    failure on, such as a full disk; what was written before stays readable.
    """

    def __init__(self, folder: str | Path, name: str, flush_period: float = FLUSH_PERIOD):
        # Who only reads does without it.
        from mcap.writer import CompressionType, Writer

        if not name or '/' in name or name.startswith('.'):
            raise FileError(f"'{name}' cannot name a recording: use letters, digits, - and _")
        self.path = make_new_folder(Path(folder) / name)
        self.flush_period = flush_period
        self._file = self.path / f'{self.path.name}.mcap'
        self._failed: FileError | None = None
        self._schemas: dict[tuple[str, str], int] = {}
        self._channels: dict[str, int] = {}
        self._topics: dict[int, dict[str, Any]] = {}
        self._span = (2**63 - 1, 0)
        how: Any = {'chunk_size': CHUNK_SIZE, 'compression': CompressionType.NONE}
        try:
            with self._errors():
                self._stream = ExclusiveStream(self._file)
                self._writer = Writer(self._stream, **how)  # type: ignore[arg-type]
                try:
                    self._writer.start(profile='ros2', library='robotid_ros')
                except OSError:
                    self._stream.close()
                    raise
        except FileError:
            _remove(self._file)
            raise
        self._start = self._stream.tell()
        self._sequence = itertools.count(1)
        self._flushed = time.monotonic()
        self._open = True

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Remember the first failure: a file that missed data must not look complete."""
        try:
            with file_errors(self._file):
                yield
        except FileError as error:
            self._failed = error
            raise

    def add_topic(self, topic: str, message_type: str, *, latched: bool = False) -> None:
        """Declare a topic before its first message; RecordingError: an unknown type."""
        if topic in self._channels:
            return
        self._check()
        text, type_hash = definition(message_type)
        metadata = {'offered_qos_profiles': qos_profile(latched), 'topic_type_hash': type_hash}
        key = (message_type, text)
        with self._errors():
            if key not in self._schemas:
                self._schemas[key] = self._writer.register_schema(
                    message_type, 'ros2msg', text.encode()
                )
            channel = self._writer.register_channel(topic, 'cdr', self._schemas[key], metadata)
        self._topics[channel] = {'name': topic, 'type': message_type, 'count': 0, **metadata}
        self._channels[topic] = channel

    def write(self, topic: str, data: bytes, received: int, published: int | None = None) -> None:
        """Append one serialized message (CDR, as raw subscriptions deliver it); times in ns."""
        channel = self._channels.get(topic)
        if channel is None:
            raise RecordingError(f"'{topic}' was not declared: call add_topic first")
        self._check()
        published, number = received if published is None else published, next(self._sequence)
        try:  # not `_errors`, which costs a microsecond
            self._writer.add_message(channel, received, bytes(data), published, number)
        except OSError as error:
            with self._errors():
                raise error
        self._topics[channel]['count'] += 1
        self._span = (min(self._span[0], received), max(self._span[1], received))
        if time.monotonic() - self._flushed > self.flush_period:
            self.flush()

    def write_text(self, topic: str, text: str, received: int) -> None:
        """Append a std_msgs/String, for example the session's snapshot, and flush."""
        self.add_topic(topic, STRING, latched=True)
        data = text.encode() + b'\0'
        self.write(topic, b'\0\1\0\0' + struct.pack('<I', len(data)) + data, received)
        self.flush()

    def flush(self) -> None:
        """Hand everything written so far to the operating system; see that the file is there."""
        self._check()
        with self._errors():
            self._stream.check_there()
            self._writer.flush()  # type: ignore[no-untyped-call]
        self._flushed = time.monotonic()

    def close(self) -> Path:
        """Write index and metadata; return the folder, which is removed without a message."""
        if not self._open:
            return self.path
        self._open = False
        if self._failed is not None:
            empty = self._stream.tell() == self._start
            with file_errors(self._file):
                self._stream.close()
            if empty:
                _remove(self._file)
            return self.path
        information = self._information()
        with self._errors():
            try:
                self._stream.check_there()
                # What rosbag2 keeps inside the file, to rebuild `metadata.yaml` from.
                inside = {'serialized_metadata': dump_yaml(information)}
                self._writer.add_metadata('rosbag2', inside)
                self._writer.finish()  # type: ignore[no-untyped-call]
            finally:
                self._stream.close()
            text = dump_yaml({'rosbag2_bagfile_information': information})
            write_text(self.path / 'metadata.yaml', text)
        return self.path

    def _check(self) -> None:
        if self._failed is not None:
            raise self._failed
        if not self._open:
            raise RecordingError(f"the recording '{self.path}' is closed: start another one")

    def _information(self) -> dict[str, Any]:
        start, stop = self._span if self._span[1] else (0, 0)
        times = {
            'duration': {'nanoseconds': stop - start},
            'starting_time': {'nanoseconds_since_epoch': start},
            'message_count': sum(topic['count'] for topic in self._topics.values()),
        }
        topics = []
        for topic in self._topics.values():
            known = {
                'name': topic['name'],
                'type': topic['type'],
                'serialization_format': 'cdr',
                'offered_qos_profiles': parse_yaml(topic['offered_qos_profiles'], 'qos'),
                'type_description_hash': topic['topic_type_hash'],
            }
            topics.append({'topic_metadata': known, 'message_count': topic['count']})
        return {
            'version': STORAGE_VERSION,
            'storage_identifier': 'mcap',
            **times,
            'topics_with_message_count': topics,
            'compression_format': '',
            'compression_mode': '',
            'relative_file_paths': [self._file.name],
            'files': [{'path': self._file.name, **times}],
            'custom_data': None,
            'ros_distro': os.environ.get('ROS_DISTRO', 'jazzy'),
        }

    def __enter__(self) -> 'BagWriter':
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _remove(file: Path) -> None:
    """Remove a recording without any message, as far as that is possible."""
    with contextlib.suppress(OSError):
        file.unlink(missing_ok=True)
        file.parent.rmdir()
