"""Plots of a whole result: convergence, simulated motion, tracking, correlation."""

from collections.abc import Mapping, Sequence, Sized
from typing import Any

from bokeh.models import BoxAnnotation, ColumnDataSource, FactorRange, HoverTool, LinearColorMapper
import numpy as np

from ...comparison.differences import Difference
from ...torques_file import SimulatedPositions
from .canvas import (
    finish,
    GOOD,
    MEASURED,
    NEUTRAL,
    new_plot,
    PREDICTED,
    RESIDUAL,
    single,
    span_of,
    TRUE,
)
from .thinning import thin

# Of an iteration, what shows whether it converges.
CONVERGENCE_MEASURES = ('torque_error', 'parameter_change', 'position_error')
ROWS = 1200  # of a curve over time
# Of the name of a parameter below an axis, and beside it all together [px].
NAME_WIDTH, BESIDE = 11, 90
LINES = (PREDICTED, MEASURED, TRUE, GOOD, RESIDUAL, NEUTRAL)
# From −1 to 1, white in between on light ground as on dark.
DIVERGING = (
    *('#08519c', '#2171b5', '#4292c6', '#6baed6', '#9ecae1', '#c6dbef', '#deebf7', '#f7f7f7'),
    *('#fee6ce', '#fdd0a2', '#fdae6b', '#fd8d3c', '#f16913', '#d94801', '#8c2d04'),
)


def convergence(history: Sequence[Mapping[str, Any]]) -> Any:
    """Draw the figures of each iteration on one logarithmic axis."""
    plot = new_plot('iteration', 'relative', 260, 'reset', y_axis_type='log')
    names = [name for name in CONVERGENCE_MEASURES if any(name in row for row in history)]
    for name, color in zip(names, LINES, strict=False):
        steps = [float(row.get('iteration', k)) for k, row in enumerate(history)]
        values = [float(row[name]) if _positive(row.get(name)) else np.nan for row in history]
        label = name.replace('_', ' ')
        plot.line(steps, values, color=color, width=1.8, legend_label=label)
        plot.scatter(steps, values, color=color, size=6, legend_label=label)
    plot.xaxis.ticker.mantissas = [1, 2, 5]
    plot.xaxis.ticker.min_interval = 1
    return finish(plot)


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and 0.0 < value < np.inf


def simulated_motion(data: SimulatedPositions, joint: int, unit: str, shared: Any) -> Any:
    """Draw a simulated position minus the measured one, or minus the reference."""
    other = data.reference if data.measured is None else data.measured
    error = data.simulated[:, joint] - other[:, joint]
    return error_over_time({'simulated': (data.time, 1e3 * error)}, f'm{unit}', shared)


def error_over_time(
    series: Mapping[str, tuple[np.ndarray, np.ndarray]], unit: str, shared: Any
) -> Any:
    """Draw errors by name over time, (time, values) each."""
    plot = new_plot('time [s]', f'error [{unit}]', 190, x_range=shared)
    for (name, (time, values)), color in zip(series.items(), LINES, strict=False):
        x, y = thin(np.asarray(time), np.asarray(values)[:, None], ROWS)
        plot.line(x, single(y[:, 0]), color=color, width=1.2, legend_label=name)
    return finish(plot)


def time_range(*times: np.ndarray) -> Any:
    """Return a range that plots over these times share."""
    return span_of(np.concatenate(times))


def normalised_differences(found: Sequence[Difference]) -> Any:
    """Draw differences over their σ, parameter by parameter; the band is ±3σ."""
    known = [each for each in found if each.normalised is not None]
    names, values = [each.name for each in known], [each.normalised for each in known]
    plot = new_plot('', 'difference / σ', 300, 'reset', x_range=FactorRange(*names))
    plot.add_layout(
        BoxAnnotation(
            bottom=-3.0, top=3.0, fill_color=GOOD, fill_alpha=0.12, line_color=None,
            level='underlay',
        )
    )  # fmt: skip
    source = ColumnDataSource({'name': names, 'value': values})
    plot.vbar('name', top='value', width=0.6, color=PREDICTED, source=source)
    plot.xaxis.major_label_orientation = 'vertical'
    return finish(plot, [('', '@name'), ('difference / σ', '@value{0.00}')])


def width_of(names: Sized) -> int:
    """Return the width below which names on an axis would cover each other [px]."""
    return BESIDE + NAME_WIDTH * len(names)


def singular_values(values: Sequence[float]) -> Any:
    """Draw the singular values of the observation matrix."""
    plot = new_plot('number', 'singular value', 230, 'reset', y_axis_type='log')
    shown = np.maximum(np.asarray(values, dtype=float), 1e-12)
    plot.line(np.arange(1, len(shown) + 1), shown, color=PREDICTED)
    plot.scatter(np.arange(1, len(shown) + 1), shown, color=PREDICTED, size=5)
    return finish(plot)


def correlation(names: Sequence[str], lower: Sequence[Sequence[float]]) -> Any:
    """Draw the correlation matrix of the base parameters, given its lower triangle."""
    count = len(names)
    matrix = np.zeros((count, count))
    for k, row in enumerate(lower):
        matrix[k, : k + 1] = matrix[: k + 1, k] = row
    plot = new_plot(
        '', '', 120 + min(12 * count, 700), 'box_zoom,reset',
        x_range=FactorRange(*names), y_range=FactorRange(*names[::-1]),
    )  # fmt: skip
    mapper = LinearColorMapper(palette=list(DIVERGING), low=-1.0, high=1.0)
    plot.image([single(matrix[::-1])], x=0, y=0, dw=count, dh=count, color_mapper=mapper)
    plot.xaxis.major_label_orientation = 'vertical'
    for axis in (plot.xaxis, plot.yaxis):
        axis.major_label_text_font_size = '10px'
    plot.grid.visible = False
    plot.add_tools(HoverTool(tooltips=[('correlation', '@image{0.00}')]))
    return plot
