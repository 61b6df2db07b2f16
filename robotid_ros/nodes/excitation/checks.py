"""
Every check of a moving robot: what is watched, its bound, and by which class.

| watched | bound | by |
| --- | --- | --- |
| joint states: age, position, effort | `stale_after`, limits, `effort_share` | `Watchdog` |
| sensors | numbers that change with the motion | `Watchdog` |
| a joint's position while its reference moves | five times the error so far | `FrozenWatch` |
| velocities against positions, where efforts are commanded | limit | `VelocityWatch` |
| joints that do not take part | where the model has them | `Watchdog` |
| controller's states: age, stamps, tracking | `stale_after`, `tracking_error` | `Watchdog` |
| controller's speed scaling | 10 to 100 %, pauses of 5 s | `jtc.SpeedScaling` |
| controller's reference | the motion that was sent, `tracking_error` | `ReferenceWatch` |
| controller's gains | those of the beginning | `GainWatch` |
| recorder's heartbeat, every 0.1 s | 0.5 s, dead 0.25 s, alive 2 s | `RecorderWatch` |
| sessions, goals and commands of others | none | `OtherClients` |

The first three classes are in `watchdog.py`. A check raises `RobotStateError`, `ControllerError`
or `RecordingError`, and the supervisor stops the robot (`supervisor.py`). That the supervisor
itself lives is the guardian's matter.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
import time
from typing import Any
import uuid

from action_msgs.msg import GoalStatusArray
from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
from rcl_interfaces.msg import ParameterEvent
from rclpy.node import Node
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from ...core.arrays import Array
from ...core.excitation.trajectory import Waypoints
from ...exceptions import ControllerError, RecordingError, RobotStateError
from ..common import controller as jtc
from ..common.batched_subscription import BatchedSubscription
from ..common.messages import values_of
from ..common.processes import is_alive
from ..common.ros_parameters import changed_parameters, EVENTS
from ..common.runtime import full_name, STEADY
from ..common.waiting import run_in_executor, Silence, wait_until
from .motion_clock import MotionClock

# How often the reference is compared with the motion that was sent [s], and for how long the two
# have to differ [s]. A step of the system's clock moves the stamps: the watchdog tells of it.
PERIOD, PERSISTENCE = 0.1, 0.25
LATE = 0.05  # what stamps and the estimated start may be off [s]
# Every node tells here of its parameters, those that change among them.
GAINS = 'gains.'
HEARTBEAT = 'recorder/heartbeat'
# Longest silence of the recorder, which has a heartbeat every 0.1 s, by whether it is seen to be
# alive: then it lacks processor or disk. Of one on another machine (None) nothing is seen [s].
SILENCES = {False: 0.25, None: 0.5, True: 2.0}
# Signs of life of a session: how often, and how long its publisher may be silent before it is one
# of a dead process, which the middleware forgets after 20 s only [s].
SIGN_PERIOD, DEAD_TIME = 0.1, 1.0


class ReferenceWatch:
    """
    Compares the controller's reference with the motion that was sent.

    A trajectory on its topic, of a publisher that nobody may have heard of yet, replaces a goal's,
    which then ends well: nobody has checked where that goes. `tolerance` is (n,) [rad or m].
    """

    def __init__(self, points: Waypoints, tolerance: Array):
        self._points, self._tolerance = points, tolerance
        self._compared = -PERIOD
        # When the two began to differ [s], and where the reference was then.
        self._since: float | None = None
        self._left = np.empty(0)

    def check(self, states: Sequence[Any], clock: MotionClock, now: float) -> None:
        """Compare the newest of the states that the clock has taken in, at a time [s]."""
        # At another speed than the planned one the time within the motion is not exact.
        if not states or not clock.as_planned or now < self._compared + PERIOD:
            return
        self._compared = now
        reference = jtc.reference_positions(states[-1], self._points.joints)
        motion = self._points.sample(np.clip([clock.elapsed], 0.0, self._points.duration))
        away = np.abs(reference - motion.q[0])
        beyond = away - self._tolerance - LATE * np.abs(motion.dq[0])
        k = int(np.argmax(beyond))
        if beyond[k] <= 0.0:
            self._since = None
            return
        if self._since is None:
            self._since, self._left = now, reference
        if now - self._since >= PERSISTENCE:
            verb, why = 'is', 'somebody else commands it, end that first'
            if np.array_equal(reference, self._left):
                verb, why = 'stands', 'it was cancelled'
            raise RobotStateError(
                f"the controller's reference of {self._points.joints[k]} {verb} {away[k]:.4g} "
                f'away from the motion that was sent: {why}'
            )


class GainWatch:
    """Hears of changed gains of a controller, other than those that the session itself sets."""

    def __init__(self, node: Node, controller: str):
        self._controller = node.resolve_topic_name(controller)
        self._events = BatchedSubscription(node, ParameterEvent, EVENTS)
        self.close, self._expected = self._events.close, dict[str, Any]()

    def expect(self, values: Mapping[str, Any]) -> None:
        """Take parameters of the controller, present or about to be set, for the right ones."""
        self._expected |= {k: v for k, v in values.items() if k.startswith(GAINS)}

    def check(self) -> None:
        """Check what has been changed since the last call: a session is recorded with one set."""
        for event in self._events.take_messages():
            for name, value in changed_parameters(event, self._controller).items():
                before = self._expected.get(name, value)
                # NaN, which an unset bound has, equals NaN.
                if value != before and not (value != value and before != before):
                    raise RobotStateError(
                        f"{name} of '{self._controller}' was changed from {before} to "
                        f'{value} during the session: run it again with gains that stay'
                    )


class RecorderWatch:
    """Watches the recorder's heartbeat; `RecordingError`: it does not record this session."""

    def __init__(self, node: Node, session: str):
        self._session = session
        self._heartbeats = BatchedSubscription(node, DiagnosticStatus, HEARTBEAT, depth=100)
        self.close = self._heartbeats.close
        self._state = self._message = ''
        self._values: Mapping[str, str] = {}
        self._silence: Silence | None = None  # since it began to record

    def wait_present(self, timeout: float, check: Callable[[], object]) -> None:
        """Wait for a sign of life from now on, unless it records; `check` as below."""
        if self._silence is not None:
            return
        self._read()
        self._state = ''
        if not wait_until(lambda: check() or self._read() or self._state, timeout):
            raise RecordingError(
                f"no recorder: nothing on '{self._heartbeats.topic}' within {timeout:g} s: "
                'start the recorder, or set excitation.require_recorder to false'
            )

    def wait_recording(self, timeout: float, check: Callable[[], object]) -> None:
        """Wait until it records; `check` is called meanwhile and raises what else is wrong."""

        def is_decided() -> bool:
            check()
            self._read()
            return self._is('recording') or self._is('failed')

        wait_until(is_decided, timeout)
        if not self._is('recording'):
            raise RecordingError(f'no motion begins, {self._why()}')
        self._silence = Silence(time.monotonic())

    def check(self) -> None:
        """Check that it still records, once it does."""
        if self._silence is None:
            return
        silence = self._silence.update(time.monotonic(), heard=self._read())
        if not self._is('recording'):
            raise RecordingError(f'the robot was stopped, {self._why()}')
        if silence > SILENCES[False] and silence > SILENCES[is_alive(self._values)]:
            raise RecordingError(
                f"the robot was stopped, the recorder has been silent on '{HEARTBEAT}' for "
                f'{silence:.2f} s: is it still running?'
            )

    def _read(self) -> bool:
        """Take what has arrived; whether anything has."""
        # A status without a state is of no recorder.
        newest = self._heartbeats.take_newest(lambda m: 'state' in values_of(m), count=1)[0]
        for message in newest:
            self._values = values_of(message)
            self._state, self._message = self._values.get('state', ''), message.message
        return bool(newest)

    def _is(self, state: str) -> bool:
        return self._state == state and self._values.get('session') == self._session

    def _why(self) -> str:
        other = self._values.get('session') not in ('', self._session)
        return f"the recorder is '{self._state}'{' another session' * other}: {self._message}"


class OtherClients:
    """
    Reserves a controller for one session, and finds whoever else uses it.

    Two sessions that begin in the same instant may find each other, and both end; should neither
    know of the other yet, the later goal preempts the earlier one, whose session then ends.
    """

    def __init__(self, node: Node, controller: str):
        self._node, self._controller = node, controller
        self._own_goals: set[bytes] = set()
        names = jtc.RESERVATION, jtc.GOALS, jtc.COMMANDS
        reservation, goals, commands = (f'{controller}/{name}' for name in names)
        self._sign = String(data=uuid.uuid4().hex)
        self._reservation = node.create_publisher(String, reservation, 1)
        self._signs = BatchedSubscription(node, String, reservation, depth=100)
        give_sign = partial(self._reservation.publish, self._sign)
        self._timer = node.create_timer(SIGN_PERIOD, give_sign, clock=STEADY)
        self._goals = BatchedSubscription(node, GoalStatusArray, goals, depth=100, latched=True)
        self._commands = BatchedSubscription(node, JointTrajectory, commands, depth=1)

    def add_own_goal(self, goal_id: uuid.UUID) -> None:
        """Name a goal of this session before it is sent."""
        self._own_goals.add(goal_id.bytes)

    def check_alone(self) -> None:
        """Check that nobody else is there, before anything moves; call from a worker thread."""
        # This session's own publisher is one of them, perhaps of a node with the same name.
        topic = self._reservation.topic_name
        if self._node.count_publishers(topic) > 1 and wait_until(
            lambda: any(sign != self._sign for sign in self._signs.take_messages()), DEAD_TIME
        ):
            raise ControllerError(
                f"another session uses '{self._controller}' ({self.publishers(topic)}): wait for "
                'its end, or stop it'
            )
        if self._node.count_publishers(topic := self._commands.topic):
            raise ControllerError(
                f"{self.publishers(topic)} can command '{self._controller}' on '{topic}': end "
                'it, only one may move the robot'
            )
        # What others did meanwhile is past, what of it still runs is told by the newest message.
        list(self._commands.take_serialized())
        self._check_goals(self._goals.take_newest(count=1)[0])

    def check_messages(self) -> None:
        """Check what has arrived since the last call."""
        self._check_goals(self._goals.take_messages())
        for _ in self._commands.take_serialized():
            what = f"somebody else commands the robot on '{self._commands.topic}'"
            raise ControllerError(f'{what}: stop that first')

    def close(self) -> None:
        """Free the controller."""
        run_in_executor(self._node, lambda: self._node.destroy_timer(self._timer))
        run_in_executor(self._node, lambda: self._node.destroy_publisher(self._reservation))
        for subscription in (self._signs, self._goals, self._commands):
            subscription.close()

    def _check_goals(self, messages: Iterable[Any]) -> None:
        for status in (status for message in messages for status in message.status_list):
            goal_id = bytes(status.goal_info.goal_id.uuid)
            if status.status in jtc.RUNNING and goal_id not in self._own_goals:
                raise ControllerError(
                    f"goal {uuid.UUID(bytes=goal_id)} of another client runs on '"
                    f"{self._controller}/{jtc.ACTION}': end it first, only one may move the robot"
                )

    def publishers(self, topic: str) -> str:
        """Name the nodes that publish a topic."""
        infos = self._node.get_publishers_info_by_topic(topic)
        names = {full_name(info.node_name, info.node_namespace) for info in infos}
        # A session that shares this node's name remains.
        return ', '.join(sorted(names - {self._node.get_fully_qualified_name()} or names))
