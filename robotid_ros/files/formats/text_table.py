"""Tables as text: CSV of any delimiter, with a header or without; numbers, dates, nothing."""

from collections import Counter
from collections.abc import Iterator, Sequence
import csv
import functools
import gzip
import io
import itertools
import math
from pathlib import Path
import re
from typing import Any, NamedTuple

import numpy as np

from ...core.findings import Finding, finding
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
# What Python takes for a number, but thousands with signs between them.
_DIGITS = r'\d(?:_?\d)*'
_DECIMAL = rf'(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:e[+-]?{_DIGITS})?'
_NUMBER = rf'[+-]?(?:{_DECIMAL}|inf(?:inity)?)'
_IS_NUMBER = re.compile(rf'\s*{_NUMBER}\s*$', re.IGNORECASE)
# A date with a time, or a time of day. The offset from Greenwich is the same all over a log.
_TIME = (
    r'(?:(\d{4}[-/]\d\d[-/]\d\d)[T ]\s*)?(\d{1,2}):(\d\d):(\d\d(?:[.,]\d+)?)\s*'
    r'(?:Z|[+-]\d\d:?\d\d)?'
)
_CLOCK = re.compile(rf'\s*{_TIME}\s*$')
# A number, a date, or what says that there is none.
_VALUE = re.compile(rf'\s*(?:(?i:{_NUMBER}|n/?a|null|none|-|nan)|{_TIME})\s*$')
_UNREADABLE = re.compile(r'\s*[+-]?[.,]?\d')
# Share of the cells of a column that may begin as numbers do and be none.
MAX_UNREADABLE = 0.1
DAY = 86400.0  # [s]


class _Form(NamedTuple):
    """How to read a file; `first` is the first data line, `words` are in each row."""

    encoding: str
    delimiter: str  # '': any white space
    decimal_comma: bool
    first: int
    words: str = ''


def read_text_table(path: Path) -> ColumnTable:
    """Open a text file of numbers; a FileError or RecordingError where it holds no table."""
    start = ''.join(itertools.islice(_lines(path, 'latin-1'), HEAD)).encode('latin-1')
    encoding = 'utf-16' if start[:2] in (b'\xff\xfe', b'\xfe\xff') else 'utf-8-sig'
    if encoding == 'utf-8-sig' and '\ufffd' in start.decode(errors='replace'):
        encoding = 'cp1252'
    start_text = start.decode(encoding, errors='replace')
    lines = [*io.StringIO(start_text, newline='')]
    # The delimiter that leaves most numbers.
    form, most, known = None, -1.0, dict[str, bool]()
    rows, above = list[list[str]](), list[list[str]]()
    for delimiter in (*DELIMITERS, ''):
        split = [line.split() for line in lines]
        if delimiter:
            try:
                split = [next(csv.reader([line], delimiter=delimiter), []) for line in lines]
            except csv.Error:  # a cell of 131,072 signs
                split = [line.split(delimiter) for line in lines]
        # Numbers have decimal commas where some have commas, and none has a point.
        each = {*itertools.chain(*split)}
        numbers = (cell for cell in each if _IS_NUMBER.match(cell.replace(',', '.')))
        signs = {*itertools.chain(*numbers)}
        comma = ',' in signs and '.' not in signs
        is_value = {c: bool(_VALUE.match(c.replace(',', '.') if comma else c)) for c in each}
        # Without a last cell that all rows of the table leave empty.
        counts = Counter(len(row) for row in split if row)
        width = max(counts, key=lambda width: counts[width], default=0)
        if width > 2 and not any(row[-1].strip() for row in split if len(row) == width):
            split = [row[:-1] if len(row) == width else row for row in split]
        # Of each row, how many cells hold values, and how many anything.
        values = np.array([sum(is_value[cell] for cell in row) for row in split])
        filled = np.array([sum(map(bool, map(str.strip, row))) for row in split])
        # The first of the rows that stay a table of numbers, of one column if need be.
        shares = values / np.maximum(filled, 1)
        there = [k for k, row in enumerate(split) if any(row)]
        later = [shares[k] for k in there if k >= len(split) // 2]
        enough = max(LEAST, BESIDE * float(np.median(later))) if later else LEAST
        begins = (
            k
            for least, (place, k) in itertools.product((2, 1), enumerate(there))
            if values[k] >= least and not split[k][0].startswith(('#', '%'))
            if all(
                len(split[j]) == len(split[k]) and shares[j] >= enough
                for j in there[place : place + 3]
            )
        )
        if (first := next(begins, None)) is not None:
            share = float(values[first:].sum() / max(1, filled[first:].sum()))
            if share > most:
                form, most, known = _Form(encoding, delimiter, comma, first), share, is_value
                rows, few = split[first:], values[:first] < LEAST * filled[:first]
                above = [*itertools.compress(split, few)]
    if form is None or start_text.startswith('{'):  # JSON has commas, too
        raise RecordingError(
            f"'{path}' holds no table of numbers in its first {HEAD} lines: give a bag "
            '(MCAP, SQLite), or a CSV file with one row per sample; give a robot '
            'description by --urdf, a configuration by -c'
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
    header = max(reversed(named), key=lambda row: len(set(row)), default=[''] * width)
    header = [name.lstrip('#%').strip() for name in header]
    for row in units[-1:]:
        pairs = zip(header, (cell.strip(' []()') for cell in row), strict=True)
        header = [f'{name} [{unit}]' if name and is_unit(unit) else name for name, unit in pairs]
    seen, names = Counter[str](), list[str]()
    for k, name in enumerate(header):  # empty and repeated ones get their own
        own = name or f'column{k + 1}'
        seen[own] += 1
        names.append(own if seen[own] == 1 else f'{own} ({seen[own]})')
    dates = [name for name, cell in zip(names, cells, strict=True) if _CLOCK.match(cell)]
    lost = [cell.strip() and not known[cell] for cell in cells]
    texts = {name: cells[k].strip() for k, name in enumerate(names) if lost[k]}
    notes, numbered = tuple[Finding, ...](), [name for name in texts if name[-1].isdigit()]
    joints = [name for name in numbered if (m := understand(name)) and m.quantity == 'name']
    if len(joints) > 1:  # rows that name other joints are left out, as of `rostopic echo -p`
        words = form.delimiter.join(texts[name] for name in joints)
        rows_of = Counter(words in line for line in _lines(path, encoding, form))
        if rows_of[True] and rows_of[False]:  # else there are blanks around the names
            notes = (finding('rows_of_other_joints', count=rows_of[False]),)
            form = form._replace(words=words)
    return ColumnTable(
        str(path),
        [name for name in names if name not in texts],
        functools.partial(_read, path, form, names, dates),
        bool(named),
        texts,
        notes=notes,
        units=dict.fromkeys(dates, 's'),
    )


def _lines(path: Path, encoding: str, form: _Form | None = None) -> Iterator[str]:
    """Yield the lines of a file, unpacked; of a `form` those that hold data."""
    with file_errors(path):
        stream: Any = open_regular(path)
        if stream.peek(2)[:2] == _GZIP:
            stream = io.BufferedReader(BoundedStream(path, gzip.GzipFile(fileobj=stream)))
    with io.TextIOWrapper(stream, encoding=encoding, errors='replace', newline='') as lines:
        if form is None:
            yield from lines
            return
        for line in itertools.islice(lines, form.first, None):
            if line.strip() and line[0] not in '#%' and form.words in line:
                yield line


def _read(
    path: Path, form: _Form, names: Sequence[str], dates: Sequence[str], wanted: Sequence[str]
) -> Columns:
    """Read columns of a file, a block of rows at a time; `dates` are those of times."""
    index, blocks = {name: names.index(name) for name in wanted}, list[np.ndarray]()
    kept, delimiter = _lines(path, form.encoding, form), form.delimiter or None
    how: Any = {'delimiter': delimiter, 'comments': None, 'quotechar': '"', 'ndmin': 2}
    while lines := list(itertools.islice(kept, ROWS)):
        try:  # at once where all are numbers, else cell by cell
            if form.decimal_comma:
                raise ValueError
            blocks.append(np.loadtxt(lines, usecols=[*index.values()], **how))
        except ValueError:
            rows = [
                *(csv.reader(lines, delimiter=delimiter) if delimiter else map(str.split, lines))
            ]
            # Names that come twice are numbered; lines may end with a delimiter.
            heads, titles = [('', x, re.sub(r' \(\d+\)$', '', x)) for x in names], {*names}
            for words in ([*map(str.strip, row)] for row in rows):
                pairs = zip(words, heads, strict=False)
                if len({*words} & titles) > 1 and any(word not in same for word, same in pairs):
                    raise RecordingError(
                        f"'{path}' has another header further down, {', '.join(words)}: split it "
                        'there'
                    ) from None
            cells = {n: [r[k] if k < len(r) else '' for r in rows] for n, k in index.items()}
            found = [_numbers(str(path), name, own, form) for name, own in cells.items()]
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


def _numbers(source: str, name: str, cells: Sequence[str], form: _Form) -> np.ndarray:
    """Turn cells into numbers, or seconds since 1970 or midnight; NaN for anything else."""
    dated = any(map(_CLOCK.match, itertools.islice(filter(str.strip, cells), 3)))
    values = np.full(len(cells), math.nan)
    for k, cell in enumerate(cells):
        if not dated:
            try:
                values[k] = float(cell.replace(',', '.') if form.decimal_comma else cell)
            except ValueError:
                pass
        elif found := _CLOCK.match(cell):
            day, hour, minute, second = found.groups()
            days = np.datetime64(day.replace('/', '-'), 'D').astype(int) if day else 0
            seconds = 3600 * int(hour) + 60 * int(minute) + float(second.replace(',', '.'))
            values[k] = days * DAY + seconds
    lost = [c for c in itertools.compress(cells, np.isnan(values)) if _UNREADABLE.match(c)]
    if len(lost) > MAX_UNREADABLE * len(cells):
        raise RecordingError(
            f"'{source}' has {len(lost)} cells in the column '{name}' that are no numbers, as "
            f"'{lost[0].strip()}': export them without signs between thousands, and without units"
        )
    return values
