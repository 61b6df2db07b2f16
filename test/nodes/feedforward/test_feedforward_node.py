"""Where goals of others begin, and what is sent of them."""

from contextlib import suppress
import dataclasses
from unittest.mock import call, Mock

from control_msgs.msg import JointTrajectoryControllerState
import numpy as np
import pytest
from rcl_interfaces.msg import ParameterEvent
from rclpy.parameter import Parameter
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.dynamics import PathDynamics
from robotid_ros.exceptions import TrajectoryError
from robotid_ros.nodes.common.messages import duration_message, trajectory_message
from robotid_ros.nodes.feedforward.feedforward_node import FeedForward, read_goal, Running

pytestmark = pytest.mark.ros

ARM = """
<robot name="turntable">
  <link name="base"/>
  <link name="table">
    <inertial>
      <mass value="2"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
    </inertial>
  </link>
  <joint name="turn" type="continuous">
    <parent link="base"/><child link="table"/><axis xyz="0 0 1"/>
    <limit effort="10" velocity="3"/>
  </joint>
</robot>
"""
ROBOT = build_robot(ARM, RobotSettings())
ZERO = np.zeros(1)


def goal(*times: float) -> JointTrajectory:
    points = [
        JointTrajectoryPoint(
            positions=[0.1 * (k + 1)],
            velocities=[0.0],
            accelerations=[0.0],
            time_from_start=duration_message(t),
        )
        for k, t in enumerate(times)
    ]
    return JointTrajectory(joint_names=['turn'], points=points)


def test_a_robot_at_rest_starts_from_its_reference():
    points, first = read_goal(goal(0.5, 1.0), ROBOT, lambda: (np.array([0.05]), ZERO))
    assert first == 0.0
    np.testing.assert_array_equal(points.q[:, 0], [0.05, 0.1, 0.2])


def test_a_joint_without_limits_takes_the_short_way():
    points, _ = read_goal(goal(0.5, 1.0), ROBOT, lambda: (np.array([2.0 * np.pi + 0.05]), ZERO))
    assert points.q[0, 0] == pytest.approx(0.05)


def test_in_motion_nothing_is_sent_before_the_first_point():
    message = goal(0.5, 1.0)
    points, first = read_goal(message, ROBOT, lambda: (np.array([0.0]), np.array([0.4])))
    assert first == 0.5
    points = dataclasses.replace(points, tau=np.zeros_like(points.q))
    sent = trajectory_message(points, message.header, first).points
    assert [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in sent] == [0.5, 1.0]
    whole = trajectory_message(points, message.header, 0.0).points
    assert len(whole) == 3


def test_what_a_stamp_leaves_until_the_goal_begins_is_time_for_its_first_segment():
    """A controller moves there from the time at which the goal comes."""
    message = goal(0.5, 1.0)
    points, first = read_goal(message, ROBOT, lambda: (np.array([0.05]), ZERO), 3.0)
    assert first == 3.0
    np.testing.assert_array_equal(points.time, [0.0, 3.5, 4.0])
    half_way = points.sample(np.array([3.25]))
    refined = dataclasses.replace(
        points,
        time=np.insert(points.time, 1, [2.0, 3.25]),
        **{
            name: np.insert(getattr(points, name), 1, [*x, *y], axis=0)
            for name, x, y in zip(
                ('q', 'dq', 'ddq'), points.sample(np.array([2.0])), half_way, strict=True
            )
        },
    )
    sent = trajectory_message(refined, message.header, first, 3.0).points
    times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in sent]
    assert times == [0.25, 0.5, 1.0]
    assert sent[0].positions[0] == half_way.q[0, 0]


def test_points_of_which_some_have_accelerations_are_refused():
    message = goal(0.0, 1.0)
    message.points[1].accelerations = []
    with pytest.raises(TrajectoryError, match='some points of the goal lack accelerations'):
        read_goal(message, ROBOT, lambda: (ZERO, ZERO))


@pytest.mark.parametrize('value', [np.nan, np.inf, 1e300])
def test_values_that_no_robot_reaches_are_refused(value):
    message = goal(0.0, 1.0)
    message.points[1].positions = [value]
    with pytest.raises(TrajectoryError, match=r'not a number, or one beyond 1e\+06'):
        read_goal(message, ROBOT, lambda: (ZERO, ZERO))


@pytest.mark.parametrize('times', [(0.5, 0.5), (1.0, 0.5), (0.0,), (-0.5, 1.0)])
def test_times_that_do_not_increase_are_refused(times):
    with pytest.raises(TrajectoryError, match='times of the goal do not increase'):
        read_goal(goal(*times), ROBOT, lambda: (ZERO, ZERO))


class Relay(FeedForward):
    """Without a graph: what goals pass, between a client and a controller that answer."""

    def __init__(self):
        self._guardian, self._client, self._logger = Mock(), Mock(), Mock()
        self._controller, self._running = 'arm', {}
        self._latest = self._guarded = self._held_effort = None
        self._others = frozenset()
        self.resolve_topic_name = '/{}'.format

    def run(self, running: Running) -> Mock:
        """Let the controller accept a goal that was sent; return the client's handle."""
        running.answer, handle = Future(), Mock(goal_id=Mock(uuid=running.goal_id.bytes))
        running.answer.set_result(Mock(accepted=True))
        handle.is_cancel_requested = False
        with suppress(StopIteration):
            self._begin(running, handle).send(None)
        return handle


def test_a_goal_on_its_way_is_guarded_while_the_one_before_ends():
    relay, first, second = Relay(), Running(1), Running(1)
    relay._send(first, Mock())
    handle = relay.run(first)
    relay._send(second, Mock())
    relay._finish(handle, first, None)
    relay.run(second)
    goals = [call.set_goal(each.goal_id) for each in (first, second)]
    assert relay._guardian.method_calls == goals
    relay._cancel_all('the guardian is gone')
    assert second.reason and second.answer.result().cancel_goal_async.called


def test_a_goal_of_another_client_makes_the_held_effort_unknown_once():
    relay, stranger = Relay(), Mock(goal_info=Mock(goal_id=Mock(uuid=b'0' * 16)))
    for held, goals in ((None, [stranger]), (1.0, [stranger]), (1.0, []), (None, [stranger])):
        relay._on_goals(Mock(status_list=goals))
        assert relay._held_effort is held
        relay._held_effort = 1.0


@pytest.mark.parametrize(
    ('integral', 'speed', 'held'), [(0.0, 0.0, 5.0), (1.0, 0, 0), (0.0, 1, 0)]
)
def test_a_goal_takes_over_from_what_the_controller_holds_for_others(integral, speed, held):
    # At rest, its output is what it holds and its loop, p e + d ė; an integral tells nobody.
    relay, joints = Relay(), list(ROBOT.joints)
    state = JointTrajectoryControllerState(joint_names=joints)
    state.reference = JointTrajectoryPoint(positions=[0.1], velocities=[float(speed)])
    state.error = JointTrajectoryPoint(positions=[-0.03], velocities=[0.2])
    state.output = JointTrajectoryPoint(effort=[5.0 - 100.0 * 0.03 + 10.0 * 0.2])
    gains = zip('pid', (50.0, integral, 10.0), strict=True)
    relay._jtc_values = {f'gains.turn.{gain}': x for gain, x in gains}
    for node, gain in (('/arm', 100.0), ('/other', 1.0)):
        changed = [Parameter('gains.turn.p', value=gain).to_parameter_msg()]
        relay._on_parameters(ParameterEvent(node=node, changed_parameters=changed))
    relay._newest_state, relay._timeout, relay._heard = state, 1.0, -np.inf
    relay._take_states = Mock()
    relay._model, relay._period = Mock(robot=ROBOT, chi=ROBOT.prior), 0.01
    relay._dynamics = PathDynamics(ROBOT, ROBOT.prior)
    relay.configuration = Mock(excitation=Mock(effort_share=1.0))
    relay.settings = Mock(ramp=0.5, largest_slowdown=1.0)
    assert not relay._is_quick(goal(0.0, 1.0))
    relay._heard = np.inf
    assert relay._is_quick(goal(0.0, 1.0))
    points, *_ = relay._with_efforts(goal(0.0, 1.0))
    assert points.tau[0] == pytest.approx([held])
