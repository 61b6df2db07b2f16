"""External efforts, the wrench that explains them, and contacts, live as topics."""

from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from ...core.arrays import Array
from ...core.model import Robot
from ...core.model.dynamics import RobotDynamics
from ...core.monitoring.contact_detector import (
    Contact,
    ContactDetector,
    ContactThresholds,
    effort_sigma,
    ExternalWrench,
)
from ...core.monitoring.external_effort import ExternalEffortEstimator
from ...exceptions import RecordingError, RobotIdError
from ...files.configuration import Configuration
from ...files.formats.joint_table import JointTable
from ..common.messages import format_seconds, one_line, status, status_array, to_time
from ..common.runtime import LATCHED
from .outcome import IdentificationOutcome
from .result_messages import effort_message

# Joint states at 1 kHz that a subscriber may be late by [messages].
DEPTH = 100


# What follows the joint states of one model.
_Live = tuple[ContactThresholds, ExternalEffortEstimator, ContactDetector, ExternalWrench]


class ExternalEffortTopics:
    """Publishes external efforts for every joint state once there is a model."""

    def __init__(self, node: Node):
        self._node = node
        self._efforts, self._limits = (
            node.create_publisher(JointState, f'~/external_effort{name}', DEPTH)
            for name in ('', '/threshold')
        )
        self._wrenches, self._sigmas = (
            node.create_publisher(WrenchStamped, f'~/external_wrench{name}', DEPTH)
            for name in ('', '/sigma')
        )
        self._contacts = node.create_publisher(DiagnosticStatus, '~/contact', LATCHED)
        self._thresholds = node.create_publisher(DiagnosticArray, '~/contact_thresholds', LATCHED)
        self._live: _Live | None = None

    def start(
        self, robot: Robot, outcome: IdentificationOutcome, configuration: Configuration
    ) -> None:
        """Observe with a new model from now on, or say why not."""
        self._live = None
        settings, thresholds = configuration.identification, outcome.thresholds
        contact = settings.contact
        frame = contact.frame or configuration.excitation.workspace.frame
        try:
            if isinstance(thresholds, str):
                raise RecordingError(thresholds)
            model = RobotDynamics(robot, outcome.possible)
            live = (
                thresholds,
                ExternalEffortEstimator(model, contact, settings.signals.standstill),
                ContactDetector(robot.joints, thresholds),
                ExternalWrench(model, frame, contact.force, contact.torque),
            )
        except RobotIdError as error:
            logger = self._node.get_logger()
            logger.warning(f'external efforts are not observed: {one_line(error)}')
            return
        stamp = self._node.get_clock().now().to_msg()
        self._thresholds.publish(thresholds_message(robot, thresholds, stamp))
        self._contacts.publish(contact_message(None))
        self._live = live

    def update(self, states: JointTable) -> None:
        """Take in joint states."""
        if self._live is None:
            return
        thresholds, estimator, detector, wrench = self._live
        publishers = self._efforts, self._limits, self._wrenches, self._sigmas
        asked = [bool(p.get_subscription_count()) for p in publishers]
        for sample in zip(states.stamp.tolist(), states.position, states.effort, strict=True):
            seen = estimator.take(*sample)
            if seen is None:
                continue
            if detector.take(seen):
                self._contacts.publish(contact_message(detector.contact))
            if not any(asked):
                continue
            sigma = effort_sigma(seen, thresholds)
            force, spread = wrench.estimate(seen.position, seen.effort, sigma)
            messages = (
                effort_message(states.joints, seen.stamp, seen.effort),
                effort_message(states.joints, seen.stamp, detector.threshold),
                wrench_message(wrench.frame, seen.stamp, force),
                wrench_message(wrench.frame, seen.stamp, spread),
            )
            for publisher, message, wanted in zip(publishers, messages, asked, strict=True):
                if wanted:
                    publisher.publish(message)


def wrench_message(frame: str, stamp: int, wrench: Array) -> WrenchStamped:
    """Return force and torque (6,) at the origin of a frame, in its axes."""
    message = WrenchStamped(header=Header(stamp=to_time(stamp), frame_id=frame))
    force, torque = message.wrench.force, message.wrench.torque
    force.x, force.y, force.z, torque.x, torque.y, torque.z = wrench.tolist()
    return message


def contact_message(contact: Contact | None) -> DiagnosticStatus:
    """Return whether something touches the robot, and where and when it did last."""
    if contact is None:
        return status('contact', 'no contact', {'contact': False, 'number': 0})
    present = contact.present
    return status(
        'contact',
        f'{"contact" if present else "the last contact was"} at {contact.joint}',
        {
            'contact': present,
            'joint': contact.joint,
            'stamp': format_seconds(contact.stamp),
            'effort': contact.effort,
            'threshold': contact.threshold,
            'number': contact.number,
        },
        warn=present,
    )


def thresholds_message(robot: Robot, thresholds: ContactThresholds, stamp: Any) -> DiagnosticArray:
    """One status per joint: σ² = a + b·speed² + c·inertia², its factor, thresholds that follow."""
    statuses = []
    for j, joint in enumerate(robot.joints):
        a, b, c = thresholds.variance[:, j].tolist()
        lowest, highest = float(thresholds.lowest[j]), float(thresholds.highest[j])
        values = {
            **{'a': a, 'b': b, 'c': c, 'factor': float(thresholds.factor[j])},
            **{'lowest': lowest, 'highest': highest},
            'false_alarms_per_hour': thresholds.false_alarms,
        }
        text = (
            f'contact beyond {lowest:.3g} to {highest:.3g} {"N" if robot.prismatic[j] else "N·m"} '
            'by speed and posture, and what dry friction hides near standstill'
        )
        statuses.append(status(joint, text, values))
    return status_array(stamp, statuses)
