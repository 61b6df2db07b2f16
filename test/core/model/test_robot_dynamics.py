"""One state at a time agrees with the model for many, whatever the robot's drives."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio
import pytest

from robotid_ros.core.model import build_robot, mass_matrix, regressor
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.dynamics import inverse_dynamics, RobotDynamics
from robotid_ros.exceptions import ConfigurationError
from robotid_ros.files.configuration import load, read_urdf

from .test_mimic_joints import SETTINGS as MIMIC_SETTINGS, TEXT as MIMIC_ARM

ROOT = Path(__file__).resolve().parents[3]


def configured(name, **changes):
    configuration = load(ROOT / 'config' / f'{name}.yaml')
    return build_robot(read_urdf(configuration), replace(configuration.robot, **changes))


ROBOTS = {
    'plain': lambda: configured('ur10'),
    'coupled motors': lambda: configured('tx40'),
    'other order': lambda: configured('ur10', joints=tuple(reversed(configured('ur10').joints))),
    'shaped friction': lambda: configured(
        'arm3', friction={'default': ('viscous', 'stribeck', 'offset', 'spring')}
    ),
    'load': lambda: configured(
        'ur10', friction={'default': ('viscous', 'coulomb', 'load_coulomb')}
    ),
}


@pytest.mark.parametrize('kind', ROBOTS)
def test_agrees_with_the_model_for_many_states(kind):
    robot, rng = ROBOTS[kind](), np.random.default_rng(5)
    chi = robot.prior.copy()
    for k, parameter in enumerate(robot.parameters):
        if parameter.symbol.startswith(('F', 'Ia', 'off', 'K')):
            chi[k] = rng.uniform(0.05, 2.0)
    model = RobotDynamics(robot, chi)
    q, dq, ddq = rng.uniform(-2.0, 2.0, (3, 20, robot.n))
    dq[0] = 0.0
    still = np.zeros_like(q)
    many = inverse_dynamics(robot, chi, q, dq, ddq)
    bodies = robot.prior.copy()
    bodies[:] = [
        0.0 if p.symbol.startswith(('F', 'off', 'K')) else c
        for p, c in zip(robot.parameters, chi, strict=True)
    ]
    weights = inverse_dynamics(robot, bodies, q, still, still)
    for k in range(len(q)):
        scale = 1.0 + np.abs(many[k]).max()
        np.testing.assert_allclose(model.efforts(q[k], dq[k], ddq[k]), many[k], atol=1e-11 * scale)
        np.testing.assert_allclose(model.gravity(q[k]), weights[k], atol=1e-11 * scale)
        matrix = model.mass_matrix(q[k])
        np.testing.assert_allclose(matrix, mass_matrix(robot, chi, q[k]), atol=1e-11)
    # Calls do not change what others were given.
    first = model.efforts(q[0], dq[0], ddq[0])
    kept = first.copy()
    model.efforts(q[1], dq[1], ddq[1])
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize('name', [path.stem for path in (ROOT / 'config').glob('*.yaml')])
def test_links_without_mass_have_the_torques_of_the_regressor(name):
    rigid, rng = configured(name), np.random.default_rng(4)
    for robot in (each for each in (rigid, rigid.elastic) if each is not None):
        base, chi = base_parameters(robot), np.zeros(robot.p)
        chi[base.columns] = base.of(robot.prior)
        states = rng.uniform(-2.0, 2.0, (3, 50, robot.n))
        for values in (chi, rng.normal(size=robot.p)):
            expected = (regressor(robot, *states) @ values).T
            atol = 1e-10 * np.abs(expected).max(axis=0)
            assert (np.abs(inverse_dynamics(robot, values, *states) - expected) <= atol).all()


def test_joints_that_mimic_others_bear_on_them():
    robot, rng = build_robot(MIMIC_ARM, MIMIC_SETTINGS), np.random.default_rng(2)
    assert robot.followers
    model, states = RobotDynamics(robot, robot.prior), rng.uniform(-1.0, 1.0, (3, 5, robot.n))
    many = inverse_dynamics(robot, robot.prior, *states)
    for k in range(5):
        one = model.efforts(*(x[k] for x in states))
        np.testing.assert_allclose(one, many[k], atol=1e-12)
        matrix = mass_matrix(robot, robot.prior, states[0][k])
        np.testing.assert_allclose(model.mass_matrix(states[0][k]), matrix, atol=1e-12)


def test_what_has_no_model_is_refused():
    robot = configured('scara')
    with pytest.raises(ConfigurationError, match='no mass'):
        RobotDynamics(robot, np.zeros(robot.p))
    elastic = configured('planar_2r_elastic').elastic
    with pytest.raises(ConfigurationError, match='springs'):
        RobotDynamics(elastic, elastic.prior)


def with_drives(robot):
    """Return the prior with rotor inertias and friction."""
    chi, rng = robot.prior.copy(), np.random.default_rng(6)
    for k, parameter in enumerate(robot.parameters):
        if parameter.symbol.startswith(('F', 'Ia', 'off', 'K')):
            chi[k] = rng.uniform(0.05, 2.0)
    return chi


@pytest.mark.parametrize('kind', [*ROBOTS, 'mimic'])
def test_the_momentum_changes_by_what_is_not_inertia_of_acceleration(kind):
    robot = build_robot(MIMIC_ARM, MIMIC_SETTINGS) if kind == 'mimic' else ROBOTS[kind]()
    model, rng = RobotDynamics(robot, with_drives(robot)), np.random.default_rng(4)
    still, h = np.zeros(robot.n), 1e-6
    for q, dq in rng.uniform(-1.0, 1.0, (10, 2, robot.n)):
        # Cᵀ dq − g = Ṁ dq − (C dq + g), by finite differences of M along the motion.
        changed = (model.mass_matrix(q + h * dq) - model.mass_matrix(q - h * dq)) @ dq / (2.0 * h)
        bearing = model.efforts(q, dq, still) - model.friction(q, dq, model.transmitted(q, dq))
        scale = 1.0 + np.abs(bearing).max()
        np.testing.assert_allclose(
            model.momentum_rate(q, dq), changed - bearing, atol=1e-7 * scale
        )


@pytest.mark.parametrize('kind', ['other order', 'mimic'])
def test_the_jacobian_is_the_frame_s_velocity(kind):
    robot = build_robot(MIMIC_ARM, MIMIC_SETTINGS) if kind == 'mimic' else ROBOTS[kind]()
    model, rng, h = RobotDynamics(robot, robot.prior), np.random.default_rng(4), 1e-6
    frame, data = len(robot.model.frames) - 1, robot.model.createData()

    def pose(q):
        pinocchio.framesForwardKinematics(robot.model, data, robot.link_positions(q)[robot.order])
        return data.oMf[frame].copy()

    for q, dq in rng.uniform(-1.0, 1.0, (5, 2, robot.n)):
        moved = pinocchio.log6(pose(q - h * dq).actInv(pose(q + h * dq))).vector / (2.0 * h)
        np.testing.assert_allclose(model.jacobian(q, frame) @ dq, moved, atol=1e-8)


def test_plain_lists_are_vectors():
    robot = ROBOTS['other order']()
    model = RobotDynamics(robot, with_drives(robot))
    q, dq = np.random.default_rng(9).uniform(-1.0, 1.0, (2, robot.n))
    np.testing.assert_array_equal(model.friction(q.tolist(), dq.tolist()), model.friction(q, dq))
