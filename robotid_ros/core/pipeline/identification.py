"""From a recording to an identification: the steps in their order."""

from collections.abc import Iterable
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
from ..diagnostics.plausibility import dissipation_warnings, exact_fit_warnings
from ..diagnostics.torque_parts import FittedModel
from ..diagnostics.trials import Trial
from ..finding_codes import finding, select
from ..findings import Finding, in_order
from ..identification_settings import IdentificationSettings, SIMULATED
from ..model.base_parameters import base_parameters, BaseParameters
from ..model.robot import ElasticRobot, Robot
from ..parameters.essential import Essential, find_essential
from ..parameters.parameter_choice import compare_on_motion, try_base, try_essential
from ..parameters.plain_friction import DriveMotion, plain_friction
from ..parameters.standard import basic_solution, Standard, standard_parameters
from ..regression.estimators import MIXED
from ..regression.goodness_of_fit import Validation
from ..signals.preparation import prepare
from ..signals.recording import Recording
from ..timing.delays import Delays, remove_delay
from .choices import choose_model
from .estimation import check_method, estimate_base_parameters, Estimation, Progress
from .load_friction import iterate_friction_load
from .logs import longest_log, RecordingOrChunks
from .results import Identification
from .validation import validate, validate_samples


@dataclasses.dataclass(frozen=True)
class _Inputs:
    """The arguments of `identify`."""

    recording: RecordingOrChunks
    robot: Robot
    settings: IdentificationSettings
    validation: RecordingOrChunks | None
    progress: Progress


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
    inputs = _Inputs(recording, robot, settings, validation, progress or (lambda _: None))
    if settings.method == 'both':
        return _identify_by_wls_and_didim(inputs)
    return _identify_by_one_method(inputs)


def _identify_by_one_method(inputs: _Inputs) -> Identification:
    inputs.progress('choosing filters, rows and friction')
    choice = choose_model(inputs.recording, inputs.robot, inputs.settings)
    recording, robot, settings = choice.recording, choice.robot, choice.settings
    mixed = choice.mixed
    inputs = dataclasses.replace(inputs, recording=recording, robot=robot, settings=settings)
    inputs.progress('preparing signals')
    notes = list[Finding]()
    if settings.method != MIXED:  # which has the load of its plain fit
        robot, notes = iterate_friction_load(longest_log(recording), robot, settings)
    base = base_parameters(robot)
    estimation = estimate_base_parameters(recording, robot, base, settings, inputs.progress, mixed)
    estimate, plain = estimation.estimate, estimation.less_shrunk()
    essential = None
    if settings.essential:
        inputs.progress('finding the essential parameters')
        method = 'wls' if estimate.method == MIXED else estimate.method
        bounds = settings.essential_sigma, settings.significance, method, settings.essential_ratio
        essential = find_essential(plain.system, plain.estimate, *bounds)
        if (penalty := estimation.system.penalty) is not None:
            indices = np.flatnonzero(~penalty.shrunk)[essential.indices]
            essential = dataclasses.replace(essential, indices=indices)
    inputs.progress('finding standard parameters')
    pull = settings.prior_spread, settings.prior_cost
    standard = standard_parameters(robot, base, estimate, estimation.system, *pull)
    notes = [*choice.notes, *notes, *standard.findings]
    inputs.progress('validating')
    chi = basic_solution(base, estimate.value)
    validation, motions = _validate(inputs, estimation.delays, robot, chi)
    # Without what is shrunk: diagnostics look at what that leaves.
    judged = (robot, base)
    if mixed is not None and robot is mixed.robot:
        judged = (mixed.plain, mixed.base)
    fewer, better = _try_parameters(
        inputs, (robot, base), estimation, essential, standard, validation, judged
    )
    if better is not None:
        tried = better.values(robot.joints[better.joint], 'base parameters')
        notes.append(finding('base_predicts_better', **tried))
    # A replay has rows of the simulated motion, and rows of springs are combinations: what is
    # compared with other methods is the measured motion.
    if settings.method in SIMULATED or isinstance(robot, ElasticRobot):
        fitted = validate_samples(estimation.samples, robot, chi)
    else:
        fitted = estimation.fitted(robot, base)
    systems = estimation.sampled_systems
    whole = FittedModel(robot, base, systems, estimate.value), estimate.covariance
    return Identification(
        robot=robot,
        method=settings.method,
        base=base,
        estimate=estimate,
        essential=essential,
        standard=standard,
        fitted=fitted,
        validation=validation,
        findings=_findings(inputs, *judged, plain, fewer, notes, whole),
        history=estimation.history,
        mixed=mixed,
        better_base=better,
        quality=data_quality(
            recording, estimation.samples, systems, estimation.system, estimate, estimation.delays
        ),
        plain_friction=plain_friction(robot, standard.value, estimation.motions, motions),
    )


def _try_parameters(
    inputs: _Inputs,
    model: tuple[Robot, BaseParameters],
    estimation: Estimation,
    essential: Essential | None,
    standard: Standard,
    validation: Validation | None,
    judged: tuple[Robot, BaseParameters],
) -> tuple[Trial | None, Trial | None]:
    """
    Try which parameters predict motion that was not fitted: another one, else parts left out.

    `judged` are robot and base parameters without what is shrunk, which is not chosen from.

    Returns
    -------
    What essential ones leave where they are better than the base parameters, and what these leave
    where they are better than consistent ones; None where they are not

    """

    def predicted(chi: np.ndarray) -> Validation | None:
        return _validate(inputs, estimation.delays, model[0], chi)[0]

    plain, value = estimation.less_shrunk(), estimation.estimate.value
    other = inputs.validation if isinstance(inputs.validation, Recording) else None
    settings, fewer, better = inputs.settings, None, None
    rigid = not isinstance(model[0], ElasticRobot)
    if rigid and essential is not None and len(essential.indices) < len(plain.estimate.value):
        bounds = settings.essential_sigma, settings.significance, settings.essential_ratio
        fewer = try_essential(plain.sampled_systems, plain.estimate, *bounds)
    if fewer is not None and essential is not None and validation is not None and other:
        penalty = estimation.system.penalty
        kept = np.zeros_like(value) if penalty is None else np.where(penalty.shrunk, value, 0.0)
        kept[essential.indices] = essential.estimate.value
        found = predicted(basic_solution(model[1], kept))
        fewer = None if found is None else compare_on_motion(validation, found)
    if standard.obstacle and validation is not None and other:
        found = predicted(standard.value)
        better = None if found is None else compare_on_motion(found, validation)
    elif standard.obstacle:
        better = try_base(
            *judged, plain.estimate, standard, settings.prior_spread, plain.sampled_systems
        )
    return fewer, better


def _findings(
    inputs: _Inputs,
    robot: Robot,
    base: BaseParameters,
    estimation: Estimation,
    fewer: Trial | None,
    notes: list[Finding],
    whole: tuple[FittedModel, Array],
) -> tuple[Finding, ...]:
    samples, estimate = estimation.samples, estimation.estimate
    read: Iterable[Finding] = getattr(inputs.recording, 'notes', ())
    of_log = select(read, 'effort_unit_of_log')
    if robot.drive_gain_given:  # which says what currents are worth
        read = [each for each in read if each not in of_log]
    data = data_warnings(robot, base, samples, estimation.sampled_systems, estimate, whole[0])
    if of_log:  # the log says it itself
        known = select(data, 'effort_unit')
        data = [each for each in data if each not in known]
    found = (
        *robot.warnings,
        *notes,
        *read,
        *estimation.signal_notes,
        *data,
        *exact_fit_warnings(robot, samples, estimate),
        *dissipation_warnings(*whole),
        *identifiability_warnings(robot, samples, estimate, fewer),
        *timing_warnings(estimation.system.timing, estimate),
        *estimation.estimate_notes,
    )
    return in_order(found)


def _validate(
    inputs: _Inputs, delays: Delays, robot: Robot, chi: np.ndarray
) -> tuple[Validation | None, list[DriveMotion]]:
    """Predict the torques of the other recording; return its motion as well."""
    recording, settings = inputs.validation, inputs.settings
    if recording is None:
        return None, []
    if isinstance(recording, Recording):
        prompt = remove_delay(recording, delays, settings.signals.stamps)
        samples = prepare(prompt, robot, settings.signals)
        motion = DriveMotion(samples.q, samples.dq, samples.ddq)
        return validate_samples(samples, robot, chi), [motion]
    found = validate((remove_delay(chunk, delays) for chunk in recording), robot, chi, settings)
    parts = found.parts
    if parts is None or len(found.time) < 2:
        return found, []
    return found, [DriveMotion.of(found.time, parts.position, parts.velocity)]


def _identify_by_wls_and_didim(inputs: _Inputs) -> Identification:
    """Identify by WLS, and by DIDIM to compare; where that fails, the first result stands."""
    wls, didim = (
        dataclasses.replace(inputs, settings=dataclasses.replace(inputs.settings, method=name))
        for name in ('wls', 'didim')
    )
    found = _identify_by_one_method(wls)
    try:
        other = _identify_by_one_method(didim)
    except (ControllerError, DivergenceError, RecordingError) as error:
        note = finding('nothing_to_compare', reason=str(error))
        return dataclasses.replace(found, findings=in_order((*found.findings, note)))
    notes = [each.of('DIDIM') for each in other.findings if each not in found.findings]
    notes += disagreement_warnings(found.estimate, other.estimate)
    findings = in_order((*found.findings, *notes))
    return dataclasses.replace(found, findings=findings, history=other.history, compared=other)
