"""Covariances stay such when rounding, or too few rows, would make them none."""

import dataclasses

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import norm, t

from robotid_ros.core.regression import covariance
from robotid_ros.core.regression.covariance import (
    cluster_products,
    count_blocks,
    find_repetition,
    inflation,
    jackknife,
    propagated,
    widened,
    with_minimum_variance,
)
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import compress, Factors, Rows


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


def test_a_minimum_of_variance_leaves_correlations_as_they_are():
    root = np.random.default_rng(2).normal(size=(4, 4))
    known = root @ root.T
    least = np.diag(known) * [0.5, 2.0, 9.0, 1.0]
    found = with_minimum_variance(known, least)
    np.testing.assert_allclose(np.diag(found), np.maximum(np.diag(known), least))
    np.testing.assert_allclose(correlations(found), correlations(known))


def correlations(matrix):
    return matrix / np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)))


def test_inflation_is_the_mean_ratio_of_variances_in_any_units():
    classical, units = np.array([[2.0, 1.0], [1.0, 1.0]]), np.array([1e-6, 1e3])
    root = np.linalg.cholesky(classical)
    correlated = root @ np.diag([1.0, 5.0]) @ root.T
    both = np.outer(units, units)
    assert inflation(classical * both, correlated * both) == pytest.approx(3.0)


def factors_of(noise):
    """Return batches of one row each, of a column of ones and this noise (K,)."""
    batches = np.zeros((1, len(noise), 2, 2))
    batches[0, :, 0] = np.column_stack([np.ones(len(noise)), noise])
    row = np.ones((1, 2, 1)), np.zeros((1, 2)), np.ones((1, 2), dtype=bool)
    counts = np.array([len(noise)])
    return Factors(('a',), ('',), ('j',), *row, counts, batches)


@pytest.mark.parametrize('memory', [1, 3, 5])
def test_batches_last_half_as_long_again_as_what_scores_remember(memory):
    """Of a moving average, neighbours correlate as far as it reaches."""
    white = np.random.default_rng(4).normal(size=4000 + memory - 1)
    noise = np.convolve(white, np.ones(memory), 'valid')
    products = cluster_products(factors_of(noise), np.zeros(1), [], [np.ones(2)])
    for normals, scores in products:
        assert len(scores) == pytest.approx(4000 / (1.0 + 1.5 * (memory - 1)), rel=0.2)
        assert scores.sum() == pytest.approx(noise.sum()) and normals.sum() == 4000.0


def two_joints(seed=0, rows=1200):
    """Return rows of two joints with slow columns, 0.01 s apart, and white noise."""
    rng = np.random.default_rng(seed)
    W = np.cumsum(rng.normal(size=(2, rows, 3)), axis=1) / 10.0
    Y = W @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=(2, rows))
    valid = np.ones((2, rows), dtype=bool)
    return Rows(tuple('abc'), ('',) * 3, ('j', 'k'), W, Y, valid, 0.01 * np.arange(rows))


def test_normals_and_scores_of_factors_are_those_of_their_rows_however_they_weigh():
    rows, value = two_joints(), np.array([1.1, -1.9, 0.4])
    whole = compress(rows, 24)
    for some in (rows, whole):
        weights = [np.full(len(some.rows(j)[1]), k) for j, k in enumerate((2.0, 0.1))]
        for normals, scores in cluster_products(some, value, [*rows.W], weights):
            left = rows.Y - rows.predict(value)
            expected = [4.0 * rows.W[0].T @ rows.W[0], 0.01 * rows.W[1].T @ rows.W[1]]
            np.testing.assert_allclose(normals.sum(axis=0), sum(expected))
            expected = [4.0 * rows.W[0].T @ left[0], 0.01 * rows.W[1].T @ left[1]]
            np.testing.assert_allclose(scores.sum(axis=0), sum(expected), rtol=1e-6)


def test_blocks_outlast_what_residuals_remember_and_not_what_torques_do():
    value, white = np.array([1.0, -2.0, 0.5]), two_joints()
    assert count_blocks(white, value) == 12  # of a second
    rng, memory = np.random.default_rng(3), 6
    some = two_joints(rows=8000)
    noise = np.convolve(rng.normal(size=8000 + memory - 1), np.ones(memory), 'valid')
    other = np.convolve(rng.normal(size=8000 + memory - 1), np.ones(memory), 'valid')
    some = dataclasses.replace(some, time=np.arange(8000.0))
    for units in (1.0, 1e4):
        scale = np.array([[1.0], [units]])
        W = some.W * scale[:, :, None]
        seen = dataclasses.replace(some, W=W, Y=W @ value + [noise, other] * scale)
        assert count_blocks(seen, value) == pytest.approx(8000 / (1.5 * memory), rel=0.15)
    # One that remembers counts half beside one that does not, whatever their units.
    counts = []
    for units in (1e-4, 1.0, 1e4):
        W = some.W * np.array([1.0, units])[:, None, None]
        left = np.array([noise, units * rng.normal(size=8000)])
        counts.append(count_blocks(dataclasses.replace(some, W=W, Y=W @ value + left), value))
    assert np.ptp(counts) < 0.15 * counts[0]
    one = dataclasses.replace(some, W=some.W[:, :1], Y=some.Y[:, :1], valid=some.valid[:, :1])
    assert count_blocks(dataclasses.replace(one, time=np.zeros(1)), value) == 1


def test_blocks_of_a_period_hold_all_its_repetitions(monkeypatch):
    monkeypatch.setattr(covariance, 'find_repetition', lambda q: 150.0)
    three, value = repeated(3, 0), np.zeros(6)
    one = dataclasses.replace(
        three,
        **{name: getattr(three, name)[:, :150] for name in ('W', 'Y', 'valid')},
        time=three.time[:150],
        q=three.q[:150],
    )
    valid = np.tile(one.valid, 3)
    three = dataclasses.replace(three, Y=np.tile(one.Y, 3), valid=valid)
    found = [
        cluster_products(each, value, [each.W[0]], [np.ones(each.Y.size)]) for each in (one, three)
    ]
    (normals, scores), expected = found[1][1], found[0][1]
    assert len(normals) == len(expected[0])
    np.testing.assert_allclose(normals, 3.0 * expected[0])
    np.testing.assert_allclose(scores, 3.0 * expected[1], atol=1e-12)


def test_weak_instruments_with_a_negative_diagonal_and_any_units_have_the_formula_s_covariance():
    """(ZᵀW)⁻¹ is not symmetric: scaled by the root of its diagonal it would overflow."""
    rng = np.random.default_rng(3)
    blocks, units = 0.1 * rng.normal(size=(10, 3, 3)), np.array([1e-6, 1.0, 1e5])
    normals = blocks - np.diag([0.0, 0.0, 1.0]) + np.diag([1.0, 1.0, 0.0])
    bread, scores = np.linalg.inv(normals.sum(axis=0)), rng.normal(size=(10, 3))
    assert bread[2, 2] < 0.0
    changes = [
        np.linalg.solve(np.eye(3) - 0.5 * bread @ normal, bread @ score)
        for normal, score in zip(normals, scores, strict=True)
    ]
    expected = 0.9 * sum(np.outer(d, d) for d in changes)
    found = jackknife(
        normals / np.outer(units, units), scores / units, bread * np.outer(units, units)
    )
    np.testing.assert_allclose(found / np.outer(units, units), expected, rtol=1e-9)


def repeated(repetitions: int, seed: int) -> Rows:
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
    return Rows(names, ('1',) * 6, ('j',), W[None], Y[None], valid, time, q=q)


def test_what_comes_back_with_the_motion_does_not_average_out():
    inside, by_time = [], []
    for seed in range(60):
        some = repeated(12, seed)
        known, blocks = fit(some), fit(dataclasses.replace(some, q=None))
        inside.append(np.abs(known.value) <= 3.0 * known.sigma)
        by_time.append(np.abs(blocks.value) <= 3.0 * blocks.sigma)
    assert np.mean(inside) > 0.94 and np.mean(by_time) < 0.85


@pytest.mark.parametrize('count', [2, 8, 15, 60])
def test_sigma_of_few_blocks_hold_at_3_sigma_what_normal_ones_do(count):
    """The mean of so many normal values over its own σ is Student's t."""
    wider = np.sqrt(widened(np.eye(2), count).diagonal())
    np.testing.assert_allclose(t(count - 1).sf(3.0 * wider), norm.sf(3.0), rtol=1e-9)


def test_batches_merge_where_their_scores_correlate():
    """Batches shorter than what the noise remembers say no less than longer ones."""
    ratios = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        white = rng.normal(size=6400)
        noise = lfilter([1.0], [1.0, -0.98], white)
        W = np.column_stack([np.ones(6400), np.sin(0.01 * np.arange(6400))])
        some = Rows(
            ('a', 'b'), ('1',) * 2, ('j',), W[None], noise[None], np.ones((1, 6400), dtype=bool),
            np.arange(6400.0),
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
        rows = Rows(names, ('1',) * 13, ('j',), W[None], slow[None, 2000:], valid, time)
        found = fit(compress(rows, 96), 'ols')
        errors.append(found.value)
        sigmas.append(found.sigma)
    ratio = np.sqrt(np.mean(np.square(sigmas), axis=0) / np.mean(np.square(errors), axis=0))
    assert np.all((ratio > 0.75) & (ratio < 1.6)), ratio


ROWS = 430


def sines(period, orders=(1, 2, 3), rows=ROWS, noise=0.0):
    """Return positions (N, 2) whose harmonics have a period in rows."""
    rng = np.random.default_rng(3)
    phase = 2.0 * np.pi * np.arange(rows)[:, None, None] * np.array(orders)[:, None] / period
    q = (rng.normal(size=(len(orders), 2)) * np.sin(phase + rng.uniform(0, 6, (1, 2)))).sum(axis=1)
    return q * np.array([1.0, 0.01]) + noise * rng.normal(size=q.shape) * np.array([1.0, 0.01])


@pytest.mark.parametrize('period', [142.857, 33.3, 214.0])
@pytest.mark.parametrize('noise', [0.0, 0.01])
def test_the_period_is_found_between_rows(period, noise):
    assert find_repetition(sines(period, noise=noise)) == pytest.approx(period, abs=0.2)


def test_harmonics_that_do_not_fit_together_repeat_nothing():
    assert find_repetition(sines(142.857, orders=(0.94, 2.11, 3.06))) is None


def test_one_joint_that_goes_on_is_enough_against_it():
    q = sines(100.0)
    q[:, 1] += 0.02 * np.linspace(-1.0, 1.0, len(q))
    assert find_repetition(q) is None


def test_a_joint_that_stands_decides_nothing():
    q = np.column_stack([sines(100.0)[:, 0], 1e-5 * np.random.default_rng(0).normal(size=ROWS)])
    for units in (1e-4, 1.0, 1e4):
        assert find_repetition(units * q) == pytest.approx(100.0, abs=0.2)


def test_less_than_two_periods_and_standstill_are_none():
    assert find_repetition(sines(300.0)) is None
    with np.errstate(all='raise'):
        assert find_repetition(np.ones((50, 2))) is None
        assert find_repetition(np.ones((1, 2))) is None
