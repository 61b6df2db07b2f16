"""From a recording to an identification: the steps in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
import dataclasses

import numpy as np

from ...exceptions import ConfigurationError, ControllerError, DivergenceError, RecordingError
from ..arrays import Array
from ..diagnostics.assumptions import data_warnings
from ..diagnostics.data_quality import (
    data_quality,
    disagreement_warnings,
    identifiability_warnings,
    timing_warnings,
)
from ..diagnostics.plausibility import dissipation_warnings, exact_fit_warnings, FittedModel
from ..excitation.trajectory import Motion
from ..finding_codes import finding, select
from ..findings import Finding, in_order
from ..identification_settings import IdentificationSettings, SIMULATED
from ..model.base_parameters import base_parameters, BaseParameters
from ..model.robot import ElasticRobot, Robot
from ..parameters.essential import Essential, find_essential
from ..parameters.plain_friction import plain_friction
from ..parameters.standard import basic_solution, standard_parameters
from ..regression.delays import Delays, remove_delay
from ..regression.estimators import MIXED
from ..regression.goodness_of_fit import Validation
from ..signals.preparation import prepare
from ..signals.recording import Recording
from .choices import choose_model
from .estimation import (
    check_method,
    estimate_base_parameters,
    Estimation,
    iterate_friction_load,
    Progress,
)
from .observation import longest_log, RecordingOrChunks
from .results import Identification
from .validation import validate, validate_samples


def identify(
    recording: RecordingOrChunks,
    robot: Robot,
    settings: IdentificationSettings,
    validation: RecordingOrChunks | None = None,
    progress: Progress | None = None,
) -> Identification:
    """
    Identify a robot from a recording.

    Parameters
    ----------
    recording : the excitation; successive chunks of it where it is too long for memory, or
        several logs of it
    settings : signals, estimator, options
    validation : another motion, or None
    progress : called with the name of each step

    Raises
    ------
    RecordingError : the recording cannot be used
    RankDeficientError : the motion leaves parameters undetermined
    ControllerError, DivergenceError : a closed-loop method lacks the control law, or does not
        converge

    """
    robot = robot.elastic or robot
    if isinstance(robot, ElasticRobot) and settings.method in (*SIMULATED, 'both'):
        raise ConfigurationError(
            f"method '{settings.method}' replays rigid robots: use 'wls', or empty "
            'robot.elastic.joints'
        )
    check_method(recording, robot, settings)
    progress = progress or (lambda _: None)
    if settings.method != 'both':
        return _identify_by_one_method(recording, robot, settings, validation, progress)
    # By WLS, and by DIDIM to compare; where that fails, the first result stands.
    wls, didim = (dataclasses.replace(settings, method=name) for name in ('wls', 'didim'))
    found = _identify_by_one_method(recording, robot, wls, validation, progress)
    try:
        other = _identify_by_one_method(recording, robot, didim, validation, progress)
    except (ControllerError, DivergenceError, RecordingError) as error:
        note = finding('nothing_to_compare', reason=str(error))
        return dataclasses.replace(found, findings=in_order((*found.findings, note)))
    notes = [each.of('DIDIM') for each in other.findings if each not in found.findings]
    notes += disagreement_warnings(found.estimate, other.estimate)
    findings = in_order((*found.findings, *notes))
    return dataclasses.replace(found, findings=findings, history=other.history, compared=other)


def _predicted(
    robot: Robot,
    settings: IdentificationSettings,
    delays: Delays,
    recording: RecordingOrChunks,
    chi: Array,
) -> tuple[Validation, list[Motion]]:
    """Predict the torques of another recording; return its motion as well."""
    stamps = settings.signals.stamps
    if isinstance(recording, Recording):
        samples = prepare(remove_delay(recording, delays, stamps), robot, settings.signals)
        motion = Motion(samples.q, samples.dq, samples.ddq)
        return validate_samples(samples, robot, chi), [motion]
    chunks = (remove_delay(chunk, delays, stamps) for chunk in recording)
    found = validate(chunks, robot, chi, settings)
    if (parts := found.parts) is None or len(found.time) < 2:
        return found, []
    q, dq = parts.position, parts.velocity
    return found, [Motion(q, dq, np.gradient(dq, found.time, axis=0))]


def _essential(
    estimation: Estimation, plain: Estimation, settings: IdentificationSettings
) -> Essential:
    """Return the essential parameters, with their places among all base parameters."""
    method, ratio = estimation.estimate.method, settings.essential_ratio
    bounds = settings.essential_sigma, settings.significance, 'wls' if method == MIXED else method
    found = find_essential(plain.system, plain.estimate, *bounds, ratio)
    if (penalty := estimation.system.penalty) is None:
        return found
    return dataclasses.replace(found, indices=np.flatnonzero(~penalty.shrunk)[found.indices])


def _findings(
    read: Iterable[Finding],
    robot: Robot,
    base: BaseParameters,
    estimation: Estimation,
    plain: Estimation,
    whole: FittedModel,
) -> Iterator[Finding]:
    """Yield what was read of a log, and what its data and their plain fit show."""
    samples, estimate = estimation.samples, plain.estimate
    data = data_warnings(robot, base, samples, plain.sampled_systems, estimate, whole)
    # The log says its unit itself, the configuration what its efforts are worth.
    of_log, of_data = select(read, 'effort_unit_of_log'), select(data, 'effort_unit')
    yield from (each for each in read if not (robot.drive_gain_given and each in of_log))
    yield from estimation.notes
    yield from (each for each in data if not (of_log and each in of_data))
    yield from exact_fit_warnings(robot, samples, estimate)
    yield from dissipation_warnings(whole, estimation.estimate.covariance)
    yield from identifiability_warnings(robot, samples, estimate)
    yield from timing_warnings(plain.system.timing, estimate)
    yield from estimation.remarks


def _identify_by_one_method(
    recording: RecordingOrChunks,
    robot: Robot,
    settings: IdentificationSettings,
    validation: RecordingOrChunks | None,
    progress: Progress,
) -> Identification:
    progress('choosing filters, rows and friction')
    recording, robot, settings, mixed, notes = choose_model(recording, robot, settings)
    progress('preparing signals')
    findings = [*notes]
    if settings.method != MIXED:  # which has the load of its plain fit
        robot, more = iterate_friction_load(longest_log(recording), robot, settings)
        findings += more
    base = base_parameters(robot)
    # Without what is shrunk: diagnostics look at what that leaves.
    judged = (robot, base)
    if mixed is not None and robot is mixed.robot:
        judged = (mixed.plain, mixed.base)
    estimation = estimate_base_parameters(recording, robot, base, settings, progress, mixed)
    estimate, plain = estimation.estimate, estimation.less_shrunk()
    essential = None
    if settings.essential:
        progress('finding the essential parameters')
        essential = _essential(estimation, plain, settings)
    progress('finding standard parameters')
    pull = settings.prior_spread, settings.prior_cost
    standard = standard_parameters(robot, base, estimate, estimation.system, *pull)
    findings = [*judged[0].warnings, *findings, *standard.findings]
    progress('validating')
    chi = basic_solution(base, estimate.value)
    held_out, motions = None, list[Motion]()
    if validation is not None:
        held_out, motions = _predicted(robot, settings, estimation.delays, validation, chi)
    # A replay has rows of the simulated motion, and rows of springs are combinations: what is
    # compared with other methods is the measured motion.
    samples, systems = estimation.samples, estimation.sampled_systems
    if settings.method in SIMULATED or isinstance(robot, ElasticRobot):
        fitted = validate_samples(samples, robot, chi)
    else:
        fitted = estimation.fitted(robot, base)
    whole = FittedModel(robot, base, systems, estimate.value)
    read = getattr(recording, 'notes', ())
    findings += _findings(read, *judged, estimation, plain, whole)
    return Identification(
        robot=robot,
        method=settings.method,
        base=base,
        estimate=estimate,
        essential=essential,
        standard=standard,
        fitted=fitted,
        validation=held_out,
        findings=in_order(findings),
        history=estimation.history,
        mixed=mixed,
        quality=data_quality(
            recording, samples, systems, estimation.system, estimate, estimation.delays
        ),
        plain_friction=plain_friction(
            robot, standard.value, estimation.motions, motions, estimation.period
        ),
    )
