"""Efforts over time, joint by joint on one axis, and what is left of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from bokeh.models import BoxAnnotation, ColumnDataSource
import numpy as np

from .canvas import finish, MEASURED, NEUTRAL, new_plot, PREDICTED, RESIDUAL, single, span_of
from .thinning import Phase, thin

# Numbers of all joints together, and of a joint at least: four bytes each and a third more as
# text, so that these are about a megabyte of the page.
NUMBERS, FEWEST_ROWS, MOST_ROWS = 160_000, 400, 8000
COLUMNS = ('m', 'p', 'r')
LEFT = 66  # of the plots [px], so that the axes of time stand below each other


class EffortSeries(NamedTuple):
    """All joints' efforts as one source of data, and the range of time that the plots share."""

    source: Any
    time: Any
    phases: Sequence[Phase]


def effort_series(found: Sequence[Phase]) -> EffortSeries:
    """Thin the efforts of all joints to what a page can hold."""
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
    names = [f'{name}{joint}' for joint in range(joints) for name in COLUMNS]
    data = dict(zip(names, single(table[:, 1:].T), strict=True))
    # Time in double: seconds since the robot's start have many digits.
    source = ColumnDataSource({'x': np.ascontiguousarray(table[:, 0]), **data})
    return EffortSeries(source, span_of(table[:, 0], name='time'), found)


def efforts(series: EffortSeries, joint: int, unit: str) -> tuple[Any, Any]:
    """Draw measured and predicted effort of a joint, and the residual on an axis of its own."""
    above = new_plot('', f'effort [{unit}]', 240, x_range=series.time, min_border_left=LEFT)
    line = above.line(
        'x', f'm{joint}', source=series.source, color=MEASURED, width=4.5, alpha=0.5,
        legend_label='measured',
    )  # fmt: skip
    above.line(
        'x', f'p{joint}', source=series.source, color=PREDICTED, width=1.6,
        legend_label='predicted',
    )  # fmt: skip
    below = new_plot(
        'time [s]', f'residual [{unit}]', 180, x_range=series.time, min_border_left=LEFT
    )
    rest = below.line('x', f'r{joint}', source=series.source, color=RESIDUAL, width=1.0)
    for plot in (above, below):
        _mark(plot, series.phases)
    tip = [('t', '@x{0.000} s'), ('measured', f'@m{joint}'), ('predicted', f'@p{joint}')]
    finish(above, tip, [line])
    finish(below, [('t', '@x{0.000} s'), ('residual', f'@r{joint}')], [rest])
    return above, below


def _mark(plot: Any, found: Sequence[Phase]) -> None:
    """Shade the validation, where there are two phases."""
    for phase in found[1:]:
        box = BoxAnnotation(
            left=float(phase.place[0]),
            right=float(phase.place[-1]),
            fill_color=NEUTRAL,
            fill_alpha=0.13,
            line_color=None,
            level='underlay',
        )
        plot.add_layout(box)
