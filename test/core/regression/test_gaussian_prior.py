"""A prior in the fit: Bayes' rule for normal distributions."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.model_error import COLUMNS
from robotid_ros.core.regression.observation_system import GaussianPrior, Rows

TRUE = np.array([2.0, -1.0, 0.5, 3.0])


def system_of(unseen=(), noise=0.1, seed=3):
    """Return two joints' rows of four parameters; columns of `unseen` are zero."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(2, 400, 4))
    W[:, :, list(unseen)] = 0.0
    Y = W @ TRUE + noise * rng.normal(size=(2, 400)) * np.array([[1.0], [5.0]])
    names = tuple('abcd')
    return Rows(names, ('',) * 4, ('j', 'k'), W, Y, np.ones(Y.shape, bool), np.arange(400.0))


def prior_of(seed=5):
    root = np.random.default_rng(seed).normal(size=(4, 4))
    return GaussianPrior(np.array([1.0, 0.0, 2.0, 1.0]), root @ root.T)


def test_whitening_is_a_root_of_the_precision():
    prior = prior_of()
    expected = np.linalg.inv(prior.covariance)
    np.testing.assert_allclose(prior.whitening.T @ prior.whitening, expected, rtol=1e-9)


@pytest.mark.parametrize('method', ['wls', 'mle'])
def test_estimate_is_the_posterior_mean(method):
    system, prior = dataclasses.replace(system_of(), noise=np.array([0.2, 0.3])), prior_of()
    found = fit(dataclasses.replace(system, prior=prior), method)
    own = [_own_sigma(*system.rows(j)) for j in range(2)]
    sigma = own if method == 'wls' else system.noise
    gram = sum(w.T @ w / s**2 for (w, _), s in zip(map(system.rows, range(2)), sigma, strict=True))
    right = sum(
        w.T @ y / s**2 for (w, y), s in zip(map(system.rows, range(2)), sigma, strict=True)
    )
    precision = np.linalg.inv(prior.covariance)
    mean = np.linalg.solve(gram + precision, right + precision @ prior.mean)
    np.testing.assert_allclose(found.value, mean, rtol=1e-9)


def _own_sigma(w, y):
    chi = np.linalg.lstsq(w, y, rcond=None)[0]
    return np.linalg.norm(y - w @ chi) / np.sqrt(len(y) - w.shape[1])


@pytest.mark.parametrize('count', [1, 2, 3, 5])
def test_a_joint_with_few_rows_is_not_fitted_exactly_beside_a_prior(count):
    """Its own columns would pass through its rows, which would then seem to have no noise."""
    prior = GaussianPrior(TRUE, np.diag([1.0, 1.0, 0.5, 0.5]) ** 2)
    within = []
    for seed in range(100):
        system, rng = system_of(noise=0.0), np.random.default_rng(seed)
        W = system.W * np.array([[[1.0, 1.0, 0.0, 0.0]], [[0.0, 0.0, 1.0, 1.0]]])
        true = TRUE + np.array([0.0, 0.0, 0.5, 0.5]) * rng.normal(size=4)
        Y = W @ true + 0.5 * rng.normal(size=system.Y.shape)
        valid = np.array([np.ones(400, bool), np.arange(400) < count])
        found = fit(dataclasses.replace(system, W=W, Y=Y, valid=valid, prior=prior), 'wls')
        within.append(np.abs(found.value - true)[2:] <= 3.0 * found.sigma[2:])
    assert np.mean(within) > 0.95


def test_what_no_row_shows_stays_exactly_at_an_independent_prior():
    spread = np.array([10.0, 0.2, 30.0, 0.4])
    prior = GaussianPrior(np.array([9.0, 8.0, 7.0, 6.0]), np.diag(spread**2))
    found = fit(dataclasses.replace(system_of(unseen=[1, 3]), prior=prior), 'wls')
    np.testing.assert_allclose(found.value[[1, 3]], [8.0, 6.0], rtol=1e-12)
    np.testing.assert_allclose(found.sigma[[1, 3]], spread[[1, 3]], rtol=1e-9)
    assert found.from_prior == (1, 3)
    np.testing.assert_allclose(np.diag(found.classical)[[1, 3]], spread[[1, 3]] ** 2, rtol=1e-9)
    seen = fit(system_of(unseen=[1, 3]).select([0, 2]), 'wls')
    np.testing.assert_allclose(found.value[[0, 2]], seen.value, atol=0.05 * seen.sigma.min())
    np.testing.assert_allclose(found.sigma[[0, 2]], seen.sigma, rtol=0.01)


def test_rows_without_a_scale_are_not_weighed_against_a_prior():
    system = system_of()
    both = dataclasses.replace(system, prior=prior_of())
    np.testing.assert_array_equal(fit(both, 'ols').value, fit(system, 'ols').value)


def test_where_the_prior_knows_all_every_covariance_is_its_own():
    prior = GaussianPrior(TRUE, 1e-8 * prior_of().covariance)
    some = dataclasses.replace(system_of(), D=np.zeros((2, 400, COLUMNS)), prior=prior)
    found = fit(some, 'wls')
    for known in (found.covariance, found.classical, found.noise_covariance):
        np.testing.assert_allclose(np.diag(known), np.diag(prior.covariance), rtol=0.05)


@pytest.mark.parametrize('noise', [1e-3, 0.1])
def test_a_wide_prior_changes_nothing_that_rows_show(noise):
    system, prior = system_of(noise=noise), prior_of()
    prior = dataclasses.replace(prior, covariance=100.0 * prior.covariance)
    plain, found = (fit(s, 'wls') for s in (system, dataclasses.replace(system, prior=prior)))
    assert np.all(np.abs(found.value - plain.value) < 0.1 * plain.sigma)
    assert found.from_prior == ()
    assert plain.from_prior == ()
