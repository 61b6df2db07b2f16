"""From URDF and configuration to a robot, and every way in which that can fail."""

import re

import numpy as np
import pinocchio
import pytest

from robotid_ros.core.excitation.limits import motion_limits
from robotid_ros.core.excitation.settings import ExcitationSettings
from robotid_ros.core.findings import render, select
from robotid_ros.core.model import build_robot, CoupledMotorSettings, mass_matrix, RobotSettings
from robotid_ros.core.model.robot import from_pinocchio, to_pinocchio
from robotid_ros.core.model.urdf_parsing import root_link
from robotid_ros.exceptions import ConfigurationError, ModelError, UnknownNameError

from .arms import arm, urdf


def test_parameters_have_names_and_units_in_order():
    robot = arm(friction={'default': ('viscous', 'coulomb', 'offset')})
    first = [p.name for p in robot.parameters[:14]]
    assert first == 'XX1 XY1 XZ1 YY1 YZ1 ZZ1 MX1 MY1 MZ1 M1 Ia1 Fv1 Fc1 off1'.split()
    units = {p.name: p.unit for p in robot.parameters}
    assert (units['Ia3'], units['Fv3'], units['Fc3']) == ('kg', 'N·s/m', 'N')
    assert (units['Ia1'], units['Fv1'], units['Fc1']) == ('kg·m²', 'N·m·s/rad', 'N·m')
    assert robot.prior[robot.column('M2')] == 2.5
    assert robot.prior[robot.column('Fv2')] == 0.5
    assert robot.prior[robot.column('Fc2')] == 0.25


def test_permutation_to_pinocchio_and_back_is_the_identity():
    values = np.arange(20.0).reshape(2, 10)
    np.testing.assert_array_equal(from_pinocchio(to_pinocchio(values)), values)


def test_limits_that_are_missing_are_none():
    text = re.sub(r'<limit [^>]*/>', '', urdf(), count=1)
    text = text.replace(' velocity="3"', '').replace(' effort="50"', '')
    robot = build_robot(text, RobotSettings())
    assert robot.limits.lower[0] == -np.inf and robot.limits.upper[0] == np.inf
    assert robot.limits.lower[1] == -2.0
    assert np.isinf(robot.limits.velocity).all() and np.isinf(robot.limits.effort).all()


def test_of_one_position_limit_alone_the_other_is_zero_as_parsers_of_urdf_take_it():
    text = urdf().replace('lower="-2" ', '')
    assert text != urdf()
    robot = build_robot(text, RobotSettings(joints=('slide',)))
    model = pinocchio.buildModelFromXML(text)
    k = model.joints[model.getJointId('slide')].idx_q
    assert robot.limits.lower[0] == model.lowerPositionLimit[k] == 0.0
    assert robot.limits.upper[0] == model.upperPositionLimit[k] > 0.0


def test_limits_that_a_cad_exporter_left_at_zero_are_none_and_nothing_moves_within_them():
    zeros = '<limit lower="0" upper="0" effort="0" velocity="0"/>'
    robot = build_robot(re.sub(r'<limit [^>]*/>', zeros, urdf()), RobotSettings())
    assert np.isinf(robot.limits.lower).all() and np.isinf(robot.limits.upper).all()
    with pytest.raises(ConfigurationError, match='no velocity limit'):
        motion_limits(robot, ExcitationSettings())
    some = re.sub(r'<limit [^>]*/>', zeros.replace('velocity="0"', 'velocity="1"'), urdf())
    with pytest.raises(ConfigurationError, match='leave no room'):
        build_robot(some, RobotSettings())


@pytest.mark.parametrize('kind', ['floating', 'planar'])
def test_a_base_that_floats_at_the_root_stands(kind):
    loose = f'<link name="world"/><joint name="free" type="{kind}"><parent link="world"/>'
    loose += f'<child link="{root_link(urdf())}"/></joint>'
    text = urdf().replace('<link', loose + '<link', 1)
    robot, plain = (build_robot(each, RobotSettings()) for each in (text, urdf()))
    assert [each.joints for each in select(robot.warnings, 'base_held')] == [('free',)]
    assert robot.joints == plain.joints
    np.testing.assert_array_equal(robot.prior, plain.prior)
    q = np.full((1, robot.n), 0.3)
    np.testing.assert_array_equal(*(mass_matrix(r, r.prior, q) for r in (robot, plain)))


def test_a_robot_needs_no_name():
    robot = build_robot(urdf().replace(' name="arm"', '', 1), RobotSettings())
    assert robot.name == 'robot'


def test_joints_and_limits_follow_the_configuration():
    robot = arm(joints=('turn', 'slide'), velocity=(1.0, 2.0))
    assert robot.joints == ('turn', 'slide')
    assert robot.model.nq == robot.model.nv == robot.n == 2
    assert np.isinf(robot.limits.lower[0]) and robot.limits.lower[1] == -2.0
    assert tuple(robot.limits.velocity) == (1.0, 2.0)
    assert tuple(robot.prismatic) == (False, True)


def test_arrays_are_read_only():
    robot = arm()
    for array in (robot.prior, robot.limits.lower, robot.drive_gain):
        with pytest.raises(ValueError, match='read-only'):
            array[0] = 1.0


@pytest.mark.parametrize('word', ['3.14', '3.1416', '1.57', '1.5708', '-1.571', '3.141'])
def test_rounded_right_angles_are_made_exact(word):
    robot = build_robot(urdf(rpy=f'{word} 0 0'), RobotSettings())
    assert select(robot.warnings, 'angles_rounded')
    angle = np.round(float(word) / (np.pi / 2)) * np.pi / 2
    np.testing.assert_allclose(robot.model.jointPlacements[2].rotation[2, 1], np.sin(angle))


@pytest.mark.parametrize('word', ['3.1403', '1.5734', '0.5', '1.5', '1.5707963267948966'])
def test_calibrated_angles_are_left_alone(word):
    robot = build_robot(urdf(rpy=f'{word} 0 0'), RobotSettings())
    assert robot.warnings == ()
    np.testing.assert_allclose(
        robot.model.jointPlacements[2].rotation[2, 1], np.sin(float(word)), atol=1e-15
    )


BARE = urdf().replace('<inertial>', '<!--').replace('</inertial>', '-->')
LOOP = (
    '<link name="x"/><link name="y"/><joint name="a" type="fixed"><parent link="x"/>'
    '<child link="y"/></joint><joint name="b" type="fixed"><parent link="y"/><child link="x"/>'
    '</joint></robot>'
)
LOOSE = '<link name="loose"/></robot>'
MIMIC = '<mimic joint="slide" multiplier="1"/>'


@pytest.mark.parametrize(
    ('text', 'settings', 'error', 'words'),
    [
        ('', {}, ModelError, 'empty'),
        ('<robot', {}, ModelError, 'not valid XML'),
        ('<sdf/>', {}, ModelError, 'give a URDF'),
        ('<robot name="r"><link name="a"/></robot>', {}, ModelError, 'no movable joint'),
        (BARE, {}, ModelError, 'no inertials'),
        (urdf().replace('<parent', '<mother', 1), {}, ModelError, r"parent '' of joint .* is no"),
        (urdf().replace('child link="', 'child link="un', 1), {}, ModelError, 'is no link'),
        (urdf(names=('arm',) * 4), {}, ModelError, "'arm' is the name of several joints"),
        (urdf(kinds=('revolute', 'hinge'), names=('a', 'b')), {}, ModelError, 'of type .hinge'),
        (
            urdf().replace('</robot>', LOOSE),
            {},
            ModelError,
            'has 2 roots .base, loose.',
        ),
        (urdf().replace('</robot>', LOOP), {}, ModelError, 'root .* to x, y, which .* in a loop'),
        (urdf(extra=MIMIC), {'joints': ('turn',)}, ModelError, 'mimics'),
        (urdf(kinds=('revolute', 'floating'), names=('a', 'b')), {}, ModelError, 'floating'),
        (urdf().replace('damping="0.5"', 'damping="much"'), {}, ModelError, 'number'),
        (urdf(), {'joints': ('elbow',)}, UnknownNameError, 'elbow'),
        (urdf(), {'joints': ('arm', 'arm')}, ConfigurationError, 'twice'),
        (urdf(), {'joints': ('arm',), 'locked': {'arm': 0.0}}, ConfigurationError, 'both'),
        (urdf(), {'friction': {'default': ('magic',)}}, UnknownNameError, 'viscous'),
        (urdf(), {'friction': {'elbow': ('viscous',)}}, UnknownNameError, 'elbow'),
        (urdf(), {'friction_constants': {'arm': {'k': 1.0}}}, UnknownNameError, 'makkar'),
        (urdf(), {'friction': {'default': ('coulomb', 'makkar')}}, ConfigurationError, 'Fc'),
        (urdf(), {'velocity': (1.0,)}, ConfigurationError, 'one per joint'),
        (urdf(), {'gravity': (1.0,)}, ConfigurationError, 'three'),
        (urdf(), {'lower': (3.0,) * 4}, ConfigurationError, 'no room'),
        (re.sub('axis xyz="[^"]*"', 'axis xyz="0 0.0 0"', urdf()), {}, ModelError, 'axis .* zero'),
        (urdf(), {'couplings': {'w': CoupledMotorSettings((1.0,))}}, ConfigurationError, 'ratio'),
    ],
)
def test_bad_input_is_one_sentence(text, settings, error, words):
    with pytest.raises(error, match=words) as caught:
        build_robot(text, RobotSettings(**settings))
    assert '\n' not in str(caught.value)


def test_limits_in_degrees_are_told_of_turning_joints_only():
    text = re.sub('(lower|upper)="(-?)[^"]*"', r'\1="\g<2>170"', urdf())
    warned = build_robot(text, RobotSettings()).warnings
    assert [each.joints for each in warned] == [
        ('waist', 'arm')
    ]  # the slide may be long, the turn is endless
    assert 'waist 170 rad, arm 170 rad.' in render(warned[0]) and 'degrees' in render(warned[0])
    (warned,) = build_robot(urdf(), RobotSettings(velocity=(180.0, 3.0, 3.0, 3.0))).warnings
    assert warned.joints == ('waist',) and 'such limits: waist 180 rad/s.' in render(warned)
    assert build_robot(urdf(), RobotSettings()).warnings == ()


def test_mimic_joints_are_locked_with_their_master():
    robot = build_robot(urdf(extra=MIMIC), RobotSettings(joints=('waist', 'arm')))
    assert robot.joints == ('waist', 'arm')


def test_where_locked_joints_stand_is_known():
    assert arm().locked == {}
    robot = arm(joints=('waist', 'arm'), locked={'slide': 0.7})
    assert robot.locked == {'slide': 0.7, 'turn': 0.0}


def test_locked_joints_are_lumped_where_they_stand():
    free = arm()
    locked = arm(joints=('waist', 'arm'), locked={'slide': 0.7, 'turn': -0.3})
    from robotid_ros.core.model import inverse_dynamics

    rng = np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, 5, 2))
    pad = np.zeros((5, 2))
    full = inverse_dynamics(
        free,
        free.prior,
        np.hstack([q, pad + np.array([0.7, -0.3])]),
        np.hstack([dq, pad]),
        np.hstack([ddq, pad]),
    )
    np.testing.assert_allclose(inverse_dynamics(locked, locked.prior, q, dq, ddq), full[:, :2])


def test_drives_have_gains_that_the_configuration_may_know_better():
    robot = arm(drives=('sts3215', 'xm430-w350/counts', '', ''))
    np.testing.assert_allclose(robot.drive_gain, [1.079, 1.783 * 2.69e-3, 1.0, 1.0])
    np.testing.assert_allclose(robot.gain_spread, [0.2, 0.2, 0.0, 0.0])
    assert robot.drive_gain_given
    measured = arm(drives=('sts3215', '', '', ''), drive_gain=(1.2, 1.0, 1.0, 1.0))
    np.testing.assert_allclose(measured.drive_gain, [1.2, 1.0, 1.0, 1.0])
    assert not measured.gain_spread.any()
    spread = (0.1, 0.1, 0.0, 0.0)
    assert tuple(arm(drive_gain_spread=spread).gain_spread) == spread
    with pytest.raises(UnknownNameError, match='sts3215'):
        arm(drives=('sts9999', '', '', ''))
    with pytest.raises(ConfigurationError, match='one per joint'):
        arm(drives=('sts3215',))
