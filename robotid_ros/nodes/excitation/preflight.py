"""What must be true before anything moves; each error says what is missing and the remedy."""

from collections.abc import Mapping, Sequence
import dataclasses
from functools import partial
import time
from typing import Any

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from ...core.arrays import Array
from ...core.model.robot import Robot
from ...core.model.settings import RobotSettings
from ...core.model.urdf_parsing import movable_joints
from ...exceptions import ConfigurationError, ControllerError, RobotStateError
from ...node_settings import ExcitationNodeSettings
from ..common.batched_subscription import BatchedSubscription
from ..common.controller_client import ControllerDescription
from ..common.joint_states import is_well_formed, stack_joint_states
from ..common.waiting import wait_until
from .supervision.speed_scaling import SpeedScaling
from .supervision.watchdog import NO_COMMANDS, Watchdog

# How long other publishers of joint states, such as a gripper's, are listened to [s].
LISTENING = 0.3


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
    needed = {'position'}
    if controller.command_interfaces != ('position',):
        needed.add('velocity')
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


def check_accepted(
    unchecked: Mapping[str, str], settings: ExcitationNodeSettings, logger: Any
) -> None:
    """
    Warn of what is not checked; check that the user has accepted it.

    Parameters
    ----------
    unchecked : sentences, by the names of `accept_unchecked`
    settings : what was accepted
    logger : of the node

    Raises
    ------
    ConfigurationError : what was not accepted, and how it is

    """
    for sentence in unchecked.values():
        logger.warning(sentence)
    missing = [name for name in unchecked if name not in settings.accept_unchecked]
    if missing:
        raise ConfigurationError(
            f'{"; ".join(unchecked[name] for name in missing)}; or accept it by '
            f'excitation.accept_unchecked: [{", ".join((*settings.accept_unchecked, *missing))}]'
        )


def read_positions(
    node: Node, joints: Sequence[str], timeout: float, listening: float = LISTENING
) -> dict[str, float]:
    """
    Listen to the joint states, also those of several publishers.

    Parameters
    ----------
    node : that subscribes
    joints : that must be heard
    timeout : longest wait for them [s]
    listening : how long others may take [s]

    Returns
    -------
    Finite positions by joint, of all that were heard.

    Raises
    ------
    ControllerError : one of the joints was not heard

    """
    states = BatchedSubscription(node, JointState, 'joint_states')
    positions: dict[str, float] = {}
    end = time.monotonic() + listening

    def heard() -> bool:
        for message in states.take_newest(is_well_formed)[0]:
            pairs = zip(message.name, message.position, strict=False)
            positions.update({name: q for name, q in pairs if np.isfinite(q)})
        return set(joints) <= positions.keys() and time.monotonic() > end

    try:
        wait_until(
            heard,
            timeout + listening,
            what=f"no joint states of every joint on '{states.topic}': start the "
            'joint_state_broadcaster',
        )
    finally:
        states.close()
    return positions


def place_locked_joints(
    urdf: str, settings: RobotSettings, positions: Mapping[str, float]
) -> RobotSettings:
    """Lock joints that are neither identified nor locked by the configuration where they stand."""
    names, followers = movable_joints(urdf)
    others = set(names) - followers - set(settings.joints)
    standing = {name: positions[name] for name in names if name in others and name in positions}
    return dataclasses.replace(settings, locked={**standing, **settings.locked})


def check_states(
    streams: Sequence[BatchedSubscription],
    robot: Robot,
    settings: ExcitationNodeSettings,
) -> bool:
    """
    Check that states flow, are complete and inside the limits.

    Parameters
    ----------
    streams : joint states, the controller's states
    robot, settings : what the states are held against

    Returns
    -------
    Whether the joint states report efforts. Where they do not, or say exactly 0 for all joints
    while the controller commands others, as with gz_ros2_control, those that it commands count.

    Raises
    ------
    ControllerError, RobotStateError : what is missing

    """
    states, controller_states = streams
    no_states = f"no joint states on '{states.topic}': start the joint_state_broadcaster"
    state = states.wait_for_latest(settings.timeout, no_states, partial(_is_about, robot))
    _check_complete(state, robot)
    measured = stack_joint_states([state], robot.joints)
    inactive = f"nothing on '{controller_states.topic}': activate the controller"
    message = controller_states.wait_for_latest(settings.timeout, inactive)
    reported = _are_efforts_reported(measured.effort, message.output.effort)
    now = time.monotonic()
    watchdog = Watchdog(robot, settings, now, effort_reported=reported)
    watchdog.check_joint_states(measured, now)
    watchdog.check_locked([state])
    SpeedScaling().check(message, now, max_pause=0.0)
    if not reported and len(message.output.effort) != len(message.joint_names):
        raise RobotStateError(
            'the joint states hold no effort and the controller publishes no commanded ones, so '
            'nothing tells the torques: give the joint_state_broadcaster the effort interfaces; '
            f'where the controller commands efforts, {NO_COMMANDS}'
        )
    return reported


def _are_efforts_reported(measured: Array, commanded: Sequence[float]) -> bool:
    """Whether efforts (1, n) are those of sensors; a driver that has none may publish zeros."""
    if np.nan_to_num(measured).any():
        return True
    return not np.isnan(measured).all() and not np.nan_to_num(np.array(commanded, float)).any()


def _is_about(robot: Robot, message: Any) -> bool:
    """Whether joint states are those of the robot: others may publish theirs."""
    return is_well_formed(message) and not set(robot.joints).isdisjoint(message.name)


def _check_complete(message: Any, robot: Robot) -> None:
    missing = [joint for joint in robot.joints if joint not in message.name]
    if missing:
        raise RobotStateError(f'the joint states lack {", ".join(missing)}: broadcast every joint')
    if len(message.position) != len(message.name):
        raise RobotStateError(
            'the joint states hold no position: give the joint_state_broadcaster the position '
            'interfaces'
        )
