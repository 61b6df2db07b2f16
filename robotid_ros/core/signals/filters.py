"""Zero-phase low-pass filters, and the bandwidth of a motion."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..arrays import Array, Indices

BLOCK = 64  # least samples of a block: matrices stay in the cache, blocks are few
# Frequencies of noise alone that may be taken for motion, on average in all spectra of a
# recording: one far up would have nearly all of its noise pass the filter.
FALSE_ALARMS = 0.01
NOISE_BANDS = 16  # whose medians give the noise: few are steady, many follow its shape
NOISE_FROM = 0.25  # of the sampling rate, above which all is noise: half of Nyquist's


def filter_without_phase(x: Array, order: int, cutoff: float, pad: int, keep: int = 1) -> Array:
    """
    Filter signals by a Butterworth low-pass forwards and backwards (Gustafsson 1996).

    At both ends signals (…, N) go on point-symmetrically, for so many samples less than N, and the
    filter starts at rest on their first value, as SciPy's `sosfiltfilt` does by default, which
    takes three times as long where one sample in eight is kept. The cut-off is that of one pass,
    over the Nyquist frequency. Returns (…, ceil(N / keep)), the first sample among them.
    """
    shape = x.shape[:-1]
    x = x.reshape(int(np.prod(shape)), x.shape[-1])
    first, last = 2.0 * x[:, :1], 2.0 * x[:, -1:]
    # Before its first value a filter at rest may get as much of it as one likes.
    lead = -pad % keep
    lead_in = np.repeat(first - x[:, pad : pad + 1], lead, axis=1)
    ends = first - x[:, pad:0:-1], last - x[:, -2 : -2 - pad : -1]
    signal = np.concatenate([lead_in, ends[0], x, ends[1]], axis=1)
    result = _there_and_back(signal, order, cutoff, keep)
    start, count = (pad + lead) // keep, -(-x.shape[1] // keep)
    return result[:, start : start + count].reshape(*shape, count)


class _Block(NamedTuple):
    """
    A filter with s states over K samples: x' = Φ x + Γ u, y = O x + T u.

    A recursive filter takes one sample after the other. Over a block it is linear in the samples
    and in its state: all blocks of all signals are one product of matrices, and only the states go
    from block to block. What is not kept of the result is not computed.
    """

    update: Array  # (s, s) of the state over one sample
    step: Array  # Φ (s, s)
    gather: Array  # Γ (s, K)
    observe: Array  # O (K, s)
    respond: Array  # T (K, K)
    rest: Array  # (s,) state at rest on the input 1


def _there_and_back(signals: Array, order: int, cutoff: float, keep: int) -> Array:
    """Return one sample in `keep` of signals (M, N) that were filtered forwards and backwards."""
    block = _block(order, cutoff, max(1, -(-BLOCK // keep)) * keep)
    states, size = len(block.rest), len(block.observe)
    count = (signals.shape[1] - 1) // size
    back_gather, back_observe = block.gather[:, ::-1], block.observe[::-1][::keep]
    back_respond = block.respond[::-1, ::-1][::keep]
    # Of each block: what its samples add to both states, and to what is kept.
    rows = np.vstack([block.gather, back_gather @ block.respond, back_respond @ block.respond])
    blocks = signals[:, : count * size].reshape(len(signals), count, size)
    forth, back, kept = np.split(np.moveaxis(blocks @ rows.T, 1, 0), [states, 2 * states], axis=2)
    state = np.empty((count + 1, len(signals), states))
    state[0] = signals[:, :1] * block.rest
    for k in range(count):
        state[k + 1] = state[k] @ block.step.T + forth[k]
    back = back + state[:-1] @ (back_gather @ block.observe).T
    kept = kept + state[:-1] @ (back_respond @ block.observe).T
    # Behind the last whole block the way turns round, over fewer samples.
    tail = signals[:, count * size :]
    gather, few = block.gather[:, size - tail.shape[1] :], tail.shape[1]
    observe, respond = block.observe[:few], block.respond[:few, :few]
    turned = (state[-1] @ observe.T + tail @ respond.T)[:, ::-1]
    rest = turned[:, :1] * block.rest
    end = (rest @ observe.T + turned @ respond.T)[:, ::-1][:, ::keep]
    behind = np.empty_like(state)
    behind[-1] = rest @ np.linalg.matrix_power(block.update, few).T + turned @ gather.T
    for k in range(count, 0, -1):
        behind[k - 1] = behind[k] @ block.step.T + back[k - 1]
    kept = kept + behind[1:] @ back_observe.T
    whole = np.moveaxis(kept, 0, 1).reshape(len(signals), count * kept.shape[2])
    return np.concatenate([whole, end], axis=1)


@lru_cache(maxsize=32)
def _block(order: int, cutoff: float, size: int) -> _Block:
    update, drive, observe, direct = _state_space(order, cutoff)
    rest = np.asarray(np.linalg.solve(np.eye(order) - update, drive), dtype=float)
    driven, observed = [drive], [observe]
    for _ in range(size - 1):
        driven.append(update @ driven[-1])
        observed.append(observed[-1] @ update)
    response = np.concatenate([[direct], [observe @ x for x in driven[:-1]]])
    delay = np.subtract.outer(np.arange(size), np.arange(size))
    respond = np.where(delay >= 0, response[np.maximum(delay, 0)], 0.0)
    step = np.linalg.matrix_power(update, size)
    return _Block(update, step, np.array(driven[::-1]).T, np.array(observed), respond, rest)


def _state_space(order: int, cutoff: float) -> tuple[Array, Array, Array, float]:
    """
    Return A, b, c, d of the digital filter: second-order sections in series, each of gain 1 at 0.

    The poles of the analog prototype are exp(iπ (2k + n + 1)/(2n)), k = 0 … n − 1; the bilinear
    transformation takes the cut-off to tan(π/2 · cutoff).
    """
    A, b, c, d = np.zeros((0, 0)), np.zeros(0), np.zeros(0), 1.0
    for k in range((order + 1) // 2):
        pole = np.tan(0.5 * np.pi * cutoff) * np.exp(0.5j * np.pi * (2 * k + order + 1) / order)
        root = (1.0 + pole) / (1.0 - pole)
        x, y = root.real, root.imag
        if 2 * k + 1 == order:  # the real one: (1 − x)/2 (z + 1)/(z − x)
            gain = 0.5 * (1.0 - x)
            own, drive = np.array([[x]]), np.array([gain * (1.0 + x)])
        else:  # gain (z + 1)²/((z − x)² + y²), its state turned and shrunk by the pole
            gain = 0.25 * ((1.0 - x) ** 2 + y**2)
            own = np.array([[x, y], [-y, x]])
            drive = gain * np.array([2.0 * (1.0 + x), ((1.0 + x) ** 2 - y**2) / y])
        size, width = len(A), len(own)
        A = np.block([[A, np.zeros((size, width))], [np.outer(drive, c), own]])
        b, c, d = np.append(b, drive * d), np.append(gain * c, np.eye(width)[0]), gain * d
    return A, b, c, d


def lowpass(x: Array, cutoff: float, rate: float, order: int = 4) -> Array:
    """Filter x (N, ...) by a zero-phase Butterworth filter of this cut-off [Hz] of one pass."""
    if cutoff >= 0.5 * rate:
        return np.asarray(x)
    pad = min(len(x) - 1, round(3 * rate / cutoff))
    signals = np.moveaxis(np.asarray(x), 0, -1)
    return np.moveaxis(filter_without_phase(signals, order, 2.0 * cutoff / rate, pad), -1, 0)


def power_edge(power: Array, share: float) -> Indices:
    """Return the first frequency (…,) up to which a share of the power (F, …) lies."""
    total = np.cumsum(power, axis=0)
    return np.asarray(np.argmax(total >= share * total[-1], axis=0))


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
    moving = (np.ptp(q, axis=0) > 1e-6) & spectrum.any(axis=0)
    return float(frequency[power_edge(spectrum[:, moving], share).max(initial=0)])


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
    share_of = np.linalg.lstsq(shape, np.ones(len(bands)), rcond=None)[0]
    if not (share_of >= 0.0).all():  # of two, one alone explains more than the other
        both, squares = shape.sum(axis=0), (shape**2).sum(axis=0)
        share_of = np.where(np.arange(2) == np.argmax(both**2 / squares), both / squares, 0.0)
    return np.asarray(shapes @ share_of / np.log(2.0))
