"""Where an iteration starts, and the inertias that the control loops were tuned for."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.excitation.trajectory import Motion
from robotid_ros.core.identification_settings import ReplaySettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.core.model.robot_builder import build_robot
from robotid_ros.core.model.settings import RobotSettings
from robotid_ros.core.replay.control_laws import JointTrajectoryEffort
from robotid_ros.core.replay.replay_problem import ReplayProblem, Torque
from robotid_ros.core.replay.simulation import direct_model, mass_matrices

from .arms import planar_urdf

RATE, ROWS = 250.0, 1000
SOFT = JointTrajectoryEffort(RATE, np.array([30.0, 12.0]), 0.0, np.array([4.0, 1.6]))


def replay_of(urdf=None, law=SOFT, decimation=1, **settings):
    """Return a replay of an arm without any torque."""
    robot = build_robot(
        urdf or planar_urdf(), RobotSettings(gravity=(0.0, -9.81, 0.0), **settings)
    )
    t, w = np.arange(ROWS)[:, None] / RATE, np.array([3.1, 4.3])
    motion = np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t)
    torque = Torque(np.arange(ROWS) * 1.0, 0.0 * motion[0], np.ones(ROWS, dtype=bool), RATE)
    desired = Motion(*motion)
    given = ReplaySettings(decimation=decimation)
    return ReplayProblem(robot, base_parameters(robot), law, desired, torque, desired, given)


@pytest.mark.parametrize('kind', ['revolute', 'prismatic'])
def test_regular_links_have_one_inertia_each(kind):
    """Of ½ q̇₁² + ½ (q̇₁ + q̇₂)², parallel axes: M = [[2, 1], [1, 1]]; with rotors alone, 1."""
    urdf = planar_urdf().replace('type="revolute"', f'type="{kind}"')
    cases = [('regular_zz', True), ('regular', False), ('regular', True)]
    for start, rotors in cases:
        replay = replay_of(urdf, rotor_inertia=rotors)
        chi = replay.initial_parameters(start)
        mass = mass_matrices(direct_model(replay.robot, chi), replay.desired.q)
        expected = np.eye(2) if (start, rotors) == cases[-1] else [[2.0, 1.0], [1.0, 1.0]]
        np.testing.assert_allclose(mass, np.broadcast_to(expected, mass.shape), atol=1e-7)


def test_the_prior_is_where_it_was_asked_for():
    replay = replay_of()
    np.testing.assert_array_equal(replay.initial_parameters('prior'), replay.prior_parameters())


@pytest.mark.parametrize('keep', [1, 5])
def test_a_priori_inertias_are_those_of_the_torque(keep):
    """A share of the description and an inertia besides, whatever friction and noise there is."""
    replay, share, own = replay_of(decimation=keep), 0.6, np.array([0.4, 0.2])
    q, dq, ddq = replay.desired
    rigid = replay.robot.of_links(replay.robot.prior)
    tau = share * inverse_dynamics(replay.robot, rigid, q, dq, ddq) + own * ddq + 0.3 * dq - 0.2
    if keep == 1:
        tau += 0.8 * np.sign(dq)
    else:  # above the band of the rows that are kept; of these alone it is an acceleration
        tau += ddq * np.cos(2.0 * np.pi / keep * np.arange(ROWS)[:, None])
    replay = dataclasses.replace(replay, torque=replay.torque._replace(tau=tau))
    expected = share * replay.inertia(rigid) + own
    np.testing.assert_allclose(replay.tuned_inertia, expected, rtol=1e-6 if keep == 1 else 0.02)
    known = dataclasses.replace(replay, a_priori_inertia=np.array([7.0, 8.0]))
    np.testing.assert_array_equal(known.tuned_inertia, [7.0, 8.0])


def test_without_a_torque_the_least_inertias_of_damped_loops_are_taken():
    replay = replay_of()
    np.testing.assert_array_equal(replay.tuned_inertia, replay.minimum_damped_inertia())


def test_damping_takes_half_of_the_velocity_in_an_update():
    """J q̇ − d q̇ h is half of J q̇, where there is hardly any stiffness."""
    damping = np.array([30.0, 4.0])
    law = JointTrajectoryEffort(RATE, np.full(2, 1e-3), 0.0, damping)
    inertia = replay_of(law=law).minimum_damped_inertia()
    np.testing.assert_allclose(inertia - damping / RATE, 0.5 * inertia)
