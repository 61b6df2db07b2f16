"""Which columns of a table are times, positions, velocities and efforts."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
from dataclasses import dataclass
import re

import numpy as np

from ...exceptions import RecordingError, shortened
from .column_groups import group
from .column_looks import looks_of
from .column_names import Key, Meaning, understand
from .joint_matching import match_names
from .table import Table

EXAMPLES = {
    'time': 'time=t',
    'position': 'position=q{i}',
    'velocity': 'velocity=dq{i}',
    'effort': 'effort=tau{i}',
}
FOLDER_HINT = 'give the folder, where other files hold the other quantities'
_SLICE = re.compile(r'(?P<name>.+)\[(?P<start>\d*):(?P<stop>\d*)\]$')


@dataclass(frozen=True)
class Column:
    """One column: that of a name, or the one of this index in an array."""

    name: str
    index: int | None = None


@dataclass(frozen=True)
class Selection:
    """
    Columns of one quantity.

    Attributes
    ----------
    pattern : how to describe them
    members : number or name of a joint (None: neither) and column
    meaning : what their names say, None where they say nothing
    others : selections that would do as well, the likeliest first

    """

    pattern: str
    members: tuple[tuple[Key, Column], ...]
    meaning: Meaning | None = None
    others: tuple['Selection', ...] = ()


def select(table: Table, quantity: str, pattern: str) -> Selection:
    """
    Find the columns that a user names.

    Parameters
    ----------
    table : where
    quantity : for messages
    pattern : a column; an array or a part of it, `x[0:6]`; `first..last` in the order of the file;
        `q{i}` for numbers, `{joint}_pos` for names of joints; or several of these between commas

    Raises
    ------
    RecordingError : nothing is called so

    """
    members = _matches(table, pattern)
    if not members:
        parts = [_matches(table, part) for part in pattern.split(',')]
        if not all(parts):
            raise RecordingError(
                f"'{table.source}' has no column '{pattern}' for {quantity} (its columns: "
                f'{table.known}): correct --columns'
            )
        members = [(k, column) for k, column in enumerate(c for part in parts for _, c in part)]
    return Selection(pattern, tuple(members), understand(pattern))


def _matches(table: Table, pattern: str) -> list[tuple[Key, Column]]:
    """Columns of one pattern, numbered where they have no number or name of their own."""
    names = list(table.widths)
    if pattern in table.widths:
        return _array(table, pattern, slice(None))
    part = _SLICE.match(pattern)
    if part is not None and table.widths.get(part['name']):
        start, stop = (int(part[k]) if part[k] else None for k in ('start', 'stop'))
        return _array(table, part['name'], slice(start, stop), labelled=False)
    first, dots, last = pattern.partition('..')
    if dots and first in names and last in names:
        between = names[names.index(first) : names.index(last) + 1]
        return [(k, Column(name)) for k, name in enumerate(between)]
    expression = re.escape(pattern).replace(r'\{i\}', r'(\d+)').replace(r'\{joint\}', '(.+)')
    if expression == re.escape(pattern):
        return []
    found = ((re.fullmatch(expression, name), name) for name in names)
    members: list[tuple[Key, Column]] = [
        (m[1] if '{joint}' in pattern else int(m[1]), Column(name)) for m, name in found if m
    ]
    return sorted(members, key=lambda m: m[0] if isinstance(m[0], int) else 0)


def _array(
    table: Table, name: str, part: slice, labelled: bool = True
) -> list[tuple[Key, Column]]:
    width = table.widths[name]
    if not width:
        return [(None, Column(name))]
    labels = table.labels.get(name, ()) if labelled else ()
    if len(labels) == width:
        names = (re.sub(r'[._]pos(ition)?$', '', label) for label in labels)
        return [(key, Column(name, k)) for k, key in enumerate(names)]
    return [(j, Column(name, k)) for j, k in enumerate(range(width)[part])]


def find(table: Table, joints: Sequence[str]) -> dict[str, Selection]:
    """
    Find times, positions, velocities, efforts and temperatures by the names of the columns.

    Measured columns come before commanded ones, torques before currents.

    Parameters
    ----------
    table : where
    joints : of the robot, where they are known

    """
    groups = group((n for n, width in table.widths.items() if not width), joints)
    arrays = {name: understand(re.sub(r'\d+', '', name)) for name, w in table.widths.items() if w}
    selections = [
        *(
            Selection(g.pattern, tuple((k, Column(n)) for k, n in g.members), g.meaning)
            for g in groups
        ),
        *(
            Selection(name, tuple(_array(table, name, slice(None))), meaning)
            for name, meaning in arrays.items()
            if meaning is not None
        ),
    ]
    found = {}
    for quantity in ('time', 'position', 'velocity', 'effort', 'temperature'):
        fitting = [s for s in selections if s.meaning and s.meaning.quantity == quantity]
        if quantity == 'time':
            fitting = _times(table)
        elif quantity != 'effort':
            fitting = [s for s in fitting if s.meaning and not s.meaning.reference]
        if fitting:
            fitting.sort(key=lambda s: (_is_alien(s, joints), _rank(s)))
            _refuse_several(table, quantity, fitting, joints)
            best = _with_nanoseconds(fitting) if quantity == 'time' else fitting[0]
            found[quantity] = dataclasses.replace(best, others=tuple(fitting[1:]))
    return found


def _refuse_several(
    table: Table, quantity: str, ranked: Sequence[Selection], joints: Sequence[str]
) -> None:
    """Raise an error where arrays of several columns differ in the joint or the number only."""
    arrays = [s.pattern for s in ranked if table.widths.get(s.pattern, 0) > 1]
    for found in group(arrays, joints):
        keys = [key for key, _ in found.members]
        alike = all(isinstance(key, int) or key in joints for key in keys)
        if len(keys) > 1 and alike and ranked[0].pattern in (name for _, name in found.members):
            each = ','.join(f'{name}[0:1]' for name in arrays[:3])
            raise RecordingError(
                f"'{table.source}' has {quantity} in several arrays of several columns each, "
                f'{shortened(arrays)}: name one column of each joint, as in --columns '
                f"'{quantity}={each}', or give one record per sample"
            )


def _times(table: Table) -> list[Selection]:
    """
    Return the columns that are times by their names or as dates.

    Mere counts of the rows and what never changes, as the day, count only where there is no other.
    """
    dates = {name: Meaning('time', False, False, '', 0) for name in table.units}
    # Numbers of a column say that it is one of a joint's; those of a group that it is in do not.
    names = [n for n, width in table.widths.items() if not (width or re.search(r'\d[^./]*$', n))]
    meant = [(name, meaning) for name in names if (meaning := understand(name))]
    meant += [pair for pair in dates.items() if pair[0] not in dict(meant)]
    times = [
        Selection(name, ((None, Column(name)),), meaning)
        for name, meaning in meant
        if meaning.quantity == 'time'
    ]
    columns = table.read([time.pattern for time in times]) if len(times) > 1 else {}
    steps = {name: np.diff(values) for name, values in columns.items()}
    counts = [name for name, step in steps.items() if (step == 1).all() or (step == 0).all()]
    return [time for time in times if time.pattern not in counts] or times


def _with_nanoseconds(ranked: Sequence[Selection]) -> Selection:
    """Join a column of seconds with the one of nanoseconds that belongs to it."""
    best = ranked[0]
    twins = {re.sub(r'sec(ond)?s?$', f'{n}secs', best.pattern) for n in ('n', 'nano')}
    twins.add(re.sub(r'sec(ond)?s?$', 'nanos', best.pattern))
    twins |= {twin[:-1] for twin in twins} | {f'{twin[:-1]}onds' for twin in twins}
    for other in ranked[1:]:
        if other.pattern in twins:
            pattern = f'{best.pattern}, {other.pattern}'
            return Selection(pattern, (*best.members, *other.members), best.meaning)
    return best


def _is_alien(selection: Selection, joints: Sequence[str]) -> bool:
    """Whether columns are named, and not after joints of the robot: those of a force sensor."""
    words = [key for key, _ in selection.members if isinstance(key, str)]
    return bool(words and joints) and not match_names(words, joints)


def _rank(selection: Selection) -> tuple[object, ...]:
    """Sort key: the likeliest first; a stamp of the message before one of its reception."""
    meaning = selection.meaning
    assert meaning is not None
    stamp = 'stamp' not in selection.pattern.lower()
    return (
        meaning.reference,
        meaning.current,
        -meaning.score,
        -len(selection.members),
        stamp if meaning.quantity == 'time' else False,
        len(selection.pattern),
    )


def joint_names(table: Table) -> dict[Key, str]:
    """Names of the joints that columns of text hold, such as `name0` of `rostopic echo -p`."""
    for found in group(table.texts, ()):
        if found.meaning.quantity == 'name' and isinstance(found.members[0][0], int):
            return {key: table.texts[name] for key, name in found.members}
    return {}


def missing(table: Table, quantity: str, selections: Mapping[str, Selection]) -> RecordingError:
    """Return the error for a table without a quantity: what its columns look like."""
    taken: Iterable[str] = (f'{k} {s.pattern}' for k, s in selections.items())
    known = f'; found: {", ".join(taken)}' if selections else ''
    known += f'; passed over: {shortened(table.passed_over)}' if table.passed_over else ''
    known += ''.join(f'; {note}' for note in table.notes)
    example, hint = EXAMPLES[quantity], ''
    if all(table.widths.values()):
        example = f'{quantity}=NAME[FIRST:END]'
    if quantity in ('position', 'effort'):
        hint = f', or {FOLDER_HINT}'
    return RecordingError(
        f"'{table.source}' has no column that looks like {quantity} by its name (its "
        f"columns: {looks_of(table)}{known}): name it with --columns '{example}'{hint}"
    )
