"""The simulated robot's controller over real DDS: goals and parameters."""

from action_msgs.msg import GoalStatus
from control_msgs.msg import JointTolerance
import pytest
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rclpy.time import Time
from three_joint_robot import double, GET, JOINTS, LONG, point, SET, SET_ALL
from waiting import wait_until


def test_goal_succeeds_with_feedback(client):
    seen = []
    handle = client.send(
        point(0.0, 0.3, 0.2, -0.2), point(2.0, 0.0, 0.0, 0.0),
        feedback=lambda message: seen.append(message.feedback),
    )  # fmt: skip
    answer = client.result(handle)
    assert answer.status == GoalStatus.STATUS_SUCCEEDED
    assert (answer.result.error_code, answer.result.error_string) == (
        0, 'Goal successfully reached!',
    )  # fmt: skip
    wait_until(lambda: seen, 'feedback')
    assert seen[0].joint_names == JOINTS
    efforts = (seen[-1].actual, seen[-1].desired, seen[-1].error)
    assert [len(each.effort) for each in efforts] == [3] * 3


def test_refusal_says_nothing(client):
    for bad in (
        client.send(point(1.0, 0.0, 0.0), joints=JOINTS[:2]),
        client.send(point(1.0, 0.0, 0.0, 0.0), joints=['a', 'b', 'c']),
        client.send(point(1.0, 0.0, 0.0, 0.0, velocities=[0.0, 1e-6, 0.0])),
    ):
        assert not bad.accepted


def test_cancel(client):
    handle = client.send(point(0.0, 0.0, 0.0, 0.0), point(LONG, 0.5, 0.5, 0.5))
    client.when(lambda state: state.reference.velocities[0] > 0.0, 'it moves')
    answer = client.cancel(handle)
    assert len(answer.goals_canceling) == 1
    result = client.result(handle)
    assert result.status == GoalStatus.STATUS_CANCELED
    assert (result.result.error_code, result.result.error_string) == (0, '')


def test_preemption_and_path_tolerance(client):
    first = client.send(point(0.0, 0.0, 0.0, 0.0), point(LONG, 0.1, 0.0, 0.0))
    tight = [JointTolerance(name='zjoint', position=0.01)]
    second = client.send(point(0.0, 1.0, 0.0, 0.0), path_tolerance=tight)
    result = client.result(first)
    assert result.status == GoalStatus.STATUS_ABORTED
    assert result.result.error_code == -1
    assert result.result.error_string == 'Current goal preempted by new incoming action.'
    result = client.result(second)
    assert (result.status, result.result.error_code) == (GoalStatus.STATUS_ABORTED, -4)


def test_parameters(client):
    def get(*names):
        return client.call(GET, names=list(names)).values

    assert [v.double_value for v in get('gains.zjoint.p', 'gains.zjoint.d')] == [600.0, 60.0]
    assert get('command_interfaces')[0].string_array_value == ['effort']
    assert get('joints')[0].string_array_value == JOINTS
    assert get('gains.zjoint.p', 'gains.nobody.p') == []
    integer = ParameterValue(type=ParameterType.PARAMETER_INTEGER, integer_value=3)
    answer = client.call(
        SET,
        parameters=[
            Parameter(name='gains.zjoint.p', value=integer),
            double('gains.zjoint.d', 61.0),
            Parameter(name='update_rate', value=integer),
        ],
    )
    wrong, right, read_only = answer.results
    assert right.successful and not wrong.successful and not read_only.successful
    assert wrong.reason.startswith('Wrong parameter type')
    assert [v.double_value for v in get('gains.zjoint.p', 'gains.zjoint.d')] == [600.0, 61.0]


def test_values_that_the_original_refuses_are_refused(client):
    parameters = [
        double('constraints.goal_time', -0.5),
        double('constraints.goal_time', 0.0),
    ]
    results = client.call(SET, parameters=parameters).results
    assert [result.successful for result in results] == [False, True]


def test_atomic_set_is_all_or_nothing_and_live(client):
    def set_all(*parameters):
        return client.call(SET_ALL, parameters=list(parameters)).result

    assert not set_all(double('gains.joint2.p', 1.0), double('joints', 2.0)).successful
    values = client.call(GET, names=['gains.joint2.p']).values
    assert values[0].double_value == 600.0
    assert set_all(double('gains.joint2.p', 900.0), double('gains.joint2.d', 90.0)).successful
    now = client.node.get_clock().now()
    state = client.when(
        lambda state: Time.from_msg(state.header.stamp) > now, 'a later state arrives'
    )
    expected = 900.0 * state.error.positions[1] + 90.0 * state.error.velocities[1]
    assert state.output.effort[1] == pytest.approx(expected, abs=1e-9)
    assert abs(expected) > 1.0, 'gravity must be held by the gains'
