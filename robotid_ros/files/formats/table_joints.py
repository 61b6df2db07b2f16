"""From the columns of a table to joint states: joints by name, SI, stamps in ns."""

from collections.abc import Mapping, Sequence
import contextlib
import dataclasses
from dataclasses import dataclass
import math

import numpy as np

from ...core.signals.derived_efforts import refuse_derived_efforts
from ...exceptions import RecordingError
from .column_joints import columns_of_joints, describe, Described, places_of
from .column_looks import are_successive
from .column_selection import Column, find, missing, select, Selection
from .headerless import guess_columns
from .joint_rows import align_rows
from .joint_table import FIELDS, JointTable
from .read_options import ReadOptions
from .stamps import make_stamps
from .table import Columns, Table
from .unit_choice import apply_units, LogUnits

TEMPERATURE = 'temperature'


def read_joint_table(table: Table, options: ReadOptions) -> JointTable:
    """
    Make joint states of a table.

    Parameters
    ----------
    table : columns of a file
    options : what the user and the robot description say

    Raises
    ------
    RecordingError, ConfigurationError : something is missing or does not fit; how to name it
    ModelError : the robot description is malformed

    """
    robot = describe(options.urdf)
    named = dict(options.columns)
    notes = list(table.notes)
    if table.has_header:
        found = find(table, (*robot.names, *robot.followers) or options.joints)
    else:
        found = {} if {'position', 'effort'} <= set(named) else guess_columns(table, robot.names)
    automatic = {k: s for k, s in found.items() if k not in named}
    found |= {quantity: select(table, quantity, pattern) for quantity, pattern in named.items()}
    if options.rate:
        found.pop('time', None)
    for quantity in ('position', 'effort'):
        if quantity not in found:
            raise missing(table, quantity, found)
    content = _read(table, found, robot, options)
    if 'effort' in automatic:
        found['effort'], content = _with_live_efforts(content, table, found, robot, options)
        automatic['effort'] = found['effort']
    joints, values = tuple(content.places['position']), content.values
    if are_successive(values['position']):
        raise RecordingError(
            f"'{table.source}', {found['position'].pattern}: the columns are successive samples "
            'of one signal, not joints: give one row per sample'
        )
    places = content.places
    units = {q: _unit(found[q], own, joints) for q, own in places.items()}
    said = {q: dict(options.units).get(q) or own for q, own in units.items()}
    known = LogUnits(
        joints, said, {q: found[q].pattern for q in places}, robot, dict(options.units)
    )
    unit, deduced = known.of_positions(values['position'])
    fastest = np.array([robot.speeds.get(joint, math.inf) for joint in joints])
    motion = values | {'fastest': fastest / known.factors('position', unit)}
    stamp, kept, told = make_stamps(table, found.get('time'), content.columns, options, motion)
    stamp, values, aligned = align_rows(stamp, {q: v[kept] for q, v in values.items()})
    counted, bare = apply_units(values, stamp, known, unit, found['effort'].meaning)
    notes += [_found_note(table, automatic, bare)] if automatic else []
    notes += [*content.notes, *told, *aligned, *deduced, *counted]
    position, velocity, effort = (values[quantity] for quantity in FIELDS)
    step = float(np.median(np.diff(stamp))) if len(stamp) > 1 else 0.0
    rate = 1e9 / step if step > 0.0 else 0.0
    where = f"'{table.source}', {found['effort'].pattern}"
    refuse_derived_efforts(joints, position, effort, velocity, rate, where)
    temperature = values.get(TEMPERATURE)
    states = (position, velocity, effort, temperature)
    return JointTable(joints, stamp, stamp, *states, notes=tuple(notes))


@dataclass(frozen=True)
class _Content:
    """What was read: columns of the joints, all columns, (N, n) by quantity, and notes."""

    places: Mapping[str, Mapping[str, Column]]
    columns: Columns
    values: dict[str, np.ndarray]
    notes: tuple[str, ...]

    @property
    def has_efforts(self) -> bool:
        """Whether one effort is not 0."""
        return bool(np.nan_to_num(self.values['effort']).any())


def _read(
    table: Table, found: Mapping[str, Selection], robot: Described, options: ReadOptions
) -> _Content:
    positions, notes = columns_of_joints(table, found['position'], robot, options)
    places: dict[str, Mapping[str, Column]] = {'position': positions}
    for quantity in FIELDS[1:]:
        if quantity in found:
            places[quantity], more = places_of(table, quantity, found, positions, robot, options)
            notes += more
    if warm := _temperature_places(table, found, positions, robot, options):
        places[TEMPERATURE] = warm
    names = [c.name for members in places.values() for c in members.values()]
    names += [column.name for _, column in found['time'].members] if 'time' in found else []
    columns = table.read(list(dict.fromkeys(names)))
    wanted = dict.fromkeys((*FIELDS, *places))
    values = {q: _matrix(columns, places.get(q, {}), tuple(positions)) for q in wanted}
    return _Content(places, columns, values, tuple(dict.fromkeys(notes)))


def _temperature_places(
    table: Table,
    found: Mapping[str, Selection],
    positions: Mapping[str, Column],
    robot: Described,
    options: ReadOptions,
) -> dict[str, Column]:
    """Return the column of each joint's temperature, none where they are not those of joints."""
    selection = found.get(TEMPERATURE)
    if selection is None or (len(positions) > 1 and selection.members[0][0] is None):
        return {}
    with contextlib.suppress(RecordingError):
        return places_of(table, TEMPERATURE, found, positions, robot, options)[0]
    return {}


def _with_live_efforts(
    content: _Content,
    table: Table,
    found: Mapping[str, Selection],
    robot: Described,
    options: ReadOptions,
) -> tuple[Selection, _Content]:
    """Return the first efforts that are not 0 throughout, with a note where others look better."""
    chosen = found['effort']
    for other in () if content.has_efforts else chosen.others:
        with contextlib.suppress(RecordingError):  # of other joints
            instead = _read(table, {**found, 'effort': other}, robot, options)
            if instead.has_efforts:
                note = f'{chosen.pattern} is 0 throughout: the efforts are {other.pattern}'
                return other, dataclasses.replace(instead, notes=(*instead.notes, note))
    return chosen, content


def _unit(selection: Selection, places: Mapping[str, Column], joints: Sequence[str]) -> str:
    """Return the unit that names say, or one for each joint between commas."""
    unit = selection.meaning.unit if selection.meaning else ''
    if ',' not in unit:
        return unit
    columns = (column for _, column in selection.members)
    units = dict(zip(columns, unit.split(','), strict=True))
    some = next(iter(units.values()))  # of joints without a column
    return ','.join(units[places[joint]] if joint in places else some for joint in joints)


def _matrix(columns: Columns, places: Mapping[str, Column], joints: Sequence[str]) -> np.ndarray:
    count = len(next(iter(columns.values())))
    values = np.full((count, len(joints)), math.nan)
    for k, joint in enumerate(joints):
        if joint in places:
            column = columns[places[joint].name]
            index = places[joint].index
            values[:, k] = column if index is None else column[:, index]
    return values


def _found_note(table: Table, found: Mapping[str, Selection], bare: Sequence[str]) -> str:
    """Say which columns were taken, which others look alike, and which are without a unit."""
    taken = ', '.join(
        f'{quantity} {s.pattern}'
        + (f' [{s.meaning.unit}]' if s.meaning and s.meaning.unit else '')
        for quantity, s in found.items()
    )
    others = [o.pattern for k, s in found.items() if k in ('position', 'effort') for o in s.others]
    also = f'; {", ".join(others[:4])} look alike' if others else ''
    how = 'by their names' if table.has_header else 'by their order and values'
    text = f"columns of '{table.source}' found {how}: {taken}{also} (--columns: others)"
    silent = [quantity for quantity in bare if quantity in found]
    si = f'; {" and ".join(silent)} without a unit, so in SI (--units: others)' if silent else ''
    return text + si
