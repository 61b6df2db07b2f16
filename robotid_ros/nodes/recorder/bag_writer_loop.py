"""One recording: from the middleware's queues straight into the bag."""

from collections.abc import Callable, Mapping
import importlib
from pathlib import Path
import threading
import time
from typing import Any

from control_msgs.msg import JointTrajectoryControllerState
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from ...exceptions import ControllerError, FileError, UnknownNameError
from ...files.bags import BagWriter, dump_session, Session
from ...files.bags.schema.session_header import SESSION_TOPIC
from ...files.provenance import versions
from ..common.batched_subscription import BatchedSubscription
from ..common.controller_client import ControllerClient
from ..common.runtime import ConfiguredNode

# How often the middleware's queues are emptied [s]: `recorder.depth` holds many times what a
# period brings.
POLL_PERIOD = 0.02
# What the session publishes last arrives after its state says that it has ended [s].
TRAILING_TIME = 0.3
# How long the publisher of the session's state may be missing [s]. Less would end a recording on a
# hiccup of discovery, more would record a robot that stands.
SESSION_LOST_TIME = 1.0


class BagWriterLoop:
    """
    An open bag and the topics that go into it.

    Parameters
    ----------
    node : that records
    name : of the recording
    design : gives what the excitation runs, as plain values
    state : of the excitation, which started this and will end it; None: started by hand

    Raises
    ------
    FileError : the bag cannot be opened

    """

    def __init__(
        self,
        node: ConfiguredNode,
        name: str,
        design: Callable[[], Mapping[str, Any]],
        state: DiagnosticStatus | None,
    ):
        self.started_by_session, self._first_state = state is not None, state
        self._node, self._read_design = node, design
        self._end = threading.Event()
        self._immediately = False
        excitation = node.configuration.excitation
        self._controller = ControllerClient(node, excitation.controller, excitation.timeout)
        self._controller_before: dict[str, Any] = {}
        self._snapshot: str | None = None
        self._subscriptions = self._subscribe(excitation.controller)
        try:
            self._writer = BagWriter(node.settings.folder, name)
        except FileError:
            self._unsubscribe()
            raise
        self._counts = {subscription.topic: 0 for subscription in self._subscriptions}
        for subscription in self._subscriptions:
            self._writer.add_topic(
                subscription.topic,
                _type_name(subscription.message_type),
                latched=subscription.latched,
            )

    @property
    def path(self) -> Path:
        """Folder of the bag."""
        return self._writer.path

    def stop(self, *, immediately: bool = False) -> None:
        """Close the bag soon, or at once, without the controller's last parameters."""
        self._immediately = self._immediately or immediately
        self._end.set()

    def run(self) -> dict[str, int]:
        """
        Record until `stop`.

        Returns
        -------
        Number of messages by topic.

        Raises
        ------
        FileError : the disk is full; what was written before stays readable

        """
        threading.Thread(target=self._take_snapshot, daemon=True).start()
        missing = 0.0
        try:
            self._write_first_state()
            while not self._end.is_set():
                self._write()
                time.sleep(POLL_PERIOD)
                missing = missing + POLL_PERIOD if self._session_lost() else 0.0
                if missing > SESSION_LOST_TIME:
                    break
            self._finish()
            return self._counts
        finally:
            self._close()

    def _subscribe(self, controller: str) -> list[BatchedSubscription]:
        node, depth = self._node, self._node.configuration.recorder.depth
        state = f'{controller}/controller_state'
        subscriptions = [
            BatchedSubscription(node, JointState, 'joint_states', depth=depth),
            BatchedSubscription(node, JointTrajectoryControllerState, state, depth=depth),
            BatchedSubscription(node, String, 'robot_description', depth=1, latched=True),
            BatchedSubscription(
                node, DiagnosticStatus, 'excitation/state', depth=100, latched=True
            ),
            BatchedSubscription(
                node, JointTrajectory, 'excitation/reference', depth=10, latched=True
            ),
        ]
        self._state = subscriptions[3]
        known = dict(node.get_topic_names_and_types())
        for topic in node.settings.topics:
            name = node.resolve_topic_name(topic)
            if name not in known:
                raise UnknownNameError('topic', name, tuple(sorted(known)))
            subscriptions.append(
                BatchedSubscription(node, _message_class(known[name][0]), topic, depth=depth)
            )
        return subscriptions

    def _write_first_state(self) -> None:
        """Write what started this: its subscription may be matched only after the next state."""
        if self._first_state is not None:
            now = time.time_ns()
            self._writer.write(self._state.topic, serialize_message(self._first_state), now, now)
            self._counts[self._state.topic] += 1

    def _write(self) -> None:
        """Write what has arrived since the last call."""
        for subscription in self._subscriptions:
            topic, count = subscription.topic, 0
            for sample in subscription.take_serialized():
                self._writer.write(topic, sample.data, sample.received, sample.published)
                count += 1
            self._counts[topic] += count
        if self._snapshot is not None:
            snapshot, self._snapshot = self._snapshot, None
            self._writer.write_text(SESSION_TOPIC, snapshot, time.time_ns())

    def _finish(self) -> None:
        """Write what arrives last, and the controller as it is afterwards."""
        if not self._immediately:
            end = time.monotonic() + TRAILING_TIME
            while time.monotonic() < end and not self._immediately:
                self._write()
                time.sleep(POLL_PERIOD)
            self._take_snapshot()
        self._write()

    def _session_lost(self) -> bool:
        """Whether the excitation that started this publishes no more."""
        return self.started_by_session and not self._state.connected

    def _take_snapshot(self) -> None:
        """Ask the controller for its parameters and compose the session's snapshot."""
        try:
            found = self._controller.describe().to_dict()
        except ControllerError as error:
            self._node.get_logger().warn(f'recording without controller parameters: {error}')
            found = {}
        self._controller_before = self._controller_before or found
        if found and found['gains'] != self._controller_before['gains']:
            self._node.get_logger().warn("the controller's gains were changed while recording")
        plan = self._read_design()
        trajectories = {'trajectory': 'exciting', 'validation': 'validating'}
        self._snapshot = dump_session(
            Session(
                controller=self._controller_before,
                trajectories={v: plan[k] for k, v in trajectories.items() if plan.get(k)},
                configuration=self._node.values,
                versions=versions(),
                values={
                    'gains_after': found.get('gains', {}),
                    'design': {k: v for k, v in plan.items() if k not in trajectories},
                },
            )
        )

    def _close(self) -> None:
        try:
            self._writer.close()
        finally:
            self._unsubscribe()

    def _unsubscribe(self) -> None:
        for subscription in self._subscriptions:
            subscription.close()


def _message_class(name: str) -> type:
    """Class of 'sensor_msgs/msg/JointState'."""
    package, kind, message = name.split('/')
    return getattr(importlib.import_module(f'{package}.{kind}'), message)


def _type_name(message_class: type) -> str:
    """Full name of a message class, as a bag has it."""
    return '/'.join((*message_class.__module__.split('.')[:2], message_class.__name__))
