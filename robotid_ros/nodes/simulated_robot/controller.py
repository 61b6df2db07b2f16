"""The simulated trajectory controller on the wire: action, topics and parameters."""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTrajectoryControllerState
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from rclpy.qos import QoSPresetProfiles
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ... import simulation_settings as simulated
from ...plant import trajectory_controller as plant
from ...plant.physics import Physics
from ...plant.trajectory import FIELDS, Goal, Point
from ..common.messages import to_nanoseconds, to_time
from ..common.ros_parameters import descriptor_of, iter_settings

ACTION_MONITOR_RATE = 20.0
READ_ONLY_FIELDS = ('antiwindup_strategy', 'max_deceleration_on_cancel', 'decelerate_on_cancel')
# Field of a trajectory point by interface.
OUTPUTS = {'effort': 'effort', 'velocity': 'velocities', 'position': 'positions'}
SYSTEM_DEFAULT = QoSPresetProfiles.SYSTEM_DEFAULT.value


def declare_parameters(
    node: Node, joints: Sequence[str], settings: simulated.SimulationSettings
) -> None:
    """Declare what clients read of the original's parameters, for these joints."""
    update_rate = round(settings.controller_rate or settings.update_rate)
    parameters = {
        'joints': (list(joints), 'joints of the controller'),
        'command_joints': (list(joints), 'joints that are commanded'),
        'command_interfaces': ([settings.command_interface], 'what is commanded'),
        'state_interfaces': (['position', 'velocity'], 'what is measured'),
        'update_rate': (update_rate, 'updates per second'),
        'allow_nonzero_velocity_at_trajectory_end': (False, 'goals that end in motion'),
        'open_loop_control': (False, 'deprecated'),
        'interpolate_from_desired_state': (False, 'start from the reference'),
        'set_last_command_interface_value_as_state_on_activation': (True, 'on activation'),
    }
    for name, (value, text) in parameters.items():
        node.declare_parameter(name, value, ParameterDescriptor(description=text, read_only=True))
    known = settings.constraints.joints
    tolerances = {joint: known.get(joint, simulated.JointConstraintSettings()) for joint in joints}
    rows = [*iter_settings(replace(settings.constraints, joints=tolerances), 'constraints.')]
    for joint in joints:
        rows += iter_settings(
            settings.gains.get(joint, simulated.GainSettings()), f'gains.{joint}.'
        )
    for name, kind, value, field in rows:
        descriptor = descriptor_of(kind, field)
        descriptor.read_only = field.name in READ_ONLY_FIELDS
        node.declare_parameter(name.replace('.joints.', '.'), value, descriptor)


def read_parameters(
    node: Node, joints: tuple[str, ...], wraparound: tuple[bool, ...]
) -> plant.ControllerSettings:
    """Collect the parameters' present values as the controller's settings."""
    (interface,) = node.get_parameter('command_interfaces').value

    def group(cls: type[Any], prefix: str, **further: Any) -> Any:
        names = [field.name for field in fields(cls) if field.name not in further]
        known = {name: node.get_parameter(f'{prefix}.{name}').value for name in names}
        return cls(**known, **further)

    by_joint = {j: group(simulated.JointConstraintSettings, f'constraints.{j}') for j in joints}
    return plant.ControllerSettings(
        joints,
        wraparound,
        round(1e9 / node.get_parameter('update_rate').value),
        {joint: group(simulated.GainSettings, f'gains.{joint}') for joint in joints},
        group(simulated.ConstraintSettings, 'constraints', joints=by_joint),
        interface,
    )


class SimulatedController(Node):
    """A node with the controller's name and what clients find there; `now` is in ROS time [ns]."""

    def __init__(
        self,
        settings: simulated.SimulationSettings,
        physics: Physics,
        now: Callable[[], int],
        **options: Any,
    ):
        super().__init__(settings.controller, enable_logger_service=True, **options)
        self._now, self._late = now, settings.late_preemption
        self._joints = physics.joints
        declare_parameters(self, self._joints, settings)
        known = partial(read_parameters, self, self._joints, physics.wraparound)
        self.controller = plant.TrajectoryController(known())
        self.add_post_set_parameters_callback(lambda _: self.controller.configure(known()))
        # rclpy hands a goal over right after it took it.
        self._next: Goal | None = None
        # By the goal's id: the controller's goal, the server's, and what is done at the end.
        self._running: dict[bytes, tuple[plant.GoalHandle, Any, Future]] = {}
        # One message for all states: to make its parts anew would take most of the time.
        self._state = JointTrajectoryControllerState(joint_names=list(self._joints))
        self._output = OUTPUTS[settings.command_interface]
        self._publisher = self.create_publisher(
            JointTrajectoryControllerState, '~/controller_state', SYSTEM_DEFAULT
        )
        callbacks = {
            'execute_callback': self._execute,
            'goal_callback': self._on_goal,
            'handle_accepted_callback': self._on_accepted,
            'cancel_callback': self._on_cancel,
        }
        name = '~/follow_joint_trajectory'
        self._action = ActionServer(self, FollowJointTrajectory, name, **callbacks)
        self.create_subscription(
            JointTrajectory, '~/joint_trajectory', self._on_trajectory, SYSTEM_DEFAULT
        )
        self.create_timer(1.0 / ACTION_MONITOR_RATE, self._monitor)

    def publish_state(self, stamp: int, state: plant.ControllerState) -> None:
        """Publish the controller's state; called by the control loop."""
        message, desired, current = self._state, state.desired, state.current
        message.header.stamp = to_time(stamp)
        for point, source in ((message.reference, desired), (message.feedback, current)):
            point.positions, point.velocities = source.positions, source.velocities
            point.time_from_start.sec, point.time_from_start.nanosec = divmod(source.time, 10**9)
        message.reference.accelerations = desired.accelerations
        message.error.positions, message.error.velocities = state.error, state.error_velocity
        setattr(message.output, self._output, state.output)
        message.speed_scaling_factor = state.speed_scaling
        self._publisher.publish(message)

    def _goal_in(self, message: JointTrajectory, what: str) -> Goal | None:
        """Return the goal of a message, None where it is refused."""
        goal = goal_from_message(message)
        if reason := self.controller.rejection_reason(goal, self._now()):
            self.get_logger().error(f'{what} refused: {reason}')
            return None
        return goal

    def _on_goal(self, request: FollowJointTrajectory.Goal) -> GoalResponse:
        if (goal := self._goal_in(request.trajectory, 'goal')) is None:
            return GoalResponse.REJECT
        self._next = goal
        return GoalResponse.ACCEPT

    def _on_trajectory(self, message: JointTrajectory) -> None:
        if (goal := self._goal_in(message, 'trajectory')) is not None:
            self.controller.replace_trajectory(goal)

    def _on_accepted(self, handle: Any) -> None:
        assert self._next is not None
        goal = self.controller.start(self._next, tolerances_from_goal(handle.request))
        self._running[bytes(handle.goal_id.uuid)] = goal, handle, Future()
        handle.execute()
        # The client of a preempted goal learns it at once.
        self._monitor()

    async def _execute(self, handle: Any) -> FollowJointTrajectory.Result:
        key = bytes(handle.goal_id.uuid)
        goal, _, ended = self._running[key]
        await ended
        del self._running[key]
        return FollowJointTrajectory.Result(error_code=goal.code, error_string=goal.text)

    def _on_cancel(self, handle: Any) -> CancelResponse:
        if (running := self._running.get(bytes(handle.goal_id.uuid))) is not None:
            self.controller.cancel(running[0])
        return CancelResponse.ACCEPT

    def _monitor(self) -> None:
        while self.controller.warnings:
            self.get_logger().warning(self.controller.warnings.pop(0))
        running = list(self._running.values())
        for goal, handle, ended in running:
            newest = running[-1][0]
            late = self._late and goal is not newest and newest.outcome is None
            if ended.done() or late:
                continue
            if goal.outcome is None:
                if handle.is_active and (state := goal.feedback) is not None:
                    message = FollowJointTrajectory.Feedback(joint_names=list(self._joints))
                    message.header.stamp = to_time(self._now())
                    message.desired, message.actual = _point(state.desired), _point(state.current)
                    message.error.positions = state.error
                    message.error.velocities = state.error_velocity
                    message.error.effort = [0.0] * len(self._joints)
                    handle.publish_feedback(message)
                continue
            # A cancel request for a goal that had just ended otherwise changes nothing.
            if goal.outcome is plant.GoalOutcome.SUCCEEDED:
                handle.succeed()
            elif goal.outcome is plant.GoalOutcome.CANCELED and handle.is_cancel_requested:
                handle.canceled()
            else:
                handle.abort()
            ended.set_result(None)


def goal_from_message(message: JointTrajectory) -> Goal:
    """Take what the controller needs out of a trajectory message."""
    points = [
        Point(
            to_nanoseconds(point.time_from_start),
            point.positions.tolist(),
            point.velocities.tolist(),
            point.accelerations.tolist(),
            point.effort.tolist(),
        )
        for point in message.points
    ]
    return Goal(tuple(message.joint_names), to_nanoseconds(message.header.stamp), points)


def tolerances_from_goal(request: FollowJointTrajectory.Goal) -> plant.GoalTolerances:
    """Take the tolerances out of a goal."""

    def by_joint(tolerances: Any) -> dict[str, plant.Tolerance]:
        return {t.name: plant.Tolerance(t.position, t.velocity) for t in tolerances}

    return plant.GoalTolerances(
        by_joint(request.path_tolerance),
        by_joint(request.goal_tolerance),
        to_nanoseconds(request.goal_time_tolerance) * 1e-9,
    )


def _point(point: Point) -> JointTrajectoryPoint:
    message = JointTrajectoryPoint(**{name: getattr(point, name) for name in FIELDS})
    message.time_from_start.sec, message.time_from_start.nanosec = divmod(point.time, 10**9)
    return message
