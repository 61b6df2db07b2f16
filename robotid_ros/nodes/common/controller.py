"""
All that differs between controllers: names, interfaces, gains, states, speed, hardware, goals.

A session moves a joint_trajectory_controller of ros2_control, or one that is built on it, such as
the scaled ones of Universal Robots. Whoever adds another kind of controller does it here.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
import math
from typing import Any
import uuid

from action_msgs.msg import GoalInfo, GoalStatus
from action_msgs.srv import CancelGoal
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance, JointTrajectoryControllerState
from controller_manager_msgs.srv import (
    ListHardwareComponents,
    SetHardwareComponentState,
    SwitchController,
)
from lifecycle_msgs.msg import State as Lifecycle
import numpy as np
from rclpy.action import ActionClient
from rclpy.node import Node
from unique_identifier_msgs.msg import UUID

from ...core.arrays import Array
from ...core.excitation.trajectory import Waypoints
from ...core.model.robot import Robot
from ...core.signals.recording import Controller
from ...exceptions import ControllerError, RobotStateError
from .batched_subscription import BatchedSubscription
from .messages import duration_message, to_time, trajectory_message
from .ros_parameters import ParameterClient
from .waiting import result_of, Silence, wait_until

# The controller that a session moves; types that are built on it are read alike.
JTC = 'joint_trajectory_controller/JointTrajectoryController'
# Controllers that hand on efforts for all their joints at once, from a topic below them.
EFFORT_CONTROLLER_TYPES = (
    'forward_command_controller/ForwardCommandController',
    'effort_controllers/JointGroupEffortController',
)
FORWARDED, MANAGER = 'commands', 'controller_manager'
STATE_TYPE = JointTrajectoryControllerState
# Below a controller's name: its state, trajectories for it, an action and parts of that.
STATE, COMMANDS = 'controller_state', 'joint_trajectory'
ACTION = 'follow_joint_trajectory'
GOALS, CANCEL = f'{ACTION}/_action/status', f'{ACTION}/_action/cancel_goal'
SET_PARAMETERS = 'set_parameters_atomically'
# On this topic, under the controller's name, every session gives signs of life.
RESERVATION = 'excitation_session'
# States of a goal that moves. One that is being cancelled moves nothing, and may stay so for ever.
RUNNING = (GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING)
# It leaves its commands out for good once one of them was NaN.
NO_COMMANDS = 'after a NaN it publishes none until it is cleaned up, configured and activated'
# A slower session says little: accelerations go with its square. Waits take its inverse longer.
MIN_SPEED = 0.1
MAX_PAUSE = 5.0  # in which a robot may be slower on its way, as while somebody stands near it [s]
ROUNDING = 1e-6  # of a speed scaling that a driver hands on as a percentage
HARDWARE_TIMEOUT = 0.1  # of controller_manager's answer [s]: 'failed' is not published before
_HARDWARE = f'{MANAGER}/list_hardware_components'
SET_HARDWARE = f'{MANAGER}/set_hardware_component_state'
SWITCH = f'{MANAGER}/switch_controller'
# Packages of hardware that simulates a description's bodies as they are, without rotors.
GAZEBO = ('gz_ros2_control', 'ign_ros2_control')


@dataclass(frozen=True, kw_only=True)
class ControllerDescription(Controller):
    """What a controller says about itself, all by its parameters `values`; rate 0: not said."""

    type: str = JTC
    state_interfaces: tuple[str, ...]
    values: Mapping[str, Any]

    @classmethod
    def from_parameters(cls, name: str, values: Mapping[str, Any]) -> 'ControllerDescription':
        """Read a controller's parameters, by name."""
        gains: dict[str, dict[str, float]] = {}
        for key in (key for key in values if key.startswith('gains.')):
            joint, _, gain = key.removeprefix('gains.').rpartition('.')
            value = values[key]
            if gain == 'antiwindup_strategy':
                # Gains are numbers: a strategy is one by its name, which the replay knows.
                gain, value = f'antiwindup_{value}', 1.0
            if isinstance(value, int | float):
                gains.setdefault(joint, {})[gain] = float(value)
        return cls(
            name=name,
            joints=tuple(values['joints']),
            command_interfaces=tuple(values['command_interfaces']),
            state_interfaces=tuple(values.get('state_interfaces') or ()),
            rate=float(values.get('update_rate') or 0.0),
            gains=gains,
            values=values,
        )

    @property
    def followed_interface(self) -> str:
        """Of the interfaces that it commands, the one that the drives follow."""
        order = ('position', 'velocity', 'effort')
        return next((name for name in order if name in self.command_interfaces), 'effort')

    @property
    def why_no_feed_forward(self) -> str:
        """Why it is sent no efforts beside a motion, '' where it takes them."""
        names, commands = self.values.get('command_joints') or (), self.command_interfaces
        below = sorted({name.rpartition('/')[0] for name in names} - {''})
        if below:
            why = 'what that adds is not known here, so no efforts are sent'
            return f"'{self.name}' commands {', '.join(below)}: {why}"
        if commands != ('effort',):
            why = ' and takes no efforts'
            if 'effort' in commands:
                why = ', what drives make of efforts beside others is not known here'
            who = f"'{self.name}' commands {', '.join(commands)}"
            return f'{who}{why}: its command_interfaces would have to be [effort]'
        return ''

    def check_gains_are_torques(self) -> None:
        """Check that gains are torques per error, which follow from the inertia."""
        if self.command_interfaces != ('effort',):
            raise ControllerError(
                f"'{self.name}' commands {', '.join(self.command_interfaces)}: gains follow from "
                'the inertia only for effort commands'
            )

    def fields_of(self, kind: Any, prefix: str) -> dict[str, Any]:
        """Return its parameters below a prefix that are fields of a dataclass, by their names."""
        found = {each.name: self.values.get(f'{prefix}.{each.name}') for each in fields(kind)}
        return {name: value for name, value in found.items() if value is not None}

    def to_dict(self) -> dict[str, Any]:
        """Describe the controller by plain values, as a recording keeps it."""
        found = {k: list(v) if isinstance(v, tuple) else v for k, v in vars(self).items()}
        del found['values']
        return found


def check_controller(controller: ControllerDescription, robot: Robot) -> None:
    """Check a controller for a session: `ControllerError` for its joints, interfaces or gains."""
    who, commands = f"controller '{controller.name}'", controller.command_interfaces
    if set(controller.joints) != set(robot.joints):
        raise ControllerError(
            f'{who} controls {", ".join(controller.joints)}, the configuration names '
            f'{", ".join(robot.joints)}: let robot.joints and the controller agree'
        )
    needed = {'position'} if commands == ('position',) else {'position', 'velocity'}
    if missing := needed - set(controller.state_interfaces):
        raise ControllerError(
            f'{who} lacks the state interface {" and ".join(sorted(missing))}: add it to its '
            'state_interfaces'
        )
    if commands in (('effort',), ('velocity',)):
        idle = [joint for joint in robot.joints if not controller.gains.get(joint, {}).get('p')]
        if idle:
            why = f'has no proportional gain for {", ".join(idle)}: set gains.{idle[0]}.p'
            raise ControllerError(f'{who} {why}')


def unbearable_gains(controller: ControllerDescription, robot: Robot, rate: float) -> list[str]:
    """Return joints whose gains their bodies alone, which Gazebo simulates, do not bear."""
    from ...core.verification.gains import BodyLoops

    gains = controller.pid_gains(robot.joints)
    known = rate and gains[0].any() and not (robot.assumed_inertials or robot.elastic)
    if controller.command_interfaces != ('effort',) or not known:
        return []
    return BodyLoops(robot, gains, rate).unstable_joints()


def is_gazebo(plugin: str) -> bool:
    """Whether a hardware plug-in, by its name, is Gazebo's."""
    return plugin.partition('/')[0] in GAZEBO


class ControllerClient(ParameterClient):
    """The parameters of one controller; it must follow trajectories."""

    def describe(self) -> ControllerDescription:
        """Read all parameters of the controller."""
        wait_until(
            self.is_ready,
            self.timeout,
            what=f"there is no controller '{self.name}': start it, or set excitation.controller "
            "to one of those that 'ros2 control list_controllers' shows",
        )
        values = self.get(self.list())
        if not values.get('joints') or 'command_interfaces' not in values:
            raise ControllerError(
                f"'{self.name}' has no parameters joints and command_interfaces: it must be a "
                'joint_trajectory_controller, scaled or not, and none that passes trajectories '
                'through'
            )
        return ControllerDescription.from_parameters(self.name, values)

    def set(self, values: Mapping[str, float]) -> None:
        """Set numbers all at once or not at all, and read them back."""
        if wrong := [name for name, value in values.items() if not math.isfinite(value)]:
            raise ControllerError(f'{wrong[0]} would not be a number: nothing was set')
        super().set({name: float(value) for name, value in values.items()})
        for name, found in self.get(list(values)).items():
            if found != float(values[name]):
                then = f'after it was set to {values[name]}'
                raise ControllerError(f"'{self.name}' says {name} is {found} {then}")


def subscribe_states(node: Node, controller: str, **options: Any) -> BatchedSubscription:
    """Subscribe to the states of a controller; options of `BatchedSubscription`."""
    return BatchedSubscription(node, STATE_TYPE, f'{controller}/{STATE}', **options)


def is_well_formed_state(message: Any, joints: Sequence[str]) -> bool:
    """Whether a controller's state names each of its joints once, with reference and error."""
    names = message.joint_names
    lengths = (len(set(names)), len(message.reference.positions), len(message.error.positions))
    return set(joints) <= set(names) and all(n == len(names) for n in lengths)


def by_joint(message: Any, values: Sequence[float], joints: Sequence[str]) -> Array | None:
    """Values (n,) of a controller's state in the order of `joints`, None where it has none."""
    if len(values) != len(message.joint_names):
        return None
    index = [message.joint_names.index(joint) for joint in joints]
    return np.asarray(values, dtype=float)[index]


def stack_states(
    states: Sequence[Any], joints: Sequence[str], part: str, quantity: str = 'positions'
) -> Array:
    """Stack a quantity of a part of a controller's states (N, n), NaN where one has none."""
    rows = [by_joint(s, getattr(getattr(s, part), quantity), joints) for s in states]
    none = np.full(len(joints), np.nan)
    return np.array([none if row is None else row for row in rows]).reshape(-1, len(joints))


def reference_positions(message: Any, joints: Sequence[str]) -> Array:
    """Read a state's reference (n,); `RobotStateError`: joints are missing, or no numbers."""
    known = set(joints) <= set(message.joint_names)
    reference = by_joint(message, message.reference.positions, joints) if known else None
    if reference is None:
        raise RobotStateError('the controller publishes no reference of every joint: activate it')
    if not np.isfinite(reference).all():
        raise RobotStateError("the controller's reference is not a number: activate it again")
    return reference


class SpeedScaling:
    """Reads and checks a controller's speed scaling; 0 counts as 1 until it was above 0."""

    def __init__(self, now: float = 0.0):
        self._known = False
        self._pause = Silence(now)

    def read(self, message: Any) -> float:
        """Return the factor of a controller's state."""
        factor = max(0.0, message.speed_scaling_factor)
        self._known = self._known or factor > 0.0
        return factor if self._known else 1.0

    def check(self, message: Any, now: float, max_pause: float = MAX_PAUSE) -> None:
        """Check that the robot is neither faster than the design nor slow for long."""
        factor, scaling = self.read(message), 'the speed scaling is'
        if factor > 1.0 + ROUNDING:
            why = 'limits were checked for 100 %, lower it'
            raise RobotStateError(f'{scaling} {factor:.0%}: {why}')
        pause = self._pause.update(now, heard=factor >= MIN_SPEED)
        if factor < MIN_SPEED and pause >= max_pause:
            raise RobotStateError(
                f"{scaling} {factor:.1%}: raise it to {MIN_SPEED:.0%} at least, at the robot's "
                'speed slider, and let its program run'
            )


def switch_request(
    activate: Sequence[str], deactivate: Sequence[str], *, strict: bool = False
) -> SwitchController.Request:
    """Return a request to activate controllers in place of others."""
    request = SwitchController.Request(activate_asap=True)
    request.activate_controllers, request.deactivate_controllers = activate, deactivate
    request.strictness = request.STRICT if strict else request.BEST_EFFORT
    request.timeout.sec = 1
    return request


# Answers about a goal that does not run any more; one that is unknown may still be on its way.
CANCELLED = CancelGoal.Response.ERROR_NONE, CancelGoal.Response.ERROR_GOAL_TERMINATED


def cancel_request(goal: uuid.UUID) -> CancelGoal.Request:
    """Return a request to cancel one goal."""
    return CancelGoal.Request(goal_info=GoalInfo(goal_id=UUID(uuid=list(goal.bytes))))


class HardwareClient:
    """Asks controller_manager, in a controller's namespace, while the node's executor spins."""

    def __init__(self, node: Node, controller: str):
        place, slash, self._controller = controller.rpartition('/')
        self._client = node.create_client(ListHardwareComponents, f'{place}{slash}{_HARDWARE}')
        self._switch = node.create_client(SwitchController, f'{place}{slash}{SWITCH}')
        self._set = node.create_client(SetHardwareComponentState, f'{place}{slash}{SET_HARDWARE}')

    def deactivate(self, components: Sequence[str] = ()) -> list[Any]:
        """
        Ask for the controller to be deactivated, then hardware, so that its drives brake.

        Return the futures of the answers, none where nobody could be asked.
        """
        if not self._switch.service_is_ready():
            return []
        answers = [self._switch.call_async(switch_request((), (self._controller,)))]
        inactive = Lifecycle(id=Lifecycle.PRIMARY_STATE_INACTIVE, label='inactive')
        for name in components:
            request = SetHardwareComponentState.Request(name=name, target_state=inactive)
            answers.append(self._set.call_async(request))
        return answers

    def names(self, joints: Collection[str]) -> list[str]:
        """Name the hardware that drives these joints and can be deactivated."""
        if not self._set.service_is_ready():
            return []
        drivers = (c for c in self._components(joints) if c.command_interfaces)
        return [component.name for component in drivers]

    def is_gazebo(self, joints: Collection[str]) -> bool:
        """Whether hardware of these joints is known to be Gazebo's."""
        return any(is_gazebo(c.plugin_name) for c in self._components(joints))

    def explain_end(self, joints: Collection[str]) -> str:
        """Say which hardware of these joints has failed; where nobody answers, who knows."""
        states = {c.name: c.state.label for c in self._components(joints)}
        if not states:
            return (
                "if its hardware failed, 'ros2 control list_hardware_components' and "
                "controller_manager's log say which"
            )
        failed = ', '.join(f'{k} is {label}' for k, label in states.items() if label != 'active')
        return f'its hardware failed: {failed}' if failed else 'its hardware is active'

    def _components(self, joints: Collection[str]) -> list[Any]:
        """Return the hardware of these joints, none where nobody knows."""
        components = []
        if self._client.service_is_ready():
            with suppress(ControllerError):
                future = self._client.call_async(ListHardwareComponents.Request())
                components = result_of(future, HARDWARE_TIMEOUT, _HARDWARE).component

        def moves(component: Any) -> bool:
            interfaces = (*component.command_interfaces, *component.state_interfaces)
            return any(each.name.rpartition('/')[0] in joints for each in interfaces)

        # Others may be inactive all along: a gripper that nobody needs.
        return [component for component in components if moves(component)]


_STATUS_TEXTS = {
    GoalStatus.STATUS_ABORTED: 'aborted',
    GoalStatus.STATUS_CANCELED: 'cancelled by somebody else',
}
PATH_VIOLATED = FollowJointTrajectory.Result.PATH_TOLERANCE_VIOLATED
END_VIOLATED = FollowJointTrajectory.Result.GOAL_TOLERANCE_VIOLATED
_ERROR_TEXTS = {
    PATH_VIOLATED: 'a joint left its path tolerance',
    END_VIOLATED: 'a joint did not reach its goal',
}


class TrajectoryClient(ControllerClient):
    """A controller and its action; waits end in `ControllerError` after a `timeout` [s]."""

    def __init__(self, node: Node, controller: str, timeout: float):
        super().__init__(node, controller, timeout)
        self._node, self.action = node, f'{controller}/{ACTION}'
        self._client = ActionClient(node, FollowJointTrajectory, self.action)
        self.hardware = HardwareClient(node, controller)
        self._cancel = node.create_client(CancelGoal, f'{controller}/{CANCEL}')

    def wait_for_server(self) -> None:
        """Wait for the action server."""
        wait_until(
            lambda: self._client.server_is_ready() and self._cancel.service_is_ready(),
            self.timeout,
            what=f"nobody serves the action '{self.action}': activate the controller",
        )

    def send(
        self,
        goal_id: uuid.UUID,
        points: Waypoints,
        path: Sequence[float],
        end: Sequence[float],
        goal_time: float,
        stamp: int = 0,
    ) -> 'TrajectoryGoal':
        """
        Send a goal; return it, not yet accepted. Whoever may have to cancel it knows its id.

        Tolerances (n,) are on the way and at the `end` [rad or m], and `goal_time` the time to
        come within these [s]. The motion begins or began at a stamp [ns], 0: as it is received.
        """
        trajectory = trajectory_message(points)
        trajectory.header.stamp = to_time(stamp)
        path_tolerance, goal_tolerance = (
            [JointTolerance(name=name, position=float(x)) for name, x in rows]
            for rows in (zip(points.joints, values, strict=True) for values in (path, end))
        )
        goal = FollowJointTrajectory.Goal(
            trajectory=trajectory,
            path_tolerance=path_tolerance,
            goal_tolerance=goal_tolerance,
            goal_time_tolerance=duration_message(goal_time),
        )
        name = UUID(uuid=list(goal_id.bytes))
        handle = self.call_in_executor(lambda: self._client.send_goal_async(goal, goal_uuid=name))
        return TrajectoryGoal(self, points.joints, handle)

    def call_in_executor(self, function: Callable[[], Any]) -> Any:
        """Call in the executor: the client loses an answer taken before it notes its request."""
        executor = self._node.executor
        assert executor is not None
        return result_of(executor.create_task(function), self.timeout, 'this node')

    def cancel(self, goal_id: uuid.UUID, timeout: float) -> bool:
        """Cancel a goal; True when the controller confirms that it does not run any more."""
        with suppress(ControllerError):
            future = self._cancel.call_async(cancel_request(goal_id))
            return result_of(future, timeout, self.action).return_code in CANCELLED
        return False


class TrajectoryGoal:
    """A goal that was sent; `violated` is the tolerance by which the controller has stopped it."""

    def __init__(self, client: TrajectoryClient, joints: Sequence[str], handle: Any):
        self._client, self._joints, self._handle = client, joints, handle
        self._result: Any = None
        self.violated: int | None = None

    def accepted(self) -> bool:
        """Return whether the controller has accepted it; False while there is no answer."""
        if self._result is None and self._handle.done():
            handle = self._handle.result()
            if not handle.accepted:
                hardware = self._client.hardware.explain_end(self._joints)
                raise ControllerError(
                    f"'{self._client.action}' refused the trajectory: was it deactivated, does it "
                    f'control exactly these joints? Its log says why; {hardware}'
                )
            self._result = self._client.call_in_executor(handle.get_result_async)
        return self._result is not None

    def finished(self) -> bool:
        """Return whether the motion has succeeded."""
        if self._result is None or not self._result.done():
            return False
        answer = self._result.result()
        # A cancelled goal has error code 0: only the status shows it.
        if answer.status == GoalStatus.STATUS_SUCCEEDED:
            return True
        code, text = answer.result.error_code, answer.result.error_string
        if answer.status == GoalStatus.STATUS_ABORTED and code in _ERROR_TEXTS:
            text, self.violated = text or _ERROR_TEXTS[code], code
        parts = [_STATUS_TEXTS.get(answer.status, f'status {answer.status}'), text]
        if code == FollowJointTrajectory.Result.INVALID_GOAL:  # deactivated, or took another goal
            parts.append(self._client.hardware.explain_end(self._joints))
        details = ': '.join(filter(None, parts))
        raise RobotStateError(f'the controller stopped the motion, {details}')
