"""Tables as text: CSV of any delimiter, with a header or without."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
import contextlib
import csv
from dataclasses import dataclass
import functools
import gzip
import io
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from ...exceptions import RecordingError
from ..atomic import file_errors, open_regular
from ..bounded import BoundedStream
from .column_names import understand
from .table import Columns, ColumnTable
from .text_cells import (
    has_decimal_commas,
    header_of,
    is_clock,
    is_date,
    is_day,
    is_value,
    over_midnight,
    readable,
    share_of_values,
    unique,
)

DELIMITERS = (',', ';', '\t', '|')
# Lines in which header and first numbers are looked for; rows that are converted together.
HEAD, ROWS = 200, 20_000
# Of texts that are not Unicode: the one in which most names say something counts.
ENCODINGS = ('cp1252', 'gb18030', 'cp932', 'euc_kr', 'cp1251')
# Share of a row that has to be values, at least and over that of the rows far below: half of what
# devices tell of each of their signals is numbers, too.
LEAST, BESIDE = 0.5, 0.75
_GZIP = b'\x1f\x8b'


@dataclass(frozen=True)
class _Form:
    """How a file is to be read; `delimiter` '' is any white space, `first` the first data line."""

    encoding: str
    delimiter: str
    decimal_comma: bool
    first: int


def read_text_table(path: Path) -> ColumnTable:
    """
    Open a text file of numbers.

    Raises
    ------
    FileError, RecordingError : it cannot be read, or holds no table

    """
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
    days = [name for name, cell in texts.items() if is_day(cell)]
    dates = {
        name: days[0] if is_clock(cell) and len(days) == 1 else ''
        for name, cell in zip(names, cells, strict=True)
        if is_date(cell)
    }
    return ColumnTable(
        str(path),
        {name: 0 for name in names if name not in texts},
        functools.partial(_read, path, form, names, dates),
        bool(header),
        texts,
        units=dict.fromkeys(dates, 's'),
    )


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
    header = header_of(above, width, lambda row: share_of_values(row, comma) < 0.5)
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
        lines = itertools.islice(stream, form.first, None)
        kept = (line for line in lines if line.strip() and line[0] not in '#%')
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
