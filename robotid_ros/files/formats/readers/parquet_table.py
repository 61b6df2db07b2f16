"""Parquet files, and data sets of LeRobot, which are folders of them."""

from collections.abc import Mapping, Sequence
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

from ....exceptions import RecordingError
from ...atomic import read_text
from ...bounded import check_unpacked
from ..file_names import natural_order
from ..table import Columns, from_arrays, labels_of, nanoseconds, optional_package, Table

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
