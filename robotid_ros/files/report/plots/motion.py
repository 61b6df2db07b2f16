"""Curves of a designed motion within their limits, and how it was found."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bokeh.models import ColumnDataSource, Range1d, Span
import numpy as np

from ....core.excitation import Design, Trajectory
from ....core.excitation.limits import QUANTITIES
from ....core.model import inverse_dynamics, Robot
from .canvas import finish, MEASURED, NEUTRAL, new_plot, PREDICTED, RESIDUAL, single

COLORS = {'excitation': PREDICTED, 'validation': MEASURED}
POINTS = 500  # of a curve
# Height of a plot, and left of its axis, so that the axes of time stand below each other [px].
HEIGHT, LEFT = 104, 62
# Of the limits' range, left free above and below.
SPACE = 0.06


class MotionSeries(NamedTuple):
    """The motions' curves as sources of data by name, and the range of time of all plots."""

    sources: Mapping[str, Any]
    time: Any


def motions_of(design: Design) -> dict[str, Trajectory]:
    """Return what was designed, by name: the excitation, and the validation if there is one."""
    motions = {'excitation': design.trajectory, 'validation': design.validation}
    return {name: motion for name, motion in motions.items() if motion is not None}


def motion_series(design: Design, robot: Robot) -> MotionSeries:
    """Sample a period of each motion; efforts are those of the prior model."""
    sources = {name: _sampled(motion, robot) for name, motion in motions_of(design).items()}
    span = Range1d(0.0, design.trajectory.period, bounds='auto', name='time')
    return MotionSeries(sources, span)


def _sampled(motion: Trajectory, robot: Robot) -> Any:
    time = np.linspace(0.0, motion.period, POINTS)
    found = motion.sample(time)
    effort = inverse_dynamics(robot, robot.prior, *found)
    columns = dict(zip(QUANTITIES, (*found, motion.jerk(time), effort), strict=True))
    data = {
        f'{name}{j}': single(values[:, j])
        for name, values in columns.items()
        for j in range(robot.n)
    }
    return ColumnDataSource({'time': single(time), **data})


def joint_curves(
    series: MotionSeries, design: Design, joint: int, prismatic: bool
) -> Iterator[tuple[Any, str]]:
    """Draw a joint's curves between their limits, one below the other; yields captions, too."""
    length, force = ('m', 'N') if prismatic else ('rad', 'N·m')
    units = (length, f'{length}/s', f'{length}/s²', f'{length}/s³', force)
    for name, unit in zip(QUANTITIES, units, strict=True):
        if name == 'position':
            bounds = (design.limits['lower'][joint], design.limits['upper'][joint])
        else:
            bounds = (-design.limits[name][joint], design.limits[name][joint])
        last = name == QUANTITIES[-1]
        yield _curve(series, f'{name}{joint}', name, unit, bounds, last), f'{name} [{unit}]'


def _curve(
    series: MotionSeries,
    column: str,
    name: str,
    unit: str,
    bounds: Sequence[float],
    last: bool,
) -> Any:
    space = SPACE * (bounds[1] - bounds[0])
    plot = new_plot(
        'time [s]' if last else '', '', HEIGHT + 38 * last, 'xbox_zoom', x_range=series.time,
        y_range=Range1d(bounds[0] - space, bounds[1] + space), min_border_left=LEFT,
    )  # fmt: skip
    # Drag to zoom, the form above the plots shows all: tools would cover plots of this height.
    plot.toolbar_location = None
    plot.xaxis.visible = last
    plot.yaxis.ticker.desired_num_ticks = 4
    lines = [
        plot.line(
            'time', column, source=source, color=COLORS[motion], width=1.6, name=motion,
            visible=motion == 'excitation',
        )
        for motion, source in series.sources.items()
    ]  # fmt: skip
    for bound in bounds:
        plot.add_layout(_rule(bound, 'width', RESIDUAL, line_dash='dashed'))
    plot.add_layout(_rule(0.0, 'height', NEUTRAL, name='cursor', level='overlay', line_width=2))
    return finish(plot, [('t', '@time{0.000} s'), (name, f'@{column} {unit}')], lines)


def _rule(place: float, dimension: str, color: str, **more: Any) -> Any:
    return Span(location=place, dimension=dimension, line_color=color, **more)


def search(design: Design) -> Any | None:
    """Draw the best criterion over the evaluations of the search; None where there was none."""
    if not design.history or not design.evaluations:
        return None
    count, value = (list(column) for column in zip(*design.history, strict=True))
    scale = 'log' if min(value) > 0.0 else 'linear'
    plot = new_plot('evaluations', 'best so far', 230, 'xbox_zoom,reset', y_axis_type=scale)
    plot.xaxis.ticker.desired_num_ticks = 4
    x, y = [*count, design.evaluations], [*value, value[-1]]
    plot.step(x, y, mode='after', color=PREDICTED, width=1.8)
    return finish(plot)
