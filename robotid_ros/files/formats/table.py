"""
Tables: columns by name, one row a time, of files of arrays or of text.

Files of named arrays are those of NumPy, MATLAB, HDF5 and Parquet, with data sets and calibrations
of LeRobot.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
from dataclasses import dataclass, field
import importlib
import json
import math
from pathlib import Path
import re
import struct
from typing import Any
import warnings
import zlib

import numpy as np

from ...core.findings import Finding
from ...exceptions import FileError, reason_of, RecordingError, shortened
from ..atomic import open_regular, read_text
from ..bounded import check_unpacked, load_npz
from .column_names import Key
from .read_options import natural_order

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class ColumnTable:
    """Columns of a file."""

    source: str  # path, for messages
    names: list[str]  # of the columns of numbers, in the order of the file
    read: Callable[[Sequence[str]], Columns]  # columns of these names, (N,)
    has_header: bool = True  # False where names are `column1`, `column2`, … for want of others
    # First text of columns that hold no numbers.
    texts: Mapping[str, str] = field(default_factory=dict)
    # Of a column of an array (N, n), `q[0]` or `q.elbow`, its pattern and number or name in it.
    places: Mapping[str, tuple[str, Key]] = field(default_factory=dict)
    rate: float = 0.0  # that the file names [Hz], 0 for none
    notes: tuple[Finding, ...] = ()  # what was unusual about it
    # Of columns, where the file says it elsewhere than in the name, as of dates.
    units: Mapping[str, str] = field(default_factory=dict)

    @property
    def arrays(self) -> dict[str, list[str]]:
        """Columns of each array by its name."""
        found: dict[str, list[str]] = {}
        for column, (pattern, _) in self.places.items():
            found.setdefault(re.sub(r'(\[\{i\}\]|\.\{joint\})$', '', pattern), []).append(column)
        return found

    @property
    def known(self) -> str:
        """Names of the columns, for messages: a few of many."""
        names = [f'{name}[0:{len(own)}]' for name, own in self.arrays.items()]
        return shortened([*names, *(name for name in self.names if name not in self.places)], 24)


def from_arrays(
    source: str,
    arrays: Mapping[str, np.ndarray],
    labels: Mapping[str, Sequence[str]] | None = None,
    **more: Any,
) -> ColumnTable:
    """
    Make a table of arrays that are in memory already, (N,), (N, n) or (n, N).

    N is the length that most values share. Lists of words (n,) may name the columns of the others,
    words (N,) are columns of texts; arrays of one value, of more than two axes or of another
    length are passed over. `labels` are names of the columns of arrays, `more` attributes of the
    table. Raises RecordingError where nothing is left.
    """
    flat = {name: np.squeeze(value) for name, value in arrays.items() if value.size > 1}
    lists = {  # without the blanks that make words equally long
        k: [x.decode(errors='replace') if isinstance(x, bytes) else str(x).strip() for x in v]
        for k, v in flat.items()
        if v.dtype.kind in 'USO' and v.ndim == 1
    }
    numbers = {k: v for k, v in flat.items() if v.dtype.kind in 'fiubMm'}
    sizes = Counter[int]()
    for value in (value for value in numbers.values() if value.ndim in (1, 2)):
        sizes[max(value.shape)] += value.size
    if not sizes:
        raise RecordingError(
            f"'{source}' holds no arrays of numbers: save arrays, not objects such as MATLAB's "
            'timeseries and tables'
        )
    count = max(sizes, key=lambda length: (sizes[length], length))
    # Of two lists of as many words, `joint_names` comes before `names`.
    named = [name for name in lists if re.search('joint|name', name, re.IGNORECASE)]
    named.sort(key=lambda name: 'joint' in name.lower())
    words = {len(lists[k]): lists[k] for k in named if len({*lists[k]}) == len(lists[k])}
    columns, units = Columns(), dict(more.pop('units', {}))
    places: dict[str, tuple[str, Key]] = {}
    for name, value in numbers.items():
        if value.ndim not in (1, 2) or count not in value.shape:
            continue
        if value.dtype.kind in 'Mm':  # dates since 1970, durations
            value = value.astype(f'{value.dtype.kind}8[ns]').astype(np.int64)
            units[name] = 'ns'
        value = value if value.shape[0] == count else value.T
        if value.ndim == 1:
            columns[name] = value
            continue
        own = (labels or {}).get(name) or words.get(value.shape[1]) or ()
        joints = [re.sub(r'[._]pos(ition)?$', '', label) for label in own]
        each: dict[str, tuple[str, Key]] = {
            f'{name}[{k}]': (f'{name}[{{i}}]', k) for k in range(value.shape[1])
        }
        if len(joints) == len(set(joints)) == value.shape[1]:
            each = {f'{name}.{joint}': (f'{name}.{{joint}}', joint) for joint in joints}
        columns |= zip(each, value.T, strict=True)
        places |= each
    return ColumnTable(
        source,
        list(columns),
        lambda names: {name: columns[name] for name in names},
        places=places,
        texts={name: own[0] for name, own in lists.items() if len(own) == count},
        units={name: unit for name, unit in units.items() if name in columns},
        **more,
    )


def optional_package(name: str, source: str) -> Any:
    """Import a module that only some formats need; a FileError where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.split('.')[0]
        raise FileError(
            f"'{source}' needs the package {package} ({reason_of(error)}): pip install {package}"
        ) from error


# Of a MAT file: bytes of its header, the kind of compressed variables, and what is unpacked of
# them at once, only to be counted.
_MAT_HEADER, _MAT_COMPRESSED, _BLOCK = 128, 15, 1 << 22


def read_numpy(path: Path) -> ColumnTable:
    """Read `.npz`, or `.npy`: a matrix without names, or an array of records."""
    with open_regular(path) as stream:
        alone = stream.read(1) == b'\x93'
    if alone:
        return _table(path, dict(_numeric({'': np.load(path, allow_pickle=False)})))
    with load_npz(path) as archive:
        arrays = {}
        for name in archive.files:
            with contextlib.suppress(ValueError):  # objects of Python
                arrays[name] = archive[name]
    if not any(isinstance(array, np.ndarray) for array in arrays.values()):
        raise RecordingError(
            f"'{path}' is an archive without arrays of NumPy: unpack it; of a workbook, save a "
            'sheet as CSV'
        )
    return _table(path, dict(_numeric(arrays)))


def _table(path: Path, arrays: Mapping[str, np.ndarray]) -> ColumnTable:
    """Make a table of named arrays; one alone is a matrix without names."""
    (alone, *others) = [a for a in arrays.values() if a.size > 1] or [np.array([])]
    if others or alone.ndim != 2 or min(alone.shape) < 2 or alone.dtype.kind not in 'fiu':
        return from_arrays(str(path), arrays)
    rows = alone if alone.shape[0] >= alone.shape[1] else alone.T
    columns = {f'column{k + 1}': column for k, column in enumerate(rows.T)}
    return from_arrays(str(path), columns, has_header=False)


def read_mat(path: Path) -> ColumnTable:
    """Read a MAT file of version 5 to 7.2, structures as `name.field`."""
    from scipy.io import loadmat

    with open_regular(path) as stream:  # compressed variables may be large
        order, size = '<' if stream.read(_MAT_HEADER)[-2:] == b'IM' else '>', 0
        while len(tag := stream.read(8)) == 8:
            kind, length = struct.unpack(f'{order}II', tag)
            unpacker, packed = zlib.decompressobj(), stream.read(length)
            while kind == _MAT_COMPRESSED and packed:
                size += len(unpacker.decompress(packed, _BLOCK))
                packed = unpacker.unconsumed_tail
                check_unpacked(path, size)
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', 'Duplicate variable name "None"')  # objects have none
        content = loadmat(path, simplify_cells=True)
    return _table(path, dict(_flat({k: v for k, v in content.items() if k[:2] != '__'})))


def read_hdf5(path: Path) -> ColumnTable:
    """Read HDF5, groups as `group.name`; a MAT file of version 7.3 has its axes reversed."""
    h5py = optional_package('h5py', str(path))
    arrays: dict[str, np.ndarray] = {}
    size = 0

    def visit(name: str, item: Any) -> None:
        nonlocal size
        dtype = getattr(item, 'dtype', None)
        # MATLAB's own objects are references to what only MATLAB can read.
        if dtype is None or name.startswith('#') or 'MATLAB_object_decode' in item.attrs:
            return
        if dtype.kind in 'fiuV' or h5py.check_string_dtype(dtype):
            size += item.nbytes
            check_unpacked(path, size)
            arrays[name.replace('/', '.')] = np.asarray(item[()])

    with h5py.File(path) as file:
        file.visititems(visit)
    return from_arrays(str(path), {name: value.T for name, value in _numeric(arrays)})


def _flat(content: Any, name: str = '') -> Iterator[tuple[str, np.ndarray]]:
    """Yield the arrays of nested structures, of numbers or of words."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield from _flat(value, f'{name}.{key}' if name else str(key))
    elif isinstance(content, np.ndarray) and content.dtype.kind in 'fiubU':
        yield name, content
    elif isinstance(content, list) or (
        isinstance(content, np.ndarray) and content.dtype == object and content.ndim == 1
    ):
        if len(content) > 1 and all(isinstance(cell, str) for cell in content):
            yield name, np.array(list(content))
            return
        for k, value in enumerate(content):
            label = value.get('label') if isinstance(value, Mapping) else None  # of Simulink
            own = f'.{label}' if isinstance(label, str) and label else f'[{k}]'
            yield from _flat(value, f'{name}{own}')


def _numeric(arrays: Mapping[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield plain arrays, and the fields of record arrays."""
    for name, value in arrays.items():
        if value.dtype.names:
            fields = {f'{name}.{field}'.lstrip('.'): value[field] for field in value.dtype.names}
            yield from _numeric(fields)
        else:
            yield name, value


INFO = 'meta/info.json'
EPISODE = 'episode_index'
# Folders above a file in which the description of its data set is looked for.
_DEPTH = 4


def is_lerobot(path: Path) -> bool:
    """Return whether a folder is a data set of LeRobot."""
    return (path / INFO).is_file()


def read_parquet(path: Path) -> ColumnTable:
    """Read a Parquet file, or all episodes of a data set of LeRobot behind each other."""
    parquet = optional_package('pyarrow.parquet', str(path))
    files = [path]
    if path.is_dir():
        files = sorted((path / 'data').rglob('*.parquet'), key=natural_order)
    if not files:
        raise RecordingError(f"'{path}' holds no .parquet file in data/: download the episodes")
    for file in files:
        metadata = parquet.read_metadata(file)
        groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
        packed = sum(group.total_byte_size for group in groups)
        # A constant column takes no room in the file, but in memory.
        check_unpacked(file, max(packed, 8 * metadata.num_rows * metadata.num_columns))
    # Nothing else, as pictures, is read.
    kinds = {field.name: _kind(field.type) for field in parquet.read_schema(files[0])}
    names = [name for name, kind in kinds.items() if kind]
    tables = [parquet.read_table(file, columns=names) for file in files]
    arrays = dict[str, np.ndarray]()
    for name in tables[0].column_names:
        columns = [table.column(name) for table in tables]
        if kinds[name] == 'words':
            arrays[name] = np.array([w or '' for column in columns for w in column.to_pylist()])
        elif kinds[name] == 'names':
            arrays[name] = np.array(columns[0][0].as_py() or (), str)
        else:
            parts = [_array(column) for column in columns]
            if len({part.shape[1:] for part in parts}) == 1:
                arrays[name] = np.concatenate(parts)
    if EPISODE in arrays:
        arrays = {name: array for name, array in arrays.items() if not name.endswith('index')}

    info: Any = {}  # description of the data set that the file is part of
    above = (folder / INFO for folder in [path, *path.absolute().parents][: _DEPTH + 1])
    if described := next(filter(Path.is_file, above), None):
        try:
            info = json.loads(read_text(described))
        except (ValueError, RecursionError) as error:
            raise RecordingError(
                f"'{described}' is not valid JSON ({error}): download it again"
            ) from error
    info = info if isinstance(info, Mapping) else {}
    labels = dict[str, Sequence[str]]()
    for name, feature in (info.get('features') or {}).items():  # a list, or {kind: list}
        own = feature.get('names') if isinstance(feature, Mapping) else None
        own = next(iter(own.values()), None) if isinstance(own, Mapping) else own
        if isinstance(own, list) and all(isinstance(label, str) for label in own):
            labels[name] = own
    return from_arrays(str(path), arrays, labels, rate=float(info.get('fps') or 0.0))


def _kind(kind: Any) -> str:
    """Return what a type of Arrow is: numbers or times, words, lists of them, or '' for none."""
    types = optional_package('pyarrow', 'a table of Arrow').types
    if types.is_dictionary(kind):
        kind = kind.value_type
    numbers = (types.is_floating, types.is_integer, types.is_timestamp, types.is_duration)
    if any(is_kind(kind) for is_kind in numbers):
        return 'number'
    if types.is_string(kind) or types.is_large_string(kind):
        return 'words'
    inside = _kind(kind.value_type) if hasattr(kind, 'value_type') else ''
    return {'number': 'numbers', 'words': 'names'}.get(inside, '')


def _array(column: Any) -> np.ndarray:
    """Return a column as (N,) or (N, width), (N, 0) of rows of different lengths."""
    if not hasattr(column.type, 'value_type'):
        return np.asarray(column)
    try:
        return np.array(column.to_pylist(), float)
    except (TypeError, ValueError):
        return np.empty((len(column), 0))


# Steps of a turn less one, as LeRobot counts, of the servos of its arms.
STEPS_OF_TURN = 4095
# The motor that LeRobot scales to 0 to 100, whatever the units of the others.
GRIPPER = 'gripper'


def read_calibration(
    path: str | Path, degrees: bool = False
) -> tuple[tuple[str, float, float], ...]:
    """Return each motor's name, rad per unit, and unit in the middle; FileError: it is none."""
    motors = []
    try:
        for name, values in json.loads(read_text(path)).items():
            low, high = float(values['range_min']), float(values['range_max'])
            if not low < high:
                raise ValueError(f'the range of {name} is empty')
            if degrees and name != GRIPPER:
                motors.append((name, math.radians(1.0), 0.0))
                continue
            sign = -1.0 if values.get('drive_mode') else 1.0
            units, middle = (100.0, 50.0) if name == GRIPPER else (200.0, 0.0)
            factor = sign * (high - low) / units * 2.0 * math.pi / STEPS_OF_TURN
            motors.append((name, factor, middle))
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError) as error:
        raise FileError(
            f"'{path}' is no calibration of LeRobot ({type(error).__name__}: {error}): give "
            'calibration/robots/TYPE/ID.json, with range_min and range_max of each motor'
        ) from error
    return tuple(motors)
