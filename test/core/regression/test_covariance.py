"""Covariances stay such when rounding, or too few rows, would make them none."""

import numpy as np
import pytest

from robotid_ros.core.regression.covariance import jackknife, propagated, with_minimum_variance


def test_propagation_is_that_of_a_covariance():
    rng = np.random.default_rng(0)
    bread, root = rng.normal(size=(2, 6, 6))
    expected = bread @ (root @ root.T) @ bread.T
    np.testing.assert_allclose(propagated(bread, root @ root.T), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize('seed', range(20))
def test_no_variance_is_negative_where_columns_nearly_depend(seed: int):
    """Two columns differ by 1e-8 of their length: their normal matrix has a condition of 1e16."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(16, 5))
    W[:, 4] = W[:, 3] + 1e-8 * rng.normal(size=16)
    white = W.T @ W
    assert (np.diag(propagated(np.linalg.pinv(white, rcond=1e-17), white)) >= 0.0).all()


def test_one_block_leaves_the_variances_of_white_noise():
    rng = np.random.default_rng(1)
    W = rng.normal(size=(1, 30, 4))
    normals, scores = np.swapaxes(W, 1, 2) @ W, rng.normal(size=(1, 4))
    bread = np.linalg.inv(normals[0])
    white = np.array([1.0, 2.0, 3.0, 4.0])
    found = with_minimum_variance(jackknife(normals, scores, bread), white)
    np.testing.assert_array_equal(found, np.diag(white))
