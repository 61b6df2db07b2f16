"""The model in the files is the one that was identified."""

from dataclasses import astuple, replace

from identified_models import of_configuration, of_description, ROOT, saved
import numpy as np
import pytest

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.dynamics import inverse_dynamics, RobotDynamics
from robotid_ros.exceptions import RobotIdError
from robotid_ros.files.export.identified_model import read_identified_model
from robotid_ros.files.results import write_results
from robotid_ros.library import InverseDynamics as Library

FRICTION = {'default': ['viscous', 'stribeck', 'coulomb', 'spring'], 'joint_2': ['viscous']}


def test_a_folder_alone_gives_the_model(tmp_path):
    """Couplings, friction, gravity and limits come from parameters.yaml."""
    model = of_configuration(tmp_path, 'tx40', friction=FRICTION, gravity=[0.0, 9.81, 0.0])
    robot, other = model.robot, RobotDynamics(model.robot, model.chi)
    assert [c.name for c in robot.couplings] == ['wrist'] and robot.gravity.tolist()[1] == 9.81
    read = Library.load(tmp_path / 'parameters.yaml')
    q, dq, ddq = np.random.default_rng(2).uniform(-1.0, 1.0, (3, 6))
    expected = inverse_dynamics(robot, model.chi, q[None], dq[None], ddq[None])[0]
    np.testing.assert_allclose(read.efforts(q, dq, ddq), expected, rtol=1e-9)
    np.testing.assert_array_equal(read.gravity(q), other.gravity(q))
    np.testing.assert_array_equal(read.friction(q, dq), other.friction(q, dq))
    np.testing.assert_array_equal(read.mass_matrix(q), other.mass_matrix(q))
    assert np.abs(read.friction(q, dq)).min() > 0.0


CHANGES = {
    'scara': {'friction': {'default': ['viscous', 'stribeck']}, 'effort': [3.0, 4.0]},
    'ur10': {'effort_kind': 'without_gravity', 'rotor_inertia': False},
    'tx40': {},
    'planar_2r_elastic': {},
    'puma560_elastic': {},
}


@pytest.mark.parametrize('name', CHANGES)
def test_the_files_do_without_a_configuration(tmp_path, name):
    """What a library call or a recording decided is in no configuration."""
    model = of_configuration(tmp_path / 'a', name, **CHANGES[name])
    read = read_identified_model(saved(tmp_path / 'b', model.robot, model.chi))
    assert read.robot.parameters == model.robot.parameters
    assert read.robot.friction == model.robot.friction and read.robot.joints == model.robot.joints
    for limit, other in zip(astuple(read.robot.limits), astuple(model.robot.limits), strict=True):
        np.testing.assert_array_equal(limit, other)
    states = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 4, model.robot.n))
    expected = inverse_dynamics(model.robot, model.chi, *states)
    np.testing.assert_allclose(inverse_dynamics(read.robot, read.chi, *states), expected)


def test_joints_stay_where_they_stood(tmp_path):
    text = (ROOT / 'urdf' / 'arm3.urdf').read_text()
    model = of_description(tmp_path, text, joints=('joint_1', 'joint_3'), locked={'joint_2': 0.7})
    assert model.robot.locked == {'joint_2': 0.7}
    states = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 1, 2))
    robot = build_robot(
        text, RobotSettings(joints=('joint_1', 'joint_3'), locked={'joint_2': 0.7})
    )
    expected = inverse_dynamics(robot, model.chi, *states)
    np.testing.assert_allclose(inverse_dynamics(model.robot, model.chi, *states), expected)


def test_older_files_are_read_by_their_configuration(tmp_path):
    model = of_configuration(tmp_path, 'planar_2r_elastic')
    write_results(replace(model.results, model={}), tmp_path)
    read = read_identified_model(tmp_path)
    assert read.results.model == {} and read.robot.parameters == model.robot.parameters


def test_springs_are_read_but_no_torque_of_the_motion_alone(tmp_path):
    model = of_configuration(tmp_path, 'planar_2r_elastic')
    assert model.robot.joints == model.results.joints and len(model.robot.joints) > 2
    with pytest.raises(RobotIdError, match='springs'):
        Library.load(tmp_path)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(RobotIdError, match=r'parameters\.yaml'):
        read_identified_model(tmp_path)
    of_configuration(tmp_path, 'scara')
    (tmp_path / 'identified.urdf').unlink()
    with pytest.raises(RobotIdError, match=r'identified\.urdf'):
        read_identified_model(tmp_path / 'parameters.yaml')
