"""Records of the MCAP format: frames, chunks, messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
import os
from pathlib import Path
import struct
from typing import BinaryIO, NamedTuple
from zlib import crc32

from mcap.exceptions import McapError
from mcap.opcode import Opcode
import numpy as np

from ...atomic import file_errors, open_regular
from ...bounded import unpack
from ...remote.remote_file import RemoteFile

MAGIC = b'\x89MCAP0\r\n'
FRAME = struct.Struct('<BQ')  # opcode, length
MESSAGE = struct.Struct('<HIQQ')  # channel, sequence, received and published [ns]
CHUNK = struct.Struct('<QQQII')
_HEAD = np.dtype([('channel', '<u2'), ('sequence', '<u4'), ('received', '<u8')])
# Records of equal length from which on more are looked for at once: topics that take turns have
# short runs. Of more than so many, at first.
FEW, MANY = 4, 64
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


def is_mcap(path: Path | RemoteFile) -> bool:
    """Whether a file starts as MCAP."""
    with open_regular(path) as stream, file_errors(path):
        return stream.read(len(MAGIC)) == MAGIC


def footer(stream: BinaryIO) -> int | None:
    """Return where the summary starts (0: there is none), None in a file without footer."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _FOOTER_SIZE))
    tail = stream.read(_FOOTER_SIZE)
    if not tail.endswith(MAGIC) or tail[:1] != bytes([Opcode.FOOTER]):
        return None
    return int.from_bytes(tail[9:17], 'little')


def chunk_of(content: bytes) -> Chunk:
    """Return what the beginning of a chunk says of it."""
    if len(content) < CHUNK.size:
        return Chunk(0, 2**64, 0)
    return Chunk(*CHUNK.unpack(content)[:3])


def unpack_chunk(content: bytes, limit: int, whole: bool) -> bytes:
    """
    Return what is in a chunk; of an uncompressed one that was cut, its beginning.

    Parameters
    ----------
    content : the record
    limit : bytes that it may hold
    whole : refuse one that was cut

    Raises
    ------
    one of MALFORMED : it is damaged

    """
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


def records_of(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield opcode and content of the whole records in some bytes."""
    start = 0
    while start + FRAME.size <= len(data):
        opcode, size = FRAME.unpack_from(data, start)
        start += FRAME.size + size
        if start > len(data):
            return
        yield opcode, data[start - size : start]


def messages_in(data: bytes, channels: Collection[int], low: int, high: int) -> Messages:
    """Return the messages of channels at `low <= t < high` [ns] among records in some bytes."""
    starts, lengths = _message_frames(data)
    size = MESSAGE.size
    raw = np.frombuffer(data, np.uint8)
    heads = raw[starts[:, None] + np.arange(_HEAD.itemsize)].view(_HEAD)[:, 0]
    received = heads['received']
    chosen = np.isin(heads['channel'], list(channels)) & (received >= low)
    if high < 2**64:
        chosen &= received < high
    return Messages(received[chosen], data, starts[chosen] + size, lengths[chosen] - size)


def _equal_frames(data: bytes, position: int, step: int) -> int:
    """Return how many records of so many bytes in a row have the frame of the first."""
    rows, seen, looked = (len(data) - position) // step, 0, MANY
    heads = np.ndarray((rows, FRAME.size), np.uint8, data, position, (step, 1))
    while seen < rows:
        same = (heads[seen:looked] == heads[0]).all(axis=1)
        if not same.all():
            return seen + int(np.argmin(same))
        seen, looked = looked, looked * FEW
    return rows


def _message_frames(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Return where the messages among the records in some bytes start, and how long they are."""
    runs = list[tuple[int, int, int]]()  # of equal records: the first one's content, length, count
    position, end, before, repeated = 0, len(data) - FRAME.size, b'', 0
    while position <= end:
        frame = data[position : position + FRAME.size]
        opcode, length = FRAME.unpack(frame)
        step, count = FRAME.size + length, 1
        if position + step > len(data):
            break
        repeated = repeated + 1 if frame == before else 0
        if repeated == FEW:  # the messages of one topic are mostly of one length
            count = _equal_frames(data, position, step)
        if opcode == Opcode.MESSAGE and length >= MESSAGE.size:
            runs.append((position + FRAME.size, length, count))
        position, before = position + step * count, frame
    starts, lengths, counts = np.array(runs, np.intp).reshape(-1, 3).T
    place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    lengths = np.repeat(lengths, counts)
    return np.repeat(starts, counts) + (FRAME.size + lengths) * place, lengths
