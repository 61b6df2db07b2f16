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
from .column_names import group, words_of

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class ColumnTable:
    """
    Columns of a file.

    Attributes
    ----------
    source : path, for messages
    widths : {name: columns of an array, 0 for a column of its own}, in the order of the file
    read : returns the columns of these names, (N,) or (N, width)
    has_header : False where the names are `column1`, `column2`, … for want of others
    texts : {name: first text} of columns that hold no numbers
    labels : {name of an array: names of its columns}
    rate : that the file names [Hz], 0 for none
    notes : what was unusual about it
    units : {column: unit} that the file says elsewhere than in the name, as of dates
    passed_over : arrays of another shape than rows of columns, with their shapes

    """

    source: str
    widths: Mapping[str, int]
    read: Callable[[Sequence[str]], Columns]
    has_header: bool = True
    texts: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rate: float = 0.0
    notes: tuple[Finding, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    passed_over: tuple[str, ...] = ()

    @property
    def known(self) -> str:
        """Names of the columns, for messages: a few of many."""
        names = [f'{n}[0:{w}]' if w else n for n, w in self.widths.items()]
        return shortened(names, 24)


def from_arrays(
    source: str, arrays: Mapping[str, np.ndarray], units: Mapping[str, str] | None = None
) -> ColumnTable:
    """
    Make a table of arrays that are in memory already, (N,), (N, n) or (n, N).

    N is the length that most values share. Lists of words (n,) may name the columns of the others,
    words (N,) are columns of texts; arrays of one value, of more than two axes or of another
    length are passed over. `units` are those of columns that their names do not say. Raises
    RecordingError where nothing is left.
    """
    flat = {name: np.squeeze(value) for name, value in arrays.items() if value.size > 1}
    lists = {  # without the blanks that make words equally long
        k: [x.decode(errors='replace') if isinstance(x, bytes) else str(x).strip() for x in v]
        for k, v in flat.items()
        if v.dtype.kind in 'USO' and v.ndim == 1
    }
    numbers = {k: v for k, v in flat.items() if v.dtype.kind in 'fiubMm'}
    sizes, columns = Counter[int](), dict[str, np.ndarray]()
    for value in (value for value in numbers.values() if value.ndim in (1, 2)):
        sizes[max(value.shape)] += value.size
    if not sizes:
        raise RecordingError(f"'{source}' holds no arrays of numbers: give another file")
    count, clocks = max(sizes, key=lambda length: (sizes[length], length)), dict(units or {})
    for name, value in numbers.items():
        if value.dtype.kind in 'Mm':
            value, clocks[name] = nanoseconds(value), 'ns'
        if value.ndim in (1, 2) and count in value.shape:
            columns[name] = value if value.shape[0] == count else value.T
    widths = {name: value.shape[1] if value.ndim == 2 else 0 for name, value in columns.items()}
    # Of two lists of as many words, `joint_names` comes before `names`.
    lists_of_names = [name for name in lists if re.search('joint|name', name, re.IGNORECASE)]
    lists_of_names.sort(key=lambda name: 'joint' in name.lower())
    named = [lists[name] for name in lists_of_names]
    labels = {len(each): tuple(each) for each in named if len(set(each)) == len(each)}
    return ColumnTable(
        source,
        widths,
        lambda names: {name: columns[name] for name in names},
        labels={name: labels[width] for name, width in widths.items() if width in labels},
        texts={name: words[0] for name, words in lists.items() if len(words) == count},
        units={name: unit for name, unit in clocks.items() if name in columns},
        passed_over=tuple(f'{k} {v.shape}' for k, v in numbers.items() if k not in columns),
    )


def nanoseconds(times: np.ndarray) -> np.ndarray:
    """Return dates (N,) as int64 [ns] since 1970, durations as int64 [ns]."""
    return np.asarray(times.astype(f'{times.dtype.kind}8[ns]').astype(np.int64))


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


# Words of columns that say whose value a row holds.
_KEYS = frozenset('joint joints axis achse gelenk axe motor servo actuator name names id'.split())
_TIMES = frozenset('time timestamp zeit t'.split())


def check_rows(table: ColumnTable) -> str:
    """
    Return the column of times that each signal repeats, or ''; a row must be a sample of all.

    Raises RecordingError where signals have times of their own that differ, or a row is of one
    joint.
    """
    names = list(table.widths)
    bases = [re.sub(r' \(\d+\)$', '', name) for name in names]
    said = [bool(set(words_of(name.rpartition('.')[2])) & _TIMES) for name in names]
    places = [k for k, time in enumerate(said) if time and not [*said, True][k + 1]]
    times = list(table.read([names[k] for k in places]).values()) if len(places) > 1 else []
    pairs = len(names) > 2 and bases[::2] == bases[1::2]
    differ = not all(np.array_equal(times[0], time, equal_nan=True) for time in times[1:])
    known = [time[np.isfinite(time)] for time in times]
    grow = all(len(t) > 1 and (np.diff(t) >= 0.0).all() and t[-1] > t[0] for t in known)
    if pairs or (differ and grow):
        raise RecordingError(
            f"'{table.source}' has signals with times of their own: export one column of times, "
            "or name columns of one clock with --columns 'time=… position=… effort=…'"
        )
    positions = [g for g in group(names, ()) if g.meaning.quantity == 'position']
    keys = [n for n in table.texts if set(words_of(n)) & _KEYS and not any(map(str.isdigit, n))]
    keys += [n for n, width in table.widths.items() if not width and set(words_of(n)) <= _KEYS]
    if keys and sum(len(g.members) for g in positions) == 1:
        raise RecordingError(
            f"'{table.source}' has a row for each {keys[0]}: export a column for each joint "
            '(pandas: pivot), or name the columns of one joint with --columns'
        )
    return names[places[0]] if len(times) > 1 and not differ else ''
