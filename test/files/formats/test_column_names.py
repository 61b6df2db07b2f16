"""Names of columns as loggers spell them."""

import pytest

from robotid_ros.files.formats.column_names import group, understand

SPELLINGS = [
    *('q1 q_1 q[0] q(1) position_0 joint1_pos positions.joint_1 actual_q_0 pos1 theta_1'.split()),
    *('field.position0 JointPos1 msrJointPos1 q1_meas jointAngle[2]'.split()),
    '/joint_states/position[0]',
    *('joint_1_position Position_1 J1_Position current_position_1'.split()),
    *('axis1.position_deg q1[rad]'.split()),
    *('position 1', 'Joint 1 Position [deg]', 'Axis 1: actual angle'),
]
VELOCITIES = (
    'dq1 qd1 dq_1 actual_qd_0 q_dot_1 q1_dot velocity_0 field.velocity0 joint1_vel speed1 '
    'ang_vel_1 D_Theta_1 joint1.d_q'
)
EFFORTS = (
    'tau1 tau_1 tao_1 tau_J_1 effort_0 field.effort0 torque1 joint1_torque trq_1 J1ActTorque '
    'u_tau1'
)
CURRENTS = 'actual_current_0 current_1 iq1 motor_current_3 I_curr2'
OTHERS = (
    'actual_TCP_pose_0 tau_ext_1 dtau_1 q_error_1 tcp_temperature1 joint_temp_limit_1 robot_mode '
    'actual_TCP_force_2 frame_id width'
)
JOINTS = ('shoulder_pan_joint', 'elbow_joint', 'wrist_10', 'wrist_1')


def one(name, joints=()):
    (found,) = group([name], joints)
    return found


@pytest.mark.parametrize('name', SPELLINGS)
def test_a_position_is_recognised(name):
    found = one(name)
    assert (found.meaning.quantity, found.meaning.reference) == ('position', False)
    assert found.members[0][0] in (0, 1, 2)


@pytest.mark.parametrize('name', VELOCITIES.split())
def test_a_velocity_is_recognised(name):
    assert one(name).meaning.quantity == 'velocity'


@pytest.mark.parametrize('name', EFFORTS.split())
def test_an_effort_is_recognised(name):
    found = one(name)
    assert (found.meaning.quantity, found.meaning.current) == ('effort', False)


@pytest.mark.parametrize('name', CURRENTS.split())
def test_a_current_is_an_effort(name):
    found = one(name)
    assert (found.meaning.quantity, found.meaning.current) == ('effort', True)


@pytest.mark.parametrize(
    'name', ['q_d1', 'theta_d_1', 'target_q_0', 'q_des_1', 'pos_cmd1', 'desired_position_1']
)
def test_a_commanded_position_is_a_reference(name):
    found = one(name)
    assert (found.meaning.quantity, found.meaning.reference) == ('position', True)


@pytest.mark.parametrize('name', ['q_ddot_1', 'thetaDDot1', 'ang_acc_1', 'DD_Theta_1'])
def test_an_acceleration_is_no_velocity(name):
    assert one(name).meaning.quantity == 'acceleration'


@pytest.mark.parametrize('name', OTHERS.split())
def test_other_columns_mean_nothing(name):
    assert group([name], ()) == []


@pytest.mark.parametrize(
    'name', ['t', 'time', 'Time [s]', 'timestamp', '__time', 'Zeit', 'header.stamp']
)
def test_a_time_is_recognised(name):
    assert one(name).meaning.quantity == 'time'


@pytest.mark.parametrize(
    ('name', 'unit'),
    [
        *(
            ('time_ms', 'ms'),
            ('t [us]', 'us'),
            ('timestamp_ns', 'ns'),
            ('Time(s)', 's'),
            ('t', ''),
        ),
        *(('q1 [deg]', 'deg'), ('pos_deg_1', 'deg'), ('q1[rad]', 'rad'), ('x_pos1 (mm)', 'mm')),
        *(('vel_deg_s_1', 'deg/s'), ('speed_rpm_2', 'rpm'), ('dq1 [rad/s]', 'rad/s')),
        *(('torque_Nm_1', 'nm'), ('torque_mNm_1', 'mnm'), ('tau1 [N.m]', 'nm'), ('tau1', '')),
        *(('current_mA_1', 'ma'), ('current1 [A]', 'a'), ('vel_1_deg_per_s', 'deg/s')),
        *(('tau1 [Nmm]', 'mnm'), ('tau1 (kgf·cm)', 'kgfcm'), ('tau1 [in-lb]', 'lbfin')),
        *(('torque_Nmm_1', 'mnm'), ('q1 [mrad]', 'mrad'), ('tau1 [bananas]', '')),
    ],
)
def test_a_unit_in_a_name_counts(name, unit):
    assert one(name).meaning.unit == unit


@pytest.mark.parametrize('pattern', ['{}', '{}_pos', '/joint_states/{}/position', 'pos.{}'])
def test_names_of_joints_count_before_numbers(pattern):
    names = [pattern.format(joint) for joint in JOINTS]
    found = [g for g in group(names, JOINTS) if g.meaning.quantity == 'position']
    if pattern == '{}':
        assert found == []
        return
    assert [key for key, _ in found[0].members] == list(JOINTS)


def test_the_number_that_differs_counts():
    (found,) = group(['robot2_joint1_pos', 'robot2_joint2_pos', 'robot2_joint3_pos'], ())
    assert found.pattern == 'robot2_joint{i}_pos'
    assert [key for key, _ in found.members] == [1, 2, 3]


def test_names_of_joints_need_not_be_known():
    (found,) = group(['hip.position', 'knee.position'], ())
    assert (found.pattern, [key for key, _ in found.members]) == (
        '{joint}.position',
        ['hip', 'knee'],
    )


def test_names_of_joints_may_hold_numbers():
    joints = ('elbow_joint', 'wrist_1_joint', 'wrist_2_joint')
    (found,) = group([f'/joint_states/{joint}/position' for joint in joints], ())
    assert found.pattern == '/joint_states/{joint}/position'
    assert tuple(key for key, _ in found.members) == joints


def test_a_name_says_one_quantity_only():
    assert understand('torque_velocity_1') is None


def test_numbers_may_be_part_of_some_names_only():
    joints = ('ur5_shoulder_pan_joint', 'ur5_wrist_1_joint', 'ur5_wrist_2_joint')
    names = ['shoulder_pan_position', 'wrist_1_position', 'wrist_2_position', 'gripper_1_position']
    found = {g.pattern: [key for key, _ in g.members] for g in group(names, joints)}
    assert found['{joint}_position'] == ['shoulder_pan', 'wrist_1', 'wrist_2']


def test_joints_may_have_the_words_of_quantities_in_their_names():
    joints = ('head_joint', 'left_ring_q1_joint', 'base_pan_joint')
    names = [f'{joint.removesuffix("_joint")}_position' for joint in joints]
    found = {g.pattern: [key for key, _ in g.members] for g in group(names, joints)}
    assert found == {'{joint}_position': ['head', 'left_ring_q1', 'base_pan']}


@pytest.mark.parametrize('repeated', ['position ({})', 'position.{}'])
def test_repeated_names_are_numbered_joints(repeated):
    start = 2 if '(' in repeated else 1
    names = ['position', *(repeated.format(start + k) for k in range(3))]
    (found,) = group(names, ())
    assert [name for _, name in found.members] == names
    assert [key for key, _ in found.members] == list(range(start - 1, start + 3))


def test_a_repeated_time_remains_alone():
    assert {g.pattern for g in group(['time', 'time (2)'], ())} == {'time', 'time ({i})'}


def test_each_column_may_have_a_unit_of_its_own():
    (found,) = group(['q1 [deg]', 'q3 [mm]', 'q2 [deg]'], ())
    assert (found.pattern, found.meaning.unit) == ('q{i}', 'deg,deg,mm')
    assert len(group(['q1 [deg]', 'q2'], ())) == len(group(['q1 [deg]', 'q1 [rad]'], ())) == 2
