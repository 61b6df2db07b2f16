"""What columns of numbers look like, for messages, and joint states that only words tell."""

from collections.abc import Iterable, Mapping, Sequence
import re

import numpy as np

from ...core.finding_codes import select
from ...exceptions import RecordingError, shortened
from .column_names import match_names
from .column_selection import Column, FOLDER_HINT, Selection
from .table import Columns, ColumnTable

# Columns of a table that are looked at, and whole numbers that are states of a machine.
MOST_COLUMNS, MOST_STATES = 64, 20
WIDER = 10.0  # a range that many times another one is told apart
_OF_ARRAY = re.compile(r'(.+)\[(\d+):(\d+)\]')


def describe_columns(columns: Mapping[str, np.ndarray]) -> str:
    """Say what columns (N,) look like, those that follow one another and are alike at once."""
    parts: list[tuple[str, list[str], np.ndarray]] = []
    for name, values in columns.items():
        known = values[np.isfinite(values)].astype(float)
        kind, ends = (
            _kind(known),
            np.array([known.min(initial=np.inf), known.max(initial=-np.inf)]),
        )
        if parts and parts[-1][0] == kind:
            _, members, whole = parts[-1]
            own, other = np.ptp(ends), np.ptp(whole)
            if kind == 'empty' or (own <= WIDER * other and other <= WIDER * own):
                members.append(name)
                whole[:] = min(whole[0], ends[0]), max(whole[1], ends[1])
                continue
        parts.append((kind, [name], ends))
    return '; '.join(f'{_span(members)}: {_text(kind, ends)}' for kind, members, ends in parts)


def _kind(known: np.ndarray) -> str:
    if not known.size:
        return 'empty'
    steps = np.diff(known)
    if not steps.any():
        return 'constant'
    if (steps == 1.0).all() and known[0] in (0.0, 1.0):
        return 'counter'
    if (steps >= 0.0).all() and 2 * np.count_nonzero(steps) > len(steps):
        return 'clock'
    if (known == np.round(known)).all() and len(np.unique(known)) <= MOST_STATES:
        return 'states'
    return 'signal'


def _text(kind: str, ends: np.ndarray) -> str:
    low, high = ends
    return {
        'empty': 'no numbers',
        'constant': 'constant',
        'counter': 'counts the rows',
        'clock': f'grows like a clock from {low:.6g} to {high:.6g}',
        'states': f'few whole numbers from {low:.6g} to {high:.6g}',
        'signal': f'from {low:.3g} to {high:.3g}',
    }[kind]


def _span(members: Sequence[str]) -> str:
    first, last = members[0], members[-1]
    ends = [_OF_ARRAY.fullmatch(name) for name in (first, last)]
    if ends[0] and ends[1] and ends[0][1] == ends[1][1]:
        return f'{ends[0][1]}[{ends[0][2]}:{ends[1][3]}]'
    return '..'.join(dict.fromkeys((first, last)))


def looks_of(table: ColumnTable) -> str:
    """Describe the columns of a table, those of arrays each, for messages."""
    few, count = [], 0
    for name, width in table.widths.items():
        count += width or 1
        if count <= MOST_COLUMNS:
            few.append(name)
    columns: Columns = {}
    for name, values in table.read(few).items():
        if values.ndim == 1:
            columns[name] = values
        else:
            columns |= {f'{name}[{k}:{k + 1}]': column for k, column in enumerate(values.T)}
    if not columns:
        return table.known
    more = f', … ({count} in all)' if count > MOST_COLUMNS else ''
    return f'{describe_columns(columns)}{more}'


EXAMPLES = {
    'time': 'time=t',
    'position': 'position=q{i}',
    'velocity': 'velocity=dq{i}',
    'effort': 'effort=tau{i}',
}


def missing(
    table: ColumnTable, quantity: str, selections: Mapping[str, Selection]
) -> RecordingError:
    """Return the error for a table without a quantity: what its columns look like."""
    taken: Iterable[str] = (f'{k} {s.pattern}' for k, s in selections.items())
    known = f'; found: {", ".join(taken)}' if selections else ''
    known += f'; passed over: {shortened(table.passed_over)}' if table.passed_over else ''
    for note in select(table.notes, 'tables_joined'):
        if left_out := note.values['left_out']:
            known += f'; {shortened(left_out)} left out, of another length'
    example, hint = EXAMPLES[quantity], ''
    if all(table.widths.values()):
        example = f'{quantity}=NAME[FIRST:END]'
    if quantity in ('position', 'effort'):
        hint = f', or {FOLDER_HINT}'
    return RecordingError(
        f"'{table.source}' has no column that looks like {quantity} by its name (its "
        f"columns: {looks_of(table)}{known}): name it with --columns '{example}'{hint}"
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
    efforts. What no word tells is named by the user.

    Parameters
    ----------
    table : without a header
    joints : of the robot

    Raises
    ------
    RecordingError : the table has another form; what its columns look like

    """
    columns = table.read(list(table.widths))
    names = [name for name, values in columns.items() if not np.isnan(values).all()]
    told = list(match_names(list(table.texts.values()), joints))
    n = len(told)
    if n and len(names) == 2 + 3 * n:
        seconds, nanoseconds = (columns[name] for name in names[:2])
        if (np.diff(seconds + 1e-9 * nanoseconds) > 0.0).all() and nanoseconds.max() < 1e9:
            time = tuple((None, Column(name)) for name in names[:2])
            found = {'time': Selection(', '.join(names[:2]), time)}
            for k, quantity in enumerate(('position', 'velocity', 'effort')):
                block = names[2 + k * n : 2 + (k + 1) * n]
                members = tuple((key, Column(name)) for key, name in zip(told, block, strict=True))
                found[quantity] = Selection(f'{block[0]}..{block[-1]}', members)
            return found
    hint = f', or {FOLDER_HINT}' if len(names) <= len(joints) + 1 else ''
    raise RecordingError(
        f"'{table.source}' has {len(table.widths)} columns without names ({looks_of(table)}): "
        f"name them, as in --columns 'time={names[0]} position=FIRST..LAST effort=FIRST..LAST'"
        f'{hint}'
    )
