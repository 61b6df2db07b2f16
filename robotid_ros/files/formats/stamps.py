"""Stamps of a table [ns], and its rows in their order."""

from collections.abc import Sequence
import math

import numpy as np

from ...core.finding_codes import finding
from ...core.findings import Finding
from ...core.signals.clock_correction import MAX_STEP_BACK, MIN_PART_SAMPLES
from ...exceptions import ConfigurationError, RecordingError
from .column_names import Selection
from .column_selection import missing
from .read_options import ReadOptions
from .table import ColumnTable, EPISODE_GAP
from .units import canonical, FACTORS, proven_time_unit, STEPS, WITHOUT_JUMPS

Values = dict[str, np.ndarray]
# Rows with efforts and without positions, as a share of those with positions, that are only lost.
MAX_LONELY = 0.1
# Share of steps back in time up to which they are restarts of a clock: newest first has all of
# them, shuffled rows have half.
MAX_RESTARTS = 0.1


def align_rows(stamp: np.ndarray, values: Values) -> tuple[np.ndarray, Values, list[Finding]]:
    """
    Bring rows into the order of time, and what was logged in rows of its own onto the positions.

    Stamps are (N,) [ns], values {position, velocity, effort and perhaps more: (N, n)}, NaN where
    there is none. Returns the rows that hold positions or efforts, and notes.
    """
    notes: list[Finding] = []
    own = np.asarray(np.isfinite(values['position']).any(axis=1))
    lonely = np.asarray(np.isfinite(values['effort']).any(axis=1) & ~own)
    if not own.any():
        return stamp, values, notes  # which is refused where it is used
    apart = bool(lonely.sum() > MAX_LONELY * own.sum())
    # Efforts may come behind all positions, or before them, with times of their own.
    if is_disordered(stamp) or (
        apart and not any(own[run].any() and lonely[run].any() for run in _runs(stamp))
    ):
        stamp, values = _taken(np.argsort(stamp, kind='stable'), stamp, values)
        notes.append(finding('rows_sorted'))
    if apart:
        parts = [_joined(*_taken(run, stamp, values)) for run in _runs(stamp)]
        stamp = np.concatenate([part for part, _ in parts])
        values = {quantity: np.concatenate([v[quantity] for _, v in parts]) for quantity in values}
        notes.append(finding('rows_interpolated'))
    elif not (own | lonely).all():
        held = np.isfinite(values['position']) | np.isfinite(values['effort'])
        stamp, values = _taken(np.flatnonzero(held.any(axis=1)), stamp, values)
        notes.append(finding('rows_without_states', count=own.size - stamp.size))
    return stamp, values, notes


def is_disordered(time: np.ndarray) -> bool:
    """Whether times (N,) go back more often than a clock that starts again."""
    return time.size > 1 and bool((np.diff(time) < 0).mean() > MAX_RESTARTS)


def _runs(stamp: np.ndarray) -> list[np.ndarray]:
    """Return the rows between which stamps grow."""
    return np.split(np.arange(stamp.size), np.flatnonzero(np.diff(stamp) < 0) + 1)


def _taken(rows: np.ndarray, stamp: np.ndarray, values: Values) -> tuple[np.ndarray, Values]:
    return stamp[rows], {quantity: array[rows] for quantity, array in values.items()}


def _joined(stamp: np.ndarray, values: Values) -> tuple[np.ndarray, Values]:
    """Interpolate all else onto the rows that hold positions; stamps grow."""
    own = np.isfinite(values['position']).any(axis=1)
    time = (stamp - stamp[0]).astype(float)
    result = {'position': values['position'][own]}
    for quantity in values.keys() - result.keys():
        found = np.full(result['position'].shape, math.nan)
        for k, column in enumerate(values[quantity].T):
            known = np.isfinite(column)
            if known.any():
                found[:, k] = np.interp(time[own], time[known], column[known], math.nan, math.nan)
        result[quantity] = found
    return stamp[own], result


# Seconds since 1970 that a ROS time can hold.
LATEST = 2.0**31
# Share of the rows that move on under the stamp of the row before, from which a clock is coarse.
MOSTLY = 0.5
# Times between the years 2000 and 2040, with steps of robots, are dates [s].
_YEARS, _DATED_STEPS = (946684800.0, 2208988800.0), (2e-5, 2.0)
# Units that a clock counts in, the rates of logs [Hz] that tell them apart, and the share of its
# limit that the fastest joint reaches: below it is no motion to identify on, above it no robot.
_TICKS, _RATES, _SHARES = ('s', 'ms', 'us', '100ns', 'ns'), (2.0, 2e4), (0.02, 2.0)
# Parts of a log over which speeds are taken, so that noise has no part in them.
_SPANS = 200
# So many are enough to tell how fast it is.
_SPEEDS = 20_000


def make_stamps(
    table: ColumnTable,
    selection: Selection | None,
    clocks: Sequence[np.ndarray],
    options: ReadOptions,
    motion: Values,
) -> tuple[np.ndarray, np.ndarray | slice, list[Finding]]:
    """
    Make stamps from a column, or from a rate.

    Parameters
    ----------
    selection, clocks : column of the times and what is in it, perhaps with one of nanoseconds;
        None for none
    motion : position and velocity (N, n) as logged, and the fastest (n,) that the robot permits in
        units of the position a second, inf where that is unknown

    Returns
    -------
    Stamps (M,) int64 [ns], the rows that have one, and notes

    Raises
    ------
    RecordingError : neither times nor a rate
    ConfigurationError : an impossible rate or unknown unit

    """
    kept = np.asarray(np.isfinite(clocks).all(axis=0)) if selection else np.zeros(0, bool)
    if selection is None or (kept.sum() < 2 and table.rate):
        count, rate = len(motion['position']), options.rate or table.rate
        if rate == 0.0:
            error = missing(table, 'time', {})
            raise RecordingError(f'{error}, or give the rate in Hz with --rate')
        if not 0.0 < rate < 1e6:
            raise ConfigurationError(f'the rate is {rate:g} Hz: give one from 1 to 100000')
        notes = [] if options.rate else [finding('stamps_from_rate', rate=rate)]
        stamp = np.round(np.arange(count) * (1e9 / rate)).astype(np.int64)
        return stamp, slice(None), notes
    if kept.sum() < 2:
        raise RecordingError(
            f"'{table.source}' has no times in {selection.pattern}: name another column with "
            "--columns 'time=NAME', or give the rate in Hz with --rate"
        )
    without = int((~kept).sum())
    notes = [finding('rows_without_time', count=without)] if without else []
    time, *fraction = (clock[kept] for clock in clocks)
    moved = {k: v[kept] if v.ndim == 2 else v for k, v in motion.items()}
    given = 's' if fraction else dict(options.units).get('time', '')
    if given and (given := canonical(given)) not in FACTORS['time']:
        names = ', '.join(FACTORS['time'])
        raise ConfigurationError(f"'{given}' is no unit of time: use one of {names}")
    said, reason = table.units.get(selection.members[0][1], ''), ''
    unit = given or said or selection.meaning.unit
    if not unit:
        unit, reason = _unit(time, selection.pattern, moved)
    scale, whole = round(FACTORS['time'][unit] * 1e9), time.dtype.kind in 'iu'
    largest = float(np.abs(time.astype(float)).max()) * scale * 1e-9
    if largest >= LATEST:
        raise RecordingError(
            f'the times {selection.pattern} reach {largest:.3g} s as {unit}: give their unit, as '
            "in --units 'time=us', or name another column with --columns 'time=NAME'"
        )
    # Exact for integers, none before 1970.
    stamp = time.astype(np.int64) * scale if whole else np.round(time * float(scale))
    stamp = stamp.astype(np.int64) - min(0, int(stamp.min()))
    if fraction:
        return stamp + fraction[0].astype(np.int64), kept, notes
    stamp, spread = _spread(stamp, moved['position'])
    if reason:
        columns = selection.pattern
        spread.insert(0, finding('time_unit_assumed', columns=columns, unit=unit, reason=reason))
    return stamp, kept, [*spread, *notes]


def _unit(time: np.ndarray, name: str, motion: Values) -> tuple[str, str]:
    """Return the unit of times, and why."""
    steps = np.abs(np.diff(np.sort(time) if is_disordered(time) else time))
    step = float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else 0.0
    for unit in _TICKS:
        scale = FACTORS['time'][unit]
        if _YEARS[0] < time.min() * scale and time.max() * scale < _YEARS[1]:
            if _DATED_STEPS[0] < step * scale <= _DATED_STEPS[1]:
                return unit, '' if unit == 's' else 'for so they are dates of today'
    if (steps == 0.0).mean() > MOSTLY:  # coarse ones
        step *= float((steps > 0.0).mean())
    if not step:
        raise RecordingError(
            f'the times {name} are the same in all rows: name another column with '
            "--columns 'time=NAME', or give the rate in Hz with --rate"
        )
    # '' where it is longer than a second
    usual = next(u for u, longest in STEPS if step <= longest)
    proven, velocity = '', motion['velocity']
    if np.isfinite(velocity).any():
        proven = proven_time_unit(time, motion['position'], velocity)
    if proven and _RATES[0] <= 1.0 / (step * FACTORS['time'][proven]) <= _RATES[1]:
        fitting, reason = [proven], 'for so the velocities are the derivatives of the positions'
    elif not usual:
        raise RecordingError(
            f'the times {name} are {step:.3g} apart, too short for seconds: give '
            "their unit, as in --units 'time=min' (also h, d for days, s)"
        )
    else:  # else the velocities may be of motors
        # Of those that make the rate one of robots: where the description has limits of velocity,
        # the speeds are neither too fast for them nor far too slow for a motion; jumps do not
        # count. Ticks are whole.
        reason = 'for so the robot is as fast as its description permits'
        whole = time.dtype.kind in 'iu' or bool((time == np.round(time)).all())
        units = [u for u in _TICKS if u != usual and (whole or u not in ('100ns', 'ns'))]
        rates = {unit: 1.0 / (step * FACTORS['time'][unit]) for unit in units}
        units = [usual, *(u for u in units if _RATES[0] <= rates[u] <= _RATES[1])]
        order = np.argsort(time, kind='stable') if is_disordered(time) else slice(None)
        time, position = time[order], motion['position'][order]
        span, every = max(1, len(time) // _SPANS), max(1, len(time) // _SPEEDS)
        steps = (time[span::every] - time[:-span:every]).astype(float)
        moved = np.abs(position[span::every] - position[:-span:every])[steps > 0.0]
        largest = 0.0
        if len(moved):
            speeds = np.nan_to_num(moved / steps[steps > 0.0, None])
            shares_of_limits = np.quantile(speeds, WITHOUT_JUMPS, axis=0) / motion['fastest']
            largest = float(shares_of_limits.max(initial=0.0))
        shares = {unit: largest / FACTORS['time'][unit] for unit in units}
        fitting = [unit for unit in units if _SHARES[0] < shares[unit] < _SHARES[1]]
        if not fitting and not (shares[usual] > _SHARES[1] and usual != 's'):
            # Nothing is known of the limits, or nothing moves.
            fitting = [u for u in units if u == usual or {u, usual} == {'us', '100ns'}]
    if len(fitting) != 1:
        may = ' or '.join(fitting)
        may = f'which may be {may}' if may else f'and the robot too fast for {usual}'
        raise RecordingError(
            f'the times {name} are {step:.6g} apart, {may}: give their unit, as in '
            f"--units 'time={(fitting or [usual])[-1]}', or the rate in Hz with --rate"
        )
    if fitting == [usual]:
        reason = '' if usual == 's' else 'by their steps'
    return fitting[0], reason


def _spread(stamp: np.ndarray, position: np.ndarray) -> tuple[np.ndarray, list[Finding]]:
    """
    Spread stamps [ns] evenly that are coarser than the rows, as of a clock of whole seconds.

    Rows that repeat stamp and positions are published twice and stay.
    """
    new = np.diff(stamp) != 0
    moved = (np.diff(position, axis=0) != 0.0).any(axis=1)
    if (~new & moved).sum() < MOSTLY * len(new) or (np.diff(stamp) < 0).any() or new.sum() < 2:
        return stamp, []
    first = np.flatnonzero(new) + 1
    line = np.polynomial.Polynomial.fit(first, stamp[first] - stamp[0], 1)
    step = float(np.diff(line(np.arange(2)))[0])
    coarse = float(np.median(np.diff(stamp)[new]))
    rows = np.arange(len(stamp))
    even = line(rows)
    if np.abs(even[first] - (stamp[first] - stamp[0])).max() > coarse:  # rows are missing
        even = np.interp(rows, first, stamp[first] - stamp[0], -1.0, np.inf)
        before, after = rows < first[0], rows > first[-1]
        even[before] = (rows[before] - first[0]) * step + stamp[first[0]] - stamp[0]
        even[after] = (rows[after] - first[-1]) * step + stamp[first[-1]] - stamp[0]
    even = np.round(even).astype(np.int64)
    note = finding('stamps_coarse', step=coarse * 1e-9, rate=1e9 / step)
    return np.asarray(stamp[0] + even - min(0, int(even.min()))), [note]


def continuous(stamp: np.ndarray, source: str) -> tuple[np.ndarray, list[Finding]]:
    """
    Return stamps (N,) [ns] in which trials that are appended to one another follow after a pause.

    No times of reception say how long passed between them. Steps ahead nearby that make up for a
    step back are those of stamps that are far off: they stay.
    """
    step = np.diff(stamp)
    back = step < -MAX_STEP_BACK * 1e9
    if not back.any():
        return stamp, []
    from scipy.ndimage import maximum_filter1d  # it takes its time to import

    restart = back & (2 * maximum_filter1d(step, 2 * MIN_PART_SAMPLES + 1) < -step)
    if not restart.any():
        return stamp, []
    shift = np.where(restart, round(EPISODE_GAP * 1e9) - step, 0)
    note = finding('trials_joined', path=source, gap=EPISODE_GAP)
    return stamp + np.concatenate([[0], np.cumsum(shift)]), [note]
