"""Recursive least squares are batch least squares with the same weights."""

import pickle

import numpy as np
import pytest

from robotid_ros.core.monitoring.change_tests import ForgettingLeastSquares

JOINTS, COLUMNS, MEMORY = 3, 7, 4.0


def rows(count, seed=0):
    """Return rows (N, n, m + 1), which joints move (N, n) and uneven durations (N,)."""
    rng = np.random.default_rng(seed)
    size = (count, JOINTS, COLUMNS + 1)
    return rng.normal(size=size), rng.random((count, JOINTS)) < 0.7, rng.uniform(0.05, 0.3, count)


def fed(values, used, durations, memory=MEMORY):
    result = ForgettingLeastSquares(JOINTS, COLUMNS, memory)
    for row in zip(values, used, durations, strict=True):
        result.add(*row)
    return result


@pytest.mark.parametrize('memory', [0.3, MEMORY, np.inf])
def test_it_is_weighted_least_squares(memory):
    values, used, durations = rows(400)
    found = fed(values, used, durations, memory)
    clock = np.cumsum(durations[:, None] * used, axis=0)
    weights = used * np.exp(-(clock[-1] - clock) / memory)
    noise = np.array([0.1, 1.0, 20.0])
    phi, y = values[:, :, :-1], values[:, :, -1]
    whitened = weights / noise**2
    information = np.einsum('tj,tja,tjb->ab', whitened, phi, phi)
    score = np.einsum('tj,tja,tj->a', whitened, phi, y)
    assert found.information(noise)[0] == pytest.approx(information, rel=1e-12, abs=1e-10)
    assert found.information(noise)[1] == pytest.approx(score, rel=1e-12, abs=1e-10)
    root = np.sqrt(whitened).ravel()
    batch = np.linalg.lstsq(root[:, None] * phi.reshape(-1, COLUMNS), root * y.ravel())[0]
    recursive = np.linalg.solve(*found.information(noise))
    assert recursive == pytest.approx(batch, rel=1e-9)
    left = np.einsum('tj,tj->j', weights, (y - phi @ batch) ** 2)
    assert found.squares(batch) == pytest.approx(left, rel=1e-10)
    assert found.counts == pytest.approx(weights.sum(axis=0), rel=1e-12)
    assert found.time == pytest.approx(clock[-1])


def test_a_joint_that_rests_forgets_nothing():
    values, used, durations = rows(200)
    before = fed(values, used, durations)
    factors, counts = before.factors.copy(), before.counts.copy()
    for row, duration in zip(values, durations, strict=True):
        before.add(row, np.array([True, False, False]), duration)
    gram = np.swapaxes(factors, 1, 2) @ factors
    after = np.swapaxes(before.factors, 1, 2) @ before.factors
    assert after[1:] == pytest.approx(gram[1:], rel=1e-12)
    assert before.counts[1:] == pytest.approx(counts[1:], rel=1e-15)
    assert abs(after[0] - gram[0]).max() > 0.1 * abs(gram[0]).max()


def test_its_size_does_not_grow():
    sizes = {len(pickle.dumps(fed(*rows(count)))) for count in (50, 2000)}
    assert len(sizes) == 1


def test_copies_forget_on_their_own():
    values, used, durations = rows(50)
    first = fed(values, used, durations)
    second = first.copy(0.1)
    factors = first.factors.copy()
    second.add(values[0], np.ones(JOINTS, dtype=bool), 1.0)
    assert np.array_equal(first.factors, factors) and second.time[0] == first.time[0] + 1.0
