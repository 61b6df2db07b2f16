"""Picture of a design: joint curves within their limits, search, singular values, tool path."""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter
import numpy as np
import pinocchio as pin

from ...core.excitation import Design, Trajectory
from ...core.excitation.constraints.collision_bodies import tool_frame
from ...core.model import inverse_dynamics, Robot
from .pictures import write_picture

BLUE, GREY, RED = '#1d4ed8', '#94a3b8', '#dc2626'
POINTS = 1000  # of a curve


def write_design_figure(path: str | Path, design: Design, robot: Robot, frame: str = '') -> Path:
    """
    Draw a design; the file's suffix says the format (png, svg, pdf).

    Parameters
    ----------
    path : where to
    design : what to draw
    robot : for the predicted efforts and the tool's path
    frame : of the tool; empty: the last one

    Raises
    ------
    FileError : the file cannot be written, or its name says no format

    """
    rows = robot.n + 1
    figure = Figure(figsize=(14.0, 2.0 * rows + 1.5), layout='constrained')
    grid = figure.add_gridspec(rows, 12, height_ratios=[1.0] * robot.n + [1.7])
    for j in range(robot.n):
        _joint(
            [figure.add_subplot(grid[j, 3 * k : 3 * k + 3]) for k in range(4)], design, robot, j
        )
    _history(figure.add_subplot(grid[-1, :4]), design)
    _singular_values(figure.add_subplot(grid[-1, 4:8]), design)
    _tool(figure.add_subplot(grid[-1, 8:], projection='3d'), design, robot, frame)
    numbers = ', '.join(f'{k} {v:.4g}' for k, v in design.condition_numbers.items())
    figure.suptitle(
        f'{robot.name}: {design.trajectory.family} {design.trajectory.hash}, '
        f'{len(design.columns)} columns, condition: {numbers}'
    )
    return write_picture(path, figure)


def _joint(axes: list[Axes], design: Design, robot: Robot, j: int) -> None:
    """Draw position, velocity, acceleration and predicted effort of one joint."""
    time = np.linspace(0.0, design.trajectory.period, POINTS)
    motion = design.trajectory.sample(time)
    tau = inverse_dynamics(robot, robot.prior, *motion)
    length, force = ('m', 'N') if robot.prismatic[j] else ('rad', 'N·m')
    units = (length, f'{length}/s', f'{length}/s²', force)
    names = ('position', 'velocity', 'acceleration', 'effort')
    for ax, name, unit, values in zip(axes, names, units, (*motion, tau), strict=True):
        if name == 'position':
            bounds = (design.limits['lower'][j], design.limits['upper'][j])
        else:
            bounds = (-design.limits[name][j], design.limits[name][j])
        ax.plot(time, values[:, j], color=BLUE, linewidth=1.2)
        for bound in bounds:
            ax.axhline(bound, color=RED, linewidth=0.8, linestyle='--')
        ax.margins(x=0.0)
        ax.grid(alpha=0.3)
        if j == 0:
            ax.set_title(name)
        if j == robot.n - 1:
            ax.set_xlabel('time [s]')
        ax.set_ylabel(f'{robot.joints[j]}\n[{unit}]' if name == 'position' else f'[{unit}]')


def _history(ax: Axes, design: Design) -> None:
    if design.history:
        count, value = zip(*design.history, strict=True)
        ax.step([*count, design.evaluations], [*value, value[-1]], where='post', color=BLUE)
        if min(value) > 0.0:
            ax.set_yscale('log')
            _plain_ticks(ax)
    ax.set_title(f'search: best {design.criterion.replace("_", " ")} {design.value:.4g}')
    ax.set_xlabel('evaluations (friction smoothed at standstill)')
    ax.grid(alpha=0.3, which='both')


def _singular_values(ax: Axes, design: Design) -> None:
    values = design.singular_values
    ax.semilogy(range(1, len(values) + 1), values, 'o-', color=BLUE, markersize=3)
    _plain_ticks(ax)
    ax.set_title('singular values of W/√N')
    ax.set_xlabel('number')
    ax.grid(alpha=0.3, which='both')


def _plain_ticks(ax: Axes) -> None:
    """Write few ticks of a logarithmic axis, as plain numbers: 0.2, 5, 100."""
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(StrMethodFormatter('{x:g}'))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _tool(ax: Any, design: Design, robot: Robot, frame: str) -> None:
    """Draw the tool's path of the excitation, and of the validation in grey."""
    if design.validation is not None:
        ax.plot(*_path(robot, design.validation, frame).T, color=GREY, label='validation')
    path = _path(robot, design.trajectory, frame)
    ax.plot(*path.T, color=BLUE, label='excitation')
    ax.plot(*path[:1].T, 'o', color=RED, markersize=4)
    ax.set_aspect('equal', adjustable='datalim')
    ax.set_box_aspect(None, zoom=1.15)
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.set_major_locator(MaxNLocator(3))
    ax.set_title('tool path [m], red: start')
    ax.legend(loc='upper left', bbox_to_anchor=(-0.3, 1.0), fontsize='small', frameon=False)


def _path(robot: Robot, trajectory: Trajectory, frame: str) -> np.ndarray:
    data = robot.model.createData()
    number = tool_frame(robot.model, frame)
    places = []
    for q in trajectory.sample(np.linspace(0.0, trajectory.period, POINTS)).q[:, robot.order]:
        pin.framesForwardKinematics(robot.model, data, q)
        places.append(data.oMf[number].translation.copy())
    return np.array(places)
