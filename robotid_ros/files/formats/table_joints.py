"""From the columns of a table to joint states: joints by name, SI, stamps in ns."""

from collections.abc import Mapping, Sequence
import contextlib
import math

import numpy as np

from ...core.finding_codes import finding
from ...core.findings import Finding
from ...core.signals.derived_efforts import refuse_derived_efforts
from ...exceptions import RecordingError
from .column_names import match_names, words_of
from .column_selection import (
    Column,
    columns_of_joints,
    echoed_columns,
    find,
    missing,
    places_of,
    select,
    Selection,
)
from .joint_table import COMMAND, FIELDS, JointTable
from .read_options import NEEDED, ReadOptions
from .stamps import align_rows, make_stamps, stray_times, Values
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
# Between these, the largest position of a log may be of a range that is scaled to ±100.
NORMALISED = 90.0, 100.0
_Places = Mapping[str, Column]


def read_joint_table(table: ColumnTable, options: ReadOptions) -> JointTable:
    """
    Make joint states of a table; a RobotIdError says what is missing or does not fit.

    `options` are what the user and the robot description say.
    """
    robot, named, needed = options.robot, dict(options.columns), NEEDED[options.commands]
    if COMMAND in named and not options.commands:
        raise RecordingError(
            "commands are read by 'robotid identify --method commands' alone: leave command= out "
            'of --columns'
        )
    found: dict[str, Selection] = {}
    if table.has_header:
        found = find(table, options.known_joints)
    elif not set(needed) <= set(named):
        found = echoed_columns(table, robot.independent)
    found |= {quantity: select(table, quantity, pattern) for quantity, pattern in named.items()}
    if options.rate:
        found.pop('time', None)
    wanted = ('position', 'velocity', needed[1])
    found = {quantity: each for quantity, each in found.items() if quantity in ('time', *wanted)}
    automatic = [quantity for quantity in found if quantity not in named]
    for quantity in needed:
        if quantity not in found:
            raise missing(table, quantity, found)

    positions, notes = columns_of_joints(table, found['position'], options)
    places: dict[str, _Places] = {'position': positions}
    for quantity in wanted[1:]:
        if quantity in found:
            places[quantity], more = places_of(
                table, quantity, found[quantity], positions, options
            )
            notes += more
    times = [column for _, column in found['time'].members] if 'time' in found else []
    columns = [*times, *(column for own in places.values() for column in own.values())]
    content = table.read(list(dict.fromkeys(column.name for column in columns)))
    joints = tuple(positions)
    if times and (damaged := stray_times(times[0].of(content))).any():
        content = {name: np.array(column, dtype=float) for name, column in content.items()}
        for column in content.values():
            column[damaged] = math.nan
    read = dict.fromkeys((*FIELDS, *wanted))
    values = {q: _matrix(content, places.get(q, {}), joints) for q in read}
    alternatives = found['effort'].others if 'effort' in automatic else ()
    for other in () if np.nan_to_num(values['effort']).any() else alternatives:
        with contextlib.suppress(RecordingError):  # of other joints
            own, more = places_of(table, 'effort', other, positions, options)
            efforts = _matrix(table.read([c.name for c in own.values()]), own, joints)
            if np.nan_to_num(efforts).any():
                zero, found['effort'] = found['effort'].pattern, other
                places['effort'], values['effort'] = own, efforts
                notes += [*more, finding('efforts_zero', column=zero, taken=other.pattern)]
                break
    units = _Units(joints, found, places, options)
    if options.calibration:
        _calibrate(values, joints, options, table.source)
        units.said |= {'position': 'rad', COMMAND: 'rad'}
    unit, deduced = units.of_positions(values['position'])
    fastest = np.array([(j.velocity if j else 0.0) or math.inf for j in units.joints])
    motion = values | {'fastest': fastest / units.factors('position', unit)}
    clocks = [column.of(content) for column in times]
    stamp, kept, told = make_stamps(table, found.get('time'), clocks, options, motion)
    stamp, values, aligned = align_rows(stamp, {q: v[kept] for q, v in values.items()})
    counted, in_si = units.apply(values, stamp, unit)
    before = list(table.notes)
    if automatic:
        before.append(_found_note(table, {q: found[q] for q in automatic if q in found}, in_si))
    result = JointTable(
        joints, stamp, stamp, *(values[quantity] for quantity in FIELDS),
        command=values.get(COMMAND),
        notes=(*before, *dict.fromkeys(notes), *told, *aligned, *deduced, *counted),
    )  # fmt: skip
    if options.commands:
        return result
    step = float(np.median(np.diff(stamp))) if len(stamp) > 1 else 0.0
    rate = 1e9 / step if step > 0.0 else 0.0
    where = f"'{table.source}', {found['effort'].pattern}"
    refuse_derived_efforts(joints, result.position, result.effort, result.velocity, rate, where)
    return result


def _matrix(content: Columns, places: _Places, joints: Sequence[str]) -> np.ndarray:
    """Return the columns of the joints, (N, n), NaN of those without one."""
    count = len(next(iter(content.values())))
    missed = np.full(count, math.nan)
    return np.column_stack([places[j].of(content) if j in places else missed for j in joints])


def _calibrate(values: Values, joints: Sequence[str], options: ReadOptions, source: str) -> None:
    """Bring normalised positions and commands (N, n) to rad, in place."""
    names = [name for name, *_ in options.calibration]
    motors = {joint: name for name, joint in match_names(names, joints).items()}
    if lacking := [joint for joint in joints if joint not in motors]:
        raise RecordingError(
            f"the calibration file has no motor {', '.join(lacking)} of '{source}' (its motors: "
            f'{", ".join(names)}): give that of this robot'
        )
    known = {name: (factor, middle) for name, factor, middle in options.calibration}
    factor, middle = np.array([known[motors[joint]] for joint in joints]).T
    for quantity in ('position', COMMAND):
        if quantity in values:
            values[quantity] = (values[quantity] - middle) * factor


def _found_note(
    table: ColumnTable, found: Mapping[str, Selection], in_si: Sequence[str]
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
        alike=' and '.join(others[:4]),
        in_si=' and '.join(quantity for quantity in in_si if quantity in found),
    )


class _Units:
    """The units of a log: as the user says, as the names of columns say, or as values prove."""

    def __init__(
        self,
        joints: Sequence[str],
        found: Mapping[str, Selection],
        places: Mapping[str, _Places],
        options: ReadOptions,
    ):
        self.given, self.found = dict(options.units), found
        self.said = {q: self.given.get(q) or _unit(found[q], places[q], joints) for q in places}
        self.joints = [options.robot.joints.get(joint) for joint in joints]

    def factors(self, quantity: str, unit: str | None) -> np.ndarray:
        """SI value of each joint's column, (n,)."""
        if not unit:
            return np.ones(len(self.joints))
        prismatic = np.array([j is not None and j.type == 'prismatic' for j in self.joints])
        return factors(quantity, unit, len(self.joints), prismatic)

    def _without_size(self, quantity: str) -> str:
        """Return a unit whose size nothing says, '' for none."""
        units = self.said.get(quantity, '').split(',')
        return next((unit for unit in units if canonical(unit) in WITHOUT_VALUE[quantity]), '')

    def of_positions(self, position: np.ndarray) -> tuple[str | None, list[Finding]]:
        """Return the unit of positions (N, n), None where nothing proves one, and notes."""
        name = self.found['position'].pattern
        if unit := self._without_size('position'):
            raise RecordingError(
                f'the positions {name} are in {unit}, whose size the log does not say: give it in '
                f"rad or m, as in --units 'position={unit}*1.2e-5', or one for each joint between "
                'commas'
            )
        if said := self.said['position']:
            return said, []
        kinds = [j if j and j.type == 'revolute' else None for j in self.joints]
        limits = np.array([max(-j.lower, j.upper) if j else math.inf for j in kinds])
        proven = _unit_by_limits(position, limits)
        if proven is None or (proven and 'motor' in words_of(name)):
            raise RecordingError(
                f'the positions {name} reach {np.nanmax(np.abs(position)):.4g}, which the limits '
                'of the robot description do not permit as rad: give their unit, as in --units '
                "'position=deg', of counts or at motors with its size, 'position=counts*1.2e-5' "
                "or 'position=rad*0.01', or 'position=rad' where the limits are wrong"
            )
        why = 'they exceed the limits of the robot description in rad'
        return proven or None, [_counted('position', proven, why)] if proven else []

    def apply(
        self, values: Values, stamp: np.ndarray, position: str | None
    ) -> tuple[list[Finding], list[str]]:
        """
        Bring values (N, n) by quantity at stamps (N,) [ns] to SI, in place.

        Returns notes on what was not said by the user, and the quantities that count as SI for
        want of a unit; `position` is the unit of the positions, None where it is unknown.
        """
        notes, velocity = list[Finding](), self.said.get('velocity') or None
        if unit := self._without_size('velocity'):
            values['velocity'][:] = math.nan
            notes.append(finding('velocities_left_out', unit=unit))
            velocity = None
        elif np.isfinite(values['velocity']).any() and not (
            position and velocity and 'velocity' in self.given
        ):
            known = position, velocity
            scaled = (values[q] * self.factors(q, u) for q, u in zip(FIELDS, known, strict=False))
            ratio = usual_ratio((stamp - stamp[0]) * 1e-9, *scaled)
            proven = _units_by_ratio(ratio, position, velocity)
            if proven is None:
                names = (self.found[q].pattern for q in ('velocity', 'position'))
                raise RecordingError(
                    'the velocities {} are {:.3g} times the derivatives of the positions {}, as '
                    'no units are: give the right ones, of the times too, as in --units '
                    "'time=ms position=rad velocity=rad/s'".format(next(names), ratio, *names)
                )
            position, velocity = proven
            why = 'so much the derivative of the positions is'
            pairs = zip(FIELDS, proven, known, strict=False)
            notes += [_counted(q, new, why) for q, new, old in pairs if new and new != old]
        if COMMAND in values:
            largest = max(float(np.nanmax(np.abs(values[q]))) for q in ('position', COMMAND))
            own = self.said.get(COMMAND) or position
            values[COMMAND] *= self.factors('position', own)
            if not self.said.get('position') and NORMALISED[0] < largest <= NORMALISED[1]:
                notes.append(
                    finding('units_may_be_normalised', largest=largest, unit=position or 'rad')
                )
        effort, note = self.said.get('effort', ''), None
        meaning = self.found['effort'].meaning if 'effort' in self.found else None
        if '*' not in effort:
            if size := self._without_size('effort'):
                note = finding('effort_unit_of_log', what=size, each=size, unit=size)
                effort = ''
            elif any(canonical(each) in CURRENTS for each in effort.split(',')) or (
                meaning and meaning.current
            ):
                note = finding('effort_unit_of_log', what='currents', each='ampere', unit='A')
        units = dict(zip(FIELDS, (position, velocity, effort), strict=True))
        for quantity, own in units.items():
            values[quantity] *= self.factors(quantity, own)
        notes += [note] if note else []
        return notes, [q for q in ('position', 'effort') if not (units[q] or note)]


def _unit(selection: Selection, places: _Places, joints: Sequence[str]) -> str:
    """Return the unit that names say, or one for each joint between commas."""
    unit = selection.meaning.unit if selection.meaning else ''
    if ',' not in unit:
        return unit
    columns = (column for _, column in selection.members)
    units = dict(zip(columns, unit.split(','), strict=True))
    some = next(iter(units.values()))  # of joints without a column
    return ','.join(units[places[joint]] if joint in places else some for joint in joints)


def _counted(quantity: str, unit: str, why: str) -> Finding:
    return finding('unit_assumed', quantity=quantity, unit=unit, reason=why)


def _unit_by_limits(position: np.ndarray, limits: np.ndarray) -> str | None:
    """
    Return the unit of positions (N, n) that their range proves, by limits (n,) [rad].

    'deg', '' where they may be rad, None where they are neither; limits may be infinite.
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


def _units_by_ratio(
    ratio: float, position: str | None, velocity: str | None
) -> tuple[str, str] | None:
    """
    Return units of positions and velocities that make the latter the former's derivatives.

    `ratio` is that of the velocities to these derivatives, as logged but for units that are known,
    which are not None. None where no usual units do.
    """
    if math.isnan(ratio) or 0.5 < ratio < 2.0:
        return position or '', velocity or ''
    for own in ('', 'deg', 'rev') if position is None else ('',):
        for other in ('', 'deg/s', 'rpm', 'rev/s') if velocity is None else ('',):
            scale = FACTORS['velocity'].get(other, 1.0) / FACTORS['position'].get(own, 1.0)
            if abs(ratio * scale - 1.0) < FACTOR_TOLERANCE:
                return position or own, velocity or other
    return None
