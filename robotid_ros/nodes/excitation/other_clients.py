"""Who else could move the robot: other sessions, goals and commands of other clients."""

from collections.abc import Iterable
from typing import Any
import uuid

from action_msgs.msg import GoalStatus, GoalStatusArray
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from ...exceptions import ControllerError
from ..common.batched_subscription import BatchedSubscription
from ..common.waiting import run_in_executor, wait_until
from .trajectory_goal import ACTION

# On this topic, under the controller's name, every session gives signs of life: how often, and
# how long a publisher may be silent before it is one of a dead process, which the middleware
# forgets after 20 s only [s].
RESERVATION, PERIOD, DEAD_TIME = 'excitation_session', 0.1, 1.0
# One that is being cancelled moves nothing any more; and the controller leaves a goal so for ever
# whose cancel arrived when it had just ended.
RUNNING = (GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING)


class OtherClients:
    """
    Reserves a controller for one session, and finds whoever else uses it.

    Two sessions that begin in the same instant may find each other, and both end; should neither
    know of the other yet, the later goal preempts the earlier one, whose session then ends.

    Parameters
    ----------
    node : of the session
    controller : its name

    """

    def __init__(self, node: Node, controller: str):
        self._node, self._controller = node, controller
        self._own_goals: set[bytes] = set()
        topic, self._name = f'{controller}/{RESERVATION}', uuid.uuid4().hex
        self._reservation = node.create_publisher(String, topic, 1)
        self._signs = BatchedSubscription(node, String, topic, depth=100)
        # The node's own clock stands still where it is set back.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(PERIOD, self._give_sign, clock=steady)
        self._goals = BatchedSubscription(
            node, GoalStatusArray, f'{controller}/{ACTION}/_action/status', depth=100, latched=True
        )
        self._commands = BatchedSubscription(
            node, JointTrajectory, f'{controller}/joint_trajectory', depth=1
        )

    def add_own_goal(self, goal_id: uuid.UUID) -> None:
        """Name a goal of this session before it is sent."""
        self._own_goals.add(goal_id.bytes)

    def check_alone(self) -> None:
        """
        Check that nobody else is there, before anything moves.

        Raises
        ------
        ControllerError : who is

        """
        if self._has_rival():
            raise ControllerError(
                f"another session uses '{self._controller}' "
                f'({self._publishers(self._reservation.topic_name)}): wait for its end, or stop it'
            )
        if self._node.count_publishers(self._commands.topic):
            raise ControllerError(
                f"{self._publishers(self._commands.topic)} can command '{self._controller}' on "
                f"'{self._commands.topic}': end it, only one may move the robot"
            )
        # What others did meanwhile is past, what of it still runs is told by the newest message.
        list(self._commands.take_serialized())
        newest = self._goals.take_latest()
        self._check_goals([] if newest is None else [newest])

    def check_messages(self) -> None:
        """
        Check what has arrived since the last call.

        Raises
        ------
        ControllerError : somebody else commands the robot

        """
        self._check_goals(self._goals.take_messages())
        for _ in self._commands.take_serialized():
            raise ControllerError(
                f"somebody else commands the robot on '{self._commands.topic}': stop that first"
            )

    def _check_goals(self, messages: Iterable[Any]) -> None:
        for message in messages:
            for status in message.status_list:
                goal_id = bytes(status.goal_info.goal_id.uuid)
                if status.status in RUNNING and goal_id not in self._own_goals:
                    raise ControllerError(
                        f'goal {uuid.UUID(bytes=goal_id)} of another client runs on '
                        f"'{self._controller}/{ACTION}': end it first, only one may move the robot"
                    )

    def close(self) -> None:
        """Free the controller."""
        run_in_executor(self._node, self._destroy)
        for subscription in (self._signs, self._goals, self._commands):
            subscription.close()

    def _destroy(self) -> None:
        self._node.destroy_timer(self._timer)
        self._node.destroy_publisher(self._reservation)

    def _give_sign(self) -> None:
        self._reservation.publish(String(data=self._name))

    def _has_rival(self) -> bool:
        """Whether another session is there and alive; call from a worker thread."""
        # This session's own publisher is one of them, perhaps of a node with the same name.
        if self._node.count_publishers(self._reservation.topic_name) < 2:
            return False
        return wait_until(
            lambda: any(sign.data != self._name for sign in self._signs.take_messages()), DEAD_TIME
        )

    def _publishers(self, topic: str) -> str:
        infos = self._node.get_publishers_info_by_topic(topic)
        names = {f'{i.node_namespace}/{i.node_name}'.replace('//', '/') for i in infos}
        # A session that shares this node's name remains.
        return ', '.join(sorted(names - {self._node.get_fully_qualified_name()} or names))
