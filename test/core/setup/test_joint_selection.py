"""Which joints are identified where nobody says so, and where the others stand."""

import numpy as np
import pinocchio as pin
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.model import build_robot, inverse_dynamics, RobotSettings
from robotid_ros.core.setup.joint_choice import (
    JointTree,
    matching_names,
    PositionRange,
    select_joints,
)
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
    (note,) = select(notes, 'stood_still')
    assert note.joints == ('finger',) and note.values == {'position': 0.03} and len(notes) == 1


def test_an_encoder_that_flickers_is_at_rest():
    """By two of the 4096 steps of a turn."""
    step = 2.0 * np.pi / 4096.0
    recorded = {'one': MOVED, 'two': PositionRange(-step, step)}
    settings, _ = select_joints(gripper(), RobotSettings(), recorded)
    assert settings.joints == ('one',)


def test_names_that_begin_otherwise_here_and_there_are_told():
    urdf = gripper().replace('name="one"', 'name="left_one"').replace('"two"', '"left_two"')
    with pytest.raises(ModelError, match='rename left_one to arm_one, left_two to arm_two in'):
        select_joints(urdf, RobotSettings(), {'arm_one': MOVED, 'arm_two': MOVED})


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
    (note,) = select(notes, 'moved_but_locked')
    assert note.joints == ('two',) and note.values == {'low': -1, 'high': 1} and len(notes) == 1


def test_settings_per_joint_are_of_all_free_joints():
    for asked in ({'drive_gain': (1.0, -1.0, 2.0)}, {'effort': (9.0, 9.0, 9.0)}):
        settings, notes = select_joints(gripper(), RobotSettings(**asked), ALL)
        assert settings.joints == ('one', 'two', 'finger') and not notes


@pytest.mark.parametrize(
    ('recorded', 'words'),
    [
        ({'x': MOVED}, r'has the joints x, the robot description one, two, finger'),
        ({'one': MIN_TRAVEL, 'two': MIN_TRAVEL}, r'one, two stood still'),
        (
            {'arm_one': MOVED, 'arm_two': MOVED},
            r'rename one to arm_one, two to arm_two in the desc',
        ),
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
        ('<mimic joint="finger" multiplier="two"/>', 'must be a number'),
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
    tree = JointTree(text)
    assert tree.movable == ('one', 'two', 'follower', 'finger')
    assert tree.mimics == ('follower',)


def two_arms(limits='lower="-3" upper="-0.5"'):
    """Describe a cart with a wheel and two arms of two joints with a finger each."""
    links = ''.join(LINK.format(name) for name in ('cart', 'w', *'abcdef'))
    joints = JOINT.format('wheel', 'continuous', 'cart', 'w', '')
    for side, (one, two, three) in (('left', 'abc'), ('right', 'def')):
        joints += JOINT.format(f'{side}_1', 'revolute', 'cart', one, '')
        joints += JOINT.format(f'{side}_2', 'revolute', one, two, '').replace(
            'lower="-2" upper="2"', limits
        )
        joints += JOINT.format(f'{side}_finger', 'prismatic', two, three, '')
    return f'<robot name="cart">{links}{joints}</robot>'


LEFT = {'left_1': MOVED, 'left_2': MOVED}


def test_joints_that_were_not_recorded_stand_at_zero_or_at_the_limit_beside_it():
    settings, notes = select_joints(two_arms(), RobotSettings(locked={'wheel': 0.2}), LEFT)
    assert settings.joints == ('left_1', 'left_2')
    zeros = dict.fromkeys(('left_finger', 'right_1', 'right_finger'), 0.0)
    assert settings.locked == {'wheel': 0.2, 'right_2': -0.5, **zeros}
    (note,) = select(notes, 'joints_not_recorded')
    assert note.joints[:3] == ('left_finger', 'right_1', 'right_2') and len(notes) == 1
    assert note.values['positions'][:3] == (0.0, 0.0, -0.5)
    assert build_robot(two_arms(), settings).joints == settings.joints
    asked, notes = select_joints(two_arms(), RobotSettings(joints=('left_1',)), LEFT)
    (note,) = select(notes, 'joints_not_recorded')
    assert asked.locked['right_2'] == -0.5 and 'wheel' in note.joints


def test_joints_without_effort_stand_where_they_stood():
    left_out = {
        'left_finger': PositionRange(0.02, 0.04),
        'right_1': PositionRange(-1.0, 2.0),
        'wheel': PositionRange(0.0, 70.0),
    }
    settings, notes = select_joints(two_arms(), RobotSettings(), LEFT, left_out)
    assert settings.locked['left_finger'] == 0.03 and settings.locked['right_1'] == 0.5
    assert select(notes, 'locked_without_efforts')[0].joints == ('left_finger',)
    assert select(notes, 'locked_though_moving')[0].joints == ('wheel', 'right_1')
    left_out['left_finger'] = PositionRange(0.0, 0.1)
    with pytest.raises(
        ModelError,
        match=r'no changing effort of left_finger.* from 0 to 0\.1.*robot\.locked\.left_f',
    ):
        select_joints(two_arms(), RobotSettings(), LEFT, left_out)
    with pytest.raises(ModelError, match='no changing effort of left_1'):
        select_joints(two_arms(), RobotSettings(), {'left_2': MOVED}, {'left_1': MOVED})
    chosen = RobotSettings(locked={'left_finger': 0.05})
    assert select_joints(two_arms(), chosen, LEFT, left_out)[0].locked['left_finger'] == 0.05


@pytest.mark.parametrize(
    ('names', 'recorded', 'pairs'),
    [
        (('left_joint1', 'left_joint2'), ('joint1', 'joint2'), [(0, 0), (1, 1)]),
        (('joint1', 'joint2'), ('panda/joint1', 'panda/joint2'), [(0, 0), (1, 1)]),
        (('a_1', 'b_1', 'b_2'), ('1', '2'), [(1, 0), (2, 1)]),
        (('elbow_joint', 'base_joint'), ('Elbow', 'Base'), [(0, 0), (1, 1)]),
        (('Joint1', 'Joint2'), ('joint1', 'joint2'), [(0, 0), (1, 1)]),
        (('joint1', 'joint12'), ('joint2', 'joint11'), []),
        (('a', 'b'), ('x', 'y'), []),
    ],
)
def test_names_with_one_prefix_or_suffix_match(names, recorded, pairs):
    assert matching_names(names, recorded) == [(names[i], recorded[j]) for i, j in pairs]


def test_a_joint_that_may_be_called_otherwise_is_told():
    recorded = {**LEFT, 'gripper_left_finger': MOVED}
    _, notes = select_joints(two_arms(), RobotSettings(), recorded)
    (note,) = select(notes, 'names_alike')
    assert (*note.joints, *note.values['recorded']) == ('left_finger', 'gripper_left_finger')


def test_a_locked_joint_of_another_branch_changes_nothing():
    """Noise-free: where the other arm stands has no part in the torques of this one."""
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 9, 2))
    wanted = ('left_1', 'left_2')
    torques = [
        inverse_dynamics(robot, robot.prior, q, dq, ddq)
        for place in (0.0, 0.7)
        for robot in [
            build_robot(two_arms(), RobotSettings(joints=wanted, locked={'right_1': place}))
        ]
    ]
    np.testing.assert_allclose(torques[0], torques[1], atol=1e-12)
