"""Files of named arrays: NumPy, MATLAB, HDF5, Parquet, Arrow, and data sets of LeRobot."""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import functools
import json
from pathlib import Path
import struct
from typing import Any
import zlib

import numpy as np

from ...exceptions import RecordingError
from ..atomic import open_regular, read_text
from ..bounded import check_unpacked, load_npz
from .read_options import natural_order
from .table import Columns, from_arrays, labels_of, nanoseconds, optional_package, Table

_MAT_HEADER, _MAT_COMPRESSED = 128, 15
_BLOCK = 1 << 22  # of what is unpacked only to be counted [bytes]


def read_npz(path: Path) -> Table:
    """Read `.npz`, or the one array of `.npy`."""
    with load_npz(path) as archive:
        arrays = {}
        for name in archive.files:
            with contextlib.suppress(ValueError):  # objects of Python
                arrays[name] = archive[name]
    return _table(path, dict(_numeric(arrays)))


def read_npy(path: Path) -> Table:
    """Read `.npy`: a record array, or a matrix without names."""
    array = np.load(path, allow_pickle=False)
    if array.dtype.names:
        return from_arrays(str(path), {name: array[name] for name in array.dtype.names})
    if array.ndim != 2:
        raise RecordingError(f"'{path}' holds no matrix: save one row per sample")
    return _without_names(path, array)


def _table(path: Path, arrays: Mapping[str, np.ndarray]) -> Table:
    """Make a table of named arrays; one alone is a matrix without names."""
    (alone, *others) = [a for a in arrays.values() if a.size > 1] or [np.array([])]
    if others or alone.ndim != 2 or min(alone.shape) < 2 or alone.dtype.kind not in 'fiu':
        return from_arrays(str(path), arrays)
    return _without_names(path, alone)


def _without_names(path: Path, array: np.ndarray) -> Table:
    array = array if array.shape[0] >= array.shape[1] else array.T
    columns = {f'column{k + 1}': array[:, k] for k in range(array.shape[1])}
    return Table(
        str(path), dict.fromkeys(columns, 0), lambda names: {n: columns[n] for n in names}, False
    )


def read_mat(path: Path) -> Table:
    """Read a MAT file of version 4 to 7.2, structures as `name.field`."""
    from scipy.io import loadmat

    _check_mat(path)
    content = loadmat(path, simplify_cells=True)
    content = {k: v for k, v in content.items() if not k.startswith('__')}
    return _table(path, dict(_flat(content)))


def read_hdf5(path: Path) -> Table:
    """Read HDF5, groups as `group.name`; a MAT file of version 7.3 has its axes reversed."""
    h5py = optional_package('h5py', str(path))
    arrays: dict[str, np.ndarray] = {}
    size = 0

    def visit(name: str, item: Any) -> None:
        nonlocal size
        dtype = getattr(item, 'dtype', None)
        if dtype is None or name.startswith('#'):
            return
        if dtype.kind in 'fiuV' or h5py.check_string_dtype(dtype):
            size += item.nbytes
            check_unpacked(path, size)
            arrays[name.replace('/', '.')] = np.asarray(item[()])

    with h5py.File(path) as file:
        file.visititems(visit)
    return from_arrays(str(path), {name: value.T for name, value in _numeric(arrays)})


def _check_mat(path: Path) -> None:
    """Raise an error where the compressed variables of a file, version 5 to 7.2, are too large."""
    with open_regular(path) as stream:
        order = '<' if stream.read(_MAT_HEADER)[-2:] == b'IM' else '>'
        size = 0
        while len(tag := stream.read(8)) == 8:
            kind, length = struct.unpack(f'{order}II', tag)
            unpacker, packed = zlib.decompressobj(), stream.read(length)
            while kind == _MAT_COMPRESSED and packed:
                size += len(unpacker.decompress(packed, _BLOCK))
                packed = unpacker.unconsumed_tail
                check_unpacked(path, size)


def _flat(content: Any, name: str = '') -> Iterator[tuple[str, np.ndarray]]:
    """Yield the arrays of nested structures, of numbers or of words."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield from _flat(value, f'{name}.{key}' if name else str(key))
    elif isinstance(content, np.ndarray) and content.dtype.kind in 'fiubU':
        yield name, content
    elif len(words := _words(content)) > 1:
        yield name, np.array(words)
    elif isinstance(content, list) or (
        isinstance(content, np.ndarray) and content.dtype == object and content.ndim == 1
    ):
        for k, value in enumerate(content):
            label = value.get('label') if isinstance(value, Mapping) else None  # of Simulink
            own = f'.{label}' if isinstance(label, str) and label else f'[{k}]'
            yield from _flat(value, f'{name}{own}')


def _words(content: Any) -> list[str]:
    """Return a cell array of text, [] for anything else."""
    words = list(content) if isinstance(content, list | np.ndarray) else []
    return words if all(isinstance(word, str) for word in words) else []


def _numeric(arrays: Mapping[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield plain arrays, and the fields of record arrays."""
    for name, value in arrays.items():
        if value.dtype.names:
            yield from _numeric({f'{name}.{field}': value[field] for field in value.dtype.names})
        else:
            yield name, value


INFO = 'meta/info.json'
EPISODE = 'episode_index'
# Between two episodes of a data set [s]: longer than any gap that is interpolated.
EPISODE_GAP = 2.0
# Folders above a file in which the description of its data set is looked for.
_DEPTH = 4


def is_lerobot(path: Path) -> bool:
    """Return whether a folder is a data set of LeRobot."""
    return (path / INFO).is_file()


def read_parquet(path: Path) -> Table:
    """
    Open a Parquet file, or all episodes of a data set of LeRobot behind each other.

    Raises
    ------
    FileError : pyarrow is not installed
    RecordingError : there is nothing in it

    """
    parquet = optional_package('pyarrow.parquet', str(path))
    files = [path]
    if path.is_dir():
        files = sorted((path / 'data').rglob('*.parquet'), key=natural_order)
    if not files:
        raise RecordingError(f"'{path}' holds no .parquet file in data/: download the episodes")
    for file in files:
        _check_size(parquet.read_metadata(file), file)
    schema, types = parquet.read_schema(files[0]), optional_package('pyarrow', str(path)).types
    info = _info(path)
    labels = {
        name: tuple(found)
        for name, feature in (info.get('features') or {}).items()
        if (found := _labels(feature)) is not None
    }
    found_widths = ((field.name, _width(parquet, files[0], field)) for field in schema)
    widths = {name: width for name, width in found_widths if width is not None}
    labels = labels_of(widths, _lists(parquet, files[0], schema)) | labels
    episodes = EPISODE in widths
    return Table(
        str(path),
        {k: w for k, w in widths.items() if not (episodes and k.endswith('index'))},
        functools.partial(_read, files, episodes),
        labels=labels,
        rate=float(info.get('fps') or 0.0),
        units={f.name: 'ns' for f in schema if _is_time(types, f.type)},
        texts={field.name: '' for field in schema if _is_text(path, field)},
        words=functools.partial(_read_words, files),
    )


def read_feather(path: Path) -> Table:
    """
    Read a file of Arrow, as Feather is.

    Raises
    ------
    FileError : pyarrow is not installed
    RecordingError : there is nothing in it

    """
    ipc = optional_package('pyarrow.ipc', str(path))
    with ipc.open_file(str(path)) as file:
        batches = [file.get_batch(k) for k in range(file.num_record_batches)]
        table = optional_package('pyarrow', str(path)).Table.from_batches(batches, file.schema)
    check_unpacked(path, table.nbytes)
    arrays = {n: _array(table.column(n), table.num_rows, n) for n in table.column_names}
    texts = {name: array.astype(str) for name, array in arrays.items() if array.dtype == object}
    types = optional_package('pyarrow', str(path)).types
    units = {field.name: 'ns' for field in table.schema if _is_time(types, field.type)}
    return from_arrays(str(path), arrays | texts, units)


def _check_size(metadata: Any, file: Path) -> None:
    """Raise an error where a file says that it holds far more than it has."""
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    packed = sum(group.total_byte_size for group in groups)
    # A constant column takes no room in the file, but in memory.
    check_unpacked(file, max(packed, 8 * metadata.num_rows * metadata.num_columns))


def _info(path: Path) -> Mapping[str, Any]:
    """Return the description of the data set that a file is part of, {} for none."""
    for folder in [path, *path.absolute().parents][: _DEPTH + 1]:
        if (folder / INFO).is_file():
            try:
                content = json.loads(read_text(folder / INFO))
            except (ValueError, RecursionError) as error:
                raise RecordingError(
                    f"'{folder / INFO}' is not valid JSON ({error}): download it again"
                ) from error
            return content if isinstance(content, Mapping) else {}
    return {}


def _labels(feature: Any) -> list[str] | None:
    """Names of the columns of a feature: a list, or {kind: list}."""
    names = feature.get('names') if isinstance(feature, Mapping) else None
    if isinstance(names, Mapping):
        names = next(iter(names.values()), None)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None
    return names


def _lists(parquet: Any, path: Path, schema: Any) -> dict[str, list[str]]:
    """Return the first row of the columns that hold lists of words."""
    types = optional_package('pyarrow', str(path)).types
    names = [
        field.name
        for field in schema
        if hasattr(field.type, 'value_type') and types.is_string(field.type.value_type)
    ]
    batch = next(parquet.ParquetFile(path).iter_batches(1, columns=names), None) if names else None
    rows = batch.to_pydict() if batch is not None else {}
    return {name: values[0] for name, values in rows.items() if values and values[0]}


def _width(parquet: Any, path: Path, field: Any) -> int | None:
    """Columns of a field: 0 of a number, their count of a list of numbers, None of all others."""
    types = optional_package('pyarrow', str(path)).types
    kind = field.type
    if _is_number(types, kind) or _is_time(types, kind):
        return 0
    if types.is_fixed_size_list(kind):
        return int(kind.list_size) if _is_number(types, kind.value_type) else None
    if not (types.is_list(kind) or types.is_large_list(kind)) or not _is_number(
        types, kind.value_type
    ):
        return None
    batch = next(parquet.ParquetFile(path).iter_batches(1, columns=[field.name]), None)
    return len(batch.column(0)[0].as_py() or ()) or None if batch is not None else None


def _is_text(path: Path, field: Any) -> bool:
    types = optional_package('pyarrow', str(path)).types
    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    return bool(types.is_string(kind) or types.is_large_string(kind))


def _read_words(files: Sequence[Path], name: str) -> np.ndarray:
    parquet = optional_package('pyarrow.parquet', str(files[0]))
    tables = (parquet.read_table(file, columns=[name]) for file in files)
    return np.array([word or '' for table in tables for word in table.column(name).to_pylist()])


def _is_number(types: Any, kind: Any) -> bool:
    return bool(types.is_floating(kind) or types.is_integer(kind))


def _is_time(types: Any, kind: Any) -> bool:
    return bool(types.is_timestamp(kind) or types.is_duration(kind))


def _read(files: Sequence[Path], episodes: bool, names: Sequence[str]) -> Columns:
    parquet = optional_package('pyarrow.parquet', str(files[0]))
    wanted = list(dict.fromkeys([*names, *([EPISODE] if episodes else [])]))
    parts: dict[str, list[np.ndarray]] = {name: [] for name in wanted}
    for file in files:
        table = parquet.read_table(file, columns=wanted)
        for name in wanted:
            parts[name].append(_array(table.column(name), table.num_rows, f'{name} of {file}'))
    columns = {name: np.concatenate(found) for name, found in parts.items()}
    if episodes and 'timestamp' in names:
        columns['timestamp'] = _one_clock(columns['timestamp'], columns[EPISODE])
    return {name: columns[name] for name in names}


def _array(column: Any, rows: int, name: str) -> np.ndarray:
    """Return a column as (N,) or (N, width); seconds for time stamps."""
    combined = column.combine_chunks()
    if hasattr(combined, 'chunks'):
        combined = combined.chunk(0) if combined.num_chunks == 1 else combined
    if hasattr(column.type, 'value_type'):
        values = np.asarray(combined.flatten())
        if rows == 0 or values.size % rows or combined.null_count:
            raise RecordingError(f'{name} has rows of different lengths: give another column')
        return values.reshape(rows, -1)
    array = np.asarray(combined)
    return nanoseconds(array) if array.dtype.kind in 'Mm' else array


def _one_clock(time: np.ndarray, episode: np.ndarray) -> np.ndarray:
    """Put episodes, whose times count from 0 each, behind each other."""
    time = np.asarray(time, float)
    starts = np.flatnonzero(np.diff(episode)) + 1
    shift = np.zeros(time.size)
    shift[starts] = time[starts - 1] - time[starts] + EPISODE_GAP
    return np.asarray(time + np.cumsum(shift))
