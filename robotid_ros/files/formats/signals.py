"""Signals that have times of their own, or rows of their own, brought into one table."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import itertools

import numpy as np

from .column_groups import Group, group
from .column_names import understand
from .column_words import words_of
from .interpolation import interpolate
from .readers.text_header import REPEATED
from .table import from_arrays, Table

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
    return on_one_clock(table, signals, _time_name(blocks[0][0]))


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
    note = f'signals with times of their own are interpolated onto those of {best}'
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


def _time_name(name: str) -> str:
    """Return a name that says time, with the unit of the given one."""
    meaning = understand(name)
    if meaning and meaning.quantity == 'time':
        return name
    return 'time'


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
    if not keys or any(_of_several_joints(found) for found in group(table.widths, ())):
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
    note = f'rows of one {" and ".join(keys)} each are columns here'
    return on_one_clock(dataclasses.replace(table, notes=(*table.notes, note)), signals, times[0])


def _of_several_joints(found: Group) -> bool:
    """Whether columns are the positions of several joints: words beside them name trials."""
    return found.meaning.quantity == 'position' and len(found.members) > 1


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
