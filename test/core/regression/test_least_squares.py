"""Solvers against their definitions; columns that depend on each other are named."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.least_squares import (
    least_squares,
    project_out,
    scaled_least_squares,
    total_least_squares,
)
from robotid_ros.core.regression.observation_system import Rows
from robotid_ros.exceptions import RankDeficientError

from .test_estimators import system, TRUTH


def test_total_least_squares_is_the_null_vector_of_the_joined_matrix():
    rng = np.random.default_rng(3)
    W = rng.normal(size=(200, 3)) * [1.0, 10.0, 0.1]
    Y = W @ [1.0, -0.2, 30.0] + 0.3 * rng.normal(size=200)
    scale, length = 1.0 / np.linalg.norm(W, axis=0), np.linalg.norm(Y)
    null = np.linalg.svd(np.column_stack([W * scale, Y / length]))[2][-1]
    expected = -null[:-1] / null[-1] * scale * length
    np.testing.assert_allclose(total_least_squares(W, Y).value, expected, rtol=1e-8)


def test_total_least_squares_of_exact_data_has_the_covariance_of_least_squares():
    W = np.random.default_rng(0).normal(size=(50, 3)) @ np.array([[1, 0, 0], [1, 1, 0], [1, 1, 9]])
    bread = total_least_squares(W, W @ TRUTH[:3]).bread
    np.testing.assert_allclose(bread, np.linalg.inv(W.T @ W), rtol=1e-6)


def test_least_squares_is_the_pseudo_inverse():
    rng = np.random.default_rng(4)
    W, Y = rng.normal(size=(60, 5)), rng.normal(size=60)
    solution = least_squares(W, Y)
    np.testing.assert_allclose(solution.value, np.linalg.pinv(W) @ Y)
    np.testing.assert_allclose(solution.bread, np.linalg.inv(W.T @ W))


def test_scaled_least_squares_does_not_depend_on_units_and_leaves_out_what_is_not_there():
    A, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30.0)
    units = np.array([1e-5, 1.0, 1e5, 0.0])
    expected = [*np.linalg.lstsq(A[:, :3], y, rcond=None)[0], 0.0]
    found = scaled_least_squares(A * units, y)
    np.testing.assert_allclose(found * [*units[:3], 1.0], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize('method', ['ols', 'tls', 'iv'])
@pytest.mark.parametrize('units', [1.0, 1e6])
def test_columns_that_depend_on_each_other_are_named(method, units):
    """Sixteen that sum to zero among twenty: each has a quarter of the weakest direction."""
    rng = np.random.default_rng(9)
    W = rng.normal(size=(1, 200, 20))
    own = np.linalg.qr(W[0, :, :16])[0]
    W[0, :, :16] = own - own.mean(axis=1, keepdims=True)
    W[0, :, 3] *= units
    W[0, :, 18] *= units
    names = tuple('abcdefghijklmnopqrst')
    some = Rows(
        names, ('',) * 20, ('j',), W, rng.normal(size=(1, 200)), np.ones((1, 200), dtype=bool),
        np.arange(200.0), Z=W,
    )  # fmt: skip
    with pytest.raises(RankDeficientError) as found:
        fit(some, method)
    assert found.value.names == names[:16]


@pytest.mark.parametrize('method', ['ols', 'tls', 'iv'])
@pytest.mark.parametrize('column', [0, 2, 3])
def test_a_column_of_zeros_is_named_and_nothing_overflows(method, column):
    W = system(10).W.copy()
    W[:, :, column] = 0.0
    some = dataclasses.replace(system(10), W=W, Z=W)
    with np.errstate(all='raise'), pytest.raises(RankDeficientError) as found:
        fit(some, method)
    assert found.value.names == (some.names[column],)


def test_rank_is_that_of_columns_of_length_one_over_the_largest_singular_value():
    """Two columns at an angle α have the singular values √2 and α/√2: 2·10⁻¹² is too little."""
    W, valid = np.zeros((1, 4, 2)), np.ones((1, 4), dtype=bool)
    for angle, enough in ((1.7e-12, False), (2.3e-12, True)):
        W[0, 0], W[0, 1, 1] = 1.0, angle
        some = Rows(('a', 'b'), ('',) * 2, ('j',), W.copy(), W[:, :, 0], valid, np.arange(4.0))
        if enough:
            fit(some, 'ols')
        else:
            with pytest.raises(RankDeficientError, match='a, b'):
                fit(some, 'ols')


def test_instruments_that_stand_still_are_no_instruments():
    some = system(11)
    Z = some.Z.copy()
    Z[:, :, 2] = 0.0
    with pytest.raises(RankDeficientError):
        fit(dataclasses.replace(some, Z=Z), 'iv')


@pytest.mark.parametrize('units', [[1.0, 1.0, 1.0, 1.0], [1e-5, 1.0, 1e5, 3.0]])
def test_what_is_projected_out_leaves_the_orthogonal_rest(units):
    rng = np.random.default_rng(12)
    columns, x = rng.normal(size=(30, 4)), rng.normal(size=(30, 2))
    columns[:, 3] = columns[:, 0] - columns[:, 1]
    rounding = 1e-18 * rng.normal(size=(30, 1))  # explains nothing, however it is scaled
    project = project_out(np.hstack([columns * units, np.zeros((30, 1)), rounding]), 1e-9)
    rest = project(x)
    np.testing.assert_allclose(columns.T @ rest, 0.0, atol=1e-12)
    taken = x - rest
    np.testing.assert_allclose(columns @ np.linalg.lstsq(columns, taken)[0], taken, atol=1e-12)
    np.testing.assert_allclose(project(columns), 0.0, atol=1e-12)


def test_columns_of_rounding_explain_nothing():
    rng = np.random.default_rng(13)
    A, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    rounding = 1e-17 * rng.normal(size=(20, 9))
    found = scaled_least_squares(np.hstack([A, rounding]), y)
    np.testing.assert_allclose(found[:3], np.linalg.lstsq(A, y)[0], rtol=1e-12)
    np.testing.assert_array_equal(found[3:], 0.0)
