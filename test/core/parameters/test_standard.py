"""Standard parameters by the equations of Gautier and Venture, and what says they are possible."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.model import build_robot, inverse_dynamics, regressor, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.friction import FRICTION_TERMS, FrictionTerm
from robotid_ros.core.model.robot_builder import with_friction
from robotid_ros.core.parameters.physical_consistency import Consistent, link_coordinates
from robotid_ros.core.parameters.standard import (
    _by_estimate,
    _ConsistentFit,
    nonnegative_columns,
    physically_consistent_links,
    standard_parameters,
)
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import Rows

from ..conftest import motion, URDF

pytest.importorskip('clarabel')


@pytest.fixture(scope='module')
def known(robot, truth):
    """Return base parameters, the standard W (r, p), a noisy system, and its OLS estimate."""
    base, time = base_parameters(robot), np.arange(400) / 20.0
    W = regressor(robot, *motion(time, 0))
    Y = W @ truth + 0.3 * np.random.default_rng(1).normal(size=W.shape[:2])
    valid = np.ones(Y.shape, dtype=bool)
    system = Rows(base.names, base.units, robot.joints, W[:, :, base.columns], Y, valid, time)
    return base, W.reshape(-1, robot.p), system, fit(system, 'ols')


def test_residual_is_that_of_the_torques(robot, known):
    base, W, system, estimate = known
    found = standard_parameters(robot, base, estimate, system)
    error = system.Y.ravel() - W @ found.value
    np.testing.assert_allclose(
        found.residual, np.linalg.norm(error) / np.linalg.norm(system.Y), rtol=1e-9
    )
    assert estimate.total_residual <= found.residual < 1.05 * estimate.total_residual
    np.testing.assert_allclose(system.total_residual(estimate.value), estimate.total_residual)


def test_consistent_parameters_give_the_true_torques_of_another_motion(robot, truth, known):
    base, _, system, estimate = known
    found = standard_parameters(robot, base, estimate, system)
    q, dq, ddq = motion(np.arange(100) / 10.0, 7)
    tau = [inverse_dynamics(robot, chi, q, dq, ddq) for chi in (found.value, truth)]
    assert np.linalg.norm(tau[0] - tau[1]) < 0.02 * np.linalg.norm(tau[1])


def test_stronger_pull_stays_nearer(robot, known):
    base, _, system, estimate = known
    maps = [link_coordinates(robot.prior[start : start + 10]) for start in robot.first_columns]

    def distance(pull):
        change = standard_parameters(robot, base, estimate, system, pull).value - robot.prior
        parts = zip(maps, robot.first_columns, strict=True)
        return np.hypot.reduce(
            [np.linalg.norm(np.linalg.solve(T, change[start : start + 10])) for T, start in parts]
        )

    assert distance(0.03) < distance(0.3) < distance(3.0)


def test_which_bodies_can_exist():
    chi = np.array([1.0, 0, 0, 1.0, 0, 3.0, 0, 0, 0, 1.0])
    assert not physically_consistent_links(chi, [0])[0]
    assert physically_consistent_links(np.array([1.0, 0, 0, 1.0, 0, 1.5, 0, 0, 0, 1.0]), [0])[0]


# Rotors, dry and viscous friction, static friction, a share of the load, springs that pull back.
POSITIVE = {'Ia', 'Fv', 'Fvp', 'Fvm', 'Fc', 'Fcp', 'Fcm', 'Fs', 'Fst', 'Fl', 'Kq'}


@pytest.mark.parametrize(
    'name', sorted(k for k, kind in FRICTION_TERMS.items() if not kind.amplitude)
)
def test_friction_that_physics_wants_positive_is_so(name):
    orders = {'ripple_order': 7.0, 'ripple_order_2': 21.0, 'ripple_order_3': 60.0}
    settings = RobotSettings(friction={'default': (name,)}, friction_constants={'default': orders})
    robot = build_robot(URDF, settings)
    symbols = ('Ia', *FRICTION_TERMS[name].symbols)
    positive = [robot.column(f'{s}2') for s in symbols if s in POSITIVE]
    chi = np.array(robot.prior)
    chi[positive] = -0.3
    base, time = base_parameters(robot), np.arange(400) / 20.0
    W = regressor(robot, *motion(time, 0))[:, :, base.columns]
    Y = W @ base.of(chi) + 0.01 * np.random.default_rng(1).normal(size=W.shape[:2])
    valid = np.ones(Y.shape, dtype=bool)
    rows = Rows(base.names, base.units, robot.joints, W, Y, valid, time)
    found = standard_parameters(robot, base, fit(rows, 'ols'), rows)
    assert np.all(found.value[positive] > -1e-6)


def test_uncertainty_is_carried_over(robot, truth, known):
    base, _, system, _ = known
    rng = np.random.default_rng(0)
    clean = system.W @ base.of(truth)
    draws = list[Consistent]()
    for _ in range(60):
        noisy = dataclasses.replace(system, Y=clean + 0.05 * rng.normal(size=clean.shape))
        data = _by_estimate(base, fit(noisy, 'ols'))
        draws.append(_ConsistentFit(robot, data, 0.2)(1.0))
    spread = np.std([d.value for d in draws], axis=0, ddof=1)
    # The prior does not vary between draws: what is stated, data and prior together, is more.
    assert np.all(spread < 1.4 * draws[0].sigma + 1e-12)
    alone = [base.classes[k] == 'identifiable' for k in range(robot.p)]
    ratio = draws[0].sigma[alone] / spread[alone]
    assert np.all((ratio > 0.6) & (ratio < 1.6))


def test_plain_friction_has_signs_of_its_own_only_where_nothing_stands_beside_it(robot):
    constants = {'position_low': -1.0, 'position_high': 1.0, 'position_mean': 0.0}
    added = {
        0: FrictionTerm('low_speed', {'speed_scale': 1.0}),
        1: FrictionTerm('position', constants),
    }
    wider = with_friction(
        robot,
        tuple((*t, *([added[j]] if j in added else [])) for j, t in enumerate(robot.friction)),
    )
    plain, mixed = ({r.parameters[k].name for k in nonnegative_columns(r)} for r in (robot, wider))
    assert plain - mixed == {'Fv1', 'Fc1'}
