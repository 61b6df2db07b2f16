"""From a recording to an estimate: as a whole, or in pieces where it is too long for memory."""

from collections.abc import Callable, Iterable
import dataclasses

from ...exceptions import RecordingError
from ..elastic_joints.elastic_estimation import account_for_springs, check_deflections
from ..identification_settings import IdentificationSettings
from ..model.base_parameters import BaseParameters
from ..model.robot import ElasticRobot, Robot
from ..regression.estimate import Estimate
from ..regression.estimators import fit
from ..regression.goodness_of_fit import Validation
from ..regression.instrumental_variables import add_instruments
from ..regression.observation_system import System
from ..replay.convergence_history import History
from ..signals.recording import MAX_SAMPLES, Recording
from ..signals.samples import Samples
from ..timing.delay_compensation import Delays, prepare_without_delay
from .chunked_estimation import observe_chunks, split_into_chunks
from .validation import validate_system

Progress = Callable[[str], None]
# Methods that look at a recording more than once.
WHOLE = ('didim', 'iv', 'irls')


@dataclasses.dataclass(frozen=True)
class Estimation:
    """
    What a recording came to.

    Attributes
    ----------
    samples : of all of it, or of the first piece that moves
    shown : rows in memory, one system a piece
    system : that was solved
    estimate : of the base parameters
    delay : of the efforts behind the positions, removed
    before, after : what is to be known of the signals and of the estimate, in words
    history : of an iterative method, or None

    """

    samples: Samples
    sampled_systems: tuple[System, ...]
    system: System
    estimate: Estimate
    delays: Delays
    signal_notes: tuple[str, ...] = ()
    estimate_notes: tuple[str, ...] = ()
    history: History | None = None

    def fitted(self) -> Validation:
        """Compare the torques of the rows in memory with those of the estimate."""
        return Validation.concatenate(
            [validate_system(rows, self.estimate.value) for rows in self.sampled_systems]
        )


def solve(
    recording: Recording | Iterable[Recording],
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
    progress: Progress,
) -> Estimation:
    """
    Estimate the base parameters from a recording.

    Parameters
    ----------
    recording : as a whole, or successive pieces
    robot, base : the model
    settings : signals, estimator
    tell : told each step

    Raises
    ------
    RecordingError : the recording cannot be used, or the method needs all of it at once

    """
    whole = settings.method in WHOLE or settings.leave_one_out or isinstance(robot, ElasticRobot)
    if isinstance(recording, Recording):
        if whole or recording.time.size <= MAX_SAMPLES:
            return _estimate_in_memory(recording, robot, base, settings, progress)
        recording = split_into_chunks(recording)
    if whole:
        what = 'an elastic robot' if isinstance(robot, ElasticRobot) else 'leave_one_out'
        what = f"method '{settings.method}'" if settings.method in WHOLE else what
        raise RecordingError(
            f'{what} needs a recording in memory as a whole, and this one is too long: choose a '
            "part of it, or method 'wls'"
        )
    return _estimate_in_chunks(recording, robot, base, settings)


def _estimate_in_memory(
    given: Recording,
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
    progress: Progress,
) -> Estimation:
    samples, system, delays, notes = prepare_without_delay(given, robot, base, settings.signals)
    check_deflections(samples, robot)
    progress('estimating')
    signal_notes = (*samples.notes, *notes)
    if settings.method == 'didim':
        # The replay knows its delays: it takes the efforts as they were recorded.
        return _estimate_by_didim(
            given, samples, delays, signal_notes, robot, base, settings, progress
        )
    method = settings.method
    if method == 'iv' and isinstance(robot, ElasticRobot):
        method = 'wls'  # the instruments of springs follow from it
    elif method == 'iv':
        system = add_instruments(system, samples, given, robot, base)
    estimate = fit(system, method, settings.iterations)
    system, estimate, signs = account_for_springs(given, samples, system, robot, base, estimate)
    return Estimation(samples, (system,), system, estimate, delays, signal_notes, tuple(signs))


def _estimate_in_chunks(
    pieces: Iterable[Recording],
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
) -> Estimation:
    found = observe_chunks(pieces, robot, base, settings.signals)
    estimate = fit(found.system, settings.method, settings.iterations)
    count = len(found.sampled_systems)
    stretches = 'its first minute' if count == 1 else f'{count} stretches spread over it'
    note = f'a long recording: residuals and torques shown are of {stretches}, the fit is of all'
    signal_notes = (*found.notes, note)
    return Estimation(
        found.samples, found.sampled_systems, found.system, estimate, found.delays, signal_notes
    )


def _estimate_by_didim(
    recording: Recording,
    samples: Samples,
    delays: Delays,
    signal_notes: tuple[str, ...],
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
    progress: Progress,
) -> Estimation:
    """Estimate by DIDIM."""
    # Imported here: the replay stands on this package's estimators.
    from ..replay.didim_from_recording import describe_iteration, identify_closed_loop

    outcome = identify_closed_loop(
        recording,
        robot,
        base,
        settings.replay,
        samples,
        lambda step: progress(describe_iteration(step)),
    )
    system, estimate, history = outcome.system, outcome.estimate, outcome.history
    return Estimation(
        samples,
        (system,),
        system,
        estimate,
        delays,
        signal_notes,
        tuple(history.warnings),
        history,
    )
