"""Packed files: what may be far larger than it looks has a bound before it is unpacked."""

from bz2 import BZ2Decompressor
from collections.abc import Iterator
import contextlib
import io
from pathlib import Path
import shutil
from typing import Any, BinaryIO
import zipfile

from lz4.frame import LZ4FrameDecompressor
import numpy as np
from zstandard import ZstdDecompressor, ZstdError

from ..exceptions import reason_of, RecordingError, RobotIdError
from .atomic import open_regular

# Joint states shrink by 3 to 10 when packed, those of a robot at rest by 50; a file may hold so
# many times its size, and any file so much [bytes].
RATIO, FLOOR = 100, 64 << 20
# Of one chunk of a recording [bytes]: recorders write some megabytes.
MAX_CHUNK = 128 << 20
_BLOCK = 1 << 20


def unpack_limit(packed: int) -> int:
    """Return how many bytes so many packed ones may hold."""
    return max(FLOOR, RATIO * packed)


def check_unpacked(path: Path, size: int) -> None:
    """RecordingError where a file says that it holds more than a recording of its size can."""
    packed = path.stat().st_size
    if size > unpack_limit(packed):
        raise RecordingError(
            f"'{path}' has {packed / 1e6:.3g} MB and would be {size / 1e6:.3g} MB unpacked: it is "
            'damaged or no recording, give another file'
        )


def unpack(data: bytes, kind: str, limit: int) -> bytes:
    """Undo 'zstd', 'lz4', 'bz2' or '', none; ValueError: damaged, another, more than `limit`."""
    if not kind:
        return data
    # One byte more than may be: whether there is more shows only so.
    try:
        if kind == 'lz4':
            content = bytes(LZ4FrameDecompressor().decompress(data, max_length=limit + 1))
        elif kind == 'bz2':
            content = BZ2Decompressor().decompress(data, limit + 1)
        elif kind == 'zstd':
            with ZstdDecompressor().stream_reader(data, read_across_frames=True) as stream:
                content = stream.read(limit + 1)
        else:
            raise ValueError(f'compression {kind!r} is not known')
    except (RuntimeError, OSError, ZstdError) as error:
        raise ValueError(str(error)) from error
    if len(content) > limit:
        raise ValueError(f'it holds more than {limit} bytes')
    return content


def unpack_file(path: Path, target: Path) -> None:
    """Undo the compression of a `.zstd` file; RecordingError: damaged, or holds too much."""
    with open_regular(path) as source, target.open('wb') as copy:
        with ZstdDecompressor().stream_reader(source, read_across_frames=True) as stream:
            with damage_errors(path, 'copy it again'):
                shutil.copyfileobj(BoundedStream(path, stream), copy, _BLOCK)


def load_npz(path: Path) -> Any:
    """Open a `.npz` file, whose arrays are unpacked one at a time, as `check_unpacked`."""
    with open_regular(path) as stream, zipfile.ZipFile(stream) as archive:
        check_unpacked(path, sum(info.file_size for info in archive.infolist()))
    return np.load(path, allow_pickle=False)


@contextlib.contextmanager
def damage_errors(
    path: str | Path,
    remedy: str = 'copy or export it again',
    kind: type[RobotIdError] = RecordingError,
    what: str = 'is damaged',
) -> Iterator[None]:
    """Turn whatever a parser says about damaged bytes into one sentence."""
    try:
        yield
    except RobotIdError:
        raise
    except PermissionError as error:
        raise kind(f"'{path}' cannot be read: permission denied") from error
    except Exception as error:
        raise kind(f"'{path}' {what} ({reason_of(error)}): {remedy}") from error


class BoundedStream(io.RawIOBase):
    """A stream of unpacked bytes that ends with an error where it holds too much."""

    def __init__(self, path: Path, stream: BinaryIO | io.BufferedIOBase):
        self._path, self._stream, self._size = path, stream, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read as much as is there and fits."""
        data = self._stream.read(len(buffer))
        self._size += len(data)
        check_unpacked(self._path, self._size)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the stream behind it."""
        self._stream.close()
        super().close()
