"""Periods: their noise, and their average; interpolation between samples."""

import numpy as np
import pytest

from robotid_ros.core.signals.preparation import (
    average_periods,
    noise_between_periods,
    split_periods,
)
from robotid_ros.core.signals.recording import Recording


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


@pytest.mark.parametrize('count', [2, 5])
def test_the_average_goes_on_in_time_on_either_side_of_the_period(count):
    """A motion without noise is its own average, whose first period settles."""
    rate, period, began = 50.0, 2.0, 7.0
    time = began + np.arange(round(count * period * rate)) / rate
    wave = np.sin(np.pi * (time - began) + 0.4)[:, None]
    settling = 5.0 * (time < began + period)[:, None] * (count > 2)
    made = Recording(('j',), time, wave + settling, 2.0 * wave + settling)
    average, found, own = average_periods(made, rate, period)
    assert found == pytest.approx(rate)
    np.testing.assert_allclose(average.time, began - 1.0 + np.arange(200) / rate)
    np.testing.assert_array_equal(
        own, (average.time > began - 1e-6) & (average.time < began + period - 1e-6)
    )
    np.testing.assert_allclose(
        average.position[:, 0], np.sin(np.pi * (average.time - began) + 0.4), atol=1e-9
    )
    np.testing.assert_allclose(average.effort, 2.0 * average.position, atol=1e-9)


@pytest.mark.parametrize('rate', [100.0, 100.4])
def test_periods_between_samples_are_interpolated(rate):
    line = np.arange(1000)[:, None] / rate * [1.0, -2.0]
    found = split_periods(line, rate, 2.5)
    assert found.shape == ((4 if rate == 100.0 else 3), int(2.5 * rate), 2)
    start = 2.5 * np.arange(len(found))[:, None]
    expected = start + 2.5 / found.shape[1] * np.arange(found.shape[1])
    np.testing.assert_allclose(found, expected[:, :, None] * [1.0, -2.0], atol=1e-9)
