"""What must be true before anything moves; each error says what is missing and the remedy."""

from collections.abc import Sequence
import time
from typing import Any

import numpy as np
from rclpy.node import Node

from ...core.model.robot import Robot
from ...exceptions import ControllerError, RobotStateError
from ...node_settings import ExcitationNodeSettings
from ..common.batched_subscription import BatchedSubscription
from ..common.controller_client import ControllerDescription
from ..common.joint_states import stack_joint_states
from ..common.runtime import wait_until
from .watchdog import Watchdog


def check_controller(controller: ControllerDescription, robot: Robot) -> None:
    """
    Check that a controller can run the session.

    Raises
    ------
    ControllerError : it has other joints, other interfaces, or a gain of zero

    """
    who = f"controller '{controller.name}'"
    if set(controller.joints) != set(robot.joints):
        raise ControllerError(
            f'{who} controls {", ".join(controller.joints)}, the configuration names '
            f'{", ".join(robot.joints)}: let robot.joints and the controller agree'
        )
    needed = (
        {'position'}
        if controller.command_interfaces == ('position',)
        else {
            'position',
            'velocity',
        }
    )
    if missing := needed - set(controller.state_interfaces):
        raise ControllerError(
            f'{who} lacks the state interface {" and ".join(sorted(missing))}: add it to its '
            'state_interfaces'
        )
    if controller.command_interfaces in (('effort',), ('velocity',)):
        idle = [j for j in robot.joints if not controller.gains.get(j, {}).get('p')]
        if idle:
            raise ControllerError(
                f'{who} has no proportional gain for {", ".join(idle)}: set gains.{idle[0]}.p'
            )


def reference_positions(message: Any, robot: Robot) -> np.ndarray:
    """
    Read the reference positions of a controller's state, in the robot's order.

    Raises
    ------
    RobotStateError : a joint is missing, or its reference is not a number

    """
    names, positions = message.joint_names, message.reference.positions
    if not set(robot.joints) <= set(names) or len(positions) != len(names):
        raise RobotStateError('the controller publishes no reference of every joint: activate it')
    reference = np.array([positions[names.index(joint)] for joint in robot.joints])
    if not np.isfinite(reference).all():
        raise RobotStateError("the controller's reference is not a number: activate it again")
    return reference


def check_states(
    node: Node,
    streams: Sequence[BatchedSubscription],
    robot: Robot,
    settings: ExcitationNodeSettings,
) -> bool:
    """
    Check that states flow, are complete and inside the limits, and that nobody else commands.

    Parameters
    ----------
    node : for its graph
    streams : joint states, the controller's states, its command topic
    robot, settings : what the states are held against

    Returns
    -------
    Whether the joint states report efforts; where they do not, as in Gazebo, the controller
    publishes those that it commands.

    Raises
    ------
    ControllerError, RobotStateError : what is missing

    """
    states, controller_states, commands = streams
    _one_writer(node, commands, settings.controller)
    arrived: list[Any] = []

    def fresh() -> bool:
        arrived.extend(states.take_messages())
        return bool(arrived)

    wait_until(
        fresh,
        settings.timeout,
        what=f"no joint states on '{states.topic}': start the joint_state_broadcaster",
    )
    last = arrived[-1]
    _complete(last, robot)
    state = stack_joint_states([last], robot.joints)
    reported = not np.isnan(state.effort).all()
    now = time.monotonic()
    Watchdog(robot, settings, now, effort_reported=reported).check_joint_states(state, now)
    commanded: list[Any] = []

    def active() -> bool:
        message = controller_states.take_latest()
        commanded.extend([] if message is None else [message])
        return bool(commanded)

    wait_until(
        active,
        settings.timeout,
        what=f"nothing on '{controller_states.topic}': activate the controller",
    )
    if not reported and len(commanded[-1].output.effort) != len(commanded[-1].joint_names):
        raise _without('effort')
    return reported


def _complete(message: Any, robot: Robot) -> None:
    missing = [joint for joint in robot.joints if joint not in message.name]
    if missing:
        raise RobotStateError(f'the joint states lack {", ".join(missing)}: broadcast every joint')
    if len(message.position) != len(message.name):
        raise _without('position')


def _without(what: str) -> RobotStateError:
    return RobotStateError(
        f'the joint states hold no {what}: give the joint_state_broadcaster the {what} interfaces'
    )


def _one_writer(node: Node, commands: BatchedSubscription, controller: str) -> None:
    others = node.get_publishers_info_by_topic(commands.topic)
    if others:
        names = {f'{o.node_namespace}/{o.node_name}'.replace('//', '/') for o in others}
        who = ', '.join(sorted(names))
        raise ControllerError(
            f"{who} can command '{controller}' on '{commands.topic}': end it, "
            'only one may move the robot'
        )
