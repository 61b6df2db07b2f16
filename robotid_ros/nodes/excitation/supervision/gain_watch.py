"""Whether the controller keeps its gains while it is used: a session is recorded with one set."""

from collections.abc import Mapping
from typing import Any

from rcl_interfaces.msg import ParameterEvent
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python

from ....exceptions import RobotStateError
from ...common.batched_subscription import BatchedSubscription

# Every node tells here of its parameters, those that change among them.
EVENTS, GAINS = '/parameter_events', 'gains.'


class GainWatch:
    """
    Hears of changed gains, other than those that the session itself sets.

    Parameters
    ----------
    node : that subscribes
    controller : its name

    """

    def __init__(self, node: Node, controller: str):
        self._controller = node.resolve_topic_name(controller)
        self._events = BatchedSubscription(node, ParameterEvent, EVENTS)
        self._expected: dict[str, Any] = {}

    def expect(self, values: Mapping[str, Any]) -> None:
        """Take parameters of the controller, present or about to be set, for the right ones."""
        self._expected |= {k: v for k, v in values.items() if k.startswith(GAINS)}

    def check(self) -> None:
        """
        Check what has been changed since the last call.

        Raises
        ------
        RobotStateError : a gain; says which, from what and to what

        """
        for event in self._events.take_messages():
            if event.node != self._controller:
                continue
            for parameter in (*event.new_parameters, *event.changed_parameters):
                name, value = parameter.name, parameter_value_to_python(parameter.value)
                before = self._expected.get(name, value)
                if not _same(value, before):
                    raise RobotStateError(
                        f"{name} of '{self._controller}' was changed from {before} to "
                        f'{value} during the session: run it again with gains that stay'
                    )

    def close(self) -> None:
        """Unsubscribe."""
        self._events.close()


def _same(value: Any, other: Any) -> bool:
    """Whether two values of a parameter are equal; NaN, which an unset bound has, equals NaN."""
    return bool(value == other or (value != value and other != other))
