"""Which files are tables, and of which format."""

from collections.abc import Callable
import functools
from pathlib import Path

from ...exceptions import RecordingError, RobotIdError
from ..atomic import file_errors, open_regular
from .array_files import read_hdf5, read_mat, read_npy, read_npz
from .joint_table import JointTable, read_joint_table
from .parquet_table import is_lerobot, read_parquet
from .read_options import ReadOptions
from .table import Table
from .text_table import read_text_table

Reader = Callable[[Path], Table]
TEXT_SUFFIXES = ('.csv', '.tsv', '.txt', '.dat', '.asc', '.gz')
SUFFIXES = (*TEXT_SUFFIXES, '.npz', '.npy', '.mat', '.h5', '.hdf5', '.parquet')
_MAGIC: tuple[tuple[bytes, Reader], ...] = (
    (b'PK\x03\x04', read_npz),
    (b'\x93NUMPY', read_npy),
    (b'\x89HDF\r\n\x1a\n', read_hdf5),
    (b'MATLAB 5.0', read_mat),
    (b'PAR1', read_parquet),
)
# Where the header of MATLAB's own files ends and that of HDF5 begins.
_USER_BLOCK = 512


def table_reader(path: Path) -> Reader | None:
    """
    Return what reads a table, by its first bytes and its name; None for files that are none.

    Parameters
    ----------
    path : file, or folder of a data set of LeRobot

    """
    if path.is_dir():
        return read_parquet if is_lerobot(path) else None
    with open_regular(path) as stream, file_errors(path):
        start = stream.read(_USER_BLOCK + 8)
    if start[_USER_BLOCK:].startswith(b'\x89HDF'):
        return read_hdf5
    for magic, reader in _MAGIC:
        if start.startswith(magic):
            return reader
    if path.suffix.lower() == '.mat':
        return read_mat
    return read_text_table if path.suffix.lower() in TEXT_SUFFIXES and start else None


def open_table(path: Path, options: ReadOptions) -> JointTable:
    """
    Read a table; the one read last is kept, for those who read it in several passes.

    Raises
    ------
    RobotIdError : it is damaged, lacks something, or needs a package

    """
    with file_errors(path):
        state = path.stat()
    return _read(path.absolute(), str(path), state.st_mtime_ns, state.st_size, options)


@functools.lru_cache(maxsize=1)
def _read(path: Path, shown: str, _modified: int, _size: int, options: ReadOptions) -> JointTable:
    reader = table_reader(path)
    assert reader is not None
    try:
        return read_joint_table(reader(Path(shown)), options)
    except RobotIdError:
        raise
    except Exception as error:
        reason = str(error).split('\n')[0].rstrip('.') or type(error).__name__
        raise RecordingError(
            f"'{shown}' is damaged ({reason}): copy or export it again"
        ) from error
