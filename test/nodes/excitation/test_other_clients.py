"""Whoever else could move the robot is found: sessions, goals, commands, before and meanwhile."""

from collections.abc import Callable
import uuid

from action_msgs.msg import GoalStatus, GoalStatusArray
from control_msgs.action import FollowJointTrajectory
import pytest
import rclpy
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory
from unique_identifier_msgs.msg import UUID
from waiting import PATIENCE, wait_until

from robotid_ros.exceptions import ControllerError
from robotid_ros.nodes.common.batched_subscription import BatchedSubscription
from robotid_ros.nodes.common.waiting import result_of
from robotid_ros.nodes.excitation.checks import OtherClients

from ..conftest import Controller

pytestmark = pytest.mark.ros


def error_of(check: Callable[[], None]) -> str:
    """Check until it fails; return the sentence."""

    def failed() -> str:
        try:
            check()
        except ControllerError as error:
            return str(error)
        return ''

    return wait_until(failed, 'somebody is found')


@pytest.mark.parametrize('other', ['second', 'excitation'])
def test_a_second_session_on_the_same_controller_is_refused(other: str, node: Node):
    first = OtherClients(node, 'arm_controller')
    first.check_alone()
    # From anywhere, by any way to name the controller, and by a node of the same name.
    rival = rclpy.create_node(other, namespace='/cell', context=node.context)
    node.executor.add_node(rival)
    second = OtherClients(rival, '/arm_controller')
    assert f"another session uses 'arm_controller' (/cell/{other})" in error_of(first.check_alone)
    assert '(/excitation)' in error_of(second.check_alone)
    second.close()
    wait_until(lambda: not refused(first), 'the controller is free again')


def test_a_session_that_died_leaves_the_controller_to_the_next(node: Node):
    dead = rclpy.create_node('dead', context=node.context)
    # It is still in the graph, but nothing of it runs.
    OtherClients(dead, 'arm_controller')
    alone = OtherClients(node, 'arm_controller')
    topic = 'arm_controller/excitation_session'
    wait_until(lambda: node.count_publishers(topic) == 2, 'it is in the graph')
    alone.check_alone()


def test_signs_of_life_do_not_follow_the_clock_of_the_node(node: Node):
    """Simulated time that stands still, as that of the system does where it is set back."""
    overrides = [Parameter('use_sim_time', value=True)]
    still = rclpy.create_node('still', context=node.context, parameter_overrides=overrides)
    node.executor.add_node(still)
    signs: list[String] = []
    node.create_subscription(String, 'arm_controller/excitation_session', signs.append, 10)
    clients = OtherClients(still, 'arm_controller')
    wait_until(lambda: len(signs) > 2, 'it gives signs of life')
    clients.close()


def refused(clients: OtherClients) -> bool:
    try:
        clients.check_alone()
    except ControllerError:
        return True
    return False


def test_goals_of_others_are_found_and_own_ones_are_not(node: Node, controller: Controller):
    others = OtherClients(node, 'arm_controller')
    client = ActionClient(node, FollowJointTrajectory, 'arm_controller/follow_joint_trajectory')
    wait_until(client.server_is_ready, 'the action is served')
    own, foreign = uuid.uuid4(), uuid.uuid4()
    others.add_own_goal(own)
    assert send(client, own).accepted
    # Its status comes before that of the other one.
    others.check_messages()
    assert send(client, foreign).accepted
    assert f'goal {foreign} of another client runs' in error_of(others.check_messages)
    # Who comes later is told what ran before.
    assert 'of another client runs' in error_of(
        OtherClients(node, 'arm_controller').check_messages
    )


def test_goals_that_ended_before_a_motion_are_past(node: Node, controller: Controller):
    others = OtherClients(node, 'arm_controller')
    witness = BatchedSubscription(
        node,
        GoalStatusArray,
        'arm_controller/follow_joint_trajectory/_action/status',
        latched=True,
    )
    client = ActionClient(node, FollowJointTrajectory, 'arm_controller/follow_joint_trajectory')
    wait_until(client.server_is_ready, 'the action is served')
    assert send(client, uuid.uuid4()).accepted
    controller.end.set_result(None)

    def ended() -> bool:
        newest = witness.take_newest(count=1)[0]
        ends = [status.status for message in newest for status in message.status_list]
        return ends == [GoalStatus.STATUS_SUCCEEDED]

    wait_until(ended, 'the goal has ended')
    wait_until(lambda: not refused(others), 'its end has arrived')
    others.close()


def send(client: ActionClient, goal_id: uuid.UUID):
    """Send a goal from the executor's thread, which takes the answer."""
    message = UUID(uuid=list(goal_id.bytes))
    task = client._node.executor.create_task(
        lambda: client.send_goal_async(FollowJointTrajectory.Goal(), goal_uuid=message)
    )
    return result_of(result_of(task, PATIENCE, 'executor'), PATIENCE, 'action')


def test_commands_of_others_are_found(node: Node):
    others = OtherClients(node, 'arm_controller')
    publisher = node.create_publisher(JointTrajectory, 'arm_controller/joint_trajectory', 1)
    found = error_of(others.check_alone)
    assert "/excitation can command 'arm_controller'" in found
    publisher.publish(JointTrajectory())
    assert 'somebody else commands the robot' in error_of(others.check_messages)
