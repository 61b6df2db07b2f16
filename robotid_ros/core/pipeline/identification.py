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
from ..diagnostics.identifiability import disagreement, doubtful
from ..diagnostics.plausibility import implausible
from ..identification_settings import IdentificationSettings
from ..model.base_parameters import base_parameters, BaseParameters
from ..model.robot import ElasticRobot, Robot
from ..parameters.essential import essential
from ..parameters.standard import standard_parameters
from ..regression.estimate import Estimate
from ..regression.goodness_of_fit import Validation
from ..selection.load_friction import with_load
from ..selection.stribeck_velocity import with_stribeck
from ..signals.periodic import period_of
from ..signals.recording import Recording
from ..timing.delay_compensation import Delays, each_without_delay, without_delay
from .estimation import Progress, solve
from .resampling import resampled
from .results import Identification
from .validation import predicted, validate


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
    recording : the excitation; successive pieces of it where it is too long for memory
    robot : the model
    settings : signals, estimator, what follows
    validation : another motion, or None
    progress : told each step

    Raises
    ------
    RecordingError : the recording cannot be used
    RankDeficientError : the motion does not tell all parameters apart
    ControllerError, DivergenceError : DIDIM lacks the control law, or does not converge

    """
    robot = robot.elastic or robot
    elastic = isinstance(robot, ElasticRobot)
    if elastic and settings.method in ('didim', 'both'):
        raise ConfigurationError(
            f"method '{settings.method}' replays rigid robots: use 'wls', or empty "
            'robot.elastic.joints'
        )
    if settings.method == 'both':
        return _both(recording, robot, settings, validation, progress)
    tell = progress or (lambda _: None)
    tell('preparing signals')
    robot, told = with_load(recording, robot, settings)
    if settings.stribeck and isinstance(recording, Recording):
        robot, notes = with_stribeck(recording, robot, settings.signals)
        told += notes
    elif settings.stribeck:
        told += ['the Stribeck velocity was not searched: choose a part that fits into memory']
    base = base_parameters(robot)
    solved = solve(recording, robot, base, settings, tell)
    period = period_of(recording) if isinstance(recording, Recording) else None
    estimate, resampling = resampled(solved.estimate, solved.system, period, settings)
    told += resampling
    found = None
    if settings.essential:
        tell('finding the essential parameters')
        found = essential(
            solved.system,
            estimate,
            settings.essential_sigma,
            settings.significance,
            estimate.method,
            settings.essential_ratio,
        )
    tell('finding standard parameters')
    standard = standard_parameters(
        robot, base, estimate, found, solved.system, settings.prior_spread
    )
    tell('validating')
    exact = shortest(base, estimate)
    if settings.method == 'didim' or elastic:
        fitted = predicted(solved.samples, robot, exact)
    else:
        fitted = solved.fitted()
    warnings = (
        *robot.warnings,
        *told,
        *getattr(recording, 'notes', ()),
        *solved.before,
        *implausible(robot, solved.samples, estimate),
        *doubtful(robot, solved.samples, estimate),
        *solved.after,
    )
    return Identification(
        robot=robot,
        method=settings.method,
        base=base,
        estimate=estimate,
        essential=found,
        standard=standard,
        fitted=fitted,
        validation=_validated(validation, solved.delay, robot, exact, settings),
        warnings=tuple(dict.fromkeys(warnings)),
        history=solved.history,
    )


def _validated(
    recording: Recording | Iterable[Recording] | None,
    delay: Delays,
    robot: Robot,
    chi: np.ndarray,
    settings: IdentificationSettings,
) -> Validation | None:
    if recording is None:
        return None
    if isinstance(recording, Recording):
        return validate(without_delay(recording, delay), robot, chi, settings)
    return validate(each_without_delay(recording, delay), robot, chi, settings)


def _both(
    recording: Recording | Iterable[Recording],
    robot: Robot,
    settings: IdentificationSettings,
    validation: Recording | Iterable[Recording] | None,
    progress: Progress | None,
) -> Identification:
    """Identify by WLS, and by DIDIM to compare; where that fails, the first result stands."""
    wls, didim = (dataclasses.replace(settings, method=name) for name in ('wls', 'didim'))
    found = identify(recording, robot, wls, validation, progress)
    try:
        other = identify(recording, robot, didim, validation, progress)
    except (ControllerError, DivergenceError, RecordingError) as error:
        note = f'DIDIM has no result to compare with: {error}'
        return dataclasses.replace(found, warnings=(*found.warnings, note))
    notes = [f'DIDIM: {text}' for text in other.warnings if text not in found.warnings]
    notes += disagreement(found.estimate, other.estimate)
    warnings = (*found.warnings, *notes)
    return dataclasses.replace(found, warnings=warnings, history=other.history, compared=other)


def shortest(base: BaseParameters, estimate: Estimate) -> np.ndarray:
    """Place the base parameters on their own columns, all others zero, (p,)."""
    chi = np.zeros(base.matrix.shape[1])
    chi[base.columns] = estimate.value
    return chi
