"""What a joint's residual looks like: spectrum, histogram, autocorrelation; and its friction."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.signal import welch

from ....core.parameters.plain_friction import PlainFriction
from ...torques_file import Torques
from .canvas import finish, MEASURED, NEUTRAL, new_plot, PREDICTED, single
from .thinning import longest_stretch, Phase

COLORS = {'identification': PREDICTED, 'validation': MEASURED}
NAMES = {'identification': 'fit', 'validation': 'validation'}
SMALL = 230  # height of the plots [px]
# Samples of a window of the spectrum, lags of the autocorrelation, bars of the histogram, points
# of the friction curve and its bins at most.
WINDOW, LAGS, BARS, POINTS, BINS = 512, 200, 41, 900, 40
# Of the model about its mean at a velocity, over the model: above, it is no curve of velocity.
NO_CURVE = 0.1
# Where histograms end, in root mean squares of the larger residual.
REACH = 4.0
ZOOM = 'box_zoom,pan,wheel_zoom,reset'


def _residual(data: Torques, joint: int) -> tuple[np.ndarray, float]:
    """Return the residual of a joint without a break, (N,), and its rate [Hz]."""
    rows = longest_stretch(data.time)
    rate = 1.0 / max(float(np.median(np.diff(data.time[rows]))), 1e-9)
    return (data.measured - data.predicted)[rows, joint], rate


def spectrum(found: Sequence[Phase], joint: int, unit: str) -> Any:
    """Draw the amplitude density of the residual over frequency."""
    plot = new_plot(
        'frequency [Hz]', f'[{unit}/√Hz]', SMALL, ZOOM, y_axis_type='log'
    )  # white noise is level
    for phase in found:
        values, rate = _residual(phase.data, joint)
        if len(values) < 16:
            continue
        window = min(WINDOW, len(values))
        frequency, density = welch(values - values.mean(), rate, nperseg=window)
        rows = slice(1, None)  # the mean is taken off
        shown = np.sqrt(np.maximum(density[rows], 1e-300))
        plot.line(
            single(frequency[rows]), single(np.maximum(shown, 1e-6 * shown.max())),
            color=COLORS[phase.name], width=1.4, legend_label=NAMES[phase.name],
        )  # fmt: skip
    return finish(plot)


def histogram(found: Sequence[Phase], joint: int, unit: str) -> Any:
    """Draw how often the residual has which size, beside a normal distribution of its σ."""
    plot = new_plot(f'residual [{unit}]', 'density', SMALL, ZOOM)
    residuals = [(phase.data.measured - phase.data.predicted)[:, joint] for phase in found]
    reach = REACH * max(float(np.sqrt(np.mean(values**2))) for values in residuals) or 1e-12
    for phase, values in zip(found, residuals, strict=True):
        density, edges = np.histogram(values, BARS, (-reach, reach), density=True)
        plot.step(
            single(0.5 * (edges[1:] + edges[:-1])), single(density), mode='center',
            color=COLORS[phase.name], width=1.4, legend_label=NAMES[phase.name],
        )  # fmt: skip
    mean, sigma = float(residuals[0].mean()), float(residuals[0].std()) or 1e-12
    x = np.linspace(-reach, reach, 161)
    normal = np.exp(-0.5 * ((x - mean) / sigma) ** 2) / (sigma * np.sqrt(2.0 * np.pi))
    plot.line(
        single(x),
        single(normal),
        color=NEUTRAL,
        dash='dashed',
        legend_label=f'normal, σ of the {NAMES[found[0].name]}',
    )
    return finish(plot)


def autocorrelation(found: Sequence[Phase], joint: int) -> Any:
    """Draw the autocorrelation of the residual; the band is that of white noise, ±2/√N."""
    plot = new_plot('lag [s]', 'autocorrelation', SMALL, ZOOM)
    for phase in found:
        values, rate = _residual(phase.data, joint)
        values = values - values.mean()
        size = len(values)
        lags = min(LAGS, size // 2)
        if lags < 2 or not values.any():
            continue
        spectral = np.fft.rfft(values, 2 * size)
        found_values = np.fft.irfft(np.abs(spectral) ** 2)[:lags]
        plot.line(
            single(np.arange(lags) / rate), single(found_values / found_values[0]),
            color=COLORS[phase.name], width=1.4, legend_label=NAMES[phase.name],
        )  # fmt: skip
        if phase is found[0]:
            for bound in (-2.0 / size**0.5, 2.0 / size**0.5):
                plot.hspan(bound, line_color=NEUTRAL, line_dash='dashed')
    return finish(plot)


def friction_curve(
    found: Sequence[Phase], joint: int, unit: str, speed: str, plain: PlainFriction | None = None
) -> Any | None:
    """Draw effort without inertia and gravity over velocity, model and plain equivalent."""
    data = found[0].data
    parts = data.parts
    if not parts or data.velocity is None:
        return None
    velocity = data.velocity[:, joint]
    measured = data.measured[:, joint] - parts['inertia'][:, joint] - parts['gravity'][:, joint]
    model = parts['friction'][:, joint] + parts['offset'][:, joint]
    chosen = np.unique(np.linspace(0, len(velocity) - 1, POINTS).astype(int))
    plot = new_plot(f'velocity [{speed}/s]', f'effort [{unit}]', SMALL, ZOOM)
    plot.scatter(
        single(velocity[chosen]), single(measured[chosen]), size=3, color=MEASURED, alpha=0.55,
        line_color=None, legend_label='measured',
    )  # fmt: skip
    place, means, spread = _means(velocity, model)
    if spread <= NO_CURVE * float(np.sqrt(np.mean(model**2))):
        plot.line(place, means, color=PREDICTED, width=2.4, legend_label='model')
    else:
        plot.scatter(
            single(velocity[chosen]), single(model[chosen]), size=2, color=PREDICTED,
            line_color=None, legend_label='model, not of velocity alone',
        )  # fmt: skip
    if plain is not None and not plain.exact:
        ends = velocity.min(), 0.0, np.nan, 0.0, velocity.max()
        x, sign = np.array(ends), np.array([-1.0, -1.0, np.nan, 1.0, 1.0])
        y = plain.viscous * x + plain.coulomb * sign + plain.offset
        label = 'plain equivalent'
        plot.line(single(x), single(y), color=NEUTRAL, dash='dashed', legend_label=label)
    return finish(plot)


def _means(velocity: np.ndarray, model: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """
    Average the model in bins of velocity.

    Returns
    -------
    velocities and means, broken where the joint turns round; the root mean square of the model
    about its means

    """
    x, y, squares = list[float](), list[float](), 0.0
    for rows in (velocity < 0.0, velocity > 0.0):
        order = np.argsort(velocity[rows])
        bins = np.array_split(order, min(BINS, len(order))) if len(order) else []
        x += [float(velocity[rows][part].mean()) for part in bins] + [np.nan]
        y += [float(model[rows][part].mean()) for part in bins] + [np.nan]
        squares += sum(len(part) * float(model[rows][part].var()) for part in bins)
    return single(np.array(x)), single(np.array(y)), (squares / max(len(model), 1)) ** 0.5
