"""Figures of the report: inline SVG by matplotlib, nothing fetched from anywhere."""

from collections.abc import Mapping, Sequence
from io import StringIO
import itertools
import re
from typing import Any

import matplotlib
from matplotlib.figure import Figure
import numpy as np

from ...core.regression.goodness_of_fit import Validation
from ..results import Entry
from ..torques_file import Torques

MEASURED, PREDICTED, RESIDUAL = '#94a3b8', '#1d4ed8', '#dc2626'
GOOD, FAIR, POOR, TRUE = '#15803d', '#d97706', '#b91c1c', '#7c3aed'
INK, LINES = '#1e293b', '#e2e8f0'
MAX_CANDIDATES = 24  # of a comparison that are drawn, best first
POINTS = 1200  # of a curve at most, to keep the page small
# Share of a recording that its torques cover, below which the first segment alone is drawn: the
# samples of a long recording cover little of it, those of one with gaps more.
MIN_COVERAGE = 0.6
# %σ up to which an estimate is shown as good and as fair [%]; 10 is also the default of
# `essential_sigma`.
GOOD_PERCENT, FAIR_PERCENT = 10.0, 30.0
# Of an iteration, what shows whether it converges.
CONVERGENCE_MEASURES = ('torque_error', 'parameter_change', 'position_error')
STYLE: Any = {
    'svg.fonttype': 'none',
    'svg.hashsalt': 'robotid_ros',
    'font.family': 'sans-serif',
    'font.size': 9.0,
    'axes.edgecolor': LINES,
    'axes.labelcolor': INK,
    'axes.titlesize': 10.0,
    'axes.titleweight': 'bold',
    'axes.titlelocation': 'left',
    'axes.spines.top': False,
    'axes.spines.right': False,
    'axes.grid': True,
    'axes.axisbelow': True,
    'grid.color': LINES,
    'grid.linewidth': 0.6,
    'xtick.color': INK,
    'ytick.color': INK,
    'text.color': INK,
    'text.parse_math': False,  # names of joints may hold a $
    'legend.frameon': False,
}


def torques(data: Torques, units: Sequence[str]) -> str:
    """Draw measured and predicted torque over time, the residual below on the same scale."""
    with matplotlib.rc_context(STYLE):
        return to_svg(draw_torques(data, units))


def draw_torques(data: Torques | Validation, units: Sequence[str] = ()) -> Figure:
    """Draw them as a figure of matplotlib; units are those of the joints' torques."""
    count = len(data.joints)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10.5, 2.1 * count + 0.5), layout='constrained')
        axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
        for index, axis in enumerate(axes):
            measured, predicted = data.measured[:, index], data.predicted[:, index]
            series = (
                (measured, MEASURED, 1.6, 'measured'),
                (predicted, PREDICTED, 0.9, 'predicted'),
                (measured - predicted, RESIDUAL, 0.7, 'residual'),
            )
            for values, color, size, label in series:
                axis.plot(*envelope(data.time, values), color=color, lw=size, label=label)
            axis.set_title(data.joints[index])
            axis.set_ylabel(units[index] if units else 'effort')
            axis.margins(x=0.0)
        axes[0].legend(ncols=3, loc='lower right', bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
        axes[-1].set_xlabel('time [s]')
        return figure


def candidates(comparison: Mapping[str, Any]) -> str:
    """Draw the cross-validated residual of each candidate, the chosen one marked."""
    ranked = sorted(comparison['residuals'].items(), key=lambda item: item[1])[:MAX_CANDIDATES]
    names, values = [name for name, _ in ranked], 100 * np.array([value for _, value in ranked])
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10.5, 0.22 * len(names) + 0.7), layout='constrained')
        axis = figure.subplots()
        chosen = [name == comparison['chosen'] for name in names]
        places = np.arange(len(names))
        axis.scatter(values, places, c=[PREDICTED if own else MEASURED for own in chosen])
        axis.set_yticks(places, names)
        for label, own in zip(axis.get_yticklabels(), chosen, strict=True):
            label.set_fontweight('bold' if own else 'normal')
        axis.invert_yaxis()
        axis.set_xlabel('residual on blocks that were not fitted [%]; bold: taken')
        return to_svg(figure)


def envelope(time: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """
    Reduce a series for drawing to the least and the largest value of each of `POINTS`/2 bins.

    A break in time longer than ten usual steps shows as a break in the line.
    """
    time, values = np.asarray(time), np.asarray(values)
    if len(time) > POINTS:
        size = -(-len(time) // (POINTS // 2))
        edges = np.arange(0, len(time), size)
        bins = [(e, min(e + size, len(time))) for e in edges]
        low = [a + int(np.argmin(values[a:b])) for a, b in bins]
        high = [a + int(np.argmax(values[a:b])) for a, b in bins]
        chosen = np.unique([*low, *high, 0, len(time) - 1])
        time, values = time[chosen], values[chosen]
    breaks = _breaks(time)
    return np.insert(time, breaks, np.nan), np.insert(values, breaks, np.nan)


def _breaks(time: np.ndarray) -> np.ndarray:
    """Return the rows before which nothing was recorded for longer than ten usual steps."""
    steps = np.diff(time)
    return np.flatnonzero(steps > 10 * np.median(steps)) + 1 if steps.size else np.array([], int)


def first_segment(data: Torques) -> tuple[Torques, int]:
    """
    Return what to draw: all, or the first segment where samples lie scattered in a long recording.

    Returns
    -------
    The torques to draw, and of how many segments they are the first; 1 where they are all

    """
    breaks = _breaks(data.time)
    if not breaks.size:
        return data, 1
    edges = [0, *breaks, len(data.time)]
    covered = sum(data.time[b - 1] - data.time[a] for a, b in itertools.pairwise(edges))
    if covered > MIN_COVERAGE * (data.time[-1] - data.time[0]):
        return data, 1
    first = slice(0, breaks[0])
    columns = (data.time[first], data.measured[first], data.predicted[first])
    return Torques(data.joints, *columns), len(breaks) + 1


def confidence(entries: Sequence[Entry]) -> str:
    """
    Draw base parameters with their ±3σ, as deviation from the estimate; true values when known.

    The scale is linear up to 1 % and logarithmic beyond, so that all of them can be read.
    """
    height = 0.24 * len(entries) + 0.9
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10.5, height), layout='constrained')
        axis = figure.subplots()
        rows = np.arange(len(entries))
        spans = np.array([min(3.0 * e.percent, 1e4) for e in entries])
        colors = [precision_color(e.percent) for e in entries]
        axis.barh(rows, 2 * spans, left=-spans, height=0.62, color=colors, alpha=0.28)
        axis.vlines(0.0, -0.5, len(entries) - 0.5, color=INK, lw=0.8)
        known = [
            (row, 100.0 * (e.true - e.value) / abs(e.value) if e.value else np.nan)
            for row, e in enumerate(entries)
            if e.true is not None
        ]
        if known:
            y, x = zip(*known, strict=True)
            axis.plot(x, y, 'D', ms=4, color=TRUE, label='true value')
            axis.legend(loc='lower right', bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
        axis.set_xscale('symlog', linthresh=1.0, linscale=0.6)
        ticks = [-100, -10, -1, 0, 1, 10, 100]
        axis.set_xticks(ticks, [f'{tick:+d} %' if tick else '0' for tick in ticks])
        limit = float(np.clip(1.3 * max([10.0, *spans]), 13.0, 1e3))
        axis.set_xlim(-limit, limit)
        axis.set_yticks(rows, [f'{e.name}  {float(f"{e.value:.4g}"):g} {e.unit}' for e in entries])
        axis.set_ylim(len(entries) - 0.5, -0.5)
        axis.set_xlabel('±3σ around the estimate')
        axis.grid(axis='y', visible=False)
        return to_svg(figure)


def precision_color(percent: float) -> str:
    """Color of a relative standard deviation [%]."""
    return GOOD if percent <= GOOD_PERCENT else FAIR if percent <= FAIR_PERCENT else POOR


def convergence(history: Sequence[Mapping[str, Any]]) -> str:
    """Draw numbers per iteration, each on its own logarithmic axis."""
    names = [name for name in CONVERGENCE_MEASURES if any(name in row for row in history)]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10.5, 2.6), layout='constrained')
        axes = figure.subplots(1, max(len(names), 1), squeeze=False)[0]
        for axis, name in zip(axes, names, strict=False):
            steps = [row.get('iteration', k) for k, row in enumerate(history)]
            values = [row[name] if _positive(row.get(name)) else np.nan for row in history]
            axis.semilogy(steps, values, 'o-', color=PREDICTED, ms=4)
            axis.set_title(name.replace('_', ' '))
            axis.set_xlabel('iteration')
            axis.set_xticks(steps)
        return to_svg(figure)


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and 0.0 < value < np.inf


def to_svg(figure: Figure) -> str:
    """Text of an `<svg>` that scales with the page."""
    stream = StringIO()
    figure.savefig(stream, format='svg', metadata={'Date': None})
    text = stream.getvalue()
    text = text[text.index('<svg') :]
    return re.sub(r'(<svg[^>]*?) width="[^"]*"', r'\1 width="100%"', text, count=1).replace(
        ' height="', ' data-height="', 1
    )
