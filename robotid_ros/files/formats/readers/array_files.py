"""Files of named arrays: NumPy, MATLAB and HDF5."""

from collections.abc import Iterator, Mapping
import contextlib
from pathlib import Path
import struct
from typing import Any
import zlib

import numpy as np

from ....exceptions import RecordingError
from ...atomic import open_regular
from ...bounded import check_unpacked, load_npz
from ..table import from_arrays, optional_package, Table

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
