"""
MCAP files without footer: what a killed recorder, a full disk or a broken copy leaves behind.

The format is a sequence of records, each with its length in front, so everything up to the last
whole record can be read; of an uncompressed chunk that was cut, also its first messages.
"""

from collections.abc import Collection, Iterator
import contextlib
from io import BytesIO
import os
from pathlib import Path
import shutil
import struct
from typing import Any, BinaryIO
import zlib

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
        yield from _records(stream)


def _records(stream: BinaryIO) -> Iterator[Record]:
    size = stream.seek(0, os.SEEK_END)
    position = stream.seek(len(MAGIC))
    while position + _FRAME.size <= size:
        opcode, length = _FRAME.unpack(stream.read(_FRAME.size))
        position += _FRAME.size
        if opcode in (0, Opcode.DATA_END, Opcode.FOOTER):
            return
        if opcode == Opcode.CHUNK:
            yield from _chunk(stream.read(min(length, size - position)), length)
        elif opcode in (Opcode.SCHEMA, Opcode.CHANNEL, Opcode.MESSAGE):
            if position + length <= size:
                yield _record(opcode, stream.read(length))
        position += length
        stream.seek(position)


def _chunk(content: bytes, length: int) -> Iterator[Record]:
    """Yield the records in a chunk of which `content` may be only the beginning."""
    if len(content) == length:
        chunk = Chunk.read(ReadDataStream(BytesIO(content)))
        try:
            data = get_chunk_data_stream(chunk)[0].read(chunk.uncompressed_size or 1)
        except Exception:  # each compressor raises its own
            return
        if chunk.uncompressed_crc and zlib.crc32(data) != chunk.uncompressed_crc:
            return
    else:
        if len(content) < _CHUNK_FIXED:
            return
        (name_length,) = struct.unpack_from('<I', content, _CHUNK_FIXED - 4)
        if name_length:  # compressed: half of it cannot be read
            return
        data = content[_CHUNK_FIXED + 8 :]
    position = 0
    while position + _FRAME.size <= len(data):
        opcode, size = _FRAME.unpack_from(data, position)
        position += _FRAME.size
        if position + size > len(data):
            return
        if opcode in (Opcode.SCHEMA, Opcode.CHANNEL, Opcode.MESSAGE):
            yield _record(opcode, data[position : position + size])
        position += size


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
        self.connections: list[Connection] = []

    def open(self) -> None:
        """Scan the file for its topics."""
        schemas: dict[int, Schema] = {}
        channels: dict[int, Channel] = {}
        counts: dict[int, int] = {}
        for record in self._records():
            if isinstance(record, Message):
                counts[record.channel_id] = counts.get(record.channel_id, 0) + 1
            elif isinstance(record, Schema):
                schemas[record.id] = record
            else:
                channels[record.id] = record
        self.connections = [
            self._connection(channel, schemas.get(channel.schema_id), counts.get(number, 0))
            for number, channel in channels.items()
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
        for record in self._records():
            if isinstance(record, Message) and record.channel_id in wanted:
                time = record.log_time
                if (start is None or time >= start) and (stop is None or time < stop):
                    yield wanted[record.channel_id], time, record.data

    def _records(self) -> Iterator[Record]:
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
    copy = McapFile(target)
    schemas: dict[int, Any] = {}
    channels: dict[int, int] = {}
    try:
        with source.open('rb') as stream:
            for record in records(stream):
                if isinstance(record, Schema):
                    schemas[record.id] = record
                elif isinstance(record, Channel):
                    if record.id not in channels and record.schema_id in schemas:
                        schema = schemas[record.schema_id]
                        content = (schema.encoding, schema.data)
                        channels[record.id] = copy.add_channel(
                            record.topic, schema.name, content, record.metadata
                        )
                elif record.channel_id in channels:
                    times = record.log_time, record.publish_time
                    copy.write(channels[record.channel_id], record.data, *times, record.sequence)
        copy.finish()
    except BaseException:
        copy.abandon()
        raise
    return copy
