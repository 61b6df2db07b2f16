"""The page of rollouts: what a simulation of a recording has missed."""

from typing import Any

from bokeh.models import Range1d
import numpy as np

from ..rollouts import IDENTIFIED, QUANTILES, rms, Rollouts
from . import drawing
from .page import render
from .thinning import thin


def rollouts_page(found: Rollouts, name: str, subtitle: str, summary: str) -> str:
    """Compose the page of rollouts of a robot of this name; `summary` says what comes of them."""
    plots = drawing.Plots()
    plots.data['joints'] = [
        {'name': joint, 'length': unit}
        for joint, unit in zip(found.joints, found.units, strict=True)
    ]
    return render(
        'rollouts.html',
        title=f'{name}: rollouts',
        heading=name,
        subtitle=subtitle,
        summary=summary,
        found=found,
        joints=found.joints,
        sizes={k: rms(error) for k, error in found.errors.items()},
        draws=found.band if len(found.draws) else None,
        horizons={k: found.horizon(error) for k, error in found.errors.items()},
        plots=plots,
        errors=_rollout_errors(found),
    )


def _rollout_errors(found: Rollouts) -> Any:
    """Draw errors of a joint over the time since a start, the mean of all starts, and a band."""
    last = float(found.time[-1])
    span = Range1d(0.0, last, bounds='auto')
    plot = drawing.new_plot('time since a start [s]', 'RMS error [m{length}]', 280, x_range=span)

    def over_time(error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sizes = 1e3 * rms(error, (-3,))
        return thin(found.time, np.where(np.isfinite(sizes), sizes, np.nan), drawing.ROWS)

    if len(found.draws):
        low, high = 1e3 * np.quantile(rms(found.draws, (-3,)), QUANTILES, axis=0)
        every = np.concatenate([low, high], axis=1)
        x, both = thin(found.time, np.where(np.isfinite(every), every, np.nan), drawing.ROWS)
        low, high = np.split(both.T, 2)
        rows = [{'low': a, 'high': b} for a, b in zip(low, high, strict=True)]
        look: dict[str, Any] = {'color': drawing.PREDICTED, 'legend_label': IDENTIFIED}
        plot.varea('x', 'low', 'high', source=drawing.of_joints(rows, x=x), alpha=0.2, **look)
    colors = {IDENTIFIED: drawing.PREDICTED}
    for name, error in found.errors.items():
        x, y = over_time(error)
        source = drawing.of_joints([{'y': own} for own in y.T], x=x)
        color = colors.get(name, drawing.MEASURED)
        plot.line('x', 'y', source=source, color=color, width=1.8, legend_label=name)
    return drawing.finish(plot)
