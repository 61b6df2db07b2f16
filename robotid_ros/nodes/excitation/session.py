"""
One session of the excitation: check, approach, excite, approach, validate.

It runs in a worker thread, as one straight line: each step returns when it is done and raises when
the robot must stop. Whatever happens, `run` leaves with the robot's motion cancelled.
"""

from collections.abc import Callable
import threading
import time
from typing import Any
import uuid

from control_msgs.msg import JointTrajectoryControllerState
import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from ...core.excitation import check, Design, move, Waypoints, waypoints
from ...core.model.robot import Robot
from ...exceptions import ControllerError, RobotStateError
from ...node_settings import ExcitationNodeSettings
from ..common.batched_subscription import BatchedSubscription
from ..common.controller_client import ControllerClient
from ..common.joint_states import stack_joint_states
from ..common.messages import State, to_nanoseconds
from ..common.runtime import wait_until
from .guardian import Guardian
from .motion_start import estimate_start
from .preflight import check_controller, check_states, reference_positions
from .trajectory_goal import Goal, TrajectoryActionClient
from .watchdog import expand_per_joint, Watchdog

POLL_PERIOD = 0.01
CANCEL_TIMEOUT = 0.3
ACCEPT_TIME = 1.0
# What the controller may need beyond a motion's duration and its goal time [s].
GOAL_END_GRACE = 1.0
# A process that starts Python and joins the graph, on a machine that is busy [s].
GUARDIAN_START_TIMEOUT = 15.0

PublishState = Callable[[State, str, dict[str, Any]], None]


class ExcitationSession:
    """
    Runs a design on the robot.

    Parameters
    ----------
    node : whose executor spins meanwhile
    robot, settings : what moves, and how
    announce : told each state, a sentence and values
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
        self._streams: list[BatchedSubscription] = []
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
        for stream in self._streams:
            stream.close()
        self._streams = []

    def _prepare(self) -> None:
        """Everything that must be right before anything moves."""
        settings, name = self._settings, self._settings.controller
        description = self._controller.describe()
        check_controller(description, self._robot)
        self._action.wait()
        self._guardian = Guardian(self._action.cancel_service, self._node.context.get_domain_id())
        states = BatchedSubscription(self._node, JointState, 'joint_states')
        controller = BatchedSubscription(
            self._node, JointTrajectoryControllerState, f'{name}/controller_state', depth=5000
        )
        intruder = BatchedSubscription(
            self._node, JointTrajectory, f'{name}/joint_trajectory', depth=1
        )
        self._streams = [states, controller, intruder]
        self._states, self._controller_state, self._intruder = states, controller, intruder
        self._effort_reported = check_states(self._node, self._streams, self._robot, settings)
        if not self._effort_reported:
            self._node.get_logger().warning(
                'the joint states report no effort: what the controller commands is taken for it'
            )
        self._guardian.wait_ready(max(settings.timeout, GUARDIAN_START_TIMEOUT))

    def _check(self, motion: Waypoints) -> None:
        check(self._robot, motion, self._settings)

    def _run_phase(self, state: State, motion: Waypoints, periods: int) -> None:
        """Approach the start of a motion, rest, run it."""
        start = self._wait_for_reference()
        self._publish_progress(
            State.APPROACHING, 'standing still', self._latest_stamp, 0.0, 1.0, 1
        )
        approach = self._approach(start, motion)
        self._check(approach)
        self._run_goal(State.APPROACHING, approach, 1, f'moving to the start of {state.value}')
        self._wait_at_rest()
        self._run_goal(state, motion, periods, state.value)
        # What follows is not part of the phase any more, though the robot still settles.
        self._publish_progress(
            State.APPROACHING, 'standing still', self._latest_stamp, 1.0, 1.0, 1
        )
        self._wait_at_rest()

    def _approach(self, start: np.ndarray, motion: Waypoints) -> Waypoints:
        limits, share = self._robot.limits, self._settings.approach_speed
        velocity = share * np.minimum(limits.velocity, 10.0)
        # Slow in acceleration too: from rest to that speed in a second.
        acceleration = np.minimum(velocity, share * limits.acceleration)
        return move(motion.joints, start, motion.q[0], velocity, acceleration)

    def _wait_for_reference(self) -> np.ndarray:
        """Wait for the reference that is held: a motion from there starts without a jump."""
        held: list[np.ndarray] = []

        def arrived() -> bool:
            message = self._controller_state.take_latest()
            if message is not None:
                held.append(reference_positions(message, self._robot))
                self._latest_stamp = to_nanoseconds(message.header.stamp)
            return bool(held)

        wait_until(
            arrived,
            self._settings.timeout,
            what=f"'{self._settings.controller}' publishes no controller_state: activate it",
        )
        return held[-1]

    def _run_goal(self, state: State, points: Waypoints, periods: int, what: str) -> None:
        """Run one goal to its end under watch; cancel it on any trouble."""
        assert self._guardian is not None
        goal_id = uuid.uuid4()
        for stream in self._streams:
            list(stream.take_serialized())
        self._guardian.set_goal(goal_id)
        try:
            goal = self._send(goal_id, points)
            self._monitor_goal(goal, state, points, periods, what)
        except BaseException:
            self._cancel(goal_id)
            raise
        self._guardian.clear_goal()

    def _send(self, goal_id: uuid.UUID, points: Waypoints) -> Goal:
        settings = self._settings
        path = expand_per_joint(settings.tracking_error, points.joints, 'tracking_error').tolist()
        end = expand_per_joint(settings.goal_tolerance, points.joints, 'goal_tolerance').tolist()
        goal = self._action.send(goal_id, points, path, end, settings.goal_time)
        late = time.monotonic() + ACCEPT_TIME
        while not goal.accepted():
            self._raise_if_stopped()
            if time.monotonic() > late:
                raise ControllerError(
                    f"no answer from '{self._action.name}' within {ACCEPT_TIME:g} s: the motion "
                    'was cancelled'
                )
            time.sleep(0.002)
        return goal

    def _monitor_goal(
        self, goal: Goal, state: State, points: Waypoints, periods: int, what: str
    ) -> None:
        """Watch until the goal has ended; announce the phase once its start is known."""
        watchdog = self._watchdog()
        history: list[tuple[int, np.ndarray]] = []
        start: int | None = None
        newest = first = 0
        announced = 0.0
        while not goal.finished():
            now = time.monotonic()
            self._raise_if_stopped()
            watchdog.check_joint_states(
                stack_joint_states(list(self._states.take_messages()), self._robot.joints), now
            )
            if start is None:
                messages = list(self._controller_state.take_messages())
                history += [
                    (to_nanoseconds(m.header.stamp), reference_positions(m, self._robot))
                    for m in messages
                ]
                message = messages[-1] if messages else None
            else:
                message = self._controller_state.take_latest()
            watchdog.check_controller_state(message, now)
            if message is not None:
                newest = to_nanoseconds(message.header.stamp)
                first = first or newest
            if start is None and history:
                stamps, reference = zip(*history, strict=True)
                start = estimate_start(points, np.array(stamps, np.int64), np.stack(reference))
            elapsed = (newest - (start or first)) * 1e-9
            if start is not None and now - announced > 0.5:
                announced = now
                self._publish_progress(state, what, start, elapsed, points.duration, periods)
            if elapsed > points.duration + self._settings.goal_time + GOAL_END_GRACE:
                raise RobotStateError('the controller does not end its motion: it was cancelled')
            time.sleep(POLL_PERIOD)
        start = start or first
        self._publish_progress(state, what, start, points.duration, points.duration, periods)
        self._latest_stamp = start + round(points.duration * 1e9)

    def _watchdog(self) -> Watchdog:
        return Watchdog(
            self._robot, self._settings, time.monotonic(), effort_reported=self._effort_reported
        )

    def _raise_if_stopped(self) -> None:
        """Everything but the robot's own state that must stop it."""
        if self._stop.is_set():
            raise RobotStateError('stopped by request')
        assert self._guardian is not None
        if not self._guardian.is_running:
            raise ControllerError('the guardian died: a robot without it is not moved')
        for _ in self._intruder.take_serialized():
            raise ControllerError(
                f"somebody else commands the robot on '{self._intruder.topic}': stop that first"
            )

    def _publish_progress(
        self, state: State, what: str, start: int, elapsed: float, duration: float, periods: int
    ) -> None:
        progress = min(max(elapsed / duration, 0.0), 1.0)
        cycle = min(int(progress * periods) + 1, periods)
        message = f'{what}: cycle {cycle} of {periods}' if periods > 1 else what
        values = {'cycle': cycle, 'cycles': periods, 'progress': round(progress, 4)}
        self._publish_state(state, message, {**values, 'start': start})

    def _wait_at_rest(self) -> None:
        """Stand still for a moment, under the same eyes."""
        watchdog = self._watchdog()
        end = time.monotonic() + self._settings.settle
        while time.monotonic() < end:
            self._raise_if_stopped()
            now = time.monotonic()
            watchdog.check_joint_states(
                stack_joint_states(list(self._states.take_messages()), self._robot.joints), now
            )
            watchdog.check_controller_state(self._controller_state.take_latest(), now)
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
