"""Drift of friction, offsets and payload, live as topics."""

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import numpy as np
from rclpy.node import Node

from ...core.model import Robot
from ...core.monitoring.drift_monitor import DriftMonitor
from ...node_settings import IdentificationNodeSettings
from ..common.messages import JointStateArrays
from ..common.runtime import LATCHED, publish_diagnostics
from .drift_messages import change_text, drift_message, summary_status
from .outcome import IdentificationOutcome

PERIOD = 1.0  # of the topic [s]


class DriftTopics:
    """
    Publishes `~/drift` and a status on `/diagnostics` once there is a model.

    Parameters
    ----------
    node : whose topics these are
    settings : of the node

    """

    def __init__(self, node: Node, settings: IdentificationNodeSettings):
        self._node, self._settings = node, settings
        self._live: tuple[Robot, DriftMonitor] | None = None
        if settings.drift.active:
            self._publisher = node.create_publisher(DiagnosticArray, '~/drift', LATCHED)
            node.create_timer(PERIOD, self._publish)
            publish_diagnostics(node, 'drift', self._diagnose)

    def start(self, robot: Robot, outcome: IdentificationOutcome) -> None:
        """Follow the parameters of a new model from now on."""
        if self._settings.drift.active:
            settings = self._settings
            sigma, residual = identified_accuracy(robot, outcome)
            self._live = robot, DriftMonitor(
                robot, outcome.standard, sigma, residual, settings.drift,
                settings.live_cutoff, settings.signals.standstill,
            )  # fmt: skip

    def update(self, states: JointStateArrays) -> None:
        """Take in joint states; log what is told."""
        if self._live is not None:
            _, monitor = self._live
            told = monitor.update(states.stamp, states.position, states.effort)
            for change in told:
                self._node.get_logger().warn(change_text(change))
            if told:
                self._publish()

    def _publish(self) -> None:
        if self._live is not None and self._live[1].stamp:
            monitor = self._live[1]
            stamp = self._node.get_clock().now().to_msg()
            self._publisher.publish(drift_message(monitor, stamp))

    def _diagnose(self) -> DiagnosticStatus:
        robot, monitor = self._live or (None, None)
        return summary_status(monitor, robot.joints if robot is not None else ())


def identified_accuracy(
    robot: Robot, outcome: IdentificationOutcome
) -> tuple[np.ndarray, np.ndarray]:
    """Return σ of the parameters (p,), and what is left of the joints' efforts (n,)."""
    results = outcome.results
    sigmas = {entry.column: entry.sigma for entry in results.base}
    sigma = np.array([sigmas.get(p.name, 0.0) for p in robot.parameters])
    rows = {row.joint: row for row in results.validation or results.identification}
    left = (rows.get(joint) for joint in robot.joints)
    residual = np.array([0.0 if row is None else row.reported * row.torque for row in left])
    return np.nan_to_num(sigma), np.nan_to_num(residual)
