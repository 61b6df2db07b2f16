"""The whole way from a recording to an identification."""

from collections.abc import Callable, Iterable
import dataclasses

import numpy as np

from ...exceptions import (
    ConfigurationError,
    ControllerError,
    DivergenceError,
    RecordingError,
)
from ..model.elastic import ElasticRobot
from ..model.robot import Robot
from ..replay.history import History
from ..signals.periods import period_of
from ..signals.recording import Recording
from ..signals.samples import Samples
from .base import base_parameters
from .delay import aligned, without_delay
from .elastic import account_for_springs, check_deflections
from .essential import essential
from .estimators import fit
from .instruments import with_instruments
from .plausibility import implausible
from .resampling import resampled
from .results import BaseParameters, Estimate, Identification
from .settings import IdentificationSettings
from .standard import standard_parameters
from .stream import gather, LONG, pieces_of
from .stribeck import with_stribeck
from .system import System
from .validation import of_system, predicted, validate

Progress = Callable[[str], None]
# Methods that look at a recording more than once.
WHOLE = ('didim', 'iv', 'irls')
# Two methods disagree on a parameter with %σ below the first by more than the second.
SURE, APART = 10.0, 0.05
UNCERTAIN = 100.0  # %σ above which a parameter is worth a warning


def identify(
    recording: Recording | Iterable[Recording],
    robot: Robot,
    settings: IdentificationSettings,
    validation: Recording | None = None,
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
    told: list[str] = []
    if settings.stribeck and isinstance(recording, Recording):
        robot, told = with_stribeck(recording, robot, settings.signals)
    elif settings.stribeck:
        told = ['the Stribeck velocity was not searched: that needs a recording as a whole']
    base = base_parameters(robot)
    if not isinstance(recording, Recording):
        seen = _in_pieces(recording, validation, robot, base, settings)
    elif recording.time.size > LONG and settings.method not in WHOLE and not elastic:
        seen = _in_pieces(pieces_of(recording), validation, robot, base, settings)
    else:
        seen = _at_once(recording, validation, robot, base, settings, tell)
    period = period_of(recording) if isinstance(recording, Recording) else None
    estimate, resampling = resampled(seen.estimate, seen.system, period, settings)
    told += resampling
    found = None
    if settings.essential:
        tell('finding the essential parameters')
        found = essential(
            seen.system,
            estimate,
            settings.essential_sigma,
            settings.significance,
            estimate.method,
            settings.essential_ratio,
        )
    tell('finding standard parameters')
    standard = standard_parameters(
        robot, base, estimate, found, seen.system, settings.prior_spread
    )
    tell('validating')
    exact, validation = shortest(base, estimate), seen.validation
    if settings.method == 'didim' or elastic:
        fitted = predicted(seen.samples, robot, exact)
    else:
        fitted = of_system(seen.rows, estimate.value)
    return Identification(
        robot=robot,
        method=settings.method,
        base=base,
        estimate=estimate,
        essential=found,
        standard=standard,
        fitted=fitted,
        validation=None if validation is None else validate(validation, robot, exact, settings),
        warnings=(
            *robot.warnings,
            *told,
            *(recording.notes if isinstance(recording, Recording) else ()),
            *seen.before,
            *implausible(robot, seen.samples, estimate),
            *_warnings(robot, seen.samples, base, estimate),
            *seen.after,
        ),
        history=seen.history,
    )


@dataclasses.dataclass(frozen=True)
class _Seen:
    """What a recording came to: samples, rows of them, the system that was solved, notes."""

    samples: Samples
    rows: System
    system: System
    estimate: Estimate
    validation: Recording | None
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    history: History | None = None


def _at_once(
    given: Recording,
    validation: Recording | None,
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
    tell: Progress,
) -> _Seen:
    """Estimate from a recording as a whole."""
    samples, system, delay, notes = aligned(given, robot, base, settings.signals)
    if validation is not None:
        validation = without_delay(validation, delay)
    check_deflections(samples, robot)
    tell('estimating')
    before = (*samples.notes, *notes)
    if settings.method == 'didim':
        # The replay knows its delays: it takes the efforts as they were recorded.
        system, estimate, signs, history = _closed_loop(
            given, samples, robot, base, settings, tell
        )
        return _Seen(samples, system, system, estimate, validation, before, tuple(signs), history)
    method = settings.method
    if method == 'iv' and isinstance(robot, ElasticRobot):
        method = 'wls'  # the instruments of springs follow from it
    elif method == 'iv':
        system = with_instruments(system, samples, given, robot, base)
    estimate = fit(system, method, settings.iterations)
    system, estimate, signs = account_for_springs(given, samples, system, robot, base, estimate)
    return _Seen(samples, system, system, estimate, validation, before, tuple(signs))


def _in_pieces(
    pieces: Iterable[Recording],
    validation: Recording | None,
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
) -> _Seen:
    """Estimate from a recording that is never in memory as a whole."""
    if settings.method in WHOLE:
        raise RecordingError(
            f"method '{settings.method}' needs a recording as a whole: use 'wls', or a part of it"
        )
    found = gather(pieces, robot, base, settings.signals)
    estimate = fit(found.system, settings.method, settings.iterations)
    if validation is not None:
        validation = without_delay(validation, found.delay)
    shown = found.first.time[-1] - found.first.time[0]
    note = f'a long recording: torques are shown for its first {shown:.0f} s, the fit is of all'
    before = (*found.notes, note)
    return _Seen(found.samples, found.first, found.system, estimate, validation, before)


def _closed_loop(
    recording: Recording,
    samples: Samples,
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
    tell: Progress,
) -> tuple[System, Estimate, list[str], History]:
    """Identify by DIDIM: its system, estimate, warnings and history."""
    # Imported here: the replay stands on this package's estimators.
    from ..replay.closed_loop import closed_loop, described

    outcome = closed_loop(
        recording, robot, base, settings.replay, samples, lambda step: tell(described(step))
    )
    history = outcome.history
    return outcome.system, outcome.estimate, list(history.warnings), history


def _both(
    recording: Recording | Iterable[Recording],
    robot: Robot,
    settings: IdentificationSettings,
    validation: Recording | None,
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


def disagreement(found: Estimate, other: Estimate) -> list[str]:
    """Say which parameters that both know well differ by more than their 3 σ and by much."""
    sure = (found.relative_sigma < SURE) & (other.relative_sigma < SURE)
    gap = np.abs(found.value - other.value)
    apart = gap > np.maximum(3.0 * np.hypot(found.sigma, other.sigma), APART * np.abs(found.value))
    names = [found.names[k] for k in np.flatnonzero(sure & apart)]
    if not names:
        return []
    return [
        f'{found.method.upper()} and DIDIM disagree on {", ".join(names)}: noise of the positions '
        'spoils the one, wrong gains, delays or a slow control loop the other'
    ]


def shortest(base: BaseParameters, estimate: Estimate) -> np.ndarray:
    """Place the base parameters on their own columns, all others zero, (p,)."""
    chi = np.zeros(base.matrix.shape[1])
    chi[base.columns] = estimate.value
    return chi


def _warnings(
    robot: Robot, samples: Samples, base: BaseParameters, estimate: Estimate
) -> list[str]:
    warnings = []
    for joint, moving in zip(robot.joints, samples.valid.mean(axis=0), strict=True):
        if moving < 0.1:
            warnings.append(f'{joint} hardly moved ({100 * moving:.0f} % of the time): move it')
    doubtful = [
        (name, percent)
        for name, percent in zip(estimate.names, estimate.relative_sigma, strict=True)
        if percent > UNCERTAIN
    ]
    if doubtful:
        listed = ', '.join(f'{n} ({p:.0f} %)' for n, p in doubtful[:8])
        more = f' and {len(doubtful) - 8} more' if len(doubtful) > 8 else ''
        warnings.append(f'these parameters are smaller than their σ: {listed}{more}')
    return warnings
