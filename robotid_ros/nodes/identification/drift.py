"""Drift of friction, offsets and payload, live as topics."""

from collections.abc import Sequence
from datetime import datetime, timezone
import math

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import numpy as np
from rclpy.node import Node

from ...core.model import Robot
from ...core.monitoring.change_tests import FRICTION, OFFSET, ParameterGroup, PAYLOAD
from ...core.monitoring.drift_monitor import DriftChange, DriftMonitor
from ...files.formats.joint_table import JointTable
from ...node_settings import IdentificationNodeSettings
from ..common.messages import format_seconds, format_value, status, status_array
from ..common.runtime import LATCHED, publish_diagnostics
from .outcome import IdentificationOutcome

# A joint that has not moved for so long is said to lack motion [s].
LONG_AGO = 60.0
# Stamps from this year on are dates, earlier ones simulated time.
FIRST_YEAR = datetime(2000, 1, 1, tzinfo=timezone.utc).timestamp()


def drift_message(monitor: DriftMonitor, stamp: Time) -> DiagnosticArray:
    """
    One status per joint or coupling, and one of the payload.

    Each value reads 'value; σ; identified; unit', numbers with full precision.
    """
    names = dict.fromkeys(_name(group) for group in monitor.followed.groups)
    return status_array(stamp, (_status(monitor, name) for name in names))


def summary_status(monitor: DriftMonitor | None, joints: Sequence[str]) -> DiagnosticStatus:
    """Return everything in one status, for `/diagnostics`."""
    if monitor is None:
        return status('', 'waiting for an identification', {})
    told = [change_text(change) for change in monitor.changes.values()]
    resting = [j for k, j in enumerate(joints) if _rests(monitor, k)]
    values = {_name(change.group): change_text(change) for change in monitor.changes.values()}
    if monitor.suspicion is not None:
        group, since = monitor.suspicion
        values['looking_at'] = f'{group.kind} of {group.name} since {clock_text(since)}'
    text = '; '.join(told) or 'as identified'
    if len(resting) == len(joints):
        text = f'not enough motion since {clock_text(int(monitor.last_motion.max()))}; {text}'
    elif resting:
        values['not_enough_motion'] = ', '.join(resting)
    return status('', text, values, warn=bool(told))


def change_text(change: DriftChange) -> str:
    """Say what changed, by how much, and what to do."""
    group, since = change.group, clock_text(change.since)
    if change.reverted:
        return f'{group.kind} of {group.name} as identified again since {since}'
    if group.kind == PAYLOAD:
        mass, sigma = change.value[0], change.sigma[0]
        where = ''
        if abs(mass) > 3.0 * sigma:
            x, y, z = 1e3 * change.value[1:] / mass
            where = f', centre {x:.0f} {y:.0f} {z:.0f} mm from the last joint'
        return (
            f'payload {mass:+.3g} kg (σ {sigma:.2g}){where}, since {since}: tell the controller, '
            'or identify again'
        )
    if group.kind == OFFSET:
        return (
            f'offset of {group.name} {change.value[0]:+.3g} (σ {change.sigma[0]:.2g}) since '
            f'{since}: set its sensor to zero, or identify again'
        )
    size = '' if math.isnan(change.share) else f' {100.0 * change.share:+.0f} %'
    return (
        f'friction of {group.name}{size} since {since}: look at drive and lubrication, or '
        'identify again'
    )


def clock_text(stamp: int) -> str:
    """Say a stamp [ns] as a date, of simulated time as seconds."""
    if stamp * 1e-9 < FIRST_YEAR:
        return f'{stamp * 1e-9:.1f} s'
    return datetime.fromtimestamp(stamp // 10**9, timezone.utc).strftime('%Y-%m-%d %H:%M:%S UTC')


def _status(monitor: DriftMonitor, name: str) -> DiagnosticStatus:
    groups = [group for group in monitor.followed.groups if _name(group) == name]
    told = [monitor.changes[group] for group in groups if group in monitor.changes]
    followed, (value, sigma) = monitor.followed, monitor.estimate()
    values = {}
    for k in (k for group in groups for k in group.members):
        numbers = (float(value[k]), float(sigma[k]), float(followed.identified[k]))
        values[followed.names[k]] = '; '.join([*map(format_value, numbers), followed.units[k]])
    for change in told:
        values |= _told_values(change)
    parts = [change_text(change) for change in told]
    joints = groups[0].joints
    if all(_rests(monitor, joint) for joint in joints):
        last = max(int(monitor.last_motion[joint]) for joint in joints)
        parts.append(f'not enough motion since {clock_text(last)}')
    if monitor.suspicion is not None and monitor.suspicion[0] in groups:
        parts.append(f'a change since {clock_text(monitor.suspicion[1])} is looked at')
    return status(name, '; '.join(parts) or 'as identified', values, warn=bool(told))


def _told_values(change: DriftChange) -> dict[str, str]:
    """Return a change as values, by what it is of."""
    kind, value, sigma = change.group.kind, change.value.tolist(), change.sigma.tolist()
    numbers = {
        FRICTION: {'friction_change': change.share},
        OFFSET: {'offset_change': value[0], 'offset_change_sigma': sigma[0]},
        PAYLOAD: {
            'payload_mass': value[0],
            'payload_mass_sigma': sigma[0],
            **{f'payload_first_moment_{k}': x for k, x in zip('xyz', value[1:], strict=False)},
        },
    }
    shown = {key: format_value(number) for key, number in numbers[kind].items()}
    return {f'{kind}_since': format_seconds(change.since), **shown}


def _rests(monitor: DriftMonitor, joint: int) -> bool:
    """Whether a joint has not moved for long, or never enough to be known."""
    ago = (monitor.stamp - int(monitor.last_motion[joint])) * 1e-9
    return ago > LONG_AGO or not monitor.enough()[joint]


def _name(group: ParameterGroup) -> str:
    return 'payload' if group.kind == PAYLOAD else group.name


PERIOD = 1.0  # of the topic [s]


class DriftTopics:
    """Publishes `~/drift` and a status on `/diagnostics` once there is a model."""

    def __init__(self, node: Node, settings: IdentificationNodeSettings):
        self._node, self._settings = node, settings
        self._joints: Sequence[str] = ()
        self._monitor: DriftMonitor | None = None
        if settings.drift.active:
            self._publisher = node.create_publisher(DiagnosticArray, '~/drift', LATCHED)
            node.create_timer(PERIOD, self._publish)
            publish_diagnostics(node, 'drift', self._diagnose)

    def start(self, robot: Robot, outcome: IdentificationOutcome) -> None:
        """Follow the parameters of a new model from now on."""
        if self._settings.drift.active:
            settings = self._settings
            sigma, residual = identified_accuracy(robot, outcome)
            self._joints = robot.joints
            self._monitor = DriftMonitor(
                robot, outcome.standard, sigma, residual, settings.drift,
                settings.live_cutoff, settings.signals.standstill,
            )  # fmt: skip

    def update(self, states: JointTable) -> None:
        """Take in joint states; log what is told."""
        if self._monitor is not None:
            told = self._monitor.update(states.stamp, states.position, states.effort)
            for change in told:
                self._node.get_logger().warn(change_text(change))
            if told:
                self._publish()

    def _publish(self) -> None:
        if self._monitor is not None and self._monitor.stamp:
            stamp = self._node.get_clock().now().to_msg()
            self._publisher.publish(drift_message(self._monitor, stamp))

    def _diagnose(self) -> DiagnosticStatus:
        return summary_status(self._monitor, self._joints)


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
