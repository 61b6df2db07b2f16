"""Figures 11 to 15 of the SCARA study: closeness, torque error and parameters, per iteration."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from scara_plant import NAMES, NOMINAL
from scara_problem import closeness
from scara_tables import PAPER_ERRORS, PER_PAPER

from robotid_ros.core.replay.didim import History
from robotid_ros.core.replay.replay_problem import ReplayProblem

matplotlib.use('Agg')
from matplotlib import pyplot

WIDTH, DOTS = 9.0, 120


Replayed = tuple[ReplayProblem, History]


def draw(folder: Path, full: Replayed, half: Mapping[str, Replayed]) -> None:
    """Draw all: the full bandwidth (11-13), then half of it in each reading of it (14, 15)."""
    folder.mkdir(parents=True, exist_ok=True)
    _closeness(folder / 'figure_11_closeness.png', 'full bandwidth', *full)
    _torque(folder / 'figure_12_torque_error.png', {'full bandwidth': full[1]}, '3')
    _parameters(folder / 'figure_13_parameters.png', full[1])
    for letter, (reading, found) in zip('ab', half.items(), strict=True):
        _closeness(folder / f'figure_14{letter}_closeness.png', f'half of {reading}', *found)
    _torque(
        folder / 'figure_15_torque_error.png',
        {f'half of {k}': h for k, (_, h) in half.items()},
        '9',
    )


def _closeness(path: Path, title: str, case: ReplayProblem, history: History) -> None:
    close = [closeness(case, record) for record in history.iterations]
    figure, axes = pyplot.subplots(3, 2, figsize=(WIDTH, 9.0), sharex=True, layout='constrained')
    for k, quantity in enumerate(('position', 'velocity', 'acceleration')):
        for j, axis in enumerate(axes[k]):
            for key, mark in (('measured', 'o-'), ('reference', '*-')):
                axis.plot([100.0 * each[key][k, j] for each in close], mark, label=f'to {key}')
            axis.set_title(f'{quantity}, joint {j + 1}')
            axis.set_ylim(bottom=0.0)
    figure.suptitle(f'distance of the simulated motion, {title}')
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc='outside lower center', ncols=2)
    _finish(path, axes, 'relative distance [%]')


def _torque(path: Path, histories: Mapping[str, History], paper: str) -> None:
    _, axes = pyplot.subplots(1, 2, figsize=(WIDTH, 4.0), sharex=True, layout='constrained')
    for j, axis in enumerate(axes):
        for label, history in histories.items():
            axis.semilogy([r.torque_error[j] for r in history.iterations], 'o-', label=label)
        axis.semilogy(PAPER_ERRORS[paper][j], '*--', color='0.5', label='paper')
        axis.set_title(f'torque, joint {j + 1}')
    axes[0].legend()
    _finish(path, axes[None], 'relative error')


def _parameters(path: Path, history: History) -> None:
    _, axes = pyplot.subplots(2, 4, figsize=(12.0, 6.0), sharex=True, layout='constrained')
    for i, axis in enumerate(axes.ravel()):
        axis.axhline(NOMINAL[i], color='0.6', label='nominal')
        axis.plot([record.value[i] * PER_PAPER[i] for record in history.iterations], 'o-')
        axis.set_title(NAMES[i])
    axes[0, 0].legend()
    _finish(path, axes, 'SI units')


def _finish(path: Path, axes: 'list[list[Axes]]', unit: str) -> None:
    """Label the outer axes of a grid, write and close it."""
    for row in axes:
        row[0].set_ylabel(unit)
    for axis in axes[-1]:
        axis.set_xlabel('iteration')
        axis.xaxis.get_major_locator().set_params(integer=True)
    figure = axes[0][0].figure
    figure.savefig(path, dpi=DOTS)
    pyplot.close(figure)
    print(f'drawn {path}')
