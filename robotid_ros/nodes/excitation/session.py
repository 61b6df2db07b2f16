"""
One session of the excitation: check, approach, excite, approach, validate.

It runs in a worker thread, as one straight line: each step returns when it is done and raises when
the robot must stop. Whatever happens, `run` leaves with the robot's motion cancelled.
"""

from collections.abc import Callable, Sequence
import threading
import time
from typing import Any
import uuid

from control_msgs.msg import JointTrajectoryControllerState
import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from ...core.arrays import Array
from ...core.excitation import check, Design, move, Waypoints, waypoints
from ...core.model.robot import Robot
from ...exceptions import ControllerError, RobotStateError
from ...node_settings import ExcitationNodeSettings
from ..common.batched_subscription import BatchedSubscription
from ..common.controller_client import ControllerClient
from ..common.joint_states import reference_positions, stack_joint_states
from ..common.messages import State, to_nanoseconds
from .guardian import Guardian
from .motion_start import MotionClock
from .preflight import check_controller, check_states
from .trajectory_goal import TrajectoryActionClient, TrajectoryGoal
from .watchdog import expand_per_joint, Watchdog

# How often a moving robot is looked at [s]: well below `stale_after`.
POLL_PERIOD = 0.01
# How often progress is published [s].
PROGRESS_PERIOD = 0.5
# How long the controller may take to accept a goal [s]: it answers within a cycle or two of its
# action server; while it does not, nobody knows whether the robot will move.
ACCEPT_TIMEOUT, ACCEPT_POLL_PERIOD = 1.0, 0.002
# How long to wait for a cancelled goal to be confirmed before the guardian takes over [s].
CANCEL_TIMEOUT = 0.3
# What the controller may need beyond a motion's duration and its goal time [s].
GOAL_END_GRACE = 1.0
# A process that starts Python and joins the graph, on a machine that is busy [s].
GUARDIAN_START_TIMEOUT = 15.0
# Speed that an approach takes for the limit of joints that have none, or a higher one [rad/s].
MAX_APPROACH_VELOCITY = 10.0
# States that may wait in the queue: 5 s of a controller at 1 kHz, should Python be late.
CONTROLLER_STATE_DEPTH = 5000

PublishState = Callable[[State, str, dict[str, Any]], None]


class ExcitationSession:
    """
    Runs a design on the robot.

    Parameters
    ----------
    node : whose executor spins meanwhile
    robot, settings : what moves, and how
    publish_state : called with each state, a sentence and values
    stop : set from outside to stop the robot

    """

    def __init__(
        self,
        node: Node,
        robot: Robot,
        settings: ExcitationNodeSettings,
        publish_state: PublishState,
        stop: threading.Event,
    ):
        self._node, self._robot, self._settings = node, robot, settings
        self._publish_state, self._stop = publish_state, stop
        name, timeout = settings.controller, settings.timeout
        self._controller = ControllerClient(node, name, timeout)
        self._action = TrajectoryActionClient(node, name, timeout)
        self._guardian: Guardian | None = None
        self._subscriptions: list[BatchedSubscription] = []
        self._latest_stamp = 0

    def run(self, design: Design) -> None:
        """
        Run the excitation, then the validation.

        Raises
        ------
        RobotIdError : why the robot was not moved, or was stopped

        """
        settings = self._settings
        motions = [(State.EXCITING, design.trajectory, settings.periods)]
        if design.validation is not None:
            motions.append((State.VALIDATING, design.validation, 1))
        points = [waypoints(motion, settings.rate, periods) for _, motion, periods in motions]
        for motion in points:
            self._check(motion)
        try:
            self._prepare()
            for motion, (state, _, periods) in zip(points, motions, strict=True):
                self._run_phase(state, motion, periods)
        finally:
            self.close()

    def close(self) -> None:
        """Let go of everything; a goal that still runs is cancelled by the guardian."""
        if self._guardian is not None:
            self._guardian.close()
            self._guardian = None
        for subscription in self._subscriptions:
            subscription.close()
        self._subscriptions = []

    def _prepare(self) -> None:
        """Everything that must be right before anything moves."""
        settings, name = self._settings, self._settings.controller
        description = self._controller.describe()
        check_controller(description, self._robot)
        self._action.wait_for_server()
        self._guardian = Guardian(self._action.cancel_service, self._node.context.get_domain_id())
        self._subscribe(name)
        self._effort_reported = check_states(
            self._node, self._subscriptions, self._robot, settings
        )
        if not self._effort_reported:
            self._node.get_logger().warning(
                'the joint states report no effort: what the controller commands is taken for it'
            )
        self._guardian.wait_ready(max(settings.timeout, GUARDIAN_START_TIMEOUT))

    def _subscribe(self, controller: str) -> None:
        def subscribe(message_type: type, topic: str, depth: int) -> BatchedSubscription:
            self._subscriptions.append(
                BatchedSubscription(self._node, message_type, topic, depth=depth)
            )
            return self._subscriptions[-1]

        self._joint_states = subscribe(JointState, 'joint_states', 1000)
        self._controller_states = subscribe(
            JointTrajectoryControllerState,
            f'{controller}/controller_state',
            CONTROLLER_STATE_DEPTH,
        )
        self._foreign_commands = subscribe(JointTrajectory, f'{controller}/joint_trajectory', 1)

    def _check(self, motion: Waypoints) -> None:
        check(self._robot, motion, self._settings)

    def _run_phase(self, state: State, motion: Waypoints, periods: int) -> None:
        """Approach the start of a motion, rest, run it."""
        start = self._wait_for_reference()
        self._publish_progress(State.APPROACHING, 'standing still', self._latest_stamp, 0.0, 1)
        approach = self._approach(start, motion)
        self._check(approach)
        self._run_goal(State.APPROACHING, approach, 1, f'moving to the start of {state.value}')
        self._wait_at_rest()
        self._run_goal(state, motion, periods, state.value)
        # What follows is not part of the phase any more, though the robot still settles.
        self._publish_progress(State.APPROACHING, 'standing still', self._latest_stamp, 1.0, 1)
        self._wait_at_rest()

    def _approach(self, start: Array, motion: Waypoints) -> Waypoints:
        limits, share = self._robot.limits, self._settings.approach_speed
        velocity = share * np.minimum(limits.velocity, MAX_APPROACH_VELOCITY)
        # Slow in acceleration too: from rest to that speed in a second.
        acceleration = np.minimum(velocity, share * limits.acceleration)
        return move(motion.joints, start, motion.q[0], velocity, acceleration)

    def _wait_for_reference(self) -> Array:
        """Wait for the reference that is held: a motion from there starts without a jump."""
        name = self._settings.controller
        message = self._controller_states.wait_for_latest(
            self._settings.timeout, f"'{name}' publishes no controller_state: activate it"
        )
        self._latest_stamp = to_nanoseconds(message.header.stamp)
        return reference_positions(message, self._robot.joints)

    def _run_goal(self, state: State, points: Waypoints, periods: int, what: str) -> None:
        """Run one goal to its end under watch; cancel it on any trouble."""
        assert self._guardian is not None
        goal_id = uuid.uuid4()
        for subscription in self._subscriptions:
            list(subscription.take_serialized())
        self._guardian.set_goal(goal_id)
        try:
            goal = self._send(goal_id, points)
            self._monitor_goal(goal, state, points, periods, what)
        except BaseException:
            self._cancel(goal_id)
            raise
        self._guardian.clear_goal()

    def _send(self, goal_id: uuid.UUID, points: Waypoints) -> TrajectoryGoal:
        settings = self._settings
        path = expand_per_joint(settings.tracking_error, points.joints, 'tracking_error').tolist()
        end = expand_per_joint(settings.goal_tolerance, points.joints, 'goal_tolerance').tolist()
        goal = self._action.send(goal_id, points, path, end, settings.goal_time)
        deadline = time.monotonic() + ACCEPT_TIMEOUT
        while not goal.accepted():
            self._raise_if_stopped()
            if time.monotonic() > deadline:
                raise ControllerError(
                    f"no answer from '{self._action.name}' within {ACCEPT_TIMEOUT:g} s: the "
                    'motion was cancelled'
                )
            time.sleep(ACCEPT_POLL_PERIOD)
        return goal

    def _monitor_goal(
        self, goal: TrajectoryGoal, state: State, points: Waypoints, periods: int, what: str
    ) -> None:
        """Watch until the goal has ended; publish the phase once its start is known."""
        watchdog, clock = self._watchdog(), MotionClock(points)
        longest = points.duration + self._settings.goal_time + GOAL_END_GRACE
        published = 0.0
        while not goal.finished():
            messages = self._take_controller_states(every=clock.start is None)
            self._check_robot(watchdog, messages)
            clock.update(messages)
            now = time.monotonic()
            if clock.start is not None and now - published > PROGRESS_PERIOD:
                published = now
                progress = clock.elapsed / points.duration
                self._publish_progress(state, what, clock.start, progress, periods)
            if clock.elapsed > longest:
                raise RobotStateError('the controller does not end its motion: it was cancelled')
            time.sleep(POLL_PERIOD)
        self._publish_progress(state, what, clock.known_start, 1.0, periods)
        self._latest_stamp = clock.known_start + round(points.duration * 1e9)

    def _watchdog(self) -> Watchdog:
        return Watchdog(
            self._robot, self._settings, time.monotonic(), effort_reported=self._effort_reported
        )

    def _take_controller_states(self, *, every: bool) -> list[Any]:
        """Take what the controller has published: decode every state, or only the newest."""
        if every:
            return list(self._controller_states.take_messages())
        latest = self._controller_states.take_latest()
        return [] if latest is None else [latest]

    def _check_robot(self, watchdog: Watchdog, controller_states: Sequence[Any]) -> None:
        """Raise on anything that must stop the robot."""
        self._raise_if_stopped()
        now = time.monotonic()
        messages = list(self._joint_states.take_messages())
        watchdog.check_joint_states(stack_joint_states(messages, self._robot.joints), now)
        watchdog.check_controller_state(controller_states[-1] if controller_states else None, now)

    def _raise_if_stopped(self) -> None:
        """Raise on anything but the robot's own state that must stop it."""
        if self._stop.is_set():
            raise RobotStateError('stopped by request')
        assert self._guardian is not None
        if not self._guardian.is_running:
            raise ControllerError('the guardian died: a robot without it is not moved')
        for _ in self._foreign_commands.take_serialized():
            topic = self._foreign_commands.topic
            raise ControllerError(
                f"somebody else commands the robot on '{topic}': stop that first"
            )

    def _publish_progress(
        self, state: State, what: str, start: int, progress: float, periods: int
    ) -> None:
        progress = min(max(progress, 0.0), 1.0)
        cycle = min(int(progress * periods) + 1, periods)
        message = f'{what}: cycle {cycle} of {periods}' if periods > 1 else what
        values = {'cycle': cycle, 'cycles': periods, 'progress': round(progress, 4)}
        self._publish_state(state, message, {**values, 'start': start})

    def _wait_at_rest(self) -> None:
        """Stand still for a moment, under the same watch."""
        watchdog = self._watchdog()
        end = time.monotonic() + self._settings.settle
        while time.monotonic() < end:
            self._check_robot(watchdog, self._take_controller_states(every=False))
            time.sleep(POLL_PERIOD)

    def _cancel(self, goal_id: uuid.UUID) -> None:
        """Cancel, and leave it to the guardian when the controller does not confirm."""
        assert self._guardian is not None
        if self._action.cancel(goal_id, CANCEL_TIMEOUT) and self._guardian.is_running:
            try:
                self._guardian.clear_goal()
            except ControllerError:
                self._node.get_logger().error('the guardian is gone')
        self._guardian.close()
