"""The page of a design: the arm along its motion, and whether it is worth running."""

from collections.abc import Iterator, Mapping
import dataclasses
from datetime import datetime, timezone
import hashlib
from typing import Any

import numpy as np

from ...core.excitation.design import Design
from ...core.excitation.limits import check_joints, QUANTITIES
from ...core.excitation.settings import ExcitationSettings, payload_settings
from ...core.excitation.trajectory import Trajectory
from ...core.findings import seen_and_remedy
from ...core.model import inverse_dynamics, Robot
from ..configuration import Configuration
from ..provenance import versions
from .drawing import MEASURED, NEUTRAL, PREDICTED, RESIDUAL, single, source_of
from .moving_arm import moving_arm
from .page import render
from .pages import FirstScreen
from .plots import DASHED, Model, Plot, Plots

TITLES = {'good': 'Can be run', 'fair': 'Can be run with care', 'poor': 'Not to be run'}
COLORS = {'excitation': PREDICTED, 'validation': MEASURED}
POINTS = 500  # of a curve
# Height of a plot, and left of its axis, so that the axes of time stand below each other [px].
HEIGHT, LEFT = 104, 62
# Of the limits' range, left free above and below.
SPACE = 0.06


def design_page(
    design: Design, robot: Robot, configuration: Configuration, command: str = ''
) -> str:
    """
    Compose the page of a design, with the arm that moves.

    The groups `robot` and `excitation` of the configuration are those that were used, `command`
    repeats it. TrajectoryError: the design is for other joints.
    """
    check_joints(robot, design.trajectory.joints)
    settings = payload_settings(configuration.excitation)
    motions, plots = motions_of(design), Plots()
    plots.data['arm'] = moving_arm(robot, motions, settings.workspace)
    series, first = motion_series(design, robot), first_screen(design, settings)
    name, t = robot.name or 'robot', design.trajectory
    time = Model('Range1d', start=0.0, end=t.period, bounds='auto', name='time')
    found = (*design.shortcomings, *design.unchecked, *design.notes)
    return render(
        'design.html',
        behaviours=('report', 'motion'),
        title=f'{name}: designed motion',
        heading=name,
        subtitle=f'motion that identifies, {t.family} {t.hash}, {t.period:g} s, order {t.order}',
        plots=plots,
        design=design,
        verdict_title=TITLES[first.level],
        first=first,
        limits=settings,
        largest=max(
            (share, name, joint)
            for name in QUANTITIES
            for share, joint in zip(getattr(design.usage, name), t.joints, strict=True)
        ),
        found=found,
        severe=bool(design.shortcomings or design.unchecked),
        motions=list(motions),
        joints=robot.joints,
        curves=lambda j: joint_curves(series, time, design, j, robot),
        usage={quantity: getattr(design.usage, quantity) for quantity in QUANTITIES},
        description=configuration.robot.urdf,
        hash=hashlib.sha256(robot.urdf.encode()).hexdigest(),
        written=datetime.now(timezone.utc).isoformat(timespec='seconds'),
        versions=versions(),
        command=command,
        settings={
            group: dataclasses.asdict(getattr(configuration, group))
            for group in ('robot', 'excitation')
        },
    )


def first_screen(design: Design, settings: ExcitationSettings) -> FirstScreen:
    """Judge a design by its shortcomings, and by what nobody has checked."""
    columns = f'{len(design.columns)} columns of the model'
    if design.shortcomings:
        seen, remedy = seen_and_remedy(design.shortcomings[0])
        return FirstScreen('poor', f'The node excitation does not run it. {seen}', remedy)
    if design.unchecked:
        seen, remedy = seen_and_remedy(design.unchecked[0])
        seen = f'It keeps every limit that is checked and excites all {columns}. {seen}'
        remedy += ' Or accept it by name in excitation.accept_unchecked.'
        return FirstScreen('fair', seen, remedy)
    seen = f'It keeps every limit at all times and excites all {columns}'
    if design.usage.distance is not None:
        seen += f'; bodies stay at least {settings.workspace.distance:g} m apart'
    remedy = (
        'Watch it below for what no configuration knows, such as cables, then run it: '
        'excitation.trajectory names the file.'
    )
    return FirstScreen('good', f'{seen}.', remedy)


def motions_of(design: Design) -> dict[str, Trajectory]:
    """Return what was designed, by name: the excitation, and the validation if there is one."""
    motions = {'excitation': design.trajectory, 'validation': design.validation}
    return {name: motion for name, motion in motions.items() if motion is not None}


def motion_series(design: Design, robot: Robot) -> dict[str, Any]:
    """Sample a period of each motion as a source of data; efforts are those of the prior model."""
    sources = {}
    for name, motion in motions_of(design).items():
        time = np.linspace(0.0, motion.period, POINTS)
        found = motion.sample(time)
        effort = inverse_dynamics(robot, robot.prior, *found)
        data = {'time': single(time)}
        for quantity, values in zip(QUANTITIES, (*found, motion.jerk(time), effort), strict=True):
            data |= {f'{quantity}{j}': single(own) for j, own in enumerate(values.T)}
        sources[name] = source_of(data)
    return sources


def joint_curves(
    series: Mapping[str, Any], time: Any, design: Design, joint: int, robot: Robot
) -> Iterator[tuple[Any, str]]:
    """Draw a joint's curves between their limits, one below the other; yields captions, too."""
    length, force = robot.units[robot.joints[joint]]
    units = (length, f'{length}/s', f'{length}/s²', f'{length}/s³', force)
    for name, unit in zip(QUANTITIES, units, strict=True):
        if name == 'position':
            low, high = (design.limits[end][joint] for end in ('lower', 'upper'))
        else:
            low, high = -design.limits[name][joint], design.limits[name][joint]
        last, space = name == QUANTITIES[-1], SPACE * (high - low)
        values = Model('Range1d', start=low - space, end=high + space)
        # Drag to zoom, the form above the plots shows all: tools would cover plots of this height.
        look: dict[str, Any] = {'toolbar_location': None, 'min_border_left': LEFT}
        height, ranges = HEIGHT + 38 * last, {'x_range': time, 'y_range': values}
        plot = Plot('time [s]' if last else '', '', height, 'xBoxZoom', **ranges, **look)
        plot.below[0].visible = last
        plot.left[0].ticker.desired_num_ticks = 4
        column, lines = f'{name}{joint}', []
        for motion, source in series.items():
            columns = {'x': 'time', 'y': column}
            line = plot.draw('Line', source, COLORS[motion], '', columns, line_width=1.6)
            line.name, line.visible = motion, motion == 'excitation'
            lines.append(line)
        bound = {'dimension': 'width', 'line_color': RESIDUAL, 'line_dash': DASHED}
        cursor = {'dimension': 'height', 'line_color': NEUTRAL, 'line_width': 2}
        plot.center += [Model('Span', location=end, **bound) for end in (low, high)]
        plot.center.append(Model('Span', location=0.0, name='cursor', level='overlay', **cursor))
        plot.show_values([('t', '@time{0.000} s'), (name, f'@{column} {unit}')], *lines)
        yield plot, f'{name} [{unit}]'
