"""The simulated joint_trajectory_controller on the wire: action, topics, services, parameters."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
import math
from typing import Any

from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTrajectoryControllerState
from control_msgs.srv import QueryTrajectoryState
from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from rclpy.qos import QoSPresetProfiles
from rclpy.task import Future
from rclpy.time import Time
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ...plant.controller_types import (
    AcceptanceRules,
    ControllerSettings,
    ControllerState,
    GoalHandle,
    GoalOutcome,
    GoalTolerances,
    Tolerance,
)
from ...plant.physics import Physics
from ...plant.trajectory import Goal, Point
from ...plant.trajectory_controller import TrajectoryController
from ...simulation_settings import (
    ConstraintSettings,
    GainSettings,
    JointConstraintSettings,
    SimulationSettings,
)
from ..common.messages import to_nanoseconds
from .message_templates import ControllerStateTemplate

ACTION_MONITOR_RATE = 20.0
# Where robots with a speed slider tell its factor, by the driver of Universal Robots.
SPEED_SCALING = 'speed_scaling/speed_scaling_factor'
# Name -> default; these change what is accepted while the controller runs.
ACCEPTANCE_PARAMETERS = {
    'allow_partial_joints_goal': 'partial_joints',
    'allow_nonzero_velocity_at_trajectory_end': 'nonzero_end_velocity',
    'allow_integration_in_goal_trajectories': 'integration',
}
READ_ONLY_FIELDS = ('antiwindup_strategy', 'max_deceleration_on_cancel')


def declare_parameters(node: Node, joints: Sequence[str], settings: SimulationSettings) -> None:
    """Declare everything that the original declares for these joints."""
    for name, value, description, read_only, minimum in _parameters(joints, settings):
        descriptor = ParameterDescriptor(description=description, read_only=read_only)
        if minimum is not None:
            at_least = FloatingPointRange(from_value=minimum, to_value=math.inf)
            descriptor.floating_point_range = [at_least]
        node.declare_parameter(name, value, descriptor)


def read_parameters(
    node: Node, joints: tuple[str, ...], wraparound: tuple[bool, ...]
) -> ControllerSettings:
    """Collect the parameters' present values as the controller's settings."""
    (interface,) = node.get_parameter('command_interfaces').value

    def group(cls: type[Any], prefix: str, **further: Any) -> Any:
        names = [field.name for field in fields(cls) if field.name not in further]
        return cls(
            **{name: node.get_parameter(f'{prefix}.{name}').value for name in names}, **further
        )

    by_joint = {j: group(JointConstraintSettings, f'constraints.{j}') for j in joints}
    return ControllerSettings(
        joints,
        wraparound,
        round(1e9 / node.get_parameter('update_rate').value),
        {joint: group(GainSettings, f'gains.{joint}') for joint in joints},
        group(ConstraintSettings, 'constraints', joints=by_joint),
        AcceptanceRules(
            **{own: node.get_parameter(name).value for name, own in ACCEPTANCE_PARAMETERS.items()},
            effort=interface == 'effort',
        ),
        node.get_parameter('cmd_timeout').value,
        interface,
    )


def _parameters(
    joints: Sequence[str], settings: SimulationSettings
) -> Iterator[tuple[str, Any, str, bool, float | None]]:
    """Name, default, description, whether it is read-only, and its smallest value."""
    for name, value, description, read_only in _own_parameters(joints, settings):
        yield name, value, description, read_only, None
    yield from _group(settings.constraints, 'constraints')
    for joint in joints:
        limits = settings.constraints.joints.get(joint, JointConstraintSettings())
        yield from _group(limits, f'constraints.{joint}')
        yield from _group(settings.gains.get(joint, GainSettings()), f'gains.{joint}')


def _own_parameters(
    joints: Sequence[str], settings: SimulationSettings
) -> Iterator[tuple[str, Any, str, bool]]:
    yield 'joints', list(joints), 'joints of the controller', True
    yield 'command_joints', list(joints), 'joints that are commanded', True
    interface = settings.command_interface
    yield 'command_interfaces', [interface], 'what is commanded', True
    yield 'state_interfaces', ['position', 'velocity'], 'what is measured', True
    rate = settings.controller_rate or settings.update_rate
    yield 'update_rate', round(rate), 'updates per second', True
    # Those of every controller: -100 stands for the default of controller_interface.
    yield 'is_async', False, 'updates in a thread of its own', False
    yield 'thread_priority', -100, 'of that thread', False
    yield 'action_monitor_rate', ACTION_MONITOR_RATE, 'feedback and results [Hz]', True
    yield 'interpolation_method', 'splines', 'between points', True
    yield 'open_loop_control', False, 'deprecated', True
    yield 'interpolate_from_desired_state', False, 'start from the reference', True
    yield 'speed_scaling.initial_scaling_factor', 1.0, 'fixed but with position commands', True
    scaling = SPEED_SCALING if interface == 'position' else ''
    yield 'speed_scaling.state_interface', scaling, 'where the hardware tells its factor', True
    yield 'speed_scaling.command_interface', '', 'where the hardware is told it', True
    yield 'cmd_timeout', 0.0, 'hold after this time beyond the end, 0: never [s]', False
    yield 'set_last_command_interface_value_as_state_on_activation', True, 'on activation', False
    for name in ACCEPTANCE_PARAMETERS:
        yield name, False, 'what trajectories are accepted', False


def _group(settings: Any, prefix: str) -> Iterator[tuple[str, Any, str, bool, float | None]]:
    for field in fields(settings):
        if field.name == 'joints':
            continue
        read_only = field.name in (*READ_ONLY_FIELDS, 'decelerate_on_cancel')
        text = f'{field.metadata["description"]} {field.metadata["unit"]}'.strip()
        name, value = f'{prefix}.{field.name}', getattr(settings, field.name)
        yield name, value, text, read_only, field.metadata['minimum']


SYSTEM_DEFAULT = QoSPresetProfiles.SYSTEM_DEFAULT.value
SECOND = 1_000_000_000


class SimulatedController(Node):
    """
    A node with the controller's name and everything that a client finds there.

    Parameters
    ----------
    settings, physics : of the simulated robot
    now : ROS time of the control loop [ns]
    options : of `rclpy.node.Node`

    """

    def __init__(
        self,
        settings: SimulationSettings,
        physics: Physics,
        now: Callable[[], int],
        **options: Any,
    ):
        super().__init__(settings.controller, **options)
        self._now = now
        self._joints, self._wraparound = physics.joints, physics.wraparound
        declare_parameters(self, self._joints, settings)
        self.controller = TrajectoryController(self._read_parameters())
        self.add_post_set_parameters_callback(
            lambda _: self.controller.configure(self._read_parameters())
        )
        # rclpy hands a goal over right after it took it.
        self._next: Goal | None = None
        self._running: dict[GoalHandle, tuple[Any, Future]] = {}
        self._accepted: dict[bytes, tuple[GoalHandle, Future]] = {}
        self._serve()
        self._states = ControllerStateTemplate(self._joints, settings.command_interface)
        self._publisher = self.create_publisher(
            JointTrajectoryControllerState, '~/controller_state', SYSTEM_DEFAULT
        )

    def publish_state(self, stamp: int, state: ControllerState) -> None:
        """Publish the controller's state; called by the control loop."""
        self._publisher.publish(self._states.fill(stamp, state))

    def _serve(self) -> None:
        self._action = ActionServer(
            self,
            FollowJointTrajectory,
            '~/follow_joint_trajectory',
            execute_callback=self._execute,
            goal_callback=self._on_goal,
            handle_accepted_callback=self._on_accepted,
            cancel_callback=self._on_cancel,
        )
        self.create_subscription(
            JointTrajectory, '~/joint_trajectory', self._on_trajectory, SYSTEM_DEFAULT
        )
        self.create_service(QueryTrajectoryState, '~/query_state', self._on_query)
        self.create_timer(1.0 / ACTION_MONITOR_RATE, self._monitor)

    def _read_parameters(self) -> Any:
        return read_parameters(self, self._joints, self._wraparound)

    def _on_goal(self, request: FollowJointTrajectory.Goal) -> GoalResponse:
        goal = goal_from_message(request.trajectory)
        reason = self.controller.rejection_reason(goal, self._now())
        if reason:
            self.get_logger().error(f'goal refused: {reason}')
            return GoalResponse.REJECT
        self._next = goal
        return GoalResponse.ACCEPT

    def _on_accepted(self, handle: Any) -> None:
        request = handle.request
        assert self._next is not None
        goal = self.controller.start(self._next, tolerances_from_goal(request))
        ended = Future()
        self._accepted[bytes(handle.goal_id.uuid)] = (goal, ended)
        self._running[goal] = (handle, ended)
        handle.execute()
        # The client of a preempted goal learns it at once.
        self._monitor()

    async def _execute(self, handle: Any) -> FollowJointTrajectory.Result:
        goal, ended = self._accepted.pop(bytes(handle.goal_id.uuid))
        await ended
        return FollowJointTrajectory.Result(error_code=goal.code, error_string=goal.text)

    def _on_cancel(self, handle: Any) -> CancelResponse:
        for goal, (own, _) in self._running.items():
            if own.goal_id == handle.goal_id:
                self.controller.cancel(goal)
        return CancelResponse.ACCEPT

    def _on_trajectory(self, message: JointTrajectory) -> None:
        goal = goal_from_message(message)
        reason = self.controller.rejection_reason(goal, self._now())
        if reason:
            self.get_logger().error(f'trajectory refused: {reason}')
        else:
            self.controller.replace_trajectory(goal)

    def _on_query(
        self, request: QueryTrajectoryState.Request, response: QueryTrajectoryState.Response
    ) -> QueryTrajectoryState.Response:
        time = to_nanoseconds(request.time)
        point = self.controller.sample_desired(time)
        response.success = point is not None
        if point is not None:
            response.name = list(self._joints)
            response.position, response.velocity = point.positions, point.velocities
            response.acceleration = point.accelerations
        return response

    def _monitor(self) -> None:
        while self.controller.warnings:
            self.get_logger().warning(self.controller.warnings.pop(0))
        for goal, (handle, future) in list(self._running.items()):
            if goal.outcome is None:
                if handle.is_active and goal.feedback is not None:
                    handle.publish_feedback(self._feedback(goal.feedback))
                continue
            del self._running[goal]
            _REPORT_END[goal.outcome](handle)
            future.set_result(None)

    def _feedback(self, state: ControllerState) -> FollowJointTrajectory.Feedback:
        message = FollowJointTrajectory.Feedback(joint_names=list(self._joints))
        message.header.stamp = Time(nanoseconds=self._now()).to_msg()
        message.desired, message.actual = _point(state.desired), _point(state.current)
        message.error.positions, message.error.velocities = state.error, state.error_velocity
        return message


def _cancel(handle: Any) -> None:
    # A cancel request that came for a goal which had just ended otherwise changes nothing.
    if handle.is_cancel_requested:
        handle.canceled()
    else:
        handle.abort()


_REPORT_END = {
    GoalOutcome.SUCCEEDED: lambda handle: handle.succeed(),
    GoalOutcome.ABORTED: lambda handle: handle.abort(),
    GoalOutcome.CANCELED: _cancel,
}


def goal_from_message(message: JointTrajectory) -> Goal:
    """Take what the controller needs out of a trajectory message."""
    return Goal(
        tuple(message.joint_names),
        to_nanoseconds(message.header.stamp),
        [
            Point(
                to_nanoseconds(point.time_from_start),
                point.positions.tolist(),
                point.velocities.tolist(),
                point.accelerations.tolist(),
                point.effort.tolist(),
            )
            for point in message.points
        ],
    )


def tolerances_from_goal(request: FollowJointTrajectory.Goal) -> GoalTolerances:
    """Take the tolerances out of a goal."""

    def pairs(tolerances: Any) -> tuple[tuple[str, Tolerance], ...]:
        return tuple(
            (t.name, Tolerance(t.position, t.velocity, t.acceleration)) for t in tolerances
        )

    return GoalTolerances(
        pairs(request.path_tolerance),
        pairs(request.goal_tolerance),
        to_nanoseconds(request.goal_time_tolerance) * 1e-9,
    )


def _point(point: Point) -> JointTrajectoryPoint:
    message = JointTrajectoryPoint(
        positions=point.positions,
        velocities=point.velocities,
        accelerations=point.accelerations,
        effort=point.effort,
    )
    message.time_from_start.sec, message.time_from_start.nanosec = divmod(point.time, SECOND)
    return message
