"""Writing a rosbag2 MCAP recording that survives the death of its process at any time."""

import contextlib
import itertools
from pathlib import Path
import struct
import time

from ....exceptions import FileError, RecordingError
from ...atomic import file_errors
from ..schema.message_definitions import definition, STRING
from .mcap_file import McapFile, qos_profile

# What a kill may lose [s]. Each flush ends a chunk and costs its index: at 500 Hz a chunk holds
# 100 joint states, 30 kB.
FLUSH_PERIOD = 0.2


class BagWriter:
    """
    One recording: `<folder>/<name>/<name>.mcap` and, once closed, `metadata.yaml` beside it.

    At least every `flush_period` of writing the open chunk goes to the operating system: a process
    killed at any time loses at most that much, `read_recording` reads the rest, and `repair_bag`
    adds index and metadata for other tools. An existing recording is never touched: a taken name
    gets a number (`name_2`).

    Parameters
    ----------
    folder : where recordings go; made when missing
    name : of the recording, for example the robot's name and the date
    flush_period : how much a kill may lose [s]; call `flush` from a timer too, for silent topics

    Raises
    ------
    FileError : the folder cannot be written

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
        self._failed: FileError | None = None

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

        Raises
        ------
        FileError : the disk is full; what was written before stays readable

        """
        channel = self._channels.get(topic)
        if channel is None:
            raise RecordingError(f"'{topic}' was not declared: call add_topic first")
        self._check()
        published = received if published is None else published
        self._remember_failure(
            self._file.write, channel, bytes(data), received, published, next(self._sequence)
        )
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
        self._remember_failure(self._file.flush)
        self._flushed = time.monotonic()

    def close(self) -> Path:
        """
        Write index and metadata; a second call does nothing.

        After a full disk the file is only closed: it stays readable up to the failure. Where not
        even its first messages were written it is removed.

        Returns
        -------
        Path of the recording (its folder).

        Raises
        ------
        FileError : the disk is full, or the recording is not there any more

        """
        if not self._open:
            return self.path
        self._open = False
        if self._failed is not None:
            self._file.abandon()
            if self._file.is_empty:
                _remove(self._file.path)
            return self.path
        self._remember_failure(self._file.finish)
        self._remember_failure(self._file.write_metadata, self.path / 'metadata.yaml')
        return self.path

    def _check(self) -> None:
        if self._failed is not None:
            raise self._failed
        if not self._open:
            raise RecordingError(f"the recording '{self.path}' is closed: start another one")

    def _remember_failure(self, step, *arguments) -> None:  # type: ignore[no-untyped-def]
        """Remember the first failure: a file that missed data must not look complete."""
        try:
            step(*arguments)
        except FileError as error:
            self._failed = error
            raise

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
    with file_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(1):
            path = folder / (name if number == 1 else f'{name}_{number}')
            try:
                path.mkdir()
            except FileExistsError:
                continue
            return path
    raise AssertionError('unreachable')
