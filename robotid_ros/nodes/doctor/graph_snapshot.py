"""A ROS graph as it was heard and asked for a moment, as values; nothing is moved or set."""

from collections.abc import Mapping, Sequence
import contextlib
from dataclasses import dataclass, field, replace
import os
from pathlib import Path
import time
from typing import Any, NamedTuple

from action_msgs.msg import GoalStatusArray
from control_msgs.msg import JointTrajectoryControllerState
from controller_manager_msgs.srv import ListControllers, ListHardwareComponents
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import numpy as np
from numpy.typing import NDArray
from rclpy.action import get_action_names_and_types
from rclpy.exceptions import InvalidTopicNameException
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from rclpy.validate_topic_name import validate_topic_name
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from ...exceptions import ConfigurationError, ControllerError, FileError, RobotIdError
from ...files.atomic import expect_writable
from ...files.configuration import Configuration, read_urdf
from ...files.formats.joint_table import JointTable
from ..common import controller as parts
from ..common.batched_subscription import BatchedSubscription
from ..common.controller import ControllerClient, ControllerDescription, is_gazebo, MANAGER
from ..common.messages import is_well_formed, one_line, stack_joint_states, to_nanoseconds
from ..common.ros_parameters import ParameterClient
from ..common.runtime import full_name, lone_node
from ..common.waiting import answer_of, wait_until

Stamps = NDArray[np.int64]


class Endpoint(NamedTuple):
    """A publisher or subscription: full name of its node, and its quality of service."""

    node: str
    reliable: bool = True
    latched: bool = False


class Topic(NamedTuple):
    """A topic by its full name, and who uses it."""

    name: str
    publishers: tuple[Endpoint, ...] = ()
    subscribers: tuple[Endpoint, ...] = ()

    @property
    def publishing_nodes(self) -> str:
        """Names of the nodes that publish."""
        return ', '.join(sorted({end.node for end in self.publishers}))


@dataclass(frozen=True)
class ManagerState:
    """What controller_manager says, by its messages ControllerState, HardwareComponentState."""

    controllers: Sequence[Any] = ()
    hardware: Sequence[Any] = ()
    rate: float = 0.0  # of its updates [Hz], 0 when unknown
    warnings: tuple[str, ...] = ()  # what it complains about on /diagnostics
    obstacle: str = ''  # why its services were not asked

    def state_of(self, controller: str) -> str | None:
        """Return the state of a controller, such as 'active', None of one that is not loaded."""
        return next((each.state for each in self.controllers if each.name == controller), None)

    @property
    def in_gazebo(self) -> bool:
        """Whether some hardware is Gazebo's."""
        return any(is_gazebo(component.plugin_name) for component in self.hardware)


@dataclass(frozen=True)
class GraphSnapshot:
    """Everything that the doctor listened to and asked for."""

    configuration: Configuration  # defaults where none was given
    controller_name: str  # the joint_trajectory_controller that is meant, in the namespace
    free_space: int | str  # of `recorder.folder` [B], or why nothing can be written there
    name_was_given: bool = False  # by a user
    candidates: tuple[str, ...] = ()  # controllers that serve follow_joint_trajectory, likewise
    controller: ControllerDescription | None = None  # what it says; None: it does not answer
    nodes: tuple[str, ...] = ()  # all others on the graph
    topics: Mapping[str, Topic] = field(default_factory=dict)  # by this package's names
    joint_state_topics: tuple[str, ...] = ()  # every topic of JointState on the graph
    joint_states: tuple[JointTable, ...] = ()  # of each set of joints, the fullest first
    malformed: int = 0  # joint states that name a joint twice or lack values
    controller_states: Stamps | None = None  # when the controller said its state (K,) [ns]
    commands_effort: bool = False  # whether the last of these has efforts
    descriptions: tuple[str, ...] = ()  # different texts on robot_description
    configured_description: str = ''  # text of the URDF that the configuration names
    running_goals: int = 0  # of the controller's action
    # (2, K) when /clock was received, and the time it told [ns]; empty with real time.
    clock: Stamps = field(default_factory=lambda: np.empty((2, 0), np.int64))
    manager: ManagerState | None = None  # None: there is no controller_manager
    # Of which some say who hears whom.
    environment: Mapping[str, str] = field(default_factory=dict)

    def topic(self, name: str) -> Topic:
        """Return a topic by this package's name; one without anybody where it is unknown."""
        return self.topics.get(name, Topic(name))

    @property
    def joints(self) -> tuple[str, ...]:
        """Joints that are meant: the configuration's, else the controller's."""
        given = self.configuration.robot.joints
        return given or (self.controller.joints if self.controller is not None else ())

    @property
    def rate(self) -> float:
        """Update rate of the controller, 0 when unknown [Hz]."""
        own = self.controller.rate if self.controller else 0.0
        return own or (self.manager.rate if self.manager else 0.0)

    @property
    def description(self) -> str:
        """Description that a session would take, '' without any."""
        return self.configured_description or next(iter(self.descriptions), '')

    @property
    def states(self) -> JointTable | None:
        """The joint states that hold most of the joints that are meant, None where silent."""
        wanted = set(self.joints)
        return max(
            self.joint_states,
            key=lambda stream: (len(wanted & set(stream.joints)), len(stream.stamp)),
            default=None,
        )


NODE = 'robotid_doctor'
# How often what has arrived is taken [s]: half a second of 1 kHz fits into a queue many times.
POLL_PERIOD = 0.02
# Messages of a topic that may wait meanwhile, while answers are waited for: 20 s of 1 kHz; and
# those that are kept.
DEPTH, KEPT = 20_000, 1_000_000
_JOINT_STATE = 'sensor_msgs/msg/JointState'


class GraphListener:
    """Keeps what a robot publishes; the executor spins, each wait is at most `timeout` [s]."""

    def __init__(self, node: Node, timeout: float):
        self._node, self._timeout = node, timeout
        self._streams: dict[str, BatchedSubscription] = {}

    def controllers(self) -> tuple[str, ...]:
        """Names of those that serve follow_joint_trajectory; relative ones in the namespace."""
        own = f'{self._node.get_namespace().rstrip("/")}/'
        names = [name for name, _ in get_action_names_and_types(self._node)]
        # Clients alone make a name, too; servers publish.
        served = [n for n in names if self._node.count_publishers(f'{n}/_action/status')]
        ends = f'/{parts.ACTION}'
        return tuple(n.removesuffix(ends).removeprefix(own) for n in served if n.endswith(ends))

    def find_controller(self, name: str, default: str) -> str:
        """Wait for the robot; return the name, the only controller's, or the default."""

        def is_there() -> bool:
            found, topics = self.controllers(), ('joint_states', 'robot_description')
            served = name in found if name else bool(found)
            return served and all(map(self._node.count_publishers, topics))

        wait_until(is_there, self._timeout, period=POLL_PERIOD)
        found = [each for each in self.controllers() if not each.startswith('/')]
        return name or (found[0] if default not in found and len(found) == 1 else default)

    def listen(self, controller: str, duration: float) -> None:
        """Take what arrives, for longer where a topic that is published is still silent."""
        for kind, topic, latched in (
            (JointState, 'joint_states', False),
            (JointTrajectoryControllerState, f'{controller}/{parts.STATE}', False),
            (String, 'robot_description', True),
            (GoalStatusArray, f'{controller}/{parts.GOALS}', True),
            (DiagnosticArray, '/diagnostics', False),
            (Clock, '/clock', False),
        ):
            self._streams[topic] = BatchedSubscription(
                self._node, kind, topic, depth=DEPTH, latched=latched, kept=KEPT
            )
        # The status of an action comes with its first goal.
        silent_by_right = ('/diagnostics', '/clock', f'{controller}/{parts.GOALS}')
        expected = [s for topic, s in self._streams.items() if topic not in silent_by_right]
        begin = time.monotonic()
        while (now := time.monotonic() - begin) < duration + self._timeout:
            for stream in self._streams.values():
                for _ in stream.take_serialized():
                    pass  # the stream keeps it
            if now >= duration and not any(s.publishers and not s.recent for s in expected):
                return
            time.sleep(POLL_PERIOD)

    def heard(self, topic: str) -> list[tuple[int, Any]]:
        """Return when messages of a topic came [ns], and those that follow its type."""
        stream = self._streams[topic]
        decoded = ((sample.received, stream.decode(sample)) for sample in stream.recent)
        return [(received, message) for received, message in decoded if message is not None]

    def joint_states(self) -> tuple[tuple[JointTable, ...], int]:
        """Sort joint states by the joints that they name; also returns how many are malformed."""
        groups: dict[tuple[str, ...], list[tuple[int, Any]]] = {}
        for sample in self.heard('joint_states'):
            names = sample[1].name
            if is_well_formed(sample[1]) and names:
                groups.setdefault(tuple(sorted(names)), []).append(sample)
        tables = []
        for joints, samples in groups.items():
            received, messages = zip(*samples, strict=True)
            states = stack_joint_states(messages, joints)
            tables.append(replace(states, received=np.array(received, np.int64)))
        count = sum(len(table.stamp) for table in tables)
        malformed = len(self._streams['joint_states'].recent) - count
        return tuple(sorted(tables, key=lambda table: -len(table.stamp))), malformed

    def describe_controller(self, name: str) -> ControllerDescription | None:
        """Read a controller's parameters; None where it is not there, or has none of them."""
        own = self._node.resolve_service_name(name)
        if name in self.controllers() or own in self.nodes():
            with contextlib.suppress(ControllerError):
                return ControllerClient(self._node, name, self._timeout).describe()
        return None

    def manager(self) -> ManagerState | None:
        """Ask controller_manager, None where it is not there."""
        if self._node.resolve_service_name(MANAGER) not in self.nodes():
            return None
        told = [status for _, message in self.heard('/diagnostics') for status in message.status]
        latest = {status.name: status for status in told}
        warnings = tuple(
            f'{status.name}: {" ".join(status.message.split())}'
            for status in latest.values()
            # The updater of diagnostics puts the name of its node in front.
            if f'{MANAGER}: ' in status.name and status.level != DiagnosticStatus.OK
        )
        rate = 0.0
        with contextlib.suppress(ControllerError):
            found = ParameterClient(self._node, MANAGER, self._timeout).get(['update_rate'])
            rate = float(found['update_rate'] or 0.0)
        try:
            controllers = self._ask(ListControllers, 'list_controllers').controller
            components = self._ask(ListHardwareComponents, 'list_hardware_components').component
        except ControllerError as error:
            return ManagerState(rate=rate, warnings=warnings, obstacle=str(error))
        return ManagerState(controllers, components, rate, warnings)

    def _ask(self, kind: Any, name: str) -> Any:
        client = self._node.create_client(kind, f'{MANAGER}/{name}')
        if not client.wait_for_service(self._timeout):
            raise ControllerError(f"nobody serves '{client.srv_name}'")
        return answer_of(lambda: client.call_async(kind.Request()), self._timeout, client.srv_name)

    def nodes(self) -> set[str]:
        """Full names of all other nodes, but for hidden ones, such as the daemon of ros2cli."""
        known = self._node.get_node_names_and_namespaces()
        names = {full_name(n, space) for n, space in known if not n.startswith('_')}
        return names - {self._node.get_fully_qualified_name()}

    def topic(self, name: str) -> Topic:
        """Return who else uses a topic."""
        full, own, node = self._node.resolve_topic_name(name), self._node.get_name(), self._node
        ends = (
            tuple(
                Endpoint(
                    full_name(info.node_name, info.node_namespace),
                    info.qos_profile.reliability == ReliabilityPolicy.RELIABLE,
                    info.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL,
                )
                for info in infos(full)
                if info.node_name != own
            )
            for infos in (node.get_publishers_info_by_topic, node.get_subscriptions_info_by_topic)
        )
        return Topic(full, *ends)


def free_space(folder: str) -> int | str:
    """Return the free space of a folder, which may be missing yet [B]; or why there is none."""
    try:
        return expect_writable(Path(folder).expanduser())
    except FileError as error:
        return str(error)


def snapshot_of_graph(
    configuration: Configuration,
    *,
    controller: str = '',
    namespace: str = '/',
    duration: float = 5.0,
    timeout: float = 10.0,
    domain: int | None = None,
) -> GraphSnapshot:
    """
    Listen to a graph and ask it; RobotIdError: no URDF, ROS does not start, or a name is none.

    The controller is the configuration's or the only one, unless it is named. DDS announces
    participants every 3 s. `timeout` is the longest wait for an answer, to discover the robot, and
    for a message of a topic that is published [s].
    """
    default = configuration.excitation.controller
    try:
        validate_topic_name(controller or default)
    except InvalidTopicNameException as error:
        raise ConfigurationError(
            f"'{controller or default}' cannot be a controller: give a name of letters and digits"
        ) from error
    urdf = read_urdf(configuration) or ''
    with contextlib.ExitStack() as ends:
        try:
            node = ends.enter_context(
                lone_node(NODE, namespace, domain, start_parameter_services=False)
            )
        except Exception as error:  # rcl says what of the environment it cannot use
            raise RobotIdError(
                f'ROS 2 does not start ({one_line(error)}): check --namespace, ROS_DOMAIN_ID and '
                'RMW_IMPLEMENTATION'
            ) from error
        listener = GraphListener(node, timeout)
        name = listener.find_controller(controller, default)
        listener.listen(name, duration)
        joint_states, malformed = listener.joint_states()
        topics = {
            'joint_states': 'joint_states',
            'robot_description': 'robot_description',
            'controller_state': f'{name}/{parts.STATE}',
            'joint_trajectory': f'{name}/{parts.COMMANDS}',
            'excitation_session': f'{name}/{parts.RESERVATION}',
            'goals': f'{name}/{parts.ACTION}/_action/feedback',
        }
        goals = [message for _, message in listener.heard(f'{name}/{parts.GOALS}')]
        states = listener.heard(topics['controller_state'])
        received = np.array([stamp for stamp, _ in states], np.int64)
        clock = [(stamp, to_nanoseconds(told.clock)) for stamp, told in listener.heard('/clock')]
        given = {} if domain is None else {'ROS_DOMAIN_ID': str(domain)}
        found = node.get_topic_names_and_types()
        return GraphSnapshot(
            configuration=configuration,
            controller_name=name,
            name_was_given=bool(controller) or name == default,
            candidates=listener.controllers(),
            controller=listener.describe_controller(name),
            nodes=tuple(sorted(listener.nodes())),
            topics={key: listener.topic(topic) for key, topic in topics.items()},
            joint_state_topics=tuple(topic for topic, types in found if _JOINT_STATE in types),
            joint_states=joint_states,
            malformed=malformed,
            controller_states=received if states else None,
            commands_effort=bool(states and len(states[-1][1].output.effort)),
            descriptions=tuple({m.data: None for _, m in listener.heard('robot_description')}),
            configured_description=urdf,
            running_goals=sum(
                s.status in parts.RUNNING for m in goals[-1:] for s in m.status_list
            ),
            clock=np.array(clock, np.int64).reshape(-1, 2).T,
            manager=listener.manager(),
            environment={**os.environ, **given},
            free_space=free_space(configuration.recorder.folder),
        )
