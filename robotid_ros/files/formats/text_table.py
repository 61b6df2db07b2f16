"""Tables as text: CSV of any delimiter, with a header or without."""

from collections import Counter
from collections.abc import Iterable, Sequence
import contextlib
import csv
from dataclasses import dataclass
import functools
import gzip
import io
import itertools
import math
from pathlib import Path
import re
from typing import Any

import numpy as np

from ...exceptions import RecordingError
from ..atomic import file_errors, open_regular
from ..bounded import BoundedStream
from .table import Columns, Table
from .units import is_unit

DELIMITERS = (',', ';', '\t', '|')
# Lines in which header and first numbers are looked for; rows that are converted together.
HEAD, ROWS = 200, 20_000
# Without the offset from Greenwich, which is the same all over a log.
_DATE = re.compile(
    r'\s*(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d*)?)?)\s*(?:Z|[+-]\d\d:?\d\d)?\s*$'
)
_GZIP = b'\x1f\x8b'
_MISSING = ('', 'na', 'n/a', 'null', 'none', '-', 'nan')


@dataclass(frozen=True)
class _Form:
    """How a file is to be read; `delimiter` '' is any white space, `first` the first data line."""

    encoding: str
    delimiter: str
    decimal_comma: bool
    first: int


def read_text_table(path: Path) -> Table:
    """
    Open a text file of numbers.

    Raises
    ------
    FileError, RecordingError : it cannot be read, or holds no table

    """
    encoding = _encoding(path)
    lines = _head(path, encoding)
    if any('\ufffd' in line for line in lines):  # not UTF-8
        lines = _head(path, encoding := 'cp1252')
    form, header, cells = _analyse(path, lines, encoding)
    names = _unique(header or [f'column{k + 1}' for k in range(len(cells))])
    texts = {
        name: cell.strip()
        for name, cell in zip(names, cells, strict=True)
        if cell.strip() and not _is_value(cell, form.decimal_comma)
    }
    widths = {name: 0 for name in names if name not in texts}
    read = functools.partial(_read, path, form, names)
    return Table(str(path), widths, read, bool(header), texts)


def _encoding(path: Path) -> str:
    with open_regular(path) as stream, file_errors(path):
        start = stream.read(4)
    return 'utf-16' if start[:2] in (b'\xff\xfe', b'\xfe\xff') else 'utf-8-sig'


def _head(path: Path, encoding: str) -> list[str]:
    with _open(path, encoding) as stream:
        return list(itertools.islice(stream, HEAD))


def _open(path: Path, encoding: str) -> io.TextIOBase:
    with file_errors(path):
        stream: Any = open_regular(path)
        if stream.peek(2)[:2] == _GZIP:
            stream = io.BufferedReader(BoundedStream(path, gzip.GzipFile(fileobj=stream)))
        return io.TextIOWrapper(stream, encoding=encoding, errors='replace', newline='')


def _analyse(path: Path, lines: list[str], encoding: str) -> tuple[_Form, list[str], list[str]]:
    """Find the delimiter that leaves most numbers, the header, and a first cell of each column."""
    found: dict[_Form, list[list[str]]] = {}
    shares: dict[_Form, float] = {}
    for delimiter in (*DELIMITERS, ''):
        comma = delimiter in (';', '\t', '') and _has_decimal_commas(lines, delimiter)
        rows = _rows(lines, delimiter)
        first = _first_row(rows, comma)
        if first is not None:
            form = _Form(encoding, delimiter, comma, first)
            found[form] = rows
            shares[form] = _share(itertools.chain(*rows[first:]), comma)
    if not found:
        raise RecordingError(
            f"'{path}' holds no table of numbers in its first {HEAD} lines: give a recording, or "
            'a CSV file with one row per sample'
        )
    form = max(shares, key=lambda form: shares[form])
    above, rows = found[form][: form.first], found[form][form.first :]
    width = len(rows[0])
    cells = [next((r[k] for r in rows if k < len(r) and r[k].strip()), '') for k in range(width)]
    return form, _header(above, width, form.decimal_comma), cells


def _share(cells: Iterable[str], comma: bool) -> float:
    """Return the share of the cells that hold values, among those that hold anything."""
    filled = [cell for cell in cells if cell.strip()]
    return sum(_is_value(cell, comma) for cell in filled) / max(1, len(filled))


def _first_row(rows: Sequence[list[str]], comma: bool) -> int | None:
    """Return the first of the rows that stay a table of numbers, of one column if need be."""
    for least, k, row in ((n, k, row) for n in (2, 1) for k, row in enumerate(rows)):
        if sum(_is_value(cell, comma) for cell in row) < least or row[0].startswith(('#', '%')):
            continue
        following = [other for other in rows[k + 1 :] if other][:2]
        if _share(row, comma) >= 0.5 and all(len(other) == len(row) for other in following):
            return k
    return None


def _header(rows: Sequence[list[str]], width: int, comma: bool) -> list[str]:
    """Return the names: the last row of words above the numbers, units joined to them."""
    fitting = []
    for row in rows:
        if len(row) == width + 1 and row[0] in ('#', '%'):
            row = row[1:]
        elif len(row) == width + 1 and not row[-1].strip():
            row = row[:-1]
        if len(row) == width and any(row) and _share(row, comma) < 0.5:
            fitting.append(row)
    if not fitting:
        return []
    names = fitting[-1]
    if len(fitting) > 1 and all(is_unit(cell.strip(' []()')) for cell in names if cell.strip()):
        units, names = names, fitting[-2]
        names = [f'{n} [{u.strip(" []()")}]' for n, u in zip(names, units, strict=True)]
    return [name.strip().lstrip('#%').strip() for name in names]


def _unique(names: Sequence[str]) -> list[str]:
    """Give empty and repeated names one of their own."""
    seen: dict[str, int] = {}
    result = []
    for k, name in enumerate(names):
        own = name or f'column{k + 1}'
        seen[own] = seen.get(own, 0) + 1
        result.append(own if seen[own] == 1 else f'{own} ({seen[own]})')
    return result


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
    except csv.Error:  # a whole signal in one line
        return line.split(delimiter)


def _has_decimal_commas(lines: Iterable[str], delimiter: str) -> bool:
    cells = itertools.chain.from_iterable(_cells(line, delimiter) for line in lines)
    numbers = [cell for cell in cells if not math.isnan(_number(cell, True))]
    return not any('.' in cell for cell in numbers) and any(',' in cell for cell in numbers)


def _is_value(cell: str, decimal_comma: bool) -> bool:
    return (
        cell.strip().lower() in _MISSING[1:]
        or not math.isnan(_number(cell, decimal_comma))
        or _is_date(cell)
    )


def _is_date(cell: str) -> bool:
    return _DATE.match(cell) is not None


def _number(cell: str, decimal_comma: bool = False) -> float:
    try:
        return float(cell.replace(',', '.') if decimal_comma else cell)
    except ValueError:
        return math.nan


def _read(path: Path, form: _Form, names: Sequence[str], wanted: Sequence[str]) -> Columns:
    """Read columns of a file, a block of rows at a time."""
    index = [names.index(name) for name in wanted]
    blocks = []
    with file_errors(path), _open(path, form.encoding) as stream:
        lines = itertools.islice(stream, form.first, None)
        kept = (line for line in lines if line.strip() and line[0] not in '#%')
        while block := list(itertools.islice(kept, ROWS)):
            blocks.append(_numbers(block, form, index))
    return dict(zip(wanted, np.concatenate(blocks).T, strict=True))


def _numbers(lines: Sequence[str], form: _Form, index: Sequence[int]) -> np.ndarray:
    """Convert columns of lines, (N, columns): at once where all are numbers, else cell by cell."""
    if not form.decimal_comma:
        with contextlib.suppress(ValueError):
            delimiter = form.delimiter or None
            return np.loadtxt(
                lines, delimiter=delimiter, usecols=index, ndmin=2, comments=None, quotechar='"'
            )
    if form.delimiter:
        rows = list(csv.reader(lines, delimiter=form.delimiter))
    else:
        rows = [line.split() for line in lines]
    columns = ([row[k] if k < len(row) else '' for row in rows] for k in index)
    return np.column_stack([_convert(column, form.decimal_comma) for column in columns])


def _convert(cells: Sequence[str], decimal_comma: bool) -> np.ndarray:
    """Turn cells into numbers, dates into seconds since 1970; NaN for anything else."""
    try:
        return np.fromiter((float(cell or 'nan') for cell in cells), float, len(cells))
    except ValueError:
        pass
    if any(map(_is_date, itertools.islice(filter(str.strip, cells), 3))):
        found = map(_DATE.match, cells)
        try:
            dates = np.array([date[1] if date else 'NaT' for date in found], 'datetime64[ns]')
        except ValueError:  # the 30th of February
            return np.full(len(cells), math.nan)
        return np.where(np.isnat(dates), math.nan, dates.astype(np.int64) * 1e-9)
    return np.fromiter((_number(cell, decimal_comma) for cell in cells), float, len(cells))
