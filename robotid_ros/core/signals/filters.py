"""Zero-phase low-pass filters and central differences."""

import numpy as np
from scipy.signal import butter, sosfiltfilt

from ..model.parameters import Array

# Power over that of the noise from which a frequency belongs to the motion.
AUDIBLE = 10.0


def lowpass(x: Array, cutoff: float, rate: float, order: int = 4) -> Array:
    """
    Filter along axis 0 by a Butterworth filter forwards and backwards (DIDIM section II).

    Parameters
    ----------
    x : (N, ...) samples
    cutoff : cut-off frequency of one pass [Hz]; at or above Nyquist's nothing is filtered
    rate : of the samples [Hz]
    order : of one pass

    """
    if cutoff >= 0.5 * rate:
        return np.asarray(x)
    sections = butter(order, cutoff, fs=rate, output='sos')
    pad = min(len(x) - 1, round(3 * rate / cutoff))
    return np.asarray(sosfiltfilt(sections, x, axis=0, padlen=pad))


def differences(x: Array, rate: float) -> Array:
    """Central differences along axis 0, one-sided at the ends."""
    return np.asarray(np.gradient(x, 1.0 / rate, axis=0))


def motion_bandwidth(q: Array, rate: float, share: float = 0.99) -> float:
    """
    Return the frequency below which this share of the power of every speed lies [Hz].

    Noise of the positions grows with the square of the frequency in the speeds: what does not
    stand out of the noise of the upper half of the spectrum does not count.
    """
    speed = np.diff(q, axis=0) * rate
    spectrum = np.abs(np.fft.rfft(speed * np.hanning(len(speed))[:, None], axis=0)) ** 2
    frequency = np.fft.rfftfreq(len(speed), 1.0 / rate)
    shape = np.sin(np.pi * frequency[1:] / rate)[:, None] ** 2
    upper = frequency[1:] > 0.25 * rate
    floor = np.median(spectrum[1:][upper] / shape[upper], axis=0) / np.log(2.0)
    spectrum[1:][spectrum[1:] < AUDIBLE * floor * shape] = 0.0
    total = np.cumsum(spectrum, axis=0)
    moving = (np.ptp(q, axis=0) > 1e-6) & (total[-1] > 0.0)
    index = [int(np.searchsorted(t, share * t[-1])) for t in total.T[moving]]
    return float(frequency[max(index)]) if index else 0.0
