"""The pull to the prior gives way to the data, as far as it has to and no further."""

import dataclasses
import math

import numpy as np
import pytest

from robotid_ros.core.model import build_robot, regressor, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.settings import CoupledMotorSettings
from robotid_ros.core.parameters.essential import effective_sample_size
from robotid_ros.core.parameters.physical_consistency import (
    inertial_parameters,
    link_coordinates,
    mass_properties,
    pseudo_inertia,
    UPPER,
)
from robotid_ros.core.parameters.standard import (
    _by_estimate,
    _ConsistentFit,
    _least,
    _triangular,
    _unweighted,
    LOOSEST,
    NEAR,
    standard_parameters,
)
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import Rows

from ..conftest import motion, URDF

pytest.importorskip('clarabel')

SPREAD, COST = 0.2, 0.1


def measured(robot, chi, noise=0.01, method='ols'):
    """Return base parameters, the system of a noisy motion with parameters χ, and its estimate."""
    base, time = base_parameters(robot), np.arange(400) / 20.0
    W = regressor(robot, *motion(time, 0))
    Y = W @ chi
    size = noise * np.sqrt(np.mean(Y**2, axis=1, keepdims=True))
    Y = Y + size * np.random.default_rng(1).normal(size=Y.shape)
    valid = np.ones(Y.shape, dtype=bool)
    system = Rows(base.names, base.units, robot.joints, W[:, :, base.columns], Y, valid, time)
    return base, system, fit(system, method)


def other_bodies(robot, scale, seed=3):
    """Return parameters of links that can exist, far from the prior, and plain friction."""
    rng, chi = np.random.default_rng(seed), np.array(robot.prior)
    for start in robot.first_columns:
        root = np.eye(4) + scale * rng.normal(size=(4, 4))
        S = root @ root.T
        svec = [S[i, j] * (1.0 if i == j else math.sqrt(2.0)) for i, j in UPPER]
        chi[start : start + 10] = link_coordinates(chi[start : start + 10]) @ svec
    for k, p in enumerate(robot.parameters):
        if p.symbol in ('Fv', 'Fc', 'Ia'):
            chi[k] = 0.5
    return chi


def with_centre(inertial, factor):
    """Return a link (10,) whose centre of mass is so many times as far from the joint."""
    mass, centre, inertia = mass_properties(pseudo_inertia(inertial))
    centre = factor * centre
    P = np.empty((4, 4))
    P[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia + mass * np.outer(centre, centre)
    P[:3, 3] = P[3, :3] = mass * centre
    P[3, 3] = mass
    return inertial_parameters(P)


def farthest(base, estimate, chi):
    """Return by how many σ standard parameters χ move a base parameter at most."""
    return np.max(np.abs(base.of(chi) - estimate.value) / np.sqrt(np.diag(estimate.covariance)))


def test_a_good_prior_keeps_its_weight(robot, truth):
    base, system, estimate = measured(robot, robot.prior)
    pull = standard_parameters(robot, base, estimate, system, SPREAD, COST)
    assert pull.spread == SPREAD and not pull.obstacle
    base, system, estimate = measured(robot, truth)  # nearly as good
    pull = standard_parameters(robot, base, estimate, system, SPREAD, COST)
    assert pull.spread < 1.5 * SPREAD and not pull.obstacle
    assert farthest(base, estimate, pull.value) <= NEAR
    assert pull.residual <= (1.0 + COST) * pull.base_residual


def test_data_without_noise_accuse_nobody(robot, truth):
    base, system, estimate = measured(robot, truth, 0.0)
    found = standard_parameters(robot, base, estimate, system)
    assert found.obstacle is None and found.residual < 1e-4


@pytest.mark.parametrize('method', ['ols', 'wls'])
def test_a_wrong_prior_gives_way_and_no_more_than_it_has_to(robot, method):
    base, system, estimate = measured(robot, other_bodies(robot, 3.0), 1e-4, method)
    pull = standard_parameters(robot, base, estimate, system, SPREAD, COST)
    limit = (1.0 + COST) * system.total_residual(estimate.value)
    assert pull.spread > SPREAD and not pull.obstacle
    assert pull.residual == pytest.approx(system.total_residual(base.of(pull.value)))
    assert pull.residual <= limit and farthest(base, estimate, pull.value) <= NEAR
    # A prior that is trusted a quarter more, as finely as the bisection tells, costs too much.
    tighter = _ConsistentFit(robot, _by_estimate(base, estimate), SPREAD)(
        pull.spread / SPREAD / 1.25
    )
    costly = system.total_residual(base.of(tighter.value)) > limit
    assert costly or farthest(base, estimate, tighter.value) > NEAR


@pytest.mark.parametrize('needed', [1.3, 3.0, 40.0, 900.0])
def test_the_bisection_ends_at_most_a_quarter_above_what_is_needed(needed):
    assert needed <= _least(lambda looser: looser >= needed) <= 1.25 * needed


def test_where_any_cost_is_right_base_parameters_stay_within_their_sigma(robot):
    base, system, estimate = measured(robot, other_bodies(robot, 3.0), 1e-4)
    pull = standard_parameters(robot, base, estimate, system, SPREAD, math.inf)
    attempt = _ConsistentFit(robot, _by_estimate(base, estimate), SPREAD)
    tighter = attempt(pull.spread / SPREAD / 1.25)
    assert farthest(base, estimate, pull.value) <= NEAR < farthest(base, estimate, tighter.value)


def test_links_of_which_nothing_is_known_predict_too(robot, truth):
    prior = np.array(robot.prior)
    for start in robot.first_columns:
        prior[start : start + 10] = 0.0
    unknown = dataclasses.replace(robot, prior=prior)
    base, system, estimate = measured(unknown, truth, 1e-3)
    found = standard_parameters(unknown, base, estimate, system)
    assert found.consistent.all()
    assert found.residual <= (1.0 + COST) * found.base_residual


@pytest.mark.parametrize('factor', [-0.3, -1.0])
def test_what_no_body_can_do_is_told_with_the_link_in_the_way(robot, truth, factor):
    chi = np.array(truth)
    start = robot.first_columns[2]
    chi[start : start + 10] *= factor
    base, system, estimate = measured(robot, chi)
    found = standard_parameters(robot, base, estimate, system)
    assert found.consistent.all()
    assert found.residual > (1.0 + COST) * found.base_residual
    attainable = found.obstacle.values['attainable']
    assert found.residual >= (1.0 - 1e-6) * attainable
    assert attainable > (1.0 + COST) * found.base_residual
    assert found.obstacle.joints == (robot.joints[2],)


def test_where_none_can_the_prior_gives_way_while_that_helps(robot, truth):
    """Until residual and base parameters are within some percent of what its pull allows."""
    chi = np.array(truth)
    chi[robot.first_columns[2] : robot.first_columns[2] + 10] *= -0.3
    base, system, estimate = measured(robot, chi)
    pull = standard_parameters(robot, base, estimate, system, SPREAD, COST)
    attempt = _ConsistentFit(robot, _by_estimate(base, estimate), SPREAD)
    loosest, tighter = (attempt(looser).value for looser in (LOOSEST, pull.spread / SPREAD / 1.25))
    limits = [
        1.02 * system.total_residual(base.of(loosest)),
        max(NEAR, 1.02 * farthest(base, estimate, loosest)),
    ]
    costs = [
        (system.total_residual(base.of(chi)), farthest(base, estimate, chi))
        for chi in (pull.value, tighter)
    ]
    assert all(cost <= limit for cost, limit in zip(costs[0], limits, strict=True))
    assert any(cost > limit for cost, limit in zip(costs[1], limits, strict=True))


def random_rows(robot, extra):
    """Return base parameters and a system with so many rows more than these."""
    base, rng = base_parameters(robot), np.random.default_rng(7)
    W = rng.normal(size=(robot.n, base.rank, base.rank))
    Y = W @ base.of(robot.prior) + rng.normal(size=W.shape[:2])
    valid = np.arange(Y.size).reshape(Y.shape) < base.rank + extra
    time = np.arange(base.rank) / 20.0
    return base, Rows(base.names, base.units, robot.joints, W, Y, valid, time)


@pytest.mark.parametrize('extra', [1, 20])
def test_ordinary_least_squares_weigh_as_rows_without_weights_do(robot, extra):
    base, system = random_rows(robot, extra)
    estimate = fit(system, 'ols')
    # Rows that count as a third.
    estimate = dataclasses.replace(estimate, covariance=3.0 * estimate.classical, of_noise=None)
    one = _by_estimate(base, estimate)
    other = _unweighted(base, estimate, _triangular(system))
    scale = np.abs(one[0].T @ one[0]).max()
    for part in (0, 1):  # factor and target
        left, right = (each[0].T @ each[part] for each in (one, other))
        np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-9 * scale)


def test_what_data_know_far_better_than_the_rest_does_not_count_in_full(robot):
    base, system = random_rows(robot, 20)
    correlation = np.eye(base.rank)
    correlation[0, 1] = correlation[1, 0] = correlation[2, 3] = correlation[3, 2] = 1.0 - 1e-13
    estimate = dataclasses.replace(
        fit(system, 'ols'), classical=correlation, covariance=correlation, of_noise=None
    )
    counts = np.linalg.eigvalsh(_by_estimate(base, estimate)[2])
    assert counts[1] < 0.01  # 1 in full
    np.testing.assert_allclose(counts[2:], 1.0, rtol=0.05)


def test_no_data_count_as_exact(robot):
    base, system = random_rows(robot, 20)
    estimate = fit(system, 'ols')
    exact, more = (
        _by_estimate(
            base,
            dataclasses.replace(
                estimate,
                total_residual=left,
                classical=left**2 * estimate.classical,
                covariance=left**2 * estimate.classical,
                of_noise=None,
            ),
        )
        for left in (1e-6, 1e-8)
    )
    np.testing.assert_allclose(exact[0], more[0], rtol=1e-6)


def test_friction_that_drives_is_in_the_way(robot, truth):
    chi = np.array(truth)
    chi[robot.column('Fc2')] = -5.0 * abs(truth[robot.column('Fc2')]) - 5.0
    base, system, estimate = measured(robot, chi)
    found = standard_parameters(robot, base, estimate, system)
    assert found.value[robot.column('Fc2')] >= -1e-6
    assert found.obstacle.joints == (robot.joints[1],)


def test_a_coupling_is_in_the_way(truth):
    couplings = {'pair': CoupledMotorSettings((0.0, 1.0, 1.0))}
    coupled = build_robot(URDF, RobotSettings(couplings=couplings))
    extra = dict.fromkeys(('Fv23', 'Fc23'), 0.5) | {'Ia23': -1.0}
    chi = np.concatenate([truth, [extra[p.name] for p in coupled.parameters[len(truth) :]]])
    base, system, estimate = measured(coupled, chi)
    assert standard_parameters(coupled, base, estimate, system).obstacle.joints == ('pair',)


def test_nothing_that_can_exist_leaves_less_than_what_is_called_attainable(robot, truth):
    chi = np.array(truth)
    chi[robot.first_columns[2] : robot.first_columns[2] + 10] *= -1.0
    base, system, estimate = measured(robot, chi)
    found = standard_parameters(robot, base, estimate, system)
    rng = np.random.default_rng(0)
    for _ in range(200):
        tried = np.array(found.value)
        for begin in robot.first_columns:
            root = np.eye(4) + 10 ** rng.uniform(-4, -1) * rng.normal(size=(4, 4))
            S = root @ root.T
            svec = [S[i, j] * (1.0 if i == j else math.sqrt(2.0)) for i, j in UPPER]
            tried[begin : begin + 10] = link_coordinates(tried[begin : begin + 10]) @ svec
        assert system.total_residual(base.of(tried)) > 0.999 * found.obstacle.values['attainable']


def test_the_rows_weigh_and_not_the_covariance_of_the_estimate(robot, truth):
    # Where a constraint is active, the inverse covariance of correlated residuals would give way
    # in the directions that they make uncertain, however much torque that costs.
    chi = np.array(truth)
    chi[robot.column('Fc2')] = -3.0
    base, system, estimate = measured(robot, chi)
    rng = np.random.default_rng(4)
    root = np.linalg.cholesky(estimate.classical)
    turn, _ = np.linalg.qr(rng.normal(size=root.shape))
    spread = np.geomspace(1e-2, 1e2, len(root))
    spread *= len(root) / np.sum(spread)
    odd = root @ (turn * spread) @ turn.T @ root.T
    left = [
        standard_parameters(robot, base, changed, system, SPREAD, math.inf).residual
        for changed in (estimate, dataclasses.replace(estimate, covariance=odd))
    ]
    assert left[1] == pytest.approx(left[0], rel=1e-2)


@pytest.mark.parametrize('spread', [0.05, 0.5])
def test_the_prior_weighs_what_its_spread_says(robot, truth, spread):
    """Where no constraint is active the parameters are the mean of the posterior, by Bayes."""
    prior = np.array(robot.prior)
    prior[robot.column('Fv2')], prior[robot.column('off1')] = 3.0, -4.0
    robot = dataclasses.replace(robot, prior=prior)
    base, _, estimate = measured(robot, truth, 0.05)
    independent = effective_sample_size(estimate) / estimate.rows.sum()
    data = base.matrix.T @ np.linalg.inv(estimate.classical) * independent
    precision, right = data @ base.matrix, data @ estimate.value
    for k, prior in enumerate(robot.prior):
        own = max(abs(prior), 1.0) ** -2.0
        if all(not first <= k < first + 10 for first in robot.first_columns):
            precision[k, k] += own
            right[k] += own * prior
    for first in robot.first_columns:
        link = slice(first, first + 10)
        # In units of links whose centres are where the prior says, and to either side.
        for step, share in ((-math.sqrt(3.0), 1 / 6), (0.0, 2 / 3), (math.sqrt(3.0), 1 / 6)):
            other = with_centre(robot.prior[link], 1.0 + step * spread)
            scaled = np.linalg.inv(link_coordinates(other))  # svec of S, I for this link
            precision[link, link] += share * scaled.T @ scaled / spread**2
            right[link] += share * scaled.T @ scaled @ robot.prior[link] / spread**2
    found = _ConsistentFit(robot, _by_estimate(base, estimate), spread)(1.0).value
    np.testing.assert_allclose(found, np.linalg.solve(precision, right), rtol=1e-5, atol=1e-6)
