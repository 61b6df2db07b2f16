"""
Node `feedforward`: goals of MoveIt or anybody, handed on with the identified efforts.

It offers FollowJointTrajectory in front of a joint_trajectory_controller that commands efforts.
Goal, feedback, result, cancellation and preemption go through; each point gets the effort that the
model predicts, and as many points are added as straight lines between efforts need. A goal that
cannot be handed on ends as aborted with a sentence. Should the controller's states stop while a
goal runs, the node cancels it; should the node die, its guardian does.
"""

from collections import deque
from collections.abc import Callable
import contextlib
from functools import partial
import os
import threading
import time
import traceback
from typing import Any
import uuid

from action_msgs.msg import GoalStatus, GoalStatusArray
from control_msgs.action import FollowJointTrajectory
from diagnostic_msgs.msg import DiagnosticArray
import numpy as np
from rcl_interfaces.msg import ParameterEvent
from rclpy.action import ActionClient, ActionServer, CancelResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.qos import qos_profile_parameter_events
from rclpy.task import Future
from unique_identifier_msgs.msg import UUID

from ...core.arrays import Array
from ...core.excitation.trajectory import CubicWaypoints, Waypoints
from ...core.model import Robot
from ...core.model.dynamics import PathDynamics
from ...core.verdict import FAIR, GOOD, POOR
from ...core.verification import feed_forward
from ...exceptions import ControllerError, LimitError, RobotIdError, TrajectoryError
from ..common import controller as jtc, runtime
from ..common.batched_subscription import NEWEST
from ..common.guardian import Guardian
from ..common.messages import one_line, status, status_array, to_nanoseconds, trajectory_message
from ..common.model_node import ModelNode
from ..common.processes import prefer_threads
from ..common.ros_parameters import changed_parameters, EVENTS
from ..common.runtime import in_thread, LATCHED, STEADY
from ..common.waiting import run_in_executor, Silence, wait_until

WATCH_PERIOD = 0.05  # of signs of life for the guardian, and looks at states [s]
NO_GUARDIAN = 'the guardian is being started again: try again in a moment'
NO_NUMBER = 'the goal holds a value that is not a number'
TAKEN = 'a newer goal has taken its place'
# How long a controller may take to end a goal that was cancelled [s]: then it is gone. One that a
# newer goal has replaced ends with that one before ros2_controllers 4.41: it is ended here.
ENDING_TIME = 2.0
USUAL_RATE = 500.0  # of its updates where the controller does not say [Hz]
OWN = os.urandom(8)  # with which the ids of this node's goals begin
LARGEST = 1e6  # value of a goal [rad or m, and per s and s²]: no robot reaches it
AT_REST = 1e-6  # speed of a reference that is held [rad/s or m/s]
Result = FollowJointTrajectory.Result


def read_goal(
    trajectory: Any, robot: Robot, now: Callable[[], tuple[Array, Array]], ahead: float = 0.0
) -> tuple[Waypoints, float]:
    """
    Read a trajectory as a controller does.

    Where it does not begin at once, its first segment goes from the reference. That is held at
    rest, and becomes a point of its own, whose effort the controller would make up otherwise. In
    motion it is another one when the goal arrives: the controller has to find it itself.

    `now` gives positions and velocities (n,) of the reference, and its stamp is so much `ahead`
    [s]. Returns the waypoints, in the order of the robot's joints, from now on, and the time from
    which they can be sent [s]. A trajectory that efforts cannot be added to is a TrajectoryError,
    which says what would be one.
    """
    names, points, joints = list(trajectory.joint_names), trajectory.points, robot.joints
    if sorted(names) != sorted(joints):
        raise TrajectoryError(
            f'the goal names the joints {", ".join(names) or "none"}: efforts are known for '
            f'{", ".join(joints)} together'
        )
    if not points:
        raise TrajectoryError('the goal has no points')
    order = [names.index(joint) for joint in joints]
    with_accelerations = len(points[0].accelerations) > 0
    if any((len(point.accelerations) > 0) != with_accelerations for point in points):
        raise TrajectoryError('some points of the goal lack accelerations: give all or none')
    stamps = (point.time_from_start for point in points)
    time = np.array([stamp.sec + stamp.nanosec * 1e-9 for stamp in stamps])
    motion = np.zeros((3, len(time), robot.n))  # positions, velocities, accelerations
    fields = ('positions', 'velocities', 'accelerations')
    for field, values in zip(fields[: 2 + with_accelerations], motion, strict=False):
        rows = [getattr(point, field) for point in points]
        if any(len(row) != len(names) for row in rows):
            raise TrajectoryError(
                f'a point of the goal lacks {field} of some joint: efforts follow from smooth '
                'motion, let the planner fill in positions and velocities'
            )
        values[:] = np.frombuffer(b''.join(rows)).reshape(-1, robot.n)[:, order]
    if time[0] < 0.0 or time[-1] == 0.0 or (np.diff(time) <= 0.0).any():
        raise TrajectoryError('the times of the goal do not increase from 0')
    first, time = ahead, time + ahead
    if time[0] > 0.0:
        q, dq = now()
        first = float(time[0]) if np.abs(dq).max() > AT_REST else ahead
        # A controller counts joints without limits from the turn that is nearest to the goal.
        turns = np.round((motion[0, 0] - q) / (2.0 * np.pi))
        endless = ~np.isfinite(robot.limits.upper - robot.limits.lower) & ~robot.prismatic
        begin = q + np.where(endless, 2.0 * np.pi * turns, 0.0)
        time = np.insert(time, 0, 0.0)
        motion = np.insert(motion, 0, [begin, dq, np.zeros(robot.n)], axis=1)
    if not (np.abs(motion) <= LARGEST).all():
        raise TrajectoryError(f'{NO_NUMBER}, or one beyond {LARGEST:g}')
    kind = Waypoints if with_accelerations else CubicWaypoints
    return kind(tuple(joints), time, *motion), first


class Running:
    """A goal of a client: `points` as sent, None where it goes on as it came."""

    def __init__(self, n: int):
        # Its id at the controller: rclpy tells the client's only once it has accepted the goal.
        self.goal_id = uuid.UUID(bytes=OWN + os.urandom(8))
        self.points: Waypoints | None = None
        self.given: ServerGoalHandle | None = None  # the client's goal
        self.answer: Future | None = None  # of the controller, whether it accepts; None: not sent
        self.handle: Any = None  # the controller's goal, accepted at `began`
        self.began = np.inf
        # The sum of squared tracking errors, and of how many states.
        self.squares, self.states = np.zeros(n), 0
        # Why and when the node has cancelled it, and when the controller has accepted a newer one.
        self.reason, self.cancelled, self.replaced = '', np.inf, np.inf
        self.ended = Future()  # of the controller's result, None where it is gone

    def end(self, answer: Any) -> None:
        """End it, once, with what the controller says, or None where it says nothing."""
        if not self.ended.done():
            self.ended.set_result(answer)

    def effort(self) -> Array | None:
        """Efforts (n,) that it commands ahead of the feedback now; None: none."""
        if self.points is None or self.points.tau is None:
            return None
        now, (t, tau) = time.monotonic() - self.began, (self.points.time, self.points.tau)
        return np.array([np.interp(now, t, tau[:, j]) for j in range(tau.shape[1])])


class EarlyServer(ActionServer):
    """Shows a goal as it arrives: until rclpy gets to it, half a millisecond goes by."""

    def __init__(self, on_goal: Callable[[Any], None], *arguments: Any, **options: Any):
        self._on_goal, self._taken = on_goal, deque[dict[str, Any]]()
        super().__init__(*arguments, **options)

    def is_ready(self, wait_set: Any) -> bool:
        """Take what has arrived, before a task is made of it; rclpy refuses known ids."""
        if super().is_ready(wait_set):
            self._taken.append(taken := super().take_data())
            if 'goal' in taken and bytes(taken['goal'][1].goal_id.uuid) not in self._goal_handles:
                self._on_goal(taken['goal'][1].goal)
        return bool(self._taken)

    def take_data(self) -> dict[str, Any]:
        """Return what was taken."""
        return self._taken.popleft()


class FeedForward(ModelNode):
    """Hands goals on; ready, and its action there, once controller, results and guardian are."""

    _dynamics: PathDynamics  # with the payload

    def __init__(self, **options: Any):
        super().__init__('feedforward', **options)
        self._guardian: Guardian | None = None
        self._server: EarlyServer | None = None
        # Goals that the controller has accepted, by the client's id; the last one runs, older ones
        # may end late.
        self._running: dict[bytes, Running] = {}
        self._latest: Running | None = None
        self._guarded: Running | None = None  # what the guardian cancels in need: sent last
        # The goal that came last, and the same until rclpy has accepted it.
        self._last_requested: Running | None = None
        self._unaccepted: Running | None = None
        # The effort that it holds ahead of its feedback after goals that have succeeded, or were
        # cancelled: that of the last point. None at first, and after a goal of another client.
        self._held_effort: Array | None = None
        self._others = frozenset[bytes]()  # goals of other clients, which stay known for a while
        self._taking = threading.Lock()
        self._newest_state: Any = None
        self._heard = -np.inf
        self._silence = Silence(time.monotonic())
        self._tracking = self.create_publisher(DiagnosticArray, '~/tracking', LATCHED)
        names = jtc.ACTION, jtc.GOALS, jtc.CANCEL
        action, goals, self._stopping = (f'{self._controller}/{name}' for name in names)
        self._client = ActionClient(self, FollowJointTrajectory, action)
        self._ready = f"hands goals on to '{self._controller}'"
        self._description_client = jtc.ControllerClient(self, self._controller, self._timeout)
        self._states = jtc.subscribe_states(self, self._controller)
        self.create_subscription(GoalStatusArray, goals, self._on_goals, LATCHED)
        # The controller's, by name: with its gains it holds the arm.
        self._jtc_values, profile = dict[str, Any](), qos_profile_parameter_events
        self.create_subscription(ParameterEvent, EVENTS, self._on_parameters, profile)
        self.create_timer(WATCH_PERIOD, self._watch, clock=STEADY)
        self.start_worker(self._retry, self._prepare)

    def close(self) -> None:
        """Let the guardian cancel what still runs."""
        super().close()
        if self._server is not None:
            prefer_threads(False)
        guardian, self._guardian = self._guardian, None
        if guardian is not None:
            run_in_executor(self, guardian.close)  # which may be looking at it now

    def _make_ready(self) -> str:
        self._check_verdict((GOOD, FAIR, POOR))
        description = self._description_client.describe()
        if reason := description.why_no_feed_forward:
            raise ControllerError(reason)
        jtc.check_controller(description, self._model.robot)
        self._jtc_values = {**description.values, **self._jtc_values}
        self._period = 1.0 / (description.rate or USUAL_RATE)
        self._guardian = self._new_guardian(self._stopping)
        self._server = EarlyServer(
            self._on_goal,
            self,
            FollowJointTrajectory,
            f'~/{jtc.ACTION}',
            execute_callback=self._execute,
            handle_accepted_callback=self._on_accepted,
            cancel_callback=self._cancel,
        )
        # Between goals, too: a goal must not wait for a processor behind those who compute.
        prefer_threads(True)
        return self._ready

    def _take_payload(self) -> None:
        super()._take_payload()
        if self._robot is not None:
            with self._taking_payload:
                self._dynamics = PathDynamics(self._robot, self._model.chi + self._payload)

    # A goal

    def _on_goal(self, goal: FollowJointTrajectory.Goal) -> None:
        """Send a goal before rclpy accepts it, which takes longer than most efforts."""
        self._drop_unaccepted()
        running = Running(self._model.robot.n)
        self._last_requested = self._unaccepted = running
        try:
            guarded = self._guardian is not None and self._guardian.is_running
            if guarded and self._is_quick(goal.trajectory):
                self._add_efforts(running, goal)
                self._send(running, goal)
        except Exception as error:  # it would end the node here: `_begin` raises it, for this goal
            running.answer = Future()
            running.answer.set_exception(error)

    def _on_accepted(self, handle: ServerGoalHandle) -> None:
        """Go on with the goal of `_on_goal`, right after which rclpy calls this."""
        running, self._unaccepted = self._unaccepted, None
        if running is None:  # an rclpy that does not show what it takes
            running = self._last_requested = Running(self._model.robot.n)
        running.given = handle
        handle.execute(partial(self._execute, running))

    async def _execute(self, running: Running, handle: ServerGoalHandle) -> Any:
        """Send a goal that was not, and hand its result back."""
        try:
            if running.answer is None and not await self._send_later(running, handle):
                handle.canceled()
                return Result()
            await self._begin(running, handle)
            return self._finish(handle, running, await running.ended)
        except Exception as error:
            reason = one_line(error)
            self.get_logger().warning(f'a goal was refused: {reason}')
            if not isinstance(error, RobotIdError):
                traceback.print_exc()
            self._cancel_sent(running)
            self._running.pop(bytes(handle.goal_id.uuid), None)
            if self._latest is running:
                self._latest = None
            if handle.is_active:
                handle.abort()
            return Result(error_code=Result.INVALID_GOAL, error_string=reason)

    async def _send_later(self, running: Running, handle: ServerGoalHandle) -> bool:
        """Send a goal whose guardian or efforts take a while; False where it was cancelled."""
        goal = handle.request
        self._check_guardian()

        def is_there() -> bool:
            return self._guardian is not None or handle.is_cancel_requested

        def prepare() -> None:
            wait_until(is_there, self._timeout, what=NO_GUARDIAN)
            self._add_efforts(running, goal)

        await in_thread(self, prepare)
        if handle.is_cancel_requested:
            return False
        if self._last_requested is not running:
            raise ControllerError(TAKEN)
        self._send(running, goal)
        return True

    def _add_efforts(self, running: Running, goal: FollowJointTrajectory.Goal) -> None:
        if self.get_parameter('feedforward.enabled').value:
            given = goal.trajectory
            running.points, *first = self._with_efforts(given)
            goal.trajectory = trajectory_message(running.points, given.header, *first)
            return
        fields = ('positions', 'velocities', 'accelerations', 'effort')
        values = (getattr(point, name) for point in goal.trajectory.points for name in fields)
        if not all(np.isfinite(row).all() for row in values):
            raise TrajectoryError(NO_NUMBER)

    def _send(self, running: Running, goal: FollowJointTrajectory.Goal) -> None:
        """Send a goal that is ready, once the guardian knows it."""

        def hand_back(message: Any) -> None:
            if running.given is not None and running.given.is_active:
                running.given.publish_feedback(message.feedback)

        if self._guardian is None:
            raise ControllerError(NO_GUARDIAN)
        self._guardian.set_goal(running.goal_id)
        self._guarded = running
        running.answer = self._client.send_goal_async(
            goal, feedback_callback=hand_back, goal_uuid=UUID(uuid=list(running.goal_id.bytes))
        )

    async def _begin(self, running: Running, handle: ServerGoalHandle) -> None:
        """Wait until the controller has accepted a goal that was sent."""
        assert running.answer is not None
        running.handle = sent = await running.answer
        if not sent.accepted:
            if running is self._guarded:
                self._guard(self._latest)
            why = 'its log says why (is it active?)'
            raise ControllerError(f"'{self._controller}' refused the goal: {why}")
        for older in self._running.values():
            older.replaced = min(older.replaced, time.monotonic())
        running.began = time.monotonic()
        self._running[bytes(handle.goal_id.uuid)] = self._latest = running
        sent.get_result_async().add_done_callback(lambda future: running.end(future.result()))
        if handle.is_cancel_requested:
            sent.cancel_goal_async()

    def _guard(self, running: Running | None) -> None:
        """Let the guardian watch over a goal that runs, or over none."""
        self._guarded = running
        if self._guardian is not None:
            with contextlib.suppress(ControllerError):
                if running is not None:
                    self._guardian.set_goal(running.goal_id)
                else:
                    self._guardian.clear_goal()

    def _is_quick(self, trajectory: Any) -> bool:
        """Whether efforts take a few milliseconds, less than a thread and the turns it costs."""
        if not trajectory.points or self.settings.largest_slowdown > 1.0:
            return False
        ends = trajectory.points[0], trajectory.points[-1]
        first, last = (1e-9 * to_nanoseconds(point.time_from_start) for point in ends)
        ahead = self._ahead(trajectory)
        # Where it begins, and what is held, may be in a state that has to be waited for.
        told = self._latest is not None or self._held_effort is not None
        known = (first + ahead == 0.0 and told) or time.monotonic() - self._heard < WATCH_PERIOD
        updates = max((ahead + last) / self._period, len(trajectory.points))
        return known and updates <= feed_forward.IN_ONE_CALL

    def _ahead(self, trajectory: Any) -> float:
        """Return how long it is until a trajectory begins [s]."""
        stamp = to_nanoseconds(trajectory.header.stamp)
        return max(0.0, (stamp - self.get_clock().now().nanoseconds) * 1e-9) if stamp else 0.0

    def _with_efforts(self, trajectory: Any) -> tuple[Waypoints, float, float]:
        """Add efforts to a goal, slowed if need be; see `trajectory_message` for what is sent."""
        robot, ahead = self._model.robot, self._ahead(trajectory)
        goal, first = read_goal(trajectory, robot, self._reference, ahead)
        dynamics, share = self._dynamics, self.configuration.excitation.effort_share
        present = self._held_effort if self._latest is None else self._latest.effort()
        if present is None:
            present = np.zeros(robot.n) if self._latest else self._read_held_effort()

        def planned(factor: float) -> Waypoints:
            given = dynamics, self._period, present, self.settings.ramp
            slow = goal if factor == 1.0 else feed_forward.slowed(goal, factor)
            points = feed_forward.goal_with_efforts(slow, *given)
            feed_forward.check_feed_forward(points, robot, share)
            return points

        with contextlib.suppress(LimitError):
            return planned(1.0), first, ahead
        low, high = 1.0, self.settings.largest_slowdown
        slowest = planned(high)
        while high - low > 0.01 * low:
            middle = 0.5 * (low + high)
            try:
                slowest, high = planned(middle), middle
            except LimitError:
                low = middle
        return slowest, first * high, ahead

    def _reference(self) -> tuple[Array, Array]:
        """Return positions and velocities (n,) that the controller follows now."""
        wait_until(
            lambda: self._take_states(1) or time.monotonic() - self._heard < WATCH_PERIOD,
            self._timeout,
            what=f"'{self._controller}' publishes no controller_state: activate it",
        )
        state, joints = self._newest_state, self._model.robot.joints
        speed = jtc.by_joint(state, state.reference.velocities, joints)
        speed = np.zeros(len(joints)) if speed is None else speed
        return jtc.reference_positions(state, joints), speed

    def _read_held_effort(self) -> Array:
        """Read what the controller holds (n,) ahead of its feedback; 0 where nobody can know."""
        joints = self._model.robot.joints
        gains = ((f'gains.{joint}.{gain}' for joint in joints) for gain in 'pid')
        p, i, d = (np.array([self._jtc_values.get(k, 0.0) for k in row]) for row in gains)
        moves, state = np.abs(self._reference()[1]).max() > AT_REST, self._newest_state
        parts = state.output.effort, state.error.positions, state.error.velocities
        effort, error, change = (jtc.by_joint(state, values, joints) for values in parts)
        if moves or i.any() or effort is None or error is None or change is None:
            return np.zeros(len(joints))
        return np.asarray(np.nan_to_num(effort - p * error - d * change))

    def _cancel(self, handle: ServerGoalHandle) -> CancelResponse:
        running = self._running.get(bytes(handle.goal_id.uuid))
        if running is not None:
            running.handle.cancel_goal_async()
        return CancelResponse.ACCEPT

    def _finish(self, handle: Any, running: Running, answer: Any) -> Any:
        """End a goal as the controller has ended its own."""
        del self._running[bytes(handle.goal_id.uuid)]
        if running is self._latest:
            self._latest = None
        if running is self._guarded:  # else a newer one is on its way to the controller
            self._guard(None)
        result, end = Result(error_code=Result.INVALID_GOAL), GoalStatus.STATUS_ABORTED
        why = TAKEN
        if answer is not None:
            result, end, why = answer.result, answer.status, 'the controller has ended the goal'
        if end == GoalStatus.STATUS_SUCCEEDED:
            points = running.points
            self._held_effort = None if points is None or points.tau is None else points.tau[-1]
            handle.succeed()
        elif end == GoalStatus.STATUS_CANCELED and handle.is_cancel_requested:
            handle.canceled()
        else:
            result.error_string = running.reason or result.error_string or why
            handle.abort()
        self._publish_tracking(running)
        return result

    # While goals run

    def _drop_unaccepted(self) -> None:
        """Cancel a goal that was sent and that rclpy did not accept: its client may be gone."""
        running, self._unaccepted = self._unaccepted, None
        if running is not None:
            self._cancel_sent(running)

    def _cancel_sent(self, running: Running) -> None:
        """Cancel a goal at the controller, once that has accepted it, if it was sent."""

        def cancel(answer: Future) -> None:
            if answer.exception() is None and answer.result().accepted:
                answer.result().cancel_goal_async()

        if running.answer is not None:
            running.answer.add_done_callback(cancel)

    def _watch(self) -> None:
        """Give signs of life, take in the tracking error, and cancel where states stop."""
        if self._robot is None:
            return
        self._check_guardian()
        # At rest, too: a queue that is full takes long.
        states = self._take_states(NEWEST if self._running else 1)
        silent = self._silence.update(time.monotonic(), heard=bool(states) or not self._running)
        for running in list(self._running.values()):
            if time.monotonic() - running.replaced > ENDING_TIME:
                running.end(None)
        self._drop_unaccepted()
        latest = self._latest
        if latest is None:
            return
        for message in states:
            error = jtc.by_joint(message, message.error.positions, self._robot.joints)
            if error is not None:
                latest.squares += error**2
                latest.states += 1
        if silent > self.configuration.excitation.stale_after:
            self._cancel_all(f"'{self._controller}' stopped publishing its state: is it active?")

    def _check_guardian(self) -> None:
        """Give it a sign of life; start another one where it has ended, and cancel what runs."""
        guardian = self._guardian
        if guardian is None:
            return
        try:
            guardian.check()
        except ControllerError as error:
            self._cancel_all(one_line(error))
            guardian.close()
            self._guardian = None
            self.start_worker(self._retry, self._renew_guardian)

    def _take_states(self, count: int) -> list[Any]:
        """Take the newest states of the controller, at most so many, and keep the last one."""
        is_usable = partial(jtc.is_well_formed_state, joints=self._model.robot.joints)
        with self._taking:
            found, _ = self._states.take_newest(is_usable, count)
            if found:
                self._newest_state, self._heard = found[-1], time.monotonic()
        return found

    def _cancel_all(self, reason: str) -> None:
        """Cancel the goals that were sent; those of a controller that does not answer end here."""
        sent = [self._guarded] if self._guarded is not None else []
        for running in {*self._running.values(), *sent}:
            if not running.reason:
                self.get_logger().error(f'a goal is cancelled: {reason}')
                running.reason, running.cancelled = reason, time.monotonic()
            self._cancel_sent(running)
            if time.monotonic() - running.cancelled > ENDING_TIME:
                running.end(None)

    def _on_goals(self, message: GoalStatusArray) -> None:
        """Forget what is held where a goal of another client has run."""
        goals = (bytes(each.goal_info.goal_id.uuid) for each in message.status_list)
        others = frozenset(goal for goal in goals if not goal.startswith(OWN))
        if others - self._others:
            self._held_effort = None
        self._others = others

    def _on_parameters(self, event: ParameterEvent) -> None:
        self._jtc_values |= changed_parameters(event, self.resolve_topic_name(self._controller))

    def _renew_guardian(self) -> str:
        self._guardian = self._new_guardian(self._stopping)
        self._guard(self._latest)
        return self._ready

    def _publish_tracking(self, running: Running) -> None:
        """Tell the tracking error of a goal that has ended, joint by joint."""
        if not running.states:
            return
        statuses, given = [], running.points is not None
        rms = np.sqrt(running.squares / running.states).tolist()
        for (joint, (unit, _)), value in zip(self._model.robot.units.items(), rms, strict=True):
            values = {'rms': value, 'unit': unit, 'feed_forward': given}
            what = 'with' if given else 'without'
            text = f'tracking error {value:.3g} {unit} {what} feed-forward'
            statuses.append(status(joint, text, values))
        self._tracking.publish(status_array(self.get_clock().now().to_msg(), statuses))


main = partial(runtime.run, FeedForward)
