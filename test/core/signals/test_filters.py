"""The cut-off follows the motion, whatever the noise."""

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.signal import butter, sosfiltfilt

from robotid_ros.core.signals.filters import (
    _noise_floor,
    BLOCK,
    filter_without_phase,
    lowpass,
    motion_bandwidth,
    NOISE_BANDS,
    NOISE_FROM,
)

RATE, SECONDS = 1000.0, 20.0
TIME = np.arange(round(RATE * SECONDS)) / RATE
# Sums of two sines; the faster one ends the motion's band.
FAST = 2.0


def motion(time):
    slow = 2.0 * np.sin(2.0 * np.pi * 0.2 * time)
    return np.column_stack([slow + 0.1 * np.sin(2.0 * np.pi * FAST * time), 0.5 * slow])


def polled(rng):
    """Read at a pace that wanders a robot that updates every millisecond; drop repetitions."""
    read = np.cumsum(rng.uniform(0.7e-3, 1.3e-3, TIME.size))
    update, first = np.unique(np.floor(read * 1e3), return_index=True)
    return np.column_stack([np.interp(TIME, read[first], x) for x in motion(update * 1e-3).T])


@pytest.mark.parametrize(
    'record',
    [
        lambda rng: motion(TIME),
        lambda rng: motion(TIME) + 1e-5 * rng.normal(size=(TIME.size, 2)),
        lambda rng: np.round(motion(TIME) / 1e-4) * 1e-4,
        lambda rng: motion(TIME + 3e-4 * rng.uniform(-1.0, 1.0, TIME.size)),
        polled,
    ],
    ids=['exact', 'noise', 'quanta', 'jitter', 'polled'],
)
def test_bandwidth_is_the_motions(record):
    q = record(np.random.default_rng(5))
    for some in (q, q[:-1700]):  # whole periods, and not
        assert motion_bandwidth(some, RATE) == pytest.approx(FAST, rel=0.1)
    assert motion_bandwidth(q[:, 1:], RATE) == pytest.approx(0.2, abs=0.1)


def test_no_noise_counts_as_motion_however_strong_it_is():
    """Among 20,000 frequencies of noise alone some exceed ten times their mean."""
    for seed in range(20):
        noise = 0.05 * np.random.default_rng(seed).normal(size=(TIME.size, 2))
        assert motion_bandwidth(motion(TIME) + noise, RATE) < 1.1 * FAST
    assert motion_bandwidth(motion(TIME) + noise / 20.0, RATE) == pytest.approx(FAST, rel=0.1)


@pytest.mark.parametrize('cutoff', [0.5, 0.7, 3.0])
def test_a_cut_off_above_nyquists_lets_everything_pass(cutoff):
    x = np.random.default_rng(0).normal(size=(50, 2))
    np.testing.assert_array_equal(lowpass(x, cutoff * RATE, RATE), x)
    assert not np.allclose(lowpass(x, 0.4 * RATE, RATE), x, atol=0.01)


@pytest.mark.parametrize('samples', [40, 3000])
def test_it_is_scipys_filter_continued_by_three_periods_or_what_there_is(samples):
    x = np.cumsum(np.random.default_rng(6).normal(size=(samples, 2)), axis=0)
    sections = butter(4, 12.0, fs=RATE, output='sos')
    expected = sosfiltfilt(sections, x, axis=0, padlen=min(samples - 1, 250))
    np.testing.assert_allclose(lowpass(x, 12.0, RATE), expected, atol=1e-9 * np.abs(x).max())


@pytest.mark.parametrize('positions, stamps', [(1.0, 0.0), (0.0, 1.0)])
def test_the_floor_is_the_spectrum_of_noise_of_positions_or_of_stamps(positions, stamps):
    rng, count, window = np.random.default_rng(1), 40_000, np.hanning(40_000)
    noise = positions * np.diff(rng.normal(size=count + 1)) + stamps * rng.normal(size=count)
    share = np.fft.rfftfreq(count)
    floor = _noise_floor(np.abs(np.fft.rfft(noise * window)) ** 2, share)
    expected = (4.0 * (positions * np.sin(np.pi * share)) ** 2 + stamps**2) * np.sum(window**2)
    np.testing.assert_allclose(floor, expected, rtol=0.1, atol=0.03 * expected.max())


@pytest.mark.parametrize('power, level', [(-1.0, 0.0), (0.5, 1.0), (1.0, 1.0), (3.0, 1.0)])
def test_neither_noise_is_below_zero(power, level):
    share = np.fft.rfftfreq(400)
    speeds = np.sin(np.pi * share[1:]) ** 2
    values = np.append(0.0, speeds**power + level)
    bands = np.array_split(np.flatnonzero(share > NOISE_FROM), NOISE_BANDS)
    levels = np.array([np.median(values[band]) for band in bands])
    shapes = np.column_stack([np.sin(np.pi * share) ** 2, np.ones_like(share)])
    means = np.array([shapes[band].mean(axis=0) for band in bands]) / levels[:, None]
    expected = shapes @ nnls(means, np.ones(NOISE_BANDS))[0] / np.log(2.0)
    np.testing.assert_allclose(_noise_floor(values, share), expected, rtol=1e-9)


# Of the signal: SciPy's own recursion is off by some 1e-12 of it where the cut-off is low.
ROUNDING = 1e-10


def walk(rows, samples, seed=0):
    return np.cumsum(np.random.default_rng(seed).normal(size=(rows, samples)), axis=1)


def check(x, order, cutoff, pad, keep):
    sections = butter(order, cutoff, output='sos')
    expected = sosfiltfilt(sections, x, axis=-1, padlen=pad)[..., ::keep]
    found = filter_without_phase(x, order, cutoff, pad, keep)
    atol = ROUNDING * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=atol)


@settings(deadline=None, max_examples=60)
@given(
    order=st.integers(1, 6),
    cutoff=st.floats(0.02, 0.9),
    samples=st.integers(2, 6 * BLOCK),
    share=st.floats(0.0, 1.0),
    keep=st.integers(1, 2 * BLOCK),
)
def test_it_is_the_recursion_of_scipy(order, cutoff, samples, share, keep):
    check(walk(2, samples), order, cutoff, round(share * (samples - 1)), keep)


@pytest.mark.parametrize(('order', 'cutoff'), [(4, 0.005), (10, 0.02), (5, 0.3)])
def test_low_cut_offs_and_high_orders(order, cutoff):
    check(walk(2, 9000), order, cutoff, 1200, 1)


def test_shapes_stay():
    x = walk(6, 500).reshape(2, 3, 500)
    whole = filter_without_phase(x, 4, 0.2, 30)
    assert whole.shape == x.shape and filter_without_phase(x, 4, 0.2, 30, 7).shape == (2, 3, 72)
    assert filter_without_phase(x[:0], 4, 0.2, 30, 7).shape == (0, 3, 72)
    np.testing.assert_allclose(filter_without_phase(x[1, 2], 4, 0.2, 30), whole[1, 2])
