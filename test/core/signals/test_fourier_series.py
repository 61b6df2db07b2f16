"""Fourier series: orthonormal, its derivatives, and as many harmonics as a motion has."""

import numpy as np
import pytest

from robotid_ros.core.signals.periodic import (
    AveragePeriod,
    count_harmonics,
    fourier_bases,
    HARMONICS_FACTOR,
    lowest_harmonics,
    MAX_UNKNOWNS,
    MIN_HARMONICS,
)


def test_columns_are_orthonormal_and_each_the_derivative_of_the_one_before():
    period, count, harmonics = 4.0, 60, 7
    time = 1.3 + period / count * np.arange(count)
    value, first, second = fourier_bases(time, period, harmonics, count)
    np.testing.assert_allclose(value.T @ value, np.eye(2 * harmonics + 1), atol=1e-12)
    step = 1e-4
    for k, derivative in enumerate((first, second)):
        before, behind = (
            fourier_bases(time + h, period, harmonics, count)[k] for h in (-step, step)
        )
        expected = (behind - before) / (2.0 * step)
        np.testing.assert_allclose(derivative, expected, atol=1e-5 * np.abs(expected).max())
    waves = np.cos(2.0 * np.pi / period * np.outer(time, np.arange(harmonics + 1)))
    kept = np.column_stack([value[:, : harmonics + 1], waves])
    assert np.linalg.matrix_rank(kept, tol=1e-8) == harmonics + 1


def test_the_lowest_harmonics_are_the_series_of_fewer():
    time = np.linspace(0.0, 1.0, 50)
    all_of_them, fewer = (fourier_bases(time, 1.0, n, 50)[0] for n in (9, 4))
    np.testing.assert_array_equal(all_of_them[:, lowest_harmonics(9, 4)], fewer)


def periods(last, size, sigma, count=4000, joints=2):
    """Return a slow motion, the second joint's with one more harmonic of this amplitude."""
    phase = 2.0 * np.pi / count * np.arange(count)[:, None]
    position = np.sin(phase) * np.ones(joints)
    position[:, 1:2] += size * np.cos(last * phase + 0.3)
    return AveragePeriod(position, 0.0 * position, sigma * np.ones(joints), 5.0)


@pytest.mark.parametrize('sigma', [1e-6, 1e-3])
def test_harmonics_are_twice_the_last_that_stands_out_by_five_sigmas(sigma):
    """An amplitude a has the standard deviation √(2/K) σ."""
    least = 5.0 * sigma * np.sqrt(2.0 / 4000)
    wanted = int(HARMONICS_FACTOR * 90)
    assert count_harmonics(periods(90, 1.1 * least, sigma)) == wanted
    assert count_harmonics(periods(90, 0.9 * least, sigma)) == MIN_HARMONICS
    assert count_harmonics(periods(90, 1.0, sigma, joints=10)) == MAX_UNKNOWNS // 20
    assert count_harmonics(periods(90, 1.0, sigma, count=400)) == 50
