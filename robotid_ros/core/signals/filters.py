"""Zero-phase low-pass filters and central differences."""

from functools import lru_cache

import numpy as np

from ..arrays import Array

# Frequencies of noise alone that may be taken for motion, on average in all spectra of a
# recording: one far up would have nearly all of its noise pass the filter.
FALSE_ALARMS = 0.01
# Bands of the upper spectrum whose medians give the noise: few are steady, many follow its shape.
NOISE_BANDS = 16
# Share of the sampling rate above which a spectrum is taken for noise: half of Nyquist's.
NOISE_FROM = 0.25


def filter_without_phase(x: Array, order: int, cutoff: float, pad: int, keep: int = 1) -> Array:
    """
    Filter signals by a Butterworth low-pass forwards and backwards (Gustafsson 1996).

    At both ends a signal goes on point-symmetrically, and the filter starts at rest on its first
    value.

    Parameters
    ----------
    x : (..., N) signals
    cutoff : of one pass, over the Nyquist frequency
    pad : samples by which a signal is extended at either end, less than N
    keep : return one sample in so many, the first one among them

    Returns
    -------
    (..., ceil(N / keep))

    """
    from scipy.signal import sosfiltfilt

    if not x.size:  # which SciPy refuses
        return x[..., ::keep]
    filtered = sosfiltfilt(_sections(order, cutoff), x, padlen=pad)
    return np.ascontiguousarray(filtered[..., ::keep])


@lru_cache(maxsize=32)
def _sections(order: int, cutoff: float) -> Array:
    from scipy.signal import butter

    return np.asarray(butter(order, cutoff, output='sos'))


def lowpass(x: Array, cutoff: float, rate: float, order: int = 4) -> Array:
    """
    Filter x (N, ...) by a Butterworth filter forwards and backwards (DIDIM section II).

    With a cut-off of one pass [Hz] at or above Nyquist's of the rate [Hz] nothing is filtered.
    """
    if cutoff >= 0.5 * rate:
        return np.asarray(x)
    pad = min(len(x) - 1, round(3 * rate / cutoff))
    signals = np.moveaxis(np.asarray(x), 0, -1)
    return np.moveaxis(filter_without_phase(signals, order, 2.0 * cutoff / rate, pad), -1, 0)


def central_differences(x: Array, rate: float) -> Array:
    """Central differences along axis 0, one-sided at the ends."""
    return np.asarray(np.gradient(x, 1.0 / rate, axis=0))


def with_derivatives(q: Array, rate: float) -> tuple[Array, Array, Array]:
    """Return positions (N, n) with velocities and accelerations by `central_differences`."""
    dq = central_differences(q, rate)
    return q, dq, central_differences(dq, rate)


def motion_bandwidth(q: Array, rate: float, share: float = 0.99) -> float:
    """
    Return the frequency below which this share of the power of every speed lies [Hz].

    Frequencies that do not stand out of the noise, measured in the upper half of the spectrum, do
    not count. The power of noise at one frequency is exponentially distributed: it exceeds r times
    its mean with the probability exp(−r).
    """
    steps = np.diff(q, axis=0)
    spectrum = np.abs(np.fft.rfft(steps * np.hanning(len(steps))[:, None], axis=0)) ** 2
    frequency = np.fft.rfftfreq(len(steps), 1.0 / rate).astype(float)
    floor = np.column_stack([_noise_floor(column, frequency / rate) for column in spectrum.T])
    spectrum[spectrum < np.log(spectrum.size / FALSE_ALARMS) * floor] = 0.0
    total = np.cumsum(spectrum, axis=0)
    moving = (np.ptp(q, axis=0) > 1e-6) & (total[-1] > 0.0)
    index = [int(np.searchsorted(t, share * t[-1])) for t in total.T[moving]]
    return float(frequency[max(index)]) if index else 0.0


def _noise_floor(power: Array, share: Array) -> Array:
    """
    Fit the noise in the power of a speed at these shares of the sampling rate.

    Noise of the positions grows with the frequency; that of the stamps, which shifts a moving
    joint, does not.
    """
    shapes = np.column_stack([np.sin(np.pi * share) ** 2, np.ones_like(share)])
    bands = [b for b in np.array_split(np.flatnonzero(share > NOISE_FROM), NOISE_BANDS) if b.size]
    level = np.array([np.median(power[band]) for band in bands])
    if not bands or not level.all():
        return np.zeros_like(power)
    shape = np.array([shapes[band].mean(axis=0) for band in bands]) / level[:, None]
    from scipy.optimize import nnls

    return np.asarray(shapes @ nnls(shape, np.ones(len(bands)))[0] / np.log(2.0))
