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
from ..regression.instrumental_variables import with_instruments
from ..regression.observation_system import System
from ..replay.convergence_history import History
from ..signals.recording import LONG, Recording
from ..signals.samples import Samples
from ..timing.delay_compensation import aligned, Delays
from .chunked_estimation import gather, pieces_of
from .validation import of_system

Progress = Callable[[str], None]
# Methods that look at a recording more than once.
WHOLE = ('didim', 'iv', 'irls')


@dataclasses.dataclass(frozen=True)
class Solved:
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
    shown: tuple[System, ...]
    system: System
    estimate: Estimate
    delay: Delays
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    history: History | None = None

    def fitted(self) -> Validation:
        """Compare the torques of the rows in memory with those of the estimate."""
        return Validation.joined([of_system(rows, self.estimate.value) for rows in self.shown])


def solve(
    recording: Recording | Iterable[Recording],
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
    tell: Progress,
) -> Solved:
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
        if whole or recording.time.size <= LONG:
            return _at_once(recording, robot, base, settings, tell)
        recording = pieces_of(recording)
    if whole:
        what = 'an elastic robot' if isinstance(robot, ElasticRobot) else 'leave_one_out'
        what = f"method '{settings.method}'" if settings.method in WHOLE else what
        raise RecordingError(
            f'{what} needs a recording in memory as a whole, and this one is too long: choose a '
            "part of it, or method 'wls'"
        )
    return _in_pieces(recording, robot, base, settings)


def _at_once(
    given: Recording,
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
    tell: Progress,
) -> Solved:
    samples, system, delay, notes = aligned(given, robot, base, settings.signals)
    check_deflections(samples, robot)
    tell('estimating')
    before = (*samples.notes, *notes)
    if settings.method == 'didim':
        # The replay knows its delays: it takes the efforts as they were recorded.
        return _closed_loop(given, samples, delay, before, robot, base, settings, tell)
    method = settings.method
    if method == 'iv' and isinstance(robot, ElasticRobot):
        method = 'wls'  # the instruments of springs follow from it
    elif method == 'iv':
        system = with_instruments(system, samples, given, robot, base)
    estimate = fit(system, method, settings.iterations)
    system, estimate, signs = account_for_springs(given, samples, system, robot, base, estimate)
    return Solved(samples, (system,), system, estimate, delay, before, tuple(signs))


def _in_pieces(
    pieces: Iterable[Recording],
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
) -> Solved:
    found = gather(pieces, robot, base, settings.signals)
    estimate = fit(found.system, settings.method, settings.iterations)
    count = len(found.shown)
    stretches = 'its first minute' if count == 1 else f'{count} stretches spread over it'
    note = f'a long recording: residuals and torques shown are of {stretches}, the fit is of all'
    before = (*found.notes, note)
    return Solved(found.samples, found.shown, found.system, estimate, found.delay, before)


def _closed_loop(
    recording: Recording,
    samples: Samples,
    delay: Delays,
    before: tuple[str, ...],
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
    tell: Progress,
) -> Solved:
    """Estimate by DIDIM."""
    # Imported here: the replay stands on this package's estimators.
    from ..replay.didim_from_recording import closed_loop, described

    outcome = closed_loop(
        recording, robot, base, settings.replay, samples, lambda step: tell(described(step))
    )
    system, estimate, history = outcome.system, outcome.estimate, outcome.history
    return Solved(
        samples, (system,), system, estimate, delay, before, tuple(history.warnings), history
    )
