"""What a node says about itself on `/diagnostics`, for rqt_robot_monitor and aggregators."""

from collections.abc import Callable

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.clock import Clock, ClockType
from rclpy.node import Node

TOPIC = '/diagnostics'
# As REP 107 has it [s].
PERIOD = 1.0


class Diagnostics:
    """
    Publishes a node's status on `/diagnostics` once a second, as REP 107 asks for.

    Parameters
    ----------
    node : whose executor publishes; the status is named `<node>: <task>`, namespace included
    task : what the status is about
    current : makes its status of now; called in the executor's thread

    """

    def __init__(self, node: Node, task: str, current: Callable[[], DiagnosticStatus]):
        self._node, self._current = node, current
        self._name = f'{node.get_fully_qualified_name().lstrip("/")}: {task}'
        self._publisher = node.create_publisher(DiagnosticArray, TOPIC, 10)
        # A paused simulation must not silence its diagnostics.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(PERIOD, self._publish, clock=steady)

    def _publish(self) -> None:
        current = self._current()
        current.name = self._name
        message = DiagnosticArray(status=[current])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)
