"""What a change explains is the difference of two Gaussian likelihoods; chance is calibrated."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom, chi2

from robotid_ros.core.monitoring.change_tests import (
    ChangeTests,
    Evidence,
    FRICTION,
    ParameterGroup,
    Window,
)

GROUPS = (ParameterGroup(FRICTION, 'a', (0, 1), (0,)), ParameterGroup(FRICTION, 'b', (2,), (1,)))
VARIANCE, WIDE = np.array([0.04, 0.01, 0.09]), np.array([25.0, 16.0, 9.0])


def test_a_statistic_is_the_difference_of_dense_likelihoods():
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(40, 3))
    y = phi @ [0.5, -0.2, 1.0] + rng.normal(size=40)
    found = Evidence(phi.T @ phi, phi.T @ y, VARIANCE).statistics(GROUPS, WIDE)
    without = np.eye(40) + phi @ np.diag(VARIANCE) @ phi.T
    for group, statistic in zip(GROUPS, found, strict=True):
        own = phi[:, list(group.members)]
        change = own @ np.diag(WIDE[list(group.members)]) @ own.T
        exact = y @ (np.linalg.inv(without) - np.linalg.inv(without + change)) @ y
        assert statistic == pytest.approx(exact, rel=1e-9)


def test_an_estimate_is_that_of_the_prior_and_the_rows():
    rng = np.random.default_rng(1)
    phi, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    mean, covariance = Evidence(phi.T @ phi, phi.T @ y, VARIANCE).estimate()
    exact = np.linalg.inv(phi.T @ phi + np.diag(1.0 / VARIANCE))
    assert covariance == pytest.approx(exact, rel=1e-10)
    assert mean == pytest.approx(exact @ phi.T @ y, rel=1e-9)


def test_chance_exceeds_a_threshold_as_often_as_it_says():
    rng = np.random.default_rng(2)
    phi, tries, level = rng.normal(size=(30, 3)), 2000, 0.05
    false = np.zeros(2)
    for _ in range(tries):
        y = phi @ (np.sqrt(VARIANCE) * rng.normal(size=3)) + rng.normal(size=30)
        statistics = Evidence(phi.T @ phi, phi.T @ y, VARIANCE).statistics(GROUPS, 1e4 * WIDE)
        false += statistics > chi2.isf(level, [2, 1])
    low, high = binom.interval(0.999, tries, level)
    assert (false >= low).all() and (false <= high).all()


def test_parts_agree_where_each_shows_one_value_by_itself():
    followed = SimpleNamespace(groups=GROUPS, columns=np.arange(3), scale=np.ones(3))
    tests = ChangeTests(followed, np.zeros(3), 0.01, 5.0)
    rng, noise = np.random.default_rng(4), np.ones(1)

    def part(*change):
        phi = rng.normal(size=(40, 3))
        values = np.column_stack([phi, phi @ change + rng.normal(size=40)])
        return window(values[:, None], np.ones((40, 1), dtype=bool))

    early = part(2.0, -1.0, 0.0)
    assert tests.agree(GROUPS[0], (), (early, part(2.0, -1.0, 0.0)), noise)
    # A push that is over, another one, and the same after which hardly anything moved.
    assert not tests.agree(GROUPS[0], (), (early, part(0.0, 0.0, 0.0)), noise)
    assert not tests.agree(GROUPS[0], (), (early, part(-1.0, 2.0, 0.0)), noise)
    assert not tests.agree(GROUPS[0], (), (early, early.part(slice(0))), noise)


def window(values, used):
    """Return rows of 0.05 s."""
    end = 50_000_000 * np.arange(1, len(values) + 1)
    return Window(end - 50_000_000, end, values * used[:, :, None], used)


@pytest.mark.parametrize('memory', [0.3, 4.0, np.inf])
def test_an_estimate_forgets_by_the_motion_of_each_joint(memory):
    rng, noise = np.random.default_rng(5), np.array([0.1, 20.0])
    followed = SimpleNamespace(groups=GROUPS, columns=np.arange(3), scale=np.full(3, 1e6))
    values, used = rng.normal(size=(400, 2, 4)), rng.random((400, 2)) < 0.7
    tests = ChangeTests(followed, np.zeros(3), 0.01, 5.0)
    found, sigma = tests.estimate(window(values, used), noise, GROUPS, memory)
    clock = np.cumsum(0.05 * used, axis=0)
    whitened = used * np.exp(-(clock[-1] - clock) / memory) / noise**2
    phi, y = values[:, :, :-1], values[:, :, -1]
    information = np.einsum('tj,tja,tjb->ab', whitened, phi, phi)
    exact = np.linalg.solve(information, np.einsum('tj,tja,tj->a', whitened, phi, y))
    assert found == pytest.approx(exact, rel=1e-6)
    assert sigma == pytest.approx(np.sqrt(np.diag(np.linalg.inv(information))), rel=1e-6)
