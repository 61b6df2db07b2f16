"""σ where blocks of time differ, and where the model leaves out what repeats in all of them."""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy.signal import lfilter

from robotid_ros.core.parameters.essential import effective_sample_size
from robotid_ros.core.regression import covariance
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.model_error import COLUMNS, GROUPS, ModelErrors
from robotid_ros.core.regression.observation_system import Rows, TriangularFactors

TRUTH = np.array([1.5, -0.7, 2.0])
LOAD = int(np.flatnonzero(GROUPS == 1)[0])
ROWS = 960


def system(seed=0, noise=0.1, left_out=0.0):
    """Return two joints that repeat a motion; something that leans on a column is left out."""
    rng = np.random.default_rng(seed)
    time = np.arange(ROWS) * 0.02
    phase = np.random.default_rng(9).uniform(0.0, 6.0, (2, COLUMNS + 3))
    waves = np.sin(2.0 * np.pi * 0.5 * time[:, None] * np.arange(1, COLUMNS + 4) + phase[:, None])
    W, D = waves[:, :, :3], waves[:, :, 3:].copy()
    D[:, :, LOAD] += 2.0 * W[:, :, 0]
    level = noise * np.array([[1.0], [0.3]])
    Y = W @ TRUTH + left_out * D[:, :, LOAD] + level * rng.normal(size=(2, ROWS))
    valid = np.ones(Y.shape, dtype=bool)
    valid[1, 100:250] = False
    names = ('a', 'b', 'c')
    return Rows(names, ('1',) * 3, ('j1', 'j2'), W, Y, valid, time, Z=W.copy(), D=D)


def without(some, rows):
    valid = some.valid.copy()
    valid[:, rows] = False
    return dataclasses.replace(some, valid=valid, D=None)


def in_factors(some):
    """Return the same rows as triangular factors of three chunks."""
    factors = TriangularFactors()
    for part in np.array_split(np.arange(ROWS), 3):
        fields = {k: getattr(some, k)[:, part] for k in ('W', 'Y', 'valid', 'D', 'Z')}
        factors.add(dataclasses.replace(some, time=some.time[part], **fields))
    return factors.system(some)


def test_the_jackknife_is_the_fit_without_each_block(monkeypatch):
    monkeypatch.setattr(covariance, 'TAKEN', 1.0)
    some = dataclasses.replace(system(noise=0.5), D=None)
    whole = fit(some, 'ols').value
    count = covariance.count_blocks(some, whole)
    assert count == 19
    edges = np.linspace(0, ROWS, count + 1).astype(int)
    changes = np.array(
        [
            fit(without(some, slice(a, b)), 'ols').value - whole
            for a, b in itertools.pairwise(edges)
        ]
    )
    rows = [some.rows(j) for j in range(2)]
    weights = [np.ones(len(y)) for _, y in rows]
    (products,) = covariance.cluster_products(some, whole, [w for w, _ in rows], weights)
    bread = np.linalg.inv(sum(w.T @ w for w, _ in rows))
    share = (count - 1) / count
    np.testing.assert_allclose(
        covariance.jackknife(*products, bread), share * changes.T @ changes, rtol=1e-8
    )


def test_a_parameter_of_one_block_alone_keeps_a_finite_sigma():
    some = dataclasses.replace(system(), D=None)
    W = some.W.copy()
    W[:, 60:, 1] = 0.0
    estimate = fit(dataclasses.replace(some, W=W, Y=W @ TRUTH + some.Y - some.W @ TRUTH), 'ols')
    white = np.sqrt(np.diag(estimate.classical))
    assert np.all(estimate.sigma < 5.0 * white) and np.all(estimate.sigma >= white)


@pytest.mark.parametrize('method', ['ols', 'wls', 'mle', 'irls', 'iv'])
def test_without_noise_the_model_error_is_the_error(method):
    some = dataclasses.replace(system(noise=1e-6, left_out=0.2), noise=np.array([1.0, 0.5]))
    estimate = fit(some, method)
    error = estimate.value - TRUTH
    assert abs(error[0]) > 0.2
    np.testing.assert_allclose(
        estimate.model_error, np.outer(error, error), atol=0.01 * error[0] ** 2
    )


@pytest.mark.parametrize('method', ['ols', 'wls'])
def test_truths_are_within_sigma_though_the_model_leaves_something_out(method):
    inside, without_it = [], []
    for seed in range(100):
        estimate = fit(system(seed, left_out=0.04), method)
        error = np.abs(estimate.value - TRUTH)
        inside.append(error <= 3.0 * estimate.sigma)
        without_it.append(error <= 3.0 * np.sqrt(np.diag(estimate.noise_covariance)))
    assert np.mean(inside, axis=0).min() >= 0.95
    assert np.mean(without_it, axis=0).min() < 0.2


@pytest.mark.parametrize('method', ['ols', 'wls'])
def test_where_the_model_is_right_sigma_stays(method):
    fits = [fit(system(seed), method) for seed in range(60)]
    ratio = [e.sigma / np.sqrt(np.diag(e.classical)) for e in fits]
    assert np.median(ratio) < 1.2 and np.mean(ratio) < 1.3
    errors = np.array([np.abs(e.value - TRUTH) / e.sigma for e in fits])
    assert np.mean(errors <= 3.0) > 0.97


def test_factors_of_chunks_count_the_same_model_error():
    some = system(left_out=0.05)
    one, other = fit(some), fit(in_factors(some))
    np.testing.assert_allclose(other.value, one.value, rtol=1e-9)
    np.testing.assert_allclose(other.classical, one.classical, rtol=1e-8)
    np.testing.assert_allclose(np.diag(other.model_error), np.diag(one.model_error), rtol=0.1)
    assert 0.5 < np.sqrt(other.noise_covariance[1, 1] / one.noise_covariance[1, 1]) < 2.0


def test_fewer_parameters_still_count_it_and_rows_stay_as_many():
    some = system(left_out=0.05)
    some = dataclasses.replace(some, Y=some.Y - TRUTH[1] * some.W[:, :, 1])
    for each in (some, in_factors(some)):
        assert fit(each.select([0, 2])).model_error[0, 0] > 0.0
    estimate = fit(some)
    right = dataclasses.replace(estimate, covariance=estimate.noise_covariance, model_error=None)
    assert effective_sample_size(estimate) == pytest.approx(effective_sample_size(right))


def test_noise_that_remembers_is_taken_for_no_model_error():
    """A memory of 0.1 s alone makes six of ten fits look wrong where rows count as independent."""
    taps, counted = np.exp(-np.arange(0.0, 0.5, 0.02) / 0.1), 0
    for seed in range(10):
        white = np.random.default_rng(seed).normal(size=(2, ROWS + len(taps) - 1))
        noise = np.array([np.convolve(row, taps, 'valid') for row in white])
        some = system(noise=0.0)
        estimate = fit(dataclasses.replace(some, Y=some.Y + 0.1 * noise), 'ols')
        counted += bool(estimate.model_error.any())
    assert counted <= 1


def wandering(seed, memory=3.0, step=0.05, rows=600):
    """Return a joint with an offset, whose zero wanders: 30 s, and the memory of the noise."""
    rng, time = np.random.default_rng(seed), step * np.arange(rows)
    W = np.column_stack([np.ones(rows), *(np.sin(0.7 * k * time + k) for k in range(1, 5))])
    keep = np.exp(-step / memory)
    noise = lfilter([np.sqrt(1.0 - keep**2)], [1.0, -keep], rng.normal(size=rows + 2000))[2000:]
    errors = ModelErrors(*(np.ones(1), np.zeros(1), np.ones(1)), 15.0, 30.0, np.zeros(5))
    names, Y = tuple('abcde'), 0.1 * noise + 0.02 * rng.normal(size=rows)
    valid = np.ones((1, rows), dtype=bool)
    some = Rows(names, ('1',) * 5, ('j',), W[None], Y[None], valid, time)
    q, dq = np.sin(0.7 * time), np.cos(0.7 * time)
    return dataclasses.replace(some, D=errors.columns(0, q, dq, some)[None])


def test_an_offset_counts_the_waves_of_a_zero_that_wanders():
    """Three seconds of memory leave five independent values in 30 s, and the fit takes one."""
    inside, without_it, stated, errors = [], [], [], []
    for seed in range(60):
        some = wandering(seed)
        counted, residuals = fit(some), fit(dataclasses.replace(some, D=None))
        inside.append(abs(counted.value[0]) <= 3.0 * counted.sigma[0])
        without_it.append(abs(residuals.value[0]) <= 3.0 * residuals.sigma[0])
        stated.append(counted.model_error[0, 0])
        errors.append(counted.value[0] ** 2)
    assert np.mean(inside) >= 0.92 > 0.87 > np.mean(without_it)
    assert 0.3 < np.mean(stated) / np.mean(errors) < 2.0


def test_friction_by_load_that_one_joint_shows_counts_in_one_that_does_not():
    """In the second joint it is a parameter's column but for a thousandth of it."""
    some = system()
    W, D = some.W.copy(), some.D.copy()
    W[0, :, 1] = 0.0
    D[1, :, LOAD] = W[1, :, 1] + 1e-3 * D[1, :, LOAD]
    right = W @ TRUTH + some.Y - some.W @ TRUTH
    some = dataclasses.replace(some, W=W, D=D, Y=right + 0.05 * D[:, :, LOAD])
    found, nothing = (fit(each, 'ols') for each in (some, dataclasses.replace(some, Y=right)))
    assert abs(found.value[1] - TRUTH[1]) == pytest.approx(0.05, rel=0.5)
    assert 0.03 < np.sqrt(found.model_error[1, 1]) < 0.1
    assert nothing.model_error[1, 1] == 0.0
