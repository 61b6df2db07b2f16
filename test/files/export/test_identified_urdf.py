"""The identified description is the old text with new bodies, and simulators feel the new ones."""

import difflib
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.core.model.robot import INERTIAL
from robotid_ros.core.parameters.physical_consistency import inertial_parameters
from robotid_ros.exceptions import ModelError
from robotid_ros.files.export.identified_model import identified_urdf, is_physical

ROBOTS = Path(__file__).resolve().parents[3] / 'urdf'
NAMES = ('scara', 'tx40', 'ur10', 'arm3', 'emps')
TOOL = """<?xml version="1.0"?>
<!-- outside of the root -->
<robot name="x" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <link name="base"/>
  <link name="l1"><!-- keep me -->
    <inertial>
      <origin xyz="0.1 0.02 0.03" rpy="0.3 -0.2 0.5"/><mass value="3"/>
      <inertia ixx="0.03" ixy="0.001" ixz="0.002" iyy="0.04" iyz="-0.003" izz="0.05"/>
    </inertial>
    <visual><geometry><box size="1 1 1"/></geometry></visual>
  </link>
  <link name="l2"/>
  <link name="tool"><inertial><origin xyz="0 0 0.2"/><mass value="1.5"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.004"/></inertial></link>
  <joint name="j1" type="revolute"><parent link="base"/><child link="l1"/>
    <origin xyz="0 0 0.3" rpy="0.1 0.2 0.3"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" effort="9" velocity="1"/><dynamics damping="1"/></joint>
  <joint name='j2' type="revolute"><parent link="l1"/><child link="l2"/>
    <origin xyz="0.4 0 0" rpy="0 0.7 0"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="9" velocity="1"/></joint>
  <joint name="flange" type="fixed"><parent link="l2"/><child link="tool"/>
    <origin xyz="0 0 0.1" rpy="0.4 0 0"/></joint>
  <gazebo><joint name="j1"><dynamics damping="7"/></joint></gazebo>
</robot>
"""


def bodies(robot, rng, scale=1.0):
    """Draw standard parameters of physical bodies, couplings and rotors included."""
    values = {}
    for joint in robot.joints:
        root = 0.2 * rng.normal(size=(4, 4))
        root[3, 3] = 2.0
        pseudo = scale * root @ root.T
        assert is_physical(pseudo)
        single = inertial_parameters(pseudo)
        values |= {(joint, symbol): value for symbol, value in zip(INERTIAL, single, strict=True)}
    return np.array([values.get((p.joint, p.symbol), abs(rng.normal())) for p in robot.parameters])


def rigid(robot, chi):
    """Keep the bodies' parameters, drop rotors and friction."""
    kept = [p.symbol in INERTIAL for p in robot.parameters]
    return np.where(kept, chi, 0.0)


def check(robot, chi, text, rng):
    """Compare torques of our model, of Pinocchio and of MuJoCo on random states."""
    model = pin.buildModelFromXML(text)
    order = [robot.joints.index(name) for name in model.names[1:] if name in robot.joints]
    physics = mujoco.MjModel.from_xml_string(text)
    physics.dof_damping[:] = physics.dof_frictionloss[:] = 0.0
    physics.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data = mujoco.MjData(physics)
    for state in rng.uniform(-1.0, 1.0, size=(5, 3, robot.n)):
        q, dq, ddq = state
        ours = inverse_dynamics(robot, rigid(robot, chi), q[None], dq[None], ddq[None])[0]
        tau = pin.rnea(model, model.createData(), *(x[order] for x in state))
        np.testing.assert_allclose(tau, ours[order], rtol=1e-9, atol=1e-9)
        for name, x, v, a in zip(robot.joints, q, dq, ddq, strict=True):
            joint = physics.joint(name)
            data.qpos[joint.qposadr[0]], data.qvel[joint.dofadr[0]] = x, v
            data.qacc[joint.dofadr[0]] = a
        mujoco.mj_inverse(physics, data)
        found = [data.qfrc_inverse[physics.joint(name).dofadr[0]] for name in robot.joints]
        np.testing.assert_allclose(found, ours, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize('name', NAMES)
def test_simulators_feel_the_identified_bodies(name):
    rng = np.random.default_rng(5)
    robot = build_robot((ROBOTS / f'{name}.urdf').read_text(), RobotSettings())
    chi = bodies(robot, rng)
    text = identified_urdf(robot, chi)
    check(robot, chi, text, rng)
    physics = mujoco.MjModel.from_xml_string(text)
    values = {(p.joint, p.symbol): v for p, v in zip(robot.parameters, chi, strict=True)}
    for joint in robot.joints:
        dof = physics.joint(joint).dofadr[0]
        assert physics.dof_damping[dof] == pytest.approx(values[joint, 'Fv'])
        assert physics.dof_frictionloss[dof] == pytest.approx(values[joint, 'Fc'])


@pytest.mark.parametrize('kept', [True, False], ids=['tool kept', 'tool too heavy'])
def test_fixed_links_add_up_with_the_moving_one(kept):
    rng = np.random.default_rng(8)
    robot = build_robot(TOOL, RobotSettings())
    chi = bodies(robot, rng) + robot.prior if kept else bodies(robot, rng, 0.05)
    text = identified_urdf(robot, chi)
    check(robot, chi, text, rng)
    assert ('<origin xyz="0 0 0.2" />' in text) == kept


@pytest.mark.parametrize('name', NAMES)
def test_the_prior_changes_no_body(name):
    robot = build_robot((ROBOTS / f'{name}.urdf').read_text(), RobotSettings())
    text = identified_urdf(robot, robot.prior)
    again = build_robot(text, RobotSettings())
    kept = [p.symbol in (*INERTIAL, 'Fv', 'Fc') for p in robot.parameters]
    np.testing.assert_allclose(again.prior[kept], robot.prior[kept], rtol=1e-9, atol=1e-12)


def test_everything_else_stays():
    robot = build_robot(TOOL, RobotSettings())
    text = identified_urdf(robot, bodies(robot, np.random.default_rng(0))).replace(' />', '/>')
    for kept in ('<!-- outside of the root -->', '<!-- keep me -->', '<visual>'):
        assert kept in text
    assert '<gazebo><joint name="j1"><dynamics damping="7"/></joint></gazebo>' in text
    removed = [
        line for line in difflib.ndiff(TOOL.split('\n'), text.split('\n')) if line[0] == '-'
    ]
    words = (
        'inertia',
        'mass',
        'dynamics',
        '<origin',
        "'j2'",
        '<link name="l2"/>',
        'limit',
        '<robot',
    )
    assert all(any(word in line for word in words) for line in removed)


def test_what_is_no_xml_or_lacks_a_joint_is_refused():
    import dataclasses

    robot = build_robot(TOOL, RobotSettings())
    with pytest.raises(ModelError, match='not valid XML'):
        identified_urdf(dataclasses.replace(robot, urdf='<robot>'), robot.prior)
    with pytest.raises(ModelError, match="no joint 'j1'"):
        other = TOOL.replace('"j1"', '"k1"')
        identified_urdf(dataclasses.replace(robot, urdf=other), robot.prior)
