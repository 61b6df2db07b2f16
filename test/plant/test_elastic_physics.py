"""The elastic plant against its equations of motion, written with Pinocchio."""

from pathlib import Path

import mujoco
from mujoco_dynamics import energy_of
import numpy as np
import pinocchio
import pytest

from robotid_ros.exceptions import ConfigurationError
from robotid_ros.nodes.simulated_robot.simulated_robot_node import ControlLoop, Outputs
from robotid_ros.plant.physics import Physics, Sensors
from robotid_ros.plant.trajectory_controller import ControllerSettings, TrajectoryController
from robotid_ros.simulation_settings import (
    ElasticDriveSettings,
    GainSettings,
    NoiseSettings,
    SimulationSettings,
    StribeckSettings,
)

URDF = Path(__file__).parents[2] / 'urdf'
ROBOTS = {'planar_2r_elastic': (20000.0,), 'puma560': (2000.0,)}


def elastic(name='planar_2r_elastic', **changes):
    drives = {'stiffness': ROBOTS[name]} | changes.pop('elastic', {})
    settings = SimulationSettings(
        **{'rotor_inertia': (0.5,), 'viscous': (0.0,), 'coulomb': (0.0,), 'limit_effort': False}
        | changes,
        elastic=ElasticDriveSettings(**drives),
    )
    return Physics((URDF / f'{name}.urdf').read_text(), settings)


def equations(physics, tau, stiffness, inertia, viscous):
    """Accelerations of links and motors from Pinocchio and the two balances."""
    model = pinocchio.buildModelFromXML(physics.urdf)
    n = model.nv
    q, dq = physics.data.qpos, physics.data.qvel
    spring = stiffness * (q[n:] - q[:n])
    link = pinocchio.aba(model, model.createData(), q[:n], dq[:n], spring)
    return np.concatenate([link, (tau - spring - viscous * dq[n:]) / inertia])


@pytest.mark.parametrize('name', ROBOTS)
def test_both_balances_hold(name):
    physics = elastic(name, viscous=(0.7,))
    n, rng = len(physics.joints), np.random.default_rng(3)
    for _ in range(5):
        physics.data.qpos[:n] = rng.uniform(-0.5, 0.5, size=n)
        physics.data.qpos[n:] = physics.data.qpos[:n] + 0.01 * rng.normal(size=n)
        physics.data.qvel[:] = rng.normal(size=2 * n)
        tau = 20.0 * rng.normal(size=n)
        expected = equations(physics, tau, ROBOTS[name][0], 0.5, 0.7)
        physics.data.qfrc_applied[:] = [*np.zeros(n), *tau]
        mujoco.mj_forward(physics.model, physics.data)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(physics.data.qacc, expected, atol=1e-9 * scale)


def test_rest_under_gravity_is_rest():
    physics = elastic(initial_positions=(0.3, -0.5))
    links, _, _ = physics.joint_state([0.0, 0.0])
    load = ROBOTS['planar_2r_elastic'][0] * (np.array(links[2:]) - links[:2])
    for _ in range(200):
        physics.step(load)
    now, speed, effort = physics.joint_state(load)
    np.testing.assert_allclose(now, links, atol=1e-9)
    np.testing.assert_allclose(speed, 0.0, atol=1e-8)
    assert effort == [*load, *load]


def test_energy_stays_while_it_vibrates():
    physics = elastic(gravity=(0.0, 0.0, 0.0))
    physics.data.qpos[:2] = [0.01, -0.01]
    energies = []
    for _ in range(500):
        physics.step([0.0, 0.0])
        energies.append(energy_of(physics))
    assert max(abs(energies[0] - e) for e in energies) < 0.01 * energies[0]


def test_friction_acts_on_the_motor():
    physics = elastic(
        gravity=(0.0, 0.0, 0.0),
        coulomb=(3.0,),
        stribeck=StribeckSettings(extra=(1.0,), velocity=(0.1,)),
    )
    for _ in range(500):
        physics.step([3.5, 3.5])
    readings, _, _ = physics.joint_state([0.0, 0.0])
    np.testing.assert_allclose(readings, 0.0, atol=1e-4)
    for _ in range(500):
        physics.step([3.5, 8.0])
    assert physics.joint_state([0.0, 0.0])[0][3] > 0.01


def test_the_controller_sees_the_side_that_was_asked_for():
    names = {'joint_1': 'a', 'joint_2': 'b'}
    text = (URDF / 'planar_2r_elastic.urdf').read_text()
    for side, rows in (('motor', [2, 3]), ('link', [0, 1])):
        settings = SimulationSettings(
            rotor_inertia=(0.5,),
            elastic=ElasticDriveSettings(stiffness=(2e4,), feedback=side),
        )
        physics = Physics(text, settings, motors=names)
        readings, _, _ = physics.joint_state([0.0, 0.0])
        assert physics.joint_state_names == ('joint_1', 'joint_2', 'a', 'b')
        assert physics.position.tolist() == [readings[row] for row in rows]
        assert physics.feedback(readings) == [readings[row] for row in rows]


def test_joints_without_stiffness_stay_rigid():
    physics = elastic(elastic={'stiffness': (2e4, 0.0)})
    assert physics.joint_state_names == ('joint_1', 'joint_2', 'joint_1_motor')
    values = {truth.name: truth.values for truth in physics.true_parameters()}
    assert values['joint_1']['K'] == 2e4
    assert 'K' not in values['joint_2']
    assert elastic(elastic={'stiffness': (0.0,)}).joint_state_names == ('joint_1', 'joint_2')


def test_joint_states_carry_both_sides_and_the_controller_sees_one():
    settings = SimulationSettings(
        rotor_inertia=(0.5,),
        gains={f'joint_{j}': GainSettings(p=3000.0, d=200.0) for j in (1, 2)},
        elastic=ElasticDriveSettings(stiffness=(2e4,)),
        noise=NoiseSettings(position=(0.0,), velocity=(0.0,)),
        state_rate=0.0,
    )
    physics = Physics((URDF / 'planar_2r_elastic.urdf').read_text(), settings)
    controller = TrajectoryController(
        ControllerSettings(physics.joints, physics.wraparound, 1_000_000, settings.gains)
    )
    sent = []
    outputs = Outputs(lambda *state: sent.append(state), lambda *_: None, lambda _: None)
    sensors = Sensors(settings, physics.joint_state_names)
    loop = ControlLoop(physics, sensors, controller, settings, outputs)
    controller.activate(physics.position.tolist(), physics.velocity.tolist())
    for _ in range(300):
        loop.cycle()
    _, q, _, tau = sent[-1]
    assert len(q) == 4
    assert tau[:2] == tau[2:]
    np.testing.assert_allclose(tau[:2], 2e4 * (np.array(q[2:]) - q[:2]), rtol=0.1)
    np.testing.assert_allclose(controller.state.current.positions, q[2:], atol=1e-3)


def test_a_motor_needs_inertia():
    with pytest.raises(ConfigurationError, match='rotor_inertia'):
        elastic(rotor_inertia=(0.0,))
