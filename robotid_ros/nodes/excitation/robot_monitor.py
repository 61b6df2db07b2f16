"""Everything that is watched while a robot moves: states, guardian, requests, other commands."""

from collections.abc import Sequence
import threading
import time
from typing import Any

from control_msgs.msg import JointTrajectoryControllerState
import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from ...core.arrays import Array
from ...core.model.robot import Robot
from ...exceptions import ControllerError, RobotStateError, SilentRobotError
from ...node_settings import ExcitationNodeSettings
from ..common.batched_subscription import BatchedSubscription, NEWEST
from ..common.joint_states import (
    is_well_formed,
    is_well_formed_state,
    reference_positions,
    stack_joint_states,
    stamps_to_nanoseconds,
)
from ..common.messages import to_nanoseconds
from ..common.waiting import wait_until
from .motion_start import MOVED
from .other_clients import OtherClients
from .preflight import check_states
from .supervision.gain_watch import GainWatch
from .supervision.guardian import Guardian
from .supervision.recorder_watch import RecorderWatch
from .supervision.silence import Silence
from .supervision.watchdog import describe_violation, Watchdog

# States that may wait in the queue: 5 s of a controller at 1 kHz, should Python be late.
CONTROLLER_STATE_DEPTH = 5000
# For how long the controller's reference must rest before a motion begins, by its stamps [s]: a
# joint at 1e-8 rad/s is seen to move.
REST_TIME = 0.1
# How long the recorder may take at least until the robot's states arrive, to which it subscribes
# when a session begins [s]: 2.2 were seen on a quiet machine.
OPENING_TIME = 15.0
# States of the controller that are kept to tell which joint left its tolerance: the last second at
# 1 kHz, of which a result takes 0.05 s and a busy machine some more.
KEPT_STATES = 1000
# How much later than its end the reason of a motion's end may arrive [s].
REASON_TIMEOUT, REASON_POLL_PERIOD = 0.1, 0.01
# States of the controller after which a cancelled motion is one that is held.
HOLDING_STATES = 3


class RobotMonitor:
    """
    Watches the robot and what commands it.

    Its methods raise `ControllerError` or `RobotStateError` when the robot must not move (on).

    Parameters
    ----------
    node : that subscribes
    robot, settings : joints, limits and how far from them is too far
    stop : set from outside to stop the robot
    guardian : that cancels a goal should this process die
    others : who else could move the robot
    session : that has to be recorded

    Attributes
    ----------
    gains : those of the controller, which have to stay

    """

    def __init__(
        self,
        node: Node,
        robot: Robot,
        settings: ExcitationNodeSettings,
        stop: threading.Event,
        guardian: Guardian,
        others: OtherClients,
        session: str,
    ):
        self._node, self._robot, self._settings = node, robot, settings
        self._stop, self._guardian, self._others = stop, guardian, others
        name = settings.controller
        self._joint_states = BatchedSubscription(node, JointState, 'joint_states')
        self._controller_states = BatchedSubscription(
            node,
            JointTrajectoryControllerState,
            f'{name}/controller_state',
            depth=CONTROLLER_STATE_DEPTH,
            kept=KEPT_STATES,
        )
        self._subscriptions = (self._joint_states, self._controller_states)
        self.gains = GainWatch(node, name)
        self._recorder = RecorderWatch(node, session) if settings.require_recorder else None
        self._watchdog: Watchdog | None = None
        self._malformed_told = False

    def close(self) -> None:
        """Unsubscribe."""
        self.gains.close()
        for subscription in self._subscriptions:
            subscription.close()
        if self._recorder is not None:
            self._recorder.close()

    def check_ready(self) -> None:
        """Check states and recorder before anything moves, as they are now."""
        self.discard()
        reported = check_states(self._subscriptions, self._robot, self._settings)
        self._watchdog = Watchdog(
            self._robot, self._settings, time.monotonic(), effort_reported=reported
        )
        if not reported:
            self._node.get_logger().warning(
                'the joint states report no effort, or 0 alone: what the controller commands is '
                'taken for it'
            )
        if self._recorder is not None:
            self._recorder.forget()
            self._recorder.wait_present(self._settings.timeout, self.raise_if_stopped)

    def wait_recording(self) -> None:
        """Wait until the recorder, which has heard that the session begins, records."""
        if self._recorder is not None:
            timeout = max(self._settings.timeout, OPENING_TIME)
            self._recorder.wait_recording(timeout, self.raise_if_stopped)

    def wait_for_reference(self) -> tuple[int, Array]:
        """
        Wait for the reference that is held: a motion from there starts without a jump.

        Returns
        -------
        Its stamp [ns] and the positions (n,).

        Raises
        ------
        ControllerError : it moves, though no motion of this session runs
        SilentRobotError : it says nothing any more

        """
        states: list[Any] = []
        name, silence = self._settings.controller, Silence(time.monotonic())

        def seen_long_enough() -> bool:
            self.raise_if_stopped()
            # The newest alone: a busy machine decodes fewer than arrive.
            newest = self._controller_states.take_newest(lambda _: True, 1)[0]
            silent = silence.update(time.monotonic(), heard=bool(newest))
            if silent > self._settings.stale_after:
                raise SilentRobotError(
                    f"'{name}' stopped publishing its state {silent:.2f} s ago: is it active?",
                    self._robot.joints,
                )
            states.extend(newest)
            stamps = stamps_to_nanoseconds([states[0], states[-1]]) if states else [0]
            return bool(stamps[-1] - stamps[0] >= REST_TIME * 1e9)

        self.discard()
        wait_until(
            seen_long_enough,
            self._settings.timeout,
            what=f"'{name}' publishes no controller_state: activate it",
        )
        references = np.stack([reference_positions(m, self._robot.joints) for m in states])
        travel = np.ptp(references, axis=0)
        if travel.max() > MOVED:
            joint = self._robot.joints[int(np.argmax(travel))]
            raise ControllerError(
                f"'{name}' moves {joint} though no motion of this session runs: end what commands "
                'it, only one may move the robot'
            )
        return to_nanoseconds(states[-1].header.stamp), references[-1]

    def controller_is_silent(self) -> bool:
        """Whether the controller publishes no state any more; listens as long as that takes."""
        silence, silent = Silence(time.monotonic()), 0.0
        list(self._controller_states.take_serialized())
        while silent <= self._settings.stale_after:
            time.sleep(REASON_POLL_PERIOD)
            if list(self._controller_states.take_serialized()):
                return False
            silent = silence.update(time.monotonic(), heard=False)
        return True

    def discard(self) -> None:
        """Forget the states that have arrived so far."""
        for subscription in self._subscriptions:
            list(subscription.take_serialized())
        self._controller_states.recent.clear()

    def begin(self) -> None:
        """Begin to watch: what is out of date counts from now."""
        assert self._watchdog is not None
        self._watchdog.begin(time.monotonic())

    def check(self, *, every_state: bool = False) -> list[Any]:
        """
        Check everything that has arrived since the last call.

        Parameters
        ----------
        every_state : decode every state of the controller, else only the newest

        Returns
        -------
        The controller's states, oldest first.

        """
        self.raise_if_stopped()
        if self._recorder is not None:
            self._recorder.check()
        assert self._watchdog is not None
        now, joints = time.monotonic(), self._robot.joints
        joint_states, malformed = self._joint_states.take_newest(is_well_formed)
        self._watchdog.check_joint_states(stack_joint_states(joint_states, joints), now, malformed)
        self._watchdog.check_locked(joint_states)
        states, malformed_too = self._controller_states.take_newest(
            lambda message: is_well_formed_state(message, joints), NEWEST if every_state else 1
        )
        self._watchdog.check_controller_state(states[-1] if states else None, now)
        self._tell_malformed(malformed + malformed_too)
        return states

    def find_unheld_joint(self) -> str:
        """
        Return a joint whose position the controller does not hold after a cancel, '' if it does.

        It takes what it measures for its reference, also what is not a number, and keeps that when
        the sensor has recovered.
        """
        end, states = time.monotonic() + REASON_TIMEOUT, list[Any]()
        while len(states) < HOLDING_STATES and time.monotonic() < end:
            states += self._controller_states.take_newest(lambda _: True, HOLDING_STATES)[0]
            time.sleep(REASON_POLL_PERIOD / 2)
        known = [s for s in states if is_well_formed_state(s, self._robot.joints)]
        for joint in self._robot.joints if known else ():
            index = known[-1].joint_names.index(joint)
            if not np.isfinite(known[-1].reference.positions[index : index + 1]).all():
                return joint
        return ''

    def describe_violation(self, tolerance: Sequence[float], end: Array | None) -> str:
        """Say which joint left its tolerance since `discard`, see the function of this name."""
        stream, joints = self._controller_states, self._robot.joints
        list(stream.take_serialized())
        decoded = (stream.decode(sample) for sample in list(stream.recent))
        states = [s for s in decoded if s is not None and is_well_formed_state(s, joints)]
        return describe_violation(states, joints, tolerance, end)

    def _tell_malformed(self, count: int) -> None:
        if count and not self._malformed_told:
            self._malformed_told = True
            topics = f"'{self._joint_states.topic}' or '{self._controller_states.topic}'"
            self._node.get_logger().warning(
                f'messages on {topics} that name a joint twice or lack values are passed over: '
                'who publishes them?'
            )

    def raise_if_stopped(self) -> None:
        """Check everything but the robot's own state."""
        if self._stop.is_set():
            raise RobotStateError('stopped by request')
        self._guardian.check()
        self._others.check_messages()
        self.gains.check()

    def wait_for_reason(self) -> None:
        """Wait a moment for the reason why the controller has ended a motion; raise it."""
        end = time.monotonic() + REASON_TIMEOUT
        while time.monotonic() < end:
            self.raise_if_stopped()
            time.sleep(REASON_POLL_PERIOD)
