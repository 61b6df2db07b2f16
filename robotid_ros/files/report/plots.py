"""
Plots as BokehJS reads them: what all of them look like, and what is drawn of a motion.

Bokeh's own models describe the same in Python, and take half a second to import and to describe.
"""

import base64
from collections.abc import Mapping, Sequence
import gzip
from importlib.util import find_spec
import json
import math
from pathlib import Path
import sys
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

from markupsafe import Markup
import numpy as np

from ...core.parameters.plain_friction import PlainFriction
from ...core.regression.validation import Validation
from ...exceptions import MissingPackageError

FONT = 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'
# Tools of plots that are zoomed along x alone, and both ways.
ALONG_X, BOTH_WAYS = 'xBoxZoom xPan xWheelZoom Reset', 'BoxZoom Pan WheelZoom Reset'
DASHED = [6]


class Model(SimpleNamespace):
    """A model of BokehJS: its type, and the properties that differ from its defaults there."""

    def __init__(self, kind: str, **properties: Any) -> None:
        super().__init__(kind=kind, **properties)


class Field(NamedTuple):
    """The name of a column, where a property takes its values from."""

    name: str


class Plot(Model):
    """
    An empty plot with labelled axes, and with a legend as soon as something has a name.

    Labels may hold {effort} and {length}, for which the page puts the units of the chosen joint.
    """

    def __init__(
        self,
        x: str,
        y: str,
        height: int = 240,
        tools: str = ALONG_X,
        scale: str = 'Linear',
        **more: Any,
    ) -> None:
        below, left = _axis('Linear', x), _axis(scale, y)
        every = [*map(_tool, tools.split())]
        drag = every[0] if 'BoxZoom' in tools else None
        # Below two decades those of logarithmic axes are linear, and crowd.
        kind, ticks = ('LogTicker', 3) if scale == 'Log' else ('BasicTicker', 5)
        left.ticker = Model(kind, desired_num_ticks=ticks)
        super().__init__(
            'Plot',
            tags=[x, y],
            height=height,
            sizing_mode='stretch_width',
            x_scale=Model('LinearScale'),
            y_scale=Model(f'{scale}Scale'),
            below=[below],
            left=[left],
            center=[Model('Grid', axis=below), Model('Grid', axis=left, dimension=1)],
            above=[],
            renderers=[],
            toolbar=Model('Toolbar', tools=every, active_drag=drag, logo=None, autohide=True),
            background_fill_color=None,
            border_fill_color=None,
            outline_line_color=None,
            min_border_right=12,
            **more,
        )

    def draw(
        self,
        glyph: str,
        source: Model,
        color: Any,
        legend: str = '',
        columns: Mapping[str, str] = MappingProxyType({'x': 'x', 'y': 'y'}),
        **look: Any,
    ) -> Model:
        """Draw `columns` of a source, by the properties of the glyph that they are for."""
        look |= {name: Field(column) for name, column in columns.items()}
        look['line_color' if glyph == 'Line' else 'fill_color'] = color
        drawn = Model('GlyphRenderer', data_source=source, glyph=Model(glyph, **look))
        self.renderers.append(drawn)
        if legend:
            self._name(legend, drawn)
        return drawn

    def _name(self, text: str, drawn: Model) -> None:
        legends: list[Model] = self.above
        if not legends:
            look = {'orientation': 'horizontal', 'padding': 2, 'margin': 2, 'click_policy': 'hide'}
            look |= {'label_text_font': FONT, 'label_text_font_size': '12px'}
            look |= {'border_line_color': None, 'background_fill_alpha': 0.0}
            legends.append(Model('Legend', items=[], **look))
        items = {item.label: item for item in legends[0].items}
        if text not in items:
            items[text] = Model('LegendItem', label=text, renderers=[])
            legends[0].items.append(items[text])
        items[text].renderers.append(drawn)

    def show_values(self, tooltips: Sequence[tuple[str, str]], *drawn: Model) -> None:
        """Show values of what is drawn above and below the pointer."""
        hover = Model('HoverTool', tooltips=tooltips, renderers=drawn, mode='vline')
        self.toolbar.tools.append(hover)


def _axis(kind: str, label: str) -> Model:
    look = {'axis_label_text_font_style': 'normal', 'minor_tick_line_color': None}
    for text in ('axis_label', 'major_label'):
        look |= {f'{text}_text_font_size': '12px', f'{text}_text_font': FONT}
    return Model(f'{kind}Axis', axis_label=Model('PlainText', text=label), **look)


def _tool(name: str) -> Model:
    kind = name.removeprefix('x')
    return Model(f'{kind}Tool', **({} if kind == name else {'dimensions': 'width'}))


def described(value: Any, known: dict[int, str]) -> Any:
    """Return a value as BokehJS reads it; of a model that is `known`, by its id, only the name."""
    match value:
        case Model():
            if id(value) in known:
                return {'id': known[id(value)]}
            known[id(value)] = name = f'p{len(known)}'
            attributes = {k: described(v, known) for k, v in vars(value).items() if k != 'kind'}
            return {'type': 'object', 'name': value.kind, 'id': name, 'attributes': attributes}
        case Field():
            return {'type': 'field', 'field': value.name}
        case np.ndarray():
            content = {'type': 'bytes', 'data': base64.b64encode(value.tobytes()).decode()}
            form = {'shape': value.shape, 'dtype': value.dtype.name, 'order': sys.byteorder}
            return {'type': 'ndarray', 'array': content, **form}
        case Mapping():
            entries = [(k, described(v, known)) for k, v in value.items()]
            return {'type': 'map', 'entries': entries}
        case list() | tuple():
            return [described(each, known) for each in value]
        case float() if not math.isfinite(value):
            return {'type': 'number', 'value': f'{value:+}'.replace('+nan', 'nan')}
    return value


class Plots:
    """
    The plots of one page; ranges that they share link them.

    `place` returns the element of a plot, `script` what fills all of them: their description,
    packed, as it repeats itself, and the library. `data` are plain values by name that the page's
    own script needs beside them: the joints to choose from, with their units of length and effort.
    """

    def __init__(self, units: Mapping[str, tuple[str, str]] | None = None) -> None:
        self._plots: list[Plot] = []
        joints = [
            {'name': joint, 'length': length, 'effort': effort}
            for joint, (length, effort) in (units or {}).items()
        ]
        self.data: dict[str, Any] = {'joints': joints}

    def place(self, plot: Plot, caption: str) -> Markup:
        """Add a plot with a caption, also for those who do not see it."""
        self._plots.append(plot)
        return Markup(
            '<figure class="plot"><figcaption>{}</figcaption>'
            '<div id="plot-{}" style="min-height:{}px"></div></figure>'
        ).format(caption, len(self._plots) - 1, plot.height)

    def script(self) -> Markup:
        """Return the plotting library and the plots as elements of a page; '' without plots."""
        if not self._plots:
            return Markup()
        names: dict[int, str] = {}
        roots = described(self._plots, names)
        places = {names[id(plot)]: f'plot-{k}' for k, plot in enumerate(self._plots)}
        content = {'document': {'roots': roots}, 'roots': places, 'data': self.data}
        text = json.dumps(content, allow_nan=False, separators=(',', ':'))
        packed = gzip.compress(text.encode(), mtime=0)
        text = base64.b64encode(packed).decode()
        library = plotting_library().read_text()
        return Markup(
            f'<script type="text/plain" id="plots">{text}</script><script>{library}</script>'
        )


def plotting_library() -> Path:
    """Return the script of Bokeh; MissingPackageError where it is not installed."""
    found = find_spec('bokeh')
    places = found and found.submodule_search_locations
    if not places:
        raise MissingPackageError(
            'the page needs bokeh: pip install bokeh and repeat the command; robotid report '
            'FOLDER writes that of an identification'
        )
    return Path(places[0]) / 'server/static/js/bokeh.min.js'


MEASURED, PREDICTED, RESIDUAL, NEUTRAL = '#d9730d', '#2f7de1', '#d6455d', '#7b8794'
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
    ends = {'start': float(np.nanmin(time)), 'end': float(np.nanmax(time))}  # what reset shows
    linked: dict[str, Any] = {
        'x_range': Model('Range1d', **ends, bounds='auto', name='time'),
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
    plot = Plot('iteration', 'relative', 260, 'Reset', 'Log')
    names = [name for name in CONVERGENCE_MEASURES if any(name in row for row in history)]
    steps = [float(row.get('iteration', k)) for k, row in enumerate(history)]
    for name, color in zip(names, (PREDICTED, MEASURED, '#8b5cf6'), strict=False):
        values = [float(row.get(name, 0.0)) for row in history]
        values = [value if 0.0 < value < np.inf else np.nan for value in values]
        source, shown = source_of({'x': steps, 'y': values}), name.replace('_', ' ')
        plot.draw('Line', source, color, shown, line_width=1.8)
        plot.draw('Scatter', source, color, shown, size=6, line_color=color)
    plot.below[0].ticker = Model('BasicTicker', mantissas=[1, 2, 5], min_interval=1)
    return plot
