"""
The supervisor: sends motions to the controller, watches the robot, and cancels on any trouble.

Every 10 ms it passes what has arrived to `watchdog.py` and `checks.py`, gives the guardian a sign
of life, and looks whether a stop was requested. The first check that raises ends the motion: the
goal is cancelled within 0.2 s (of pieces two in turn), or else by the guardian until the
controller confirms. With `deactivate_hardware`, a robot that moves on is braked. Then the error
goes on to the calling thread. Each call returns when it has ended well.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, ExitStack, suppress
from dataclasses import dataclass, field
import threading
import time
from typing import Any, NamedTuple
import uuid

import numpy as np
from rclpy._rclpy_pybind11 import RCLError
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node
from sensor_msgs.msg import JointState

from ...core.arrays import Array, expand_per_joint
from ...core.excitation.pieces import Piece
from ...core.excitation.trajectory import Trajectory, Waypoints
from ...core.model import Robot, RobotSettings
from ...exceptions import ControllerError, RobotStateError, SensorError, TrackingError
from ...node_settings import ExcitationNodeSettings
from ..common import controller as jtc
from ..common.batched_subscription import BatchedSubscription, NEWEST
from ..common.controller import END_VIOLATED, TrajectoryClient, TrajectoryGoal
from ..common.guardian import start_guardian
from ..common.messages import is_well_formed, stack_joint_states, stamps_to_nanoseconds, State
from ..common.waiting import result_of, wait_until
from ..common.watchdog import (
    CHECK_POSITION,
    check_states,
    describe_gap,
    describe_violation,
    Watchdog,
)
from . import checks
from .motion_clock import course_of, MotionClock, MOVED

POLL_PERIOD = 0.01  # from one check of a moving robot to the next [s]: well below `stale_after`
WARNING_PERIOD = 60.0  # from one warning of the same messages to the next [s]
PROGRESS_PERIOD = 0.5  # from one publication of progress to the next [s]
# How long the controller may take to accept a goal [s]: for so long it is not known whether the
# robot will move. Less would give up on controllers whose action server is slow.
ACCEPT_TIMEOUT, ACCEPT_POLL_PERIOD = 1.0, 0.002
# How long a cancellation may take before the guardian takes over [s].
CANCEL_TIMEOUT = 0.2
# How long to wait for a result after its goal's time [s], by this node's clock.
RESULT_PATIENCE = 1.0
DEPTH = 5000  # messages that may wait in a queue: 5 s at 1 kHz, should Python be late
# States of the controller that are kept to tell which joint left its tolerance: the last second at
# 1 kHz, of which a result takes 0.05 s and a busy machine some more.
KEPT_STATES = 1000
# How long the reference must rest before a motion, by its stamps [s]: 1e-8 rad/s is seen to move.
REST_TIME = 0.1
HOLDING_STATES = 3  # to wait for after a cancel, before it is asked which position is held
# Time to come to rest after a cancel before hardware brakes [s]. A joint is at rest below this
# share of its speed limit, or this travel in `REST_TIME` [rad or m].
STOP_TIME, SLOW, TREMBLES = 0.3, 0.02, 1e-3
REASON_TIMEOUT = 0.1  # how much later than its end the reason of a motion's end may arrive [s]

PublishState = Callable[[State, str, dict[str, Any]], None]


@dataclass(frozen=True)
class SessionContext:
    """What moves, how, and who is told; the executor of `node` spins meanwhile."""

    node: Node
    robot: Robot
    settings: ExcitationNodeSettings
    publish_state: PublishState  # called with each state, a sentence and values
    session: str  # its name, by which the recorder says what it records
    stop: threading.Event  # set from outside to stop the robot
    controller: TrajectoryClient  # which outlives a session
    urdf: str = ''  # of which the robot was built, with these settings
    robot_settings: RobotSettings = field(default_factory=RobotSettings)
    accept: Callable[[], None] = lambda: None  # called once what needs no other node is checked
    # Returns what `identification/progress` says of the session.
    known: Callable[[], Mapping[str, str]] = dict
    # Called with a motion as it begins; what it returns is called for the next one as that ends.
    design_next: Callable[[Trajectory], Callable[[], Trajectory | None] | None] = lambda _: None

    def per_joint(self, setting: str) -> Array:
        """Values (n,) of a setting that has one for all joints or one for each."""
        values = getattr(self.settings, setting)
        return expand_per_joint(values, len(self.robot.joints), f'excitation.{setting}')


class GoalPhase(NamedTuple):
    """The phase of a goal; `duration` of all its goals [s], `before`: clocks of ended ones."""

    state: State
    what: str
    periods: int = 1
    duration: float | None = None  # None: as long as this one
    before: Sequence[MotionClock] = ()


class Supervisor:
    """Runs motions under watch; raises what stops the robot, see `checks`; `close` it."""

    def __init__(self, context: SessionContext):
        self.context, self._settings = context, context.settings
        self._joints, node = context.robot.joints, context.node
        self._tracking = context.per_joint('tracking_error')
        self._latest_stamp, self._publishers = 0, frozenset[bytes]()
        self._watchdog: Watchdog | None = None
        # Whether the drives hold the arm once its controller is deactivated.
        self.holds_itself = False
        self.braking_hardware: Sequence[str] = ()  # which is deactivated then, too
        self._goals: deque[uuid.UUID] = deque(maxlen=2)  # the newest, and the one before
        name = context.controller.name
        with ExitStack() as ends:
            hold = ends.enter_context
            self.others = hold(closing(checks.OtherClients(node, name)))
            self.gains = hold(closing(checks.GainWatch(node, name)))
            self.recorder: checks.RecorderWatch | None = None
            if self._settings.require_recorder:
                self.recorder = hold(closing(checks.RecorderWatch(node, context.session)))
            joint_states = BatchedSubscription(node, JointState, 'joint_states', depth=DEPTH)
            self._joint_states = hold(closing(joint_states))
            states = jtc.subscribe_states(node, name, depth=DEPTH, kept=KEPT_STATES)
            self._states = hold(closing(states))
            # The last to begin is the first to end, and cancels what runs.
            guardian = start_guardian(node, 'excitation', name, f'{name}/{jtc.CANCEL}')
            self.guardian = hold(closing(guardian))
            self._ends = ends.pop_all()

    def close(self) -> None:
        """Let go of everything; a goal that still runs is cancelled by the guardian."""
        self._ends.close()

    # Before a motion

    def check_ready(self) -> None:
        """Check states and recorder before anything moves, as they are now."""
        self._discard()
        streams = self._joint_states, self._states
        if not self._goals:  # its parameters are read now, and nothing has moved with others
            self._publishers = self._states.publishers
        self._watchdog = check_states(streams, self.context.robot, self._settings)
        if not self._watchdog.effort_reported:
            self.context.node.get_logger().warning(
                'the joint states report no effort, or 0 alone: what the controller commands is '
                'taken for it'
            )
        if self.recorder is not None:
            self.recorder.wait_present(self._settings.timeout, self.raise_if_stopped)

    def wait_for_reference(self) -> tuple[int, Array]:
        """Wait for the held reference, where a motion starts: its stamp [ns] and place (n,)."""
        states, name = list[Any](), self.context.controller.name

        def seen_long_enough() -> bool:
            # The newest alone: a busy machine decodes fewer than arrive.
            states.extend(self.check())
            stamps = stamps_to_nanoseconds(states)
            return bool(len(stamps) and stamps[-1] - stamps[0] >= REST_TIME * 1e9)

        self._discard()
        self.begin()
        what = f"the stamps of '{name}' do not advance: does its clock run?"
        wait_until(seen_long_enough, self._settings.timeout, what=what)
        references = np.stack([jtc.reference_positions(m, self._joints) for m in states])
        travel = np.ptp(references, axis=0)
        if travel.max() > MOVED:
            joint = self._joints[int(np.argmax(travel))]
            raise ControllerError(
                f"'{name}' moves {joint} though no motion of this session runs: end what commands "
                'it, only one may move the robot'
            )
        return int(stamps_to_nanoseconds(states[-1:])[0]), references[-1]

    # While it moves, and stands

    def run(self, points: Waypoints, phase: GoalPhase, parts: Sequence[Piece] = ()) -> MotionClock:
        """Run one motion to its end under watch, whole or in pieces; cancel it on any trouble."""
        self._check_same_controller()
        self._discard()
        self._goals.clear()
        goal: TrajectoryGoal | None = None
        try:
            goal = self._send(parts[0].points if parts else points)
            clock = self._follow(goal, points, phase, parts[1:])
        except BaseException as error:
            answers = []
            if isinstance(error, SensorError) and self.holds_itself:
                # Cancelled, a controller would hold the arm by what is measured.
                answers = self.context.controller.hardware.deactivate(self.braking_hardware)
            self._cancel()
            told = [self._outcome(answers)] if answers else []
            if self.braking_hardware and not answers and not self._comes_to_rest():
                # Its controller does not listen, or holds it by a drive that is reversed.
                answers = self.context.controller.hardware.deactivate(self.braking_hardware)
                told = [f'it did not rest after {STOP_TIME} s', self._outcome(answers)]
            if told:
                raise RobotStateError('; '.join((str(error), *told))) from None
            if isinstance(error, SensorError) and (joint := self._find_unheld_joint()):
                raise SensorError(
                    f'{error}; the controller holds no position of {joint} now and gives it no '
                    'torque: deactivate and activate it'
                ) from None
            if isinstance(error, TrackingError) and goal is not None:
                self._raise_violation(goal, points)
                if gap := describe_gap(self._recent_states()):
                    raise TrackingError(f'{error}{gap}') from None
            raise
        self.guardian.clear_goal()
        return clock

    def wait_at_rest(
        self, duration: float | None = None, done: Callable[[], bool] = lambda: False
    ) -> None:
        """Stand still for a while [s], by default until the robot has come to rest; watch it."""
        self.begin()

        def is_over() -> bool:
            self.check()
            return done()

        seconds = self._settings.settle if duration is None else duration
        wait_until(is_over, seconds, period=POLL_PERIOD)

    def keep_messages(self) -> None:
        """Keep all messages of robot and controller; a motion forgets those before it."""
        self._joint_states.recent, self._states.recent = deque(), deque()
        self._discard()

    @property
    def kept_messages(self) -> tuple[list[bytes], list[bytes]]:
        """Serialised states of the controller and of the joints that were kept."""
        streams = self._states, self._joint_states
        states, joint_states = ([message.data for message in each.recent] for each in streams)
        return states, joint_states

    def begin(self) -> None:
        """Begin to watch: what is out of date counts from now."""
        assert self._watchdog is not None
        self._watchdog.begin(time.monotonic())

    def check(self, *, every_state: bool = False) -> list[Any]:
        """Check what has arrived; return the controller's states, oldest first, or the newest."""
        self.raise_if_stopped()
        assert self._watchdog is not None
        now, joints = time.monotonic(), self._joints
        joint_states, malformed = self._joint_states.take_newest(is_well_formed)
        table = stack_joint_states(joint_states, joints)
        topic = self._joint_states.topic
        try:
            self._watchdog.check_joint_states(table, now, malformed)
        except RobotStateError as error:
            with suppress(InvalidHandle, RCLError):  # the graph may be gone by now
                if len(self._joint_states.publishers) > 1:
                    names = self.others.publishers(topic)
                    error.args = (f"{error}; '{topic}' has states from {names}: do these agree?",)
            raise
        self._watchdog.check_locked(joint_states)
        count = NEWEST if every_state else 1
        states, malformed_too = self._states.take_newest(self._is_well_formed, count)
        self._watchdog.check_controller_state(states[-1] if states else None, now)
        log = self.context.node.get_logger()
        if malformed + malformed_too:
            log.warning(
                f"messages on '{topic}' or '{self._states.topic}' that name a joint twice or lack "
                'values are passed over: who publishes them?',
                throttle_duration_sec=WARNING_PERIOD,
            )
        if (np.diff(table.stamp) <= 0).any() and len(self._joint_states.publishers) > 1:
            names = self.others.publishers(topic)
            text = f"'{topic}' has the same states from {names}: end one of them"
            log.warning(text, throttle_duration_sec=WARNING_PERIOD)
        return states

    def check_request(self) -> None:
        """Raise a `RobotStateError` where a stop was requested."""
        if self.context.stop.is_set():
            raise RobotStateError('stopped by request')

    def raise_if_stopped(self) -> None:
        """Check stop requests, guardian, other clients and gains, but not robot states."""
        self.check_request()
        self.guardian.check()
        self.others.check_messages()
        self.gains.check()
        if self.recorder is not None:
            self.recorder.check()

    def publish_standing(self, state: State, progress: float, since: int | None = None) -> None:
        """Say that the robot stands since a stamp [ns], by default since its last motion."""
        self._latest_stamp = self._latest_stamp if since is None else since
        values = {'cycle': 1, 'cycles': 1, 'progress': progress, 'start': self._latest_stamp}
        self.context.publish_state(state, 'standing still', values)

    def publish_motion(self, phase: GoalPhase, clock: MotionClock, elapsed: float) -> None:
        """Say how far a phase is, `elapsed` [s] of its last goal."""
        clocks, periods, message = [*phase.before, clock], phase.periods, phase.what
        done = sum(each.duration for each in phase.before) + elapsed
        progress = min(max(done / (phase.duration or clock.duration), 0.0), 1.0)
        cycle = min(int(progress * periods) + 1, periods)
        values = {'cycle': cycle, 'cycles': periods, 'progress': round(progress, 4)}
        values |= {**course_of(clocks), 'start': clocks[0].known_start}
        if periods > 1:
            message += f': cycle {cycle} of {periods}'
        if 'speed' in values:
            message += f', at {values["speed"]:.0%} of the planned speed'
        self.context.publish_state(phase.state, message, values)

    def _check_same_controller(self) -> None:
        """Check that it was not unloaded meanwhile, after which nobody tells of its goals."""
        # Who was killed before is in the graph for some time: one of those known is enough.
        present = self._states.publishers
        if present and self._publishers and self._publishers.isdisjoint(present):
            name = self.context.controller.name
            why = 'its parameters may be others, run the session again'
            raise ControllerError(f"'{name}' was started anew since it was checked: {why}")

    def _discard(self) -> None:
        for subscription in (self._joint_states, self._states):
            list(subscription.take_serialized())
            subscription.recent.clear()

    def _send(
        self, points: Waypoints, stamp: int = 0, watch: Callable[[], None] | None = None
    ) -> TrajectoryGoal:
        """Send a goal, and wait until it is accepted; `stamp` as in `TrajectoryClient.send`."""
        client, goal_id = self.context.controller, uuid.uuid4()
        self._goals.append(goal_id)
        self.others.add_own_goal(goal_id)
        self.guardian.set_goal(goal_id)
        path, end = self._tracking.tolist(), self.context.per_joint('goal_tolerance').tolist()
        goal = client.send(goal_id, points, path, end, self._settings.goal_time, stamp)
        deadline = time.monotonic() + ACCEPT_TIMEOUT
        while True:
            if goal.accepted():
                return goal
            (watch or self.raise_if_stopped)()
            if time.monotonic() > deadline:
                why = f"no answer from '{client.action}' within {ACCEPT_TIMEOUT:g} s"
                raise ControllerError(f'{why}: the motion was cancelled')
            time.sleep(ACCEPT_POLL_PERIOD)

    def _follow(
        self, goal: TrajectoryGoal, points: Waypoints, phase: GoalPhase, pieces: Sequence[Piece]
    ) -> MotionClock:
        """Watch a motion to its end, and send the `pieces` that are left of it as they are due."""
        clock = MotionClock(points, grace=self._settings.goal_time, patience=RESULT_PATIENCE)
        followed = checks.ReferenceWatch(points, self._tracking)
        self.begin()
        published, left = 0.0, list(pieces)

        def look() -> None:
            nonlocal published
            states = self.check(every_state=clock.start is None)
            clock.update(states)
            followed.check(states, clock, time.monotonic())
            now = time.monotonic()
            if clock.start is not None and now - published > PROGRESS_PERIOD:
                published = now
                self._check_same_controller()
                self.publish_motion(phase, clock, clock.elapsed)

        while not self._has_finished(goal, points):
            try:
                look()
            except RobotStateError:
                # A goal that was ended, which a busy machine may tell late, says by whom.
                self._has_finished(goal, points)
                self._check_same_controller()
                raise
            if left and clock.start is not None and clock.elapsed >= left[0].due:
                if not clock.as_planned:
                    raise RobotStateError(
                        'the controller runs a motion in pieces at another speed, or its clock '
                        'was set: set excitation.horizon to 0'
                    )
                stamp = clock.start + round(left[0].begin * 1e9)
                goal = self._send(left.pop(0).points, stamp, look)
            time.sleep(POLL_PERIOD)
        if left:
            raise RobotStateError('a piece of the motion ended before the next one was due')
        self.publish_motion(phase, clock, points.duration)
        self._latest_stamp = clock.end
        return clock

    # When it must stop

    def _cancel(self) -> None:
        """Cancel, and leave it to the guardian when the controller does not confirm."""
        # The goal before, too, where the newest one may not have come. The guardian cancels goals
        # that were not cleared when its pipe closes.
        cancel = self.context.controller.cancel
        cancelled = [cancel(goal_id, CANCEL_TIMEOUT) for goal_id in reversed(self._goals)]
        if all(cancelled) and self.guardian.is_running:
            try:
                self.guardian.clear_goal()
            except ControllerError:
                self.context.node.get_logger().error('the guardian has ended')
        self.guardian.close()

    def _comes_to_rest(self) -> bool:
        """Whether the robot is seen to stand for `REST_TIME`, by its stamps, in `STOP_TIME`."""
        list(self._joint_states.take_serialized())
        heard, speed = list[JointState](), self.context.robot.limits.velocity
        still = np.maximum(SLOW * REST_TIME * np.where(np.isfinite(speed), speed, 1.0), TREMBLES)

        def stands() -> bool:
            heard.extend(self._joint_states.take_newest(is_well_formed)[0])
            if not (states := stack_joint_states(heard, self._joints)).stamp.size:
                return False
            since = states.stamp.max() - REST_TIME * 1e9
            travel = np.ptp(states.position[states.stamp >= since], axis=0)
            return bool(states.stamp.min() <= since and (travel <= still).all())

        return wait_until(stands, STOP_TIME, period=POLL_PERIOD)

    def _outcome(self, answers: Sequence[Any]) -> str:
        """Say whether the controller and what drives its joints were deactivated."""
        named = ' and '.join((f"'{self.context.controller.name}'", *self.braking_hardware))
        with suppress(ControllerError):
            done = [result_of(each, CANCEL_TIMEOUT, jtc.SWITCH).ok for each in answers]
            if done and all(done):
                return f'{named} deactivated: activate again'
        return f'cancelled, but {named} not deactivated: deactivate by hand'

    def _find_unheld_joint(self) -> str:
        """Return a joint whose position the controller does not hold after a cancel, or ''."""
        # It takes what it measures for its reference, even no number, and keeps that for good.
        list(self._states.take_serialized())
        states = list[Any]()

        def held_since() -> bool:
            states.extend(self._states.take_newest(self._is_well_formed)[0])
            return len(states) >= HOLDING_STATES

        wait_until(held_since, REASON_TIMEOUT)
        held = jtc.stack_states(states[-1:], self._joints, 'reference')
        return next((self._joints[k] for k in np.argwhere(~np.isfinite(held))[:, 1]), '')

    def _has_finished(self, goal: TrajectoryGoal, points: Waypoints) -> bool:
        """Whether the goal has ended well; where not, who ended it comes before how."""
        try:
            return goal.finished()
        except RobotStateError as error:
            wait_until(self.raise_if_stopped, REASON_TIMEOUT)
            if goal.violated is None:
                raise
            raise self._with_joint(error, goal, points) from None

    def _raise_violation(self, goal: TrajectoryGoal, points: Waypoints) -> None:
        """Raise what the controller says of a violation that it has noticed as well."""
        try:
            wait_until(goal.finished, REASON_TIMEOUT)
        except RobotStateError as error:
            if goal.violated is not None:
                raise self._with_joint(error, goal, points) from None

    def _with_joint(self, error: object, goal: TrajectoryGoal, points: Waypoints) -> Exception:
        """Add the joint to what the controller says of a violated tolerance."""
        states, joints = self._recent_states(), self._joints
        tolerance, end = self._tracking, None
        if goal.violated == END_VIOLATED:
            tolerance, end = self.context.per_joint('goal_tolerance'), points.q[-1]
        elif states and self._watchdog is not None:
            away = jtc.by_joint(states[-1], states[-1].error.positions, joints)
            assert away is not None
            worst = int(np.argmax(np.abs(away) / tolerance))
            if self._watchdog.is_still(worst):
                why = f'position of {joints[worst]} stays the same: {CHECK_POSITION}'
                return SensorError(f'{why}; {error}')
        why = describe_violation(states, joints, tolerance, end)
        return RobotStateError(f'{error}; {why}{describe_gap(states)}')

    def _recent_states(self) -> list[Any]:
        """Return the newest well-formed states of the controller, of this motion."""
        list(self._states.take_serialized())
        decoded = map(self._states.decode, list(self._states.recent)[-KEPT_STATES:])
        return [s for s in decoded if s is not None and self._is_well_formed(s)]

    def _is_well_formed(self, state: Any) -> bool:
        return jtc.is_well_formed_state(state, self._joints)
