"""Mixing of steps: exact for a linear iteration with no more dimensions than steps."""

import numpy as np

from robotid_ros.core.replay.anderson_mixing import anderson_mixing


def test_a_linear_iteration_ends_at_its_fixed_point():
    A, c = np.array([[0.5, 0.1], [-0.2, 0.3]]), np.array([1.0, -2.0])
    values = [np.array([3.0, 1.0])]
    for _ in range(2):
        values.append(A @ values[-1] + c)
    fits = np.array([A @ value + c for value in values])
    found = anderson_mixing(np.array(values), fits, np.ones(2))
    np.testing.assert_allclose(found, np.linalg.solve(np.eye(2) - A, c), rtol=1e-9)


def test_units_of_parameters_do_not_matter():
    """With fewer steps than parameters the mixing weighs these by their σ."""
    values, fits = np.random.default_rng(1).normal(size=(2, 3, 5))
    sigma, units = np.array([0.1, 1.0, 2.0, 0.5, 3.0]), np.array([1.0, 1e3, 1e-2, 1.0, 50.0])
    found = anderson_mixing(values, fits, sigma)
    other = anderson_mixing(values * units, fits * units, sigma * units)
    np.testing.assert_allclose(other, found * units, rtol=1e-9)
