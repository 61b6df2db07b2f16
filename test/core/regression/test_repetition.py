"""A motion that repeats is told by its positions; one that never comes back is not."""

import numpy as np
import pytest

from robotid_ros.core.regression.covariance import find_repetition

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
