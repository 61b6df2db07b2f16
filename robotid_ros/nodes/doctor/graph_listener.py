"""What a node hears of a robot: subscriptions, answers, who is there."""

from collections.abc import Callable, Sequence
import time
from typing import Any

from action_msgs.msg import GoalStatusArray
from control_msgs.msg import JointTrajectoryControllerState
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import numpy as np
from rclpy.action import get_action_names_and_types
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from ...exceptions import ControllerError
from ...files.formats.joint_table import JointTable
from ..common.batched_subscription import BatchedSubscription, SerializedMessage
from ..common.controller import ACTION, ControllerClient, ControllerDescription
from ..common.messages import is_well_formed, stack_joint_states, to_nanoseconds
from ..common.waiting import wait_until
from ..excitation.checks import RESERVATION, RUNNING
from .controller_manager import ask_manager, MANAGER
from .graph_snapshot import ControllerStates, Endpoint, ManagerState, Topic

# How often what has arrived is taken [s]: half a second of 1 kHz fits into a queue many times.
POLL_PERIOD = 0.02
# Messages that may wait meanwhile, while answers are waited for: 20 s of 1 kHz.
DEPTH = 20_000
_FEEDBACK = f'{ACTION}/_action/feedback'
_STATUS = f'{ACTION}/_action/status'
_JOINT_STATE = 'sensor_msgs/msg/JointState'


class GraphListener:
    """
    Subscribes to what a robot publishes, and keeps what arrives.

    Parameters
    ----------
    node : whose executor spins
    timeout : longest wait for anything [s]

    """

    def __init__(self, node: Node, timeout: float):
        self._node, self._timeout = node, timeout
        self._streams: dict[str, BatchedSubscription] = {}
        self._arrived: dict[str, list[SerializedMessage]] = {}

    def wait_for_robot(self, controller: str) -> None:
        """Wait until states, description and this or any controller are there, or time is up."""

        def is_there() -> bool:
            topics = ('joint_states', 'robot_description')
            found = self.controllers()
            served = controller in found if controller else bool(found)
            return served and all(map(self._node.count_publishers, topics))

        wait_until(is_there, self._timeout, period=POLL_PERIOD)

    def controllers(self) -> tuple[str, ...]:
        """Names of those that serve follow_joint_trajectory; relative ones in the namespace."""
        own = f'{self._node.get_namespace().rstrip("/")}/'
        count = self._node.count_publishers
        names = (name for name, _ in get_action_names_and_types(self._node))
        return tuple(
            name.removesuffix(f'/{ACTION}').removeprefix(own)
            for name in names
            # Clients alone make a name, too; servers publish.
            if name.endswith(f'/{ACTION}') and count(f'{name}/_action/status')
        )

    def choose(self, default: str) -> str:
        """Return the default, unless there is exactly one controller of another name."""
        found = [name for name in self.controllers() if not name.startswith('/')]
        return found[0] if default not in found and len(found) == 1 else default

    def listen(self, controller: str, duration: float) -> None:
        """Take what arrives, for longer where a topic that is published is still silent."""
        self._subscribe(JointState, 'joint_states')
        self._subscribe(JointTrajectoryControllerState, f'{controller}/controller_state')
        self._subscribe(String, 'robot_description', latched=True)
        self._subscribe(GoalStatusArray, f'{controller}/{_STATUS}', latched=True)
        self._subscribe(DiagnosticArray, '/diagnostics')
        self._subscribe(Clock, '/clock')
        begin = time.monotonic()
        while (now := time.monotonic() - begin) < duration + self._timeout:
            for topic, stream in self._streams.items():
                self._arrived[topic].extend(stream.take_serialized())
            if now >= duration and not self._silent():
                return
            time.sleep(POLL_PERIOD)

    def _subscribe(self, kind: type, topic: str, *, latched: bool = False) -> None:
        stream = BatchedSubscription(self._node, kind, topic, depth=DEPTH, latched=latched)
        self._streams[topic], self._arrived[topic] = stream, []

    def _silent(self) -> list[str]:
        """Topics of the robot that are published, and on which nothing has arrived."""
        expected = [t for t in self._streams if t not in ('/diagnostics', '/clock')]
        return [
            topic
            for topic in expected
            if not self._arrived[topic]
            and self._streams[topic].connected
            # The status of an action comes with its first goal.
            and not topic.endswith(_STATUS)
        ]

    def describe_controller(self, name: str) -> ControllerDescription | None:
        """Read a controller's parameters; None where it is not there, or has none of them."""
        own = f'{self._node.get_namespace().rstrip("/")}/{name}'.replace('//', '/')
        if name not in self.controllers() and own not in self._nodes():
            return None
        try:
            return ControllerClient(self._node, name, self._timeout).describe()
        except ControllerError:
            return None

    def heard(self, controller: str) -> dict[str, Any]:
        """Return the fields of a snapshot that were listened to."""
        node = self._node
        streams, malformed = self._joint_states()
        kinds = node.get_topic_names_and_types()
        goals = self._messages(f'{controller}/{_STATUS}')
        topics = {
            'joint_states': 'joint_states',
            'robot_description': 'robot_description',
            'controller_state': f'{controller}/controller_state',
            'joint_trajectory': f'{controller}/joint_trajectory',
            'excitation_session': f'{controller}/{RESERVATION}',
            'goals': f'{controller}/{_FEEDBACK}',
        }
        return {
            'candidates': self.controllers(),
            'nodes': tuple(sorted(self._nodes())),
            'topics': {key: self._topic(name) for key, name in topics.items()},
            'joint_state_topics': tuple(t for t, types in kinds if _JOINT_STATE in types),
            'joint_states': streams,
            'malformed': malformed,
            'controller_states': self._controller_states(f'{controller}/controller_state'),
            'descriptions': tuple({m.data: None for m in self._messages('robot_description')}),
            'running_goals': sum(s.status in RUNNING for s in goals[-1].status_list)
            if goals
            else 0,
            'clock': self._clock(),
            'manager': self._manager(),
        }

    def _messages(self, topic: str) -> list[Any]:
        stream = self._streams[topic]
        messages = (stream.decode(sample) for sample in self._arrived[topic])
        return [message for message in messages if message is not None]

    def _joint_states(self) -> tuple[tuple[JointTable, ...], int]:
        """Sort joint states by the joints that they name."""
        stream, malformed = self._streams['joint_states'], 0
        groups: dict[tuple[str, ...], list[tuple[int, Any]]] = {}
        for sample in self._arrived['joint_states']:
            message = stream.decode(sample)
            if message is None or not is_well_formed(message) or not message.name:
                malformed += 1
            else:
                key = tuple(sorted(message.name))
                groups.setdefault(key, []).append((sample.received, message))
        streams = (_stream(joints, messages) for joints, messages in groups.items())
        return tuple(sorted(streams, key=lambda s: -len(s.stamp))), malformed

    def _controller_states(self, topic: str) -> ControllerStates | None:
        arrived = self._arrived[topic]
        if not arrived:
            return None
        last = self._streams[topic].decode(arrived[-1])
        received = np.array([sample.received for sample in arrived], np.int64)
        return ControllerStates(received, bool(last is not None and len(last.output.effort)))

    def _clock(self) -> np.ndarray:
        messages, arrived = self._messages('/clock'), self._arrived['/clock']
        times = [to_nanoseconds(message.clock) for message in messages]
        received = [sample.received for sample in arrived][: len(times)]
        return np.array([received, times], np.int64).reshape(2, -1)

    def _manager(self) -> ManagerState | None:
        own = f'{self._node.get_namespace().rstrip("/")}/{MANAGER}'
        if own not in self._nodes():
            return None
        latest: dict[str, DiagnosticStatus] = {}
        for message in self._messages('/diagnostics'):
            latest.update({status.name: status for status in message.status})
        return ask_manager(self._node, self._timeout, list(latest.values()))

    def _nodes(self) -> set[str]:
        found = self._node.get_node_names_and_namespaces()
        names = {
            f'{namespace}/{name}'.replace('//', '/')
            for name, namespace in found
            if not name.startswith('_')  # hidden ones, such as the daemon of ros2cli
        }
        return names - {self._node.get_fully_qualified_name()}

    def _topic(self, name: str) -> Topic:
        full = self._node.resolve_topic_name(name)
        get: Sequence[Callable[[str], Any]] = (
            self._node.get_publishers_info_by_topic,
            self._node.get_subscriptions_info_by_topic,
        )
        own = self._node.get_name()
        ends = (
            tuple(_endpoint(info) for info in infos(full) if info.node_name != own)
            for infos in get
        )
        return Topic(full, *ends)


def _endpoint(info: Any) -> Endpoint:
    qos = info.qos_profile
    return Endpoint(
        f'{info.node_namespace}/{info.node_name}'.replace('//', '/'),
        info.topic_type,
        qos.reliability == ReliabilityPolicy.RELIABLE,
        qos.durability == DurabilityPolicy.TRANSIENT_LOCAL,
    )


def _stream(joints: tuple[str, ...], messages: Sequence[tuple[int, Any]]) -> JointTable:
    received = np.array([received for received, _ in messages], np.int64)
    states = stack_joint_states([message for _, message in messages], joints)
    fields = states.position, states.velocity, states.effort
    return JointTable(joints, states.stamp, received, *fields)
