"""The arm is found by the tree of joints, and what is not the arm is said."""

import pytest

from robotid_ros.core.setup.joint_choice import choose_arm, JointTree, left_out_sentences
from robotid_ros.exceptions import ConfigurationError, ModelError, UnknownNameError

from .descriptions import chain, description

LEADER = '<limit lower="0" upper="0.04" velocity="1" effort="5"/>'
MIMIC = f'{LEADER}<mimic joint="left_finger_a"/>'
BODY = [
    ('wheel_a', 'continuous', 'base', 'wheel_a_link'),
    ('caster', 'continuous', 'base', 'caster_link'),
    ('caster_wheel', 'continuous', 'caster_link', 'caster_wheel_link'),
    ('torso', 'prismatic', 'base', 'torso_link'),
    ('head_1', 'revolute', 'torso_link', 'head_1_link'),
    ('head_2', 'revolute', 'head_1_link', 'head_2_link'),
]
HANDS = [
    ('left_finger_a', 'prismatic', 'left_tool0', 'left_finger_a_link'),
    ('left_finger_b', 'prismatic', 'left_tool0', 'left_finger_b_link'),
    ('right_finger_a', 'prismatic', 'right_tool0', 'right_finger_a_link'),
    ('right_finger_b', 'prismatic', 'right_tool0', 'right_finger_b_link'),
]
CAMERA = ('camera', 'revolute', 'left_link_3', 'camera_link')
ROWS = [*BODY, *chain('left', 'torso_link', 6), CAMERA, *chain('right', 'torso_link', 6), *HANDS]
ROBOT = description(ROWS, {'left_finger_a': LEADER, 'left_finger_b': MIMIC})
LEFT, RIGHT = (tuple(f'{side}_{k}' for k in range(1, 7)) for side in ('left', 'right'))


def choose(urdf, **options):
    return choose_arm(JointTree(urdf), **options)


def test_the_arm_of_a_mobile_robot_is_found_and_each_kind_of_other_joint_named():
    found = choose(ROBOT)
    assert (found.joints, found.tip) == (LEFT, 'left_tool0')
    named = {name: kind for kind, names in found.left_out.items() for name in names}
    assert named == {
        'left_finger_b': 'follow other joints',
        'torso': 'carry the arm, and have to stand still',
        **dict.fromkeys(
            (
                *('wheel_a', 'caster', 'caster_wheel', 'head_1', 'head_2', 'camera', *RIGHT),
                *('left_finger_a', 'right_finger_a', 'right_finger_b'),
            ),
            'not of this arm: --tip or --joints choose another one',
        ),
    }
    sentences = left_out_sentences(found)
    assert len(sentences) == len(found.left_out)
    assert 'left out: torso (carry the arm, and have to stand still)' in sentences


def test_another_arm_is_chosen_by_its_tip_or_its_joints():
    assert choose(ROBOT, tip='right_tool0').joints == RIGHT
    assert choose(ROBOT, tip='right_finger_a_link').joints == RIGHT
    assert choose(ROBOT, tip='left_link_4').joints == LEFT[:4]
    assert choose(ROBOT, tip='left_link_4').tip == 'left_link_4'
    found = choose(ROBOT, joints=('left_2', 'torso', 'left_1'))
    assert found.joints == ('torso', 'left_1', 'left_2')  # from the base outwards
    assert found.tip == 'left_link_2'


def test_the_longest_chain_wins_and_names_break_ties_only():
    legs_first = [*chain('leg', 'base', 5), *chain('arm', 'base', 5)]
    assert choose(description(legs_first)).tip == 'arm_tool0'
    longer_leg = [*chain('leg', 'base', 6), *chain('arm', 'base', 5)]
    assert choose(description(longer_leg)).tip == 'leg_tool0'


def test_a_last_joint_is_a_gripper_by_its_followers_or_its_name():
    rows = [*chain('arm', 'base', 4), ('opener', 'revolute', 'arm_tool0', 'one')]
    follower = ('other', 'revolute', 'arm_tool0', 'two')
    assert choose(description(rows)).joints[-1] == 'opener'
    mimic = {'other': '<limit velocity="1" effort="1"/><mimic joint="opener"/>'}
    assert choose(description([*rows, follower], mimic)).joints[-1] == 'arm_4'
    named = [*rows[:-1], ('gripper_joint', 'revolute', 'arm_tool0', 'one')]
    assert choose(description(named)).joints[-1] == 'arm_4'


def test_joints_without_a_drive_are_passive_where_the_others_have_one():
    rows = chain('arm', 'base', 5)
    drive = '<transmission name="t"><joint name="arm_{}"/></transmission>'
    some = description(rows, end=''.join(drive.format(k) for k in (1, 2, 3, 4)))
    assert choose(some).joints == ('arm_1', 'arm_2', 'arm_3', 'arm_4')
    assert "('arm_5',)" in str(choose(some).left_out) and 'passive' in str(choose(some).left_out)
    # Where hardly any has one, a description does not list them.
    assert len(choose(description(rows, end=drive.format(1))).joints) == 5
    unlimited = '<limit lower="-1" upper="1" effort="0" velocity="0"/>'
    assert choose(description(rows, {'arm_5': unlimited})).joints[-1] == 'arm_4'
    # Exporters leave a speed of 0 where none was given: the effort tells that there is a drive.
    no_speed = unlimited.replace('effort="0"', 'effort="9"')
    assert choose(description(rows, {'arm_1': no_speed})).joints[0] == 'arm_1'


def test_impossible_choices_are_one_sentence():
    for options, error, words in (
        ({'tip': 'nowhere'}, UnknownNameError, "unknown link 'nowhere'"),
        ({'tip': 'base'}, ModelError, "no driven joint moves the link 'base'"),
        ({'joints': ('nothing',)}, UnknownNameError, "'nothing'"),
        ({'joints': ('left_finger_b',)}, ConfigurationError, 'left_finger_b mimics left_finger_a'),
        ({'joints': ('left_1',), 'tip': 'left_tool0'}, ConfigurationError, 'give one of them'),
    ):
        with pytest.raises(error, match=words):
            choose(ROBOT, **options)
    with pytest.raises(ModelError, match='no driven joint'):
        choose(description([('only', 'fixed', 'base', 'tool')]))
