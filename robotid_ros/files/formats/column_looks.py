"""What columns of numbers look like, for messages, and joint states that only words tell."""

from collections.abc import Mapping, Sequence
import itertools
import re

import numpy as np

from ...core.finding_codes import select
from ...exceptions import RecordingError, shortened
from .column_names import match_names
from .column_selection import Column, FOLDER_HINT, Selection
from .joint_table import FIELDS
from .table import Columns, ColumnTable

# Columns of a table that are looked at, and whole numbers that are states of a machine.
MOST_COLUMNS, MOST_STATES = 64, 20
WIDER = 10.0  # a range that many times another one is told apart
EMPTY = 'no numbers'
_OF_ARRAY = re.compile(r'(.+)\[(\d+):(\d+)\]')


def _described(columns: Mapping[str, np.ndarray]) -> str:
    """Say what columns (N,) look like, those that follow one another and are alike at once."""
    parts: list[tuple[str, list[str], float, float]] = []
    for name, values in columns.items():
        known = values[np.isfinite(values)].astype(float)
        kind, low, high = _kind(known), known.min(initial=np.inf), known.max(initial=-np.inf)
        if parts and parts[-1][0] == kind:
            _, members, least, most = parts[-1]
            own, other = high - low, most - least
            if kind == EMPTY or (own <= WIDER * other and other <= WIDER * own):
                parts[-1] = kind, [*members, name], min(least, low), max(most, high)
                continue
        parts.append((kind, [name], low, high))
    return '; '.join(f'{_span(names)}: {kind.format(*ends)}' for kind, names, *ends in parts)


def _kind(known: np.ndarray) -> str:
    """Return what numbers look like, with places for the least and the largest."""
    if not known.size:
        return EMPTY
    steps = np.diff(known)
    if not steps.any():
        return 'constant'
    if (steps == 1.0).all() and known[0] in (0.0, 1.0):
        return 'counts the rows'
    if (steps >= 0.0).all() and 2 * np.count_nonzero(steps) > len(steps):
        return 'grows like a clock from {:.6g} to {:.6g}'
    if (known == np.round(known)).all() and len(np.unique(known)) <= MOST_STATES:
        return 'few whole numbers from {:.6g} to {:.6g}'
    return 'from {:.3g} to {:.3g}'


def _span(members: Sequence[str]) -> str:
    first, last = members[0], members[-1]
    ends = [_OF_ARRAY.fullmatch(name) for name in (first, last)]
    if ends[0] and ends[1] and ends[0][1] == ends[1][1]:
        return f'{ends[0][1]}[{ends[0][2]}:{ends[1][3]}]'
    return first if len(members) == 1 else f'{first}..{last}'


def _looks_of(table: ColumnTable) -> str:
    """Describe the columns of a table, those of arrays each, for messages."""
    counts = np.cumsum([width or 1 for width in table.widths.values()])
    few = itertools.compress(table.widths, counts <= MOST_COLUMNS)
    columns: Columns = {}
    for name, values in table.read([*few]).items():
        if values.ndim == 1:
            columns[name] = values
        else:
            columns |= {f'{name}[{k}:{k + 1}]': column for k, column in enumerate(values.T)}
    if not columns:
        return table.known
    more = f', … ({counts[-1]} in all)' if counts[-1] > MOST_COLUMNS else ''
    return f'{_described(columns)}{more}'


EXAMPLES = {'time': 't', 'position': 'q{i}', 'velocity': 'dq{i}', 'effort': 'tau{i}'}


def missing(
    table: ColumnTable, quantity: str, selections: Mapping[str, Selection]
) -> RecordingError:
    """Return the error for a table without a quantity: what its columns look like."""
    taken = ', '.join(f'{name} {each.pattern}' for name, each in selections.items())
    known = f'; found: {taken}' if taken else ''
    known += f'; passed over: {shortened(table.passed_over)}' if table.passed_over else ''
    for note in select(table.notes, 'tables_joined'):
        if left_out := note.values['left_out']:
            known += f'; {shortened(left_out)} left out, of another length'
    example = f'{quantity}={EXAMPLES[quantity]}'
    if all(table.widths.values()):
        example = f'{quantity}=NAME[FIRST:END]'
    hint = f', or {FOLDER_HINT}' if quantity in ('position', 'effort') else ''
    return RecordingError(
        f"'{table.source}' has no column that looks like {quantity} by its name (its "
        f"columns: {_looks_of(table)}{known}): name it with --columns '{example}'{hint}"
    )


def are_successive(values: np.ndarray) -> bool:
    """
    Tell whether columns (N, n) are samples of one signal behind each other, and not joints.

    Read row by row they are smooth: steps are an n-th of those between rows, and hardly change.
    """
    values = values[np.isfinite(values).all(axis=1)]
    if values.shape[1] < 2 or len(values) < 3:
        return False
    steps = np.diff(values.ravel())
    sizes = [np.sqrt(np.mean(x**2)) for x in (steps, np.diff(steps), np.diff(values, axis=0))]
    return bool(sizes[1] < 0.5 * sizes[0] and sizes[0] * values.shape[1] < 1.5 * sizes[2])


def echoed_columns(table: ColumnTable, joints: Sequence[str]) -> dict[str, Selection]:
    """
    Return the columns of joint states as `ros2 topic echo --csv` writes them, without a header.

    Seconds, nanoseconds, the names of the joints in columns of words, positions, velocities,
    efforts. Raises RecordingError at another form: what no word tells is named by the user.
    """
    columns = table.read(list(table.widths))
    names = [name for name, values in columns.items() if not np.isnan(values).all()]
    told = list(match_names(list(table.texts.values()), joints))
    if told and len(names) == 2 + 3 * len(told):
        seconds, nanoseconds = (columns[name] for name in names[:2])
        if (np.diff(seconds + 1e-9 * nanoseconds) > 0.0).all() and nanoseconds.max() < 1e9:
            time = tuple((None, Column(name)) for name in names[:2])
            found = {'time': Selection(', '.join(names[:2]), time)}
            for k, quantity in enumerate(FIELDS):
                block = names[2 + k * len(told) :][: len(told)]
                members = tuple(zip(told, map(Column, block), strict=True))
                found[quantity] = Selection(f'{block[0]}..{block[-1]}', members)
            return found
    hint = f', or {FOLDER_HINT}' if len(names) <= len(joints) + 1 else ''
    raise RecordingError(
        f"'{table.source}' has {len(table.widths)} columns without names ({_looks_of(table)}): "
        f"name them, as in --columns 'time={names[0]} position=FIRST..LAST effort=FIRST..LAST'"
        f'{hint}'
    )
