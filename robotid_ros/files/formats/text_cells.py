"""Cells of a text, numbers, dates and missing values, and what stands above them."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
import contextlib
import datetime
import functools
import itertools
import math
import re

import numpy as np

from ...exceptions import RecordingError
from .units import is_unit

MISSING = ('', 'na', 'n/a', 'null', 'none', '-', 'nan')
# Without the offset from Greenwich, which is the same all over a log.
_ISO = re.compile(
    r'\s*(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d*)?)?)\s*(?:Z|[+-]\d\d:?\d\d)?\s*$'
)
_CLOCK = re.compile(
    r'\s*(?:(?P<day>\d{1,4}[-./]\d{1,2}[-./]\d{1,4}),?[T ]\s*|(?P<days>\d+) days?,? )?'
    r'(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,:](?P<part>\d+))?)?'
    r'\s*(?P<half>[AaPp])?[.Mm]*\s*(?:Z|[+-]\d\d:?\d\d)?\s*$'
)
_DATE = re.compile(r'\s*\d{1,4}([-./])\d{1,2}\1\d{1,4}\s*$')
_UNREADABLE = re.compile(r'\s*[+-]?[.,]?\d')
# Share of the cells of a column that may begin as numbers do and be none.
MAX_UNREADABLE = 0.1
DAY = 86400.0  # [s]


def is_value(cell: str, decimal_comma: bool) -> bool:
    """Return whether a cell is a number, a date, or says that there is none."""
    return (
        cell.strip().lower() in MISSING[1:]
        or not math.isnan(number(cell, decimal_comma))
        or is_date(cell)
    )


def is_date(cell: str) -> bool:
    """Return whether a cell is a date with a time, or a time of day."""
    return _CLOCK.match(cell) is not None


def is_day(cell: str) -> bool:
    """Return whether a cell is a date without a time."""
    return _DATE.match(cell) is not None


def is_clock(cell: str) -> bool:
    """Return whether a cell is a time of day without a date."""
    found = _CLOCK.match(cell)
    return found is not None and not (found['day'] or found['days'])


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
    if first and all(map(is_day, first)):
        days = (_days(cell.strip()) if is_day(cell) else math.nan for cell in cells)
        return DAY * np.fromiter(days, float, len(cells))
    if not any(map(is_date, first)):
        return np.fromiter((number(cell, decimal_comma) for cell in cells), float, len(cells))
    if not all(map(_ISO.match, first)):
        return np.fromiter(map(_seconds, cells), float, len(cells))
    found = map(_ISO.match, cells)
    try:
        dates = np.array([date[1] if date else 'NaT' for date in found], 'datetime64[ns]')
    except ValueError:  # the 30th of February
        return np.full(len(cells), math.nan)
    return np.where(np.isnat(dates), math.nan, dates.astype(np.int64) * 1e-9)


def readable(source: str, name: str, cells: Sequence[str], decimal_comma: bool) -> np.ndarray:
    """
    Turn the cells of a column into numbers, seconds where they are dates, NaN for anything else.

    Raises
    ------
    RecordingError : many of them begin as a number does and are none, as `1,234` or `5 km`

    """
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


def header_of(
    rows: Sequence[list[str]], width: int, is_text: Callable[[Sequence[str]], bool]
) -> list[str]:
    """
    Return the names of the columns, units joined to them, [] where there are none.

    Parameters
    ----------
    rows : above the numbers
    width : columns of the numbers
    is_text : whether a row holds words rather than numbers

    """
    fitting = []
    for row in rows:
        if len(row) == width + 1:
            row = row[1:] if row[0] in ('#', '%') else row[:-1]
        if len(row) == width and any(row) and is_text(row):
            fitting.append([cell.strip() for cell in row])
    units = [row for row in fitting if _are_units(row)] if len(fitting) > 1 else []
    named = [row for row in fitting if row not in units] or fitting
    if not named:
        return []
    names = [
        name.lstrip('#%').strip() for name in max(reversed(named), key=lambda row: len(set(row)))
    ]
    for row in units[-1:]:
        pairs = zip(names, (cell.strip(' []()') for cell in row), strict=True)
        names = [f'{name} [{unit}]' if name and is_unit(unit) else name for name, unit in pairs]
    return names


def _are_units(row: Sequence[str]) -> bool:
    """Return whether a row holds units, behind what may say so."""
    cells = [cell.strip(' []()') for cell in row[1:] if cell.strip(' []()')]
    first = row[0].strip(' []()')
    return all(map(is_unit, cells)) if cells else is_unit(first)


def unique(names: Sequence[str]) -> list[str]:
    """Give empty and repeated names one of their own."""
    seen, result = Counter[str](), []
    for k, name in enumerate(names):
        own = name or f'column{k + 1}'
        seen[own] += 1
        result.append(own if seen[own] == 1 else f'{own} ({seen[own]})')
    return result
