"""Tables as text: CSV of any delimiter, with a header or without; numbers, dates, nothing."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import csv
from dataclasses import dataclass, replace
import datetime
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
# Of texts that are not Unicode: the one in which most names say something counts.
ENCODINGS = ('cp1252', 'gb18030', 'cp932', 'euc_kr', 'cp1251')
# Share of a row that has to be values, at least and over that of the rows far below: half of what
# devices tell of each of their signals is numbers, too.
LEAST, BESIDE = 0.5, 0.75
_GZIP = b'\x1f\x8b'
MISSING = ('', 'na', 'n/a', 'null', 'none', '-', 'nan')
# The offset from Greenwich, which is the same all over a log, is passed over.
# A date with a time or a time of day, and a date alone.
_CLOCK = re.compile(
    r'\s*(?:(?P<day>\d{1,4}[-./]\d{1,2}[-./]\d{1,4}),?[T ]\s*|(?P<days>\d+) days?,? )?'
    r'(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,:](?P<part>\d+))?)?'
    r'\s*(?P<half>[AaPp])?[.Mm]*\s*(?:Z|[+-]\d\d:?\d\d)?\s*$'
)
_DAY = re.compile(r'\s*\d{1,4}([-./])\d{1,2}\1\d{1,4}\s*$')
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
        start = stream.read(HEAD)
    encodings: Sequence[str] = ('utf-8-sig',)
    if start[:2] in ('\xff\xfe', '\xfe\xff'):
        encodings = ('utf-16',)
    elif '\0' in start[:4]:
        encodings = ('utf-16-le' if start[1] == '\0' else 'utf-16-be',)
    elif any('\ufffd' in line for line in _first_lines(path, encodings[0])):
        encodings = ENCODINGS
    heads = [_analyse(path, encoding) for encoding in encodings]
    form, header, cells = max(heads, key=lambda head: len([*filter(understand, head[1])]))
    names = unique(header or [''] * len(cells))
    texts = {
        name: cell.strip()
        for name, cell in zip(names, cells, strict=True)
        if cell.strip() and not is_value(cell, form.decimal_comma)
    }
    form, notes = _of_same_joints(path, form, texts, bool(header))
    days = [name for name, cell in texts.items() if _DAY.match(cell)]
    dates = {}
    for name, cell in zip(names, cells, strict=True):
        if clock := _CLOCK.match(cell):
            dated = clock['day'] or clock['days'] or len(days) != 1
            dates[name] = '' if dated else days[0]
    return ColumnTable(
        str(path),
        [name for name in names if name not in texts],
        functools.partial(_read, path, form, names, dates),
        bool(header),
        texts,
        notes=notes,
        units=dict.fromkeys(dates, 's'),
    )


def _of_same_joints(
    path: Path, form: _Form, texts: Mapping[str, str], header: bool
) -> tuple[_Form, tuple[Finding, ...]]:
    """Leave out rows that name other joints: their columns are of these, in their order."""
    names = [name for name in texts if name[-1].isdigit()]
    if header:
        names = [n for n in names if (said := understand(n)) and said.quantity == 'name']
    if len(names) < 2:
        return form, ()
    words = form.delimiter.join(texts[name] for name in names)
    with _open(path, form.encoding) as stream:
        found = Counter(
            words if words in line else _words(line, form) for line in _data_lines(stream, form)
        )
    if not found.pop(words, 0) or not found:  # blanks around the names, or the same joints
        return form, ()
    sets, counts = zip(*found.most_common(), strict=True)
    note = finding('rows_of_other_joints', sets=sets, counts=counts)
    return replace(form, words=words), (note,)


def _words(line: str, form: _Form) -> str:
    cells = _cells(line.strip(), form.delimiter)
    words = (c.strip() for c in cells if c.strip() and not is_value(c, form.decimal_comma))
    return ', '.join(words) or 'none'


def _data_lines(stream: Iterable[str], form: _Form) -> Iterator[str]:
    for line in itertools.islice(stream, form.first, None):
        if line.strip() and line[0] not in '#%' and form.words in line:
            yield line


def _first_lines(path: Path, encoding: str) -> list[str]:
    with _open(path, encoding) as stream:
        return list(itertools.islice(stream, HEAD))


def _open(path: Path, encoding: str) -> io.TextIOBase:
    with file_errors(path):
        stream: Any = open_regular(path)
        if stream.peek(2)[:2] == _GZIP:
            stream = io.BufferedReader(BoundedStream(path, gzip.GzipFile(fileobj=stream)))
        return io.TextIOWrapper(stream, encoding=encoding, errors='replace', newline='')


def _analyse(path: Path, encoding: str) -> tuple[_Form, list[str], list[str]]:
    """Return form, with the delimiter that leaves most numbers, header, and first cells."""
    lines, best, rows = _first_lines(path, encoding), None, list[list[str]]()
    most = -1.0
    for delimiter in (*DELIMITERS, ''):
        comma = has_decimal_commas(_cells(line, delimiter) for line in lines)
        split = _rows(lines, delimiter)
        first = _first_row(split, comma)
        if first is not None:
            share = share_of_values(itertools.chain(*split[first:]), comma)
            if share > most:
                best, rows, most = _Form(encoding, delimiter, comma, first), split, share
    if best is None:
        raise RecordingError(
            f"'{path}' holds no table of numbers in its first {HEAD} lines: give a bag "
            '(MCAP, SQLite), or a CSV file with one row per sample'
        )
    above, rows, comma = rows[: best.first], rows[best.first :], best.decimal_comma
    width = len(rows[0])
    cells = [next((r[k] for r in rows if k < len(r) and r[k].strip()), '') for k in range(width)]
    header = _header_of(above, width, comma)
    return best, header, cells


def _first_row(rows: Sequence[list[str]], comma: bool) -> int | None:
    """Return the first of the rows that stay a table of numbers, of one column if need be."""
    later = [share_of_values(row, comma) for row in rows[len(rows) // 2 :] if any(row)]
    enough = max(LEAST, BESIDE * float(np.median(later))) if later else LEAST
    for least, k, row in ((n, k, row) for n in (2, 1) for k, row in enumerate(rows)):
        if sum(is_value(cell, comma) for cell in row) < least or row[0].startswith(('#', '%')):
            continue
        following = [other for other in rows[k + 1 :] if any(other)][:2]
        alike = all(len(r) == len(row) and share_of_values(r, comma) >= enough for r in following)
        if alike and share_of_values(row, comma) >= enough:
            return k
    return None


def _rows(lines: Iterable[str], delimiter: str) -> list[list[str]]:
    """Split lines, without a last cell that all rows of the table leave empty."""
    rows = [_cells(line, delimiter) for line in lines]
    counts = Counter(len(row) for row in rows if row)
    width = max(counts, key=lambda width: counts[width], default=0)
    if width > 2 and not any(row[-1].strip() for row in rows if len(row) == width):
        rows = [row[:-1] if len(row) == width else row for row in rows]
    return rows


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), []) if delimiter else line.split()
    except csv.Error:  # a cell of 131,072 signs
        return line.split(delimiter)


def _read(
    path: Path,
    form: _Form,
    names: Sequence[str],
    dates: Mapping[str, str],
    wanted: Sequence[str],
) -> Columns:
    """Read columns of a file, a block of rows at a time; `dates` names the column of the days."""
    asked = dict.fromkeys([*wanted, *(dates[name] for name in wanted if dates.get(name))])
    index, blocks = {name: names.index(name) for name in asked}, list[np.ndarray]()
    with _open(path, form.encoding) as stream:
        kept = _data_lines(stream, form)
        while block := list(itertools.islice(kept, ROWS)):
            blocks.append(_numbers(path, block, form, index))
    columns = dict(zip(asked, np.concatenate(blocks).T, strict=True))
    for name in dates.keys() & asked.keys():
        day, time = dates[name], columns[name]
        columns[name] = time + columns[day] if day else over_midnight(time)
    return {name: columns[name] for name in wanted}


def _numbers(
    path: Path, lines: Sequence[str], form: _Form, index: Mapping[str, int]
) -> np.ndarray:
    """Convert columns of lines, (N, columns): at once where all are numbers, else cell by cell."""
    if not form.decimal_comma:
        with contextlib.suppress(ValueError):
            how: Any = {'delimiter': form.delimiter or None, 'comments': None, 'quotechar': '"'}
            return np.asarray(np.loadtxt(lines, usecols=[*index.values()], ndmin=2, **how))
    separated = csv.reader(lines, delimiter=form.delimiter) if form.delimiter else None
    rows = [*(separated or map(str.split, lines))]
    columns = {name: [row[k] if k < len(row) else '' for row in rows] for name, k in index.items()}
    return np.column_stack(
        [readable(str(path), name, cells, form.decimal_comma) for name, cells in columns.items()]
    )


def is_value(cell: str, decimal_comma: bool) -> bool:
    """Return whether a cell is a number, a date, or says that there is none."""
    return (
        cell.strip().lower() in MISSING[1:]
        or not math.isnan(number(cell, decimal_comma))
        or _CLOCK.match(cell) is not None
    )


def number(cell: str, decimal_comma: bool = False) -> float:
    """Return a number, NaN for any other text, thousands with signs between them among those."""
    with contextlib.suppress(ValueError):
        return float(cell.replace(',', '.') if decimal_comma else cell)
    return math.nan


def _converted(cells: Sequence[str], decimal_comma: bool) -> np.ndarray:
    """
    Turn cells into numbers, NaN for anything else.

    Dates become seconds since 1970, times of day those since midnight.
    """
    if not (decimal_comma and any('.' in cell for cell in cells)):
        with contextlib.suppress(ValueError):
            return np.fromiter((float(cell or 'nan') for cell in cells), float, len(cells))
    first = [*itertools.islice(filter(str.strip, cells), 3)]
    if first and all(map(_DAY.match, first)):
        days = (_days(cell.strip()) if _DAY.match(cell) else math.nan for cell in cells)
        return DAY * np.fromiter(days, float, len(cells))
    if not any(map(_CLOCK.match, first)):
        return np.fromiter((number(cell, decimal_comma) for cell in cells), float, len(cells))
    return np.fromiter(map(_seconds, cells), float, len(cells))


def readable(source: str, name: str, cells: Sequence[str], decimal_comma: bool) -> np.ndarray:
    """Turn cells into numbers; a RecordingError where many begin as such, as `1,234` or `5 km`."""
    values = _converted(cells, decimal_comma)
    missing = itertools.compress(cells, np.isnan(values))
    lost = [cell for cell in missing if _UNREADABLE.match(cell)]
    if len(lost) > MAX_UNREADABLE * len(cells):
        raise RecordingError(
            f"'{source}' has {len(lost)} cells in the column '{name}' that are no numbers, as "
            f"'{lost[0].strip()}': export them without signs between thousands, and without units"
        )
    return values


def share_of_values(cells: Iterable[str], comma: bool) -> float:
    """Return the share of the cells that hold values, among those that hold anything."""
    filled = [cell for cell in cells if cell.strip()]
    return sum(is_value(cell, comma) for cell in filled) / max(1, len(filled))


def has_decimal_commas(rows: Iterable[Sequence[str]]) -> bool:
    """Return whether the numbers of rows have decimal commas, and no decimal points."""
    cells = itertools.chain.from_iterable(rows)
    numbers = [cell for cell in cells if not math.isnan(number(cell, True))]
    return any(',' in cell for cell in numbers) and not any('.' in cell for cell in numbers)


def over_midnight(times: np.ndarray) -> np.ndarray:
    """Let times of day (N,) go on after midnight; dates stay."""
    if not np.nanmax(times, initial=0.0) <= DAY:
        return times
    known = np.flatnonzero(np.isfinite(times))
    days = np.cumsum(np.diff(times[known], prepend=times[known[:1]]) < -DAY / 2.0)
    result = times.copy()
    result[known] += DAY * days
    return result


def _seconds(cell: str) -> float:
    found = _CLOCK.match(cell)
    if found is None:
        return math.nan
    hour = int(found['hour'])
    if found['half']:
        hour = hour % 12 + (12 if found['half'] in 'pP' else 0)
    seconds = 3600 * hour + 60 * int(found['minute']) + int(found['second'] or 0)
    days = _days(found['day'] or '') + int(found['days'] or 0)
    return days * DAY + seconds + float(f'0.{found["part"] or 0}')


@functools.lru_cache(maxsize=64)
def _days(text: str) -> float:
    """Return the days since 1970 of 2026-05-04, 04.05.2026 or 05/04/2026; 0 of nothing."""
    if not text:
        return 0.0
    first, middle, last = map(int, re.split('[-./]', text))
    if first > 31:
        year, month, day = first, middle, last
    else:
        month, day = (first, middle) if '/' in text and first <= 12 else (middle, first)
        year = last + (2000 if last < 100 else 0)
    try:
        return float(datetime.date(year, month, day).toordinal() - 719163)
    except ValueError:
        return math.nan


def _header_of(rows: Sequence[list[str]], width: int, comma: bool) -> list[str]:
    """Return the names of columns in the rows above them, units joined to them, [] for none."""
    fitting = []
    for row in rows:
        if len(row) == width + 1:
            row = row[1:] if row[0] in ('#', '%') else row[:-1]
        if len(row) == width and any(row) and share_of_values(row, comma) < 0.5:
            fitting.append([cell.strip() for cell in row])
    units = [row for row in fitting if _are_units(row)] if len(fitting) > 1 else []
    named = [row for row in fitting if row not in units] or fitting
    if not named:
        return []
    best = max(reversed(named), key=lambda row: len(set(row)))
    if len(named) > 1 and len(set(best)) < width:  # names of several levels
        levels = zip(*map(_filled, named), strict=True)
        whole = [' '.join(filter(None, cells)) for cells in levels]
        best = max(best, whole, key=lambda row: len(set(row)))
    names = [name.lstrip('#%').strip() for name in best]
    for row in units[-1:]:
        pairs = zip(names, (cell.strip(' []()') for cell in row), strict=True)
        names = [f'{name} [{unit}]' if name and is_unit(unit) else name for name, unit in pairs]
    return names


def _filled(row: Sequence[str]) -> Sequence[str]:
    """Repeat names over the empty cells behind them, as merged cells have them."""
    if sum(map(bool, row)) < 2:
        return row
    result: list[str] = []
    for cell in row:
        result.append(cell or ''.join(result[-1:]))
    return result


def _are_units(row: Sequence[str]) -> bool:
    """Return whether a row holds units, behind what may say so."""
    first, *others = (cell.strip(' []()') for cell in row)
    return all(map(is_unit, filter(None, others))) if any(others) else is_unit(first)


def unique(names: Sequence[str]) -> list[str]:
    """Give empty and repeated names one of their own."""
    seen, result = Counter[str](), []
    for k, name in enumerate(names):
        own = name or f'column{k + 1}'
        seen[own] += 1
        result.append(own if seen[own] == 1 else f'{own} ({seen[own]})')
    return result
