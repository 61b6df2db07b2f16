"""Stamps of a table [ns], and its rows in their order."""

from collections.abc import Sequence
from dataclasses import replace
import math

import numpy as np

from ...core.findings import Finding, finding, Severity
from ...core.signals.stamp_correction import MAX_STEP_BACK, MIN_PART_SAMPLES, spread_equal_stamps
from ...core.signals.velocities import WITHOUT_JUMPS
from ...exceptions import ConfigurationError, RecordingError
from .column_names import Selection
from .column_selection import missing
from .read_options import ReadOptions
from .table import ColumnTable
from .units import canonical, FACTORS, proven_time_unit, STEPS

Values = dict[str, np.ndarray]
# Between two trials, or episodes of a data set [s]: longer than any gap that is interpolated.
TRIAL_GAP = 2.0
DAY = 86_400_000_000_000  # after which times of day start again [ns]
# Rows with efforts and without positions, as a share of those with positions, that are only lost.
MAX_LONELY = 0.1
# Share of steps back in time up to which they are restarts of a clock: newest first has all of
# them, shuffled rows have half.
MAX_RESTARTS = 0.1
# From this share on, all rows are there, the newest first.
NEWEST_FIRST = 0.9


def _path(position: np.ndarray) -> float:
    """Return how far positions (N, n) move from row to row."""
    return float(np.nansum(np.abs(np.diff(position, axis=0))))


def align_rows(stamp: np.ndarray, values: Values) -> tuple[np.ndarray, Values, list[Finding]]:
    """Bring rows into the order of time, and values of rows of their own onto positions."""
    notes: list[Finding] = []
    own = np.asarray(np.isfinite(values['position']).any(axis=1))
    lonely = np.asarray(np.isfinite(values['effort']).any(axis=1) & ~own)
    if not own.any():
        return stamp, values, notes  # which is refused where it is used
    apart = bool(lonely.sum() > MAX_LONELY * own.sum())
    rows, back = np.arange(stamp.size), np.flatnonzero(np.diff(stamp) < 0) + 1
    runs = np.split(rows, back)  # between which stamps grow
    # Efforts may come behind all positions, or before them, with times of their own.
    if back.size > MAX_RESTARTS * (stamp.size - 1) or (
        apart and not any(own[run].any() and lonely[run].any() for run in runs)
    ):
        order = np.argsort(stamp, kind='stable')
        back_and_forth = not apart and back.size < NEWEST_FIRST * (stamp.size - 1)
        if back_and_forth and _path(values['position'][order]) > _path(values['position']):
            raise RecordingError(
                'the times go back and forth, and in their order positions jump: name another '
                "column with --columns 'time=NAME', or give the rate in Hz with --rate"
            )
        stamp, values = stamp[order], {quantity: x[order] for quantity, x in values.items()}
        own, lonely, runs = own[order], lonely[order], [rows]
        severity = Severity.WARNING if back_and_forth else Severity.INFO
        notes.append(finding('rows_sorted').at(severity))
    if not apart:
        held = own | lonely
        if not held.all():
            notes.append(finding('rows_without_states', count=int((~held).sum())))
        return stamp[held], {quantity: x[held] for quantity, x in values.items()}, notes
    # Of each run all else is interpolated onto the rows that hold positions.
    found = {quantity: np.full(x.shape, math.nan) for quantity, x in values.items()}
    found['position'] = values['position']
    time = (stamp - stamp[0]).astype(float)
    for run in runs:
        wanted = run[own[run]]
        for quantity in values.keys() - {'position'}:
            for k, column in enumerate(values[quantity].T):
                known = run[np.isfinite(column[run])]
                if known.size:
                    each = time[wanted], time[known], column[known]
                    found[quantity][wanted, k] = np.interp(*each, math.nan, math.nan)
    notes.append(finding('rows_interpolated'))
    return stamp[own], {quantity: x[own] for quantity, x in found.items()}, notes


# Of a rate that is given, to that of the times in the log, which count as one below: rounded.
MAX_RATE_ERROR = 0.02
# Seconds since 1970 that a ROS time can hold.
LATEST = 2.0**31
# Share of the rows that move on under the stamp of the row before, from which a clock is coarse.
MOSTLY = 0.5
# Times between the years 2000 and 2040, with steps of robots, are dates [s].
_YEARS, _DATED_STEPS = (946684800.0, 2208988800.0), (2e-5, 2.0)
# Units that a clock counts in, the rates of logs [Hz] that tell them apart, and the share of its
# limit that the fastest joint reaches: below it is no motion to identify on, above it no robot.
_TICKS, _RATES, _SHARES = ('s', 'ms', 'us', '100ns', 'ns'), (2.0, 2e4), (0.02, 2.0)
# Parts of a log over which speeds are taken, so that noise has no part in them, and how many are
# enough to tell how fast it is.
_SPANS, _SPEEDS = 200, 20_000


def make_stamps(
    table: ColumnTable,
    selection: Selection | None,
    clocks: Sequence[np.ndarray],
    options: ReadOptions,
    motion: Values,
) -> tuple[np.ndarray, np.ndarray | slice, list[Finding]]:
    """
    Make stamps (M,) int64 [ns] from a column, or from a rate; return the rows they are of, notes.

    A `selection` of the times, perhaps with nanoseconds, has `clocks` in it. `motion` is position
    and velocity (N, n) as logged, and the fastest (n,) that the robot permits in units of the
    position a second, inf where that is unknown. Raises RecordingError where there are neither
    times nor a rate; ConfigurationError at an impossible rate or unknown unit.
    """
    kept = np.asarray(np.isfinite(clocks).all(axis=0)) if selection else np.zeros(0, bool)
    if selection is None or options.rate or (kept.sum() < 2 and table.rate):
        count, rate = len(motion['position']), options.rate or table.rate
        if rate == 0.0:
            error = missing(table, 'time', {})
            raise RecordingError(f'{error}, or give the rate in Hz with --rate')
        if not 0.0 < rate < 1e6:
            raise ConfigurationError(f'the rate is {rate:g} Hz: give one from 1 to 100000')
        notes = [] if options.rate else [finding('stamps_from_rate', rate=rate)]
        if options.rate and selection is not None:
            notes = _contradicted(rate, table, selection, clocks, options, motion)
        stamp = np.round(np.arange(count) * (1e9 / rate)).astype(np.int64)
        return stamp, slice(None), notes
    name = selection.pattern
    if kept.sum() < 2:
        raise RecordingError(
            f"'{table.source}' has no times in {name}: name another column with "
            "--columns 'time=NAME', or give the rate in Hz with --rate"
        )
    without = int((~kept).sum())
    notes = [finding('rows_without_time', count=without)] if without else []
    time, *fraction = (clock[kept] for clock in clocks)
    given = 's' if fraction else dict(options.units).get('time', '')
    if given and (given := canonical(given)) not in FACTORS['time']:
        names = ', '.join(FACTORS['time'])
        raise ConfigurationError(f"'{given}' is no unit of time: use one of {names}")
    unit = given or table.units.get(selection.members[0][1], '') or selection.meaning.unit
    whole, position, reason = time.dtype.kind in 'iu', motion['position'][kept], ''

    if not unit:
        disordered = (np.diff(time) < 0).mean() > MAX_RESTARTS
        order = np.argsort(time, kind='stable') if disordered else slice(None)
        steps = np.abs(np.diff(time[order]))
        step = float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else 0.0
        low, high = time.min(), time.max()
        dated = (
            each
            for each, scale in ((each, FACTORS['time'][each]) for each in _TICKS)
            if _YEARS[0] < low * scale and high * scale < _YEARS[1]
            if _DATED_STEPS[0] < step * scale <= _DATED_STEPS[1]
        )
        if unit := next(dated, ''):
            reason = '' if unit == 's' else 'for so they are dates of today'
    if not unit:
        if (steps == 0.0).mean() > MOSTLY:  # coarse ones
            step *= float((steps > 0.0).mean())
        if not step:
            raise RecordingError(
                f'the times {name} are the same in all rows: name another column with '
                "--columns 'time=NAME', or give the rate in Hz with --rate"
            )
        # '' where it is longer than a second
        usual = next(each for each, longest in STEPS if step <= longest)
        rates = {each: 1.0 / (step * scale) for each, scale in FACTORS['time'].items()}
        fits = {each for each, rate in rates.items() if _RATES[0] <= rate <= _RATES[1]}
        proven, velocity = '', motion['velocity'][kept]
        if np.isfinite(velocity).any():
            proven = proven_time_unit(time, position, velocity)
        if proven in fits:
            fitting, reason = (
                [proven],
                'for so the velocities are the derivatives of the positions',
            )
        elif not usual:
            raise RecordingError(
                f'the times {name} are {step:.3g} apart, too short for seconds: give '
                "their unit, as in --units 'time=min' (also h, d for days, s)"
            )
        else:  # else the velocities may be of motors
            # Of those that make the rate one of robots: where the description has limits of
            # velocity, the speeds are neither too fast for them nor far too slow for a motion;
            # jumps do not count. Ticks are whole.
            reason = 'for so the robot is as fast as its description permits'
            coarsest = _TICKS if whole or (time == np.round(time)).all() else ('s', 'ms', 'us')
            units = [usual, *(each for each in coarsest if each in fits and each != usual)]
            span, every = max(1, len(time) // _SPANS), max(1, len(time) // _SPEEDS)
            clock, path = time[order], position[order]
            passed = (clock[span::every] - clock[:-span:every]).astype(float)
            moved = np.abs(path[span::every] - path[:-span:every])[passed > 0.0]
            largest = 0.0
            if len(moved):
                speeds = np.nan_to_num(moved / passed[passed > 0.0, None])
                speeds = np.quantile(speeds, WITHOUT_JUMPS, axis=0)
                largest = float((speeds / motion['fastest']).max(initial=0.0))
            shares = {each: largest / FACTORS['time'][each] for each in units}
            fitting = [each for each in units if _SHARES[0] < shares[each] < _SHARES[1]]
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
        (unit,) = fitting
        if unit == usual:
            reason = '' if unit == 's' else 'by their steps'

    scale = round(FACTORS['time'][unit] * 1e9)
    reached = float(np.abs(time.astype(float)).max()) * scale * 1e-9
    if reached >= LATEST:
        raise RecordingError(
            f'the times {name} reach {reached:.3g} s as {unit}: give their unit, as '
            "in --units 'time=us', or name another column with --columns 'time=NAME'"
        )
    # Exact for integers, none before 1970.
    stamp = time.astype(np.int64) * scale if whole else np.round(time * float(scale))
    stamp = stamp.astype(np.int64) - min(0, int(stamp.min()))
    if fraction:
        return stamp + fraction[0].astype(np.int64), kept, notes
    if len(stamp) > 1 and np.diff(stamp).min() == 0:
        since, told = spread_equal_stamps((stamp - stamp[0]) * 1e-9, position, least=3)
        if told:
            stamp = stamp[0] + np.round((since - min(0.0, since[0])) * 1e9).astype(np.int64)
            notes = [*told, *notes]
    if reason:
        notes.insert(0, finding('time_unit_assumed', columns=name, unit=unit, reason=reason))
    return stamp, kept, notes


def _contradicted(
    rate: float,
    table: ColumnTable,
    selection: Selection,
    clocks: Sequence[np.ndarray],
    options: ReadOptions,
    motion: Values,
) -> list[Finding]:
    """Tell of times that have another rate than the one that is given instead of them [Hz]."""
    if any((np.diff(clock) == 1).all() for clock in clocks):
        return []  # counts of the rows
    try:
        stamp, _, _ = make_stamps(table, selection, clocks, replace(options, rate=0.0), motion)
    except RecordingError:  # no times
        return []
    steps = np.abs(np.diff(stamp)) * 1e-9
    mean = float(np.mean(steps))
    if any(abs(step * rate - 1.0) <= MAX_RATE_ERROR for step in (mean, float(np.median(steps)))):
        return []
    values = {'rate': rate, 'columns': selection.pattern, 'own': 1.0 / mean}
    return [finding('stamps_from_rate', **values).at(Severity.WARNING)]


def join_restarted_trials(stamp: np.ndarray, source: str) -> tuple[np.ndarray, list[Finding]]:
    """Return stamps (N,) [ns] in which appended trials follow after a pause, and notes."""
    step = np.diff(stamp)
    back = step < -MAX_STEP_BACK * 1e9
    if not back.any():
        return stamp, []
    from scipy.ndimage import maximum_filter1d  # it takes its time to import

    restart = back & (2 * maximum_filter1d(step, 2 * MIN_PART_SAMPLES + 1) < -step)
    if not restart.any():
        return stamp, []
    gap = round(TRIAL_GAP * 1e9)
    midnight = restart & (np.abs(step + DAY) <= gap)
    shift = np.where(midnight, DAY, np.where(restart, gap - step, 0))
    notes = [finding('trials_joined', path=source, gap=TRIAL_GAP)] * bool(shift[~midnight].any())
    return stamp + np.concatenate([[0], np.cumsum(shift)]), notes
