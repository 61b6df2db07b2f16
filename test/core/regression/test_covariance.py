"""Covariances stay such when rounding, or too few rows, would make them none."""

import dataclasses

import numpy as np
import pytest
from scipy.signal import lfilter

from robotid_ros.core.regression.covariance import (
    jackknife,
    propagated,
    widened,
    with_minimum_variance,
)
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import System
from robotid_ros.core.regression.triangular_factors import compress


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


def repeated(repetitions: int, seed: int) -> System:
    """Return a motion that repeats; a torque that goes with the position is left out."""
    rng = np.random.default_rng(seed)
    period, phases = 150, rng.uniform(0.0, 6.0, 8)
    angle = 2.0 * np.pi * np.arange(period) / period
    q = np.sin(angle + phases[0]) + 0.5 * np.sin(3.0 * angle + phases[1])
    W = np.column_stack([np.sin(k * angle + phases[k]) for k in range(2, 8)])
    left_out = 0.1 * np.cos(40.0 * q + phases[0])
    W, Y, q = (
        np.concatenate([x] * repetitions) for x in (W, left_out[:, None], np.column_stack([q]))
    )
    Y = Y[:, 0] + 0.01 * rng.normal(size=len(Y))
    time, names = 0.05 * np.arange(len(Y)), tuple('abcdef')
    valid = np.ones((1, len(Y)), dtype=bool)
    return System(names, ('1',) * 6, ('j',), time, W[None], Y[None], valid, q=q)


def test_what_comes_back_with_the_motion_does_not_average_out():
    inside, by_time = [], []
    for seed in range(60):
        some = repeated(12, seed)
        known, blocks = fit(some), fit(dataclasses.replace(some, q=None))
        inside.append(np.abs(known.value) <= 3.0 * known.sigma)
        by_time.append(np.abs(blocks.value) <= 3.0 * blocks.sigma)
    assert np.mean(inside) > 0.94 and np.mean(by_time) < 0.85


def test_sigma_of_few_blocks_hold_at_3_sigma_what_normal_ones_do():
    rng = np.random.default_rng(0)
    for count in (8, 15, 60):
        sample = rng.normal(size=(200_000, count)) if count < 60 else rng.normal(size=(60_000, 60))
        variance = sample.var(axis=1, ddof=1) / count
        wider = widened(np.eye(1), count)[0, 0]
        outside = np.mean(np.abs(sample.mean(axis=1)) > 3.0 * np.sqrt(wider * variance))
        assert 0.0018 < outside < 0.0037  # 0.0027 of a normal variable


def test_batches_merge_where_their_scores_correlate():
    """Batches shorter than what the noise remembers say no less than longer ones."""
    ratios = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        white = rng.normal(size=6400)
        noise = lfilter([1.0], [1.0, -0.98], white)
        W = np.column_stack([np.ones(6400), np.sin(0.01 * np.arange(6400))])
        some = System(
            ('a', 'b'), ('1',) * 2, ('j',), np.arange(6400.0), W[None], noise[None],
            np.ones((1, 6400), dtype=bool),
        )  # fmt: skip
        sigma = fit(compress(some, 128)).sigma[0]
        # Of white noise through the filter: its gain over √N.
        ratios.append(sigma / (50.0 / np.sqrt(6400)))
    assert 0.7 < np.sqrt(np.mean(np.square(ratios))) < 1.2


def test_an_offset_among_fast_columns_remembers_slow_noise():
    """Rows that are kept as triangular factors: their scores show it, that of the offset most."""
    errors, sigmas = [], []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        count, memory = 6000, np.exp(-0.01 / 2.0)
        slow = lfilter([np.sqrt(1.0 - memory**2)], [1.0, -memory], rng.normal(size=count + 2000))
        W = np.column_stack([rng.normal(size=(count, 12)), np.ones(count)])
        valid, time = np.ones((1, count), dtype=bool), 0.01 * np.arange(count)
        names = tuple('abcdefghijklm')
        rows = System(names, ('1',) * 13, ('j',), time, W[None], slow[None, 2000:], valid)
        found = fit(compress(rows, 96), 'ols')
        errors.append(found.value)
        sigmas.append(found.sigma)
    ratio = np.sqrt(np.mean(np.square(sigmas), axis=0) / np.mean(np.square(errors), axis=0))
    assert np.all((ratio > 0.75) & (ratio < 1.6)), ratio
