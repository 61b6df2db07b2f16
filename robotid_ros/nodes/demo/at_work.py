"""The model at work: a motion through the node `feedforward`, without a body and with one."""

from collections.abc import Callable
from typing import Any, NamedTuple

from action_msgs.msg import GoalStatus
from control_msgs.action import FollowJointTrajectory
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import numpy as np
import pinocchio as pin
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.parameter import Parameter

from ...core.arrays import Array
from ...core.excitation.trajectory import point_to_point
from ...core.model.robot import Robot
from ...exceptions import ControllerError
from ..common.controller import ACTION, reference_positions, SET_PARAMETERS, subscribe_states
from ..common.messages import trajectory_message, values_of
from ..common.runtime import LATCHED_HISTORY
from ..common.waiting import result_of, wait_until

RELAY, ROBOT = 'feedforward', 'simulated_robot'
# Of the motion: largest travel of a joint [rad or m], shares of its limits of velocity and
# acceleration; joints without limits take these [rad/s, rad/s²].
TRAVEL, TRAVEL_PRISMATIC, SPEED = 0.5, 0.1, 0.4
FASTEST, HARDEST = 1.5, 5.0
# The body that is picked up weighs this share of the arm.
BODY = 0.05
TIMEOUT = 60.0


class AtWork(NamedTuple):
    """
    Tracking errors of one motion.

    `rms` (4, n) are those without efforts, with them, with a body of `mass` [kg] of which the
    model does not know, and with one that was set [`units`]; two rows without a body.
    """

    joints: tuple[str, ...]
    units: tuple[str, ...]
    mass: float
    rms: Array


class Client:
    """A client of the node `feedforward` in front of the simulated robot; `node` spins."""

    def __init__(self, node: Node, robot: Robot, controller: str):
        self._node, self._robot = node, robot
        self._states = subscribe_states(node, controller)
        self._tracking: list[DiagnosticArray] = []
        self._state: dict[str, Any] = {}
        self._action = ActionClient(node, FollowJointTrajectory, f'{RELAY}/{ACTION}')
        self._parameters = {
            name: node.create_client(SetParametersAtomically, f'{name}/{SET_PARAMETERS}')
            for name in (RELAY, ROBOT)
        }
        for topic, kind, heard in (
            ('tracking', DiagnosticArray, self._tracking.append),
            ('state', DiagnosticStatus, lambda m: self._state.update(message=m)),
        ):
            node.create_subscription(kind, f'{RELAY}/{topic}', heard, LATCHED_HISTORY)

    def wait_ready(self) -> None:
        """Wait until goals are taken; ControllerError: why they are not."""

        def state() -> str:
            return values_of(self._state['message'])['state'] if self._state else 'starting'

        wait_until(lambda: state() != 'starting', TIMEOUT, what=f"'{RELAY}' says nothing")
        if state() == 'failed':
            raise ControllerError(self._state['message'].message)
        wait_until(self._action.server_is_ready, TIMEOUT, what=f"'{RELAY}' takes no goals")

    def held(self) -> Array:
        """Return the positions that the controller holds (n,) [rad or m]."""
        message = self._states.wait_for_latest(TIMEOUT, 'the controller publishes no state')
        return reference_positions(message, self._robot.joints)

    def set(self, name: str, **values: Any) -> None:
        """Set parameters of its group of a node; '__' stands for a point."""
        group = 'simulation' if name == ROBOT else name
        request = SetParametersAtomically.Request()
        request.parameters = [
            Parameter(f'{group}.{key.replace("__", ".")}', value=value).to_parameter_msg()
            for key, value in values.items()
        ]
        client = self._parameters[name]
        wait_until(client.service_is_ready, TIMEOUT, what=f"'{name}' has no parameters")
        result = result_of(client.call_async(request), TIMEOUT, name).result
        if not result.successful:
            raise ControllerError(result.reason)

    def move(self, start: Array, end: Array) -> Array:
        """Move from rest to rest; return the RMS of each joint's tracking error (n,)."""
        limits, count = self._robot.limits, len(self._tracking)
        motion = point_to_point(
            *(self._robot.joints, start, end),
            SPEED * np.minimum(limits.velocity, FASTEST),
            SPEED * np.minimum(limits.acceleration, HARDEST),
        )
        goal = FollowJointTrajectory.Goal(trajectory=trajectory_message(motion))
        handle = self._call(lambda: self._action.send_goal_async(goal))
        answer = self._call(handle.get_result_async)
        if answer.status != GoalStatus.STATUS_SUCCEEDED:
            raise ControllerError(answer.result.error_string)
        wait_until(lambda: len(self._tracking) > count, TIMEOUT, what='no tracking error is told')
        return np.array([float(values_of(s)['rms']) for s in self._tracking[count].status])

    def _call(self, function: Callable[[], Any]) -> Any:
        """Await a future of the action, which is the executor's."""
        assert self._node.executor is not None
        future = result_of(self._node.executor.create_task(function), TIMEOUT, RELAY)
        return result_of(future, TIMEOUT, RELAY)


def tool_link(robot: Robot) -> str:
    """Name of the last link that moves with the last joint."""
    last = robot.model.getJointId(robot.joints[-1])
    bodies = (f for f in robot.model.frames if f.parentJoint == last)
    return str([f.name for f in bodies if f.type == pin.FrameType.BODY][-1])


def work(client: Client, robot: Robot, *, carries: bool) -> AtWork:
    """
    Run a motion without and with efforts, then with a body that is unknown, and known.

    Parameters
    ----------
    client : ready
    robot : of the results
    carries : whether the robot carries a body already; else it takes one with its `tool_link`

    """
    held = client.held()
    most = np.where(robot.prismatic, TRAVEL_PRISMATIC, TRAVEL)
    up, down = robot.limits.upper - held, held - robot.limits.lower
    there = held + np.where(up >= down, np.minimum(most, 0.5 * up), -np.minimum(most, 0.5 * down))
    masses = [robot.prior[k] for k, p in enumerate(robot.parameters) if p.symbol == 'M']
    mass = 0.0 if carries else max(0.1, round(BODY * float(np.sum(masses)), 1))
    rms = []

    def run() -> None:
        rms.append(client.move(held, there))
        client.move(there, held)

    for enabled in (False, True):
        client.set(RELAY, enabled=enabled)
        run()
    if mass:
        client.set(ROBOT, payload__mass=mass)
        run()
        client.set(RELAY, payload__frame=tool_link(robot), payload__mass=mass)
        run()
    units = tuple('m' if prismatic else 'rad' for prismatic in robot.prismatic)
    return AtWork(robot.joints, units, mass, np.array(rms))
