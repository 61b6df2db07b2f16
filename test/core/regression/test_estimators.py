"""The variants of the fit, each against what it is made for."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import linregress, norm

from robotid_ros.core.regression.covariance import count_blocks
from robotid_ros.core.regression.estimators import fit, WHITEN
from robotid_ros.core.regression.observation_system import (
    decimate,
    GaussianPrior,
    NOISE_BAND,
    Rows,
)
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
    return Rows(
        names, ('1',) * 4, ('j1', 'j2'), measured, Y, valid, np.arange(rows) * 0.01,
        noise=np.maximum(noise, 1e-9), Z=W,
    )  # fmt: skip


@pytest.mark.parametrize('method', sorted(WHITEN))
def test_every_method_finds_the_truth_in_exact_data(method):
    estimate = fit(system(), method)
    np.testing.assert_allclose(estimate.value, TRUTH, rtol=1e-8)
    assert estimate.method == method


def test_classical_covariance_is_that_of_a_line_through_points():
    time, y = np.arange(9.0), np.random.default_rng(0).normal(size=9)
    W = np.column_stack([time, np.ones(9)])[None]
    names, valid = ('slope', 'intercept'), np.ones((1, 9), dtype=bool)
    found, line = (
        fit(Rows(names, ('',) * 2, ('j',), W, y[None], valid, time)),
        linregress(time, y),
    )
    np.testing.assert_allclose(found.value, [line.slope, line.intercept])
    sigma = np.sqrt(np.diag(found.classical))
    np.testing.assert_allclose(sigma, [line.stderr, line.intercept_stderr])
    assert found.condition_number == pytest.approx(np.linalg.cond(W[0] / [np.sqrt(204.0), 3.0]))


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


def test_robust_fit_is_hubers():
    """Σ ψ(r/σ) w/σ = 0, ψ cut at 1.345 and σ from the median of each joint (Huber 1981)."""
    clean = system(1, 300, (0.3, 0.1))
    spoiled = dataclasses.replace(clean, Y=clean.Y + 3.0 * (np.arange(300) % 20 == 0))
    left = spoiled.Y - spoiled.predict(fit(spoiled, 'irls').value)
    sigma = np.median(np.abs(left), axis=1, keepdims=True) / norm.ppf(0.75)
    psi = np.clip(left / sigma, -1.345, 1.345) / sigma
    scores = np.einsum('jr,jrb->b', psi, clean.W)
    whole = np.einsum('jr,jrb->b', np.abs(psi), np.abs(clean.W))
    assert np.all(np.abs(scores) < 1e-4 * whole)


def test_errors_in_the_columns_bias_least_squares_but_not_instruments():
    noisy = system(2, 20000, (0.01, 0.01), errors=0.3)
    bias = {m: np.abs(fit(noisy, m).value - TRUTH).max() for m in ('ols', 'iv')}
    assert bias['ols'] > 0.1
    assert bias['iv'] < 0.05


def test_iterated_weights_are_a_fixed_point():
    noisy = system(5, 500, (1.0, 0.1))
    valid = noisy.valid.copy()
    valid[0, :430] = False
    prior = GaussianPrior(TRUTH + 0.1, 1e-4 * np.eye(4))
    noisy = dataclasses.replace(noisy, valid=valid, prior=prior)
    estimate = fit(noisy, 'wls', iterations=50)
    sigma = [np.sqrt(np.mean((y - w @ estimate.value) ** 2)) for w, y in map(noisy.rows, range(2))]
    known = dataclasses.replace(noisy, noise=np.array(sigma))
    np.testing.assert_allclose(fit(known, 'mle').value, estimate.value, rtol=1e-5)


def test_weights_that_stay_end_the_iteration(monkeypatch):
    calls = []
    weigh = WHITEN['wls']
    monkeypatch.setitem(WHITEN, 'wls', lambda *given: calls.append(1) or weigh(*given))
    fit(system(5, 500, (1.0, 0.1)), 'wls', iterations=100)
    assert 2 < len(calls) < 15


@pytest.mark.parametrize('iterations', [1, 3])
@pytest.mark.parametrize('method', ['wls', 'irls'])
def test_a_joint_without_rows_is_as_if_it_were_not_there(method, iterations):
    both = system(6, 300, (0.3, 0.1))
    valid = both.valid.copy()
    valid[1] = False
    alone = dataclasses.replace(
        both, joints=('j1',), W=both.W[:1], Y=both.Y[:1], valid=both.valid[:1]
    )
    found, expected = (
        fit(each, method, iterations) for each in (dataclasses.replace(both, valid=valid), alone)
    )
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-9)


def weights_of(rows, value=None):
    """Return the weight of each joint."""
    return np.array(WHITEN['wls'](rows.blocks, rows, value))


def test_a_joint_of_few_rows_has_the_sigma_of_the_common_fit():
    rows = system(7, 300, (0.3, 0.1))
    valid = rows.valid.copy()
    valid[1, 11:] = False  # of four parameters: twelve would be enough
    few = dataclasses.replace(rows, valid=valid)
    common = fit(few, 'ols').value
    left = few.Y[1, :11] - few.predict(common)[1, :11]
    own = few.Y[0] - few.W[0] @ np.linalg.lstsq(few.W[0], few.Y[0])[0]
    expected = [np.sqrt(296.0) / np.linalg.norm(own), np.sqrt(11.0) / np.linalg.norm(left)]
    np.testing.assert_allclose(weights_of(few), expected, rtol=1e-9)


@pytest.mark.parametrize('value', [None, np.array([2.0, 1.0, -1.5])])
def test_rows_without_torque_weigh_alike_whatever_the_units_and_signs(value):
    """A link behind a spring: its terms cancel, and the largest of them is its scale."""
    rng = np.random.default_rng(8)
    W = np.abs(rng.normal(size=(2, 60, 3)))
    W[1, :, 2] = (2.0 * W[1, :, 0] + W[1, :, 1]) / 1.5
    Y = np.array([W[0] @ [2.0, 1.0, -1.5] + 0.1 * rng.normal(size=60), np.zeros(60)])
    rows = Rows(
        tuple('abc'), ('',) * 3, ('j', 'link'), W, Y, np.ones((2, 60), dtype=bool), np.arange(60.0)
    )
    expected = weights_of(rows, value)
    if value is not None:
        assert expected[1] == pytest.approx(1e6 / np.abs(W[1] * value).max())
    for units in ([1e-3, 1e4, 1.0], [-1.0, -1.0, -1.0]):
        other = dataclasses.replace(rows, W=W / units)
        found = weights_of(other, None if value is None else value * units)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    if value is not None:
        found = weights_of(dataclasses.replace(rows, Y=-Y), -value)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


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


def test_sigma_counts_how_far_scales_of_torques_move_the_estimate():
    rows, spread, step = system(3, 300, (0.3, 0.1)), np.array([0.2, 0.05]), 1e-6
    plain, found = fit(rows, 'ols'), fit(dataclasses.replace(rows, gain_spread=spread), 'ols')
    np.testing.assert_array_equal(found.value, plain.value)
    expected = np.zeros((4, 4))
    for j, share in enumerate(spread):
        larger = dataclasses.replace(
            rows, Y=rows.Y * np.where(np.arange(2) == j, 1 + step, 1)[:, None]
        )
        moved = share * (fit(larger, 'ols').value - plain.value) / step
        expected += np.outer(moved, moved)
    np.testing.assert_allclose(found.covariance - plain.covariance, expected, rtol=1e-4)
