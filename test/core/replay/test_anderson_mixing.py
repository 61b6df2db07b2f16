"""Mixing of steps: exact for a linear iteration with no more dimensions than steps."""

import numpy as np
import pytest

from robotid_ros.core.replay.iteration_step import anderson_mixing, MAX_MIXING_WEIGHT


@pytest.mark.parametrize('sigma', [1.0, 0.0])
@pytest.mark.parametrize('first', [1.0, -1.0])
def test_a_linear_iteration_ends_at_its_fixed_point(first, sigma):
    """Also one without noise, whose σ are 0, and whatever the signs of its parameters."""
    A, c = np.array([[0.5, 0.1], [-0.2, 0.3]]), np.array([first, -2.0])
    values = [np.array([3.0, 1.0]) * first]
    for _ in range(2):
        values.append(A @ values[-1] + c)
    fits = np.array([A @ value + c for value in values])
    found = anderson_mixing(np.array(values), fits, np.full(2, sigma))
    np.testing.assert_allclose(found, np.linalg.solve(np.eye(2) - A, c), rtol=1e-9)


def test_units_of_parameters_do_not_matter():
    """With fewer steps than parameters the mixing weighs these by their σ."""
    values, fits = np.random.default_rng(1).normal(size=(2, 3, 5))
    sigma, units = np.array([0.1, 1.0, 2.0, 0.5, 3.0]), np.array([1.0, 1e3, 1e-2, 1.0, 50.0])
    found = anderson_mixing(values, fits, sigma)
    other = anderson_mixing(values * units, fits * units, sigma * units)
    np.testing.assert_allclose(other, found * units, rtol=1e-9)


@pytest.mark.parametrize('sign', [(1.0, 1.0), (1.0, -1.0), (-1.0, -1.0)])
def test_steps_that_are_nearly_parallel_are_not_extrapolated(sign):
    """f_2 is γ_1 and γ_2 of the two differences before it: large γ are refused, of any sign."""
    values, differences = np.zeros((3, 2)), np.array([[1.0, 0.0], [0.5, 1.0]])
    for share in (0.49, 0.51):
        weights = share * MAX_MIXING_WEIGHT * np.array(sign)
        last = weights @ differences
        fits = np.array([last - differences.sum(axis=0), last - differences[1], last])
        found = anderson_mixing(values, fits, np.ones(2))
        if share > 0.5:
            assert found is None
        else:
            np.testing.assert_allclose(found, 0.0, atol=1e-12)
