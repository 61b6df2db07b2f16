"""The page of a session that runs: what a browser shows until it is told more, see `live.js`."""

from collections.abc import Sequence

from bokeh.models import BasicTickFormatter, ColumnDataSource, DataRange1d

from .drawing import finish, MEASURED, new_plot, Plots, PREDICTED, RESIDUAL
from .page import render

# What a row of the page's data holds of each joint, in this order, after the time.
QUANTITIES = ('position', 'reference', 'error', 'effort', 'residual')
SHOWN = 60.0  # latest time that is drawn [s]


def live_page(
    name: str,
    joints: Sequence[str],
    units: Sequence[tuple[str, str]],
    limits: Sequence[tuple[float, float]],
    actions: Sequence[str],
) -> str:
    """
    Compose the page of a robot.

    Parameters
    ----------
    name, joints : of the robot
    units : of each joint's position and effort
    limits : tracking error and effort of each joint that stop the motion; 0: none
    actions : what buttons ask the robot for, besides the one that stops it

    """
    plots = Plots()
    plots.data['joints'] = [
        {'name': joint, 'length': length, 'effort': effort}
        for joint, (length, effort) in zip(joints, units, strict=True)
    ]
    source = ColumnDataSource({key: [] for key in ('time', *QUANTITIES)}, name='series')
    time = DataRange1d(follow='end', follow_interval=SHOWN, range_padding=0.0)
    curves = {
        'position [{length}]': {'position': MEASURED, 'reference': PREDICTED},
        'tracking error [{length}]': {'error': RESIDUAL},
        'effort [{effort}]': {'effort': MEASURED, 'residual': RESIDUAL},
    }
    drawn = []
    for label, lines in curves.items():
        plot = new_plot('time [s]', label, 200, '', x_range=time, min_border_left=66)
        plot.toolbar_location = None
        plot.yaxis.formatter = BasicTickFormatter(use_scientific=False)
        for key, color in lines.items():
            plot.line('time', key, source=source, color=color, width=1.8, legend_label=key)
        drawn.append((finish(plot), label.split(' [')[0]))
    return render(
        'live.html', behaviours=('report', 'live'), title=f'{name}: live', heading=name,
        subtitle='', joints=joints, units=units, limits=limits, actions=actions, plots=plots,
        drawn=drawn,
    )  # fmt: skip
