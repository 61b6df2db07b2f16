"""What stands above the numbers of a text: names of the columns, their units, a rate."""

from collections.abc import Callable, Iterable, Sequence
import math
import re

from ..column_names import BRACKETS
from ..column_words import words_of
from ..units import canonical, FACTORS, is_unit
from .text_cells import number

# Words of lines that tell the interval between rows, or their rate.
_INTERVALS = (
    *(frozenset(('delta', 'x')), frozenset(('sample', 'time')), frozenset(('sampling', 'time'))),
    *(frozenset(('dt',)), frozenset(('sampling', 'interval')), frozenset(('abtastzeit',))),
)
_RATES = (
    *(frozenset(('rate',)), frozenset(('sample', 'rate')), frozenset(('sampling', 'rate'))),
    *(frozenset(('fs',)), frozenset(('sampling', 'frequency')), frozenset(('abtastrate',))),
)


def header_of(
    rows: Sequence[list[str]], width: int, is_text: Callable[[Sequence[str]], bool]
) -> list[str]:
    """
    Return the names of the columns, units joined to them, [] where there are none.

    They are the row of most different words, the last of such ones; types, comments and addresses
    of a device's signals repeat. Another row may tell apart what repeats: positions and torques.

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
    names = _told_apart(max(reversed(named), key=lambda row: len(set(row))), named)
    names = [name.lstrip('#%').strip() for name in names]
    for row in units[-1:]:
        found = (cell.strip(' []()') for cell in row)
        pairs = zip(names, found, strict=True)
        names = [f'{name} [{unit}]' if name and is_unit(unit) else name for name, unit in pairs]
    return names


def _told_apart(names: list[str], rows: Sequence[list[str]]) -> list[str]:
    """Return names that repeat with what another row says of several columns each in front."""
    if len(set(names)) == len(names):
        return names
    for row in rows:
        joined = [f'{a} {b}'.strip() for a, b in zip(_filled(row), _filled(names), strict=True)]
        empty = [k for k, name in enumerate(joined) if not name]
        for k in empty:
            joined[k] = next((other[k] for other in rows if other[k]), '')
        if row is not names and len(set(joined)) == len(joined):
            return joined
    return names


def _filled(row: Sequence[str]) -> list[str]:
    """Return a row whose empty cells say what is to the left of them."""
    result: list[str] = []
    for cell in row:
        result.append(cell or ''.join(result[-1:]))
    return result


def _are_units(row: Sequence[str]) -> bool:
    """Return whether a row holds units, behind what may say so."""
    cells = [cell.strip(' []()') for cell in row[1:] if cell.strip(' []()')]
    first = row[0].strip(' []()')
    return all(map(is_unit, cells)) if cells else is_unit(first)


def rate_of(rows: Iterable[Sequence[str]], comma: bool) -> float:
    """Return the rate of the rows [Hz] that a line above them tells, 0 for none."""
    for row in rows:
        values = [value for cell in row[1:] if not math.isnan(value := number(cell, comma))]
        if len(row) < 2 or not values or not values[0] > 0.0:
            continue
        bracketed = BRACKETS.search(row[0])
        words = frozenset(words_of(row[0][: bracketed.start()] if bracketed else row[0]))
        unit = canonical(bracketed.group(1)) if bracketed else 's'
        if words in _INTERVALS and unit in FACTORS['time']:
            return 1.0 / (values[0] * FACTORS['time'][unit])
        if words in _RATES:
            return values[0]
    return 0.0


def unique(names: Sequence[str]) -> list[str]:
    """Give empty and repeated names one of their own."""
    seen: dict[str, int] = {}
    result = []
    for k, name in enumerate(names):
        own = name or f'column{k + 1}'
        seen[own] = seen.get(own, 0) + 1
        result.append(own if seen[own] == 1 else f'{own} ({seen[own]})')
    return result


REPEATED = re.compile(r' \(\d+\)$')
