"""A table of a file: columns by name, read when they are asked for, one row a time."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
import importlib
import re
from typing import Any

import numpy as np

from ...core.findings import Finding
from ...exceptions import FileError, reason_of, RecordingError, shortened
from .column_names import Key

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class ColumnTable:
    """
    Columns of a file.

    Attributes
    ----------
    source : path, for messages
    names : of the columns of numbers, in the order of the file
    read : returns the columns of these names, (N,)
    has_header : False where the names are `column1`, `column2`, … for want of others
    texts : {name: first text} of columns that hold no numbers
    places : {column of an array (N, n), `q[0]` or `q.elbow`: its pattern and number or name in it}
    rate : that the file names [Hz], 0 for none
    notes : what was unusual about it
    units : {column: unit} that the file says elsewhere than in the name, as of dates
    passed_over : arrays of another shape than rows of columns, with their shapes

    """

    source: str
    names: list[str]
    read: Callable[[Sequence[str]], Columns]
    has_header: bool = True
    texts: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, tuple[str, Key]] = field(default_factory=dict)
    rate: float = 0.0
    notes: tuple[Finding, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    passed_over: tuple[str, ...] = ()

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
        raise RecordingError(f"'{source}' holds no arrays of numbers: give another file")
    count = max(sizes, key=lambda length: (sizes[length], length))
    # Of two lists of as many words, `joint_names` comes before `names`.
    lists_of_names = [name for name in lists if re.search('joint|name', name, re.IGNORECASE)]
    lists_of_names.sort(key=lambda name: 'joint' in name.lower())
    named = [lists[name] for name in lists_of_names]
    words = {len(each): each for each in named if len(set(each)) == len(each)}
    columns, units, passed_over = Columns(), dict(more.pop('units', {})), list[str]()
    places: dict[str, tuple[str, Key]] = {}
    for name, value in numbers.items():
        if value.ndim not in (1, 2) or count not in value.shape:
            passed_over.append(f'{name} {value.shape}')
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
        passed_over=tuple(passed_over),
        **more,
    )


def optional_package(name: str, source: str) -> Any:
    """
    Import a module that only some formats need.

    Raises FileError where its package is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.split('.')[0]
        raise FileError(
            f"'{source}' needs the package {package} ({reason_of(error)}): pip install {package}"
        ) from error
