"""Verifies on the robot what was identified; what came of it is on a topic and in files."""

from collections.abc import Callable, Iterable, Iterator, Sequence
import dataclasses
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from std_msgs.msg import Header

from ...core.excitation.trajectory import Trajectory
from ...core.model import RobotSettings
from ...core.verification.static_postures import evaluate_postures, JointStatics
from ...exceptions import ControllerError, RobotIdError
from ...files.verification import (
    EffortRow,
    FEED_FORWARD,
    GAINS,
    GAINS_BEFORE,
    GainTrial,
    NEW_GAINS,
    PRESENT,
    read_verification,
    tracking_rows,
    TrackingRow,
    VERIFICATION,
    Verification,
    write_gains,
    write_verification,
)
from ..common.messages import status, values_of
from ..common.runtime import ConfiguredNode, LATCHED
from ..common.worker_process import run_in_process
from ..identification.gain_proposal import Gains
from .session import Session
from .verification_runs import load_model, VerificationRuns, VerifiedModel, WORKER_TIME

# What a kind of verification is given: the runs, and what is verified already, to which it adds.
Work = Callable[[VerificationRuns, Verification], Verification]


class Verifications:
    """
    Verifies on the robot, and publishes `~/verification`.

    Attributes
    ----------
    kinds : how each service verifies, and the sentence on what came of it

    """

    def __init__(self, node: ConfiguredNode):
        self._node = node
        self._configuration = node.configuration
        self._settings = node.configuration.excitation.verification
        self._told = ''
        self._publisher = node.create_publisher(DiagnosticArray, '~/verification', LATCHED)
        node.create_subscription(
            DiagnosticStatus, 'identification/state', self._on_identification, LATCHED
        )
        self.kinds: dict[str, tuple[Work, Callable[[Verification], str]]] = {
            'verify': (self._verify_motion, _motion_sentence),
            'verify_gains': (self._verify_gains, _gains_sentence),
            'verify_static': (self._verify_static, _static_sentence),
        }

    def run(
        self,
        kind: str,
        session: Session,
        motion: Trajectory,
        urdf: str,
        settings: RobotSettings,
        accept: Callable[[], None],
    ) -> str:
        """
        Verify on a motion; return what came of it, a sentence. The robot rests afterwards.

        Parameters
        ----------
        kind : one of `kinds`
        session : not prepared yet
        motion : to verify on
        urdf, settings : of the robot that is here
        accept : called once all that needs no other node is checked

        """
        identification = self._configuration.identification
        folders = (
            self._configuration.recorder.folder,
            *identification.folders,
            identification.output_dir,
        )
        folder = find_results(self._settings.results, self._told, folders)
        model = load_model(folder, urdf, settings)
        found = read_verification(model.folder / VERIFICATION)
        if found is None or found.results != model.results.created:
            found = Verification(model.results.created)
        session.prepare(accept)
        work, sentence = self.kinds[kind]
        found = work(VerificationRuns(session, model, motion), found)
        found = dataclasses.replace(
            found,
            created=datetime.now(timezone.utc).isoformat(timespec='seconds'),
            controller=session.context.controller.name,
            trajectory=motion.hash,
        )
        write_verification(model.folder, found)
        self._publisher.publish(verification_message(found, self._node.get_clock().now().to_msg()))
        try:
            # A verification is worth something without its picture.
            run_in_process(
                *(renew_report, model.folder), stop=session.context.stop, time_limit=WORKER_TIME
            )
        except RobotIdError as error:
            self._node.get_logger().error(f'the report is as it was before: {error}')
        return sentence(found)

    def _on_identification(self, message: DiagnosticStatus) -> None:
        values = values_of(message)
        if values.get('state') == 'done':
            self._told = values.get('folder', '')

    def _verify_motion(self, runs: VerificationRuns, found: Verification) -> Verification:
        """Run the motion without and with feed-forward, where the controller takes it."""
        run = runs.present(self._configuration.identification)
        units = _units(runs.model, ('N·m', 'N'))
        efforts = tuple(
            EffortRow(joint, units[joint], float(share), float(rms))
            for joint, share, rms in zip(units, run.relative, run.rms, strict=True)
        )
        series = {k: v for k, v in found.series.items() if k == NEW_GAINS}
        series = {PRESENT: run.tracking, **series}
        worst, bound = max(efforts, key=lambda row: row.relative), self._settings.largest_residual
        reason = runs.controller.why_no_feed_forward
        if not reason and worst.relative > bound:
            reason = (
                f'{100 * worst.relative:.0f} % of the effort of {worst.joint} is not predicted, '
                f'more than {100 * bound:.0f} %: such efforts are not commanded, identify again'
            )
        found = dataclasses.replace(
            found, efforts=efforts, tracking=(), reason=reason, series=series
        )
        if reason:
            self._node.get_logger().warning(reason)
            return found
        after = runs.with_feed_forward(run.points)
        rows = tracking_rows(run.tracking, after, _units(runs.model))
        return dataclasses.replace(
            found,
            tracking=rows,
            series={PRESENT: run.tracking, FEED_FORWARD: after, **series},
        )

    def _verify_gains(self, runs: VerificationRuns, found: Verification) -> Verification:
        """Try the proposed gains; what was kept is written as a file for the controller."""
        runs.controller.check_gains_are_torques()
        controller = self._node.resolve_topic_name(runs.controller.name)
        model = runs.model
        path, before_path = model.folder / GAINS, model.folder / GAINS_BEFORE
        old, new, before, after, kept = runs.try_gains(
            self._configuration.identification.controller_gains,
            partial(_write_gains, before_path, controller, 'before a trial of others'),
            partial(_write_gains, path, controller, 'that follow from the inertia'),
        )
        rows = tracking_rows(before, after, _units(model))
        sentence = 'the proposed gains are not better: the old ones are set again'
        if kept:
            sentence = (
                f"the proposed gains are better, and set until the controller ends: load '{path}' "
                'with its configuration to keep them'
            )
        trial = GainTrial(kept, sentence, _plain(old), _plain(new), rows)
        series = {PRESENT: before, **found.series, NEW_GAINS: after}
        return dataclasses.replace(found, gains=trial, series=series)

    def _verify_static(self, runs: VerificationRuns, found: Verification) -> Verification:
        """Compare the efforts that hold the robot with those predicted."""
        pairs = runs.rest_pairs(self._settings.postures, self._settings.distance)
        rows = evaluate_postures(runs.model.robot, runs.model.chi, pairs)
        return dataclasses.replace(found, static=rows, postures=len(pairs))


def _units(model: VerifiedModel, names: tuple[str, str] = ('rad', 'm')) -> dict[str, str]:
    robot = model.robot
    return {j: names[bool(p)] for j, p in zip(robot.joints, robot.prismatic, strict=True)}


def _write_gains(path: Path, controller: str, comment: str, gains: Gains) -> None:
    write_gains(path, controller, _plain(gains), f'Gains of {controller} {comment}.')


def _plain(gains: Gains) -> dict[str, dict[str, float]]:
    return {joint: {'p': g.p, 'i': g.i, 'd': g.d} for joint, g in gains.items()}


def _motion_sentence(found: Verification) -> str:
    if not found.tracking:
        return f'verified without feed-forward: {found.reason}'
    ratios = [row.ratio for row in found.tracking]
    return (
        f'with feed-forward the tracking error is {min(ratios):.3g} to {max(ratios):.3g} times '
        'smaller'
    )


def _static_sentence(found: Verification) -> str:
    worst = max(found.static, key=lambda row: abs(row.gravity_worst) / max(row.gravity, 1e-300))
    return (
        f'in {found.postures} postures gravity is predicted to {abs(worst.gravity_worst):.3g} '
        f'{worst.unit} or better of {worst.joint}'
    )


def _gains_sentence(found: Verification) -> str:
    assert found.gains is not None
    return found.gains.sentence


def renew_report(folder: Path) -> None:
    """Write the report of a folder's results again; for a process of its own."""
    from ...files.report.page import save_page
    from ...files.results_file import read_results, REPORT

    save_page('identification', folder / REPORT, read_results(folder))


def find_results(configured: str, told: str, folders: Sequence[str]) -> Path:
    """
    Find the folder of the results to verify.

    Parameters
    ----------
    configured : `excitation.verification.results`, '' for none
    told : by the identification, which may be anybody on the network; '' for none yet
    folders : below one of which that must be, links followed

    """
    if configured:
        path = Path(configured).expanduser()
        return path.parent if path.is_file() else path
    if not told:
        raise ControllerError(
            'nothing is identified yet: run a session, or name results in '
            'excitation.verification.results'
        )
    path = Path(told).resolve()
    allowed = [Path(folder).expanduser().resolve() for folder in folders if folder]
    if not any(folder in path.parents for folder in allowed):
        raise ControllerError(
            "the identification's results are in none of recorder.folder, identification.folders "
            'and identification.output_dir of this node: name them in '
            'excitation.verification.results'
        )
    return path


def verification_message(found: Verification, stamp: Time) -> DiagnosticArray:
    """One status a joint for each thing that was verified, `tracking <joint>` and so on."""
    return DiagnosticArray(header=Header(stamp=stamp), status=list(_statuses(found)))


def _statuses(found: Verification) -> Iterator[DiagnosticStatus]:
    yield from _tracking('tracking', 'with feed-forward', found.tracking)
    if found.reason:
        yield status('feed-forward', found.reason, {}, level=DiagnosticStatus.WARN)
    for effort in found.efforts:
        text = f'{100 * effort.relative:.2f} % of the effort is not predicted'
        values = {'relative_residual': effort.relative, 'rms': effort.rms, 'unit': effort.unit}
        yield status(f'effort {effort.joint}', text, values)
    if found.gains is not None:
        values = {'kept': found.gains.kept}
        yield status('gains', found.gains.sentence, values)
        yield from _tracking('gains', 'with the proposed gains', found.gains.tracking)
    for row in found.static:
        text = (
            f'gravity {row.gravity_error:.3g} {row.unit} off, stiction {row.stiction:.3g} '
            f'{row.unit}'
        )
        yield status(f'static {row.joint}', text, _values(row))


def _tracking(kind: str, how: str, rows: Iterable[TrackingRow]) -> Iterator[DiagnosticStatus]:
    for row in rows:
        text = f'tracking error {how}: {row.ratio:.3g} times smaller'
        yield status(f'{kind} {row.joint}', text, {**_values(row), 'ratio': row.ratio})


def _values(row: TrackingRow | JointStatics) -> dict[str, Any]:
    return {name: value for name, value in vars(row).items() if name != 'joint'}
