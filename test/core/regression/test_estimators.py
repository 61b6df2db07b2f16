"""The variants of the fit, each against what it is made for."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.regression.covariance import count_blocks
from robotid_ros.core.regression.estimators import fit, WHITEN
from robotid_ros.core.regression.least_squares import (
    least_squares,
    scaled_least_squares,
    total_least_squares,
)
from robotid_ros.core.regression.observation_system import decimate, NOISE_BAND, System
from robotid_ros.exceptions import RecordingError

TRUTH = np.array([1.5, -0.7, 0.2, 3.0])


def system(seed=0, rows=800, noise=(0.0, 0.0), errors=0.0):
    """Return two joints' rows with noise in Y, and errors in W that the instruments lack."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(2, rows, 4))
    Y = W @ TRUTH + np.array(noise)[:, None] * rng.normal(size=(2, rows))
    measured = W + errors * rng.normal(size=W.shape)
    names = ('a', 'b', 'c', 'd')
    valid = np.ones((2, rows), dtype=bool)
    return System(
        names, ('1',) * 4, ('j1', 'j2'), np.arange(rows) * 0.01, measured, Y, valid,
        np.maximum(noise, 1e-9), W,
    )  # fmt: skip


@pytest.mark.parametrize('method', sorted(WHITEN))
def test_every_method_finds_the_truth_in_exact_data(method):
    estimate = fit(system(), method)
    np.testing.assert_allclose(estimate.value, TRUTH, rtol=1e-8)
    assert estimate.method == method


def test_each_joint_has_the_sigma_of_its_own_residual():
    rows = system(1, 300, (0.3, 0.1))
    estimate = fit(rows, 'wls')
    rms = np.sqrt(np.mean((rows.Y - rows.predict(estimate.value)) ** 2, axis=1))
    np.testing.assert_allclose(estimate.sigma_torque, rms)


@pytest.mark.parametrize('method', sorted(WHITEN))
def test_every_method_states_an_honest_sigma(method):
    draws = [fit(system(seed, 300, (0.3, 0.1)), method) for seed in range(80)]
    values = np.array([d.value for d in draws])
    for which in ('covariance', 'classical'):
        stated = np.sqrt(np.mean([np.diag(getattr(d, which)) for d in draws], axis=0))
        ratio = stated / values.std(axis=0, ddof=1)
        assert np.all((ratio > 0.7) & (ratio < 1.4)), which
    assert np.all(np.abs(values.mean(axis=0) - TRUTH) < 5 * values.std(axis=0) / np.sqrt(80))


def test_weights_lower_the_variance():
    spread = {
        method: np.std([fit(system(s, 200, (1.0, 0.05)), method).value for s in range(40)], axis=0)
        for method in ('ols', 'wls', 'mle')
    }
    assert np.all(spread['wls'] < 0.5 * spread['ols'])
    np.testing.assert_allclose(spread['wls'], spread['mle'], rtol=0.2)


def test_outliers_hardly_move_the_robust_fit():
    clean = system(1, 800, (0.1, 0.1))
    Y = clean.Y.copy()
    Y[:, ::20] += 10.0 * clean.W[:, ::20, 0]
    spoiled = dataclasses.replace(clean, Y=Y)
    error = {m: np.abs(fit(spoiled, m).value - TRUTH).max() for m in ('wls', 'irls')}
    assert error['irls'] < 0.05 < 0.1 < error['wls']


def test_errors_in_the_columns_bias_least_squares_but_not_instruments():
    noisy = system(2, 20000, (0.01, 0.01), errors=0.3)
    bias = {m: np.abs(fit(noisy, m).value - TRUTH).max() for m in ('ols', 'iv')}
    assert bias['ols'] > 0.1
    assert bias['iv'] < 0.05


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
    units = np.array([1e-8, 1.0, 1e6, 0.0])
    expected = [*np.linalg.lstsq(A[:, :3], y, rcond=None)[0], 0.0]
    found = scaled_least_squares(A * units, y)
    np.testing.assert_allclose(found * [*units[:3], 1.0], expected, rtol=1e-9, atol=1e-12)


def test_iterated_weights_are_a_fixed_point():
    noisy = system(5, 500, (1.0, 0.1))
    estimate = fit(noisy, 'wls', iterations=50)
    sigma = [np.sqrt(np.mean((y - w @ estimate.value) ** 2)) for w, y in map(noisy.rows, range(2))]
    known = dataclasses.replace(noisy, noise=np.array(sigma))
    np.testing.assert_allclose(fit(known, 'mle').value, estimate.value, rtol=1e-5)


@pytest.mark.parametrize(('method', 'missing'), [('mle', 'noise'), ('iv', 'Z')])
def test_what_a_method_needs_is_said(method, missing):
    with pytest.raises(RecordingError, match=method):
        fit(dataclasses.replace(system(), **{missing: None}), method)


def remembering(seed, share, rows=2000, memory=0.2):
    """Return the joints' rows with noise that remembers [s], a share of it on all of them."""
    rng = np.random.default_rng(seed)
    clean = system(1, rows)
    taps = np.exp(-np.arange(0.0, 5.0 * memory, 0.01) / memory)
    white = rng.normal(size=(3, rows + len(taps) - 1))
    noise = np.array([np.convolve(w, taps, 'valid') for w in white])
    W = np.cumsum(clean.W, axis=1) / 10.0  # slow columns: white ones would average it out
    both = np.sqrt(1.0 - share) * noise[:2] + np.sqrt(share) * noise[2]
    return dataclasses.replace(clean, W=W, Y=W @ TRUTH + 0.1 * both)


@pytest.mark.parametrize('share', [0.0, 0.9])
def test_sigma_counts_noise_that_correlates_in_time_and_across_joints(share):
    draws = [fit(remembering(seed, share), 'ols') for seed in range(60)]
    observed = np.std([d.value for d in draws], axis=0, ddof=1)
    stated, white = (
        np.sqrt(np.mean([np.diag(getattr(d, which)) for d in draws], axis=0)) / observed
        for which in ('covariance', 'classical')
    )
    assert np.all((stated > 0.7) & (stated < 1.5))
    assert np.all(white < 0.5)


@pytest.mark.parametrize('step', [0.01, 0.001])
def test_blocks_are_counted_in_seconds(step):
    """Twice as many rows a second are not twice as many blocks."""
    one = system(2, round(60.0 / step), (0.3, 0.3))
    time = step * np.arange(len(one.time))
    assert 50 <= count_blocks(dataclasses.replace(one, time=time), TRUTH) <= 60


def test_blocks_are_enough_for_a_covariance_and_no_more_than_rows():
    """However long residuals remember, and of however few rows."""
    one = system(2, 3000)
    drifting = dataclasses.replace(one, Y=one.Y + np.linspace(-1.0, 1.0, 3000))
    assert count_blocks(drifting, TRUTH) == 10
    few = system(2, 6, (0.3, 0.3))
    assert count_blocks(dataclasses.replace(few, time=10.0 * np.arange(6)), TRUTH) == 6


@pytest.mark.parametrize('keep', [3, 5, 12])
def test_the_decimation_leaves_a_known_share_of_white_noise(keep):
    white = np.random.default_rng(3).normal(size=(1, 40_000 * keep, 1))
    assert keep * np.var(decimate(white, keep)) == pytest.approx(NOISE_BAND, rel=0.03)
