"""The whole way from a recording to an identification."""

from collections.abc import Iterable
import dataclasses

import numpy as np

from ...exceptions import (
    ConfigurationError,
    ControllerError,
    DivergenceError,
    RecordingError,
)
from ..diagnostics.identifiability import disagreement_warnings, identifiability_warnings
from ..diagnostics.plausibility import plausibility_warnings
from ..identification_settings import IdentificationSettings
from ..model.base_parameters import base_parameters
from ..model.robot import ElasticRobot, Robot
from ..parameters.essential import Essential, find_essential
from ..parameters.standard import basic_solution, standard_parameters
from ..regression.estimate import Estimate
from ..regression.goodness_of_fit import Validation
from ..selection.load_friction import iterate_friction_load
from ..selection.stribeck_velocity import search_stribeck_velocities
from ..signals.periodic import find_period
from ..signals.recording import Recording
from ..timing.delay_compensation import Delays, remove_delay, remove_delay_from_chunks
from .estimation import estimate_base_parameters, Estimation, Progress
from .resampling import resampled
from .results import Identification
from .validation import validate, validate_samples


@dataclasses.dataclass(frozen=True)
class _Inputs:
    """What is asked for: `identify`'s arguments."""

    recording: Recording | Iterable[Recording]
    robot: Robot
    settings: IdentificationSettings
    validation: Recording | Iterable[Recording] | None
    progress: Progress


def identify(
    recording: Recording | Iterable[Recording],
    robot: Robot,
    settings: IdentificationSettings,
    validation: Recording | Iterable[Recording] | None = None,
    progress: Progress | None = None,
) -> Identification:
    """
    Identify a robot from a recording.

    Parameters
    ----------
    recording : the excitation; successive chunks of it where it is too long for memory
    robot : the model
    settings : signals, estimator, what follows
    validation : another motion, or None
    progress : called with the name of each step

    Raises
    ------
    RecordingError : the recording cannot be used
    RankDeficientError : the motion does not tell all parameters apart
    ControllerError, DivergenceError : DIDIM lacks the control law, or does not converge

    """
    robot = robot.elastic or robot
    if isinstance(robot, ElasticRobot) and settings.method in ('didim', 'both'):
        raise ConfigurationError(
            f"method '{settings.method}' replays rigid robots: use 'wls', or empty "
            'robot.elastic.joints'
        )
    task = _Inputs(recording, robot, settings, validation, progress or (lambda _: None))
    return (
        _identify_by_wls_and_didim(task)
        if settings.method == 'both'
        else _identify_by_one_method(task)
    )


def _identify_by_one_method(task: _Inputs) -> Identification:
    recording, settings = task.recording, task.settings
    task.progress('preparing signals')
    robot, notes = _with_friction_shapes(task)
    base = base_parameters(robot)
    solved = estimate_base_parameters(recording, robot, base, settings, task.progress)
    period = find_period(recording) if isinstance(recording, Recording) else None
    estimate, resampling = resampled(solved.estimate, solved.system, period, settings)
    found = _essential(solved, estimate, task)
    task.progress('finding standard parameters')
    standard = standard_parameters(
        robot, base, estimate, found, solved.system, settings.prior_spread
    )
    task.progress('validating')
    chi = basic_solution(base, estimate.value)
    return Identification(
        robot=robot,
        method=settings.method,
        base=base,
        estimate=estimate,
        essential=found,
        standard=standard,
        fitted=_fitted(solved, robot, chi, settings),
        validation=_validated(task, solved.delays, robot, chi),
        warnings=_warnings(robot, recording, solved, estimate, [*notes, *resampling]),
        history=solved.history,
    )


def _with_friction_shapes(task: _Inputs) -> tuple[Robot, list[str]]:
    """Search what the linear fit takes for given: the load of friction, Stribeck velocities."""
    robot, notes = iterate_friction_load(task.recording, task.robot, task.settings)
    if not task.settings.stribeck:
        return robot, notes
    if not isinstance(task.recording, Recording):
        text = 'the Stribeck velocity was not searched: choose a part that fits into memory'
        return robot, [*notes, text]
    robot, searched = search_stribeck_velocities(task.recording, robot, task.settings.signals)
    return robot, notes + searched


def _essential(solved: Estimation, estimate: Estimate, task: _Inputs) -> Essential | None:
    settings = task.settings
    if not settings.essential:
        return None
    task.progress('finding the essential parameters')
    return find_essential(
        solved.system,
        estimate,
        settings.essential_sigma,
        settings.significance,
        estimate.method,
        settings.essential_ratio,
    )


def _fitted(
    solved: Estimation, robot: Robot, chi: np.ndarray, settings: IdentificationSettings
) -> Validation:
    # Rows of a replay are those of the simulated motion, rows of springs are combined with others:
    # what people compare is the measured motion's.
    if settings.method == 'didim' or isinstance(robot, ElasticRobot):
        return validate_samples(solved.samples, robot, chi)
    return solved.fitted()


def _warnings(
    robot: Robot,
    recording: Recording | Iterable[Recording],
    solved: Estimation,
    estimate: Estimate,
    notes: list[str],
) -> tuple[str, ...]:
    found = (
        *robot.warnings,
        *notes,
        *getattr(recording, 'notes', ()),
        *solved.signal_notes,
        *plausibility_warnings(robot, solved.samples, estimate),
        *identifiability_warnings(robot, solved.samples, estimate),
        *solved.estimate_notes,
    )
    return tuple(dict.fromkeys(found))


def _validated(task: _Inputs, delays: Delays, robot: Robot, chi: np.ndarray) -> Validation | None:
    recording = task.validation
    if recording is None:
        return None
    if isinstance(recording, Recording):
        return validate(remove_delay(recording, delays), robot, chi, task.settings)
    return validate(remove_delay_from_chunks(recording, delays), robot, chi, task.settings)


def _identify_by_wls_and_didim(task: _Inputs) -> Identification:
    """Identify by WLS, and by DIDIM to compare; where that fails, the first result stands."""
    wls, didim = (
        dataclasses.replace(task, settings=dataclasses.replace(task.settings, method=name))
        for name in ('wls', 'didim')
    )
    found = _identify_by_one_method(wls)
    try:
        other = _identify_by_one_method(didim)
    except (ControllerError, DivergenceError, RecordingError) as error:
        note = f'DIDIM has no result to compare with: {error}'
        return dataclasses.replace(found, warnings=(*found.warnings, note))
    notes = [f'DIDIM: {text}' for text in other.warnings if text not in found.warnings]
    notes += disagreement_warnings(found.estimate, other.estimate)
    warnings = (*found.warnings, *notes)
    return dataclasses.replace(found, warnings=warnings, history=other.history, compared=other)
