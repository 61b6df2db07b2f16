"""A table of a file: columns by name, read when they are asked for, one row a time."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
import dataclasses
from dataclasses import dataclass, field
import importlib
import itertools
import re
from typing import Any

import numpy as np

from ...core.finding_codes import finding
from ...core.findings import Finding
from ...exceptions import FileError, RecordingError, shortened
from .column_names import group, understand, words_of
from .joint_table import interpolate
from .text_cells import REPEATED

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Table:
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
    words : returns a column of `texts`, (N,)
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
    words: Callable[[str], np.ndarray] | None = None
    passed_over: tuple[str, ...] = ()

    @property
    def known(self) -> str:
        """Names of the columns, for messages: a few of many."""
        names = [f'{n}[0:{w}]' if w else n for n, w in self.widths.items()]
        return shortened(names, 24)


def from_arrays(
    source: str, arrays: Mapping[str, np.ndarray], units: Mapping[str, str] | None = None
) -> Table:
    """
    Make a table of arrays that are in memory already, (N,), (N, n) or (n, N).

    N is the length that most values share. Lists of words (n,) may name the columns of the others,
    words (N,) are columns of texts; arrays of one value, of more than two axes or of another
    length are passed over. `units` are those of columns that their names do not say.

    Raises
    ------
    RecordingError : nothing is left

    """
    flat = {name: np.squeeze(value) for name, value in arrays.items() if value.size > 1}
    lists = {k: _words(v) for k, v in flat.items() if v.dtype.kind in 'USO' and v.ndim == 1}
    numbers = {k: v for k, v in flat.items() if v.dtype.kind in 'fiubMm'}
    flat = {k: v for k, v in numbers.items() if v.ndim in (1, 2)}
    if not flat:
        raise RecordingError(f"'{source}' holds no arrays of numbers: give another file")
    values, clocks = Counter[int](), dict(units or {})
    for name, value in flat.items():
        values[max(value.shape)] += value.size
        if value.dtype.kind in 'Mm':
            flat[name] = nanoseconds(value)
            clocks[name] = 'ns'
    count = max(values, key=lambda length: (values[length], length))
    columns = {}
    for name, value in flat.items():
        if value.shape[0] == count:
            columns[name] = value
        elif value.ndim == 2 and value.shape[1] == count:
            columns[name] = value.T
    widths = {name: value.shape[1] if value.ndim == 2 else 0 for name, value in columns.items()}
    return Table(
        source,
        widths,
        lambda names: {name: columns[name] for name in names},
        labels=labels_of(widths, lists),
        texts={name: words[0] for name, words in lists.items() if len(words) == count},
        units={name: unit for name, unit in clocks.items() if name in columns},
        words=lambda name: np.array(lists[name]),
        passed_over=tuple(f'{k} {v.shape}' for k, v in numbers.items() if k not in columns),
    )


def nanoseconds(times: np.ndarray) -> np.ndarray:
    """Return dates (N,) as int64 [ns] since 1970, durations as int64 [ns]."""
    return np.asarray(times.astype(f'{times.dtype.kind}8[ns]').astype(np.int64))


def labels_of(
    widths: Mapping[str, int], lists: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """
    Return {array: names of its columns}: a list of so many names or joints beside it.

    Parameters
    ----------
    widths : {name: columns of an array}
    lists : {name: words}, of which `joint_names` comes before `names`

    """
    names = [name for name in lists if re.search('joint|name', name, re.IGNORECASE)]
    names.sort(key=lambda name: 'joint' in name.lower())
    labels = {
        len(lists[name]): tuple(lists[name])
        for name in names
        if len(set(lists[name])) == len(lists[name])
    }
    return {name: labels[width] for name, width in widths.items() if width in labels}


def _words(array: np.ndarray) -> list[str]:
    """Return an array of text as words, without the blanks that make them equally long."""
    return [x.decode(errors='replace') if isinstance(x, bytes) else str(x).strip() for x in array]


def optional_package(name: str, source: str) -> Any:
    """
    Import a module that only some formats need.

    Raises
    ------
    FileError : its package is not installed

    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package, reason = name.split('.')[0], str(error).split('\n')[0].rstrip('.')
        raise FileError(
            f"'{source}' needs the package {package} ({reason}): pip install {package}"
        ) from error


# One signal: (N,) times in whatever unit, and (N,) or (N, n) values.
Signal = tuple[np.ndarray, np.ndarray]
# Words of columns that say whose or which value a row holds.
_KEYS = frozenset(
    'joint joints axis achse gelenk axe motor servo actuator name names variable variables '
    'channel signal topic quantity field measurement metric parameter key id index'.split()
)
_VALUES = frozenset('value values val data wert valeur valor'.split())
# Rows of one key at least, and different keys at most: joints times quantities of a large robot.
_ROWS, _KEYS_AT_MOST = 10, 400
# Rows belong together that share times, or whose keys take turns: shares of all rows.
_SHARED, _CHANGING = 0.75, 0.5


def one_row_a_time(table: Table) -> Table:
    """
    Return a table whose rows are samples of all columns.

    A table with a row for each joint or each value, which columns of words or numbers name, gets a
    column for each; columns that follow times of their own are brought onto one clock.

    Parameters
    ----------
    table : as a file has it

    """
    table = _without_keys(table)
    blocks = _blocks(table)
    if len(blocks) < 2:
        return table
    columns = table.read(list(table.widths))
    signals = {k: (columns[t], columns[k]) for t, names in blocks for k in names}
    meaning = understand(blocks[0][0])
    return on_one_clock(
        table, signals, blocks[0][0] if meaning and meaning.quantity == 'time' else 'time'
    )


def on_one_clock(table: Table, signals: Mapping[str, Signal], time: str) -> Table:
    """
    Interpolate signals onto the times of the positions, the most frequent ones.

    Parameters
    ----------
    table : whose they are
    signals : by name
    time : name of the column of the times

    """
    known = {name: signal for name, signal in map(_finite, signals.items()) if len(signal[0]) > 1}
    said = {name: understand(name) for name in known}
    positions = [name for name, m in said.items() if m and m.quantity == 'position']
    measured = [name for name, m in said.items() if name in positions and m and not m.reference]
    best = max(measured or positions or known, key=lambda name: len(known[name][0]), default='')
    if not best:
        return table
    clock = known[best][0]
    columns = {time: clock} | {name: _at(clock, *signal) for name, signal in known.items()}
    made = from_arrays(table.source, columns)
    note = finding('signals_interpolated', signal=best)
    equal = all(_same(clock, own) for own, _ in known.values())
    notes = table.notes if equal else (*table.notes, note)
    return dataclasses.replace(
        made, notes=notes, units=table.units, rate=table.rate, labels=table.labels
    )


def _finite(item: tuple[str, Signal]) -> tuple[str, Signal]:
    """Return a signal without rows that lack a time or any value, in the order of its times."""
    name, (time, values) = item
    filled = np.isfinite(values).reshape(len(values), -1).any(axis=1)
    rows = np.flatnonzero(np.isfinite(time) & filled)
    return name, (time[rows], values[rows])


def _at(clock: np.ndarray, time: np.ndarray, values: np.ndarray) -> np.ndarray:
    return values if _same(clock, time) else interpolate(clock, time, values)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=True))


def _blocks(table: Table) -> list[tuple[str, list[str]]]:
    """Return the columns that follow each time, [] where a table has one clock for all."""
    names = list(table.widths)
    if blocks := _of_structures(names):
        return blocks
    bases = [REPEATED.sub('', name) for name in names]
    first = bases[0] if bases else ''
    said = [set(words_of(name)) & {'time', 'timestamp', 'zeit', 't'} for name in names]
    if len(names) >= 4 and len(names) % 2 == 0 and _alternate(names, bases, said):
        places = list(range(0, len(names), 2))
    else:
        places = [k for k, base in enumerate(bases) if base == first and said[0]]
    if len(places) < 2 or any(
        b - a < 2 for a, b in zip(places, [*places[1:], len(names)], strict=True)
    ):
        return []
    times = table.read([names[k] for k in places])
    if not all(_grows(time) for time in times.values()):
        return []
    edges = [*places[1:], len(names)]
    return [(names[a], names[a + 1 : b]) for a, b in zip(places, edges, strict=True)]


def _alternate(names: Sequence[str], bases: Sequence[str], said: Sequence[set[str]]) -> bool:
    """Whether every other column is a time, by its name or by one that all of them have."""
    even, odd = range(0, len(names), 2), range(1, len(names), 2)
    if len({bases[k] for k in even}) == 1:
        return len({bases[k] for k in odd}) > 1
    return all(said[k] for k in even) and not any(said[k] for k in odd)


def _of_structures(names: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the fields beside a time in each of several structures: `q.Time`, `q.Data`."""
    times = {}
    for name in names:
        parent, dot, field = name.rpartition('.')
        meaning = understand(field)
        if dot and meaning and meaning.quantity == 'time':
            times[parent] = name
    blocks = [
        (time, [n for n in names if n.startswith(f'{parent}.') and n != time])
        for parent, time in times.items()
    ]
    inside = {name for _, members in blocks for name in members}
    outside = (understand(name) for name in names if name not in inside)
    if len(times) < 2 or any(found and found.quantity != 'time' for found in outside):
        return []
    return [block for block in blocks if block[1]]


def _grows(time: np.ndarray) -> bool:
    known = time[np.isfinite(time)]
    return len(known) > 1 and bool((np.diff(known) >= 0.0).all() and known[-1] > known[0])


def _without_keys(table: Table) -> Table:
    """Give each key of a table in rows a column of its own."""
    keys = dict(_key_columns(table))
    groups = group(table.widths, ()) if keys else []
    # Words beside the positions of several joints name trials.
    if not keys or any(g.meaning.quantity == 'position' and len(g.members) > 1 for g in groups):
        return table
    others = [n for n, width in table.widths.items() if n not in keys and not width]
    times = [n for n in others if (m := understand(n)) and m.quantity == 'time']
    values = [n for n in others if n not in times and not n.startswith('__')]
    labels = list(zip(*(column.tolist() for column in keys.values()), strict=True))
    counts: dict[tuple[str | int, ...], list[int]] = {}
    for row, label in enumerate(labels):
        counts.setdefault(label, []).append(row)
    enough = min(map(len, counts.values())) >= _ROWS
    if not times or not values or not enough or not 1 < len(counts) <= _KEYS_AT_MOST:
        return table
    columns = table.read([times[0], *values])
    time = columns[times[0]]
    changes = sum(a != b for a, b in itertools.pairwise(labels)) / len(labels)
    if len(np.unique(time)) > _SHARED * len(time) and changes < _CHANGING:
        return table  # words that tell for long what the robot does
    signals = {}
    for label, rows in counts.items():
        for name in values:
            if np.isfinite(columns[name][rows]).any():
                signals[_name(label, name)] = (time[rows], columns[name][rows])
    note = finding('rows_are_columns', keys=tuple(keys))
    return on_one_clock(dataclasses.replace(table, notes=(*table.notes, note)), signals, times[0])


def _key_columns(table: Table) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the columns that say whose or which value a row holds."""
    for name in table.texts if table.words else ():
        if set(words_of(name)) & _KEYS and not any(map(str.isdigit, name)):
            assert table.words is not None
            column = table.words(name)
            if (column != column[0]).any():
                yield name, column
    for name, width in table.widths.items():
        words = set(words_of(name))
        if width or not words <= _KEYS or words <= {'index', 'key'}:
            continue
        values = table.read([name])[name]
        if np.isfinite(values).all() and (values == np.round(values)).all():
            if 1 < len(np.unique(values)) <= _KEYS_AT_MOST // 4 and np.ptp(values) < 1000:
                yield name, values.astype(int)


def _name(label: Sequence[str | int], column: str) -> str:
    """Return a column's name of a key: `position.elbow`, `torque_2`."""
    words = [part for part in label if isinstance(part, str)]
    parts = [] if set(words_of(column)) <= _VALUES else [column]
    parts += sorted(words, key=lambda word: understand(word) is None)
    numbers = ''.join(f'_{part}' for part in label if isinstance(part, int))
    return '.'.join(parts or [column]) + numbers
