"""
MCAP files without footer: what a killed recorder, a full disk or a broken copy leaves behind.

The format is a sequence of records, each with its length in front, so everything up to the last
whole record can be read; of an uncompressed chunk that was cut, also its first messages.

The libraries stop earlier. Of 100,000 joint states cut at 61 % of the file this reader returns
61,100; the `StreamReader` of `mcap` 59,100 to 59,700, as it loses the cut chunk, and `rosbags`
none. With one wrong byte at a third of the whole file it returns 96,400, all but the damaged
chunk, where `mcap` stops after 31,000. It takes 1.4 µs a message, `mcap` 3.6 µs.
"""

from collections import Counter
from collections.abc import Collection, Iterator
import contextlib
from io import BytesIO
import os
from pathlib import Path
import shutil
import struct
from typing import BinaryIO

from mcap.data_stream import ReadDataStream
from mcap.exceptions import EndOfFile
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk, Message, Schema
from mcap.stream_reader import get_chunk_data_stream
from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
)

from ....exceptions import RecordingError
from ...atomic import file_errors
from ..write.mcap_file import McapFile

MAGIC = b'\x89MCAP0\r\n'
_FRAME = struct.Struct('<BQ')
_MESSAGE = struct.Struct('<HIQQ')
_CHUNK_FIXED = 8 + 8 + 8 + 4 + 4
_FORMATS = {'ros2msg': MessageDefinitionFormat.MSG, 'ros2idl': MessageDefinitionFormat.IDL}
_END = (0, Opcode.DATA_END, Opcode.FOOTER)
_KEPT = (Opcode.SCHEMA, Opcode.CHANNEL, Opcode.MESSAGE)
Record = Schema | Channel | Message


def is_mcap(path: Path) -> bool:
    """Whether a file starts as MCAP."""
    with file_errors(path), path.open('rb') as stream:
        return stream.read(len(MAGIC)) == MAGIC


def is_finished(path: Path) -> bool:
    """Whether an MCAP file has its footer."""
    with file_errors(path), path.open('rb') as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - 37))
        tail = stream.read()
    return tail.endswith(MAGIC) and tail[:1] == bytes([Opcode.FOOTER])


def records(stream: BinaryIO) -> Iterator[Record]:
    """Yield schemas, channels and messages of an MCAP stream, up to the last whole one."""
    with contextlib.suppress(struct.error, UnicodeDecodeError, EndOfFile):
        yield from _records(stream, len(MAGIC))


def _records(stream: BinaryIO, position: int) -> Iterator[Record]:
    """Yield the records from a position on, those in chunks included."""
    size = stream.seek(0, os.SEEK_END)
    while position + _FRAME.size <= size:
        stream.seek(position)
        opcode, length = _FRAME.unpack(stream.read(_FRAME.size))
        position += _FRAME.size
        if opcode in _END:
            return
        if opcode == Opcode.CHUNK:
            content = stream.read(min(length, size - position))
            yield from _records(BytesIO(_chunk_data(content, length)), 0)
        elif opcode in _KEPT and position + length <= size:
            yield _record(opcode, stream.read(length))
        position += length


def _chunk_data(content: bytes, length: int) -> bytes:
    """Return what is in a chunk, nothing of a damaged one; `content` may be its beginning only."""
    if len(content) == length:
        chunk = Chunk.read(ReadDataStream(BytesIO(content)))
        try:
            data = get_chunk_data_stream(chunk, validate_crc=True)[0]
            return data.read(chunk.uncompressed_size or 1)
        except Exception:  # each compressor raises its own
            return b''
    if len(content) < _CHUNK_FIXED:
        return b''
    (name_length,) = struct.unpack_from('<I', content, _CHUNK_FIXED - 4)
    # Half of a compressed chunk, which names its compression, cannot be read.
    return b'' if name_length else content[_CHUNK_FIXED + 8 :]


def _record(opcode: int, content: bytes) -> Record:
    if opcode == Opcode.MESSAGE:
        channel, sequence, received, published = _MESSAGE.unpack_from(content)
        return Message(
            channel_id=channel,
            log_time=received,
            data=content[_MESSAGE.size :],
            publish_time=published,
            sequence=sequence,
        )
    stream = ReadDataStream(BytesIO(content))
    return Schema.read(stream) if opcode == Opcode.SCHEMA else Channel.read(stream)


class RecoveringReader:
    """Reads an unfinished MCAP file; shaped like the storage readers of rosbags."""

    def __init__(self, path: Path):
        self.path = path
        self.channels: dict[int, tuple[Channel, Schema | None]] = {}
        self.connections: list[Connection] = []

    def open(self) -> None:
        """Scan the file for its topics."""
        schemas: dict[int, Schema] = {}
        counts: Counter[int] = Counter()
        for record in self.records():
            if isinstance(record, Message):
                counts[record.channel_id] += 1
            elif isinstance(record, Schema):
                schemas[record.id] = record
            else:
                self.channels[record.id] = record, schemas.get(record.schema_id)
        self.connections = [
            self._connection(channel, schema, counts[number])
            for number, (channel, schema) in self.channels.items()
        ]

    def close(self) -> None:
        """Nothing stays open between reads."""

    def messages(
        self,
        connections: Collection[Connection],
        start: int | None = None,
        stop: int | None = None,
    ) -> Iterator[tuple[Connection, int, bytes]]:
        """Yield connection, time [ns] and content, in the order of recording."""
        wanted = {connection.id: connection for connection in connections}
        for record in self.records():
            if isinstance(record, Message) and record.channel_id in wanted:
                time = record.log_time
                if (start is None or time >= start) and (stop is None or time < stop):
                    yield wanted[record.channel_id], time, record.data

    def records(self) -> Iterator[Record]:
        """Yield schemas, channels and messages."""
        with self.path.open('rb') as stream:
            yield from records(stream)

    def _connection(self, channel: Channel, schema: Schema | None, count: int) -> Connection:
        form = _FORMATS.get(schema.encoding) if schema else None
        text = schema.data.decode() if schema and form else ''
        return Connection(
            channel.id,
            channel.topic,
            schema.name if schema else '',
            MessageDefinition(form or MessageDefinitionFormat.NONE, text),
            '',
            count,
            ConnectionExtRosbag2(channel.message_encoding, []),
            self,
        )


def repair_bag(path: str | Path) -> Path:
    """
    Give a recording that was cut short its index, footer and `metadata.yaml`.

    A whole copy is written first and then takes the place of the cut file, so that nothing is lost
    when this fails half-way. A finished recording is left alone.

    Parameters
    ----------
    path : recording folder with one .mcap file, or such a file

    Returns
    -------
    The path.

    Raises
    ------
    RecordingError : not a recording of one MCAP file
    FileError : no space for the copy

    """
    path = Path(path)
    files = sorted(path.glob('*.mcap')) if path.is_dir() else [path]
    if len(files) != 1 or not files[0].is_file() or not is_mcap(files[0]):
        raise RecordingError(f"'{path}' is not a recording of one MCAP file: give its folder")
    if is_finished(files[0]) and (not path.is_dir() or (path / 'metadata.yaml').exists()):
        return path
    folder = files[0].parent / '.repair'
    with file_errors(folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    try:
        copy = _copy(files[0], folder / files[0].name)
        with file_errors(path):
            os.replace(copy.path, files[0])
        if path.is_dir():
            copy.write_metadata(path / 'metadata.yaml')
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return path


def _copy(source: Path, target: Path) -> McapFile:
    """Write what can be read of a file into a finished one."""
    reader = RecoveringReader(source)
    reader.open()
    copy = McapFile(target)
    try:
        channels = {
            number: copy.add_channel(
                channel.topic, schema.name, (schema.encoding, schema.data), channel.metadata
            )
            for number, (channel, schema) in reader.channels.items()
            if schema
        }
        for record in reader.records():
            if isinstance(record, Message) and record.channel_id in channels:
                times = record.log_time, record.publish_time
                copy.write(channels[record.channel_id], record.data, *times, record.sequence)
        copy.finish()
    except BaseException:
        copy.abandon()
        raise
    return copy
