"""A client that drives a session as a user would: over services and topics only."""

from collections.abc import Mapping
import contextlib
import functools
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.client import Client
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from robotid_ros.exceptions import RobotIdError
from robotid_ros.nodes.common.messages import values_of
from robotid_ros.nodes.common.runtime import LATCHED_HISTORY, lone_node
from robotid_ros.nodes.common.waiting import result_of, wait_until

LATCHED_TOPICS: dict[str, type] = {
    'excitation/state': DiagnosticStatus,
    'excitation/verification': DiagnosticArray,
    'feedforward/state': DiagnosticStatus,
    'feedforward/tracking': DiagnosticArray,
    'gravity_compensation/state': DiagnosticStatus,
    'recorder/state': DiagnosticStatus,
    'recorder/bag': String,
    'identification/state': DiagnosticStatus,
    'identification/parameters': DiagnosticArray,
    'identification/robot_description': String,
    'identification/validation/summary': DiagnosticArray,
    'identification/proposed_gains': DiagnosticArray,
    'simulated_robot/true_parameters': DiagnosticArray,
}
SERVICES: dict[str, type] = {
    'excitation/start': Trigger,
    'excitation/stop': Trigger,
    'excitation/verify': Trigger,
    'excitation/verify_gains': Trigger,
    'excitation/verify_static': Trigger,
    'recorder/record': SetBool,
    'identification/update_controller': Trigger,
}


class SessionClient:
    """
    Keeps the messages of every latched topic, and calls services.

    Parameters
    ----------
    domain : ROS domain id; None: the environment's
    services : further services that will be called, with their types
    namespace : of the session's nodes

    """

    def __init__(
        self,
        domain: int | None = None,
        services: Mapping[str, type] | None = None,
        namespace: str = '/',
    ):
        self._ends = contextlib.ExitStack()
        self.node = self._ends.enter_context(lone_node('session_client', namespace, domain))
        # Made before the subscriptions, and kept: the middleware loses the answer to a client that
        # the server does not know yet, and who has sent a state knows what was here before them.
        self._clients: dict[str, Client] = {}
        for service, service_type in {**SERVICES, **(services or {})}.items():
            self._client(service_type, service)
        self.context = self.node.context
        self.latest: dict[str, Any] = {}
        self.history: dict[str, list[Any]] = {topic: [] for topic in LATCHED_TOPICS}
        for topic, message_type in LATCHED_TOPICS.items():
            self.node.create_subscription(
                message_type, topic, functools.partial(self._keep, topic), LATCHED_HISTORY
            )

    def state(self, node: str) -> str:
        """Last state of a node, '' before the first one."""
        return self.value(node, 'state')

    def message(self, node: str) -> str:
        """Sentence of the last state of a node."""
        found = self.latest.get(f'{node}/state')
        return found.message if found is not None else ''

    def value(self, node: str, key: str) -> str:
        """One value of the last state of a node."""
        found = self.latest.get(f'{node}/state')
        return values_of(found).get(key, '') if found is not None else ''

    def states(self, node: str) -> list[str]:
        """All states that a node has been in, each once in a row."""
        names = [values_of(m).get('state', '') for m in self.history[f'{node}/state']]
        return [name for k, name in enumerate(names) if k == 0 or name != names[k - 1]]

    def call_trigger(self, service: str, timeout: float = 10.0) -> str:
        """Call a Trigger service; no answer, or a refusal, is a RobotIdError."""
        return self._call(Trigger, service, Trigger.Request(), timeout)

    def call_set_bool(self, service: str, on: bool, timeout: float = 10.0) -> str:
        """Call a SetBool service; errors as in `call_trigger`."""
        return self._call(SetBool, service, SetBool.Request(data=on), timeout)

    def call(self, service_type: type, service: str, request: Any, timeout: float = 10.0) -> Any:
        """Call any service; no answer is a ControllerError."""
        client = self._client(service_type, service)
        wait_until(client.service_is_ready, timeout, what=f"nobody serves '{service}'")
        return result_of(client.call_async(request), timeout, service)

    def forget(self, topic: str) -> None:
        """Forget what was said on a topic so far."""
        self.latest.pop(topic, None)
        self.history[topic].clear()

    def close(self) -> None:
        """Leave the graph."""
        self._ends.close()

    def _call(self, service_type: type, service: str, request: Any, timeout: float) -> str:
        answer = self.call(service_type, service, request, timeout)
        if not answer.success:
            raise RobotIdError(f"'{service}' refused: {answer.message}")
        return str(answer.message)

    def _client(self, service_type: type, service: str) -> Client:
        if service not in self._clients:
            self._clients[service] = self.node.create_client(service_type, service)
        return self._clients[service]

    def _keep(self, topic: str, message: Any) -> None:
        self.latest[topic] = message
        self.history[topic].append(message)

    def __enter__(self) -> 'SessionClient':
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
