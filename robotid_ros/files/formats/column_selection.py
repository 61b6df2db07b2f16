"""
Which columns of a table are times, positions, velocities and efforts, of which joints.

Where names do not say it, joint states that only words tell, and what columns look like.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
import re

import numpy as np

from ...core.finding_codes import finding
from ...core.findings import Finding
from ...core.setup.joint_choice import choose_arm, JointTree
from ...exceptions import ModelError, RecordingError, shortened
from .column_names import (
    group,
    Key,
    match_names,
    Meaning,
    NOTHING,
    numbers_in,
    Selection,
    understand,
)
from .joint_table import COMMAND
from .read_options import QUANTITIES, ReadOptions
from .table import ColumnTable

DATE = Meaning('time', False, False, '', 0)
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
        if not all(parts):
            raise RecordingError(
                f"'{table.source}' has no column '{pattern}' for {quantity} (its columns: "
                f'{table.known}): correct --columns'
            )
        members = [*enumerate(name for part in parts for _, name in part)]
    return Selection(pattern, tuple(members), understand(pattern) or NOTHING)


def _matches(table: ColumnTable, pattern: str) -> list[tuple[Key, str]]:
    """Columns of one pattern, numbered where they have no number or name of their own."""
    names = list(table.names)
    if pattern in names:
        return [(None, pattern)]
    part, (first, dots, last) = _SLICE.match(pattern), pattern.partition('..')
    if pattern in table.arrays:
        return [(table.places[name][1], name) for name in table.arrays[pattern]]
    if part is not None and part['name'] in table.arrays:
        start, stop = (int(part[k]) if part[k] else None for k in ('start', 'stop'))
        return [*enumerate(table.arrays[part['name']][start:stop])]
    if dots and first in names and last in names:
        return [*enumerate(names[names.index(first) : names.index(last) + 1])]
    expression = re.escape(pattern).replace(r'\{i\}', r'(\d+)').replace(r'\{joint\}', '(.+)')
    if expression == re.escape(pattern):
        return []
    found = ((re.fullmatch(expression, name), name) for name in names)
    if '{joint}' in pattern:
        return [(match[1], name) for match, name in found if match]
    return sorted((int(match[1]), name) for match, name in found if match)


def find(table: ColumnTable, joints: Sequence[str]) -> dict[str, Selection]:
    """
    Find times, positions, velocities and efforts by the names of the columns.

    Measured columns come before commanded ones, torques before currents; `joints` are those of the
    robot, where they are known.
    """

    def rank(selection: Selection) -> tuple[object, ...]:
        """Sort key: last are columns that are named, and not after joints: of a force sensor."""
        meaning = selection.meaning
        words = [key for key, _ in selection.members if isinstance(key, str)]
        return (
            bool(words and joints) and not match_names(words, joints),
            meaning.reference,
            meaning.current,
            -meaning.score,
            -len(selection.members),
            # A stamp of the message before one of its reception.
            meaning.quantity == 'time' and 'stamp' not in selection.pattern.lower(),
            len(selection.pattern),
        )

    # Numbers of a column say that it is one of a joint's; those of a group that it is in do not.
    names = [name for name in table.names if not re.search(r'\d[^./]*$', name)]
    meant = {name: meaning for name in names if (meaning := understand(name))}
    meant = {name: DATE for name in table.units} | meant
    times = [name for name, meaning in meant.items() if meaning.quantity == 'time']
    # Counts of the rows and what never changes, as the day, count only where there is no other.
    steps = {n: np.diff(x) for n, x in (table.read(times) if len(times) > 1 else {}).items()}
    counts = [name for name, step in steps.items() if (step == 1).all() or (step == 0).all()]
    times = [name for name in times if name not in counts] or times
    selections = [
        *(s for s in group(table.names, joints, table.places) if s.meaning.quantity != 'time'),
        *(Selection(name, ((None, name),), meant[name]) for name in times),
    ]
    found = {}
    for quantity in QUANTITIES:
        commanded, either = quantity == COMMAND, quantity in ('time', 'effort')
        fitting = [
            s for s in selections
            if s.meaning.quantity == ('position' if commanded else quantity)
            and (either or s.meaning.reference == commanded)
        ]  # fmt: skip
        if fitting:
            best, *others = sorted(fitting, key=rank)
            # A column of seconds and the one of nanoseconds that belongs to it are one.
            start = re.sub(r'sec(ond)?s?$', '', best.pattern)
            twin = re.compile(re.escape(start) + r'n(ano)?s(ec(ond)?s?)?$')
            for other in others if quantity == 'time' and start != best.pattern else ():
                if twin.match(other.pattern):
                    pattern = f'{best.pattern}, {other.pattern}'
                    best = replace(best, pattern=pattern, members=best.members + other.members)
                    break
            found[quantity] = replace(best, others=tuple(others))
    return found


def columns_of_joints(
    table: ColumnTable,
    quantity: str,
    selection: Selection,
    options: ReadOptions,
    positions: Mapping[str, str] | None = None,
) -> tuple[dict[str, str], list[Finding]]:
    """
    Return the column of each joint, and notes on what the file does not say itself.

    Names count, of columns or in columns of text; else numbers, else the order. Of joints that
    have columns of `positions` already, columns without names are in their order where they are
    as many, and those of others are left out. A RecordingError says that the robot has no such
    joint, or another number of joints, or that none of them has positions.
    """
    keys = [key for key, _ in selection.members]
    words = [key for key in keys if isinstance(key, str)]
    columns = [column for _, column in selection.members]
    if positions is not None and len(keys) == len(positions) and not words:
        return dict(zip(positions, columns, strict=True)), []
    if not words:  # such as `name0` of `rostopic echo -p`
        for found in group(table.texts, ()) if table.texts else ():
            numbered = isinstance(found.members[0][0], int) and len(found.members) == len(keys)
            if found.meaning.quantity == 'name' and numbered:
                words = [table.texts[name] for _, name in found.members]
    robot, notes, joints = options.robot, list[Finding](), options.known_joints
    matched = dict[str, str]()
    if words:
        matched = match_names(words, joints) or match_names(words, options.joints)
    if words and not joints:
        names = words
    elif matched:
        if others := {word: joint for word, joint in matched.items() if word != joint}:
            notes.append(finding('names_matched', others.values(), words=tuple(others)))
        if left_out := [word for word in words if word not in matched]:
            notes.append(finding('joints_left_out', words=left_out))
        names = [matched.get(word, '') for word in words]
        names = ['' if name in robot.mimics else name for name in names]
    else:
        independent = robot.independent
        known: Sequence[str] = independent or options.joints
        if len(options.joints) == len(keys) != len(independent):
            known = options.joints
        if not isinstance(keys[0], str):
            names, notes = _by_number(table, selection, known, robot)
        elif len(words) != len(known):
            raise RecordingError(
                f"'{table.source}' has {selection.pattern} of '{words[0]}', which is no joint of "
                f"the robot ({', '.join(known)}): name the columns in the robot's order, as in "
                "--columns 'position=first,second'"
            )
        else:
            order = numbers_in(words) or range(len(words))
            names = [known[sorted(order).index(number)] for number in order]
            notes = [finding('joints_by_order', names, words=tuple(words))]
    places = {n: column for n, column in zip(names, columns, strict=True) if n}
    if positions is None:
        return places, notes
    if places.keys().isdisjoint(positions):
        raise RecordingError(
            f"'{table.source}' has {quantity} of {', '.join(places)} and position of "
            f'{", ".join(positions)}: name columns of the same joints with --columns'
        )
    return {joint: column for joint, column in places.items() if joint in positions}, notes


def _by_number(
    table: ColumnTable, selection: Selection, known: Sequence[str], robot: JointTree
) -> tuple[list[str], list[Finding]]:
    """
    Return the joints of numbered columns, and notes where the robot has more joints.

    Then they are those of the arm, where it has as many; else those of the one set of names with
    these numbers, if it is no small part of the arm, as three wrists are; else the first ones from
    the arm on, without the wheels that come before it.
    """
    numbers = [key if isinstance(key, int) else 0 for key, _ in selection.members]
    places = [number - (0 if 0 in numbers else 1) for number in numbers]
    if not known:
        return [f'joint_{place + 1}' for place in places], []
    if max(places) >= len(known):
        columns = [column for _, column in selection.members]
        few = f'{columns[0]}..{columns[len(known) - 1]}'
        raise RecordingError(
            f"'{table.source}' has {len(numbers)} columns {selection.pattern}, the robot "
            f'{len(known)} joints ({", ".join(known)}): name those that count, as in --columns '
            f"'position={few}', and as many efforts"
        )
    if max(places) + 1 == len(known):
        return [known[place] for place in places], []
    try:
        arm = choose_arm(robot).joints
    except ModelError:
        arm = ()
    arm = arm if set(arm) <= set(known) else ()
    sets: dict[str, dict[int, str]] = {}
    for name in known:
        for match in re.finditer(r'\d+', name):
            pattern = f'{name[: match.start()]}#{name[match.end() :]}'
            sets.setdefault(pattern, {})[int(match.group())] = name
    large = [named for named in sets.values() if len(named) > len(arm) // 2]
    fitting = [named for named in large if named.keys() >= set(numbers)]
    if len(fitting) == 1 and max(places) + 1 != len(arm):
        names = [fitting[0][number] for number in numbers]
    else:
        behind = known[known.index(arm[0]) :] if arm else known
        joints = next(j for j in (arm, behind, known) if max(places) < len(j))
        names = [joints[place] for place in places]
    note = finding('joints_by_number', names, columns=selection.pattern, count=len(known))
    return names, [note]


# Columns of a table that are looked at.
MOST_COLUMNS = 64


def _looks_of(table: ColumnTable) -> str:
    """Return the columns of a table with their ranges, for messages."""
    looks = []
    for name, values in table.read(table.names[:MOST_COLUMNS]).items():
        known = values[np.isfinite(values)]
        shown = f'{known.min():.5g} to {known.max():.5g}' if known.size else 'no numbers'
        looks.append(f'{name}: {shown}')
    return shortened([*looks, *table.names[MOST_COLUMNS:]], MOST_COLUMNS)


EXAMPLES = {
    'time': 't', 'position': 'q{i}', 'velocity': 'dq{i}', 'effort': 'tau{i}', COMMAND: 'q_des{i}',
}  # fmt: skip


def missing(
    table: ColumnTable, quantity: str, selections: Mapping[str, Selection]
) -> RecordingError:
    """Return the error for a table without a quantity: what its columns look like."""
    if not table.has_header:
        return RecordingError(
            f"'{table.source}' has {len(table.names)} columns without names ({_looks_of(table)}): "
            f"name them, as in --columns 'time={table.names[0]} position=FIRST..LAST "
            "effort=FIRST..LAST'"
        )
    taken = ', '.join(f'{name} {each.pattern}' for name, each in selections.items())
    known = f'; found: {taken}' if taken else ''
    known += f'; passed over: {shortened(table.passed_over)}' if table.passed_over else ''
    example = f'{quantity}={EXAMPLES[quantity]}'
    if table.names == [*table.places]:
        example = f'{quantity}=NAME[FIRST:END]'
    return RecordingError(
        f"'{table.source}' has no column that looks like {quantity} by its name (its "
        f"columns: {_looks_of(table)}{known}): name it with --columns '{example}'"
    )
