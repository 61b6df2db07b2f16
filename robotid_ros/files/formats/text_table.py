"""Tables as text: CSV of any delimiter, with a header or without; numbers, dates, nothing."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
import csv
from dataclasses import dataclass, replace
import functools
import gzip
import io
import itertools
import math
from pathlib import Path
import re
from typing import Any

import numpy as np

from ...core.finding_codes import finding
from ...core.findings import Finding
from ...exceptions import RecordingError
from ..atomic import file_errors, open_regular
from ..bounded import BoundedStream
from .column_names import understand
from .table import Columns, ColumnTable
from .units import is_unit

DELIMITERS = (',', ';', '\t', '|')
# Lines in which header and first numbers are looked for; rows that are converted together.
HEAD, ROWS = 200, 20_000
# Share of a row that has to be values, at least and over that of the rows far below: half of what
# devices tell of each of their signals is numbers, too.
LEAST, BESIDE = 0.5, 0.75
_GZIP = b'\x1f\x8b'
MISSING = ('', 'na', 'n/a', 'null', 'none', '-', 'nan')
# A date with a time, or a time of day. The offset from Greenwich is the same all over a log.
_CLOCK = re.compile(
    r'\s*(?:(\d{4}[-/]\d\d[-/]\d\d)[T ]\s*)?(\d{1,2}):(\d\d):(\d\d(?:[.,]\d+)?)\s*'
    r'(?:Z|[+-]\d\d:?\d\d)?\s*$'
)
_UNREADABLE = re.compile(r'\s*[+-]?[.,]?\d')
# Share of the cells of a column that may begin as numbers do and be none.
MAX_UNREADABLE = 0.1
DAY = 86400.0  # [s]


@dataclass(frozen=True)
class _Form:
    """
    How a file is to be read.

    `delimiter` '' is any white space, `first` the first data line, `words` are in each row.
    """

    encoding: str
    delimiter: str
    decimal_comma: bool
    first: int
    words: str = ''


def read_text_table(path: Path) -> ColumnTable:
    """Open a text file of numbers; a FileError or RecordingError where it holds no table."""
    with _open(path, 'latin-1') as stream:
        start = ''.join(itertools.islice(stream, HEAD)).encode('latin-1')
    encoding = 'utf-16' if start[:2] in (b'\xff\xfe', b'\xfe\xff') else 'utf-8-sig'
    if encoding == 'utf-8-sig' and '\ufffd' in start.decode(errors='replace'):
        encoding = 'cp1252'
    form, header, cells = _analyse(path, encoding, start)
    seen, names = Counter[str](), list[str]()
    for k, name in enumerate(header or [''] * len(cells)):  # empty and repeated ones get their own
        own = name or f'column{k + 1}'
        seen[own] += 1
        names.append(own if seen[own] == 1 else f'{own} ({seen[own]})')
    texts = {
        name: cell.strip()
        for name, cell in zip(names, cells, strict=True)
        if cell.strip() and not is_value(cell, form.decimal_comma)
    }
    notes = tuple[Finding, ...]()
    joints = [
        n for n in texts if n[-1].isdigit() and (m := understand(n)) and m.quantity == 'name'
    ]
    if len(joints) > 1:  # as of `rostopic echo -p`
        form, notes = _of_same_joints(path, form, [texts[name] for name in joints])
    dates = [name for name, cell in zip(names, cells, strict=True) if _CLOCK.match(cell)]
    return ColumnTable(
        str(path),
        [name for name in names if name not in texts],
        functools.partial(_read, path, form, names, dates),
        bool(header),
        texts,
        notes=notes,
        units=dict.fromkeys(dates, 's'),
    )


def _open(path: Path, encoding: str) -> io.TextIOBase:
    with file_errors(path):
        stream: Any = open_regular(path)
        if stream.peek(2)[:2] == _GZIP:
            stream = io.BufferedReader(BoundedStream(path, gzip.GzipFile(fileobj=stream)))
        return io.TextIOWrapper(stream, encoding=encoding, errors='replace', newline='')


def _analyse(path: Path, encoding: str, start: bytes) -> tuple[_Form, list[str], list[str]]:
    """Return form, with the delimiter that leaves most numbers, header, and first cells."""
    lines = [*io.StringIO(start.decode(encoding, errors='replace'), newline='')]
    best, most, rows, above = None, -1.0, list[list[str]](), list[list[str]]()
    for delimiter in (*DELIMITERS, ''):
        split = [_cells(line, delimiter) for line in lines]
        # Numbers have decimal commas where some have commas, and none has a point.
        signs = {
            sign
            for cell in {*itertools.chain(*split)}
            if not math.isnan(number(cell, True))
            for sign in cell
        }
        comma = ',' in signs and '.' not in signs
        # Without a last cell that all rows of the table leave empty.
        counts = Counter(len(row) for row in split if row)
        width = max(counts, key=lambda width: counts[width], default=0)
        if width > 2 and not any(row[-1].strip() for row in split if len(row) == width):
            split = [row[:-1] if len(row) == width else row for row in split]
        # Of each row, how many cells hold values, and how many anything.
        values = np.array([sum(is_value(cell, comma) for cell in row) for row in split])
        filled = np.array([sum(map(bool, map(str.strip, row))) for row in split])
        # The first of the rows that stay a table of numbers, of one column if need be.
        shares = values / np.maximum(filled, 1)
        there = [k for k, row in enumerate(split) if any(row)]
        later = [shares[k] for k in there if k >= len(split) // 2]
        enough = max(LEAST, BESIDE * float(np.median(later))) if later else LEAST
        first = next(
            (
                k
                for least, (place, k) in itertools.product((2, 1), enumerate(there))
                if values[k] >= least and not split[k][0].startswith(('#', '%'))
                if all(
                    len(split[j]) == len(split[k]) and shares[j] >= enough
                    for j in there[place : place + 3]
                )
            ),
            None,
        )
        if first is not None:
            share = float(values[first:].sum() / max(1, filled[first:].sum()))
            if share > most:
                best, most, rows = _Form(encoding, delimiter, comma, first), share, split[first:]
                above = [*itertools.compress(split, values[:first] < LEAST * filled[:first])]
    if best is None:
        raise RecordingError(
            f"'{path}' holds no table of numbers in its first {HEAD} lines: give a bag "
            '(MCAP, SQLite), or a CSV file with one row per sample; a robot description goes '
            'behind --urdf, a configuration behind -c'
        )
    width = len(rows[0])
    cells = [next((r[k] for r in rows if k < len(r) and r[k].strip()), '') for k in range(width)]
    # Of the rows above, that with most names, and joined to them units of another one.
    fitting, units = list[list[str]](), list[list[str]]()
    for row in above:
        if len(row) == width + 1:
            row = row[1:] if row[0] in ('#', '%') else row[:-1]
        if len(row) == width and any(row):
            fitting.append([cell.strip() for cell in row])
    for row in fitting if len(fitting) > 1 else ():
        head, *others = (cell.strip(' []()') for cell in row)  # behind what may say so
        if all(map(is_unit, filter(None, others))) if any(others) else is_unit(head):
            units.append(row)
    named = [row for row in fitting if row not in units] or fitting
    if not named:
        return best, [], cells
    names = max(reversed(named), key=lambda row: len(set(row)))
    names = [name.lstrip('#%').strip() for name in names]
    for row in units[-1:]:
        pairs = zip(names, (cell.strip(' []()') for cell in row), strict=True)
        names = [f'{name} [{unit}]' if name and is_unit(unit) else name for name, unit in pairs]
    return best, names, cells


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), []) if delimiter else line.split()
    except csv.Error:  # a cell of 131,072 signs
        return line.split(delimiter)


def _of_same_joints(
    path: Path, form: _Form, joints: Sequence[str]
) -> tuple[_Form, tuple[Finding, ...]]:
    """Leave out rows that name other joints: their columns are of these, in their order."""
    words, found = form.delimiter.join(joints), Counter[str]()
    with _open(path, form.encoding) as stream:
        for line in _data_lines(stream, form):
            others = () if words in line else _cells(line.strip(), form.delimiter)
            told = [c.strip() for c in others if c.strip() and not is_value(c, form.decimal_comma)]
            found[words if words in line else ', '.join(told) or 'none'] += 1
    if not found.pop(words, 0) or not found:  # blanks around the names, or the same joints
        return form, ()
    sets, counts = zip(*found.most_common(), strict=True)
    note = finding('rows_of_other_joints', sets=sets, counts=counts)
    return replace(form, words=words), (note,)


def _data_lines(stream: Iterable[str], form: _Form) -> Iterator[str]:
    for line in itertools.islice(stream, form.first, None):
        if line.strip() and line[0] not in '#%' and form.words in line:
            yield line


def _read(
    path: Path,
    form: _Form,
    names: Sequence[str],
    dates: Sequence[str],
    wanted: Sequence[str],
) -> Columns:
    """Read columns of a file, a block of rows at a time; `dates` are those of times."""
    index, blocks = {name: names.index(name) for name in wanted}, list[np.ndarray]()
    with _open(path, form.encoding) as stream:
        kept = _data_lines(stream, form)
        while lines := list(itertools.islice(kept, ROWS)):
            # At once where all are numbers, else cell by cell.
            how: Any = {'delimiter': form.delimiter or None, 'comments': None, 'quotechar': '"'}
            try:
                if form.decimal_comma:
                    raise ValueError
                blocks.append(np.loadtxt(lines, usecols=[*index.values()], ndmin=2, **how))
            except ValueError:
                split = csv.reader(lines, delimiter=form.delimiter) if form.delimiter else None
                rows = [*(split or map(str.split, lines))]
                cells = {n: [r[k] if k < len(r) else '' for r in rows] for n, k in index.items()}
                found = [readable(str(path), name, own, form) for name, own in cells.items()]
                blocks.append(np.column_stack(found))
    columns = dict(zip(wanted, np.concatenate(blocks).T, strict=True))
    for name in columns.keys() & dates:
        time = columns[name]
        if np.nanmax(time, initial=0.0) <= DAY:  # times of day go on after midnight
            known = np.flatnonzero(np.isfinite(time))
            nights = np.diff(time[known], prepend=time[known[:1]]) < -DAY / 2.0
            columns[name] = time.copy()
            columns[name][known] += DAY * np.cumsum(nights)
    return columns


def readable(source: str, name: str, cells: Sequence[str], form: _Form) -> np.ndarray:
    """
    Turn cells into numbers, NaN for anything else; dates into seconds since 1970, or midnight.

    Raises RecordingError where many begin as numbers and are none, as `1,234` or `5 km`.
    """
    convert: Callable[[str], float] = functools.partial(number, decimal_comma=form.decimal_comma)
    if any(map(_CLOCK.match, itertools.islice(filter(str.strip, cells), 3))):
        convert = _seconds
    values = np.fromiter(map(convert, cells), float, len(cells))
    missing = itertools.compress(cells, np.isnan(values))
    lost = [cell for cell in missing if _UNREADABLE.match(cell)]
    if len(lost) > MAX_UNREADABLE * len(cells):
        raise RecordingError(
            f"'{source}' has {len(lost)} cells in the column '{name}' that are no numbers, as "
            f"'{lost[0].strip()}': export them without signs between thousands, and without units"
        )
    return values


def is_value(cell: str, decimal_comma: bool) -> bool:
    """Return whether a cell is a number, a date, or says that there is none."""
    return (
        cell.strip().lower() in MISSING[1:]
        or not math.isnan(number(cell, decimal_comma))
        or _CLOCK.match(cell) is not None
    )


def number(cell: str, decimal_comma: bool = False) -> float:
    """Return a number, NaN for any other text, thousands with signs between them among those."""
    try:
        return float(cell.replace(',', '.') if decimal_comma else cell)
    except ValueError:
        return math.nan


def _seconds(cell: str) -> float:
    found = _CLOCK.match(cell)
    if found is None:
        return math.nan
    day, hour, minute, second = found.groups()
    days = np.datetime64(day.replace('/', '-'), 'D').astype(int) if day else 0
    seconds = 3600 * int(hour) + 60 * int(minute) + float(second.replace(',', '.'))
    return float(days * DAY + seconds)
