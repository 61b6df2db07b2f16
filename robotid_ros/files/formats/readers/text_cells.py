"""Cells of a text: numbers with decimal points or commas, dates, times of day, missing values."""

from collections.abc import Sequence
import datetime
import functools
import itertools
import math
import re

import numpy as np

MISSING = ('', 'na', 'n/a', 'null', 'none', '-', 'nan')
# Without the offset from Greenwich, which is the same all over a log.
_ISO = re.compile(
    r'\s*(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d*)?)?)\s*(?:Z|[+-]\d\d:?\d\d)?\s*$'
)
_CLOCK = re.compile(
    r'\s*(?:(?P<day>\d{1,4}[-./]\d{1,2}[-./]\d{1,4}),?[T ]\s*)?'
    r'(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,:](?P<part>\d+))?)?'
    r'\s*(?P<half>[AaPp])?[.Mm]*\s*(?:Z|[+-]\d\d:?\d\d)?\s*$'
)
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


def number(cell: str, decimal_comma: bool = False) -> float:
    """Return a number, NaN for any other text."""
    try:
        return float(cell.replace(',', '.') if decimal_comma else cell)
    except ValueError:
        return math.nan


def convert(cells: Sequence[str], decimal_comma: bool) -> np.ndarray:
    """
    Turn cells into numbers, NaN for anything else.

    Dates become seconds since 1970, times of day those since midnight.
    """
    try:
        return np.fromiter((float(cell or 'nan') for cell in cells), float, len(cells))
    except ValueError:
        pass
    first = [*itertools.islice(filter(str.strip, cells), 3)]
    if not any(map(is_date, first)):
        return np.fromiter((number(cell, decimal_comma) for cell in cells), float, len(cells))
    if all(map(_ISO.match, first)):
        found = map(_ISO.match, cells)
        try:
            dates = np.array([date[1] if date else 'NaT' for date in found], 'datetime64[ns]')
        except ValueError:  # the 30th of February
            return np.full(len(cells), math.nan)
        return np.where(np.isnat(dates), math.nan, dates.astype(np.int64) * 1e-9)
    return np.fromiter(map(_seconds, cells), float, len(cells))


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
    return _days(found['day'] or '') * DAY + seconds + float(f'0.{found["part"] or 0}')


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
