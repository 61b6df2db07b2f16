"""Which joints the columns of a table belong to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
import re
from xml.etree import ElementTree

from ...core.model.urdf_parsing import movable_joints
from ...core.setup.arm_choice import choose_arm, JointTree
from ...exceptions import ModelError, RecordingError, shortened
from .column_selection import Column, joint_names, Selection
from .joint_matching import match_names, numbers_in
from .read_options import ReadOptions
from .table import Table


@dataclass(frozen=True)
class Described:
    """
    Joints of a description.

    Attributes
    ----------
    names : of those that can move, but those that mimic others
    followers : those that mimic others
    prismatic : whether a joint is
    limits : largest position of each revolute joint [rad]
    speeds : largest velocity of each joint [rad/s or m/s] that has such a limit

    """

    names: tuple[str, ...] = ()
    followers: tuple[str, ...] = ()
    prismatic: Mapping[str, bool] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    speeds: Mapping[str, float] = field(default_factory=dict)


def describe(urdf: str) -> Described:
    """
    Return the joints of a robot description that can move.

    Raises
    ------
    ModelError : the description is malformed

    """
    if not urdf:
        return Described()
    movable, followers = movable_joints(urdf)
    names = tuple(name for name in movable if name not in followers)
    elements = {str(j.get('name')): j for j in ElementTree.fromstring(urdf).findall('joint')}
    prismatic = {name: elements[name].get('type') == 'prismatic' for name in names}
    limits, speeds = {}, {}
    for name in names:
        limit = elements[name].find('limit')
        if limit is not None and float(limit.get('velocity', '0')) > 0.0:
            speeds[name] = float(limit.get('velocity', '0'))
        if limit is not None and elements[name].get('type') == 'revolute':
            limits[name] = max(abs(float(limit.get(k, '0'))) for k in ('lower', 'upper'))
    return Described(names, tuple(sorted(followers)), prismatic, limits, speeds)


def columns_of_joints(
    table: Table, selection: Selection, robot: Described, options: ReadOptions
) -> tuple[dict[str, Column], list[str]]:
    """
    Return the column of each joint, and notes on what the file does not say itself.

    Names count, of columns or in columns of text; else numbers, else the order.

    Raises
    ------
    RecordingError : the robot has no such joint

    """
    keys = [key for key, _ in selection.members]
    texts = tuple(joint_names(table).values())
    words = [key for key in keys if isinstance(key, str)]
    if not words and len(texts) == len(keys):
        words = list(texts)
    names, notes = _by_name(words, robot, options)
    if not names:
        known, urdf = robot.names or options.joints, options.urdf
        if len(options.joints) == len(keys) != len(robot.names):
            known, urdf = options.joints, ''
        if isinstance(keys[0], str):
            names, notes = _by_order(table, selection, words, known)
        else:
            names, notes = _by_number(table, selection, known, urdf)
    columns = (column for _, column in selection.members)
    places = {name: column for name, column in zip(names, columns, strict=True) if name}
    return places, notes


def _by_name(
    words: Sequence[str], robot: Described, options: ReadOptions
) -> tuple[list[str], list[str]]:
    """Return the joint that each name is, '' for none, and notes; nothing where none is."""
    if not (robot.names or options.joints):
        return list(words), []
    matched = match_names(words, (*robot.names, *robot.followers) or options.joints)
    matched = matched or match_names(words, options.joints)
    if not matched:
        return [], []
    notes = []
    if others := [f'{word} is {joint}' for word, joint in matched.items() if word != joint]:
        notes.append(f'names of joints differ from those of the robot: {", ".join(others)}')
    if left_out := [word for word in words if word not in matched]:
        notes.append(f'{shortened(left_out)} left out: not among the joints of the robot')
    names = (matched.get(word, '') for word in words)
    return ['' if name in robot.followers else name for name in names], notes


def _by_order(
    table: Table, selection: Selection, words: Sequence[str], known: Sequence[str]
) -> tuple[list[str], list[str]]:
    """
    Return the joints of columns of which no name is known, in their order, and notes.

    Raises
    ------
    RecordingError : the robot has another number of joints

    """
    if len(words) != len(known):
        raise RecordingError(
            f"'{table.source}' has {selection.pattern} of '{words[0]}', which is no joint of the "
            f"robot ({', '.join(known)}): name the columns in the robot's order, as in --columns "
            "'position=first,second'"
        )
    order = numbers_in(words) or range(len(words))
    names = [known[sorted(order).index(number)] for number in order]
    pairs = ', '.join(f'{word} is {name}' for word, name in zip(words, names, strict=True))
    return names, [f'no name of a joint is known to the robot, their order counts: {pairs}']


def _by_number(
    table: Table, selection: Selection, known: Sequence[str], urdf: str
) -> tuple[list[str], list[str]]:
    """
    Return the joints of numbered columns, and notes where the robot has more joints.

    Raises
    ------
    RecordingError : the robot has fewer joints

    """
    numbers = [key if isinstance(key, int) else 0 for key, _ in selection.members]
    places = [number - (0 if 0 in numbers else 1) for number in numbers]
    if not known:
        return [f'joint_{place + 1}' for place in places], []
    if max(places) >= len(known):
        raise RecordingError(
            f"'{table.source}' has {len(numbers)} columns {selection.pattern}, the robot "
            f'{len(known)} joints ({", ".join(known)}): name those that count, as in --columns '
            f"'position=first..last effort=first..last'"
        )
    if max(places) + 1 == len(known):
        return [known[place] for place in places], []
    names = _of_more(numbers, places, known, urdf)
    note = f'{selection.pattern} counted as {", ".join(names)} of {len(known)} joints'
    return names, [f'{note} (--joints: others)']


def _of_more(
    numbers: Sequence[int], places: Sequence[int], known: Sequence[str], urdf: str
) -> list[str]:
    """
    Choose joints of a robot that has more of them than numbers.

    Those of the arm, where it has as many; else those of the one set of names with these numbers,
    if it is no small part of the arm, as three wrists are; else the first ones from the arm on,
    without the wheels that come before it.
    """
    arm = _arm(known, urdf)
    named = _with_numbers(numbers, known, len(arm) // 2 + 1)
    if named and max(places) + 1 != len(arm):
        return named
    behind = known[known.index(arm[0]) :] if arm else known
    joints = next(j for j in (arm, behind, known) if max(places) < len(j))
    return [joints[place] for place in places]


def _arm(known: Sequence[str], urdf: str) -> tuple[str, ...]:
    """Return the arm of a description, () where it has none."""
    try:
        arm = choose_arm(JointTree(urdf)).joints
    except ModelError:
        return ()
    return arm if set(arm) <= set(known) else ()


def _with_numbers(numbers: Sequence[int], known: Sequence[str], least: int) -> list[str]:
    """Return the joints whose names hold these numbers, [] unless there is one such set."""
    sets: dict[str, dict[int, str]] = {}
    for name in known:
        for match in re.finditer(r'\d+', name):
            pattern = f'{name[: match.start()]}#{name[match.end() :]}'
            sets.setdefault(pattern, {})[int(match.group())] = name
    large = (found for found in sets.values() if len(found) >= least)
    fitting = [found for found in large if found.keys() >= set(numbers)]
    return [fitting[0][number] for number in numbers] if len(fitting) == 1 else []


def places_of(
    table: Table,
    quantity: str,
    selections: Mapping[str, Selection],
    positions: Mapping[str, Column],
    robot: Described,
    options: ReadOptions,
) -> tuple[dict[str, Column], list[str]]:
    """
    Return the column of each joint that has positions for another quantity, and notes.

    Raises
    ------
    RecordingError : the columns are of other joints

    """
    members = selections[quantity].members
    if len(members) == len(positions) and not any(isinstance(key, str) for key, _ in members):
        columns = (column for _, column in members)
        return dict(zip(positions, columns, strict=True)), []
    places, notes = columns_of_joints(table, selections[quantity], robot, options)
    if not set(places) & set(positions):
        raise RecordingError(
            f"'{table.source}' has {quantity} of {', '.join(places)} and position of "
            f'{", ".join(positions)}: name columns of the same joints with --columns'
        )
    return {joint: column for joint, column in places.items() if joint in positions}, notes
