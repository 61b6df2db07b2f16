"""Which joints the columns of a table belong to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.etree import ElementTree

from ...core.model.urdf_parsing import movable_joints
from ...exceptions import RecordingError, shortened
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

    """

    names: tuple[str, ...] = ()
    followers: tuple[str, ...] = ()
    prismatic: Mapping[str, bool] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)


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
    limits = {}
    for name in names:
        limit = elements[name].find('limit')
        if limit is not None and elements[name].get('type') == 'revolute':
            limits[name] = max(abs(float(limit.get(k, '0'))) for k in ('lower', 'upper'))
    return Described(names, tuple(sorted(followers)), prismatic, limits)


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
        names, notes = _by_number(table, selection, robot, options)
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


def _by_number(
    table: Table, selection: Selection, robot: Described, options: ReadOptions
) -> tuple[list[str], list[str]]:
    """
    Return the joints by the numbers or the order of columns, and notes.

    Raises
    ------
    RecordingError : the robot has no such joint

    """
    keys = [key for key, _ in selection.members]
    known = robot.names or options.joints
    if len(options.joints) == len(keys) != len(robot.names):
        known = options.joints
    words = [key for key in keys if isinstance(key, str)]
    numbers = [key if isinstance(key, int) else 0 for key in keys]
    if words and len(words) != len(known):
        raise RecordingError(
            f"'{table.source}' has {selection.pattern} of '{words[0]}', which is no joint of the "
            f"robot ({', '.join(known)}): name the columns in the robot's order, as in --columns "
            "'position=first,second'"
        )
    if words:
        order = numbers_in(words) or range(len(words))
        numbers = [sorted(order).index(number) for number in order]
    places = [number - (0 if 0 in numbers else 1) for number in numbers]
    if not known:
        return [f'joint_{place + 1}' for place in places], []
    if max(places) >= len(known):
        raise RecordingError(
            f"'{table.source}' has {len(keys)} columns {selection.pattern}, the robot "
            f'{len(known)} joints ({", ".join(known)}): name those that count, as in --columns '
            f"'position=first..last effort=first..last'"
        )
    names = [known[place] for place in places]
    pairs = ', '.join(f'{word} is {name}' for word, name in zip(words, names, strict=False))
    note = f'no name of a joint is known to the robot, their order counts: {pairs}'
    return names, [note] if words else []


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
