"""Which joints the columns of a table belong to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
import re
from xml.etree import ElementTree

from ...core.model.urdf_parsing import movable_joints
from ...exceptions import RecordingError
from .column_names import Key
from .column_selection import Column, joint_names, Selection
from .read_options import ReadOptions
from .table import Table


@dataclass(frozen=True)
class Described:
    """Joints of a description: names, which are prismatic, largest position of each."""

    names: tuple[str, ...] = ()
    prismatic: Mapping[str, bool] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)


def describe(urdf: str) -> Described:
    """
    Return the joints of a robot description that can move, but those that mimic others.

    Raises
    ------
    ModelError : the description is malformed

    """
    if not urdf:
        return Described()
    names, followers = movable_joints(urdf)
    names = tuple(name for name in names if name not in followers)
    elements = {str(j.get('name')): j for j in ElementTree.fromstring(urdf).findall('joint')}
    prismatic = {name: elements[name].get('type') == 'prismatic' for name in names}
    limits = {}
    for name in names:
        limit = elements[name].find('limit')
        if limit is not None and elements[name].get('type') == 'revolute':
            limits[name] = max(abs(float(limit.get(k, '0'))) for k in ('lower', 'upper'))
    return Described(names, prismatic, limits)


def joints_of(
    table: Table, selection: Selection, robot: Described, options: ReadOptions
) -> tuple[str, ...]:
    """
    Return the names of the joints whose positions were found.

    Raises
    ------
    RecordingError : the robot has no such joint

    """
    keys = [key for key, _ in selection.members]
    known = _known_names(table, keys, robot, options)
    return tuple(_joint(table, selection, key, keys, known) for key in keys)


def _known_names(
    table: Table, keys: Sequence[Key], robot: Described, options: ReadOptions
) -> tuple[str, ...]:
    if len(options.joints) == len(keys) != len(robot.names):
        return options.joints
    texts = joint_names(table)
    if len(texts) == len(keys) and (not robot.names or set(texts.values()) <= set(robot.names)):
        return tuple(texts.values())
    return robot.names or options.joints


def _joint(
    table: Table, selection: Selection, key: Key, keys: Sequence[Key], known: Sequence[str]
) -> str:
    """
    Name of the joint of a column: by its name, else by its number.

    Raises
    ------
    RecordingError : the robot has no such joint

    """
    if isinstance(key, str):
        if not known or key in known:
            return key
        alike = [name for name in known if _simplified(name) == _simplified(key)]
        if len(alike) == 1:
            return alike[0]
        if len(keys) == len(known) and not any(
            _simplified(str(k)) in map(_simplified, known) for k in keys
        ):
            return known[list(keys).index(key)]
        raise RecordingError(
            f"'{table.source}' has {selection.pattern} of '{key}', which is no joint of the "
            f"robot ({', '.join(known)}): name the columns in the robot's order, as in --columns "
            "'position=first,second'"
        )
    numbers = [k for k in keys if isinstance(k, int)]
    place = 0 if key is None else key - (0 if 0 in numbers else 1)
    if not known:
        return f'joint_{place + 1}'
    if place >= len(known):
        raise RecordingError(
            f"'{table.source}' has {len(keys)} columns {selection.pattern}, the robot "
            f'{len(known)} joints ({", ".join(known)}): name those that count, as in --columns '
            f"'position=first..last effort=first..last'"
        )
    return known[place]


def _simplified(name: str) -> str:
    return re.sub(r'[^a-z0-9]|joint', '', name.lower())


def places_of(
    table: Table,
    quantity: str,
    selection: Selection,
    joints: tuple[str, ...],
    robot: Described,
    options: ReadOptions,
) -> dict[str, Column]:
    """
    Return the column of each joint for a quantity.

    Raises
    ------
    RecordingError : the columns are of other joints

    """
    keys = [key for key, _ in selection.members]
    if len(keys) == len(joints) and not any(isinstance(key, str) for key in keys):
        names: Sequence[str] = joints
    else:
        known = _known_names(table, keys, robot, options) or joints
        names = [_joint(table, selection, key, keys, known) for key in keys]
    places = dict(zip(names, (column for _, column in selection.members), strict=True))
    if not set(places) & set(joints):
        raise RecordingError(
            f"'{table.source}' has {quantity} of {', '.join(places)} and position of "
            f'{", ".join(joints)}: name columns of the same joints with --columns'
        )
    return {joint: column for joint, column in places.items() if joint in joints}
