"""From the columns of a table to joint states: joints by name, SI, stamps in ns."""

from collections.abc import Collection, Mapping, Sequence
import contextlib
import dataclasses
from dataclasses import dataclass
import math

import numpy as np

from ...core.finding_codes import finding
from ...core.findings import Finding
from ...core.setup.arm_choice import JointTree
from ...core.signals.derived_efforts import refuse_derived_efforts
from ...exceptions import RecordingError
from .column_looks import are_successive, echoed_columns, missing
from .column_names import Meaning, words_of
from .column_selection import (
    Column,
    columns_of_joints,
    find,
    joint_tree,
    places_of,
    select,
    Selection,
)
from .joint_table import FIELDS, JointTable
from .read_options import ReadOptions
from .stamps import align_rows, make_stamps
from .table import Columns, ColumnTable
from .units import (
    canonical,
    CURRENTS,
    DEGREE,
    FACTOR_TOLERANCE,
    FACTORS,
    factors,
    usual_ratio,
    WITHOUT_JUMPS,
    WITHOUT_VALUE,
)

# A position beyond so many times its limit, and inside it in degrees, is one in degrees.
BEYOND_LIMIT, INSIDE_LIMIT = 2.0, 1.1


@dataclass(frozen=True)
class LogUnits:
    """
    What is known of the units of a log.

    Attributes
    ----------
    joints : names of the columns
    said : unit of each quantity that the user or its name says, '' for none
    patterns : what the columns of each quantity are called
    robot : whose limits tell more
    given : quantities whose unit is from the user, and not to be doubted

    """

    joints: tuple[str, ...]
    said: dict[str, str]
    patterns: Mapping[str, str]
    robot: JointTree
    given: Collection[str] = ()

    def factors(self, quantity: str, unit: str | None) -> np.ndarray:
        """SI value of each joint's column, (n,)."""
        known = self.robot.joints
        prismatic = np.array([j in known and known[j].type == 'prismatic' for j in self.joints])
        if not unit:
            return np.ones(len(self.joints))
        return factors(quantity, unit, len(self.joints), prismatic)

    def bare(self, quantity: str) -> str:
        """Return a unit whose size nothing says, '' for none."""
        units = self.said.get(quantity, '').split(',')
        return next((unit for unit in units if canonical(unit) in WITHOUT_VALUE[quantity]), '')

    def of_positions(self, position: np.ndarray) -> tuple[str | None, list[Finding]]:
        """Return the unit of positions (N, n), None where nothing proves one, and notes."""
        name = self.patterns['position']
        if bare := self.bare('position'):
            raise RecordingError(
                f'the positions {name} are in {bare}, whose size the log does not say: give it in '
                f"rad or m, as in --units 'position={bare}*1.2e-5', or one for each joint between "
                'commas'
            )
        if said := self.said.get('position'):
            return said, []
        known = map(self.robot.joints.get, self.joints)
        limits = np.array(
            [max(-j.lower, j.upper) if j and j.type == 'revolute' else math.inf for j in known]
        )
        unit = unit_by_limits(position, limits)
        if unit is None or (unit and 'motor' in words_of(name)):
            raise RecordingError(
                f'the positions {name} reach {np.nanmax(np.abs(position)):.4g}, which the limits '
                'of the robot description do not permit as rad: give their unit, as in --units '
                "'position=deg', of counts or at motors with its size, 'position=counts*1.2e-5' "
                "or 'position=rad*0.01', or 'position=rad' where the limits are wrong"
            )
        why = 'they exceed the limits of the robot description in rad'
        return unit or None, [_counted('position', unit, why)] if unit else []

    def of_velocities(self, unit: str | None, ratio: float) -> tuple[list[str], list[Finding]]:
        """Return the units of positions and velocities by their ratio, and notes."""
        velocity = self.said.get('velocity') or None
        if unit and velocity and 'velocity' in self.given:
            return [unit, velocity], []
        found = units_by_ratio(ratio, unit, velocity)
        if found is None:
            position, name = self.patterns['position'], self.patterns['velocity']
            raise RecordingError(
                f'the velocities {name} are {ratio:.3g} times the derivatives of the positions '
                f'{position}, as no units are: give the right ones, of the times too, as in '
                "--units 'time=ms position=rad velocity=rad/s'"
            )
        why = 'so much the derivative of the positions is'
        pairs = zip(('position', 'velocity'), found, (unit, velocity), strict=True)
        return found, [_counted(q, new, why) for q, new, old in pairs if new and new != old]

    def of_efforts(self, current: bool) -> tuple[str, list[Finding]]:
        """Return the unit of efforts, '' where it is unknown, and notes."""
        unit, bare = self.said.get('effort', ''), self.bare('effort')
        current |= any(canonical(each) in CURRENTS for each in unit.split(','))
        if '*' in unit or not (current or bare):
            return unit, []
        what, one, each = (bare, bare, bare) if bare else ('currents', 'A', 'ampere')
        note = finding('effort_unit_of_log', what=what, each=each, unit=one)
        return '' if bare else unit, [note]


def _counted(quantity: str, unit: str, why: str) -> Finding:
    return finding('unit_assumed', quantity=quantity, unit=unit, reason=why)


def apply_units(
    values: dict[str, np.ndarray],
    stamp: np.ndarray,
    units: LogUnits,
    position: str | None,
    meaning: Meaning | None,
) -> tuple[list[Finding], list[str]]:
    """
    Bring the values to SI, in place.

    Parameters
    ----------
    values : (N, n) by quantity
    stamp : (N,) [ns]
    units : what is known of them
    position : unit of the positions, None where it is unknown
    meaning : of the efforts

    Returns
    -------
    Notes on what was not said by the user, and the quantities that count as SI for want of a unit

    """
    notes, bare = list[Finding](), units.bare('velocity')
    if bare:
        values['velocity'][:] = math.nan
        notes.append(finding('velocities_left_out', unit=bare))
    known = {'position': position, 'velocity': '' if bare else units.said.get('velocity')}
    scaled = (values[q] * units.factors(q, unit) for q, unit in known.items())
    ratio = usual_ratio((stamp - stamp[0]) * 1e-9, *scaled)
    found = [position or '', '']
    if np.isfinite(values['velocity']).any():
        found, told = units.of_velocities(position, ratio)
        notes += told
    effort, told = units.of_efforts(bool(meaning and meaning.current))
    final = dict(zip(FIELDS, (*found, effort), strict=True))
    for quantity, unit in final.items():
        values[quantity] *= units.factors(quantity, unit)
    return [*notes, *told], [q for q in ('position', 'effort') if not (final[q] or told)]


def unit_by_limits(position: np.ndarray, limits: np.ndarray) -> str | None:
    """
    Return the unit of positions (N, n) that their range proves.

    Parameters
    ----------
    position : as logged
    limits : (n,) largest position of each joint [rad], inf where there is none

    Returns
    -------
    'deg', '' where they may be rad, None where they are neither

    """
    known = np.isfinite(limits) & (limits > 0.0)
    magnitude = np.abs(position[:, known])
    largest = np.nanmax(magnitude, axis=0, initial=0.0) / limits[known]
    if not (largest > BEYOND_LIMIT).any():
        return ''
    if (largest * DEGREE < INSIDE_LIMIT).all():
        return 'deg'
    # Single wrong values are no unit.
    usual = np.quantile(np.nan_to_num(magnitude), WITHOUT_JUMPS, axis=0) / limits[known]
    return None if (usual > BEYOND_LIMIT).any() else ''


def units_by_ratio(ratio: float, position: str | None, velocity: str | None) -> list[str] | None:
    """
    Return units of positions and velocities that make the latter the former's derivatives.

    Parameters
    ----------
    ratio : of the velocities to these derivatives, as logged but for units that are known
    position, velocity : known units, None for unknown ones

    Returns
    -------
    Both units, '' for SI, or None where no units that are usual do

    """
    if math.isnan(ratio) or 0.5 < ratio < 2.0:
        return [position or '', velocity or '']
    for own in ('', 'deg', 'rev') if position is None else ('',):
        for other in ('', 'deg/s', 'rpm', 'rev/s') if velocity is None else ('',):
            scale = FACTORS['velocity'].get(other, 1.0) / FACTORS['position'].get(own, 1.0)
            if abs(ratio * scale - 1.0) < FACTOR_TOLERANCE:
                return [position or own, velocity or other]
    return None


def read_joint_table(table: ColumnTable, options: ReadOptions) -> JointTable:
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
    robot = joint_tree(options)
    named = dict(options.columns)
    notes = list(table.notes)
    if table.has_header:
        found = find(table, (*robot.independent, *robot.mimics) or options.joints)
    else:
        found = (
            {}
            if {'position', 'effort'} <= set(named)
            else echoed_columns(table, robot.independent)
        )
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
    known_joints = map(robot.joints.get, joints)
    fastest = np.array([(j.velocity if j else 0.0) or math.inf for j in known_joints])
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
    return JointTable(joints, stamp, stamp, position, velocity, effort, notes=tuple(notes))


@dataclass(frozen=True)
class _Content:
    """What was read: columns of the joints, all columns, (N, n) by quantity, and notes."""

    places: Mapping[str, Mapping[str, Column]]
    columns: Columns
    values: dict[str, np.ndarray]
    notes: tuple[Finding, ...]

    @property
    def has_efforts(self) -> bool:
        """Whether one effort is not 0."""
        return bool(np.nan_to_num(self.values['effort']).any())


def _read(
    table: ColumnTable, found: Mapping[str, Selection], robot: JointTree, options: ReadOptions
) -> _Content:
    positions, notes = columns_of_joints(table, found['position'], robot, options)
    places: dict[str, Mapping[str, Column]] = {'position': positions}
    for quantity in FIELDS[1:]:
        if quantity in found:
            places[quantity], more = places_of(table, quantity, found, positions, robot, options)
            notes += more
    names = [c.name for members in places.values() for c in members.values()]
    names += [column.name for _, column in found['time'].members] if 'time' in found else []
    columns = table.read(list(dict.fromkeys(names)))
    wanted = dict.fromkeys((*FIELDS, *places))
    values = {q: _matrix(columns, places.get(q, {}), tuple(positions)) for q in wanted}
    return _Content(places, columns, values, tuple(dict.fromkeys(notes)))


def _with_live_efforts(
    content: _Content,
    table: ColumnTable,
    found: Mapping[str, Selection],
    robot: JointTree,
    options: ReadOptions,
) -> tuple[Selection, _Content]:
    """Return the first efforts that are not 0 throughout, with a note where others look better."""
    chosen = found['effort']
    for other in () if content.has_efforts else chosen.others:
        with contextlib.suppress(RecordingError):  # of other joints
            instead = _read(table, {**found, 'effort': other}, robot, options)
            if instead.has_efforts:
                note = finding('efforts_zero', column=chosen.pattern, taken=other.pattern)
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


def _found_note(
    table: ColumnTable, found: Mapping[str, Selection], bare: Sequence[str]
) -> Finding:
    """Say which columns were taken, which others look alike, and which are without a unit."""
    columns = [
        s.pattern + (f' [{s.meaning.unit}]' if s.meaning and s.meaning.unit else '')
        for s in found.values()
    ]
    others = [o.pattern for k, s in found.items() if k in ('position', 'effort') for o in s.others]
    return finding(
        'columns_found',
        table=table.source,
        how='their names' if table.has_header else 'the names of the joints in them',
        quantities=tuple(found),
        columns=columns,
        alike=others[:4],
        in_si=' and '.join(quantity for quantity in bare if quantity in found),
    )
