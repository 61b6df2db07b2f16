"""The filter shifts no phase, passes a constant and a slope, and keeps one sample in so many."""

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

from robotid_ros.core.signals.filters import filter_without_phase


def walk(rows, samples, seed=0):
    return np.cumsum(np.random.default_rng(seed).normal(size=(rows, samples)), axis=1)


@settings(deadline=None, max_examples=60)
@given(
    order=st.integers(1, 6),
    cutoff=st.floats(0.02, 0.9),
    samples=st.integers(2, 400),
    share=st.floats(0.0, 1.0),
    keep=st.integers(1, 128),
)
def test_what_is_kept_is_of_the_whole_and_a_straight_line_passes(
    order, cutoff, samples, share, keep
):
    x, pad = walk(2, samples), round(share * (samples - 1))
    whole = filter_without_phase(x, order, cutoff, pad)
    found = filter_without_phase(x, order, cutoff, pad, keep)
    np.testing.assert_array_equal(found, whole[:, ::keep])
    level = np.full((1, samples), 3.0)
    np.testing.assert_allclose(filter_without_phase(level, order, cutoff, pad), level, rtol=1e-9)


@pytest.mark.parametrize(('order', 'cutoff'), [(4, 0.005), (10, 0.02), (5, 0.3)])
def test_a_sine_keeps_its_phase_and_loses_what_two_passes_take(order, cutoff):
    time = np.arange(9000)
    for share in (0.5, 1.0, 2.0):
        frequency = np.tan(0.5 * np.pi * cutoff) * share
        omega = 2.0 * np.arctan(frequency)
        gain = 1.0 / (1.0 + share ** (2 * order))
        found = filter_without_phase(np.sin(omega * time)[None], order, cutoff, 1200)[0]
        inner = slice(4000, 5000)
        np.testing.assert_allclose(found[inner], gain * np.sin(omega * time[inner]), atol=1e-6)


def test_shapes_stay():
    x = walk(6, 500).reshape(2, 3, 500)
    whole = filter_without_phase(x, 4, 0.2, 30)
    assert whole.shape == x.shape and filter_without_phase(x, 4, 0.2, 30, 7).shape == (2, 3, 72)
    assert filter_without_phase(x[:0], 4, 0.2, 30, 7).shape == (0, 3, 72)
    np.testing.assert_allclose(filter_without_phase(x[1, 2], 4, 0.2, 30), whole[1, 2])
