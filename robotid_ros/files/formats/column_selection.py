"""
Which columns of a table are times, positions, velocities and efforts, of which joints.

Where names do not say it, joint states that only words tell, and what columns look like.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
import contextlib
import re

import numpy as np

from ...core.findings import Finding, finding
from ...core.setup.joint_choice import choose_arm, JointTree
from ...exceptions import ModelError, MOST_NAMES, RecordingError, shortened
from .column_names import (
    group,
    Key,
    match_joint_names,
    Meaning,
    NOTHING,
    numbers_in,
    Selection,
    understand,
    words_of,
)
from .joint_table import COMMAND, FIELDS
from .table import ColumnTable

DATE = Meaning('time', False, False, '', 0)
# Words of columns that say whose value a row holds.
_KEYS = frozenset('joint joints axis achse gelenk axe motor servo actuator name names id'.split())
_TIMES = frozenset('time timestamp zeit t'.split())
_SLICE = re.compile(r'(?P<name>.+)\[(?P<start>\d*):(?P<stop>\d*)\]$')


def select(table: ColumnTable, quantity: str, pattern: str) -> Selection:
    """
    Find the columns that a user names; a RecordingError where nothing is called so.

    `pattern` is a column; an array or a part of it, `x[0:6]`; `first..last` in the order of the
    file; `q{i}` for numbers, `{joint}_pos` for joints; or several of these between commas.
    """
    members = _matches(table, pattern)
    if not members:
        parts = [_matches(table, part) for part in pattern.split(',')]
        members = [*enumerate(name for part in parts for _, name in part)] if all(parts) else []
    if not members:
        raise RecordingError(
            f"'{table.source}' has no column '{pattern}' for {quantity} (its columns: "
            f'{table.known}): correct --columns'
        )
    return Selection(pattern, tuple(members), understand(pattern) or NOTHING)


def _matches(table: ColumnTable, pattern: str) -> list[tuple[Key, str]]:
    """Columns of one pattern, numbered where they have no number or name of their own."""
    names, arrays = list(table.names), table.arrays
    if pattern in names:
        return [(None, pattern)]
    if pattern in arrays:
        return [(table.places[name][1], name) for name in arrays[pattern]]
    part, (first, dots, last) = _SLICE.match(pattern), pattern.partition('..')
    if part is not None and part['name'] in arrays:
        start, stop = (int(part[k]) if part[k] else None for k in ('start', 'stop'))
        return [*enumerate(arrays[part['name']][start:stop])]
    if dots and first in names and last in names:
        return [*enumerate(names[names.index(first) : names.index(last) + 1])]
    expression = re.escape(pattern).replace(r'\{i\}', r'(\d+)').replace(r'\{joint\}', '(.+)')
    found = [(m[1], name) for name in names if (m := re.fullmatch(expression, name))]
    return [*found] if '{joint}' in pattern else sorted((int(k), name) for k, name in found)


# What a name that a file has twice gets here, or by pandas.
_AGAIN = re.compile(r'( \(\d+\)|\.\d+)$')


def find(
    table: ColumnTable, joints: Sequence[str], named: Mapping[str, str], wanted: Sequence[str]
) -> dict[str, Selection]:
    """Find the columns of each quantity that is wanted, as `named` or by their names."""
    names = list(table.names)
    if not named:
        said = [bool(set(words_of(name.rpartition('.')[2])) & _TIMES) for name in names]
        places = [k for k, time in enumerate(said) if time and not [*said, True][k + 1]]
        clocks = list(table.read([names[k] for k in places]).values()) if len(places) > 1 else []
        differ = not all(np.array_equal(clocks[0], x, equal_nan=True) for x in clocks[1:])
        known = [time[np.isfinite(time)] for time in clocks]
        grow = all(len(t) > 1 and (np.diff(t) >= 0.0).all() and t[-1] > t[0] for t in known)
        if differ and grow:
            raise RecordingError(
                f"'{table.source}' has signals with times of their own: export one column of "
                "times, or name columns of one clock with --columns 'time=… position=… effort=…'"
            )
        keys = [
            n for n in table.texts if set(words_of(n)) & _KEYS and not any(map(str.isdigit, n))
        ]
        keys += [n for n in names if set(words_of(n)) <= _KEYS]
        groups = group(names, (), table.places) if keys else []
        if sum(len(s.members) for s in groups if s.meaning.quantity == 'position') == 1:
            raise RecordingError(
                f"'{table.source}' has a row for each {keys[0]}: export a column for each joint "
                '(pandas: pivot), or name the columns of one joint with --columns'
            )
        if clocks and not differ:  # each signal repeats it
            named = {'time': names[places[0]]}

    # A digit in a column's own name makes it a joint's; a digit in its group's name does not.
    meant = {n: m for n in names if not re.search(r'\d[^./]*$', n) and (m := understand(n))}
    meant = dict.fromkeys(table.units, DATE) | meant
    times = [name for name, meaning in meant.items() if meaning.quantity == 'time']
    # Counts of the rows and what never changes, as the day, count only where there is no other.
    steps = {n: np.diff(x) for n, x in (table.read(times) if len(times) > 1 else {}).items()}
    counts = [name for name, step in steps.items() if (step == 1).all() or (step == 0).all()]
    times = [name for name in times if name not in counts] or times
    selections = [
        *(s for s in group(names, joints, table.places) if s.meaning.quantity != 'time'),
        *(Selection(name, ((None, name),), meant[name]) for name in times),
    ]
    found = dict[str, Selection]()
    for quantity in wanted:
        if quantity in named:
            found[quantity] = select(table, quantity, named[quantity])
            continue
        commanded, either = quantity == COMMAND, quantity in ('time', 'effort')
        fitting = sorted(
            (
                s for s in selections
                if s.meaning.quantity == ('position' if commanded else quantity)
                and (either or s.meaning.reference == commanded)
            ),
            key=lambda s: (
                # Columns that are named after something else, such as a force sensor, are last.
                bool((words := [k for k, _ in s.members if isinstance(k, str)]) and joints)
                and not match_joint_names(words, joints),
                s.meaning.reference,
                s.meaning.current,
                -s.meaning.score,
                -len(s.members),
                # A stamp of the message before one of its reception.
                quantity == 'time' and 'stamp' not in s.pattern.lower(),
                len(s.pattern),
            ),
        )  # fmt: skip
        if not fitting:
            continue
        best, *others = fitting
        # A column of seconds and the one of nanoseconds that belongs to it are one.
        start = re.sub(r'sec(ond)?s?$', '', best.pattern)
        twin = re.compile(re.escape(start) + r'n(ano)?s(ec(ond)?s?)?$')
        for other in others if quantity == 'time' and start != best.pattern else ():
            if twin.match(other.pattern):
                pattern = f'{best.pattern}, {other.pattern}'
                best = best._replace(pattern=pattern, members=best.members + other.members)
                break
        found[quantity] = best
    chosen = {n for q in FIELDS if q in found and q not in named for _, n in found[q].members}
    twins = {name: _AGAIN.sub('', name) for name in names if name not in chosen}
    twins = {name: own for name, own in twins.items() if own in chosen}
    columns = table.read([*dict.fromkeys([*twins, *twins.values()])]) if twins else {}
    for name, own in twins.items():
        if not np.array_equal(columns[name], columns[own], equal_nan=True):
            raise RecordingError(
                f"'{table.source}' has two columns '{own}', of different values: rename one, or "
                f"choose with --columns, where the second one is '{name}'"
            )
    return found


def match_columns_to_joints(
    table: ColumnTable,
    quantity: str,
    selection: Selection,
    robot: JointTree,
    named: Sequence[str],
    positions: Mapping[str, str] | None = None,
) -> tuple[dict[str, str], list[Finding]]:
    """
    Return the column of each joint, and notes on what the file does not say itself.

    Names count, of columns or in columns of text; else numbers, else the order, of the joints of
    the robot or of those that the user `named`. Of joints that have columns of `positions`
    already, columns without names are in their order where they are as many, and those of others
    are left out. A RecordingError says that the robot has no such joint, or another number of
    joints, or that none of them has positions.
    """
    keys, columns = zip(*selection.members, strict=True)
    words = [key for key in keys if isinstance(key, str)]
    if positions is not None and len(keys) == len(positions) and not words:
        return dict(zip(positions, columns, strict=True)), []
    if not words:  # such as `name0` of `rostopic echo -p`
        for found in group(table.texts, ()) if table.texts else ():
            numbered = isinstance(found.members[0][0], int) and len(found.members) == len(keys)
            if found.meaning.quantity == 'name' and numbered:
                words = [table.texts[name] for _, name in found.members]
    notes, matched = list[Finding](), dict[str, str]()
    joints = (*robot.independent, *robot.mimics) or tuple(named)
    known = robot.independent or tuple(named)
    if len(named) == len(keys) != len(robot.independent):
        known = tuple(named)
    if words:
        matched = match_joint_names(words, joints) or match_joint_names(words, named)
    if words and not joints:
        names = words
    elif matched:
        if others := {word: joint for word, joint in matched.items() if word != joint}:
            notes.append(finding('names_matched', others.values(), words=tuple(others)))
        if left_out := [word for word in words if word not in matched]:
            notes.append(finding('joints_left_out', words=left_out))
        names = [matched.get(word, '') for word in words]
        names = ['' if name in robot.mimics else name for name in names]
    elif isinstance(keys[0], str) and len(words) != len(known):
        raise RecordingError(
            f"'{table.source}' has {selection.pattern} of '{words[0]}', which is no joint of "
            f"the robot ({', '.join(known)}): name the columns in the robot's order, as in "
            "--columns 'position=first,second'"
        )
    elif isinstance(keys[0], str):
        order = numbers_in(words) or range(len(words))
        names = [known[sorted(order).index(number)] for number in order]
        notes = [finding('joints_by_order', names, words=tuple(words))]
    else:
        numbers = [key if isinstance(key, int) else 0 for key in keys]
        counted = [number - (0 if 0 in numbers else 1) for number in numbers]
        if not known:
            names = [f'joint_{place + 1}' for place in counted]
        elif max(counted) >= len(known):
            fewer = f'{columns[0]}..{columns[len(known) - 1]}'
            raise RecordingError(
                f"'{table.source}' has {len(numbers)} columns {selection.pattern}, the robot "
                f'{len(known)} joints ({", ".join(known)}): choose among them, as in '
                f"--columns 'position={fewer}', and as many efforts"
            )
        elif max(counted) + 1 == len(known):
            names = [known[place] for place in counted]
        else:
            arm: tuple[str, ...] = ()  # its joints where it has enough, without wheels
            with contextlib.suppress(ModelError):
                arm = choose_arm(robot).joints
            few = max(counted) >= len(arm) or not set(arm) <= set(known)
            names = [(known if few else arm)[place] for place in counted]
            pattern = selection.pattern
            notes = [finding('joints_by_number', names, columns=pattern, count=len(known))]
    places = {n: column for n, column in zip(names, columns, strict=True) if n}
    if positions is None:
        return places, notes
    if places.keys().isdisjoint(positions):
        raise RecordingError(
            f"'{table.source}' has {quantity} of {', '.join(places)} and position of "
            f'{", ".join(positions)}: name columns of the same joints with --columns'
        )
    return {joint: column for joint, column in places.items() if joint in positions}, notes


EXAMPLES = {
    'time': 't', 'position': 'q{i}', 'velocity': 'dq{i}', 'effort': 'tau{i}', COMMAND: 'q_des{i}',
}  # fmt: skip


def missing(
    table: ColumnTable, quantity: str, selections: Mapping[str, Selection]
) -> RecordingError:
    """Return the error for a table without a quantity: what its columns look like."""
    looks = []
    for name, values in table.read(table.names[:MOST_NAMES]).items():
        known = values[np.isfinite(values)]
        shown = f'{known.min():.5g} to {known.max():.5g}' if known.size else 'no numbers'
        looks.append(f'{name}: {shown}')
    columns = shortened([*looks, *table.names[MOST_NAMES:]], MOST_NAMES)
    if not table.has_header:
        return RecordingError(
            f"'{table.source}' has {len(table.names)} columns without names ({columns}): "
            f"name them, as in --columns 'time={table.names[0]} position=FIRST..LAST "
            "effort=FIRST..LAST'"
        )
    taken = ', '.join(f'{name} {each.pattern}' for name, each in selections.items())
    told = f'; found: {taken}' if taken else ''
    # As many columns of unknown meaning, that differ in a number or their first word, as there are
    # of what was found may be it.
    found = {name for each in selections.values() for _, name in each.members}
    unknown = (name for name in table.names if name not in found and not understand(name))
    numbered, named = (r'\d+(?!.*\d)', '{i}'), (r'^[^\W\d_]+(?=[\W_])', '{joint}')
    shapes = Counter(re.sub(*(numbered if re.search(r'\d', x) else named), x) for x in unknown)
    enough = {len(each.members) for q, each in selections.items() if q != 'time'}
    fitting = (
        shape
        for shape, count in shapes.items()
        if count in (enough or range(2, count + 1)) and count > ('{joint}' in shape)
    )
    example = EXAMPLES[quantity] if quantity == 'time' else next(fitting, EXAMPLES[quantity])
    example = f'{quantity}={example}'
    if table.names == [*table.places]:
        example = f'{quantity}=NAME[FIRST:END]'
    return RecordingError(
        f"'{table.source}' has no column that looks like {quantity} by its name (its "
        f"columns: {columns}{told}): name it with --columns '{example}'"
    )
