"""Periods: their noise, and a continuation that has no edge."""

import numpy as np
import pytest

from robotid_ros.core.signals.periodic import extend_periodically, noise_between_periods


@pytest.mark.parametrize('length', [40, 41])
def test_half_a_period_on_either_side_continues_it(length):
    phase = 2.0 * np.pi / length * np.arange(length)
    around = extend_periodically(np.sin(phase + 0.4)[:, None])[:, 0]
    half = length // 2
    steps = np.arange(-half, length + half)
    np.testing.assert_allclose(around, np.sin(2.0 * np.pi / length * steps + 0.4), atol=1e-12)


@pytest.mark.parametrize('count', [3, 8])
def test_noise_is_what_periods_differ_by(count):
    """The first period settles; of few others, degrees of freedom count."""
    rng = np.random.default_rng(2)
    wave = np.sin(2.0 * np.pi * np.arange(1000) / 1000)
    values = np.tile(wave, count)[:, None] + [0.1, 2.0] * rng.normal(size=(1000 * count, 2))
    values[:1000] += 5.0
    sigma = noise_between_periods(values, 500.0, 2.0)
    np.testing.assert_allclose(sigma, [0.1, 2.0], rtol=0.05)
    assert noise_between_periods(values[:1500], 500.0, 2.0) is None
