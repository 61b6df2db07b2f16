"""Orders of torque ripple: lines in the spectrum of a joint's residual over its position."""

import dataclasses

import numpy as np
import numpy.typing as npt
from scipy.ndimage import median_filter

from ..arrays import Array
from ..model.friction import RIPPLES
from ..regression.least_squares import project_out
from ..signals.filters import lowpass

# Fewer periods over the joint's way are much like gravity, springs or cables.
FEWEST_PERIODS = 3.0
# Ripple is seen where it passes the torque's filter: in so many of a joint's rows at least.
LEAST_SHARE = 0.2
# Points to a resolution cell 2π/range of the spectrum, cells to either side whose median is the
# background, and bins of the positions to a period of the highest order.
OVERSAMPLING, CELLS, BINS = 8, 16, 8.0
# Product of the spectra of both directions over that of their backgrounds' medians: of a thousand
# cells of noise one in two thousand looks has one so high.
CLEAR = 10.0
# Rows to a period of the band where an order is refined, and the smallest singular value there.
ROWS_PER_BAND, RANK_TOLERANCE = 2.5, 1e-9

Rows = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class JointRows:
    """
    Rows of one joint at a rate well above the band of its torque, not yet filtered.

    Attributes
    ----------
    q, dq : (N,) position and velocity [rad, rad/s or m, m/s]
    W : (N, c) columns of the model
    Y : (N,) torque [N·m or N]
    residual : (N,) that the model leaves of it
    used : (N,) rows where the joint moves
    rate : of the rows [Hz]

    """

    q: Array
    dq: Array
    W: Array
    Y: Array
    residual: Array
    used: Rows
    rate: float


def ripple_orders(rows: JointRows, band: float) -> list[float]:
    """
    Return orders of torque that is periodic in a joint's position, the clearest first.

    Cogging and the teeth of harmonic drives come back at the same position in either direction of
    motion, which errors of friction, noise and whatever follows time do not: the periodogram over
    position, |Σ g exp(−i k q)|², g the residual through the torque's filter and its adjoint, is
    that of rows of one direction times the conjugate of those of the other. An order that is found
    is refined by least squares beside the model's columns, before the next one is looked for in
    what is left.

    Parameters
    ----------
    rows : of the joint
    band : that W and the torque are to be low-passed to [Hz]

    Returns
    -------
    at most one order k of cos(k q) and sin(k q) for each of `RIPPLES`: periods per turn of the
    joint, or radians per metre

    """
    used, q, found = rows.used, rows.q, list[float]()
    if not used.any() or np.ptp(q[used]) <= 0.0:
        return found
    cell = 2.0 * np.pi / float(np.ptp(q[used]))
    highest = 2.0 * np.pi * band / float(np.quantile(np.abs(rows.dq[used]), LEAST_SHARE))
    residual, known = rows.residual, rows.W
    while len(found) < len(RIPPLES) and highest > FEWEST_PERIODS * cell:
        g = lowpass(lowpass(residual, band, rows.rate) * used, band, rows.rate)
        order = _clearest(q, rows.dq, g, cell, highest)
        if order is None:
            break
        order, residual = _refined(dataclasses.replace(rows, W=known), order, cell, band)
        known = np.column_stack([known, _waves(order, q)])
        found.append(order)
    return found


def _waves(order: float, q: Array) -> Array:
    return np.column_stack([np.cos(order * q), np.sin(order * q)])


def _refined(rows: JointRows, order: float, cell: float, band: float) -> tuple[float, Array]:
    """Return the order of least squares, within half a cell, and the residual (N,) beside it."""
    from scipy.optimize import minimize_scalar

    keep = max(1, int(rows.rate / (ROWS_PER_BAND * band)))

    def filtered(x: Array) -> Array:
        return lowpass(x, band, rows.rate)[::keep][rows.used[::keep]]

    W, Y = filtered(rows.W), filtered(rows.Y)
    project = project_out(W, RANK_TOLERANCE)
    target = project(Y)

    def squares(k: float) -> float:
        waves = project(filtered(_waves(k, rows.q)))
        return float(np.sum((target - waves @ np.linalg.lstsq(waves, target, rcond=None)[0]) ** 2))

    bounds = order - 0.5 * cell, order + 0.5 * cell
    order = float(minimize_scalar(squares, bounds=bounds, method='bounded').x)
    waves = _waves(order, rows.q)
    chi = np.linalg.lstsq(np.column_stack([W, filtered(waves)]), Y, rcond=RANK_TOLERANCE)[0]
    return order, rows.Y - np.column_stack([rows.W, waves]) @ chi


def _clearest(q: Array, dq: Array, g: Array, cell: float, highest: float) -> float | None:
    """Return the order that stands out most of both directions' spectra; None without any."""
    orders, forth = _spectrum(q, np.where(dq > 0.0, g, 0.0), cell, highest)
    _, back = _spectrum(q, np.where(dq < 0.0, g, 0.0), cell, highest)
    size = 2 * CELLS * OVERSAMPLING + 1
    background = np.sqrt(
        median_filter(np.abs(forth) ** 2, size) * median_filter(np.abs(back) ** 2, size)
    )
    clarity = np.real(forth * back.conj()) / np.maximum(background, 1e-300)
    clarity[orders < FEWEST_PERIODS * cell] = 0.0
    best = int(np.argmax(clarity))
    return float(orders[best]) if clarity[best] > CLEAR else None


def _spectrum(
    q: Array, g: Array, cell: float, highest: float
) -> tuple[Array, npt.NDArray[np.complex128]]:
    """Return orders up to a highest one and Σ g exp(−i k q) of them, by bins of the positions."""
    width = 2.0 * np.pi / (BINS * highest)
    place = np.round((q - q.min()) / width).astype(int)
    sums = np.bincount(place, weights=g)
    points = max(len(sums), int(np.ceil(OVERSAMPLING * 2.0 * np.pi / (cell * width))))
    spectrum = np.fft.rfft(sums, points)
    orders = 2.0 * np.pi * np.fft.rfftfreq(points, width)
    kept = orders <= highest
    return np.asarray(orders[kept]), np.asarray(spectrum[kept], dtype=np.complex128)
