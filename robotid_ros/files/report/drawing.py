"""What is drawn of a motion: series as few points, one time axis, and each kind of plots."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.parameters.plain_friction import PlainFriction
from ...core.regression.validation import Validation
from .plots import BOTH_WAYS, DASHED, Model, Plot

MEASURED, PREDICTED, RESIDUAL, NEUTRAL = '#d9730d', '#2f7de1', '#d6455d', '#7b8794'
LINES = (PREDICTED, MEASURED, '#8b5cf6', '#1a8f4c', RESIDUAL, NEUTRAL)
# Of efforts: numbers of all joints together, and rows of a joint at least: four bytes each and a
# third more as text, so that these are about a megabyte of the page.
NUMBERS, FEWEST_ROWS, MOST_ROWS = 160_000, 400, 8000
LEFT = 66  # of efforts [px], so that the axes of time stand below each other
# Points of the friction curve and its bins at most.
POINTS, BINS = 900, 40
# Of an iteration, what shows whether it converges.
CONVERGENCE_MEASURES = ('torque_error', 'parameter_change', 'position_error')
# A break: nothing recorded for so many usual steps.
BREAK = 10.0
# Between two motions, as a share of the time shown.
SPACING = 0.01


def breaks(time: np.ndarray) -> np.ndarray:
    """Return the rows before which nothing was recorded for longer than ten usual steps."""
    steps = np.diff(time)
    if not steps.size:
        return np.array([], dtype=int)
    return np.flatnonzero(steps > BREAK * np.median(steps)) + 1


def thin(time: np.ndarray, columns: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """
    Reduce series for drawing to the least and the largest value of each of `rows`/2 bins.

    A break in time becomes a row of NaN, so that the line breaks too. Times (N,) and values (N, k)
    of more rows than that become about so many, (M,) and (M, k).
    """
    gaps = breaks(time)
    if len(time) > rows:
        size = -(-len(time) // max(rows // 2, 1))
        starts = np.unique([*range(0, len(time), size), *gaps])
        lasts = np.append(starts[1:], len(time)) - 1
        low = np.minimum.reduceat(columns, starts, axis=0)
        high = np.maximum.reduceat(columns, starts, axis=0)
        rising = columns[starts] <= columns[lasts]
        pairs = np.stack([np.where(rising, low, high), np.where(rising, high, low)], axis=1)
        gaps = 2 * np.searchsorted(starts, gaps)
        time = np.stack([time[starts], time[lasts]], axis=1).ravel()
        columns = pairs.reshape(-1, columns.shape[1])
    return np.insert(time, gaps, np.nan), np.insert(columns, gaps, np.nan, axis=0)


class PlacedMotion(NamedTuple):
    """A motion on the time axis of the page."""

    data: Validation
    place: np.ndarray  # (N,) where its rows stand on the axis [s]


def phases(torques: Mapping[str, Validation]) -> tuple[PlacedMotion, ...]:
    """Place the motions on one time axis: at their own times where these do not overlap."""
    found = [
        PlacedMotion(torques[name], torques[name].time)
        for name in ('identification', 'validation')
        if name in torques and len(torques[name].time) > 1
    ]
    if len(found) < 2:
        return tuple(found)
    first, second = found
    between, spans = second.place[0] - first.place[-1], [np.ptp(each.place) for each in found]
    if not 0.0 < between <= 2.0 * spans[0]:
        place = second.place - second.place[0] + first.place[-1] + SPACING * sum(spans)
        second = second._replace(place=place)
    return first, second


def source_of(columns: Mapping[str, Any], **more: Any) -> Model:
    """Return columns by name as a source of data."""
    return Model('ColumnDataSource', data=columns, **more)


def span_of(*values: np.ndarray, **named: str) -> Model:
    """Return a range over values that plots share; reset returns to it. It may have a `name`."""
    every = np.concatenate(values)
    ends = {'start': float(np.nanmin(every)), 'end': float(np.nanmax(every))}
    return Model('Range1d', **ends, bounds='auto', **named)


def of_joints(columns: Sequence[Mapping[str, np.ndarray]], **shared: np.ndarray) -> Model:
    """
    Return one source of data for the joint that is chosen on the page.

    `columns` are of each joint, by the same names, `shared` of all; what is shorter ends in NaN.
    """
    length = max(len(values) for row in columns for values in row.values())
    every = dict(shared)
    for joint, row in enumerate(columns):
        for name, values in row.items():
            gap = np.full(length - len(values), np.nan)
            # In as few digits as a screen shows.
            every[f'{name}{joint}'] = np.concatenate([values, gap]).astype(np.float32)
    # The page fills the empty columns from those of the source that stands in the tags.
    names = (*shared, *columns[0])
    return source_of(dict.fromkeys(names, ()), tags=[source_of(every)])


def efforts(found: Sequence[PlacedMotion]) -> tuple[Plot, Plot]:
    """Draw efforts of a joint, and their residual below; thinned to what a page can hold."""
    joints = len(found[0].data.joints)
    rows = int(np.clip(NUMBERS // (3 * joints + 2), FEWEST_ROWS, MOST_ROWS))
    total = sum(len(phase.place) for phase in found)
    blocks = []
    for phase in found:
        own = phase.data
        columns = np.stack([own.measured, own.predicted, own.measured - own.predicted], axis=2)
        share = max(FEWEST_ROWS // 2, rows * len(phase.place) // total)
        place, values = thin(phase.place, columns.reshape(len(own.time), -1), share)
        blocks += [np.column_stack([place, values]), np.full((1, values.shape[1] + 1), np.nan)]
    table = np.concatenate(blocks[:-1])
    time = np.ascontiguousarray(table[:, 0])  # in double: seconds since a start have many digits
    columns = table[:, 1:].T.reshape(joints, 3, -1)
    source = of_joints([dict(zip('mpr', own, strict=True)) for own in columns], x=time)
    linked: dict[str, Any] = {
        'x_range': span_of(time, name='time'),
        'min_border_left': LEFT,
        'window_axis': 'x',
    }
    above = Plot('', 'effort [{effort}]', **linked)
    below = Plot('time [s]', 'residual [{effort}]', 180, **linked)
    m, p, r = ({'x': 'x', 'y': name} for name in 'mpr')
    look = {'line_width': 4.5, 'line_alpha': 0.5}
    line = above.draw('Line', source, MEASURED, 'measured', m, **look)
    above.draw('Line', source, PREDICTED, 'predicted', p, line_width=1.6)
    rest = below.draw('Line', source, RESIDUAL, '', r)
    for phase in found[1:]:  # the validation, where there are two
        ends = {'left': float(phase.place[0]), 'right': float(phase.place[-1])}
        ends |= {'line_alpha': 0.0, 'fill_alpha': 0.13}
        for plot in (above, below):
            shade = Model('BoxAnnotation', fill_color=NEUTRAL, level='underlay', **ends)
            plot.center.append(shade)
    time_tip = ('t', '@x{0.000} s')
    above.show_values([time_tip, ('measured', '@m'), ('predicted', '@p')], line)
    below.show_values([time_tip, ('residual', '@r')], rest)
    return above, below


def friction_curve(
    found: Sequence[PlacedMotion], plain: Mapping[str, PlainFriction] | None = None
) -> Plot | None:
    """
    Draw effort without inertia and gravity over the velocities seen: model, plain equivalent.

    The band is the standard deviation of the measured values about their mean at a velocity.
    """
    data = found[0].data
    parts = data.parts
    if not parts or data.velocity is None:
        return None
    plot = Plot('velocity [{length}/s]', 'effort [{effort}]', tools=BOTH_WAYS)
    chosen = np.unique(np.linspace(0, len(data.time) - 1, POINTS).astype(int))
    bands, dots, models, lines = [], [], [], []
    every_measured = data.measured - parts['inertia'] - parts['gravity']
    every_model = parts['friction'] + parts['offset']
    columns = zip(data.joints, data.velocity.T, every_measured.T, every_model.T, strict=True)
    for name, velocity, measured, model in columns:
        x, means, sigma = _means(velocity, measured)
        bands.append({'x': x, 'low': means - sigma, 'high': means + sigma})
        dots.append({'x': velocity[chosen], 'y': measured[chosen]})
        models.append({'x': velocity[chosen], 'y': model[chosen]})
        own, x, y = (plain or {}).get(name), np.array([]), np.array([])
        if own is not None and not own.exact:
            x = np.array([velocity.min(), 0.0, np.nan, 0.0, velocity.max()])
            sign = np.array([-1.0, -1.0, np.nan, 1.0, 1.0])
            y = own.viscous * x + own.coulomb * sign + own.offset
        lines.append({'x': x, 'y': y})
    band = {'x': 'x', 'y1': 'low', 'y2': 'high'}
    plot.draw('VArea', of_joints(bands), MEASURED, 'measured ± σ', band, fill_alpha=0.2)
    look: dict[str, Any] = {'size': 3, 'fill_alpha': 0.55, 'line_color': None}
    plot.draw('Scatter', of_joints(dots), MEASURED, 'measured ± σ', **look)
    plot.draw('Scatter', of_joints(models), PREDICTED, 'model', **look)
    if any(line['x'].size for line in lines):
        plot.draw('Line', of_joints(lines), NEUTRAL, 'plain equivalent', line_dash=DASHED)
    return plot


def _means(velocity: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return velocities, means and σ of values in bins, (3, …), broken where the joint turns."""
    rows = []
    for side in (velocity < 0.0, velocity > 0.0):
        order = np.flatnonzero(side)[np.argsort(velocity[side])]
        for part in np.array_split(order, min(BINS, len(order))) if len(order) else ():
            rows.append((velocity[part].mean(), values[part].mean(), values[part].std()))
        rows.append((np.nan, np.nan, np.nan))
    return np.array(rows).T


def convergence(history: Sequence[Mapping[str, Any]]) -> Plot:
    """Draw the figures of each iteration on one logarithmic axis."""
    plot = Plot('iteration', 'relative', 260, 'Reset', ('Linear', 'Log'))
    names = [name for name in CONVERGENCE_MEASURES if any(name in row for row in history)]
    steps = [float(row.get('iteration', k)) for k, row in enumerate(history)]
    for name, color in zip(names, LINES, strict=False):
        values = [float(row.get(name, 0.0)) for row in history]
        values = [value if 0.0 < value < np.inf else np.nan for value in values]
        source, shown = source_of({'x': steps, 'y': values}), name.replace('_', ' ')
        plot.draw('Line', source, color, shown, line_width=1.8)
        plot.draw('Scatter', source, color, shown, size=6, line_color=color)
    plot.below[0].ticker = Model('BasicTicker', mantissas=[1, 2, 5], min_interval=1)
    return plot
