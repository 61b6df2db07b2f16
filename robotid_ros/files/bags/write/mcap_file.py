"""
One MCAP file with its rosbag2 `metadata.yaml`, written so that a kill loses next to nothing.

The writer of the `mcap` package makes chunks, index and footer; `flush` ends the open chunk and
hands it to the operating system. Left to themselves the writers of `mcap`, `mcap-ros2-support` and
`rosbags` hold up to 1 MiB back: killed after 6 s of joint states at 500 Hz they had saved none of
3000 messages; with a flush every 0.2 s it was 2981 to 2996. `rosbags` has no flush and `mcap` no
`metadata.yaml`, hence this file. The stream below has no buffer of its own, unlike Python's, so
that a full disk takes back what it could not write whole.
"""

from collections.abc import Mapping
import contextlib
import os
from pathlib import Path
from typing import Any

from ....exceptions import FileError
from ...atomic import file_errors, write_text
from ...yaml import dump_yaml, parse_yaml

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
    MCAP file in rosbag2's profile.

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
        self._schemas: dict[tuple[str, bytes], int] = {}
        self._span = (2**63 - 1, 0)
        with file_errors(path):
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

    def add_channel(
        self,
        topic: str,
        message_type: str,
        schema: tuple[str, bytes],
        metadata: Mapping[str, str],
    ) -> int:
        """
        Declare a channel; `schema` is (encoding, definition), `metadata` as rosbag2 has it.

        Returns
        -------
        Number of the channel, for `write`.

        """
        key = (message_type, schema[1])
        with file_errors(self.path):
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
        with file_errors(self.path):
            self._writer.add_message(channel, received, data, published, sequence)
        self.topics[channel]['count'] += 1
        self._span = (min(self._span[0], received), max(self._span[1], received))

    def flush(self) -> None:
        """Hand the open chunk to the operating system; see that the file is still there."""
        with file_errors(self.path):
            self._stream.check_there()
            self._writer.flush()  # type: ignore[no-untyped-call]

    def finish(self) -> None:
        """Write index and footer, and close."""
        with file_errors(self.path):
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
        text = dump_yaml({'rosbag2_bagfile_information': self._information()})
        write_text(path, text)

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
