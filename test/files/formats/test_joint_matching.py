"""Names in a file and joints of a description: the same but for their spelling, or not at all."""

import pytest

from robotid_ros.core.findings import select
from robotid_ros.exceptions import RecordingError
from robotid_ros.files.formats.column_names import match_joint_names, numbers_in

from .tables import Q, read, TAU

UR = ('shoulder_pan_joint', 'elbow_joint', 'wrist_1_joint', 'wrist_2_joint')
UR10 = ('shoulder_pan_joint', 'shoulder_lift_joint', *UR[1:], 'wrist_3_joint')
PANDA = tuple(f'panda_joint{k}' for k in (1, 2, 3))
FINGERS = ('panda_finger_joint1', 'panda_finger_joint2')
SPELLINGS = [
    lambda name: name,
    lambda name: f'ur5_{name}',
    lambda name: f'ur10e/{name}',
    str.upper,
    str.title,
    lambda name: name.removesuffix('_joint'),
    lambda name: f'arm_{name.removesuffix("_joint")}',
]


@pytest.mark.parametrize('robot', SPELLINGS)
@pytest.mark.parametrize('file', SPELLINGS)
def test_a_spelling_is_no_difference(robot, file):
    found = match_joint_names([file(name) for name in sorted(UR)], [robot(name) for name in UR])
    assert found == {file(name): robot(name) for name in UR}


@pytest.mark.parametrize(
    ('found', 'known', 'matched'),
    [
        (PANDA + FINGERS, PANDA, PANDA),
        (PANDA, PANDA + FINGERS, PANDA),
        (('fr3_joint1', 'fr3_joint2', 'fr3_joint3'), PANDA + FINGERS, PANDA),
        (('joint_0', 'joint_1'), ('joint_1', 'joint_2'), ()),  # counted from 0
        (('joint1', 'joint2'), ('left_joint1', 'left_joint2', 'right_joint1', 'right_joint2'), ()),
        (('x', 'y', 'b'), ('arm_b', 'arm_a'), ()),
        (('data',), ('a', 'b'), ()),
        (('joint_1', 'joint_2', 'joint_3', 'joint_4', 'joint_5', 'joint_6'), UR10, ()),
        (('J[0]', 'J[1]', 'J[2]'), UR10, ()),
        (('joint_1', 'joint_2'), PANDA, PANDA[:2]),
        (('arm_a',), ('a',), ('a',)),
        (('a', 'b'), (), ()),
    ],
)
def test_what_is_not_certain_matches_nothing(found, known, matched):
    assert tuple(match_joint_names(found, known).values()) == matched


@pytest.mark.parametrize(
    ('names', 'numbers'),
    [
        (('a_9_x', 'a_10_x', 'a_19_x'), [9, 10, 19]),
        (('r2_q1', 'r2_q12'), [1, 12]),
        (('q1', 'q1_'), []),
        (('q1',), []),
        (('elbow', 'wrist'), []),
    ],
)
def test_names_that_differ_in_a_number_are_numbers(names, numbers):
    assert numbers_in(names) == numbers


@pytest.mark.parametrize('pattern', ['/joint_states/{}/{}', '{}.{}', '{}_{}'])
@pytest.mark.parametrize('order', [1, -1])
def test_names_with_a_prefix_count_and_not_the_order(pattern, order):
    names = ('elbow_joint', 'wrist_1_joint')[::order]
    columns = {pattern.format(n, 'position'): q for n, q in zip(names, Q.T, strict=True)}
    columns |= {pattern.format(n, 'effort'): tau for n, tau in zip(names, TAU.T, strict=True)}
    joints = ('ur5_wrist_1_joint', 'ur5_elbow_joint')
    found = read(joints=joints, q_=None, tau_=None, **columns)
    values = dict(zip(found.joints, found.position.T, strict=True))
    assert {f'ur5_{n}': tuple(q) for n, q in zip(names, Q.T, strict=True)} == {
        n: tuple(q) for n, q in values.items()
    }
    (note,) = select(found.notes, 'names_matched')
    assert (
        dict(zip(note.values['words'], note.joints, strict=True))['elbow_joint']
        == 'ur5_elbow_joint'
    )


def test_where_no_name_matches_the_order_counts_and_is_told():
    columns = {'b.pos': Q[:, 0], 'a.pos': Q[:, 1]}
    found = read(joints=('pan', 'tilt'), q_=None, **columns)
    (note,) = select(found.notes, 'joints_by_order')
    assert found.joints == ('pan', 'tilt')
    assert dict(zip(note.values['words'], note.joints, strict=True)) == {'b': 'pan', 'a': 'tilt'}
    with pytest.raises(RecordingError, match=r"'b', which is no joint .*--columns"):
        read(joints=('pan', 'tilt', 'finger'), q_=None, **columns)


def test_joints_that_the_robot_lacks_are_left_out_and_told():
    names = ('hand', 'elbow', 'wrist')
    columns = {f'/{n}/pos': Q[:, k % 2] for k, n in enumerate(names)}
    columns |= {f'/{n}/torque': TAU[:, k % 2] for k, n in enumerate(names)}
    found = read(joints=('elbow', 'wrist'), q_=None, tau_=None, **columns)
    assert found.joints == ('elbow', 'wrist')
    assert (found.position == Q[:, ::-1]).all() and (found.effort == TAU[:, ::-1]).all()
    assert [n.values['words'] for n in select(found.notes, 'joints_left_out')] == [('hand',)]


def tree(*branches):
    """Join series of joints to one base; those of wheels are continuous."""
    parts = ['<robot name="r"><link name="base"/>']
    for branch in branches:
        parent = 'base'
        for name in branch:
            kind = 'continuous' if name.startswith('wheel') else 'revolute'
            parts.append(
                f'<link name="{name}_link"/><joint name="{name}" type="{kind}"><parent '
                f'link="{parent}"/><child link="{name}_link"/><axis xyz="0 0 1"/>'
                '<limit lower="-3" upper="3" effort="9" velocity="9"/></joint>'
            )
            parent = f'{name}_link'
    return ''.join([*parts, '</robot>'])


WHEELS = [('wheel_left',), ('wheel_right',)]
ARM = ('pan', 'lift', 'elbow', 'wrist')


@pytest.mark.parametrize(
    ('branches', 'joints'),
    [
        ([*WHEELS, ARM[:2]], ARM[:2]),
        ([*WHEELS, ARM], ARM[:2]),
        ([ARM, *WHEELS], ARM[:2]),
        ([('pan', 'lift', 'wrist_1', 'wrist_2')], ('pan', 'lift')),
        ([('x', 'y', 'l_1', 'l_2', 'r_1', 'r_2')], ('x', 'y')),
    ],
)
def test_numbers_stand_for_joints_of_the_arm_and_that_is_told(branches, joints):
    found = read({'urdf': tree(*branches)})
    assert found.joints == joints
    (note,) = select(found.notes, 'joints_by_number')
    assert note.joints == tuple(joints) and note.values['columns'] == 'q_{i}'


def test_as_many_numbers_as_joints_need_no_note():
    assert len(read({'urdf': tree(*WHEELS)}).notes) == 1
