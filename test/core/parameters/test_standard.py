"""Standard parameters by the equations of Gautier and Venture, and what says they are possible."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.model import build_robot, inverse_dynamics, regressor, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.friction import TERMS
from robotid_ros.core.parameters.essential import find_essential
from robotid_ros.core.parameters.physical_consistency import link_coordinates
from robotid_ros.core.parameters.standard import (
    closest_essential,
    physically_consistent_links,
    positive_definite_links,
    prior_with_drive_parameters,
    standard_parameters,
)
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import System

from ..conftest import motion, URDF

pytest.importorskip('clarabel')


@pytest.fixture(scope='module')
def known(robot, truth):
    """Return base parameters, the standard W (r, p), a noisy system, and its OLS estimate."""
    base, time = base_parameters(robot), np.arange(400) / 20.0
    W = regressor(robot, *motion(time, 0))
    Y = W @ truth + 0.3 * np.random.default_rng(1).normal(size=W.shape[:2])
    valid = np.ones(Y.shape, dtype=bool)
    system = System(base.names, base.units, robot.joints, time, W[:, :, base.columns], Y, valid)
    return base, W.reshape(-1, robot.p), system, fit(system, 'ols')


def test_closest_is_the_papers_pseudo_inverse(robot, known):
    base, W, system, estimate = known
    found = standard_parameters(robot, base, estimate, None)
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    U, s, Vt = U[:, : base.rank], s[: base.rank], Vt[: base.rank]
    assert np.linalg.norm(W @ Vt.T @ Vt - W) < 1e-9 * np.linalg.norm(W)
    prior = prior_with_drive_parameters(robot, base, estimate, None)
    delta = system.Y.ravel() - W @ prior
    np.testing.assert_allclose(found.cad, prior + Vt.T @ ((U.T @ delta) / s), atol=1e-9)
    np.testing.assert_allclose(base.of(found.cad), estimate.value, atol=1e-9)


def test_weighted_by_essentials_is_the_papers_equation(robot, known):
    base, W, system, estimate = known
    chosen = find_essential(system, estimate, method='ols')
    assert len(chosen.indices) < base.rank
    weights = np.zeros(robot.p)
    weights[base.columns[chosen.indices]] = chosen.estimate.value
    U, s, Vt = np.linalg.svd(W * weights, full_matrices=False)
    count = len(chosen.indices)
    delta = system.Y.ravel() - W @ robot.prior
    solution = Vt[:count].T @ ((U[:, :count].T @ delta) / s[:count])
    expected = robot.prior + weights * solution
    np.testing.assert_allclose(
        closest_essential(base, estimate, chosen, robot.prior), expected, atol=1e-8
    )


def test_a_covariance_that_rounding_made_indefinite_has_weights_still(robot, known):
    base, _, system, estimate = known
    values, vectors = np.linalg.eigh(estimate.classical)
    values[:2] = -1e-14 * values[-1]
    indefinite = dataclasses.replace(estimate, classical=(vectors * values) @ vectors.T)
    assert np.linalg.eigvalsh(indefinite.classical)[1] < 0.0
    chosen = find_essential(system, estimate, method='ols')
    assert np.isfinite(closest_essential(base, indefinite, chosen, robot.prior)).all()


def test_drives_come_from_the_estimate_and_links_do_not(robot, known):
    base, _, system, estimate = known
    chosen = find_essential(system, estimate, method='ols')
    prior = prior_with_drive_parameters(robot, base, estimate, chosen)
    values = dict(zip(chosen.estimate.names, chosen.estimate.value, strict=True))
    for column, parameter in enumerate(robot.parameters):
        if parameter.symbol in ('Fv', 'Fc', 'off'):
            assert prior[column] == values.get(parameter.name, 0.0)
        elif parameter.symbol != 'Ia':
            assert prior[column] == robot.prior[column]


def test_residual_is_that_of_the_torques(robot, known):
    base, W, system, estimate = known
    found = standard_parameters(robot, base, estimate, None, system)
    error = system.Y.ravel() - W @ found.value
    np.testing.assert_allclose(
        found.residual, np.linalg.norm(error) / np.linalg.norm(system.Y), rtol=1e-9
    )
    assert estimate.total_residual <= found.residual < 1.05 * estimate.total_residual
    np.testing.assert_allclose(system.total_residual(estimate.value), estimate.total_residual)


def test_consistent_parameters_give_the_true_torques_of_another_motion(robot, truth, known):
    base, _, system, estimate = known
    found = standard_parameters(robot, base, estimate, None, system)
    q, dq, ddq = motion(np.arange(100) / 10.0, 7)
    tau = [inverse_dynamics(robot, chi, q, dq, ddq) for chi in (found.value, truth)]
    assert np.linalg.norm(tau[0] - tau[1]) < 0.02 * np.linalg.norm(tau[1])


def test_stronger_pull_stays_nearer(robot, known):
    base, _, system, estimate = known
    maps = [link_coordinates(robot.prior[start : start + 10]) for start in robot.first_columns]

    def distance(pull):
        change = standard_parameters(robot, base, estimate, None, system, pull).value - robot.prior
        parts = zip(maps, robot.first_columns, strict=True)
        return np.hypot.reduce(
            [np.linalg.norm(np.linalg.solve(T, change[start : start + 10])) for T, start in parts]
        )

    assert distance(0.03) < distance(0.3) < distance(3.0)


def test_tolerance_table_counts_links(robot, known):
    base, _, system, estimate = known
    chosen = find_essential(system, estimate, method='ols')
    found = standard_parameters(robot, base, estimate, chosen, system)
    assert set(found.definite) == {'prior', 'cad', 'cad_essential', 'value'}
    assert found.definite['value'] == found.definite['prior'] == (3, 3, 3, 3)
    for counts in found.definite.values():
        assert list(counts) == sorted(counts)


def test_tolerance_moves_the_bound():
    # A link with principal moments 1, 1 and -0.015 at a centre of mass 0.1 m away.
    J = np.diag([1.0, 1.0, -0.015]) + 2.0 * (0.01 * np.eye(3) - np.diag([0.01, 0, 0]))
    chi = np.array([*J[0], *J[1, 1:], J[2, 2], 0.2, 0.0, 0.0, 2.0])
    verdicts = [bool(positive_definite_links(chi, [0], e)[0]) for e in (0.0, -0.01, -0.02, -0.04)]
    assert verdicts == [False, False, True, True]
    assert not positive_definite_links(-chi, [0], -1e3)[0]


def test_a_definite_inertia_may_still_be_impossible():
    chi = np.array([1.0, 0, 0, 1.0, 0, 3.0, 0, 0, 0, 1.0])
    assert positive_definite_links(chi, [0])[0]
    assert not physically_consistent_links(chi, [0])[0]
    assert physically_consistent_links(np.array([1.0, 0, 0, 1.0, 0, 1.5, 0, 0, 0, 1.0]), [0])[0]


# Rotors, dry and viscous friction, static friction, a share of the load, springs that pull back.
POSITIVE = {'Ia', 'Fv', 'Fvp', 'Fvm', 'Fc', 'Fcp', 'Fcm', 'Fs', 'Fst', 'Fl', 'Kq'}


@pytest.mark.parametrize('name', sorted(k for k, kind in TERMS.items() if not kind.amplitude))
def test_friction_that_physics_wants_positive_is_so(name):
    orders = {'ripple_order': 7.0, 'ripple_order_2': 21.0, 'ripple_order_3': 60.0}
    orders |= {'viscous_warm_up_way': 5.0, 'coulomb_warm_up_way': 5.0}
    orders |= {'reference_temperature': 40.0, 'backlash_width': 0.1, 'hysteresis_distance': 0.1}
    settings = RobotSettings(friction={'default': (name,)}, friction_constants={'default': orders})
    robot = build_robot(URDF, settings)
    symbols = ('Ia', *TERMS[name].symbols)
    positive = [robot.column(f'{s}2') for s in symbols if s in POSITIVE]
    chi = np.array(robot.prior)
    chi[positive] = -0.3
    base, time = base_parameters(robot), np.arange(400) / 20.0
    W = regressor(robot, *motion(time, 0))[:, :, base.columns]
    Y = W @ base.of(chi) + 0.01 * np.random.default_rng(1).normal(size=W.shape[:2])
    valid = np.ones(Y.shape, dtype=bool)
    estimate = fit(System(base.names, base.units, robot.joints, time, W, Y, valid), 'ols')
    found = standard_parameters(robot, base, estimate, None)
    assert np.all(found.value[positive] > -1e-6)


def test_uncertainty_is_carried_over(robot, truth, known):
    base, _, system, _ = known
    rng = np.random.default_rng(0)
    clean = system.W @ base.of(truth)
    draws = [
        standard_parameters(
            robot,
            base,
            fit(dataclasses.replace(system, Y=clean + 0.05 * rng.normal(size=clean.shape)), 'ols'),
            None,
        )
        for _ in range(60)
    ]
    spread = np.std([d.value for d in draws], axis=0, ddof=1)
    # The prior does not vary between draws: what is stated, data and prior together, is more.
    assert np.all(spread < 1.4 * draws[0].sigma + 1e-12)
    alone = [base.classes[k] == 'identifiable' for k in range(robot.p)]
    ratio = draws[0].sigma[alone] / spread[alone]
    assert np.all((ratio > 0.6) & (ratio < 1.6))
