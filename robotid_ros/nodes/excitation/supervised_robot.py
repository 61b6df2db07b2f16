"""
A robot that is moved under supervision: checked before, watched while, cancelled on any trouble.

Its methods are called from a worker thread, in one straight line: each step returns when it is
done and raises when the robot must stop, whose motion is cancelled then.
"""

from collections.abc import Callable
import threading
import time
from typing import Any
import uuid

import numpy as np
from rclpy.node import Node

from ...core.arrays import Array
from ...core.excitation import check_trajectory, point_to_point, Waypoints
from ...core.excitation.constraints.collision_scene import CollisionScene
from ...core.model.robot import Robot
from ...exceptions import ControllerError, RobotStateError
from ...node_settings import ExcitationNodeSettings
from ..common.controller_client import ControllerClient, ControllerDescription
from ..common.messages import State
from .motion_start import MotionClock
from .other_clients import OtherClients
from .preflight import check_accepted, check_controller
from .reference_watch import ReferenceWatch
from .robot_monitor import RobotMonitor
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
# A process that starts Python and joins the graph, on a machine that is busy [s].
GUARDIAN_START_TIMEOUT = 45.0
# Speed that an approach takes for the limit of joints that have none, or a higher one [rad/s].
MAX_APPROACH_VELOCITY = 10.0
# What may lie between the position that is held and the first one of a motion [rad or m]: the
# torque steps by so much times the gain.
MAX_STEP = 1e-4

PublishState = Callable[[State, str, dict[str, Any]], None]


class SupervisedRobot:
    """
    Moves a robot: `prepare` first, and `close` in any case.

    Parameters
    ----------
    node : whose executor spins meanwhile
    robot, settings : what moves, and how
    publish_state : called with each state, a sentence and values
    session : its name, by which the recorder says what it records
    stop : set from outside to stop the robot
    controller, action : clients of the controller, which outlive a session

    Attributes
    ----------
    robot, settings, controller : as given
    description : what the controller said when it was checked last

    """

    def __init__(
        self,
        node: Node,
        robot: Robot,
        settings: ExcitationNodeSettings,
        publish_state: PublishState,
        session: str,
        stop: threading.Event,
        controller: ControllerClient,
        action: TrajectoryActionClient,
    ):
        self._node, self.robot, self.settings = node, robot, settings
        self._publish_state, self._session, self._stop = publish_state, session, stop
        self.controller, self._action = controller, action
        self.description: ControllerDescription | None = None
        self._guardian: Guardian | None = None
        self._monitor: RobotMonitor | None = None
        self._others: OtherClients | None = None
        self._latest_stamp = 0
        self._tracking = expand_per_joint(settings.tracking_error, robot.joints, 'tracking_error')
        self._scene = CollisionScene(robot, settings.workspace)

    def prepare(self) -> None:
        """
        Check all that can be checked without a design, which takes long.

        Raises
        ------
        RobotIdError : why the robot could not be moved

        """
        node, settings = self._node, self.settings
        check_accepted(self._scene.unchecked, settings, node.get_logger())
        self._others = OtherClients(node, settings.controller)
        self._guardian = Guardian(self._action.cancel_service, node.context.get_domain_id())
        self._monitor = RobotMonitor(
            node, self.robot, settings, self._stop, self._guardian, self._others, self._session
        )
        self.check()
        self._guardian.wait_ready(max(settings.timeout, GUARDIAN_START_TIMEOUT))

    def close(self) -> None:
        """Let go of everything; a goal that still runs is cancelled by the guardian."""
        for part in (self._guardian, self._monitor, self._others):
            if part is not None:
                part.close()
        self._guardian = self._monitor = self._others = None

    @property
    def guardian(self) -> Guardian:
        """The process that cancels, and sets parameters back, should this one die."""
        assert self._guardian is not None
        return self._guardian

    def check(self) -> None:
        """Check robot, controller, recorder and other clients as they are now."""
        assert self._others and self._monitor
        self._others.check_alone()
        self.description = self.controller.describe()
        check_controller(self.description, self.robot)
        self._action.wait_for_server()
        self._monitor.check_ready()

    def check_motion(self, motion: Waypoints) -> None:
        """Check a motion between its points too; raises `TrajectoryError`."""
        check_trajectory(self.robot, motion, self.settings, scene=self._scene)

    def move_to(self, state: State, goal: Array, what: str, speed: float = np.inf) -> None:
        """
        Move on a straight line in joint space, and rest there.

        Parameters
        ----------
        state : that is published meanwhile
        goal : (n,) positions, such as those with which a motion begins [rad or m]
        what : is being done
        speed : largest of any joint, below that of approaches [rad/s or m/s]

        """
        assert self._monitor is not None
        self._latest_stamp, start = self._monitor.wait_for_reference()
        self.publish_standing(state, 0.0)
        self._monitor.wait_recording()
        self._approach(state, start, goal, what, speed)
        # Where another position is held, as by a controller that was restarted, what follows would
        # begin with a step.
        _, held = self._monitor.wait_for_reference()
        away = np.abs(held - goal)
        if away.max() <= MAX_STEP:
            return
        joint = self.robot.joints[int(np.argmax(away))]
        self._node.get_logger().warning(
            f'the controller holds {joint} {away.max():.4g} away from where the motion begins, as '
            'if it had been restarted: moving there again'
        )
        self._approach(state, held, goal, what, speed)

    def publish_standing(self, state: State, progress: float) -> None:
        """Say that the robot stands, before or after its motions."""
        self._publish_progress(state, 'standing still', self._latest_stamp, progress, 1)

    def _approach(self, state: State, start: Array, goal: Array, what: str, speed: float) -> None:
        limits, share = self.robot.limits, self.settings.approach_speed
        velocity = share * np.minimum(limits.velocity, MAX_APPROACH_VELOCITY)
        velocity = np.minimum(velocity, speed)
        # Slow in acceleration too: from rest to that speed in a second.
        acceleration = np.minimum(velocity, share * limits.acceleration)
        motion = point_to_point(self.robot.joints, start, goal, velocity, acceleration)
        self.check_motion(motion)
        self.run_goal(state, motion, 1, what)
        self.wait_at_rest()

    def run_goal(
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
        assert self._guardian and self._monitor and self._others
        goal_id = uuid.uuid4()
        self._monitor.discard()
        self._others.add_own_goal(goal_id)
        self._guardian.set_goal(goal_id)
        try:
            goal = self._send(goal_id, points, self._monitor)
            clock = self._monitor_goal(goal, self._monitor, state, points, periods, what, poll)
        except BaseException as error:
            self._cancel(goal_id)
            if isinstance(error, RobotStateError) and (joint := self._monitor.find_unheld_joint()):
                raise RobotStateError(
                    f'{error}; the controller holds no position of {joint} now and gives it no '
                    'torque: deactivate and activate it'
                ) from None
            raise
        self._guardian.clear_goal()
        return clock

    def _send(
        self, goal_id: uuid.UUID, points: Waypoints, monitor: RobotMonitor
    ) -> TrajectoryGoal:
        settings = self.settings
        path = self._tracking.tolist()
        end = expand_per_joint(settings.goal_tolerance, points.joints, 'goal_tolerance').tolist()
        goal = self._action.send(goal_id, points, path, end, settings.goal_time)
        deadline = time.monotonic() + ACCEPT_TIMEOUT
        while not goal.accepted():
            monitor.raise_if_stopped()
            if time.monotonic() > deadline:
                raise ControllerError(
                    f"no answer from '{self._action.name}' within {ACCEPT_TIMEOUT:g} s: the "
                    'motion was cancelled'
                )
            time.sleep(ACCEPT_POLL_PERIOD)
        return goal

    def _monitor_goal(
        self,
        goal: TrajectoryGoal,
        monitor: RobotMonitor,
        state: State,
        points: Waypoints,
        periods: int,
        what: str,
        poll: Callable[[], object],
    ) -> MotionClock:
        """Watch until the goal has ended; publish the phase once its start is known."""
        clock = MotionClock(points, self.settings.goal_time, GOAL_END_GRACE)
        followed = ReferenceWatch(points, self._tracking)
        monitor.begin()
        published = 0.0
        while not self._has_finished(goal, monitor):
            states = monitor.check(every_state=clock.start is None)
            clock.update(states)
            try:
                followed.check(states, clock)
            except RobotStateError:
                # A goal that was ended, which a busy machine may tell late, says by whom.
                self._has_finished(goal, monitor)
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

    def _has_finished(self, goal: TrajectoryGoal, monitor: RobotMonitor) -> bool:
        """Whether the goal has ended well; where not, who ended it comes before how."""
        try:
            return goal.finished()
        except RobotStateError as error:
            monitor.wait_for_reason()
            if goal.violated is None:
                raise
            raise RobotStateError(f'{error}: {monitor.describe_error(goal.violated)}') from None

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
        assert self._monitor is not None
        self._monitor.begin()
        end = time.monotonic() + (self.settings.settle if duration is None else duration)
        while time.monotonic() < end:
            self._monitor.check()
            poll()
            time.sleep(POLL_PERIOD)

    def _cancel(self, goal_id: uuid.UUID) -> None:
        """Cancel, and leave it to the guardian when the controller does not confirm."""
        assert self._guardian is not None
        if self._action.cancel(goal_id, CANCEL_TIMEOUT) and self._guardian.is_running:
            try:
                self._guardian.clear_goal()
            except ControllerError:
                self._node.get_logger().error('the guardian has ended')
        self._guardian.close()
