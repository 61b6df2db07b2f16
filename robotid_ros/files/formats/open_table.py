"""From a file of columns to joint states: its reader, joints by name, SI, stamps in ns."""

from collections.abc import Callable, Mapping, Sequence
import contextlib
import dataclasses
import functools
import math
from pathlib import Path
import re

import numpy as np

from ...core.finding_codes import finding
from ...core.findings import Finding
from ...core.signals.invalid_samples import refuse_derived_efforts
from ...exceptions import RecordingError
from ..atomic import file_errors, open_regular
from ..bounded import damage_errors
from .column_names import group, match_names, words_of
from .column_selection import columns_of_joints, find, missing, select
from .joint_table import COMMAND, FIELDS, JointTable
from .read_options import NEEDED, ReadOptions
from .stamps import align_rows, continuous, make_stamps, Values
from .table import (
    Columns,
    ColumnTable,
    is_lerobot,
    read_hdf5,
    read_mat,
    read_npy,
    read_npz,
    read_parquet,
)
from .text_table import read_text_table
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

_MAGIC: tuple[tuple[bytes, Callable[[Path], ColumnTable] | None], ...] = (
    (b'PK\x03\x04', read_npz),
    (b'\x93NUMPY', read_npy),
    (b'\x89HDF\r\n\x1a\n', read_hdf5),
    (b'MATLAB 5.0', read_mat),
    (b'PAR1', read_parquet),
    (b'\xff\xfe', read_text_table),  # UTF-16
    (b'\xfe\xff', read_text_table),
    (b'\x1f\x8b', read_text_table),  # gzip
    # Bags, of which short ones hold no byte that tells them from a text.
    *(
        (magic, None)
        for magic in (b'\x89MCAP', b'SQLite format 3', b'#ROSBAG', b'\x28\xb5\x2f\xfd')
    ),
)
# In a workbook of Excel, which is an archive as .npz is.
_WORKBOOK = b'[Content_Types].xml'
# First bytes by which a file without a known ending is a text, and signs that no text has.
_SAMPLE, _BINARY = 4096, bytes({*range(9), *range(14, 27), *range(28, 32)})
# Where the header of MATLAB's own files ends and that of HDF5 begins, and where an archive has the
# name of its first file.
_USER_BLOCK, _ENTRY = 512, 30
# A position beyond so many times its limit, and inside it in degrees, is one in degrees.
BEYOND_LIMIT, INSIDE_LIMIT = 2.0, 1.1
# Rows of a damaged beginning or end: this share at most, so many times as far from the middle as
# all others reach.
STRAYS, FAR = 0.01, 10.0
# Between these, the largest position of a log may be of a range that is scaled to ±100.
NORMALISED = 90.0, 100.0
# Words of columns that say whose value a row holds.
_KEYS = frozenset('joint joints axis achse gelenk axe motor servo actuator name names id'.split())
_TIMES = frozenset('time timestamp zeit t'.split())


def open_table(path: Path, options: ReadOptions) -> JointTable | None:
    """
    Read a table, None for other files; the one read last is kept, for several passes.

    Raises RobotIdError where it is damaged, lacks something, or needs a package.
    """
    with file_errors(path):
        state = path.stat()
    return _open(path.absolute(), str(path), state.st_mtime_ns, state.st_size, options)


@functools.lru_cache(maxsize=1)
def _open(
    path: Path, shown: str, _modified: int, _size: int, options: ReadOptions
) -> JointTable | None:
    """Choose what reads a file by its first bytes and its name, and read it."""
    start = b''
    if not path.is_dir():
        with open_regular(path) as stream, file_errors(path):
            start = stream.read(_SAMPLE)
    if start[_ENTRY:].startswith(_WORKBOOK):
        raise RecordingError(f"'{shown}' is a workbook of Excel: save its sheet as CSV")
    readers = [reader for magic, reader in _MAGIC if start.startswith(magic)]
    reader = readers[0] if readers else None
    if start[_USER_BLOCK:].startswith(b'\x89HDF'):
        reader = read_hdf5
    elif path.is_dir() and is_lerobot(path):
        reader = read_parquet
    elif not readers and path.suffix.lower() == '.mat':
        reader = read_mat
    elif not readers and start and start.translate(None, _BINARY) == start:
        reader = read_text_table
    if reader is None:
        return None
    with damage_errors(shown):
        return read_joint_table(reader(Path(shown)), options)


def read_joint_table(table: ColumnTable, options: ReadOptions) -> JointTable:
    """
    Make joint states of a table; a RobotIdError says what is missing or does not fit.

    `options` are what the user and the robot description say.
    """
    if not options.columns and (clock := check_rows(table)):
        options = dataclasses.replace(options, columns=(('time', clock),))
    robot, named, needed = options.robot, dict(options.columns), NEEDED[options.commands]
    if COMMAND in named and not options.commands:
        raise RecordingError(
            "commands are read by 'robotid identify --method commands' alone: leave command= out "
            'of --columns'
        )
    found = find(table, options.known_joints)
    found |= {quantity: select(table, quantity, pattern) for quantity, pattern in named.items()}
    if options.rate:
        found.pop('time', None)
    wanted = ('position', 'velocity', needed[1])
    found = {quantity: each for quantity, each in found.items() if quantity in ('time', *wanted)}
    automatic = [quantity for quantity in found if quantity not in named]
    for quantity in needed:
        if quantity not in found:
            raise missing(table, quantity, found)

    positions, notes = columns_of_joints(table, 'position', found['position'], options)
    places, joints = {'position': positions}, tuple(positions)
    for quantity in wanted[1:]:
        if quantity in found:
            places[quantity], more = columns_of_joints(
                table, quantity, found[quantity], options, positions
            )
            notes += more
    times = [name for _, name in found['time'].members] if 'time' in found else []
    columns = [*times, *(column for own in places.values() for column in own.values())]
    content = table.read(list(dict.fromkeys(columns)))
    if times:  # without rows of a damaged beginning or end: few, and far from all others
        time = content[times[0]].astype(float)
        known = time[np.isfinite(time)]
        low, middle, high = np.quantile(
            known if len(known) else [0.0], (STRAYS, 0.5, 1.0 - STRAYS)
        )
        far = np.abs(time - middle) > FAR * (high - low)
        if far.any() and far.mean() <= STRAYS:
            content = {name: np.where(far, math.nan, column) for name, column in content.items()}
    read = dict.fromkeys((*FIELDS, *wanted))
    values = {q: _matrix(content, places.get(q, {}), joints) for q in read}
    alternatives = found['effort'].others if 'effort' in automatic else ()
    for other in () if np.nan_to_num(values['effort']).any() else alternatives:
        with contextlib.suppress(RecordingError):  # of other joints
            own, more = columns_of_joints(table, 'effort', other, options, positions)
            efforts = _matrix(table.read(list(own.values())), own, joints)
            if np.nan_to_num(efforts).any():
                zero, found['effort'] = found['effort'].pattern, other
                places['effort'], values['effort'] = own, efforts
                notes += [*more, finding('efforts_zero', column=zero, taken=other.pattern)]
                break
    calibrated = dict.fromkeys(('position', COMMAND), 'rad') if options.calibration else {}
    described = [robot.joints.get(joint) for joint in joints]
    if calibrated:
        centres = [
            0.5 * (j.lower + j.upper) if j and j.type == 'revolute' else 0.0 for j in described
        ]
        _calibrate(values, joints, centres, options, table.source)
    # Units are those that the user gives, else those in the names of the columns.
    given, units = dict(options.units), dict[str, str]()
    for quantity, own in places.items():
        each = found[quantity].meaning.unit.split(',')
        if len(each) > 1:  # one for each column; any for joints without one
            names = (name for _, name in found[quantity].members)
            of_column = dict(zip(names, each, strict=True))
            each = [of_column.get(own.get(joint, ''), each[0]) for joint in joints]
        units[quantity] = calibrated.get(quantity) or given.get(quantity) or ','.join(each)
    prismatic = np.array([j is not None and j.type == 'prismatic' for j in described])
    limits = [
        max(-j.lower, j.upper) if j and j.type == 'revolute' else math.inf for j in described
    ]
    said, pattern = units['position'], found['position'].pattern
    units['position'], deduced = _unit_of_positions(pattern, said, values['position'], limits)
    if COMMAND in values and not said:
        largest = max(float(np.nanmax(np.abs(values[q]))) for q in ('position', COMMAND))
        if NORMALISED[0] < largest <= NORMALISED[1]:
            unit = units['position'] or 'rad'
            deduced.append(finding('units_may_be_normalised', largest=largest, unit=unit))
    fastest = np.array([(j.velocity if j else 0.0) or math.inf for j in described])
    motion = values | {'fastest': fastest / factors('position', units['position'], prismatic)}
    clocks = [content[name] for name in times]
    stamp, kept, told = make_stamps(table, found.get('time'), clocks, options, motion)
    stamp, values, aligned = align_rows(stamp, {q: v[kept] for q, v in values.items()})
    patterns = {quantity: selection.pattern for quantity, selection in found.items()}
    current = 'effort' in found and found['effort'].meaning.current
    counted, in_si = _to_si(values, stamp, units, given, prismatic, patterns, current)
    before = list(table.notes)
    if automatic:
        taken = {q: found[q] for q in automatic if q in found}
        alike = [o.pattern for q in ('position', 'effort') if q in taken for o in taken[q].others]
        before.append(
            finding(
                'columns_found',
                table=table.source,
                quantities=tuple(taken),
                columns=[
                    s.pattern + (f' [{s.meaning.unit}]' if s.meaning.unit else '')
                    for s in taken.values()
                ],
                alike=' and '.join(alike[:4]),
                in_si=' and '.join(quantity for quantity in in_si if quantity in taken),
            )
        )
    if not options.commands:
        step = float(np.median(np.diff(stamp))) if len(stamp) > 1 else 0.0
        rate = 1e9 / step if step > 0.0 else 0.0
        where = f"'{table.source}', {patterns['effort']}"
        effort, velocity = values['effort'], values['velocity']
        refuse_derived_efforts(joints, values['position'], effort, velocity, rate, where)
    stamp, joined = continuous(stamp, table.source)
    return JointTable(
        joints, stamp, np.maximum.accumulate(stamp), *(values[quantity] for quantity in FIELDS),
        command=values.get(COMMAND),
        notes=(*before, *dict.fromkeys(notes), *told, *aligned, *deduced, *counted, *joined),
    )  # fmt: skip


def _matrix(content: Columns, places: Mapping[str, str], joints: Sequence[str]) -> np.ndarray:
    """Return the columns of the joints, (N, n), NaN of those without one."""
    missed = np.full(len(next(iter(content.values()))), math.nan)
    return np.column_stack([content[places[j]] if j in places else missed for j in joints])


def _calibrate(
    values: Values,
    joints: Sequence[str],
    centres: Sequence[float],
    options: ReadOptions,
    source: str,
) -> None:
    """
    Bring normalised positions and commands (N, n) to rad, in place.

    The middle of a motor's range is the angle 0, that of a gripper, which counts from where it is
    closed, the middle of what the description allows, `centres`.
    """
    names = [name for name, *_ in options.calibration]
    motors = {joint: name for name, joint in match_names(names, joints).items()}
    if lacking := [joint for joint in joints if joint not in motors]:
        raise RecordingError(
            f"the calibration file has no motor {', '.join(lacking)} of '{source}' (its motors: "
            f'{", ".join(names)}): give that of this robot'
        )
    known = {name: (factor, middle) for name, factor, middle in options.calibration}
    factor, middle = np.array([known[motors[joint]] for joint in joints]).T
    zero = np.where(middle == 0.0, 0.0, centres)
    for quantity in ('position', COMMAND):
        if quantity in values:
            values[quantity] = (values[quantity] - middle) * factor + zero


def _unit_of_positions(
    name: str, said: str, position: np.ndarray, limits: Sequence[float]
) -> tuple[str, list[Finding]]:
    """
    Return the unit of positions (N, n), '' where nothing proves one, and notes.

    That is what is `said`, else one by which they are within `limits` (n,) [rad], infinite where
    there is none.
    """
    for unit in said.split(','):
        if canonical(unit) in WITHOUT_VALUE['position']:
            raise RecordingError(
                f'the positions {name} are in {unit}, whose size the log does not say: give it in '
                f"rad or m, as in --units 'position={unit}*1.2e-5', or one for each joint between "
                'commas'
            )
    if said:
        return said, []
    known = np.isfinite(limits) & (np.array(limits) > 0.0)
    shares = np.abs(position[:, known]) / np.array(limits)[known]
    largest = np.nanmax(shares, axis=0, initial=0.0)
    if not (largest > BEYOND_LIMIT).any():
        return '', []
    if (largest * DEGREE < INSIDE_LIMIT).all() and 'motor' not in words_of(name):
        why = 'they exceed the limits of the robot description in rad'
        return 'deg', [finding('unit_assumed', quantity='position', unit='deg', reason=why)]
    # Single wrong values are no unit.
    usual = np.quantile(np.nan_to_num(shares), WITHOUT_JUMPS, axis=0)
    if (largest * DEGREE < INSIDE_LIMIT).all() or (usual > BEYOND_LIMIT).any():
        raise RecordingError(
            f'the positions {name} reach {np.nanmax(np.abs(position)):.4g}, which the limits '
            'of the robot description do not permit as rad: give their unit, as in --units '
            "'position=deg', of counts or at motors with its size, 'position=counts*1.2e-5' "
            "or 'position=rad*0.01', or 'position=rad' where the limits are wrong"
        )
    return '', []


def _to_si(
    values: Values,
    stamp: np.ndarray,
    units: Mapping[str, str],
    given: Mapping[str, str],
    prismatic: np.ndarray,
    names: Mapping[str, str],
    current: bool,
) -> tuple[list[Finding], list[str]]:
    """
    Bring values (N, n) by quantity at stamps (N,) [ns] to SI, in place.

    `units` are those that the user, names or limits say, `given` those of the user; others may
    follow from the ratio of velocities to positions. Returns notes on what the user does not say,
    and the quantities that count as SI for want of a unit.
    """
    notes, note = list[Finding](), None
    position, velocity, effort = (units.get(quantity, '') for quantity in FIELDS)
    sizeless = {
        q: next((u for u in own.split(',') if canonical(u) in WITHOUT_VALUE[q]), '')
        for q, own in (('velocity', velocity), ('effort', effort))
    }
    if sizeless['velocity']:
        values['velocity'][:] = math.nan
        notes.append(finding('velocities_left_out', unit=sizeless['velocity']))
        velocity = ''
    elif np.isfinite(values['velocity']).any() and not (
        position and velocity and 'velocity' in given
    ):
        known = {'position': position, 'velocity': velocity}
        scaled = (values[q] * factors(q, u, prismatic) for q, u in known.items())
        ratio = usual_ratio((stamp - stamp[0]) * 1e-9, *scaled)
        proven = _units_by_ratio(ratio, position, velocity)
        if proven is None:
            raise RecordingError(
                f'the velocities {names["velocity"]} are {ratio:.3g} times the derivatives of the '
                f'positions {names["position"]}, as no units are: give the right ones, of the '
                "times too, as in --units 'time=ms position=rad velocity=rad/s'"
            )
        position, velocity = proven
        why = 'so much the derivative of the positions is'
        notes += [
            finding('unit_assumed', quantity=quantity, unit=new, reason=why)
            for (quantity, old), new in zip(known.items(), proven, strict=True)
            if new != old
        ]
    if COMMAND in values:
        values[COMMAND] *= factors('position', units[COMMAND] or position, prismatic)
    if '*' not in effort:
        if size := sizeless['effort']:
            note = finding('effort_unit_of_log', what=size, each=size, unit=size)
            effort = ''
        elif current or any(canonical(u) in CURRENTS for u in effort.split(',')):
            note = finding('effort_unit_of_log', what='currents', each='ampere', unit='A')
    used = dict(zip(FIELDS, (position, velocity, effort), strict=True))
    for quantity, own in used.items():
        values[quantity] *= factors(quantity, own, prismatic)
    notes += [note] if note else []
    return notes, [q for q in ('position', 'effort') if not (used[q] or note)]


def _units_by_ratio(ratio: float, position: str, velocity: str) -> tuple[str, str] | None:
    """
    Return units of positions and velocities that make the latter the former's derivatives.

    `ratio` is that of the velocities to these derivatives, as logged but for units that are known,
    which are not ''. None where no usual units do.
    """
    if math.isnan(ratio) or 0.5 < ratio < 2.0:
        return position, velocity
    for own in ('',) if position else ('', 'deg', 'rev'):
        for other in ('',) if velocity else ('', 'deg/s', 'rpm', 'rev/s'):
            scale = FACTORS['velocity'].get(other, 1.0) / FACTORS['position'].get(own, 1.0)
            if abs(ratio * scale - 1.0) < FACTOR_TOLERANCE:
                return position or own, velocity or other
    return None


def check_rows(table: ColumnTable) -> str:
    """
    Return the column of times that each signal repeats, or ''; a row must be a sample of all.

    Raises RecordingError where signals have times of their own that differ, or a row is of one
    joint.
    """
    names = list(table.names)
    bases = [re.sub(r' \(\d+\)$', '', name) for name in names]
    said = [bool(set(words_of(name.rpartition('.')[2])) & _TIMES) for name in names]
    places = [k for k, time in enumerate(said) if time and not [*said, True][k + 1]]
    times = list(table.read([names[k] for k in places]).values()) if len(places) > 1 else []
    pairs = len(names) > 2 and bases[::2] == bases[1::2]
    differ = not all(np.array_equal(times[0], time, equal_nan=True) for time in times[1:])
    known = [time[np.isfinite(time)] for time in times]
    grow = all(len(t) > 1 and (np.diff(t) >= 0.0).all() and t[-1] > t[0] for t in known)
    if pairs or (differ and grow):
        raise RecordingError(
            f"'{table.source}' has signals with times of their own: export one column of times, "
            "or name columns of one clock with --columns 'time=… position=… effort=…'"
        )
    keys = [n for n in table.texts if set(words_of(n)) & _KEYS and not any(map(str.isdigit, n))]
    keys += [n for n in names if set(words_of(n)) <= _KEYS]
    groups = group(names, (), table.places) if keys else []
    if sum(len(each.members) for each in groups if each.meaning.quantity == 'position') == 1:
        raise RecordingError(
            f"'{table.source}' has a row for each {keys[0]}: export a column for each joint "
            '(pandas: pivot), or name the columns of one joint with --columns'
        )
    return names[places[0]] if len(times) > 1 and not differ else ''
