"""Which files are tables, of which format, and which folders are one table."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
import dataclasses
import functools
from pathlib import Path
import re

import numpy as np

from ...core.finding_codes import finding
from ...exceptions import RecordingError, RobotIdError
from ..atomic import file_errors, open_regular
from ..bounded import damage_errors
from .arrays import is_lerobot, read_hdf5, read_mat, read_npy, read_npz, read_parquet
from .column_names import group, understand
from .joint_table import JointTable
from .read_options import BAG_SUFFIXES, ReadOptions, SUFFIXES
from .stamps import continuous
from .table import check_rows, Columns, ColumnTable, from_arrays
from .table_joints import read_joint_table
from .text_table import read_text_table

Reader = Callable[[Path], ColumnTable]


_MAGIC: tuple[tuple[bytes, Reader], ...] = (
    (b'PK\x03\x04', read_npz),
    (b'\x93NUMPY', read_npy),
    (b'\x89HDF\r\n\x1a\n', read_hdf5),
    (b'MATLAB 5.0', read_mat),
    (b'PAR1', read_parquet),
)
# In a workbook of Excel, which is an archive as .npz is.
_WORKBOOK = b'[Content_Types].xml'
# First bytes by which a file without a known ending is a text, and signs that no text has.
_SAMPLE, _BINARY = 4096, bytes({*range(9), *range(14, 27), *range(28, 32)})
# Where the header of MATLAB's own files ends and that of HDF5 begins, and where an archive has the
# name of its first file.
_USER_BLOCK, _ENTRY = 512, 30
# Of bags, of which short ones hold no byte that tells them from a text.
_BAGS = (b'\x89MCAP', b'SQLite format 3', b'#ROSBAG', b'\x28\xb5\x2f\xfd')


def table_reader(path: Path) -> Reader | None:
    """
    Return what reads a table, by its first bytes and its name; None for files that are none.

    A folder is a data set of LeRobot, or tables of one quantity each.
    """
    if path.is_dir():
        if is_lerobot(path):
            return read_parquet
        with file_errors(path):
            files = [file for file in path.iterdir() if file.is_file()]
        if any(file.suffix in BAG_SUFFIXES for file in files):
            return None
        tables = (file for file in files if file.suffix.lower() in SUFFIXES)
        readers = {file: reader for file in tables if (reader := table_reader(file))}
        return functools.partial(_read_folder, files=readers) if len(readers) > 1 else None
    with open_regular(path) as stream, file_errors(path):
        start = stream.read(_SAMPLE)
    if start[_ENTRY:].startswith(_WORKBOOK):
        raise RecordingError(f"'{path}' is a workbook of Excel: save its sheet as CSV")
    if start.startswith(_BAGS):
        return None
    if start[_USER_BLOCK:].startswith(b'\x89HDF'):
        return read_hdf5
    for magic, reader in _MAGIC:
        if start.startswith(magic):
            return reader
    if path.suffix.lower() == '.mat':
        return read_mat
    if start[:2] in (b'\xff\xfe', b'\xfe\xff', b'\x1f\x8b'):  # UTF-16, gzip
        return read_text_table
    if start.translate(None, _BINARY) != start:
        return None
    return read_text_table if start else None


def open_table(path: Path, options: ReadOptions) -> JointTable | None:
    """
    Read a table, None for other files; the one read last is kept, for several passes.

    Raises RobotIdError where it is damaged, lacks something, or needs a package.
    """
    with file_errors(path):
        state = path.stat()
    return _read(path.absolute(), str(path), state.st_mtime_ns, state.st_size, options)


@functools.lru_cache(maxsize=1)
def _read(
    path: Path, shown: str, _modified: int, _size: int, options: ReadOptions
) -> JointTable | None:
    if (reader := table_reader(path)) is None:
        return None
    with damage_errors(shown):
        table = reader(Path(shown))
        if table.has_header and not options.columns and (clock := check_rows(table)):
            options = dataclasses.replace(options, columns=(('time', clock),))
        return continuous(read_joint_table(table, options), shown)


def _read_folder(path: Path, files: Mapping[Path, Reader]) -> ColumnTable:
    """
    Put the tables of a folder beside each other; a file's name says what its columns do not.

    Where each has times of its own, rows follow one another, empty in the columns of the others.
    """
    parts: dict[str, Columns] = {}
    labels: dict[str, tuple[str, ...]] = {}
    for file in sorted(files, key=lambda file: file.name):
        try:
            with damage_errors(file):
                columns = _columns(file, files[file](file), labels)
        except RobotIdError:
            if files[file] is read_text_table:  # about the others
                continue
            raise
        said = _said(columns)
        if {'position', 'effort'} <= said.keys():
            raise RecordingError(
                f"'{path}' holds tables that are logs of their own, as '{file.name}' is: give "
                'these files, not their folder'
            )
        if said:
            parts[file.name] = columns
    if len(parts) < 2:
        raise RecordingError(
            f"'{path}' holds no recording (.mcap, .db3 or .bag), nor tables whose names say what "
            'is in them, as positions.csv and efforts.csv: give another folder, or rename these'
        )
    joined, left_out = _below(parts), list[str]()
    if joined is None:  # beside each other, those with as many rows as most
        lengths = {name: len(next(iter(columns.values()))) for name, columns in parts.items()}
        counts = Counter(lengths.values())
        length = max(counts, key=lambda n: (counts[n], n))
        left_out = [name for name in parts if lengths[name] != length]
        joined = {}
        for name in [name for name in parts if name not in left_out]:
            joined = {**parts[name], **joined}
    tables = [name for name in parts if name not in left_out]
    note = finding('tables_joined', tables=tables, left_out=tuple(left_out))
    return from_arrays(str(path), joined, labels, notes=(note,))


def _columns(file: Path, table: ColumnTable, labels: dict[str, tuple[str, ...]]) -> Columns:
    """Return columns that say what they are, and the others together by the name of their file."""
    columns = table.read(table.names)
    told = {name: values for name, values in columns.items() if _said([name])}
    other = {name: values for name, values in columns.items() if name not in told}
    if other:
        name = re.sub(r'\.[a-z]+$', '', file.stem)
        told[name] = np.squeeze(np.column_stack(list(other.values())))
        if table.has_header:
            labels[name] = tuple(other)
    return told


def _said(names: Iterable[str]) -> dict[str, str]:
    """Return which quantities names speak of, and the first column of each."""
    groups = group((re.sub(r'\d+$', '', name) for name in names), ())
    return {found.meaning.quantity: found.members[0][1] for found in reversed(groups)}


def _below(parts: Mapping[str, Columns]) -> Columns | None:
    """Return the rows of all files in turn, None unless each has times, which differ."""
    names = [_said(columns).get('time', '') for columns in parts.values()]
    if '' in names or len({m.unit for name in names if (m := understand(name))}) > 1:
        return None
    times = [columns[name] for name, columns in zip(names, parts.values(), strict=True)]
    if all(np.array_equal(time, times[0]) for time in times):
        return None
    starts = np.cumsum([0, *map(len, times)])
    merged: Columns = {names[0]: np.concatenate(times)}
    for start, own, columns in zip(starts, names, parts.values(), strict=False):
        for other in columns.keys() - {own}:
            values = columns[other]
            empty = np.full((starts[-1], *values.shape[1:]), np.nan)
            merged.setdefault(other, empty)[start : start + len(values)] = values
    return merged
