"""From a file of columns to joint states: its reader, joints by name, SI, stamps in ns."""

from collections.abc import Callable, Mapping, Sequence
import itertools
import math
from pathlib import Path
import stat

import numpy as np

from ...core.findings import Finding, finding, Severity
from ...core.setup.joint_choice import JointTree
from ...core.signals.invalid_samples import refuse_derived_efforts, WITHOUT_JUMPS
from ...exceptions import RecordingError
from ..atomic import file_errors, open_regular
from ..bounded import damage_errors
from .column_names import BRACKETS, is_unknown_unit, match_joint_names, Selection, words_of
from .column_selection import find, match_columns_to_joints, missing
from .joint_table import COMMAND, FIELDS, JointTable
from .read_options import NEEDED, ReadOptions
from .stamps import align_rows, join_restarted_trials, make_stamps, Values
from .table import ColumnTable, is_lerobot, read_hdf5, read_mat, read_numpy, read_parquet
from .text_table import read_text_table
from .units import (
    canonical,
    CURRENTS,
    DEGREE,
    FACTOR_TOLERANCE,
    FACTORS,
    factors,
    usual_ratio,
    WITHOUT_VALUE,
)

# How files of each format begin, from a byte on.
_MAGIC: tuple[tuple[int, bytes, Callable[[Path], ColumnTable] | None], ...] = (
    (0, b'PK\x03\x04', read_numpy),
    (0, b'\x93NUMPY', read_numpy),
    (0, b'\x89HDF\r\n\x1a\n', read_hdf5),
    (512, b'\x89HDF', read_hdf5),  # behind a header of MATLAB
    (0, b'MATLAB 5.0', read_mat),
    (0, b'PAR1', read_parquet),
    (0, b'\xff\xfe', read_text_table),  # UTF-16
    (0, b'\xfe\xff', read_text_table),
    (0, b'\x1f\x8b', read_text_table),  # gzip
    # Bags, of which short ones hold no byte that tells them from a text.
    (0, b'\x89MCAP', None),
    (0, b'SQLite format 3', None),
    (0, b'#ROSBAG', None),
    (0, b'\x28\xb5\x2f\xfd', None),  # zstd
)
# First bytes by which a file of another beginning is a text, and signs that no text has.
_SAMPLE, _BINARY = 4096, bytes({*range(9), *range(14, 27), *range(28, 32)})
# A position beyond so many times its limit, and inside it in degrees, is one in degrees.
BEYOND_LIMIT, INSIDE_LIMIT = 2.0, 1.1
# A joint that turns by so many degrees in a log of larger turns may be recorded in rad [°].
SMALL_TURN = 0.3, 2.0 * math.pi
# Rows of a damaged beginning or end: this share at most, so many times as far from the middle as
# all others reach.
STRAYS, FAR = 0.01, 10.0
# Between these, the largest position of a log may be of a range that is scaled to ±100.
NORMALISED = 90.0, 100.0
# The table that was read last, by what it was read from.
_last: dict[tuple[Path, str, int, int, ReadOptions], JointTable | None] = {}


def open_table(path: Path, options: ReadOptions) -> JointTable | None:
    """Read a table, None for other files; the one read last is kept, for several passes."""
    readers: list[Callable[[Path], ColumnTable] | None]
    with file_errors(path):
        state = path.stat()
        key = (path.absolute(), str(path), state.st_mtime_ns, state.st_size, options)
        if key in _last:
            return _last[key]
        if stat.S_ISDIR(state.st_mode):
            readers = [read_parquet] if is_lerobot(path) else [None]
        else:
            with open_regular(path) as stream:
                start = stream.read(_SAMPLE)
            readers = [reader for at, magic, reader in _MAGIC if start[at:].startswith(magic)]
            if not readers and start and start.translate(None, _BINARY) == start:
                readers = [read_text_table]
    table = None
    if readers and readers[0] is not None:
        with damage_errors(path):
            table = read_joint_table(readers[0](path), options)
    _last.clear()
    _last[key] = table
    return table


def read_joint_table(table: ColumnTable, options: ReadOptions) -> JointTable:
    """Make joint states of a table; RobotIdError: what is missing or does not fit the options."""
    named, needed = dict(options.columns), NEEDED[options.commands]
    if COMMAND in named and not options.commands:
        raise RecordingError(
            "commands are read by 'robotid identify --method commands' alone: leave command= out "
            'of --columns'
        )
    robot = JointTree(options.urdf or '<robot/>')
    wanted = ('position', 'velocity', needed[1])
    known = (*robot.independent, *robot.mimics) or options.joints
    found = find(table, known, named, ('time', *wanted))
    for quantity in needed:
        if quantity not in found:
            raise missing(table, quantity, found)

    # Columns of each joint that has positions, (N, n), NaN where it has no other.
    places, notes = dict[str, dict[str, str]](), list[Finding]()
    for quantity in filter(found.__contains__, wanted):
        places[quantity], told = match_columns_to_joints(
            table, quantity, found[quantity], robot, options.joints, places.get('position')
        )
        notes += told
    joints = tuple(places['position'])
    times = [name for _, name in found['time'].members] if 'time' in found else []
    columns = [*times, *(column for each in places.values() for column in each.values())]
    content = table.read(list(dict.fromkeys(columns)))
    # Without rows of a damaged beginning or end: few, and far from all others.
    if times and not options.rate:
        time = content[times[0]].astype(float)
        finite = time[np.isfinite(time)]
        low, middle, high = np.quantile(
            finite if len(finite) else [0.0], (STRAYS, 0.5, 1.0 - STRAYS)
        )
        far = np.abs(time - middle) > FAR * (high - low)
        if far.any() and far.mean() <= STRAYS:
            content = {name: np.where(far, math.nan, column) for name, column in content.items()}
    missed = np.full(len(next(iter(content.values()))), math.nan)
    values = Values()
    for quantity in (*FIELDS, *wanted):
        own = places.get(quantity, {})
        # Times 1.0: counts that are integers get a unit, too. Infinity is no measured value.
        table_of = 1.0 * np.column_stack([content.get(own.get(j, ''), missed) for j in joints])
        values[quantity] = np.where(np.isfinite(table_of), table_of, math.nan)
    clocks = [content[name] for name in times]
    stamp, kept, told = make_stamps(table, found.get('time'), clocks, options, values)
    notes += told
    values = {quantity: array[kept] for quantity, array in values.items()}
    if (np.diff(stamp) < 0).any() or not np.isfinite(values['position']).any(axis=1).all():
        stamp, values, told = align_rows(stamp, values)
        notes += told
    # To SI: units are those that the user gives, else those in the names of the columns, else
    # those that limits of the description or velocities prove.
    given = dict(options.units)
    described = [robot.joints.get(joint) for joint in joints]
    turning = [joint if joint and joint.type == 'revolute' else None for joint in described]
    prismatic = np.array([j is not None and j.type == 'prismatic' for j in described])
    units = dict[str, str]()
    for quantity, own in places.items():
        selection = found[quantity]
        each = selection.meaning.unit.split(',')
        if len(each) > 1:  # one for each column; any for joints without one
            of_column = dict(zip((name for _, name in selection.members), each, strict=True))
            each = [of_column.get(own.get(joint, ''), each[0]) for joint in joints]
        units[quantity] = given.get(quantity) or ','.join(each)
        bracketed = None if units[quantity] else BRACKETS.search(selection.pattern)
        if bracketed and is_unknown_unit(bracketed[1]):
            reason = f'its unit, {bracketed[1]}, is unknown'
            assumed = finding('unit_assumed', quantity=quantity, unit='SI', reason=reason)
            notes.append(assumed.at(Severity.WARNING))
    if options.calibration:
        centres = [0.5 * (joint.lower + joint.upper) if joint else 0.0 for joint in turning]
        _calibrate(values, joints, centres, options, table.source)
        units |= {quantity: 'rad' for quantity in ('position', COMMAND) if quantity in units}
    said = units['position']
    limits = np.array([max(-j.lower, j.upper) if j else math.inf for j in turning])
    limited = np.isfinite(limits) & (limits > 0.0)
    shares = np.abs(values['position'][:, limited]) / limits[limited]
    beyond = np.nanmax(shares, axis=0, initial=0.0) > BEYOND_LIMIT
    if said or beyond.any():
        units['position'] = _unit_of_positions(said, found['position'], values['position'], shares)
        if units['position'] != said:
            notes.append(_degrees_assumed(values['position'], joints, prismatic, beyond))
    if COMMAND in values and not said:
        largest = max(float(np.nanmax(np.abs(values[q]))) for q in ('position', COMMAND))
        if NORMALISED[0] < largest <= NORMALISED[1]:
            unit = units['position'] or 'rad'
            notes.append(finding('units_may_be_normalised', largest=largest, unit=unit))

    # What has no size is left out, or counts as SI; velocities prove units that nothing says.
    sizeless = {
        q: next((u for u in units.get(q, '').split(',') if u and canonical(u) in none), '')
        for q, none in WITHOUT_VALUE.items()
    }
    if sizeless['velocity']:
        values['velocity'][:], units['velocity'] = math.nan, ''
        notes.append(finding('velocities_left_out', unit=sizeless['velocity']))
    elif np.isfinite(values['velocity']).any() and not (
        units['position'] and units['velocity'] and 'velocity' in given
    ):
        notes += _prove_units(values, stamp, units, prismatic, found)
    effort, other = units.get('effort', ''), ''  # than torques
    if '*' not in effort:
        if other := sizeless['effort']:
            notes.append(finding('effort_unit_of_log', what=other, each=other, unit=other))
            units['effort'] = ''
        elif ('effort' in places and found['effort'].meaning.current) or any(
            canonical(unit) in CURRENTS for unit in filter(None, effort.split(','))
        ):
            other = 'A'
            notes.append(finding('effort_unit_of_log', what='currents', each='ampere', unit='A'))
    for quantity, array in values.items():
        commanded = quantity == COMMAND
        if unit := units.get(quantity) or (units['position'] if commanded else ''):
            array *= factors('position' if commanded else quantity, unit, prismatic)
    before, taken = list(table.notes), {q: each for q, each in found.items() if q not in named}
    if taken:
        said_by = [(s.pattern, s.meaning.unit) for s in taken.values()]
        before.append(
            finding(
                'columns_found',
                table=table.source,
                quantities=tuple(taken),
                columns=[pattern + (f' [{unit}]' if unit else '') for pattern, unit in said_by],
                # What counts as SI for want of a unit.
                in_si=' and '.join(
                    q for q in ('position', 'effort') if q in taken and not (units[q] or other)
                ),
            )
        )
    if not options.commands:
        step = float(np.median(np.diff(stamp))) if len(stamp) > 1 else 0.0
        rate = 1e9 / step if step > 0.0 else 0.0
        where = f"'{table.source}', {found['effort'].pattern}"
        q, tau, dq = (values[quantity] for quantity in ('position', 'effort', 'velocity'))
        refuse_derived_efforts(joints, q, tau, dq, rate, where)
    if (np.diff(stamp) < 0).any():
        stamp, told = join_restarted_trials(stamp, table.source)
        notes += told
    return JointTable(
        joints, stamp, np.maximum.accumulate(stamp), *(values[quantity] for quantity in FIELDS),
        command=values.get(COMMAND), notes=tuple(dict.fromkeys([*before, *notes])),
    )  # fmt: skip


def _calibrate(
    values: Values,
    joints: Sequence[str],
    centres: Sequence[float],
    options: ReadOptions,
    source: str,
) -> None:
    """Bring normalised positions and commands (N, n) to rad, in place; `centres` of grippers."""
    names = [name for name, *_ in options.calibration]
    motors = {joint: name for name, joint in match_joint_names(names, joints).items()}
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
    said: str, selection: Selection, position: np.ndarray, shares: np.ndarray
) -> str:
    """Return the unit of positions (N, n), as `said` or by `shares` of limits, '' for SI."""
    name = selection.pattern
    for unit in said.split(','):
        if canonical(unit) in WITHOUT_VALUE['position']:
            raise RecordingError(
                f'the positions {name} are in {unit}, whose size the log does not say: give it in '
                f"rad or m, as in --units 'position={unit}*1.2e-5', or one for each joint between "
                'commas'
            )
    if said:
        return said
    in_degrees = (np.nanmax(shares, axis=0, initial=0.0) * DEGREE < INSIDE_LIMIT).all()
    if in_degrees and 'motor' not in words_of(name):
        return 'deg'
    # Single wrong values are no unit.
    usual = np.quantile(np.nan_to_num(shares), WITHOUT_JUMPS, axis=0)
    if in_degrees or (usual > BEYOND_LIMIT).any():
        raise RecordingError(
            f'the positions {name} reach {np.nanmax(np.abs(position)):.4g}, which the limits '
            'of the robot description do not permit as rad: give their unit, as in --units '
            "'position=deg', of counts or at motors with its size, 'position=counts*1.2e-5' "
            "or 'position=rad*0.01', or 'position=rad' where the limits are wrong"
        )
    return ''


def _degrees_assumed(
    position: np.ndarray, joints: Sequence[str], prismatic: np.ndarray, beyond: np.ndarray
) -> Finding:
    """
    Say that positions (N, n) are taken as degrees, as those `beyond` limits prove.

    Where other joints turn by few degrees, theirs may be radians; if all others do, they are.
    """
    values = {'reason': 'they exceed the limits of the robot description in rad'}
    low, high = (s * np.nanmax(s * position, axis=0, initial=-math.inf) for s in (-1.0, 1.0))
    small = (high - low > SMALL_TURN[0]) & (high - low < SMALL_TURN[1]) & ~prismatic
    if small.any():
        values['slow'] = ', '.join(itertools.compress(joints, small))
        each = np.where(prismatic, 'm', np.where(small, 'rad', 'deg'))
        values['units'] = 'position=' + ','.join(each)
    every = 1 < small.sum() == len(small) - beyond.sum()
    severity = Severity.ERROR if every else Severity.WARNING if small.any() else Severity.INFO
    return finding('unit_assumed', quantity='position', unit='deg', **values).at(severity)


def _prove_units(
    values: Values,
    stamp: np.ndarray,
    units: dict[str, str],
    prismatic: np.ndarray,
    found: Mapping[str, Selection],
) -> list[Finding]:
    """Put units there that make velocities (N, n) the derivatives of positions; return notes."""
    known = {quantity: units[quantity] for quantity in ('position', 'velocity')}
    scaled = (values[q] * factors(q, unit, prismatic) for q, unit in known.items())
    ratio = usual_ratio((stamp - stamp[0]) * 1e-9, *scaled)
    if math.isnan(ratio) or 0.5 < ratio < 2.0:
        return []
    usual = {'position': ('', 'deg', 'rev'), 'velocity': ('', 'deg/s', 'rpm', 'rev/s')}
    options = (('',) if known[quantity] else each for quantity, each in usual.items())
    for new in itertools.product(*options):
        own, other = (FACTORS[q].get(unit, 1.0) for q, unit in zip(known, new, strict=True))
        if abs(ratio * (other / own) - 1.0) < FACTOR_TOLERANCE:
            units |= {quantity: unit for quantity, unit in zip(known, new, strict=True) if unit}
            why = 'so much the derivative of the positions is'
            return [
                finding('unit_assumed', quantity=quantity, unit=units[quantity], reason=why)
                for quantity, unit in known.items()
                if units[quantity] != unit
            ]
    raise RecordingError(
        f'the velocities {found["velocity"].pattern} are {ratio:.3g} times the derivatives of the '
        f'positions {found["position"].pattern}, as no units are: give the right ones, of the '
        "times too, as in --units 'time=ms position=rad velocity=rad/s'"
    )
