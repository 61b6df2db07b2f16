"""Verifies on the robot what was identified; what came of it is on a topic and in files."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
import dataclasses
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from ...core.excitation.trajectory import Trajectory
from ...core.model import RobotSettings
from ...core.verification.static_postures import JointStatics
from ...exceptions import ControllerError, RobotIdError
from ...files.verification import (
    read_verification,
    TrackingRow,
    VERIFICATION,
    Verification,
    write_verification,
)
from ..common.messages import status, status_array, values_of
from ..common.runtime import ConfiguredNode, LATCHED
from ..common.worker_process import run_in_process
from .session import Session
from .supervisor import SessionContext
from .verification_runs import load_model, VerificationRuns, WORKER_TIME


class Verifications:
    """Verifies on the robot, and publishes `~/verification`."""

    def __init__(self, node: ConfiguredNode):
        self._node = node
        self._configuration = node.configuration
        self._told = ''
        self._publisher = node.create_publisher(DiagnosticArray, '~/verification', LATCHED)
        node.create_subscription(
            DiagnosticStatus, 'identification/state', self._on_identification, LATCHED
        )

    def run(
        self,
        kind: str,
        context: SessionContext,
        motion: Trajectory,
        urdf: str,
        settings: RobotSettings,
    ) -> str:
        """
        Verify on a motion; return what came of it, a sentence. The robot rests afterwards.

        Parameters
        ----------
        kind : one of `KINDS`
        context : of a session that begins once the results are read
        motion : to verify on
        urdf, settings : of the robot that is here

        """
        identification = self._configuration.identification
        folders = (
            self._configuration.recorder.folder,
            *identification.folders,
            identification.output_dir,
        )
        configured = self._configuration.excitation.verification.results
        folder = find_results(configured, self._told, folders)
        model = load_model(folder, urdf, settings)
        found = read_verification(model.folder / VERIFICATION)
        if found is None or found.results != model.results.created:
            found = Verification(model.results.created)
        work, sentence = KINDS[kind]
        with closing(Session(context)) as session:
            runs = VerificationRuns(session, model, motion, self._configuration)
            found = work(runs, found)
            found = dataclasses.replace(
                found,
                created=datetime.now(timezone.utc).isoformat(timespec='seconds'),
                controller=context.controller.name,
                trajectory=motion.hash,
            )
            write_verification(model.folder, found)
            stamp = self._node.get_clock().now().to_msg()
            self._publisher.publish(verification_message(found, stamp))
            try:
                # A verification is worth something without its picture.
                run_in_process(
                    *(renew_report, model.folder), stop=context.stop, time_limit=WORKER_TIME
                )
            except RobotIdError as error:
                self._node.get_logger().error(f'the report is as it was before: {error}')
        return sentence(found)

    def _on_identification(self, message: DiagnosticStatus) -> None:
        values = values_of(message)
        if values.get('state') == 'done':
            self._told = values.get('folder', '')


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


# How each service verifies, and the sentence on what came of it.
KINDS: dict[str, tuple[Callable[[VerificationRuns, Verification], Verification], Any]] = {
    'verify': (VerificationRuns.verify_motion, _motion_sentence),
    'verify_gains': (VerificationRuns.verify_gains, _gains_sentence),
    'verify_static': (VerificationRuns.verify_static, _static_sentence),
}


def renew_report(folder: Path) -> None:
    """Write the report of a folder's results again; for a process of its own."""
    from ...files.report.page import save_page
    from ...files.results_file import read_results, REPORT

    save_page('identification', folder / REPORT, read_results(folder), folder)


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
    return status_array(stamp, _statuses(found))


def _statuses(found: Verification) -> Iterator[DiagnosticStatus]:
    yield from _tracking('tracking', 'with feed-forward', found.tracking)
    if found.reason:
        yield status('feed-forward', found.reason, {}, warn=True)
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
