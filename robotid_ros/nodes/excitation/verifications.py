"""Verifies on the robot what was identified; what came of it is on a topic and in files."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
import dataclasses
from datetime import datetime, timezone
from functools import cached_property, partial
from pathlib import Path
import threading
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import JointState

from ...core.arrays import any_effort, Array
from ...core.excitation.trajectory import Trajectory, Waypoints, waypoints
from ...core.identification_settings import GainProposalSettings, IdentificationSettings
from ...core.signals.recording import Recording
from ...core.signals.stamp_correction import observed_update_rate
from ...core.verification import feed_forward, gains, tracking
from ...core.verification.feed_forward import REST
from ...core.verification.tracking import Tracking
from ...exceptions import (
    ControllerError,
    RobotIdError,
    RobotStateError,
    SilentRobotError,
    TrajectoryError,
)
from ...files import verification as record
from ...files.configuration import Configuration
from ...files.formats.joint_table import JointTable
from ..common import controller as jtc
from ..common.batched_subscription import decode
from ..common.guardian import Guardian
from ..common.messages import (
    stack_joint_states,
    stamps_to_nanoseconds,
    State,
    status,
    status_array,
    values_of,
)
from ..common.model_node import expect_own, load_model, VerifiedModel
from ..common.runtime import ConfiguredNode, LATCHED
from ..common.worker_process import start_in_process
from .motion_clock import course_of
from .session import Session
from .supervisor import GoalPhase, SessionContext

# How long the last stretch to a posture takes [s]: braking must need less than friction, or joints
# overshoot, come back, and are held from the other side.
CREEP_TIME = 4.0
MEASURING_TIME = 1.0  # for which the noisy efforts of a posture are averaged [s]
# What a worker process may take for a motion [s]: a hundred times what it needs on a free machine.
WORKER_TIME = 600.0
# To this share of the motion the first one with proposed gains grows, before all of it is run.
GROWTH = 0.5
# Tracking error of the growing motion, over that of all of it with the present gains, at which a
# trial ends: friction and weight leave as much of any motion, and less with stiffer gains.
GROWN_ERROR = 2.0
KINDS = 'verify', 'verify_gains', 'verify_static'  # services, and methods that verify
LEAST_STATES = 50  # of a motion: lost ones are no reason to doubt a root mean square
PlainGains = dict[str, dict[str, float]]


@dataclasses.dataclass(frozen=True)
class MotionLog:
    """Serialised messages, and the stamps between which they count, on the robot's clock [ns]."""

    joints: tuple[str, ...]
    states: list[bytes]
    joint_states: list[bytes]
    start: int = 0
    stop: int = 1 << 62

    def tracking(self) -> Tracking:
        """Return the controller's errors; `RobotStateError`: there are next to none."""
        stamp, error, _, _ = self._states
        rows = (stamp >= self.start) & (stamp <= self.stop)
        if rows.sum() < LEAST_STATES:
            raise RobotStateError(
                f'only {rows.sum()} states of the controller arrived in a whole motion: reduce '
                'the load of this machine'
            )
        return Tracking(self.joints, np.multiply(stamp[rows] - self.start, 1e-9), error[rows])

    def recording(self) -> Recording:
        """Return positions and efforts, see `_samples`."""
        stamp, position, effort = self._samples()
        rows = (stamp >= self.start) & (stamp <= self.stop)
        time = np.multiply(stamp[rows] - self.start, 1e-9)
        return Recording(self.joints, time, position[rows], effort[rows], source='the robot')

    def means(self) -> tuple[Array, Array]:
        """Return the mean position and effort (n,), as published."""
        _, position, effort = self._samples()
        if not len(position) or not np.isfinite(effort).all():
            raise RobotStateError('no efforts at rest: is the driver running?')
        return position.mean(axis=0), effort.mean(axis=0)

    def update_rate(self, nominal: float) -> float:
        """Return the controller's rate of updates [Hz]; `RobotStateError`: nothing tells it."""
        steps = np.diff(self._measured.stamp) * 1e-9
        stamp = self._states[0]
        rate = 1.0 / float(np.median(steps)) if len(steps) and np.median(steps) > 0.0 else 0.0
        found = observed_update_rate(nominal, np.multiply(stamp - stamp[:1], 1e-9), rate)
        if not found:
            raise RobotStateError("the controller's states do not show how often it updates")
        return found

    @cached_property
    def _states(self) -> tuple[NDArray[np.int64], Array, Array, Array]:
        """Stamps, tracking errors, positions and commanded efforts of states with errors."""
        messages = (decode(data, jtc.STATE_TYPE) for data in self.states)
        found = [m for m in messages if m and jtc.is_well_formed_state(m, self.joints)]
        stamp, stack = stamps_to_nanoseconds(found), partial(jtc.stack_states, found, self.joints)
        error, position = stack('error'), stack('feedback')
        effort = stack('output', 'effort')
        rows = np.isfinite(error).all(axis=1)
        return stamp[rows], error[rows], position[rows], effort[rows]

    @cached_property
    def _measured(self) -> JointTable:
        states = (decode(data, JointState) for data in self.joint_states)
        return stack_joint_states([m for m in states if m is not None], self.joints)

    def _samples(self) -> tuple[NDArray[np.int64], Array, Array]:
        """Stamps, positions, efforts: commanded ones where joint states hold none."""
        measured = self._measured
        if not any_effort(measured.effort):
            stamp, _, position, effort = self._states
            if (rows := np.isfinite(position + effort).all(axis=1)).any():
                return stamp[rows], position[rows], effort[rows]
        return measured.stamp, measured.position, measured.effort


class Verifications:
    """Verifies on the robot, and publishes `~/verification`."""

    def __init__(self, node: ConfiguredNode):
        self._node, self._newest_results = node, ''
        self._publisher = node.create_publisher(DiagnosticArray, '~/verification', LATCHED)
        node.create_subscription(DiagnosticStatus, 'identification/state', self._on_state, LATCHED)

    def run(self, kind: str, context: SessionContext, motion: Trajectory) -> str:
        """Verify on a motion, as one of `KINDS`; return a sentence. The robot rests afterwards."""
        configuration = self._node.configuration
        folder = find_results(configuration, self._newest_results)
        model = load_model(folder, context.urdf, context.robot_settings)
        found = record.read_verification(model.folder / record.VERIFICATION)
        if found is None or found.results != model.results.created:
            found = record.Verification(model.results.created)
        with closing(VerificationSession(context, model, motion, configuration)) as session:
            found, sentence = getattr(session, kind)(found)
            found = dataclasses.replace(
                found,
                created=datetime.now(timezone.utc).isoformat(timespec='seconds'),
                controller=context.controller.name,
                trajectory=motion.hash,
            )
            record.write_verification(model.folder, found)
            stamp = self._node.get_clock().now().to_msg()
            self._publisher.publish(verification_message(found, stamp))
            try:
                # A verification is worth something without its picture.
                session.result_of(session.start_worker(renew_report, model.folder))
            except RobotIdError as error:
                self._node.get_logger().error(f'the report is as it was before: {error}')
        return sentence

    def _on_state(self, message: DiagnosticStatus) -> None:
        values = values_of(message)
        if values.get('state') == 'done':
            self._newest_results = values.get('folder', '')


class VerificationSession(Session):
    """Moves a robot as it is or as identified; each of `KINDS` adds to what is verified."""

    def __init__(
        self,
        context: SessionContext,
        model: VerifiedModel,
        motion: Trajectory,
        configuration: Configuration,
    ):
        self._model, self._motion = model, motion
        self._identification = configuration.identification
        self._verification = configuration.excitation.verification
        self._points = feed_forward.with_rests(waypoints(motion, context.settings.rate))
        self._closed = threading.Event()
        super().__init__(context)

    def verify(self, found: record.Verification) -> tuple[record.Verification, str]:
        """Run the motion without and with feed-forward, where the controller takes it."""
        self.check_motion(self._points)
        log = self._run_logged('running the motion as it is', self._points)
        of = log, self.description.rate, self._points, self._model, self._identification
        job = self.start_worker(read_present_run, *of)
        before, efforts, points = self.result_of(job)
        found = dataclasses.replace(found, efforts=efforts, tracking=(), reason='')
        worst = max(efforts, key=lambda row: row.relative)
        bound = self._verification.largest_residual
        reason = self.description.why_no_feed_forward
        if not reason and worst.relative > bound:
            reason = (
                f'{100 * worst.relative:.0f} % of the effort of {worst.joint} is not predicted, '
                f'more than {100 * bound:.0f} %: such efforts are not commanded, identify again'
            )
        if reason:
            self.context.node.get_logger().warning(reason)
            sentence = f'verified without feed-forward: {reason}'
            return dataclasses.replace(found, reason=reason), sentence
        self.check_motion(points)
        feed_forward.check_feed_forward(points, self.context.robot, self._settings.effort_share)
        after = self._track('running the motion with feed-forward', points)
        tracking = record.tracking_rows(before, after, self._model.robot.units)
        ratios = [row.ratio for row in tracking]
        sentence = (
            f'with feed-forward the tracking error is {min(ratios):.3g} to {max(ratios):.3g} '
            'times smaller'
        )
        return dataclasses.replace(found, tracking=tracking), sentence

    def verify_gains(self, found: record.Verification) -> tuple[record.Verification, str]:
        """Try gains, if a simulation is for them, on a growing motion; keep better ones."""
        description, model = self.description, self._model
        description.check_gains_are_torques()
        wanted = self._identification.controller_gains
        growing = grown(self._points, GROWTH)
        for points in (self._points, growing):
            self.check_motion(points)
        what = 'running the motion with the present gains'
        of = self._run_logged(what, self._points), description, self._points, model, wanted
        looking = self.start_worker(propose_after_run, *of)
        before = self._track(f'{what} again', self._points)  # while gains are looked for
        first, proposal = self.result_of(looking)
        old, new = (
            {joint: {name: getattr(g, name) for name in gains.NAMES} for joint, g in each.items()}
            for each in (proposal.old, proposal.new)
        )
        if not proposal.better and (proposal.why or not wanted.although_not_better):
            trial = record.GainTrial(False, record.proposal_sentence(proposal), old, new)
            return dataclasses.replace(found, gains=trial), trial.sentence
        present = [first, before]
        self._write_gains(record.GAINS_BEFORE, old, 'before a trial of others')
        parameters = record.gain_parameters(proposal.old), record.gain_parameters(proposal.new)
        self.gains.expect(parameters[1])
        what = 'running the motion with the proposed gains'
        sentence = 'the proposed gains are not better: the old ones are set again'
        with on_trial(self.guardian, self.context.controller, *parameters) as keep:
            self.wait_at_rest()
            error = self._track(f'{what}, growing to {GROWTH:.0%}', growing).rms
            if (error > GROWN_ERROR * before.rms).any():
                joint = self.context.robot.joints[int(np.argmax(error / before.rms))]
                raise RobotStateError(
                    f'with the proposed gains {joint} is farther off in {GROWTH:.0%} of the '
                    'motion than in all of it before: they are not tried any further'
                )
            after = [self._track(text, self._points) for text in (what, f'{what} again')]
            if kept := tracking.tracks_better(present, after):
                path = self._write_gains(record.GAINS, new, 'that follow from the inertia')
                keep()
                sentence = (
                    'the proposed gains are better, and set until the controller ends: load '
                    f"'{path}' with its configuration to keep them"
                )
        sentence = f'{sentence} ({record.proposal_sentence(proposal)})'
        rows = record.tracking_rows(before, after[-1], model.robot.units)
        trial = record.GainTrial(kept, sentence, old, new, rows)
        return dataclasses.replace(found, gains=trial), sentence

    def verify_static(self, found: record.Verification) -> tuple[record.Verification, str]:
        """Compare the efforts that hold the robot with those predicted."""
        rests = self._rests(self._verification.postures, self._verification.distance)
        rows = tracking.evaluate_postures(self._model.robot, self._model.chi, rests)
        worst = max(rows, key=lambda row: abs(row.gravity_worst) / max(row.gravity, 1e-300))
        sentence = (
            f'in {len(rests)} postures gravity is predicted to {abs(worst.gravity_worst):.3g} '
            f'{worst.unit} or better of {worst.joint}'
        )
        return dataclasses.replace(found, static=rows, postures=len(rests)), sentence

    def close(self) -> None:
        """Let go of everything, what is computed too."""
        self._closed.set()
        super().close()

    def start_worker(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a function in a process of its own, which ends with this session."""
        return start_in_process(function, *arguments, stop=self._closed, time_limit=WORKER_TIME)

    def result_of(self, job: Future[Any]) -> Any:
        """Wait for a worker; the robot is watched at rest."""
        self.wait_at_rest(WORKER_TIME, job.done)
        return job.result()

    def _write_gains(self, name: str, gains: PlainGains, comment: str) -> Path:
        """Write gains beside the results, as a file for the controller."""
        controller = self.context.node.resolve_topic_name(self.context.controller.name)
        path = self._model.folder / name
        record.write_gains(path, controller, gains, f'Gains of {controller} {comment}.')
        return path

    def _rests(self, count: int, distance: float) -> list[Array]:
        """Rest in postures that can be reached from a `distance` [rad or m] below and above."""
        rests, error = list[Array](), None
        postures = tracking.static_postures(self._motion, self.context.robot, count, distance)
        for number, posture in enumerate(postures, start=1):
            what = f'resting in posture {number} of {len(postures)}'
            try:
                sides = [self._rest(posture + x, posture, what) for x in (-distance, distance)]
                rests.append(np.array(sides))
            except TrajectoryError as reason:
                error = reason
        if not rests:
            raise TrajectoryError(f'no posture can be reached: {error}')
        return rests

    def _rest(self, start: Array, posture: Array, what: str) -> tuple[Array, Array]:
        """Return mean position and effort at rest in a posture, coming from another one."""
        self.move_to(State.VERIFYING, start, what)
        # A quintic's largest speed is 15/8 of its mean.
        speed = 1.875 * float(np.abs(posture - start).max()) / CREEP_TIME
        self.move_to(State.VERIFYING, posture, what, speed)
        self.keep_messages()
        self.wait_at_rest(MEASURING_TIME)
        log = MotionLog(self.context.robot.joints, *self.kept_messages)
        position, effort = log.means()
        return position, self.context.robot.efforts_to_torques(effort)

    def _track(self, what: str, points: Waypoints) -> Tracking:
        return self._run_logged(what, points).tracking()

    def _run_logged(self, what: str, points: Waypoints) -> MotionLog:
        """Run the motion between its rests, of which the last has brought the robot to rest."""
        self.check_robot()
        self.move_to(State.VERIFYING, points.q[0], 'moving to the start')
        self.keep_messages()
        clock = self.run(points, GoalPhase(State.VERIFYING, what))
        self.publish_standing(State.VERIFYING, 1.0)
        rest = round(REST * 1e9 / course_of([clock]).get('speed', 1.0))
        start, stop = clock.known_start + rest, clock.end - rest
        return MotionLog(self.context.robot.joints, *self.kept_messages, start, stop)


def read_present_run(
    log: MotionLog,
    rate: float,
    points: Waypoints,
    model: VerifiedModel,
    settings: IdentificationSettings,
) -> tuple[Tracking, tuple[record.EffortRow, ...], Waypoints]:
    """Return tracking errors, how well efforts are predicted, the motion with feed-forward."""
    from ...core.pipeline.observation import validate

    robot = model.robot
    found = validate(log.recording(), robot, model.chi, settings)
    period = 1.0 / log.update_rate(rate)
    shares = np.nan_to_num(found.moving_residual).tolist()
    rows = zip(robot.units.items(), shares, found.rms.tolist(), strict=True)
    efforts = tuple(record.EffortRow(name, unit, *each) for (name, (_, unit)), *each in rows)
    points = feed_forward.with_feed_forward(points, robot, model.chi, period)
    return log.tracking(), efforts, points


def propose_after_run(
    log: MotionLog,
    description: jtc.ControllerDescription,
    points: Waypoints,
    model: VerifiedModel,
    wanted: GainProposalSettings,
) -> tuple[Tracking, gains.GainProposal]:
    """Return the errors of a motion between rests that was run, and gains proposed for it."""
    rate = log.update_rate(description.rate)
    time = np.arange(round(REST * rate), round((points.duration - REST) * rate)) / rate
    proposal = gains.propose_gains(
        model.robot,
        model.consistent,
        dataclasses.replace(description, rate=rate),
        points.q,
        points.sample(time),
        wanted,
        delay=gains.loop_delay(model.results.findings),
        resolution=gains.smallest_step(log.recording().position),
    )
    return log.tracking(), proposal


def grown(points: Waypoints, share: float) -> Waypoints:
    """Return a motion that grows smoothly, from where it begins, to a share of one from rest."""
    u = (points.time / points.duration)[:, None]
    part = share * u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    rate = share * 30.0 * (u * (1.0 - u)) ** 2 / points.duration
    change = share * 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) / points.duration**2
    away = points.q - points.q[0]
    return dataclasses.replace(
        points,
        q=points.q[0] + part * away,
        dq=part * points.dq + rate * away,
        ddq=part * points.ddq + 2.0 * rate * points.dq + change * away,
    )


@contextmanager
def on_trial(
    guardian: Guardian,
    controller: jtc.ControllerClient,
    old: Mapping[str, float],
    new: Mapping[str, float],
) -> Iterator[Callable[[], None]]:
    """
    Set parameters of a controller, and set them back at the end unless what is yielded was called.

    The guardian does that should this process die, or not get an answer. `ControllerError`: they
    were refused, or not set back.
    """
    kept = False

    def keep() -> None:
        nonlocal kept
        guardian.release()
        kept = True

    def set_back(after: str = '') -> None:
        try:
            controller.set(old)
        except ControllerError as error:
            raise ControllerError(
                f'{after}the controller may still have the new gains ({error}): set the old ones '
                f"by hand, from '{record.GAINS_BEFORE}' beside the results"
            ) from error
        # It has ended, and set them back itself, where it had to cancel the motion.
        with suppress(ControllerError):
            guardian.release()

    guardian.protect(old)
    try:
        controller.set(new)
        yield keep
    except SilentRobotError as error:
        # Who would wait for its answer would say too late why the robot was stopped.
        why = f"; the guardian sets the old gains again, or they are in '{record.GAINS_BEFORE}'"
        raise SilentRobotError(f'{error}{why} beside the results', error.joints) from error
    except BaseException as error:
        set_back(f'{error}; ')
        if not isinstance(error, RobotIdError):
            raise
        raise RobotStateError(f'{error}; the old gains are set again') from error
    if not kept:
        set_back()


def renew_report(folder: Path) -> None:
    """Write the report of a folder's results again; for a process of its own."""
    from ...files.report.page import save_page
    from ...files.results import read_results, REPORT

    save_page('identification', folder / REPORT, read_results(folder), folder)


def find_results(configuration: Configuration, told: str) -> Path:
    """Find results: those of the configuration, or which `identification` was heard to write."""
    if configured := configuration.excitation.verification.results:
        path = Path(configured).expanduser()
        return path.parent if path.is_file() else path
    if not told:
        raise ControllerError(
            'nothing is identified yet: run a session, or name results in '
            'excitation.verification.results'
        )
    return expect_own(told, configuration)


def verification_message(found: record.Verification, stamp: Time) -> DiagnosticArray:
    """One status a joint for each thing that was verified, `tracking <joint>` and so on."""
    statuses = list[DiagnosticStatus]()

    def add(name: str, text: str, values: Mapping[str, Any], *, warn: bool = False) -> None:
        values = {key: value for key, value in values.items() if key != 'joint'}
        statuses.append(status(name, text, values, warn=warn))

    def add_tracking(kind: str, how: str, rows: Iterable[record.TrackingRow]) -> None:
        for row in rows:
            text = f'tracking error {how}: {row.ratio:.3g} times smaller'
            add(f'{kind} {row.joint}', text, {**vars(row), 'ratio': row.ratio})

    add_tracking('tracking', 'with feed-forward', found.tracking)
    if found.reason:
        add('feed-forward', found.reason, {}, warn=True)
    for effort in found.efforts:
        text = f'{100 * effort.relative:.2f} % of the effort is not predicted'
        values = {'relative_residual': effort.relative, 'rms': effort.rms, 'unit': effort.unit}
        add(f'effort {effort.joint}', text, values)
    if found.gains is not None:
        add('gains', found.gains.sentence, {'kept': found.gains.kept})
        add_tracking('gains', 'with the proposed gains', found.gains.tracking)
    for row in found.static:
        off, unit = f'gravity {row.gravity_error:.3g} {row.unit} off', row.unit
        add(f'static {row.joint}', f'{off}, stiction {row.stiction:.3g} {unit}', vars(row))
    return status_array(stamp, statuses)
