"""Everything that is watched while a robot moves: states, guardian, requests, other commands."""

import threading
import time
from typing import Any

from control_msgs.msg import JointTrajectoryControllerState
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from ...core.arrays import Array
from ...core.model.robot import Robot
from ...exceptions import ControllerError, RobotStateError
from ...node_settings import ExcitationNodeSettings
from ..common.batched_subscription import BatchedSubscription
from ..common.joint_states import reference_positions, stack_joint_states
from ..common.messages import to_nanoseconds
from .guardian import Guardian
from .preflight import check_states
from .watchdog import Watchdog

# States that may wait in the queue: 5 s of a controller at 1 kHz, should Python be late.
CONTROLLER_STATE_DEPTH = 5000


class RobotMonitor:
    """
    Watches the robot and what commands it.

    Its methods raise `ControllerError` or `RobotStateError` when the robot must not move (on).

    Parameters
    ----------
    node : that subscribes
    robot, settings : joints, limits and how far from them is too far
    stop : set from outside to stop the robot
    guardian : that cancels a goal should this process die

    """

    def __init__(
        self,
        node: Node,
        robot: Robot,
        settings: ExcitationNodeSettings,
        stop: threading.Event,
        guardian: Guardian,
    ):
        self._node, self._robot, self._settings = node, robot, settings
        self._stop, self._guardian = stop, guardian
        name = settings.controller
        self._joint_states = BatchedSubscription(node, JointState, 'joint_states')
        self._controller_states = BatchedSubscription(
            node,
            JointTrajectoryControllerState,
            f'{name}/controller_state',
            depth=CONTROLLER_STATE_DEPTH,
        )
        self._foreign_commands = BatchedSubscription(
            node, JointTrajectory, f'{name}/joint_trajectory', depth=1
        )
        self._subscriptions = (self._joint_states, self._controller_states, self._foreign_commands)
        self._effort_reported = True

    def close(self) -> None:
        """Unsubscribe."""
        for subscription in self._subscriptions:
            subscription.close()

    def check_ready(self) -> None:
        """Check the states before anything moves."""
        self._effort_reported = check_states(
            self._node, self._subscriptions, self._robot, self._settings
        )
        if not self._effort_reported:
            self._node.get_logger().warning(
                'the joint states report no effort: what the controller commands is taken for it'
            )

    def wait_for_reference(self) -> tuple[int, Array]:
        """
        Wait for the reference that is held: a motion from there starts without a jump.

        Returns
        -------
        Its stamp [ns] and the positions (n,).

        """
        name = self._settings.controller
        message = self._controller_states.wait_for_latest(
            self._settings.timeout, f"'{name}' publishes no controller_state: activate it"
        )
        stamp = to_nanoseconds(message.header.stamp)
        return stamp, reference_positions(message, self._robot.joints)

    def discard(self) -> None:
        """Forget what has arrived so far."""
        for subscription in self._subscriptions:
            list(subscription.take_serialized())

    def begin(self) -> None:
        """Begin to watch: what is out of date counts from now."""
        self._watchdog = Watchdog(
            self._robot, self._settings, time.monotonic(), effort_reported=self._effort_reported
        )

    def check(self, *, every_state: bool = False) -> list[Any]:
        """
        Check everything that has arrived since the last call.

        Parameters
        ----------
        every_state : decode every state of the controller, else only the newest

        Returns
        -------
        The controller's states, oldest first.

        """
        self.raise_if_stopped()
        now = time.monotonic()
        joint_states = list(self._joint_states.take_messages())
        self._watchdog.check_joint_states(
            stack_joint_states(joint_states, self._robot.joints), now
        )
        if every_state:
            states = list(self._controller_states.take_messages())
        else:
            latest = self._controller_states.take_latest()
            states = [] if latest is None else [latest]
        self._watchdog.check_controller_state(states[-1] if states else None, now)
        return states

    def raise_if_stopped(self) -> None:
        """Check everything but the robot's own state."""
        if self._stop.is_set():
            raise RobotStateError('stopped by request')
        if not self._guardian.is_running:
            raise ControllerError('the guardian died: a robot without it is not moved')
        for _ in self._foreign_commands.take_serialized():
            topic = self._foreign_commands.topic
            raise ControllerError(
                f"somebody else commands the robot on '{topic}': stop that first"
            )
