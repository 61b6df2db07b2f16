"""
Node `gravity_compensation`: an arm that somebody guides by hand.

It commands a controller that forwards efforts: what holds the arm by the identified model,
damping, springs at the limits. `~/start` activates that where the arm rests and the model knows
what holds it. `~/stop`, joint states that stop, a speed above its limit, another one that commands
or deactivates the controller, and the node's end activate the trajectory controller again, which
holds the arm where it is; after `~/stop` with the efforts that the model predicts there. Should
the node die or hang, its guardian does that, with the efforts of the controller's last goal.
"""

from array import array
from collections.abc import Iterator
from contextlib import closing, suppress
import dataclasses
from functools import partial
from itertools import compress
import threading
import time
from typing import Any, NamedTuple
import uuid

from controller_manager_msgs.srv import ListControllers, SwitchController
import numpy as np
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from ...core.arrays import Array
from ...core.excitation.trajectory import Waypoints
from ...core.verdict import FAIR, GOOD
from ...core.verification.feed_forward import check_feed_forward
from ...core.verification.hand_guiding import HandGuiding
from ...exceptions import ControllerError, RobotIdError, RobotStateError
from ..common import controller as jtc, messages, runtime
from ..common.batched_subscription import BatchedSubscription
from ..common.controller import EFFORT_CONTROLLER_TYPES, FORWARDED, MANAGER, SWITCH, switch_request
from ..common.guardian import Guardian
from ..common.joint_states import MAX_REFERENCE_TRAVEL, MAX_TRAVEL
from ..common.model_node import ModelNode
from ..common.processes import prefer_threads
from ..common.runtime import serve
from ..common.waiting import answer_of, result_of, wait_until
from ..common.watchdog import Watchdog

LEAST_RATE = 200.0  # of commands with which an arm is guided [Hz]
WATCH_TIME = 1.0  # for which arm, node and rates are watched [s]
RAMP = 1.0  # in which the model takes over from what held the arm [s]
LOOK_PERIOD = 0.0005  # from one look for joint states to the next [s]
# From one look at the controllers to the next, while they are spawned and an arm is guided [s].
LOOK_AGAIN, WATCH_AGAIN = 0.2, 0.1
HOLD_TIME = 0.1  # of the goal after which the trajectory controller keeps its efforts [s]
SWITCH_TIMEOUT = 1.0  # of controllers [s]: then the guardian tries, too
WHY = f'the log of {MANAGER} says why'
Figures = dict[str, float]


class Seen(NamedTuple):
    """A joint state: when it was taken in [s, ROS time], and its values (n,)."""

    time: float
    q: Array
    dq: Array
    tau: Array


class Pace:
    """How often, and how long after their joint states, commands are made."""

    def __init__(self) -> None:
        self._times, self._latencies = list[float](), list[float]()

    def note(self, now: float, published: int) -> bool:
        """Note a command [s], its joint state's time [ns]; return whether `WATCH_TIME` is over."""
        self._times.append(now)
        self._latencies.append(time.time() - 1e-9 * published)
        return now - self._times[0] >= WATCH_TIME

    def figures(self) -> Figures:
        """Return rate [Hz], median and largest latency [s]; refuse a low rate."""
        rate = (len(self._times) - 1) / (self._times[-1] - self._times[0])
        if rate < LEAST_RATE:
            raise RobotStateError(
                f'joint states and this machine allow {rate:.0f} commands a second, hand guiding '
                f'needs {LEAST_RATE:.0f}: raise the rate of joint states, or reduce the load'
            )
        median, largest = float(np.median(self._latencies)), max(self._latencies)
        return {'rate': rate, 'latency': median, 'largest_latency': largest}


class GravityCompensation(ModelNode):
    """Guides the arm; options of `ModelNode`."""

    _guiding = False

    def __init__(self, **options: Any):
        super().__init__('gravity_compensation', **options)
        self._forwarder = self.settings.controller
        self._states = BatchedSubscription(self, JointState, 'joint_states', depth=10, kept=1)
        *place, self._holder = self._controller.rpartition('/')
        at = ''.join(place)
        commands = f'{at}{self._forwarder}/{FORWARDED}'
        self._commands = self.create_publisher(Float64MultiArray, commands, 1)
        self._list = self.create_client(ListControllers, f'{at}{MANAGER}/list_controllers')
        self._switch = self.create_client(SwitchController, f'{at}{SWITCH}')
        self._holding = jtc.TrajectoryClient(self, self._controller, self._timeout)
        self._held = jtc.subscribe_states(self, self._controller, depth=1)
        self._ending = threading.Event()
        self._listed: Future | None = None
        self._listed_at = -np.inf
        self.start_worker(self._retry, self._prepare)

    def _read_payload(self, changed: dict[str, Any] | None = None) -> Array:
        if self._guiding and any('.payload.' in name for name in changed or ()):
            why = "the arm is held with what it carried at the start: call '~/stop' first"
            raise ControllerError(why)
        return super()._read_payload(changed)

    def _make_ready(self) -> str:
        self._check_verdict((GOOD, FAIR))
        self._check_controllers(self._timeout)  # they may just be spawned
        serve(self, 'start', self._on_start)
        serve(self, 'stop', self._on_stop)
        return "call '~/start' where the arm rests"

    def _ask_controllers(self) -> Future:
        return self._list.call_async(ListControllers.Request())

    def _check_controllers(self, patience: float = 0.0) -> None:
        """Check that the right one holds the arm and the other can be activated, within [s]."""
        end = time.monotonic() + patience
        while True:
            answer = answer_of(self._ask_controllers, self._timeout, MANAGER)
            found = {each.name: each for each in answer.controller}
            wrong = [
                f"'{name}' is {known}: it must be {state} before the start"
                for name, state in ((self._forwarder, 'inactive'), (self._holder, 'active'))
                if (known := found[name].state if name in found else 'not loaded') != state
            ]
            if not wrong:
                break
            if time.monotonic() > end or self._stop.wait(LOOK_AGAIN):
                raise ControllerError(wrong[0])
        effort, joints = found[self._forwarder], self._model.robot.joints
        if effort.type not in EFFORT_CONTROLLER_TYPES:
            raise ControllerError(
                f"'{self._forwarder}' is a {effort.type}, hand guiding needs one of efforts: "
                f'{" or ".join(EFFORT_CONTROLLER_TYPES)}'
            )
        commanded = list(effort.required_command_interfaces)
        if sorted(commanded) != sorted(f'{joint}/effort' for joint in joints):
            raise ControllerError(
                f"'{self._forwarder}' commands {', '.join(commanded)}, the results are of "
                f'{", ".join(joints)}: let it command the effort of each'
            )
        self._order = [joints.index(name.rpartition('/')[0]) for name in commanded]

    def _check_alone(self) -> None:
        """Check that nobody else commands the controller: it forwards whatever came last."""
        if self.count_publishers(topic := self._commands.topic_name) > 1:
            raise ControllerError(
                f"somebody else can command '{self._forwarder}' on '{topic}': end it, only one "
                'may move the robot'
            )

    def _check_active(self) -> None:
        """Look now and then whether the controller is still active, and only ours."""
        if self._listed is not None and self._listed.done():
            listed, self._listed = self._listed.result().controller, None
            if (self._forwarder, 'active') not in [(each.name, each.state) for each in listed]:
                raise RobotStateError(f"'{self._forwarder}' is not active any more: {WHY}")
        now = time.monotonic()
        patience = WATCH_AGAIN if self._listed is None else SWITCH_TIMEOUT  # answers get lost
        if now - self._listed_at > patience:
            self._listed_at, self._listed = now, self._ask_controllers()
            self._check_alone()

    # Services, in the executor's thread

    def _on_start(self) -> str:
        if self._guiding or self._stop.is_set():
            ended, busy = 'this node is shutting down', 'it guides already'
            raise ControllerError(ended if self._stop.is_set() else busy)
        self._guiding = True
        self._ending.clear()
        self.start_worker(self._guide)
        return 'see ~/state'

    def _on_stop(self) -> str:
        self._ending.set()
        return 'see ~/state'

    # Guiding, in the worker's thread

    def _guide(self) -> None:
        """Guide the arm until somebody stops it; say why where something else did."""
        try:
            self.publish_state('checking', 'hands off: the arm must rest for a second')
            manager = str(self._switch.srv_name)
            with closing(self._new_guardian(manager, self._holder, self._forwarder)) as guardian:
                prefer_threads(True)
                try:
                    self._check_controllers()
                    self._check_alone()
                    self._run(guardian)
                finally:
                    prefer_threads(False)
        except RobotIdError as error:
            causes = (error.__context__, error)  # what stopped it comes first
            told = '; '.join(messages.one_line(e) for e in causes if isinstance(e, RobotIdError))
            self.get_logger().error(told)
            self.publish_state('failed', told)
        else:
            self.publish_state('ready', f"stopped: '{self._holder}' holds the arm")
        finally:
            self._guiding = False

    def _run(self, guardian: Guardian) -> None:
        if (found := self._watch_at_rest(guardian)) is None:
            return
        law, held, figures = found
        guardian.set_goal(uuid.uuid4())
        try:
            request = switch_request([self._forwarder], [self._holder], strict=True)
            asked, switched = time.monotonic(), self._switch.call_async(request)
            # Until it is confirmed, what holds the arm already is commanded.
            begin, pace, self._listed = np.inf, Pace(), None
            for seen in self._follow(guardian):
                if begin == np.inf and switched.done():
                    if not switched.result().ok:
                        raise ControllerError(f"'{self._forwarder}' was not activated: {WHY}")
                    begin, pace = seen.time, Pace()
                    self.publish_state('guiding', 'the arm can be guided', figures)
                elif begin == np.inf and time.monotonic() - asked > self._timeout:
                    raise ControllerError(f'no answer from {MANAGER}: is it still running?')
                elif begin < np.inf:
                    self._check_active()
                share = min(max(seen.time - begin, 0.0) / RAMP, 1.0)
                self._commands.publish(self._message(law, seen, held, share))
                if pace.note(seen.time, self._states.recent[-1].published):
                    self.publish_state('guiding', 'the arm can be guided', pace.figures())
                    pace = Pace()
        finally:
            list(self._held.take_serialized())
            self._switch_back(guardian)
        if not self._stop.is_set():
            self._hold(law)

    def _hold(self, law: HandGuiding) -> None:
        """Give the trajectory controller the efforts of this posture; it keeps those of a goal."""
        robot, client, states = self._model.robot, self._holding, list[Any]()
        self.publish_state('checking', f"'{self._holder}' has the arm: its weight is added")

        def heard() -> bool:
            states.extend(self._held.take_newest()[0])
            return len(states) > 1

        try:
            description = client.describe()
            if description.why_no_feed_forward or description.pid_gains(robot.joints)[1].any():
                return  # it takes none, or its integral will hold the arm
            wait_until(
                heard, self._timeout, what=f"'{self._holder}' publishes no controller_state"
            )
            references = np.array([jtc.reference_positions(s, robot.joints) for s in states])
            if (np.ptp(references, axis=0) > MAX_REFERENCE_TRAVEL).any():
                return  # somebody moves it already
            q = np.tile(references[-1], (2, 1))
            still, tau = np.zeros_like(q), np.tile(law.holding(q[0]) / robot.drive_gain, (2, 1))
            points = Waypoints(robot.joints, np.array([0.0, HOLD_TIME]), q, still, still, tau)
            check_feed_forward(points, robot, self.configuration.excitation.effort_share)
            goal = client.send(uuid.uuid4(), points, still[0], still[0], 0.0)
            wait_until(goal.accepted, self._timeout, what=f"no answer from '{client.action}'")
        except RobotIdError as error:
            why = messages.one_line(error)
            self.get_logger().warning(f'the arm is held without its weight: {why}')

    def _watch_at_rest(self, guardian: Guardian) -> tuple[HandGuiding, Array, Figures] | None:
        """Return the law, torques (n,) that hold the arm at rest, figures; None: stopped."""
        if not self.get_clock().now().nanoseconds:
            raise ControllerError("use_sim_time is set, but nobody publishes '/clock': unset it")
        law, rows, pace = None, list[Array](), Pace()
        settings, share = self.settings, self.configuration.excitation.effort_share
        for seen in self._follow(guardian):
            rows.append(np.array(seen[1:]))
            law = law or HandGuiding(
                *(self._model.robot, self._model.consistent + self._payload, seen.q),
                damping_time=settings.damping_time,
                margin=settings.limit_margin,
                effort_share=share,
            )
            self._message(law, seen, np.nan_to_num(seen.tau), 0.0)
            if pace.note(seen.time, self._states.recent[-1].published):
                break
        else:
            return None
        q, _, tau = np.array(rows).swapaxes(0, 1)
        if (np.ptp(q, axis=0) > MAX_TRAVEL).any():
            raise RobotStateError('the arm moves: wait until it rests, and start again')
        if not np.isfinite(tau).all():
            raise RobotStateError('joint states hold no efforts: what holds the arm is unknown')
        held = self._model.robot.efforts_to_torques(tau.mean(axis=0))
        law.check(q.mean(axis=0), held)
        return law, held, pace.figures()

    def _follow(self, guardian: Guardian) -> Iterator[Seen]:
        """Yield joint states until it is stopped; raise where the arm must not be guided on."""
        robot, stamp = self._model.robot, -1
        settings = dataclasses.replace(self.configuration.excitation, position_tolerance=(0.0,))
        fastest = np.minimum(robot.limits.velocity, self.settings.speed_limit)
        # Damping and speed limit take velocities at their word: positions must agree to that.
        limits = dataclasses.replace(robot.limits, velocity=fastest)
        watched = dataclasses.replace(robot, limits=limits)
        watchdog = Watchdog(watched, settings, time.monotonic(), effort_reported=False)
        while not (self._ending.is_set() or self._stop.is_set()):
            guardian.check()
            states, malformed = self._states.take_newest(messages.is_well_formed)
            # What comes again, as from a driver that has lost its hardware, says nothing new.
            found = [m for m in states if messages.to_nanoseconds(m.header.stamp) > stamp]
            found = [m for m in found if messages.is_complete(m, robot.joints)][-1:]
            rows = messages.stack_joint_states(found, robot.joints)
            watchdog.check_joint_states(rows, time.monotonic(), malformed)
            if not found:
                time.sleep(LOOK_PERIOD)
                continue
            stamp = int(rows.stamp[0])
            q, dq, tau = rows.position[0], rows.velocity[0], rows.effort[0]
            if (wrong := ~(np.abs(dq) <= fastest)).any():  # NaN as well
                names, what = ', '.join(compress(robot.joints, wrong)), 'or has no velocity'
                raise RobotStateError(f'{names} is faster than its speed limit, {what}')
            yield Seen(self.get_clock().now().nanoseconds * 1e-9, q, dq, tau)

    def _message(self, law: HandGuiding, seen: Seen, held: Array, share: float) -> Any:
        efforts = law.torques(seen.q, seen.dq, held, share) / self._model.robot.drive_gain
        return Float64MultiArray(data=array('d', efforts[self._order]))

    def _switch_back(self, guardian: Guardian) -> None:
        """Let the trajectory controller hold the arm; the guardian does where nobody answers."""
        request = switch_request([self._holder], [self._forwarder])
        answer = result_of(self._switch.call_async(request), SWITCH_TIMEOUT, MANAGER)
        if not answer.ok:
            raise ControllerError(
                f"'{self._holder}' is not active, the guardian tries to activate it: stop an arm "
                'that nothing holds'
            )
        with suppress(ControllerError):  # it is gone, and no longer needed
            guardian.clear_goal()


main = partial(runtime.run, GravityCompensation)
