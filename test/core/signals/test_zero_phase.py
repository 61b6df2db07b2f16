"""Filters as products of matrices are SciPy's recursion, whatever is kept of the result."""

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest
from scipy.signal import butter, sosfiltfilt

from robotid_ros.core.signals.filters import BLOCK, filter_without_phase

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
