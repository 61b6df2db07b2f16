"""σ of noise that remembers are those of the errors; those of white noise stay as they are."""

import dataclasses

import numpy as np
import pytest
from scipy.fft import dct

from robotid_ros.core.regression import noise_spectrum
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.noise_spectrum import coloured_variance
from robotid_ros.core.regression.observation_system import System
from robotid_ros.core.regression.triangular_factors import TriangularFactors

ROWS, STEP, DRAWS = 500, 0.05, 40


def motion():
    """Return an offset, waves and a step: columns (2, N, 7) of two joints, and rows in use."""
    time = STEP * np.arange(ROWS)
    phase = np.random.default_rng(5).uniform(0.0, 6.0, 5)
    waves = np.cos(2.0 * np.pi * 0.1 * time[:, None] * np.arange(1, 6) + phase)
    W = np.column_stack([np.ones(ROWS), waves, np.sign(waves[:, 1])])
    valid = np.ones((2, ROWS), dtype=bool)
    valid[1, 120:180] = False
    return time, np.stack([W, W[:, ::-1]]), valid


def system(noise):
    time, W, valid = motion()
    names = tuple('abcdefg')
    return System(names, ('1',) * 7, ('j1', 'j2'), time, W, noise.copy(), valid, Z=W.copy())


def noise(seed, memory):
    """Return autoregressive noise (2, N) of different size, white without a memory [s]."""
    white = np.random.default_rng(seed).normal(size=(2, 1500))
    keep = np.exp(-STEP / memory) if memory else 0.0
    taps = keep ** np.arange(1000)
    rows = np.array([np.convolve(row, taps, 'valid')[:ROWS] for row in white])
    return np.sqrt(1.0 - keep**2) * rows * np.array([[1.0], [5.0]])


def variances(some, method='wls'):
    """Return the estimate and the variances of coloured noise."""
    estimate = fit(some, method)
    rows = [some.rows(j) for j in range(2)]
    weights = [np.full(len(y), 1.0 / np.std(y - w @ estimate.value)) for w, y in rows]
    W = [w for w, _ in rows]
    bread = np.linalg.inv(
        sum((w * k[:, None] ** 2).T @ w for w, k in zip(W, weights, strict=True))
    )
    return estimate, coloured_variance(some, estimate.value, W, weights, bread)


@pytest.mark.parametrize('memory', [0.1, 0.7, 3.0])
def test_sigma_of_noise_that_remembers_is_that_of_the_errors(memory):
    errors = []
    for seed in range(DRAWS):
        estimate, variance = variances(system(noise(seed, memory)))
        errors.append(estimate.value / np.sqrt(variance))
    rms = np.sqrt(np.mean(np.square(errors), axis=0))
    # Forty draws leave 11 % of noise in each; three seconds are a twelfth of the recording.
    assert rms.max() < 1.4 and 0.75 < np.mean(rms) < 1.2
    assert np.mean(np.abs(errors) <= 3.0) > 0.98


def test_a_fit_states_no_less_than_the_spectrum_says():
    estimates = [fit(system(noise(seed, 3.0))) for seed in range(DRAWS)]
    errors = np.array([estimate.value / estimate.sigma for estimate in estimates])
    assert np.mean(np.abs(errors) <= 3.0, axis=0).min() >= 0.95


def test_white_noise_keeps_the_sigma_of_white_noise():
    found = [variances(system(noise(seed, 0.0)))[1].any() for seed in range(DRAWS)]
    # At most one joint in a hundred is taken for coloured; there are two.
    assert np.sum(found) <= 2


def test_what_the_fit_took_is_expected_to_be_missing():
    time, (W, _), _ = motion()
    cosines = dct(np.eye(ROWS), axis=0, norm='ortho')
    gain = np.linalg.solve(W.T @ W, W.T)
    shapes = noise_spectrum._noise_shapes(time)
    rows = np.column_stack([W, gain.T, noise(0, 0.0)[0]])
    joint = noise_spectrum._Joint.of(rows, np.ones(ROWS, dtype=bool), shapes)
    left = cosines @ (np.eye(ROWS) - W @ gain) @ cosines.T
    np.testing.assert_allclose(joint.expected, left**2 @ shapes, rtol=1e-6, atol=1e-9)


def test_rows_of_other_units_change_nothing():
    some = system(noise(1, 0.7))
    other = dataclasses.replace(some, W=1e3 * some.W, Y=1e3 * some.Y)
    np.testing.assert_allclose(variances(other)[1], variances(some)[1], rtol=1e-6)


def test_factors_of_chunks_have_no_spectrum():
    some = system(noise(1, 0.7))
    factors = TriangularFactors(2, 7)
    factors.add(some)
    assert not variances(factors.system(some))[1].any()
