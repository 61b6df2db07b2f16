"""Live as topics: efforts, contacts and drift by a model, and what a session knows of one."""

from collections.abc import Iterator
from contextlib import closing
import dataclasses
from datetime import datetime, timezone
from importlib import import_module
import math
import threading
import time
from typing import Any, TYPE_CHECKING

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from ...core.arrays import Array
from ...core.excitation.settings import payload_settings
from ...core.model import build_robot, inverse_dynamics, Robot
from ...core.model.dynamics import RobotDynamics
from ...core.monitoring.drift_monitor import (
    DriftChange,
    DriftMonitor,
    FRICTION,
    OFFSET,
    ParameterGroup,
    PAYLOAD,
)
from ...core.monitoring.external_effort import (
    Contact,
    ContactDetector,
    ContactThresholds,
    effort_sigma,
    ExternalEffortEstimator,
    ExternalWrench,
)
from ...core.monitoring.motion_rows import FilteredStates, LIVE_CUTOFF
from ...exceptions import RecordingError, RobotIdError
from ...files.formats.joint_table import JointTable
from ...files.results import dump_known
from ..common import messages, runtime
from ..common.batched_subscription import BatchedSubscription
from ..common.messages import one_line, stack_joint_states, State, status, status_array, values_of
from ..common.runtime import ConfiguredNode, LATCHED, WorkerNode
from .result_messages import effort_message, IdentificationOutcome

if TYPE_CHECKING:
    from ...core.monitoring.progress import Knowledge
    from ...core.signals.recording import Recording

# From one message of `~/drift` or `~/progress` to the next; length of a motion's pieces [s].
PERIOD = 1.0
# Longer silence, and a clock that was set back by more, start the filter anew [s]: the straight
# line between two samples would bridge it with a velocity that the robot never had.
MAX_GAP = 0.5


class LivePrediction:
    """Predicts efforts by parameters (p,), from joint states through a causal filter."""

    def __init__(self, robot: Robot, standard: Array):
        self._robot, self._standard = robot, standard
        self._states = FilteredStates(robot.drive_gain, LIVE_CUTOFF, MAX_GAP)

    def update(self, stamp: np.ndarray, position: Array, effort: Array) -> None:
        """Take in joint states: stamps [ns], positions and efforts as published, (N, n)."""
        for sample in zip(stamp.tolist(), position, effort, strict=True):
            self._states.take(*sample)

    def predict(self) -> tuple[int, Array, Array | None] | None:
        """Return last stamp [ns], predicted effort, residual (n,), None where not known."""
        states = self._states
        if not states.started:
            return None
        motion = (row[None] for row in states.motion)
        predicted = inverse_dynamics(self._robot, self._standard, *motion)[0]
        residual = states.effort - predicted if states.effort_reported else None
        return states.stamp, predicted, residual


DEPTH = 100  # joint states at 1 kHz that a subscriber may be late by [messages]
# What follows the joint states of one model.
_Live = tuple[ContactThresholds, ExternalEffortEstimator, ContactDetector, ExternalWrench]


class ExternalEffortTopics:
    """Publishes external efforts for every joint state once there is a model."""

    def __init__(self, node: ConfiguredNode):
        self._node = node
        self._publishers = [
            node.create_publisher(kind, f'~/{name}', DEPTH)
            for kind, name in (
                (JointState, 'external_effort'),
                (JointState, 'external_effort/threshold'),
                (WrenchStamped, 'external_wrench'),
                (WrenchStamped, 'external_wrench/sigma'),
            )
        ]
        self._contacts = node.create_publisher(DiagnosticStatus, '~/contact', LATCHED)
        self._live: _Live | None = None

    def start(self, robot: Robot, outcome: IdentificationOutcome) -> None:
        """Observe with a new model from now on, or say why not."""
        self._live = None
        configuration, thresholds = self._node.configuration, outcome.thresholds
        settings, contact = configuration.identification, configuration.identification.contact
        frame = contact.frame or configuration.excitation.workspace.frame
        try:
            if isinstance(thresholds, str):
                raise RecordingError(thresholds)
            model = RobotDynamics(robot, outcome.consistent)
            live = (
                thresholds,
                ExternalEffortEstimator(model, contact, settings.signals.standstill),
                ContactDetector(robot.joints, thresholds),
                ExternalWrench(model, frame, contact.force, contact.torque),
            )
        except RobotIdError as error:
            reason = f'external efforts are not observed: {one_line(error)}'
            self._node.get_logger().warning(reason)
        else:
            self._contacts.publish(contact_message(None))
            self._live = live

    def update(self, states: JointTable) -> None:
        """Take in joint states."""
        if self._live is None:
            return
        thresholds, estimator, detector, wrench = self._live
        asked = [bool(p.get_subscription_count()) for p in self._publishers]
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
            made = (
                effort_message(states.joints, seen.stamp, seen.effort),
                effort_message(states.joints, seen.stamp, detector.threshold),
                wrench_message(wrench.frame, seen.stamp, force),
                wrench_message(wrench.frame, seen.stamp, spread),
            )
            for publisher, message, wanted in zip(self._publishers, made, asked, strict=True):
                if wanted:
                    publisher.publish(message)


def wrench_message(frame: str, stamp: int, wrench: Array) -> WrenchStamped:
    """Return force and torque (6,) at the origin of a frame, in its axes."""
    message = WrenchStamped(header=Header(stamp=messages.to_time(stamp), frame_id=frame))
    force, torque = message.wrench.force, message.wrench.torque
    force.x, force.y, force.z, torque.x, torque.y, torque.z = wrench.tolist()
    return message


def contact_message(contact: Contact | None) -> DiagnosticStatus:
    """Return whether something touches the robot, and where and when it did last."""
    if contact is None:
        return status('contact', 'no contact', {'contact': False, 'number': 0})
    stamp = messages.format_seconds(contact.stamp)
    values = {'contact': contact.present, 'joint': contact.joint, 'stamp': stamp}
    values |= {name: getattr(contact, name) for name in ('effort', 'threshold', 'number')}
    text = f'{"contact" if contact.present else "the last contact was"} at {contact.joint}'
    return status('contact', text, values, warn=contact.present)


LONG_AGO = 60.0  # a joint that has not moved for so long has its last motion told [s]
# Stamps from this year on are dates, earlier ones simulated time.
FIRST_YEAR = datetime(2000, 1, 1, tzinfo=timezone.utc).timestamp()
AS_IDENTIFIED = 'as identified'


class DriftTopics:
    """Publishes `~/drift` and a status on `/diagnostics` once there is a model."""

    def __init__(self, node: ConfiguredNode):
        self._node, self._settings = node, node.configuration.identification
        self._monitor: DriftMonitor | None = None
        if self._settings.drift.active:
            self._publisher = node.create_publisher(DiagnosticArray, '~/drift', LATCHED)
            node.create_timer(PERIOD, self._publish)
            runtime.publish_diagnostics(node, 'drift', lambda: drift_summary(self._monitor))

    def start(self, robot: Robot, outcome: IdentificationOutcome) -> None:
        """Follow the parameters of a new model from now on."""
        settings, results = self._settings, outcome.results
        if not settings.drift.active:
            return
        sigmas = {entry.column: entry.sigma for entry in results.base}
        sigma = np.array([sigmas.get(p.name, 0.0) for p in robot.parameters])
        # What is left of the joints' efforts.
        fits = results.validation or results.identification
        left = {row.joint: row.reported * row.torque for row in fits}
        residual = np.array([left.get(joint, 0.0) for joint in robot.joints])
        known = outcome.chi, np.nan_to_num(sigma), np.nan_to_num(residual)
        limits = settings.drift, LIVE_CUTOFF, settings.signals.standstill
        self._monitor = DriftMonitor(robot, *known, *limits)

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
            self._publisher.publish(status_array(stamp, drift_statuses(self._monitor)))


def drift_statuses(monitor: DriftMonitor) -> list[DiagnosticStatus]:
    """One status per joint or coupling, and the payload's: 'value; σ; identified; unit' each."""
    groups_of, statuses = dict[str, list[ParameterGroup]](), []
    for group in monitor.followed.groups:
        name = 'payload' if group.kind == PAYLOAD else group.name
        groups_of.setdefault(name, []).append(group)
    followed, (value, sigma) = monitor.followed, monitor.estimate()
    motions, enough = monitor.last_motion, monitor.enough()
    ago = (monitor.stamp - np.array(motions)) * 1e-9
    for name, groups in groups_of.items():
        told = [monitor.changes[group] for group in groups if group in monitor.changes]
        values = dict[str, Any]()
        for k in (k for group in groups for k in group.members):
            numbers = (float(value[k]), float(sigma[k]), float(followed.identified[k]))
            values[followed.names[k]] = '; '.join(
                [*map(messages.format_value, numbers), followed.units[k]]
            )
        for change in told:
            kind, now, error = change.group.kind, change.value.tolist(), change.sigma.tolist()
            values[f'{kind}_since'] = messages.format_seconds(change.since)
            if kind == FRICTION:
                values['friction_change'] = change.share
            elif kind == OFFSET:
                values |= {'offset_change': now[0], 'offset_change_sigma': error[0]}
            elif kind == PAYLOAD:
                values |= {'payload_mass': now[0], 'payload_mass_sigma': error[0]}
                moments = zip('xyz', now[1:], strict=False)
                values |= {f'payload_first_moment_{axis}': x for axis, x in moments}
        parts = [change_text(change) for change in told]
        # Joints that have not moved for long, or never enough to be known.
        if all(ago[joint] > LONG_AGO or not enough[joint] for joint in groups[0].joints):
            last = max(int(motions[joint]) for joint in groups[0].joints)
            parts.append(f'not enough motion since {clock_text(last)}')
        statuses.append(status(name, '; '.join(parts) or AS_IDENTIFIED, values, warn=bool(told)))
    return statuses


def drift_summary(monitor: DriftMonitor | None) -> DiagnosticStatus:
    """Return everything in one status, for `/diagnostics`."""
    if monitor is None:
        return status('', 'waiting for an identification', {})
    told = '; '.join(change_text(change) for change in monitor.changes.values())
    notes = {each.name: each.message for each in drift_statuses(monitor)}
    notes = {name: text for name, text in notes.items() if text != AS_IDENTIFIED}
    return status('', told or AS_IDENTIFIED, notes, warn=bool(told))


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


# The first piece, by which filters and delays are chosen: share of a period, and most of it [s].
FIRST_SHARE, LONGEST_FIRST = 0.8, 20.0
# How often joint states are taken [s], how many may wait (5 s at 1 kHz), and how many such parts
# a piece may have, should stamps stand still.
POLL_PERIOD, WAITING, MOST_PARTS = 0.1, 5000, 300
CORE_SHARE = 0.1  # most of a core that looks at what is known may take
WORST = 3  # parameters that are named


class ProgressTopic:
    """Follows the excitation where more than its time is asked for, until the node's `stop`."""

    def __init__(self, node: WorkerNode, stop: threading.Event):
        self._stop = stop
        self._node, self._excitation = node, payload_settings(node.configuration.excitation)
        # Of a payload, predictions of the arm are not asked for.
        carries, until = self._excitation.payload.mass, self._excitation.until
        self._until = dataclasses.replace(until, prediction=0.0) if carries else until
        self._session = self._state = ''
        self._known: Knowledge | None = None
        self._refusal = ''  # why the session is not followed, '' while it is
        if self._until.asks:
            self._publisher = node.create_publisher(DiagnosticStatus, '~/progress', LATCHED)
            self._known_publisher = node.create_publisher(DiagnosticStatus, '~/known', LATCHED)
            node.create_subscription(
                DiagnosticStatus, 'excitation/state', self._on_state, runtime.LATCHED_HISTORY
            )
            node.create_timer(PERIOD, self._publish, clock=runtime.STEADY)

    def _on_state(self, message: DiagnosticStatus) -> None:
        values = values_of(message)
        self._state, session = values.get('state', ''), values.get('session', '')
        if self._state == State.APPROACHING.value and session != self._session:
            self._session, self._known, self._refusal = session, None, ''
            self._publish()
            runtime.start_thread(self._follow, session)

    def _follow(self, session: str) -> None:
        """Follow a session to the end of its excitation."""
        from ...core.model.pinocchio_model import body_frame
        from ...core.monitoring.progress import follow

        for name in ('scipy.interpolate', 'scipy.optimize'):  # the robot would wait for them
            import_module(name)
        configuration = self._node.configuration
        settings = configuration.identification
        try:
            robot = build_robot(self._node.wait_for_urdf(), configuration.robot)
            frame = settings.payload.frame or self._excitation.workspace.frame
            carrier = body_frame(robot, frame) if self._excitation.payload.mass else None
            pieces = self._pieces(session, robot)
            for known in follow(pieces, robot, settings, self._until, carrier):
                if session == self._session:
                    self._known = known
                    self._publish()
                    if known.design is not None and not known.enough(self._until):
                        text = dump_known(*known.design)
                        told = status('known', 'so far', {'session': session, 'known': text})
                        self._known_publisher.publish(told)
        except Exception as error:
            if self._stop.is_set():  # what the node has is gone
                return
            if session == self._session:
                self._refusal = one_line(error)
                self._publish()
                self._node.get_logger().info(f'the motion is not followed: {self._refusal}')
            if not isinstance(error, RobotIdError):
                raise

    def _is(self, session: str, state: State) -> bool:
        current = self._session == session and self._state == state.value
        return current and not self._stop.is_set()

    def _pieces(self, session: str, robot: Robot) -> 'Iterator[Recording]':
        """Yield pieces of the excitation as they are over."""
        from ...core.signals.recording import Recording

        first = min(FIRST_SHARE * self._excitation.period, LONGEST_FIRST)
        parts, origin, wanted = list[JointTable](), 0, first
        states = BatchedSubscription(self._node, JointState, 'joint_states', depth=WAITING)
        with closing(states) as stream:
            while self._is(session, State.APPROACHING):
                list(stream.take_serialized())
                time.sleep(POLL_PERIOD)
            while self._is(session, State.EXCITING):
                time.sleep(POLL_PERIOD)
                part = stack_joint_states(stream.take_messages(), robot.joints)
                if len(part.stamp):
                    parts = [*parts[-MOST_PARTS:], part]
                if not parts or parts[-1].stamp[-1] - parts[0].stamp[0] < wanted * 1e9:
                    continue
                stamp, position, effort = (
                    np.concatenate([getattr(each, name) for each in parts])
                    for name in ('stamp', 'position', 'effort')
                )
                parts, origin = [], origin or int(stamp[0])
                begin, known = time.thread_time(), self._known
                yield Recording(robot.joints, (stamp - origin) * 1e-9, position, effort)
                # A first piece that told nothing, as gaps are in it, is followed by another one.
                spent = 0.0 if known is None else time.thread_time() - begin
                rest = min(max(PERIOD, spent / CORE_SHARE), LONGEST_FIRST)
                wanted = first if self._known is None else rest

    def _publish(self) -> None:
        """Say what is known; whoever hears nothing any more runs on as planned."""
        following = self._is(self._session, State.APPROACHING)
        if not following and not self._is(self._session, State.EXCITING):
            return
        known, until = self._known, self._until
        values: dict[str, Any] = {'session': self._session, 'following': not self._refusal}
        text = self._refusal or 'nothing is known yet'
        if known is not None and not self._refusal:
            worst, joint = known.worst, known.joints[known.worst]
            values |= {'enough': known.enough(until), 'motion': known.time, 'joint': joint}
            values['prediction'] = float(known.error[worst])
            values['prediction_highest'] = float(known.highest[worst])
            values['prediction_after_period'] = known.error_after(self._excitation.period)
            values['model'] = float(np.nanmax(known.model, initial=0.0))
            names = dict.fromkeys([*until.sigma, *list(known.sigma)[:WORST]])
            values |= {f'sigma.{name}': known.sigma.get(name, np.inf) for name in names}
            text = (
                f'{joint} is predicted within {values["prediction"]:.1%}, after another period '
                f'{values["prediction_after_period"]:.1%}; error of the model '
                f'{values["model"]:.1%}'
            )
        self._publisher.publish(status('progress', text, values, warn=bool(self._refusal)))
