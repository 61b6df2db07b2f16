"""Stamps of a table [ns], and its rows in their order."""

from collections.abc import Sequence
import contextlib
from dataclasses import replace
import math

import numpy as np

from ...core.findings import Finding, finding, Severity
from ...core.signals.stamp_correction import MAX_STEP_BACK, MIN_PART_SAMPLES, spread_equal_stamps
from ...exceptions import ConfigurationError, RecordingError
from .column_names import Selection
from .column_selection import missing
from .read_options import ReadOptions
from .table import ColumnTable
from .units import canonical, FACTORS, proven_time_unit

Values = dict[str, np.ndarray]
# Between two trials, or episodes of a data set [s]: longer than any gap that is interpolated.
TRIAL_GAP = 2.0
# Rows with efforts and without positions, as a share of those with positions, that are only lost.
MAX_LONELY = 0.1
# Share of steps back in time up to which they are restarts of a clock: newest first has all of
# them, shuffled rows have half.
MAX_RESTARTS = 0.1


def align_rows(stamp: np.ndarray, values: Values) -> tuple[np.ndarray, Values, list[Finding]]:
    """Bring values of rows of their own onto positions; RecordingError: rows in no order."""
    notes: list[Finding] = []
    own = np.asarray(np.isfinite(values['position']).any(axis=1))
    lonely = np.asarray(np.isfinite(values['effort']).any(axis=1) & ~own)
    if not own.any():
        return stamp, values, notes  # which is refused where it is used
    apart, back = lonely.sum() > MAX_LONELY * own.sum(), np.diff(stamp) < 0
    if back.mean() > MAX_RESTARTS or (apart and back.any()):
        raise RecordingError(
            'the times go back and forth: sort the rows by time, name another column with '
            "--columns 'time=NAME', or give the rate in Hz with --rate"
        )
    if not apart:
        held = own | lonely
        if not held.all():
            notes.append(finding('rows_without_states', count=int((~held).sum())))
        return stamp[held], {quantity: x[held] for quantity, x in values.items()}, notes
    # All else is interpolated onto the rows that hold positions.
    found, time = {'position': values['position'][own]}, (stamp - stamp[0]).astype(float)
    for quantity in values.keys() - {'position'}:
        found[quantity] = np.full((int(own.sum()), values[quantity].shape[1]), math.nan)
        for k, column in enumerate(values[quantity].T):
            if (known := np.isfinite(column)).any():
                each = time[own], time[known], column[known]
                found[quantity][:, k] = np.interp(*each, math.nan, math.nan)
    notes.append(finding('rows_interpolated'))
    return stamp[own], found, notes


# Of a rate that is given, to that of the times in the log, which count as one below: rounded.
MAX_RATE_ERROR = 0.02
# Seconds since 1970 that a ROS time can hold.
LATEST = 2.0**31
# Share of the rows that move on under the stamp of the row before, from which a clock is coarse.
MOSTLY = 0.5
# Times between the years 2000 and 2040 are dates, and steps between these are of robots [s].
_YEARS, _STEPS_OF_ROBOTS = (946684800.0, 2208988800.0), (2e-5, 2.0)
# Steps of other times up to which they count as these units: most robots are logged at 10 Hz to
# 2 kHz. What may be of several units is asked for.
_STEPS = ((9e-5, 'min, h or d'), (0.1, 's'), (0.5, 's or ms'), (100.0, 'ms'))
_LONGER = 'ms, us, 100ns or ns'


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
    and velocity (N, n) as logged. Raises RecordingError where there are neither times nor a rate;
    ConfigurationError at an impossible rate or unknown unit.
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
        counted = any((np.diff(clock) == 1).all() for clock in clocks)  # the rows
        if options.rate and selection is not None and not counted:
            with contextlib.suppress(RecordingError):  # no times that count
                own = make_stamps(table, selection, clocks, replace(options, rate=0.0), motion)[0]
                steps = np.abs(np.diff(own)) * 1e-9
                usual = float(np.mean(steps)), float(np.median(steps))
                if all(abs(step * rate - 1.0) > MAX_RATE_ERROR for step in usual):
                    values = {'rate': rate, 'columns': selection.pattern, 'own': 1.0 / usual[0]}
                    notes = [finding('stamps_from_rate', **values).at(Severity.WARNING)]
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
        steps = np.abs(np.diff(np.sort(time) if disordered else time))
        if not (steps > 0.0).any():
            raise RecordingError(
                f'the times {name} are the same in all rows: name another column with '
                "--columns 'time=NAME', or give the rate in Hz with --rate"
            )
        step = float(np.median(steps[steps > 0.0]))
        fitting = {
            each: scale
            for each, scale in FACTORS['time'].items()
            if _STEPS_OF_ROBOTS[0] < step * scale <= _STEPS_OF_ROBOTS[1]
        }
        low, high, velocity = time.min(), time.max(), motion['velocity'][kept]
        dated = (u for u, x in fitting.items() if _YEARS[0] < low * x and high * x < _YEARS[1])
        if unit := next(dated, ''):
            reason = 'for so they are dates of today'
        elif np.isfinite(velocity).any():
            unit = proven_time_unit(time, position, velocity)
            unit = unit if unit in fitting else ''
            reason = 'for so the velocities are the derivatives of the positions'
    if not unit:
        if (steps == 0.0).mean() > MOSTLY:  # coarse ones
            step *= float((steps > 0.0).mean())
        reason, unit = 'by their steps', next((u for most, u in _STEPS if step <= most), _LONGER)
        if unit not in FACTORS['time']:
            raise RecordingError(
                f'the times {name} are {step:.6g} apart, which may be {unit}: give their unit, as '
                f"in --units 'time={unit.split()[-1]}', or the rate in Hz with --rate"
            )
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
    if reason and unit != 's':
        notes.insert(0, finding('time_unit_assumed', columns=name, unit=unit, reason=reason))
    return stamp, kept, notes


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
    shift = np.where(restart, round(TRIAL_GAP * 1e9) - step, 0)
    notes = [finding('trials_joined', path=source, gap=TRIAL_GAP)]
    return stamp + np.concatenate([[0], np.cumsum(shift)]), notes
