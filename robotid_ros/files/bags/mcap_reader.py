"""
MCAP files of every state: finished, cut short by a killed recorder or a full disk, damaged.

The format is a sequence of records, each with its length in front. They are walked one after the
other, chunks are unpacked one at a time, and what is damaged is left out, counted and told; the
index at the end of a finished file only says where to go on behind a record that is damaged. So
everything up to the last whole record of a file without index can be read; of an uncompressed
chunk that was cut, also its first messages.

The libraries stop earlier. Of 100,000 joint states cut at 61 % of the file this reader returns
61,100; the `StreamReader` of `mcap` 59,100 to 59,700, as it loses the cut chunk, and `rosbags`
none. With one wrong byte at a third of the whole file it returns 96,400, all but the damaged
chunk, where `mcap` stops after 31,000.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
import contextlib
from dataclasses import dataclass, field
from io import BytesIO
import os
from pathlib import Path
import struct
from typing import BinaryIO, NamedTuple
from zlib import crc32

from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Schema
import numpy as np
from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
)

from ...core.finding_codes import finding
from ...core.findings import Finding
from ..atomic import file_errors, open_regular
from ..bounded import MAX_CHUNK, unpack, unpack_limit

MAGIC = b'\x89MCAP0\r\n'
FRAME = struct.Struct('<BQ')  # opcode, length
MESSAGE = struct.Struct('<HIQQ')  # channel, sequence, received and published [ns]
CHUNK = struct.Struct('<QQQII')
_HEAD = np.dtype([('channel', '<u2'), ('sequence', '<u4'), ('received', '<u8')])
_FOOTER_SIZE = 37  # footer and magic
MALFORMED = (ValueError, struct.error, McapError, KeyError)


class Messages(NamedTuple):
    """
    Messages that lie somewhere in some bytes.

    Attributes
    ----------
    received : (M,) times of reception [ns]
    data : the bytes
    starts, sizes : (M,) where each message lies in them

    """

    received: np.ndarray
    data: bytes
    starts: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, received: Sequence[int], payloads: Sequence[bytes]) -> Messages:
        """Put messages behind each other."""
        sizes = np.fromiter(map(len, payloads), np.intp, len(payloads))
        starts = np.cumsum(sizes) - sizes
        return cls(np.array(received, np.int64), b''.join(payloads), starts, sizes)

    @property
    def total(self) -> int:
        """M."""
        return len(self.starts)

    def rows(self, index: np.ndarray | slice) -> Messages:
        """Return some of the messages."""
        return Messages(self.received[index], self.data, self.starts[index], self.sizes[index])

    def payloads(self) -> list[bytes]:
        """Return the messages one by one."""
        ends = (self.starts + self.sizes).tolist()
        return [self.data[a:b] for a, b in zip(self.starts.tolist(), ends, strict=True)]

    def matrix(self, rows: np.ndarray) -> np.ndarray:
        """Return messages of the same size as rows of bytes, (M, size)."""
        starts, size = self.starts[rows], int(self.sizes[rows[0]])
        steps = np.diff(starts)
        if len(steps) == 0 or (steps == steps[0]).all():
            step = int(steps[0]) if len(steps) else size
            place = int(starts[0])
            return np.ndarray((len(rows), size), np.uint8, self.data, place, (step, 1))
        joined = b''.join(self.data[start : start + size] for start in starts.tolist())
        return np.frombuffer(joined, np.uint8).reshape(-1, size)


@dataclass
class Chunk:
    """
    A chunk, or all messages that are in none.

    Attributes
    ----------
    start, stop : times of its first and last message [ns]
    size : bytes, unpacked
    counts : messages of each channel, as its index says

    """

    start: int
    stop: int
    size: int
    counts: Counter[int] = field(default_factory=Counter)

    def may_hold(self, channels: Collection[int], start: int, stop: int) -> bool:
        """Return whether messages of these channels and times [ns] may be in it."""
        if self.counts.keys().isdisjoint(channels):
            return False
        # Times that are no interval say nothing.
        return self.start > self.stop or (self.stop >= start and self.start < stop)


def footer(stream: BinaryIO) -> int | None:
    """Return where the summary starts (0: there is none), None in a file without footer."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _FOOTER_SIZE))
    tail = stream.read(_FOOTER_SIZE)
    if not tail.endswith(MAGIC) or tail[:1] != bytes([Opcode.FOOTER]):
        return None
    return int.from_bytes(tail[9:17], 'little')


def _unpack_chunk(content: bytes, limit: int, whole: bool) -> bytes:
    """Return what is in a chunk; if not `whole`, of an uncompressed one that was cut as well."""
    _, _, size, crc, name_size = CHUNK.unpack_from(content)
    start = CHUNK.size + name_size + 8
    kind, packed = content[CHUNK.size : start - 8].decode(), content[start:]
    cut = int.from_bytes(content[start - 8 : start], 'little') != len(packed)
    # Half of a compressed chunk cannot be read.
    if cut and (kind or whole):
        raise ValueError('a chunk has another length than it says')
    if size > limit:
        raise ValueError(f'a chunk would be {size} bytes unpacked')
    data = unpack(packed, kind, size)
    if not cut and (len(data) != size or (crc and crc32(data) != crc)):
        raise ValueError('a chunk has another checksum')
    return data


def _frames(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield opcode, start and length of the content of the whole records in some bytes."""
    start, end = FRAME.size, len(data)
    while start <= end:
        opcode, length = FRAME.unpack_from(data, start - FRAME.size)
        if start + length > end:
            return
        yield opcode, start, length
        start += length + FRAME.size


def records_of(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield opcode and content of the whole records in some bytes."""
    for opcode, start, length in _frames(data):
        yield opcode, data[start : start + length]


def messages_in(data: bytes, channels: Collection[int], low: int, high: int) -> Messages:
    """Return the messages of channels at `low <= t < high` [ns] among records in some bytes."""
    size, message = MESSAGE.size, Opcode.MESSAGE
    places = [(at, n) for opcode, at, n in _frames(data) if opcode == message and n >= size]
    starts, lengths = np.array(places, np.intp).reshape(-1, 2).T
    raw = np.frombuffer(data, np.uint8)
    heads = raw[starts[:, None] + np.arange(_HEAD.itemsize)].view(_HEAD)[:, 0]
    received = heads['received']
    chosen = np.isin(heads['channel'], list(channels)) & (received >= low)
    if high < 2**64:
        chosen &= received < high
    return Messages(received[chosen], data, starts[chosen] + size, lengths[chosen] - size)


_FORMATS = {'ros2msg': MessageDefinitionFormat.MSG, 'ros2idl': MessageDefinitionFormat.IDL}
_END = (Opcode.DATA_END, Opcode.FOOTER)
# Messages outside of chunks that are read at once.
BLOCK_BYTES = 1 << 20


class McapReader:
    """
    Reads an MCAP file; its topics are described as the storage readers of rosbags do.

    Attributes
    ----------
    connections : topics, with the number of their messages
    channels : {number: channel and its schema}
    promised : messages that the index of a finished file counts, 0 where there is none
    lost : {position in the file: what is damaged there}

    """

    def __init__(self, path: Path):
        self.path = path
        self.channels: dict[int, tuple[Channel, Schema | None]] = {}
        self.connections: list[Connection] = []
        self.promised = 0
        self.lost: dict[int, Chunk] = {}
        self.finished = False
        self._chunks: dict[int, Chunk] = {}
        self._schemas: dict[int, Schema] = {}
        self._offsets: list[int] = []

    def open(self) -> None:
        """Walk over the file for its topics; only chunks with unknown ones are unpacked."""
        with open_regular(self.path) as stream, file_errors(self.path):
            summary = footer(stream)
            self.finished = summary is not None
            if summary:
                self._read_summary(stream, summary)
            loose = self._chunks[0] = Chunk(0, 2**64, 0)
            last = None
            limit = unpack_limit(self.path.stat().st_size)
            for position, opcode, length in self._records(stream):
                if opcode == Opcode.CHUNK:
                    head = stream.read(CHUNK.size)
                    known = len(head) == CHUNK.size
                    chunk = Chunk(*CHUNK.unpack(head)[:3]) if known else Chunk(0, 2**64, 0)
                    self._complete(stream, last)
                    limit -= chunk.size
                    last = (position, length) if limit >= 0 else None
                    if last is None:  # the file would hold too much with it
                        self.lost[position] = chunk
                        limit += chunk.size
                    else:
                        self._chunks[position] = chunk
                elif opcode == Opcode.MESSAGE_INDEX and last and length >= 6:
                    channel = int.from_bytes(stream.read(2), 'little')
                    self._chunks[last[0]].counts[channel] += (length - 6) // 16
                elif opcode == Opcode.MESSAGE and length >= MESSAGE.size:
                    loose.counts[int.from_bytes(stream.read(2), 'little')] += 1
                elif opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                    self._declare(opcode, stream.read(length))
            self._complete(stream, last, final=not self.finished)
        counts = sum((chunk.counts for chunk in self._chunks.values()), Counter())
        self.connections = [
            self._connection(channel, schema, counts[number])
            for number, (channel, schema) in self.channels.items()
        ]

    @property
    def notes(self) -> tuple[Finding, ...]:
        """Say what is missing, as far as it was read."""
        notes = [] if self.finished else [finding('cut_short')]
        if lost := self.lost.values():
            start = min((c.start for c in self._chunks.values() if c.start), default=0)
            times = [(t - start) * 1e-9 for c in lost if c.counts for t in (c.start, c.stop)]
            ends = {'start': min(times, default=None), 'stop': max(times, default=None)}
            count = sum(chunk.counts.total() for chunk in lost)
            parts = {'file': self.path.name, 'parts': len(lost), 'count': count}
            notes.append(finding('damaged_parts', **parts, **ends))
        count = sum(connection.msgcount for connection in self.connections)
        if self.promised > count:
            figures = {'promised': self.promised, 'count': count}
            notes.append(finding('messages_missing', file=self.path.name, **figures))
        return tuple(notes)

    def close(self) -> None:
        """Nothing stays open between reads."""

    def blocks(
        self, channels: Collection[int], start: int | None = None, stop: int | None = None
    ) -> Iterator[Messages]:
        """Yield the messages of channels between two times [ns], those of a chunk at once."""
        low, high = start or 0, 2**64 if stop is None else stop
        loose, size = list[bytes](), 0  # messages outside of chunks
        with open_regular(self.path) as stream, file_errors(self.path):
            for position, opcode, length in self._records(stream):
                chunk = self._chunks.get(position) if opcode == Opcode.CHUNK else None
                wanted = chunk is not None and chunk.may_hold(channels, low, high)
                if opcode == Opcode.MESSAGE:
                    loose.append(FRAME.pack(opcode, length) + stream.read(length))
                    size += length
                if loose and (wanted or size > BLOCK_BYTES):
                    yield messages_in(b''.join(loose), channels, low, high)
                    loose, size = [], 0
                if wanted:
                    data = self._unpacked_chunk(stream, position, length)
                    yield messages_in(data, channels, low, high)
        if loose:
            yield messages_in(b''.join(loose), channels, low, high)

    def _records(self, stream: BinaryIO) -> Iterator[tuple[int, int, int]]:
        """Yield position, opcode and length of the records; the stream is at their content."""
        size, position = stream.seek(0, os.SEEK_END), len(MAGIC)
        while position + FRAME.size <= size:
            stream.seek(position)
            opcode, length = FRAME.unpack(stream.read(FRAME.size))
            if opcode in _END:
                return
            behind = position + FRAME.size + length
            # Behind what is no record the index knows the next chunk.
            after = bisect.bisect_right(self._offsets, position)
            known = self._offsets[after] if after < len(self._offsets) else 0
            if not opcode or behind > (known or size):
                if self.finished:
                    self.lost.setdefault(position, Chunk(0, 0, 0))
                elif opcode == Opcode.CHUNK:
                    yield position, opcode, size - position - FRAME.size
                if not known:
                    return
                position = known
                continue
            yield position, opcode, length
            position = behind

    def _unpacked_chunk(self, stream: BinaryIO, position: int, length: int) -> bytes:
        """Return the records of a chunk, none of a damaged one."""
        stream.seek(position + FRAME.size)
        limit = min(MAX_CHUNK, unpack_limit(self.path.stat().st_size))
        try:
            return _unpack_chunk(stream.read(length), limit, whole=self.finished)
        except MALFORMED:
            # The end of a file that was cut short is no damage that needs saying again.
            if self.finished or position + FRAME.size + length < stream.seek(0, os.SEEK_END):
                self.lost[position] = self._chunks[position]
            return b''

    def _complete(
        self, stream: BinaryIO, chunk: tuple[int, int] | None, final: bool = False
    ) -> None:
        """Unpack a chunk whose index is missing or names unknown channels."""
        if chunk is None:
            return
        found = self._chunks[chunk[0]]
        if found.counts and found.counts.keys() <= self.channels.keys() and not final:
            return
        counts: Counter[int] = Counter()
        for opcode, content in records_of(self._unpacked_chunk(stream, *chunk)):
            if opcode == Opcode.MESSAGE:
                counts[int.from_bytes(content[:2], 'little')] += 1
            else:
                self._declare(opcode, content)
        found.counts = counts or found.counts

    def _declare(self, opcode: int, content: bytes) -> None:
        """Remember a schema or a channel; without it its messages are of no known topic."""
        stream = ReadDataStream(BytesIO(content))
        with contextlib.suppress(*MALFORMED):
            if opcode == Opcode.SCHEMA:
                schema = Schema.read(stream)
                self._schemas[schema.id] = schema
            elif opcode == Opcode.CHANNEL:
                channel = Channel.read(stream)
                self.channels[channel.id] = channel, self._schemas.get(channel.schema_id)

    def _read_summary(self, stream: BinaryIO, position: int) -> None:
        """Read topics, places of chunks and the count of the messages."""
        stream.seek(position)
        for opcode, content in records_of(stream.read()):
            if opcode == Opcode.CHUNK_INDEX:
                self._offsets.append(int.from_bytes(content[16:24], 'little'))
            elif opcode == Opcode.STATISTICS:
                self.promised = int.from_bytes(content[:8], 'little')
            else:
                self._declare(opcode, content)
        self._offsets.sort()

    def _connection(self, channel: Channel, schema: Schema | None, count: int) -> Connection:
        form = _FORMATS.get(schema.encoding) if schema else None
        text = schema.data.decode(errors='replace') if schema and form else ''
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
