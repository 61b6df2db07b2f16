"""An exported SDFormat file, read a second time: bodies, joints, drives."""

from identified_models import drawn, of_configuration, saved, without
import numpy as np
import pinocchio as pin
import pytest
from sdf_model import model_of, pose

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.files.export.identified_model import read_identified_model
from robotid_ros.files.export.simulators import sdf

from .test_identified_urdf import TOOL


@pytest.mark.parametrize('name', ['scara', 'tx40', 'ur10', 'arm3', 'emps'])
def test_a_second_reading_has_the_same_dynamics(tmp_path, name):
    model = of_configuration(tmp_path, name)
    robot = model.robot
    text, notes = sdf(model)
    other, element = model_of(text)
    order = [robot.joints.index(joint) for joint in list(other.names)[1:]]
    chi = without(robot, model.chi)
    for state in np.random.default_rng(1).uniform(-1.0, 1.0, (5, 3, robot.n)):
        tau = pin.rnea(other, other.createData(), *(x[order] for x in state))
        expected = inverse_dynamics(robot, chi, *state[:, None])[0][order]
        np.testing.assert_allclose(tau, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    values = {(p.joint, p.symbol): v for p, v in zip(robot.parameters, model.chi, strict=True)}
    for joint in element.findall('joint'):
        if joint.get('type') == 'fixed':
            continue
        for tag, symbol in (('damping', 'Fv'), ('friction', 'Fc')):
            found = float(joint.find('axis/dynamics').findtext(tag))
            assert found == values.get((joint.get('name'), symbol), found)
    assert any('rotor inertias' in note for note in notes) == robot.rotor_inertia
    assert any('several joints' in note for note in notes) == (name == 'tx40')
    assert all(note in text for note in notes)


def test_links_without_a_joint_are_frames(tmp_path):
    robot = build_robot(TOOL, RobotSettings())
    model = read_identified_model(saved(tmp_path, robot, drawn(robot, np.random.default_rng(0))))
    _, element = model_of(sdf(model)[0])
    assert [link.get('name') for link in element.findall('link')] == ['base', 'l1', 'l2']
    (frame,) = element.findall('frame')
    assert (frame.get('name'), frame.get('attached_to')) == ('tool', 'l2')
    np.testing.assert_allclose(pose(frame).translation, [0, 0, 0.1])
    (fixed,) = [j for j in element.findall('joint') if j.get('type') == 'fixed']
    assert (fixed.findtext('parent'), fixed.findtext('child')) == ('world', 'base')


def test_a_joint_named_like_a_link_gets_another_name(tmp_path):
    robot = build_robot(TOOL.replace('"j1"', '"l1"'), RobotSettings())
    model = read_identified_model(saved(tmp_path, robot, drawn(robot, np.random.default_rng(0))))
    text, notes = sdf(model)
    names = [e.get('name') for e in model_of(text)[1] if e.get('name')]
    assert len(set(names)) == len(names) and 'l1_joint' in names
    assert 'l1 got _joint' in notes[-1]


def test_what_is_fixed_to_the_world_keeps_its_place(tmp_path):
    mount = (
        '<link name="world"/><joint name="mount" type="fixed"><parent link="world"/>'
        '<child link="base"/><origin xyz="1 2 3" rpy="0 0 1.2"/></joint>'
    )
    robot = build_robot(TOOL.replace('<link name="base"/>', mount + BASE), RobotSettings())
    model = read_identified_model(saved(tmp_path, robot, drawn(robot, np.random.default_rng(0))))
    other, element = model_of(sdf(model)[0])
    states = np.random.default_rng(1).uniform(-1.0, 1.0, (3, 2))
    tau = pin.rnea(other, other.createData(), *states)
    expected = inverse_dynamics(robot, without(robot, model.chi), *states[:, None])[0]
    np.testing.assert_allclose(tau, expected, rtol=1e-9)
    base = element.find('link')
    assert base.get('name') == 'base' and base.find('visual/geometry/sphere') is not None
    np.testing.assert_allclose(pose(base).translation, [1.0, 2.0, 3.0])
    assert pose(base.find('visual')).isIdentity(1e-12)
    assert [f.get('name') for f in element.findall('frame')] == ['tool']


BASE = '<link name="base"><visual><geometry><sphere radius="0.1"/></geometry></visual></link>'
