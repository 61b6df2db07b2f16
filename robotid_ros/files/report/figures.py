"""Measured and predicted torques as a figure of matplotlib, for notebooks and picture files."""

from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure
import numpy as np

from ...core.regression.validation import Validation
from ...exceptions import FileError
from ..atomic import write_bytes
from .drawing import MEASURED, PREDICTED, RESIDUAL, thin

SUFFIXES = ('.png', '.svg', '.pdf')
RESOLUTION = 110  # of pixels [1/inch]
POINTS = 1200  # of a curve at most, to keep pictures small
STYLE: Any = {
    'font.size': 9.0,
    'axes.spines.top': False,
    'axes.spines.right': False,
    'axes.grid': True,
    'grid.color': '#e2e8f0',
    'legend.frameon': False,
    'text.parse_math': False,  # names of joints may hold a $
}


def draw_torques(data: Validation) -> Figure:
    """Draw measured and predicted torque over time and the residual."""
    count = len(data.joints)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10.5, 2.1 * count + 0.5), layout='constrained')
        axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
        series = (
            (data.measured, MEASURED, 1.6, 'measured'),
            (data.predicted, PREDICTED, 0.9, 'predicted'),
            (data.measured - data.predicted, RESIDUAL, 0.7, 'residual'),
        )
        for index, axis in enumerate(axes):
            for values, color, size, label in series:
                place, shown = thin(np.asarray(data.time), values[:, [index]], POINTS)
                axis.plot(place, shown[:, 0], color=color, lw=size, label=label)
            axis.set_title(data.joints[index])
            axis.set_ylabel('effort')
            axis.margins(x=0.0)
        axes[0].legend(ncols=3, loc='lower right', bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)
        axes[-1].set_xlabel('time [s]')
        return figure


def write_picture(path: str | Path, figure: Any) -> Path:
    """Write a figure of matplotlib; the name says which of `SUFFIXES`, else FileError."""
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        raise FileError(f"'{path}' is no picture: let its name end in {', '.join(SUFFIXES)}")
    buffer = BytesIO()
    figure.savefig(buffer, format=suffix.removeprefix('.'), dpi=RESOLUTION)
    return write_bytes(path, buffer.getvalue())
