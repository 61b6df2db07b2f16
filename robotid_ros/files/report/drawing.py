"""Interactive plots of a page, by Bokeh: what all of them look like, and each kind of them."""

import base64
from collections.abc import Mapping, Sequence
import gzip
from typing import Any

from bokeh import models
from bokeh.core.json_encoder import serialize_json
from bokeh.document import Document
from bokeh.plotting import figure
from bokeh.resources import Resources
from markupsafe import Markup
import numpy as np

from ...core.parameters.plain_friction import PlainFriction
from ..results import Difference, Entry
from .page import GOOD_PERCENT
from .thinning import longest_stretch, PlacedMotion, thin

# Seen on light and on dark ground alike (at least 3 to 1 on both).
MEASURED, PREDICTED, RESIDUAL, TRUE = '#d9730d', '#2f7de1', '#d6455d', '#8b5cf6'
NEUTRAL, GOOD, FAIR = '#7b8794', '#1a8f4c', '#b7791f'
FONT = 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'
LINES = (PREDICTED, MEASURED, TRUE, GOOD, RESIDUAL, NEUTRAL)
COLORS = {'identification': PREDICTED, 'validation': MEASURED}
NAMES = {'identification': 'fit', 'validation': 'validation'}
# Of efforts: numbers of all joints together, and rows of a joint at least: four bytes each and a
# third more as text, so that these are about a megabyte of the page. Rows of another curve.
NUMBERS, FEWEST_ROWS, MOST_ROWS, ROWS = 160_000, 400, 8000, 1200
LEFT = 66  # of efforts [px], so that the axes of time stand below each other
SMALL = 230  # height of the plots of a residual [px]
# Samples of a window of the spectrum, points of the friction curve and its bins at most.
WINDOW, POINTS, BINS = 512, 900, 40
# Points that fit worst, all of which are drawn; %σ that are drawn as they are.
OUTLIERS, PERCENTS = 100, (1e-3, 1e4)
# Of the model about its mean at a velocity, over the model: above, it is no curve of velocity.
NO_CURVE = 0.1
ZOOM = 'box_zoom,pan,wheel_zoom,reset'
# Of an iteration, what shows whether it converges.
CONVERGENCE_MEASURES = ('torque_error', 'parameter_change', 'position_error')
# Of the name of a parameter below an axis, and beside it all together [px].
NAME_WIDTH, BESIDE = 11, 90


class Plots:
    """
    The plots of one page; ranges that they share link them.

    `place` returns the element of a plot, `script` what fills all of them: their description,
    packed, as it repeats itself, and the library. `data` are plain values by name that the page's
    own script needs beside them.
    """

    def __init__(self) -> None:
        self._plots: list[Any] = []
        self.data: dict[str, Any] = {}

    def place(
        self, plot: Any, caption: str, *, wide: bool = False, least_width: int = 0
    ) -> Markup:
        """
        Add a plot of Bokeh with a caption, also for those who do not see it.

        `wide`: over the width of the page; below `least_width` [px] it is scrolled, but for print.
        """
        self._plots.append(plot)
        focus = Markup(' tabindex="0"') if least_width else ''  # to be scrolled by the keyboard
        least = f';min-width:{least_width}px' if least_width else ''
        return Markup(
            '<figure class="plot{}"{}><figcaption>{}</figcaption>'
            '<div id="plot-{}" style="min-height:{}px{}"></div></figure>'
        ).format(' wide' * wide, focus, caption, len(self._plots) - 1, plot.height, least)

    def script(self) -> Markup:
        """Return the plotting library and the plots as elements of a page; '' without plots."""
        if not self._plots:
            return Markup()
        document = Document()
        with document.models.freeze():  # else all of it is looked through with every plot
            for plot in self._plots:
                document.add_root(plot)
        roots = {plot.id: f'plot-{k}' for k, plot in enumerate(self._plots)}
        described = document.to_json(deferred=False)
        content = serialize_json({'document': described, 'roots': roots, 'data': self.data})
        text = base64.b64encode(gzip.compress(content.encode(), mtime=0)).decode()
        library = Resources(mode='inline', components=['bokeh']).js_raw
        scripts = ''.join(f'<script>{part}</script>' for part in library)
        return Markup(f'<script type="text/plain" id="plots">{text}</script>{scripts}')


def single(values: np.ndarray) -> np.ndarray:
    """Return what is drawn, in as few digits as a screen shows."""
    return np.ascontiguousarray(values, dtype=np.float32)


def new_plot(
    x: str, y: str, height: int = 240, tools: str = 'xbox_zoom,xpan,xwheel_zoom,reset', **more: Any
) -> Any:
    """
    Return an empty plot with labelled axes; `more` arguments of `figure`.

    Labels may hold {effort} and {length}, for which the page puts the units of the chosen joint.
    """
    plot = figure(
        height=height,
        sizing_mode='stretch_width',
        tools=tools,
        toolbar_location='right',
        background_fill_color=None,
        border_fill_color=None,
        outline_line_color=None,
        output_backend='canvas',
        min_border_right=12,
        tags=[x, y],
        **more,
    )
    zooms = (tool for tool in plot.tools if isinstance(tool, models.BoxZoomTool))
    plot.toolbar.active_drag = next(zooms, None)
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    for axis, text in ((plot.xaxis, x), (plot.yaxis, y)):
        axis.axis_label = models.PlainText(text)
        axis.axis_label_text_font_style = 'normal'
        axis.axis_label_text_font_size = axis.major_label_text_font_size = '12px'
        axis.axis_label_text_font = axis.major_label_text_font = FONT
        axis.minor_tick_line_color = None
    # Below two decades those of logarithmic axes are linear, and crowd.
    plot.yaxis.ticker.desired_num_ticks = 3 if more.get('y_axis_type') == 'log' else 5
    return plot


def finish(plot: Any, tooltips: Sequence[tuple[str, str]] = (), renderers: Any = None) -> Any:
    """Give a plot its legend's style, and values under the pointer."""
    for legend in plot.legend:
        legend.location, legend.click_policy = 'top_right', 'hide'
        legend.orientation, legend.padding, legend.margin = 'horizontal', 2, 2
        legend.label_text_font, legend.label_text_font_size = FONT, '12px'
        legend.border_line_color = None
        legend.background_fill_alpha = 0.0
        plot.add_layout(legend, 'above')
    if tooltips:
        hover = models.HoverTool(tooltips=list(tooltips), mode='vline')
        if renderers is not None:
            hover.renderers = renderers
        plot.add_tools(hover)
    return plot


def span_of(*values: np.ndarray, **named: str) -> Any:
    """Return a range over values that plots share; reset returns to it. It may have a `name`."""
    every = np.concatenate(values)
    return models.Range1d(float(np.nanmin(every)), float(np.nanmax(every)), bounds='auto', **named)


def of_joints(columns: Sequence[Mapping[str, np.ndarray]], **shared: np.ndarray) -> Any:
    """
    Return one source of data for the joint that is chosen on the page.

    `columns` are of each joint, by the same names, `shared` of all; what is shorter ends in NaN.
    """
    length = max(len(values) for row in columns for values in row.values())
    every = dict(shared)
    for joint, row in enumerate(columns):
        for name, values in row.items():
            gap = np.full(length - len(values), np.nan)
            every[f'{name}{joint}'] = single(np.concatenate([values, gap]))
    # The page fills the empty columns from those of the source that stands in the tags.
    names = (*shared, *columns[0])
    return models.ColumnDataSource(dict.fromkeys(names, ()), tags=[models.ColumnDataSource(every)])


def efforts(found: Sequence[PlacedMotion]) -> tuple[Any, Any]:
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
    shown = {'source': of_joints([dict(zip('mpr', own, strict=True)) for own in columns], x=time)}
    linked = {'x_range': span_of(time, name='time'), 'min_border_left': LEFT, 'window_axis': 'x'}
    above = new_plot('', 'effort [{effort}]', 240, **linked)
    below = new_plot('time [s]', 'residual [{effort}]', 180, **linked)
    look = {'color': MEASURED, 'width': 4.5, 'alpha': 0.5, 'legend_label': 'measured'}
    line = above.line('x', 'm', **shown, **look)
    above.line('x', 'p', legend_label='predicted', color=PREDICTED, width=1.6, **shown)
    rest = below.line('x', 'r', color=RESIDUAL, width=1.0, **shown)
    for phase in found[1:]:  # the validation, where there are two
        ends = {'left': float(phase.place[0]), 'right': float(phase.place[-1])}
        for plot in (above, below):
            plot.add_layout(_band(NEUTRAL, **ends))
    time_tip = ('t', '@x{0.000} s')
    finish(above, [time_tip, ('measured', '@m'), ('predicted', '@p')], [line])
    finish(below, [time_tip, ('residual', '@r')], [rest])
    return above, below


def _band(color: str, **ends: float) -> models.BoxAnnotation:
    """Return a shade behind the curves."""
    return models.BoxAnnotation(
        **ends, fill_color=color, fill_alpha=0.13, line_color=None, level='underlay'
    )


def _of_phase(draw: Any, phase: PlacedMotion, rows: Any, **look: Any) -> None:
    """Draw rows of x and y of each joint of a motion, in its colour and name."""
    source = of_joints([dict(zip('xy', row, strict=True)) for row in rows])
    name = {'color': COLORS[phase.name], 'legend_label': NAMES[phase.name]}
    draw('x', 'y', source=source, **name, **look)


def power_density(values: np.ndarray, rate: float, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Return frequencies [Hz] and power densities of samples (N,), by Welch's method."""
    # Not by scipy.signal, which takes its time to import.
    size = min(window, len(values))
    hann = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(size) / size)
    parts = np.lib.stride_tricks.sliding_window_view(values, size)[:: size - size // 2]
    parts = hann * (parts - parts.mean(axis=1, keepdims=True))
    power = (np.abs(np.fft.rfft(parts)) ** 2).mean(axis=0) / (rate * (hann @ hann))
    power[1 : (size + 1) // 2] *= 2.0  # of negative frequencies
    return np.fft.rfftfreq(size, 1.0 / rate), power


def spectrum(found: Sequence[PlacedMotion]) -> Any:
    """Draw the amplitude density of the residual over frequency; white noise is level."""
    plot = new_plot('frequency [Hz]', '[{effort}/√Hz]', SMALL, ZOOM, y_axis_type='log')
    for phase in found:
        data, rows, curves = phase.data, longest_stretch(phase.data.time), []
        rate = 1.0 / max(float(np.median(np.diff(data.time[rows]))), 1e-9)
        for values in (data.measured - data.predicted)[rows].T:
            frequency, power = power_density(values, rate, WINDOW)
            shown = np.sqrt(np.maximum(power[1:], 1e-300))  # the mean is taken off
            curves.append((frequency[1:], np.maximum(shown, 1e-6 * shown.max(initial=0.0))))
        _of_phase(plot.line, phase, curves, width=1.4)
    return finish(plot)


def outliers(found: Sequence[PlacedMotion]) -> Any:
    """Draw measured over predicted effort, and the line on which they are equal."""
    plot = new_plot('predicted [{effort}]', 'measured [{effort}]', SMALL, ZOOM)
    for phase in found:
        points = []
        for m, p in zip(phase.data.measured.T, phase.data.predicted.T, strict=True):
            # Those that fit worst are all shown, of the others so many that the cloud is seen.
            worst = np.argsort(-np.abs(m - p))[:OUTLIERS]
            chosen = np.union1d(worst, np.linspace(0, len(m) - 1, POINTS).astype(int))
            points.append((p[chosen], m[chosen]))
        _of_phase(plot.scatter, phase, points, size=3, alpha=0.55, line_color=None)
    every = np.concatenate([phase.data.predicted for phase in found])
    ends = np.stack([every.min(axis=0), every.max(axis=0)]).T
    source = of_joints([{'x': own, 'y': own} for own in ends])
    plot.line('x', 'y', source=source, color=NEUTRAL, dash='dashed', legend_label='equal')
    return finish(plot)


def friction_curve(
    found: Sequence[PlacedMotion], plain: Mapping[str, PlainFriction] | None = None
) -> Any | None:
    """
    Draw effort without inertia and gravity over the velocities seen: model, plain equivalent.

    The band is the standard deviation of the measured values about their mean at a velocity.
    """
    data = found[0].data
    parts = data.parts
    if not parts or data.velocity is None:
        return None
    plot = new_plot('velocity [{length}/s]', 'effort [{effort}]', SMALL, ZOOM)
    chosen, rows = np.unique(np.linspace(0, len(data.time) - 1, POINTS).astype(int)), []
    nothing = {'x': np.array([]), 'y': np.array([])}
    every_measured = data.measured - parts['inertia'] - parts['gravity']
    every_model = parts['friction'] + parts['offset']
    columns = zip(data.joints, data.velocity.T, every_measured.T, every_model.T, strict=True)
    for name, velocity, measured, model in columns:
        x, means, sigma, _ = _means(velocity, measured)
        band = {'x': x, 'low': means - sigma, 'high': means + sigma}
        points, curve = ({'x': velocity[chosen], 'y': y[chosen]} for y in (measured, model))
        cloud, line, own = nothing, nothing, (plain or {}).get(name)
        x, means, _, spread = _means(velocity, model)
        if spread <= NO_CURVE * float(np.sqrt(np.mean(model**2))):
            curve, cloud = {'x': x, 'y': means}, nothing
        else:  # not a function of velocity alone
            curve, cloud = nothing, curve
        if own is not None and not own.exact:
            x = np.array([velocity.min(), 0.0, np.nan, 0.0, velocity.max()])
            sign = np.array([-1.0, -1.0, np.nan, 1.0, 1.0])
            line = {'x': x, 'y': own.viscous * x + own.coulomb * sign + own.offset}
        rows.append((band, points, curve, cloud, line))
    bands, dots, curves, clouds, lines = zip(*rows, strict=True)
    look: dict[str, Any] = {'color': MEASURED, 'legend_label': 'measured ± σ'}
    plot.varea('x', 'low', 'high', source=of_joints(bands), alpha=0.2, **look)
    plot.scatter('x', 'y', source=of_joints(dots), size=3, alpha=0.55, line_color=None, **look)
    look = {'color': PREDICTED, 'legend_label': 'model'}
    plot.line('x', 'y', source=of_joints(curves), width=2.4, **look)
    if any(row is not nothing for row in clouds):
        plot.scatter('x', 'y', source=of_joints(clouds), size=2, line_color=None, **look)
    if any(row is not nothing for row in lines):
        look = {'color': NEUTRAL, 'legend_label': 'plain equivalent'}
        plot.line('x', 'y', source=of_joints(lines), dash='dashed', **look)
    return finish(plot)


def _means(velocity: np.ndarray, values: np.ndarray) -> tuple[Any, Any, Any, float]:
    """
    Average values in bins of velocity, broken where the joint turns round.

    Returns velocities, means, standard deviations, and the rms of all about their means.
    """
    rows, squares = [], 0.0
    for side in (velocity < 0.0, velocity > 0.0):
        order = np.flatnonzero(side)[np.argsort(velocity[side])]
        for part in np.array_split(order, min(BINS, len(order))) if len(order) else ():
            own, deviation = values[part], values[part].std()
            rows.append((velocity[part].mean(), own.mean(), deviation))
            squares += float(len(own) * deviation**2)
        rows.append((np.nan, np.nan, np.nan))
    x, means, sigma = np.array(rows).T
    return x, means, sigma, (squares / max(len(values), 1)) ** 0.5


def convergence(history: Sequence[Mapping[str, Any]]) -> Any:
    """Draw the figures of each iteration on one logarithmic axis."""
    plot = new_plot('iteration', 'relative', 260, 'reset', y_axis_type='log')
    names = [name for name in CONVERGENCE_MEASURES if any(name in row for row in history)]
    steps = [float(row.get('iteration', k)) for k, row in enumerate(history)]
    for name, color in zip(names, LINES, strict=False):
        values = [float(row.get(name, 0.0)) for row in history]
        values = [value if 0.0 < value < np.inf else np.nan for value in values]
        look = {'color': color, 'legend_label': name.replace('_', ' ')}
        plot.line(steps, values, width=1.8, **look)
        plot.scatter(steps, values, size=6, **look)
    plot.xaxis.ticker.mantissas = [1, 2, 5]
    plot.xaxis.ticker.min_interval = 1
    return finish(plot)


def error_over_time(series: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Any:
    """Draw errors of a joint by name over time, (time (N,), values (N, n)) each."""
    shared = span_of(*(time for time, _ in series.values()))
    plot = new_plot('time [s]', 'error [m{length}]', 190, x_range=shared, window_axis='x')
    for (name, (time, values)), color in zip(series.items(), LINES, strict=False):
        x, y = thin(np.asarray(time), np.asarray(values), ROWS)
        source = of_joints([{'y': own} for own in y.T], x=x)
        plot.line('x', 'y', source=source, color=color, width=1.2, legend_label=name)
    return finish(plot)


def normalised_differences(found: Sequence[Difference]) -> Any:
    """Draw differences over their σ, parameter by parameter; the band is ±3σ."""
    known = {each.name: each.normalised for each in found if each.normalised is not None}
    return _bars(known, 'difference / σ', (-3.0, 3.0), '0.00')


def sorted_precision(entries: Sequence[Entry]) -> Any:
    """Draw %σ of base parameters, the best known first; the band is that of essential ones."""
    known = [entry for entry in entries if np.isfinite(entry.percent)]
    known.sort(key=lambda entry: entry.percent)
    shown = np.clip([entry.percent for entry in known], *PERCENTS)
    low = 0.5 * float(shown.min(initial=PERCENTS[1]))
    values = dict(zip((entry.name for entry in known), shown.tolist(), strict=True))
    return _bars(values, '%σ', (low, GOOD_PERCENT), '0.0', y_axis_type='log')


def _bars(values: Mapping[str, float], label: str, band: Any, digits: str, **more: Any) -> Any:
    """Draw values by the names of parameters over a band; logarithmic ones from its lower end."""
    plot = new_plot('', label, 300, 'reset', x_range=models.FactorRange(*values), **more)
    plot.xaxis.major_label_orientation = 'vertical'
    plot.add_layout(_band(GOOD, bottom=band[0], top=band[1]))
    source, base = {'name': [*values], 'value': [*values.values()]}, band[0] if more else 0.0
    plot.vbar('name', top='value', bottom=base, width=0.6, color=PREDICTED, source=source)
    return finish(plot, [('', '@name'), (label, f'@value{{{digits}}}')])


def width_of(names: int) -> int:
    """Return the width below which names on an axis would cover each other [px]."""
    return BESIDE + NAME_WIDTH * names
