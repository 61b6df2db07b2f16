"""Which joints are identified where nobody says so, and where the others stand."""

import numpy as np
import pinocchio as pin
import pytest

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.joint_selection import PositionRange, select_joints
from robotid_ros.core.model.urdf_parsing import movable_joints
from robotid_ros.exceptions import ModelError

LINK = (
    '<link name="{0}"><inertial><origin xyz="0.1 0.02 0.03"/><mass value="1.5"/>'
    '<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
JOINT = (
    '<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/><origin xyz="0 0 0.3"/>'
    '<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="9" velocity="3"/>{4}</joint>'
)
FOLLOW = '<mimic joint="finger" multiplier="-1.5" offset="0.01"/>'


def gripper(mimic=FOLLOW):
    """Describe an arm of two joints with a finger and one that follows it."""
    links = ''.join(LINK.format(name) for name in 'abcde')
    joints = JOINT.format('one', 'revolute', 'a', 'b', '')
    joints += JOINT.format('two', 'revolute', 'b', 'c', '')
    joints += JOINT.format('finger', 'prismatic', 'c', 'd', '')
    joints += JOINT.format('follower', 'prismatic', 'c', 'e', mimic)
    return f'<robot name="gripper">{links}{joints}</robot>'


MOVED, MIN_TRAVEL = PositionRange(-1.0, 1.0), PositionRange(0.0299, 0.0301)
ALL = {'one': MOVED, 'two': MOVED, 'finger': MIN_TRAVEL, 'follower': PositionRange(0.0, 0.0)}


def test_joints_at_rest_are_locked_where_they_stood():
    settings, notes = select_joints(gripper(), RobotSettings(), ALL)
    assert settings.joints == ('one', 'two') and settings.locked == {'finger': 0.03}
    assert len(notes) == 1 and 'finger stood at 0.03' in notes[0]


def test_a_follower_stands_where_its_leader_puts_it():
    robot = build_robot(gripper(), RobotSettings(joints=('one', 'two'), locked={'finger': 0.03}))
    model = pin.buildModelFromXML(gripper().replace(FOLLOW, ''))
    q = pin.neutral(model)
    q[model.joints[model.getJointId('finger')].idx_q] = 0.03
    q[model.joints[model.getJointId('follower')].idx_q] = -1.5 * 0.03 + 0.01
    locked = [model.getJointId(name) for name in ('finger', 'follower')]
    expected = pin.buildReducedModel(model, locked, q)
    for one, other in zip(robot.model.inertias, expected.inertias, strict=True):
        np.testing.assert_allclose(one.toDynamicParameters(), other.toDynamicParameters())


def test_the_configuration_has_the_last_word():
    asked = RobotSettings(joints=('one',), locked={'finger': 0.1})
    settings, notes = select_joints(gripper(), asked, ALL)
    assert settings.joints == ('one',)
    assert settings.locked == {'two': 0.0, 'finger': 0.1}
    assert len(notes) == 1 and 'two moved from -1 to 1 but counts as locked' in notes[0]


def test_settings_per_joint_are_of_all_free_joints():
    for asked in ({'drive_gain': (1.0, -1.0, 2.0)}, {'effort': (9.0, 9.0, 9.0)}):
        settings, notes = select_joints(gripper(), RobotSettings(**asked), ALL)
        assert settings.joints == ('one', 'two', 'finger') and not notes


@pytest.mark.parametrize(
    ('recorded', 'words'),
    [
        ({'x': MOVED}, r'has the joints x, the robot description one, two, finger'),
        ({'one': MOVED, 'two': MOVED}, r'no effort of finger: .* --joints one,two '),
        (dict.fromkeys(ALL, MIN_TRAVEL), r'one, two, finger stood still'),
    ],
)
def test_what_does_not_fit_is_one_sentence(recorded, words):
    with pytest.raises(ModelError, match=words):
        select_joints(gripper(), RobotSettings(), recorded)


@pytest.mark.parametrize(
    ('mimic', 'words'),
    [
        ('<mimic joint="none"/>', "mimics 'none', which is no other movable joint"),
        ('<mimic joint="follower"/>', 'which is no other movable joint'),
        ('<mimic joint="finger" multiplier="two"/>', 'must be numbers'),
    ],
)
def test_a_wrong_mimic_is_one_sentence(mimic, words):
    with pytest.raises(ModelError, match=words):
        build_robot(gripper(mimic), RobotSettings(joints=('one',)))
    with pytest.raises(ModelError, match='cannot be identified by itself'):
        build_robot(gripper(), RobotSettings(joints=('one', 'follower')))


def test_joints_come_from_the_base_outwards():
    body, joints = gripper().split('<joint', 1)
    *some, last = ('<joint' + joints.removesuffix('</robot>')).split('</joint>')
    text = body + '</joint>'.join([*some[::-1], '</robot>']) + last
    assert build_robot(text, RobotSettings(locked={'finger': 0.0})).joints == ('one', 'two')
    assert movable_joints(text) == (('one', 'two', 'follower', 'finger'), {'follower'})
