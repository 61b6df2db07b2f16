"""Tables as text: CSV of any delimiter, with a header or without, and sheets of Excel."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import contextlib
import csv
from dataclasses import dataclass
import functools
import gzip
import io
import itertools
from pathlib import Path
import re
from typing import Any, IO
from xml.etree import ElementTree
import zipfile

import numpy as np

from ...exceptions import RecordingError
from ..atomic import file_errors, open_regular
from ..bounded import BoundedStream, check_unpacked
from .column_names import understand
from .table import Columns, Table
from .text_cells import (
    has_decimal_commas,
    header_of,
    is_clock,
    is_date,
    is_day,
    is_value,
    over_midnight,
    rate_of,
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
# Opens a text in an encoding, without end as often as it is called.
Opener = Callable[[str], io.TextIOBase]


@dataclass(frozen=True)
class _Form:
    """How a file is to be read; `delimiter` '' is any white space, `first` the first data line."""

    encoding: str
    delimiter: str
    decimal_comma: bool
    first: int


@dataclass(frozen=True)
class _Head:
    """What the first lines show: form, header, a first cell of each column, rate [Hz] or 0."""

    form: _Form
    header: list[str]
    cells: list[str]
    rate: float


def read_text_table(path: Path) -> Table:
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
    elif any('\ufffd' in line for line in _lines(functools.partial(_open, path), encodings[0])):
        encodings = ENCODINGS
    return read_text(str(path), functools.partial(_open, path), encodings)


def read_text(source: str, opener: Opener, encodings: Sequence[str] = ('utf-8',)) -> Table:
    """
    Make a table of a text.

    Parameters
    ----------
    source : for messages
    opener : of the text
    encodings : that it may have, the likeliest first

    Raises
    ------
    RecordingError : it holds no table

    """
    found = [(_lines(opener, encoding), encoding) for encoding in encodings]
    heads = [_analyse(source, lines, encoding) for lines, encoding in found]
    best = max(range(len(heads)), key=lambda k: len([*filter(understand, heads[k].header)]))
    head = heads[best]
    form, cells = head.form, head.cells
    header = head.header or [f'column{k + 1}' for k in range(len(cells))]
    names = unique(header)
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
    widths = {name: 0 for name in names if name not in texts}
    return Table(
        source,
        widths,
        functools.partial(_read, source, opener, form, names, dates),
        bool(head.header),
        texts,
        rate=head.rate,
        units=dict.fromkeys(dates, 's'),
        words=functools.partial(_words, opener, form, names),
    )


def _lines(opener: Opener, encoding: str) -> list[str]:
    with opener(encoding) as stream:
        return list(itertools.islice(stream, HEAD))


def _open(path: Path, encoding: str) -> io.TextIOBase:
    with file_errors(path):
        stream: Any = open_regular(path)
        if stream.peek(2)[:2] == _GZIP:
            stream = io.BufferedReader(BoundedStream(path, gzip.GzipFile(fileobj=stream)))
        return io.TextIOWrapper(stream, encoding=encoding, errors='replace', newline='')


def _analyse(source: str, lines: list[str], encoding: str) -> _Head:
    """Find the delimiter that leaves most numbers, the header, and a first cell of each column."""
    found: dict[_Form, list[list[str]]] = {}
    shares: dict[_Form, float] = {}
    for delimiter in (*DELIMITERS, ''):
        comma = has_decimal_commas(_cells(line, delimiter) for line in lines)
        rows = _rows(lines, delimiter)
        first = _first_row(rows, comma)
        if first is not None:
            form = _Form(encoding, delimiter, comma, first)
            found[form] = rows
            shares[form] = share_of_values(itertools.chain(*rows[first:]), comma)
    if not found:
        raise RecordingError(
            f"'{source}' holds no table of numbers in its first {HEAD} lines: give a bag "
            '(MCAP, SQLite), or a CSV file with one row per sample'
        )
    form = max(shares, key=lambda form: shares[form])
    above, rows = found[form][: form.first], found[form][form.first :]
    width = len(rows[0])
    cells = [next((r[k] for r in rows if k < len(r) and r[k].strip()), '') for k in range(width)]
    header = header_of(above, width, lambda row: share_of_values(row, form.decimal_comma) < 0.5)
    return _Head(form, header, cells, rate_of(above, form.decimal_comma))


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


def _blocks(opener: Opener, form: _Form) -> Iterable[list[str]]:
    """Yield the lines of the table, a block at a time."""
    with opener(form.encoding) as stream:
        lines = itertools.islice(stream, form.first, None)
        kept = (line for line in lines if line.strip() and line[0] not in '#%')
        while block := list(itertools.islice(kept, ROWS)):
            yield block


def _read(
    source: str,
    opener: Opener,
    form: _Form,
    names: Sequence[str],
    dates: Mapping[str, str],
    wanted: Sequence[str],
) -> Columns:
    """Read columns of a file, a block of rows at a time; `dates` names the column of the days."""
    asked = dict.fromkeys([*wanted, *(dates[name] for name in wanted if dates.get(name))])
    index = {name: names.index(name) for name in asked}
    blocks = [_numbers(source, block, form, index) for block in _blocks(opener, form)]
    columns = dict(zip(asked, np.concatenate(blocks).T, strict=True))
    for name in dates.keys() & asked.keys():
        day = dates[name]
        time = columns[name]
        columns[name] = time + columns[day] if day else over_midnight(time)
    return {name: columns[name] for name in wanted}


def _words(opener: Opener, form: _Form, names: Sequence[str], name: str) -> np.ndarray:
    """Read a column of words, (N,)."""
    index = names.index(name)
    found = (
        row[index].strip() if index < len(row) else ''
        for block in _blocks(opener, form)
        for row in _split(block, form)
    )
    return np.array([*found])


def _split(lines: Sequence[str], form: _Form) -> Iterable[list[str]]:
    if form.delimiter:
        return csv.reader(lines, delimiter=form.delimiter)
    return (line.split() for line in lines)


def _numbers(
    source: str, lines: Sequence[str], form: _Form, index: Mapping[str, int]
) -> np.ndarray:
    """
    Convert columns of lines, (N, columns): at once where all are numbers, else cell by cell.

    Raises
    ------
    RecordingError : many cells hold numbers that are written in another way

    """
    if not form.decimal_comma:
        with contextlib.suppress(ValueError):
            how: Any = {'delimiter': form.delimiter or None, 'comments': None, 'quotechar': '"'}
            return np.asarray(np.loadtxt(lines, usecols=[*index.values()], ndmin=2, **how))
    rows = [*_split(lines, form)]
    columns = {name: [row[k] if k < len(row) else '' for row in rows] for name, k in index.items()}
    return np.column_stack(
        [readable(source, name, cells, form.decimal_comma) for name, cells in columns.items()]
    )


_WORKBOOK, _SHARED = 'xl/workbook.xml', 'xl/sharedStrings.xml'
_SHEETS = re.compile(r'xl/worksheets/[^/]+\.xml$')
_MAIN = '{http://schemas.openxmlformats.org/spreadsheetml/2006/main}'
_LARGEST = 16384  # columns of a sheet


def is_workbook(path: Path) -> bool:
    """Return whether an archive is a workbook of Excel."""
    with open_regular(path) as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                return _WORKBOOK in archive.namelist()
        except zipfile.BadZipFile:
            return False


def read_xlsx(path: Path) -> Table:
    """
    Read the sheet with most cells, as a text of the same cells is read; dates are days.

    Raises
    ------
    RecordingError : it has no sheets, or holds no table

    """
    with open_regular(path) as stream, zipfile.ZipFile(stream) as archive:
        check_unpacked(path, sum(info.file_size for info in archive.infolist()))
        sheets = [info for info in archive.infolist() if _SHEETS.match(info.filename)]
        if not sheets:
            raise RecordingError(f"'{path}' has no sheets: export it again, or as CSV")
        words = []
        if _SHARED in archive.namelist():
            with archive.open(_SHARED) as part:
                words = [_text(item) for item in _elements(part, 'si')]
        with archive.open(max(sheets, key=lambda info: info.file_size)) as part:
            rows = ['\t'.join(_cells_of_row(row, words)) for row in _elements(part, 'row')]
    text = '\n'.join(rows)
    return read_text(str(path), lambda _: io.StringIO(text))


def _elements(stream: IO[bytes], name: str) -> Iterator[ElementTree.Element]:
    """Yield the elements of a name, each of which is forgotten afterwards."""
    for _, element in ElementTree.iterparse(stream):
        if element.tag == _MAIN + name:
            yield element
            element.clear()


def _cells_of_row(row: ElementTree.Element, words: list[str]) -> list[str]:
    cells: list[str] = []
    for cell in row.iterfind(f'{_MAIN}c'):
        place = _column(cell.get('r', ''), len(cells))
        cells += [''] * (place - len(cells))
        value = cell.findtext(f'{_MAIN}v', '')
        kind = cell.get('t', 'n')
        if kind == 's':
            value = words[int(value)]
        elif kind == 'inlineStr':
            value = _text(cell)
        elif kind == 'e':  # an error
            value = ''
        cells.append(' '.join(value.split()))
    return cells


def _column(reference: str, following: int) -> int:
    """Return the number of a column, from 0: 27 of AB12; cells may leave their place out."""
    letters = reference.rstrip('0123456789')
    number = 0
    for letter in letters:
        number = 26 * number + int(letter, 36) - 9
    return max(following, number - 1) if 0 < number <= _LARGEST else following


def _text(element: ElementTree.Element) -> str:
    return ''.join(part.text or '' for part in element.iter(f'{_MAIN}t'))
