"""
Which columns of a table are times, positions, velocities and efforts, of which joints.

Where names do not say it, joint states that only words tell, and what columns look like.
"""

from collections.abc import Mapping, Sequence
import dataclasses
from dataclasses import dataclass
import re

import numpy as np

from ...core.finding_codes import finding, select as findings_of
from ...core.findings import Finding
from ...core.setup.arm_choice import choose_arm, JointTree
from ...exceptions import ModelError, RecordingError, shortened
from .column_names import group, Key, match_names, Meaning, numbers_in, understand
from .joint_table import COMMAND, FIELDS
from .read_options import QUANTITIES, ReadOptions
from .table import Columns, ColumnTable

FOLDER_HINT = 'give the folder, where other files hold the other quantities'
_SLICE, _ENDS = re.compile(r'(?P<name>.+)\[(?P<start>\d*):(?P<stop>\d*)\]$'), ('start', 'stop')


@dataclass(frozen=True)
class Column:
    """One column: that of a name, or the one of this index in an array."""

    name: str
    index: int | None = None

    def of(self, content: Columns) -> np.ndarray:
        """Return its values, (N,), in what was read."""
        return content[self.name] if self.index is None else content[self.name][:, self.index]


@dataclass(frozen=True)
class Selection:
    """
    Columns of one quantity.

    Members are the number or name of a joint (None: neither) and its column; `meaning` is what
    their names say, if anything; `others` would do as well, the likeliest first.
    """

    pattern: str
    members: tuple[tuple[Key, Column], ...]
    meaning: Meaning | None = None
    others: tuple['Selection', ...] = ()


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
        members = [(k, column) for k, column in enumerate(c for part in parts for _, c in part)]
    return Selection(pattern, tuple(members), understand(pattern))


def _matches(table: ColumnTable, pattern: str) -> list[tuple[Key, Column]]:
    """Columns of one pattern, numbered where they have no number or name of their own."""
    names = list(table.widths)
    if pattern in table.widths:
        return _array(table, pattern)
    part = _SLICE.match(pattern)
    if part is not None and table.widths.get(part['name']):
        return _array(
            table, part['name'], slice(*(int(part[k]) if part[k] else None for k in _ENDS))
        )
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


def _array(table: ColumnTable, name: str, part: slice = slice(None)) -> list[tuple[Key, Column]]:
    """Columns of an array, by their labels where all of it is meant and has some."""
    width, labels = table.widths[name], table.labels.get(name, ())
    if not width:
        return [(None, Column(name))]
    if part == slice(None) and len(labels) == width:
        names = (re.sub(r'[._]pos(ition)?$', '', label) for label in labels)
        return [(key, Column(name, k)) for k, key in enumerate(names)]
    return [(j, Column(name, k)) for j, k in enumerate(range(width)[part])]


def find(table: ColumnTable, joints: Sequence[str]) -> dict[str, Selection]:
    """
    Find times, positions, velocities and efforts by the names of the columns.

    Measured columns come before commanded ones, torques before currents; `joints` are those of the
    robot, where they are known.
    """
    groups = group((n for n, width in table.widths.items() if not width), joints)
    selections = [
        Selection(g.pattern, tuple((k, Column(n)) for k, n in g.members), g.meaning)
        for g in groups
    ]
    for name, width in table.widths.items():
        if width and (meaning := understand(re.sub(r'\d+', '', name))):
            selections.append(Selection(name, tuple(_array(table, name)), meaning))
    found = {}
    for quantity in QUANTITIES:
        fitting = _times(table) if quantity == 'time' else [
            s for s in selections
            if s.meaning and s.meaning.quantity == (quantity, 'position')[quantity == COMMAND]
            and (quantity == 'effort' or s.meaning.reference == (quantity == COMMAND))
        ]  # fmt: skip
        if fitting:
            fitting.sort(key=lambda s: _rank(s, joints))
            best = _with_nanoseconds(fitting) if quantity == 'time' else fitting[0]
            found[quantity] = dataclasses.replace(best, others=tuple(fitting[1:]))
    return found


def _times(table: ColumnTable) -> list[Selection]:
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


def _rank(selection: Selection, joints: Sequence[str]) -> tuple[object, ...]:
    """
    Sort key: the likeliest first; a stamp of the message before one of its reception.

    Last are columns that are named, and not after joints of the robot: those of a force sensor.
    """
    meaning = selection.meaning
    assert meaning is not None
    stamp = 'stamp' not in selection.pattern.lower()
    words = [key for key, _ in selection.members if isinstance(key, str)]
    return (
        bool(words and joints) and not match_names(words, joints),
        meaning.reference,
        meaning.current,
        -meaning.score,
        -len(selection.members),
        stamp if meaning.quantity == 'time' else False,
        len(selection.pattern),
    )


def _joint_names(table: ColumnTable) -> list[str]:
    """Names of the joints that columns of text hold, such as `name0` of `rostopic echo -p`."""
    for found in group(table.texts, ()):
        if found.meaning.quantity == 'name' and isinstance(found.members[0][0], int):
            return [table.texts[name] for _, name in found.members]
    return []


def columns_of_joints(
    table: ColumnTable, selection: Selection, options: ReadOptions
) -> tuple[dict[str, Column], list[Finding]]:
    """
    Return the column of each joint, and notes on what the file does not say itself.

    Names count, of columns or in columns of text; else numbers, else the order. A RecordingError
    says that the robot has no such joint, or another number of joints.
    """
    keys = [key for key, _ in selection.members]
    words = [key for key in keys if isinstance(key, str)]
    texts = _joint_names(table)
    if not words and len(texts) == len(keys):
        words = texts
    names, notes = _by_name(words, options)
    if not names:
        independent = options.robot.independent
        known: Sequence[str] = independent or options.joints
        if len(options.joints) == len(keys) != len(independent):
            known = options.joints
        if not isinstance(keys[0], str):
            names, notes = _by_number(table, selection, known, options.robot)
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
    columns = (column for _, column in selection.members)
    return {n: column for n, column in zip(names, columns, strict=True) if n}, notes


def _by_name(words: Sequence[str], options: ReadOptions) -> tuple[list[str], list[Finding]]:
    """Return the joint that each name is, '' for none, and notes; nothing where none is."""
    robot = options.robot
    if not options.known_joints:
        return list(words), []
    matched = match_names(words, options.known_joints) or match_names(words, options.joints)
    if not matched:
        return [], []
    notes = []
    if others := {word: joint for word, joint in matched.items() if word != joint}:
        notes.append(finding('names_matched', others.values(), words=tuple(others)))
    if left_out := [word for word in words if word not in matched]:
        notes.append(finding('joints_left_out', words=left_out))
    names = (matched.get(word, '') for word in words)
    return ['' if name in robot.mimics else name for name in names], notes


def _by_number(
    table: ColumnTable, selection: Selection, known: Sequence[str], robot: JointTree
) -> tuple[list[str], list[Finding]]:
    """Return the joints of numbered columns, and notes where the robot has more joints."""
    numbers = [key if isinstance(key, int) else 0 for key, _ in selection.members]
    places = [number - (0 if 0 in numbers else 1) for number in numbers]
    if not known:
        return [f'joint_{place + 1}' for place in places], []
    if max(places) >= len(known):
        columns = [column for _, column in selection.members]
        few = f'{columns[0].name}..{columns[len(known) - 1].name}'
        if columns[0].index is not None:
            few = f'{columns[0].name}[0:{len(known)}]'
        raise RecordingError(
            f"'{table.source}' has {len(numbers)} columns {selection.pattern}, the robot "
            f'{len(known)} joints ({", ".join(known)}): name those that count, as in --columns '
            f"'position={few}', and as many efforts"
        )
    if max(places) + 1 == len(known):
        return [known[place] for place in places], []
    names = _of_more(numbers, places, known, robot)
    note = finding('joints_by_number', names, columns=selection.pattern, count=len(known))
    return names, [note]


def _of_more(
    numbers: Sequence[int], places: Sequence[int], known: Sequence[str], robot: JointTree
) -> list[str]:
    """
    Choose joints of a robot that has more of them than numbers.

    Those of the arm, where it has as many; else those of the one set of names with these numbers,
    if it is no small part of the arm, as three wrists are; else the first ones from the arm on,
    without the wheels that come before it.
    """
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
        return [fitting[0][number] for number in numbers]
    behind = known[known.index(arm[0]) :] if arm else known
    joints = next(j for j in (arm, behind, known) if max(places) < len(j))
    return [joints[place] for place in places]


def places_of(
    table: ColumnTable,
    quantity: str,
    selection: Selection,
    positions: Mapping[str, Column],
    options: ReadOptions,
) -> tuple[dict[str, Column], list[Finding]]:
    """
    Return the column of each joint that has positions for another quantity, and notes.

    A RecordingError says that the columns are of other joints.
    """
    members = selection.members
    if len(members) == len(positions) and not any(isinstance(key, str) for key, _ in members):
        columns = (column for _, column in members)
        return dict(zip(positions, columns, strict=True)), []
    places, notes = columns_of_joints(table, selection, options)
    if not set(places) & set(positions):
        raise RecordingError(
            f"'{table.source}' has {quantity} of {', '.join(places)} and position of "
            f'{", ".join(positions)}: name columns of the same joints with --columns'
        )
    return {joint: column for joint, column in places.items() if joint in positions}, notes


# Columns of a table that are looked at.
MOST_COLUMNS = 64


def _looks_of(table: ColumnTable) -> str:
    """Return the columns of a table with their ranges, for messages."""
    looks = []
    for name, values in table.read([*table.widths][:MOST_COLUMNS]).items():
        known, width = values[np.isfinite(values)], table.widths[name]
        shown = f'{known.min():.5g} to {known.max():.5g}' if known.size else 'no numbers'
        looks.append(f'{name}[0:{width}]: {shown}' if width else f'{name}: {shown}')
    return shortened([*looks, *[*table.widths][MOST_COLUMNS:]], MOST_COLUMNS)


EXAMPLES = {
    'time': 't', 'position': 'q{i}', 'velocity': 'dq{i}', 'effort': 'tau{i}', COMMAND: 'q_des{i}',
}  # fmt: skip


def missing(
    table: ColumnTable, quantity: str, selections: Mapping[str, Selection]
) -> RecordingError:
    """Return the error for a table without a quantity: what its columns look like."""
    taken = ', '.join(f'{name} {each.pattern}' for name, each in selections.items())
    known = f'; found: {taken}' if taken else ''
    known += f'; passed over: {shortened(table.passed_over)}' if table.passed_over else ''
    for note in findings_of(table.notes, 'tables_joined'):
        if left_out := note.values['left_out']:
            known += f'; {shortened(left_out)} left out, of another length'
    example = f'{quantity}={EXAMPLES[quantity]}'
    if all(table.widths.values()):
        example = f'{quantity}=NAME[FIRST:END]'
    hint = f', or {FOLDER_HINT}' if quantity in ('position', 'effort', COMMAND) else ''
    return RecordingError(
        f"'{table.source}' has no column that looks like {quantity} by its name (its "
        f"columns: {_looks_of(table)}{known}): name it with --columns '{example}'{hint}"
    )


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
