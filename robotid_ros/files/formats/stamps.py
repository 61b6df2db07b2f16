"""Stamps of a table's rows [ns]."""

from collections.abc import Mapping

import numpy as np

from ...exceptions import ConfigurationError, RecordingError
from .column_selection import Column, missing, Selection
from .joint_rows import is_disordered
from .read_options import ReadOptions
from .table import Columns, Table
from .units import canonical, FACTORS, proven_time_unit, time_unit

# Seconds since 1970 that a ROS time can hold.
LATEST = 2.0**31


def make_stamps(
    table: Table,
    selection: Selection | None,
    columns: Columns,
    options: ReadOptions,
    motion: Mapping[str, np.ndarray],
) -> tuple[np.ndarray, np.ndarray | slice, list[str]]:
    """
    Make stamps from a column, or from a rate.

    Parameters
    ----------
    table, columns : the table and what was read of it
    selection : column of the times, None for none
    options : unit and rate, where the user gave them
    motion : position and velocity (N, n) as logged

    Returns
    -------
    Stamps (M,) int64 [ns], the rows that have one, and notes

    Raises
    ------
    RecordingError : neither times nor a rate
    ConfigurationError : an impossible rate or unknown unit

    """
    if selection is None:
        stamp, notes = _from_rate(table, options, len(motion['position']))
        return stamp, slice(None), notes
    parts = [_column(columns, column) for _, column in selection.members]
    kept = np.asarray(np.isfinite(parts).all(axis=0))
    if kept.sum() < 2:
        raise RecordingError(
            f"'{table.source}' has no times in {selection.pattern}: name another column with "
            "--columns 'time=NAME', or give the rate in Hz with --rate"
        )
    notes = [f'{int((~kept).sum())} rows without a time are left out'] if not kept.all() else []
    if len(parts) == 2:  # seconds and nanoseconds
        stamp = _nanoseconds(parts[0][kept], 's', selection.pattern) + parts[1][kept].astype(
            np.int64
        )
        return stamp, kept, notes
    moved = (motion['position'][kept], motion['velocity'][kept])
    unit, told = _unit(parts[0][kept], selection, options, *moved)
    return _nanoseconds(parts[0][kept], unit, selection.pattern), kept, [*told, *notes]


def _from_rate(table: Table, options: ReadOptions, count: int) -> tuple[np.ndarray, list[str]]:
    rate = options.rate or table.rate
    if rate == 0.0:
        error = missing(table, 'time', {})
        raise RecordingError(f'{error}, or give the rate in Hz with --rate')
    if not 0.0 < rate < 1e6:
        raise ConfigurationError(f'the rate is {rate:g} Hz: give one from 1 to 100000')
    notes = [] if options.rate else [f'stamps follow from the rate of the file, {rate:g} Hz']
    return np.round(np.arange(count) * (1e9 / rate)).astype(np.int64), notes


def _column(columns: Columns, column: Column) -> np.ndarray:
    values = columns[column.name]
    return values if column.index is None else np.asarray(values[:, column.index])


def _unit(
    time: np.ndarray,
    selection: Selection,
    options: ReadOptions,
    position: np.ndarray,
    velocity: np.ndarray,
) -> tuple[str, list[str]]:
    given = dict(options.units).get('time', '')
    if given:
        if canonical(given) not in FACTORS['time']:
            raise ConfigurationError(f"'{given}' is no unit of time: use s, ms, us or ns")
        return canonical(given), []
    if selection.meaning is not None and selection.meaning.unit:
        return selection.meaning.unit, []
    steps = np.abs(np.diff(np.sort(time) if is_disordered(time) else time))
    unit = time_unit(float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else 0.0)
    reason = 'by their steps'
    proven = proven_time_unit(time, position, velocity)
    if proven not in (unit, ''):
        unit, reason = proven, 'for so the velocities are the derivatives of the positions'
    elif unit == 's':
        return unit, []
    return unit, [f'the stamps {selection.pattern} count as {unit}, {reason} (--units: others)']


def _nanoseconds(time: np.ndarray, unit: str, name: str) -> np.ndarray:
    """Return int64 stamps, exact for integers, none of them before 1970."""
    scale: Mapping[str, int] = {'s': 10**9, 'ms': 10**6, 'us': 10**3, 'ns': 1}
    largest = float(np.abs(time.astype(float)).max()) * scale[unit] * 1e-9
    if largest >= LATEST:
        raise RecordingError(
            f'the times {name} reach {largest:.3g} s as {unit}: give their unit, as in --units '
            "'time=us', or name another column with --columns 'time=NAME'"
        )
    if time.dtype.kind in 'iu':
        stamp = time.astype(np.int64) * scale[unit]
    else:
        stamp = np.round(time * float(scale[unit])).astype(np.int64)
    return np.asarray(stamp - min(0, int(stamp.min())))
