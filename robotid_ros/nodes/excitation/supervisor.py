"""
Goals of a robot's controller under watch: sent, followed to their end, cancelled on any trouble.

Called from a worker thread: each call returns when the goal has ended well, and raises when the
robot must stop, whose motion is cancelled then.
"""

from collections.abc import Callable
from contextlib import ExitStack
import threading
import time
from typing import Any
import uuid

from rclpy.node import Node

from ...core.excitation import Waypoints
from ...core.model.robot import Robot
from ...exceptions import ControllerError, RobotStateError, TrackingError
from ...node_settings import ExcitationNodeSettings
from ..common.messages import State
from .motion_start import MotionClock
from .other_clients import OtherClients
from .reference_watch import ReferenceWatch
from .robot_monitor import REASON_POLL_PERIOD, REASON_TIMEOUT, RobotMonitor
from .supervision.guardian import Guardian
from .supervision.watchdog import expand_per_joint
from .trajectory_goal import TrajectoryActionClient, TrajectoryGoal

# How often the states of a moving robot are checked [s]: well below `stale_after`.
POLL_PERIOD = 0.01
# How often progress is published [s].
PROGRESS_PERIOD = 0.5
# How long the controller may take to accept a goal [s]: as long it is not known whether the robot
# will move. Less would give up on controllers whose action server is slow.
ACCEPT_TIMEOUT, ACCEPT_POLL_PERIOD = 1.0, 0.002
# How long to wait for the confirmation of a cancellation before 'failed' is published and the
# guardian takes over [s].
CANCEL_TIMEOUT = 0.2
# How long a goal's result may take to arrive after the motion's duration and its goal time [s]: of
# this node's own time, which simulated time may outrun.
GOAL_END_GRACE = 1.0

PublishState = Callable[[State, str, dict[str, Any]], None]


class SupervisedGoals:
    """
    Runs goals, one after another, and watches the robot between them; `close` in any case.

    Parameters
    ----------
    node, robot, settings, publish_state, session, stop, action : as of `SupervisedRobot`

    Attributes
    ----------
    others : who else could move the robot
    guardian : the process that cancels, and sets parameters back, should this one die
    monitor : what is watched

    """

    def __init__(
        self,
        node: Node,
        robot: Robot,
        settings: ExcitationNodeSettings,
        publish_state: PublishState,
        session: str,
        stop: threading.Event,
        action: TrajectoryActionClient,
    ):
        self._node, self._settings, self._action = node, settings, action
        self._publish_state, self._latest_stamp = publish_state, 0
        self._tracking = expand_per_joint(settings.tracking_error, robot.joints, 'tracking_error')
        with ExitStack() as ends:
            self.others = OtherClients(node, settings.controller)
            ends.callback(self.others.close)
            self.guardian = Guardian(action.cancel_service, node.context.get_domain_id())
            ends.callback(self.guardian.close)
            self.monitor = RobotMonitor(
                node, robot, settings, stop, self.guardian, self.others, session
            )
            ends.pop_all()

    def close(self) -> None:
        """Let go of everything; a goal that still runs is cancelled by the guardian."""
        for part in (self.guardian, self.monitor, self.others):
            part.close()

    def run(
        self,
        state: State,
        points: Waypoints,
        periods: int,
        what: str,
        poll: Callable[[], object] = lambda: None,
    ) -> MotionClock:
        """
        Run one goal to its end under watch; cancel it on any trouble.

        Parameters
        ----------
        state : that is published meanwhile
        points : the motion
        periods : how many of them it has
        what : is being done
        poll : called at every turn

        Returns
        -------
        When it began and ended.

        Raises
        ------
        RobotIdError : why the robot was stopped

        """
        goal_id = uuid.uuid4()
        self.monitor.discard()
        self.others.add_own_goal(goal_id)
        self.guardian.set_goal(goal_id)
        goal: TrajectoryGoal | None = None
        try:
            goal = self._send(goal_id, points)
            clock = self._follow(goal, state, points, periods, what, poll)
        except BaseException as error:
            self._cancel(goal_id)
            if isinstance(error, TrackingError) and goal is not None:
                self._raise_violation(goal, points)
            if isinstance(error, RobotStateError) and (joint := self.monitor.find_unheld_joint()):
                raise RobotStateError(
                    f'{error}; the controller holds no position of {joint} now and gives it no '
                    'torque: deactivate and activate it'
                ) from None
            raise
        self.guardian.clear_goal()
        return clock

    def _send(self, goal_id: uuid.UUID, points: Waypoints) -> TrajectoryGoal:
        settings = self._settings
        path = self._tracking.tolist()
        end = expand_per_joint(settings.goal_tolerance, points.joints, 'goal_tolerance').tolist()
        goal = self._action.send(goal_id, points, path, end, settings.goal_time)
        deadline = time.monotonic() + ACCEPT_TIMEOUT
        while not self._is_accepted(goal, points):
            self.monitor.raise_if_stopped()
            if time.monotonic() > deadline:
                raise ControllerError(
                    f"no answer from '{self._action.name}' within {ACCEPT_TIMEOUT:g} s: the "
                    'motion was cancelled'
                )
            time.sleep(ACCEPT_POLL_PERIOD)
        return goal

    def _is_accepted(self, goal: TrajectoryGoal, points: Waypoints) -> bool:
        """Whether the goal is accepted; a refusal has no reason, but an inactive one is silent."""
        try:
            return goal.accepted()
        except ControllerError:
            if not self.monitor.controller_is_silent():
                raise
            why = self._action.hardware.explain_deactivation(points.joints)
            raise ControllerError(
                f"'{self._action.name}' took no trajectory, and the controller publishes no state "
                f'any more: {why}'
            ) from None

    def _follow(
        self,
        goal: TrajectoryGoal,
        state: State,
        points: Waypoints,
        periods: int,
        what: str,
        poll: Callable[[], object],
    ) -> MotionClock:
        """Watch until the goal has ended; publish the phase once its start is known."""
        clock = MotionClock(points, self._settings.goal_time, GOAL_END_GRACE)
        followed = ReferenceWatch(points, self._tracking)
        self.monitor.begin()
        published = 0.0
        while not self._has_finished(goal, points):
            states = self.monitor.check(every_state=clock.start is None)
            clock.update(states)
            try:
                followed.check(states, clock)
            except RobotStateError:
                # A goal that was ended, which a busy machine may tell late, says by whom.
                self._has_finished(goal, points)
                raise
            poll()
            now = time.monotonic()
            if clock.start is not None and now - published > PROGRESS_PERIOD:
                published = now
                progress = clock.elapsed / points.duration
                self._publish_progress(state, what, clock.start, progress, periods, **clock.speed)
            time.sleep(POLL_PERIOD)
        self._publish_progress(state, what, clock.known_start, 1.0, periods, **clock.speed)
        self._latest_stamp = clock.end
        return clock

    def _has_finished(self, goal: TrajectoryGoal, points: Waypoints) -> bool:
        """Whether the goal has ended well; where not, who ended it comes before how."""
        try:
            return goal.finished()
        except RobotStateError as error:
            self.monitor.wait_for_reason()
            if goal.violated is None:
                raise
            raise self._with_joint(error, goal, points) from None

    def _raise_violation(self, goal: TrajectoryGoal, points: Waypoints) -> None:
        """
        Raise what the controller says of a violation that it has noticed as well.

        After that it holds what it measured, and other joints are away from it while they brake.
        """
        end = time.monotonic() + REASON_TIMEOUT
        while time.monotonic() < end:
            try:
                goal.finished()
            except RobotStateError as error:
                if goal.violated is None:
                    return
                raise self._with_joint(error, goal, points) from None
            time.sleep(REASON_POLL_PERIOD)

    def _with_joint(
        self, error: RobotStateError, goal: TrajectoryGoal, points: Waypoints
    ) -> RobotStateError:
        """Add the joint to what the controller says of a violated tolerance."""
        assert goal.violated is not None
        end = points.q[-1] if goal.violated_at_end else None
        return RobotStateError(f'{error}; {self.monitor.describe_violation(goal.violated, end)}')

    def publish_standing(self, state: State, progress: float, since: int | None = None) -> None:
        """Say that the robot stands since a stamp [ns], by default since its last motion."""
        self._latest_stamp = self._latest_stamp if since is None else since
        self._publish_progress(state, 'standing still', self._latest_stamp, progress, 1)

    def _publish_progress(
        self, state: State, what: str, start: int, progress: float, periods: int, **speed: float
    ) -> None:
        progress = min(max(progress, 0.0), 1.0)
        cycle = min(int(progress * periods) + 1, periods)
        message = f'{what}: cycle {cycle} of {periods}' if periods > 1 else what
        if speed:
            message += f', at {speed["speed"]:.0%} of the planned speed'
        values = {'cycle': cycle, 'cycles': periods, 'progress': round(progress, 4)}
        self._publish_state(state, message, {**values, **speed, 'start': start})

    def wait_at_rest(
        self, duration: float | None = None, poll: Callable[[], object] = lambda: None
    ) -> None:
        """Stand still for a while [s], by default until the robot has come to rest; watch it."""
        self.monitor.begin()
        end = time.monotonic() + (self._settings.settle if duration is None else duration)
        while time.monotonic() < end:
            self.monitor.check()
            poll()
            time.sleep(POLL_PERIOD)

    def _cancel(self, goal_id: uuid.UUID) -> None:
        """Cancel, and leave it to the guardian when the controller does not confirm."""
        if self._action.cancel(goal_id, CANCEL_TIMEOUT) and self.guardian.is_running:
            try:
                self.guardian.clear_goal()
            except ControllerError:
                self._node.get_logger().error('the guardian has ended')
        self.guardian.close()
