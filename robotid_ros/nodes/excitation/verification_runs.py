"""
The runs of a verification: each a straight line that leaves the robot at rest.

What was identified is a model here; gains that follow from it are tried and stay only if they are
better; what takes seconds or much memory runs in a process of its own.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...core.arrays import Array
from ...core.excitation.trajectory import Trajectory, Waypoints, waypoints
from ...core.identification_settings import IdentificationSettings
from ...core.model import build_robot, Robot, RobotSettings
from ...core.signals.recording import Controller
from ...core.verification.feed_forward import (
    check_feed_forward,
    REST,
    with_feed_forward,
    with_rests,
)
from ...core.verification.gains import (
    GainProposal,
    Gains,
    loop_delay,
    NAMES,
    propose_gains,
    smallest_step,
)
from ...core.verification.static_postures import evaluate_postures, RestPair, static_postures
from ...core.verification.tracking import Tracking, tracks_better
from ...exceptions import (
    ControllerError,
    FileError,
    RobotIdError,
    RobotStateError,
    TrajectoryError,
)
from ...files.configuration import Configuration
from ...files.results import chosen_settings, Results
from ...files.results_file import read_results
from ...files.verification import (
    EffortRow,
    FEED_FORWARD,
    GAINS,
    GAINS_BEFORE,
    GainTrial,
    NEW_GAINS,
    PRESENT,
    tracking_rows,
    TrackingRow,
    Verification,
    write_gains,
)
from ...node_settings import GainProposalSettings
from ..common.controller import ControllerClient, ControllerDescription, JTC
from ..common.messages import State
from ..common.worker_process import run_in_process
from ..identification.gain_proposal import gain_parameters, proposal_sentence
from .guardian import Guardian
from .motion_log import MotionLog
from .session import Session
from .supervisor import Phase

# How long the last stretch to a posture takes [s]: braking must need less than friction, or joints
# overshoot, come back, and are held from the other side.
CREEP_TIME = 4.0
# For how long the efforts of a posture are averaged [s]: they are noisy and do not change.
MEASURING_TIME = 1.0
# What a worker process may take for a motion [s]: a hundred times what it needs on a free machine.
WORKER_TIME = 600.0
# Shares of the motion, one after the other, that are run with proposed gains before all of it.
GROWTH = (0.25, 0.5)
# Tracking error of such a share, over that of all of the motion with the present gains, at which
# a trial ends: friction and weight leave as much of any motion, and less with stiffer gains.
GROWN_ERROR = 2.0
PlainGains = dict[str, dict[str, float]]


class VerifiedModel(NamedTuple):
    """
    Identified parameters on their model.

    Parameters
    ----------
    folder : of the results
    results : as they are in the files
    robot : with the friction that was chosen
    chi : (p,) standard parameters that give the identified torques, others zero
    consistent : (p,) standard parameters of bodies that can exist

    """

    folder: Path
    results: Results
    robot: Robot
    chi: Array
    consistent: Array


def load_model(folder: Path, urdf: str, settings: RobotSettings) -> VerifiedModel:
    """
    Read the results in a folder onto the robot that is here, of `urdf` and `settings`.

    Raises
    ------
    FileError : there are none, or of another robot

    """
    results = read_results(folder)
    robot = build_robot(urdf, chosen_settings(settings, results))
    if results.joints not in (robot.joints, robot.recorded_joints):
        raise FileError(
            f"'{folder}' is about {', '.join(results.joints)}, the robot has "
            f'{", ".join(robot.joints)}: identify it, or name the folder of its results'
        )
    full = {entry.name: entry.value for entry in results.standard}
    chi, consistent = (
        np.array([values.get(p.name, 0.0) for p in robot.parameters])
        for values in (results.minimal_parameters, full)
    )
    return VerifiedModel(folder, results, robot, chi, consistent)


class VerificationRuns:
    """
    Moves a robot along a motion, as it is or as identified.

    Each `verify_…` adds to what is verified already.
    """

    def __init__(
        self,
        session: Session,
        model: VerifiedModel,
        motion: Trajectory,
        configuration: Configuration,
    ):
        context = session.context
        self._session, self._context = session, context
        self._model, self._motion = model, motion
        self._signals = configuration.identification
        self._settings = configuration.excitation.verification
        self._points = with_rests(waypoints(motion, context.settings.rate))
        session.check_motion(self._points)

    def verify_motion(self, found: Verification) -> Verification:
        """Run the motion without and with feed-forward, where the controller takes it."""
        log = self._run('running the motion as it is', self._points)
        controller = self._session.description
        before, efforts, points = self._in_worker(
            *(read_present_run, log, controller.rate, self._points, self._model, self._signals)
        )
        series = {k: v for k, v in found.series.items() if k == NEW_GAINS}
        series = {PRESENT: before, **series}
        worst, bound = max(efforts, key=lambda row: row.relative), self._settings.largest_residual
        reason = controller.why_no_feed_forward
        if not reason and worst.relative > bound:
            reason = (
                f'{100 * worst.relative:.0f} % of the effort of {worst.joint} is not predicted, '
                f'more than {100 * bound:.0f} %: such efforts are not commanded, identify again'
            )
        tracking: tuple[TrackingRow, ...] = ()
        if reason:
            self._context.node.get_logger().warning(reason)
        else:
            self._session.check_motion(points)
            check_feed_forward(points, self._context.robot, self._context.settings.effort_share)
            after = self._track('running the motion with feed-forward', points)
            tracking = tracking_rows(before, after, units(self._model.robot))
            series = {PRESENT: before, FEED_FORWARD: after, **series}
        return dataclasses.replace(
            found, efforts=efforts, tracking=tracking, reason=reason, series=series
        )

    def verify_gains(self, found: Verification) -> Verification:
        """
        Run the motion with present and with proposed gains; keep these only if they are better.

        They are tried if a simulation finds them better, on a motion that grows. The old ones are
        written before others are set, and what was kept as a file for the controller.
        """
        description, model = self._session.description, self._model
        description.check_gains_are_torques()
        session, wanted = self._session, self._signals.controller_gains
        growing = [grown(self._points, share) for share in GROWTH]
        for points in growing:
            session.check_motion(points)
        what = 'running the motion with the present gains'
        log = self._run(what, self._points)
        before, proposal = self._in_worker(
            propose_after_run, *(log, description, self._points, model, wanted)
        )
        old, new = _plain(proposal.old), _plain(proposal.new)
        if not proposal.better and (proposal.why or not wanted.although_not_better):
            trial = GainTrial(False, proposal_sentence(proposal), old, new)
            return dataclasses.replace(
                found, gains=trial, series={PRESENT: before, **found.series}
            )
        present = [before, self._track(f'{what} again', self._points)]
        self._write_gains(GAINS_BEFORE, old, 'before a trial of others')
        parameters = gain_parameters(proposal.old), gain_parameters(proposal.new)
        session.gains.expect(parameters[1])
        what = 'running the motion with the proposed gains'
        with on_trial(session.guardian, self._context.controller, *parameters) as keep:
            session.wait_at_rest()
            for share, points in zip(GROWTH, growing, strict=True):
                error = self._track(f'{what}, {100 * share:.0f} % of it', points).rms
                if (error > GROWN_ERROR * before.rms).any():
                    joint = self._context.robot.joints[int(np.argmax(error / before.rms))]
                    raise RobotStateError(
                        f'with the proposed gains {joint} is farther off in {100 * share:.0f} % '
                        'of the motion than in all of it before: they are not tried any further'
                    )
            after = [self._track(text, self._points) for text in (what, f'{what} again')]
            if kept := tracks_better(present, after):
                path = self._write_gains(GAINS, new, 'that follow from the inertia')
                keep()
        sentence = 'the proposed gains are not better: the old ones are set again'
        if kept:
            sentence = (
                f"the proposed gains are better, and set until the controller ends: load '{path}' "
                'with its configuration to keep them'
            )
        sentence = f'{sentence} ({proposal_sentence(proposal)})'
        rows = tracking_rows(before, after[-1], units(model.robot))
        trial = GainTrial(kept, sentence, old, new, rows)
        series = {PRESENT: before, **found.series, NEW_GAINS: after[-1]}
        return dataclasses.replace(found, gains=trial, series=series)

    def verify_static(self, found: Verification) -> Verification:
        """Compare the efforts that hold the robot with those predicted."""
        pairs = self._rest_pairs(self._settings.postures, self._settings.distance)
        rows = evaluate_postures(self._model.robot, self._model.chi, pairs)
        return dataclasses.replace(found, static=rows, postures=len(pairs))

    def _write_gains(self, name: str, gains: PlainGains, comment: str) -> Path:
        """Write gains beside the results, as a file for the controller."""
        controller = self._context.node.resolve_topic_name(self._context.controller.name)
        text = f'Gains of {controller} {comment}.'
        write_gains(self._model.folder / name, controller, gains, text)
        return self._model.folder / name

    def _rest_pairs(self, count: int, distance: float) -> list[RestPair]:
        """
        Rest in postures of the motion, after coming from below and from above.

        Those that cannot be reached on straight lines are left out; `TrajectoryError`: all of
        them. Each joint comes from a `distance` [rad or m].
        """
        pairs, error = [], None
        postures = static_postures(self._motion, self._context.robot, count, distance)
        for number, posture in enumerate(postures, start=1):
            what = f'resting in posture {number} of {len(postures)}'
            try:
                pairs.append(
                    RestPair(
                        *self._rest(posture - distance, posture, what),
                        *self._rest(posture + distance, posture, what),
                    )
                )
            except TrajectoryError as reason:
                error = reason
        if not pairs:
            raise TrajectoryError(f'no posture can be reached: {error}')
        return pairs

    def _rest(self, start: Array, posture: Array, what: str) -> tuple[Array, Array]:
        """Return mean position and effort at rest in a posture, coming from another one."""
        self._session.move_to(State.VERIFYING, start, what)
        # A quintic's largest speed is 15/8 of its mean.
        speed = 1.875 * float(np.abs(posture - start).max()) / CREEP_TIME
        self._session.move_to(State.VERIFYING, posture, what, speed)
        self._session.keep_messages()
        self._session.wait_at_rest(MEASURING_TIME)
        log = MotionLog(self._context.robot.joints, *self._session.kept_messages)
        position, effort = log.means()
        return position, np.asarray(effort * self._context.robot.drive_gain)

    def _track(self, what: str, points: Waypoints) -> Tracking:
        found: Tracking = self._in_worker(self._run(what, points).tracking)
        return found

    def _run(self, what: str, points: Waypoints) -> MotionLog:
        """Run the motion between its rests."""
        session = self._session
        session.check_robot()
        session.move_to(State.VERIFYING, points.q[0], 'moving to the start')
        session.keep_messages()
        clock = session.run(points, Phase(State.VERIFYING, what))
        session.publish_standing(State.VERIFYING, 1.0)
        session.wait_at_rest()
        rest = round(REST * 1e9 / clock.speed.get('speed', 1.0))
        start, stop = clock.known_start + rest, clock.end - rest
        return MotionLog(self._context.robot.joints, *session.kept_messages, start, stop)

    def _in_worker(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return run_in_process(
            function, *arguments, stop=self._context.stop, time_limit=WORKER_TIME
        )


def read_present_run(
    log: MotionLog,
    rate: float,
    points: Waypoints,
    model: VerifiedModel,
    settings: IdentificationSettings,
) -> tuple[Tracking, tuple[EffortRow, ...], Waypoints]:
    """
    Read a motion without feed-forward, predict its efforts, and add the feed-forward.

    `rate` is that of the controller by its parameter, 0 where that does not say [Hz]. Returns the
    tracking errors, how well efforts are predicted (0 where a joint does not move), and the motion
    with feed-forward. A motion that was recorded too poorly is a `RobotIdError`.
    """
    from ...core.pipeline.validation import validate

    robot = model.robot
    found = validate(log.recording(), robot, model.chi, settings)
    period = 1.0 / log.update_rate(rate)
    shares = np.nan_to_num(found.moving_residual).tolist()
    rows = zip(units(robot, ('N·m', 'N')).items(), shares, found.rms.tolist(), strict=True)
    efforts = tuple(EffortRow(*unit, share, rms) for unit, share, rms in rows)
    points = with_feed_forward(points, robot, model.chi, period)
    return log.tracking(), efforts, points


def units(robot: Robot, names: tuple[str, str] = ('rad', 'm')) -> dict[str, str]:
    """Return the unit of each joint: the first name of those that turn, the second of slides."""
    return {j: names[bool(p)] for j, p in zip(robot.joints, robot.prismatic, strict=True)}


def _plain(gains: Gains) -> PlainGains:
    return {joint: {name: getattr(g, name) for name in NAMES} for joint, g in gains.items()}


def grown(points: Waypoints, share: float) -> Waypoints:
    """Return a share of a motion, from where it begins and in the same time."""
    q = points.q[0] + share * (points.q - points.q[0])
    return dataclasses.replace(points, q=q, dq=share * points.dq, ddq=share * points.ddq)


def propose_after_run(
    log: MotionLog,
    description: ControllerDescription,
    points: Waypoints,
    model: VerifiedModel,
    wanted: GainProposalSettings,
) -> tuple[Tracking, GainProposal]:
    """Return the errors of a motion between rests that was run, and gains proposed for it."""
    rate = log.update_rate(description.rate)
    controller = Controller(
        *(description.name, JTC, rate, description.joints),
        *(description.command_interfaces, description.gains),
    )
    time = np.arange(round(REST * rate), round((points.duration - REST) * rate)) / rate
    proposal = propose_gains(
        model.robot,
        model.consistent,
        controller,
        points.q,
        points.sample(time),
        wanted,
        delay=loop_delay(model.results.findings),
        resolution=smallest_step(log.recording().position),
    )
    return log.tracking(), proposal


@contextmanager
def on_trial(
    guardian: Guardian,
    controller: ControllerClient,
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

    guardian.protect(old)
    try:
        controller.set(new)
        yield keep
    except RobotIdError as error:
        _set_back(guardian, controller, old)
        raise RobotStateError(f'{error}; the old gains are set again') from error
    except BaseException:
        _set_back(guardian, controller, old)
        raise
    if not kept:
        _set_back(guardian, controller, old)


def _set_back(guardian: Guardian, controller: ControllerClient, old: Mapping[str, float]) -> None:
    try:
        controller.set(old)
    except ControllerError as error:
        raise ControllerError(
            f"the controller's gains may not be back ({error}): set them by hand, "
            f"'{GAINS_BEFORE}' beside the results holds them"
        ) from error
    # It has ended, and set them back itself, where it had to cancel the motion.
    with suppress(ControllerError):
        guardian.release()
