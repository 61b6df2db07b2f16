"""Draws of standard parameters: possible robots, with the distribution that was asked for."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import truncnorm

from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import regressor
from robotid_ros.core.parameters import posterior
from robotid_ros.core.parameters.posterior import _Chains, _untruncated, CHAINS, draw
from robotid_ros.core.parameters.standard import (
    nonnegative_columns,
    physically_consistent_links,
    standard_parameters,
)
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.regression.estimators import fit

from ..conftest import motion
from .test_prior_pull import measured, other_bodies

pytest.importorskip('clarabel')


def possible(robot, draws):
    """Return which draws (N, p) are robots that can exist."""
    links = [physically_consistent_links(chi, robot.first_columns).all() for chi in draws]
    return np.array(links) & (draws[:, nonnegative_columns(robot)] >= 0.0).all(axis=1)


@pytest.mark.parametrize(
    'noise, kind', [(1e-4, 'far'), (0.05, 'far'), (0.05, 'near'), (0.5, 'near'), (0.1, 'pushed')]
)
def test_every_draw_is_a_robot_that_can_exist(robot, truth, noise, kind):
    """Also where the prior is far from the data, and where no such robot explains them."""
    chi = other_bodies(robot, 1.0) if kind == 'far' else truth.copy()
    chi[robot.column('Fv2')] *= -1.0 if kind == 'pushed' else 1.0
    base, system, estimate = measured(robot, chi, noise)
    standard = standard_parameters(robot, base, estimate, system)
    assert bool(standard.obstacle) == (kind == 'pushed')
    assert possible(
        robot, draw(robot, base, estimate.value, estimate.covariance, standard.spread, 300)
    ).all()


def test_where_no_constraint_is_active_mean_and_covariance_are_the_estimates(robot, truth):
    base, _, estimate = measured(robot, truth, 1e-3)
    draws = draw(robot, base, estimate.value, estimate.covariance, 0.2, CHAINS, seed=1)
    # Each parameter, and combinations of them.
    size = len(estimate.value)
    combinations = np.vstack([np.eye(size), np.random.default_rng(3).normal(size=(size, size))])
    sigma = np.sqrt(np.sum((combinations @ estimate.covariance) * combinations, axis=1))
    values = combinations @ (base.of(draws.T).T - estimate.value).T / sigma[:, None]
    assert np.abs(values.mean(axis=1)).max() < 4.5 / np.sqrt(CHAINS)
    assert np.abs(values.std(axis=1) - 1.0).max() < 4.5 / np.sqrt(2 * CHAINS)


def test_where_constraints_are_active_draws_are_those_that_rejection_leaves(
    robot, truth, monkeypatch
):
    """The same Gaussian, drawn directly, of which only possible robots are kept."""
    monkeypatch.setattr(posterior, 'LOOSER', np.ones(1))  # a narrow prior: rejection leaves some
    base, _, estimate = measured(robot, truth, 0.5)
    _, T, mean, root = _untruncated(robot, base, estimate.value, estimate.covariance, 0.6)
    rng = np.random.default_rng(2)
    free = (mean + rng.normal(size=(10_000, root.shape[1])) @ root.T) @ T.T
    kept = free[possible(robot, free)]
    assert 500 < len(kept) < 0.7 * len(free)
    found = draw(robot, base, estimate.value, estimate.covariance, 0.6, 2000)
    assert possible(robot, found).all()
    sigma = kept.std(axis=0)
    error = np.sqrt(1 / len(kept) + 1 / len(found))
    assert np.abs((found.mean(axis=0) - kept.mean(axis=0)) / sigma).max() < 4.5 * error
    assert np.abs(found.std(axis=0) / sigma - 1.0).max() < 4.5 * error
    # These are not what no truncation leaves.
    assert np.abs((free.mean(axis=0) - kept.mean(axis=0)) / sigma).max() > 9.0 * error


@pytest.mark.parametrize('distance', [-3.0, 0.5, 6.0, 50.0])
def test_friction_whose_estimate_is_negative_has_the_tail_of_its_distribution(distance):
    mean, root = np.array([1.0, 0, 1, 0, 0, 1, 0, 0, 0, 1, -distance]), np.eye(11)
    root[:10] *= 0.01
    start = np.append(np.zeros(10), max(distance, 0.0) + 0.01)
    chains = _Chains(mean, root, 1, start, np.random.default_rng(0))
    friction = np.concatenate([chains.draw()[10] for _ in range(4)]) - distance
    law = truncnorm(distance, np.inf, loc=-distance)
    assert friction.min() >= 0.0
    assert abs(friction.mean() - law.mean()) < 4.5 * law.std() / np.sqrt(4 * CHAINS)
    assert abs(friction.std() / law.std() - 1.0) < 0.1


def test_predictions_have_the_truth_in_their_bands(robot, truth):
    """As often as the level says: 95 % of torques of another motion, over estimates."""
    W = regressor(robot, *motion(np.arange(50) / 5.0, 7)).reshape(-1, robot.p)
    base, system, _ = measured(robot, truth, 0.0)
    size, rng, inside = 0.02 * np.sqrt(np.mean(system.Y**2)), np.random.default_rng(0), []
    for _ in range(30):
        Y = system.Y + size * rng.normal(size=system.Y.shape)
        estimate = fit(dataclasses.replace(system, Y=Y), 'ols')
        torques = draw(robot, base, estimate.value, estimate.covariance, 0.2, 400) @ W.T
        low, high = np.quantile(torques, [0.025, 0.975], axis=0)
        inside.append(np.mean((low <= W @ truth) & (W @ truth <= high)))
    assert 0.85 < np.mean(inside) < 0.995


def test_an_identification_draws_the_same_for_the_same_seed(robot, record):
    found = identify(record(noise=0.05), robot, IdentificationSettings())
    draws = found.sample(20, seed=4)
    assert draws.shape == (20, found.robot.p) and possible(found.robot, draws).all()
    np.testing.assert_array_equal(found.sample(5, seed=4), draws[:5])
    assert not np.allclose(found.sample(5), draws[:5])
