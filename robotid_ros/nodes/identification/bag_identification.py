"""From a bag to files and to what the topics show; runs in a process of its own."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
import shlex
from typing import Any

from ...core.arrays import Array
from ...core.excitation.trajectory import Motion
from ...core.findings import Finding
from ...core.model.dynamics import RobotDynamics
from ...core.model.robot import ElasticRobot, Robot
from ...core.monitoring.external_effort import (
    contact_thresholds,
    ContactThresholds,
    external_efforts,
    ExternalEffortEstimator,
)
from ...core.pipeline.identification import identify
from ...core.replay.replay_problem import reference_on_grid
from ...core.signals.recording import Recording
from ...core.verification.gains import GainProposal, loop_delay, propose_gains, smallest_step
from ...exceptions import RecordingError, RobotIdError
from ...files.atomic import beside_recording, make_new_folder
from ...files.collect_results import save
from ...files.configuration import Configuration
from ...files.export.identified_model import identified_urdf
from ...files.identification_input import AnyRecording, EXCITING, open_input, split
from ...files.results import chosen_settings
from ...node_settings import IdentificationNodeSettings
from ..common.model_node import parameters_of
from .result_messages import IdentificationOutcome

FAILED = 'failed'
SIMULATED_TIME = 30.0  # of a motion that is simulated with proposed gains [s]


def identify_bag(
    bag: str,
    configuration: Configuration,
    values: Mapping[str, Any],
    description: str,
    include_failed: bool,
    progress: Callable[[str], None],
) -> IdentificationOutcome:
    """Identify from a session's bag, write results beside it; RobotIdError: why not."""
    progress(f"reading '{bag}'")
    given = open_input([bag], configuration, fallback=description)
    recording, robot, settings = given.recording, given.robot, configuration.identification
    names = [phase.name for phase in recording.phases]
    if FAILED in names and not include_failed:
        raise RecordingError(
            f"the session in '{recording.source}' failed: call ~/identify to use its recording"
        )
    if not include_failed and (cut := [phase.name for phase in recording.phases if phase.cut]):
        raise RecordingError(
            f'the session was cut while {cut[0]}: record a whole session, or call ~/identify to '
            f"use the incomplete '{recording.source}'"
        )
    if names and EXCITING not in names:
        raise RecordingError(
            f"'{recording.source}' ends before the excitation: record a whole session"
        )
    exciting, validating = split(recording)
    progress(f'identifying {robot.name}')
    found = identify(exciting, robot, settings, validating, progress)
    # A recording may be identified again: what was found before stays.
    path, output = beside_recording(bag, 'identified'), settings.output_dir
    folder = make_new_folder(Path(output) / path.name if output else path)
    progress(f"writing '{folder}'")
    results = save(found, exciting, folder, values, shlex.join(['robotid', 'identify', bag]))
    # With the friction that was chosen; what is live goes without springs.
    model = robot if isinstance(found.robot, ElasticRobot) else found.robot
    chi, consistent = parameters_of(results, model)
    moving = exciting if validating is None else validating
    # Of external efforts, by what is seen of them without contact.
    pieces = [moving] if isinstance(moving, Recording) else moving
    thresholds: ContactThresholds | str
    try:
        estimator = ExternalEffortEstimator(
            RobotDynamics(model, consistent), settings.contact, settings.signals.standstill
        )
        seen = external_efforts((piece.select(model.joints) for piece in pieces), estimator)
        thresholds = contact_thresholds(seen, settings.contact.false_alarms)
    except RobotIdError as error:
        thresholds = str(error)
    return IdentificationOutcome(
        results=results,
        folder=folder,
        source_urdf=given.urdf,
        robot_settings=chosen_settings(given.robot_settings, results),
        urdf=identified_urdf(found.robot, found.standard.value, found.plain_friction),
        chi=chi,
        consistent=consistent,
        thresholds=thresholds,
        gains=_proposed_gains(model, consistent, exciting, moving, results.findings, settings),
        origin=recording.origin,
    )


def _proposed_gains(
    robot: Robot,
    consistent: Array,
    exciting: AnyRecording,
    moving: AnyRecording,
    findings: Sequence[Finding],
    settings: IdentificationNodeSettings,
) -> GainProposal | str:
    """Return proposed gains, or why there are none; '' without gains that are torques."""
    controller = exciting.controller
    if controller is None or controller.command_interfaces != ('effort',) or not controller.gains:
        return ''
    if not controller.rate:
        return 'the update rate of the controller is unknown'
    work, simulated = (
        (each if isinstance(each, Recording) else next(iter(each))).select(robot.joints)
        for each in (exciting, moving)
    )
    try:
        _, motion = reference_on_grid(simulated, controller.rate)
        rows = slice(round(SIMULATED_TIME * controller.rate))
        return propose_gains(
            *(robot, consistent, controller, work.position[work.finite]),
            Motion(*(values[rows] for values in motion)),
            settings.controller_gains,
            delay=loop_delay(findings),
            resolution=smallest_step(work.position),
        )
    except RobotIdError as error:
        return str(error)
