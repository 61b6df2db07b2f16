"""The direct model of the replay against the package's inverse and forward dynamics."""

from forward_dynamics import forward_dynamics
import numpy as np
import pytest

from robotid_ros.core.excitation.trajectory import Motion
from robotid_ros.core.model.dynamics import inverse_dynamics, regressor
from robotid_ros.core.model.robot_builder import build_robot
from robotid_ros.core.model.settings import CoupledMotorSettings, RobotSettings
from robotid_ros.core.replay.control_laws import JointTrajectoryEffort
from robotid_ros.core.replay.simulation import direct_model, simulate, slip_columns

from .arms import parameters, planar_urdf

FRICTIONS = [
    ('viscous', 'coulomb', 'offset'),
    ('asymmetric_viscous', 'asymmetric_coulomb'),
    ('viscous', 'stiction'),
    ('viscous', 'makkar', 'offset'),
    ('viscous', 'coulomb', 'spring'),
    ('viscous', 'coulomb', 'ripple'),
    ('viscous', 'presliding', 'offset'),
]


def robot_of(friction=FRICTIONS[0], coupled=False, joints=()):
    couplings = {'wrist': CoupledMotorSettings((1.0, 1.0))} if coupled else {}
    settings = RobotSettings(
        friction={'default': friction},
        friction_constants={'default': {'ripple_order': 12.0}},
        couplings=couplings,
        joints=joints,
        gravity=(0.0, -9.81, 0.0),
    )
    return build_robot(planar_urdf(), settings)


@pytest.mark.parametrize('friction', FRICTIONS)
@pytest.mark.parametrize('coupled', [False, True])
@pytest.mark.parametrize('joints', [(), ('joint_2', 'joint_1')])
def test_accelerations_are_those_of_the_model(friction, coupled, joints):
    robot = robot_of(friction, coupled, joints)
    chi = parameters(robot, 3)
    direct = direct_model(robot, chi)
    rng = np.random.default_rng(5)
    for _ in range(5):
        q, dq, tau = rng.normal(size=(3, 2))
        dry = direct.slip_directions.T @ (direct.coulomb * np.sign(direct.slip_directions @ dq))
        ours = direct.acceleration(q, dq, tau - direct.offset - dry)
        np.testing.assert_allclose(ours, forward_dynamics(robot, chi, q, dq, tau), rtol=1e-9)
        np.testing.assert_allclose(direct.inverse_dynamics(q, dq, ours), tau, atol=1e-9)


@pytest.mark.parametrize('friction', FRICTIONS)
@pytest.mark.parametrize('coupled', [False, True])
def test_observation_matrix_gives_the_simulated_torque_in_every_row(friction, coupled):
    robot = robot_of(friction, coupled)
    chi = parameters(robot, 7)
    law = JointTrajectoryEffort(250.0, np.array([300.0, 120.0]), 0.0, np.array([40.0, 16.0]))
    t = np.arange(750)[:, None] / 250.0
    q = np.sin(t * np.array([3.0, 4.0]))
    run = simulate(direct_model(robot, chi), law, Motion(q, np.gradient(q, 0.004, axis=0), 0 * q))
    w = regressor(robot, run.q, run.dq, run.ddq)
    for j, column, values in slip_columns(robot, run.slip_sign):
        w[j, :, column] = values
    np.testing.assert_allclose((w @ chi).T, run.tau, atol=1e-8)


@pytest.mark.parametrize('friction', [('viscous',), ('viscous', 'smooth_coulomb', 'ripple')])
@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_the_fastest_friction_rate_is_that_of_the_speed_s_growth_or_decay(friction, sign):
    """Friction that drives, as iterations may find it, needs steps as small as one that brakes."""
    robot = robot_of(friction)
    chi = parameters(robot, 3)
    chi[[k for k, p in enumerate(robot.parameters) if p.symbol.startswith('F')]] *= sign
    q, rest, step = np.array([0.3, -0.8]), np.zeros(2), 1e-6
    direct = direct_model(robot, chi)
    start = forward_dynamics(robot, chi, q, rest, rest)
    slope = [
        (forward_dynamics(robot, chi, q, step * unit, rest) - start) / step for unit in np.eye(2)
    ]
    expected = np.abs(np.linalg.eigvals(np.array(slope).T)).max()
    assert direct.fastest_friction_rate(q) == pytest.approx(expected, rel=1e-4)


def test_moving_rows_need_no_help():
    robot = robot_of()
    chi = parameters(robot, 1)
    law = JointTrajectoryEffort(250.0, np.array([300.0, 120.0]), 0.0, np.array([40.0, 16.0]))
    t = np.arange(500)[:, None] / 250.0
    q = np.sin(t * np.array([3.0, 4.0]))
    run = simulate(direct_model(robot, chi), law, Motion(q, np.gradient(q, 0.004, axis=0), 0 * q))
    moving = (run.slip_sign == np.sign(run.dq)).all(axis=1) & (run.dq != 0.0).all(axis=1)
    assert moving.mean() > 0.9
    tau = inverse_dynamics(robot, chi, run.q, run.dq, run.ddq)
    np.testing.assert_allclose(tau[moving], run.tau[moving], atol=1e-9)
