"""Essential parameters: what is dropped is small, and dropping is what a fit without it gives."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from robotid_ros.core.parameters.essential import (
    backward_elimination,
    effective_sample_size,
    find_essential,
    restrict,
)
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import Rows

LARGE, SMALL = (3.0, -2.0, 1.0), (0.0, 1e-4, 0.0, -1e-4)


def system(correlated=False, seed=0, rows=2000, values=LARGE + SMALL):
    rng = np.random.default_rng(seed)
    b = len(values)
    mixing = np.eye(b) + 0.2 * rng.normal(size=(b, b))
    W = rng.normal(size=(2, rows, b)) @ mixing
    if correlated:
        W = np.cumsum(W, axis=1) / 10.0
    noise = rng.normal(size=(2, rows + 19))
    if correlated:
        noise = np.array([np.convolve(x, np.ones(20) / np.sqrt(20.0), 'valid') for x in noise])
    Y = W @ np.array(values) + np.array([[0.3], [0.1]]) * noise[:, :rows]
    names = tuple('abcdefg'[:b])
    valid = np.ones((2, rows), dtype=bool)
    return Rows(names, ('1',) * b, ('j1', 'j2'), W, Y, valid, np.arange(rows) * 0.01)


def test_what_is_large_stays_and_what_is_small_goes():
    observed = system()
    found = find_essential(observed, fit(observed))
    assert list(found.indices) == [0, 1, 2]
    assert {step[0] for step in found.path} == set('defg')
    np.testing.assert_allclose(found.estimate.value, LARGE, rtol=0.02)
    assert np.all(found.estimate.relative_sigma < 10.0)


def test_dropping_is_what_a_fit_without_the_column_gives():
    observed = system()
    start = fit(observed, 'ols')
    kept, path = backward_elimination(start, 10.0, 0.05)
    refit = find_essential(observed, start, method='ols').estimate
    W, Y = observed.W.reshape(-1, 7), observed.Y.ravel()
    chi = np.linalg.lstsq(W[:, kept], Y, rcond=None)[0]
    np.testing.assert_allclose(refit.value, chi, rtol=1e-9)
    growth = np.linalg.norm(Y - W[:, kept] @ chi) / np.linalg.norm(Y - W @ start.value)
    np.testing.assert_allclose(path[-1][2], growth, rtol=1e-9)


@pytest.mark.parametrize('rows, share', [(30, 0.5), (30, 0.1), (4, 1.0)])
def test_what_is_dropped_passes_the_f_test_of_rows_that_count_as_independent(rows, share):
    """A part of the rows says the same as all, and at least one is left to judge by."""
    observed = system(rows=rows)
    W, Y = observed.W.reshape(-1, 7), observed.Y.ravel()
    start = fit(observed, 'ols')
    start = dataclasses.replace(start, covariance=start.classical / share)
    columns, path = list(observed.names), backward_elimination(start, 0.0, 0.0)[1]
    assert len(path) == 6
    left = np.linalg.lstsq(W, Y, rcond=None)[1][0]
    for dropped, (name, _, growth, p_value) in enumerate(path, 1):
        columns.remove(name)
        kept = [observed.names.index(each) for each in columns]
        more = np.linalg.lstsq(W[:, kept], Y, rcond=None)[1][0] - left
        statistic = share * more / dropped / (left / (len(Y) - 7))
        freedom = max(share * len(Y) - 7, 1)
        np.testing.assert_allclose(p_value, stats.f.sf(statistic, dropped, freedom), rtol=1e-6)
        np.testing.assert_allclose(growth, np.sqrt(1.0 + more / left), rtol=1e-9)


def test_parameters_that_are_zero_leave_what_a_fit_without_them_gives():
    observed, kept = system(), [0, 2, 3]
    start = fit(observed, 'ols')
    W, Y = observed.W.reshape(-1, 7), observed.Y.ravel()
    square = np.sum((Y - W @ start.value) ** 2) / (len(Y) - 7)
    W = W[:, kept]
    found = restrict(
        dataclasses.replace(start, covariance=start.classical), kept, observed.select(kept)
    )
    np.testing.assert_allclose(found.value, np.linalg.lstsq(W, Y, rcond=None)[0], rtol=1e-9)
    np.testing.assert_allclose(
        found.covariance, square * np.linalg.inv(W.T @ W), rtol=1e-9, atol=1e-12
    )


def test_essential_parameters_are_those_of_the_estimator():
    observed = system()
    found = find_essential(observed, fit(observed))
    alone = fit(observed.select(found.indices.tolist()))
    np.testing.assert_array_equal(found.estimate.covariance, alone.covariance)


def test_each_step_drops_the_largest_sigma_that_a_fit_then_has():
    observed = system(seed=3)
    start = fit(observed, 'ols')
    start = dataclasses.replace(start, covariance=start.classical)
    _, path = backward_elimination(start, 10.0, 0.05)
    assert path
    names = list(observed.names)
    for name, percent, _, _ in path:
        columns = [observed.names.index(n) for n in names]
        W = observed.W[:, :, columns].reshape(-1, len(columns))
        chi = np.linalg.lstsq(W, observed.Y.ravel(), rcond=None)[0]
        square = np.sum((observed.Y.ravel() - W @ chi) ** 2) / (len(W) - len(chi))
        sigma = np.sqrt(square * np.diag(np.linalg.inv(W.T @ W)))
        worst = int(np.argmax(sigma / np.abs(chi)))
        assert names[worst] == name
        np.testing.assert_allclose(percent, (100.0 * sigma / np.abs(chi))[worst], rtol=0.01)
        names.remove(name)


def test_a_significant_parameter_stays_though_its_sigma_is_large():
    values = (*LARGE, 0.05)
    found = fit(system(values=values, rows=400))
    assert found.relative_sigma[3] > 10.0
    kept, path = backward_elimination(found, 5.0, 0.05)
    assert (kept, path) == ([0, 1, 2, 3], [])
    kept, path = backward_elimination(found, 5.0, 0.0)
    assert kept == [0, 1, 2]
    assert path[0][3] < 0.01


def test_correlated_rows_count_less():
    white = effective_sample_size(fit(system(rows=4000)))
    correlated = effective_sample_size(fit(system(correlated=True, rows=4000)))
    assert white > 0.8 * 8000
    assert correlated < 0.3 * 8000


def test_a_variance_that_rounding_has_taken_is_kept():
    found = fit(system())
    classical = found.classical.copy()
    classical[3, 3] = -1e-3 * classical[4, 4]
    kept, path = backward_elimination(dataclasses.replace(found, classical=classical), 10.0, 0.0)
    assert 3 in kept
    assert all(np.isfinite(step[1:]).all() for step in path)
