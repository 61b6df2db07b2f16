"""From a recording to an estimate: in memory, or in chunks where it is too long for that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
import dataclasses

import numpy as np

from ...exceptions import RankDeficientError, RecordingError
from ..elastic_joints.elastic_estimation import account_for_springs, check_deflections
from ..finding_codes import finding
from ..findings import Finding
from ..identification_settings import IdentificationSettings, MODEL_ERROR, SIMULATED
from ..mixed.mixed_model import MixedModel
from ..model.base_parameters import BaseParameters
from ..model.robot import ElasticRobot, Robot
from ..parameters.plain_friction import DriveMotion
from ..regression.estimate import Estimate
from ..regression.estimators import fit, MIXED
from ..regression.goodness_of_fit import Validation
from ..regression.model_error import count_model_error
from ..regression.observation_system import System
from ..replay.convergence_history import History
from ..signals.recording import MAX_SAMPLES, Recording
from ..signals.samples import Samples
from ..timing.delays import Delays, prepare_without_delay
from .chunked_estimation import observe_chunks, RecordingOrChunks, split_into_chunks
from .estimation_by_simulation import fit_by_instruments, fit_by_simulation, Fitted, Observed
from .several_logs import LogSet, observe_logs
from .validation import validate_system
from .warm_up import fit_warm

Progress = Callable[[str], None]
# Methods that need all rows at once, not triangular factors of them.
WHOLE = (*SIMULATED, 'iv', 'irls')


@dataclasses.dataclass(frozen=True)
class Estimation:
    """
    Base parameters of a recording, with the samples and rows that they come from.

    Attributes
    ----------
    samples : of all of it, or of the first chunk that moves
    sampled_systems : rows in memory, one system a chunk
    system : that was solved
    estimate : of the base parameters
    delays : of the efforts behind the positions, removed
    signal_notes, estimate_notes : findings on the signals and on the estimate
    history : of an iterative method, or None

    """

    samples: Samples
    sampled_systems: tuple[System, ...]
    system: System
    estimate: Estimate
    delays: Delays
    signal_notes: tuple[Finding, ...] = ()
    estimate_notes: tuple[Finding, ...] = ()
    history: History | None = None

    def less_shrunk(self) -> Estimation:
        """Return what is left for plain friction, of a mixed model; else all as it is."""
        penalty = self.system.penalty
        if penalty is None:
            return self
        gone, value = penalty.shrunk, self.estimate.value
        return dataclasses.replace(
            self,
            sampled_systems=tuple(s.without(gone, value) for s in self.sampled_systems),
            system=self.system.without(gone, value),
            estimate=self.estimate.select(np.flatnonzero(~gone)),
        )

    @property
    def motions(self) -> list[DriveMotion]:
        """Motions that the recording shows: of a long one, or of several, those in memory."""
        samples = self.samples
        if len(self.sampled_systems) == 1:
            return [DriveMotion(samples.q, samples.dq, samples.ddq)]
        return [
            DriveMotion.of(rows.time, rows.q, rows.dq)
            for rows in self.sampled_systems
            if rows.q is not None and rows.dq is not None and len(rows.time) > 1
        ]

    def fitted(self, robot: Robot, base: BaseParameters) -> Validation:
        """Compare the torques of the rows in memory with those of the estimate."""
        return Validation.concatenate(
            [
                validate_system(rows, robot, base, self.estimate.value)
                for rows in self.sampled_systems
            ]
        )


def estimate_base_parameters(
    recording: RecordingOrChunks,
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
    progress: Progress,
    mixed: MixedModel | None = None,
) -> Estimation:
    """
    Estimate the base parameters from a recording.

    Parameters
    ----------
    recording : in memory, or its successive chunks; several logs
    robot, base : the model
    settings : signals, estimator
    progress : called with the name of each step
    mixed : whose penalties count with the method 'mixed'

    Raises
    ------
    RecordingError : the recording cannot be used, or the method needs all of it at once
    RankDeficientError : the motion leaves parameters undetermined

    """
    try:
        return _estimate(recording, robot, base, settings, progress, mixed)
    except RankDeficientError as error:
        weak = {name.removesuffix('R') for name in error.names}
        joints = dict.fromkeys(p.joint for p in robot.parameters if p.name in weak)
        raise RankDeficientError(error.names, error.singular_values, tuple(joints)) from error


def _estimate(
    recording: RecordingOrChunks,
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
    progress: Progress,
    mixed: MixedModel | None,
) -> Estimation:
    if isinstance(recording, LogSet):
        return _estimate_logs(recording, robot, base, settings, progress, mixed)
    check_memory(recording, robot, settings)
    if isinstance(recording, Recording):
        if _needs_whole(robot, settings) or recording.time.size <= MAX_SAMPLES:
            return _estimate_in_memory(recording, robot, base, settings, progress, mixed)
        recording = split_into_chunks(recording)
    return _estimate_in_chunks(recording, robot, base, settings, mixed)


def check_memory(
    recording: RecordingOrChunks, robot: Robot, settings: IdentificationSettings
) -> None:
    """
    Check that what needs the whole recording has it in memory.

    Raises
    ------
    RecordingError : it comes in chunks

    """
    if not isinstance(recording, Recording) and _needs_whole(robot, settings):
        what = 'an elastic robot' if isinstance(robot, ElasticRobot) else 'leave_one_out'
        what = f"method '{settings.method}'" if settings.method in WHOLE else what
        raise RecordingError(
            f'{what} needs a recording in memory as a whole, and this one is too long: choose a '
            "part of it, or method 'wls'"
        )


def _needs_whole(robot: Robot, settings: IdentificationSettings) -> bool:
    return settings.method in WHOLE or settings.leave_one_out or isinstance(robot, ElasticRobot)


def _estimate_in_memory(
    recording: Recording,
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
    progress: Progress,
    mixed: MixedModel | None,
) -> Estimation:
    samples, system, delays, notes = prepare_without_delay(
        recording, robot, base, settings.signals
    )
    system = _penalised(system, settings, mixed)
    check_deflections(samples, robot)
    progress('estimating')
    estimate_rows = fit_by_simulation if settings.method in SIMULATED else _regressed
    observed = Observed(recording, samples, system, robot, base)
    system, estimate, warnings, history = estimate_rows(observed, settings, progress)
    signal_notes = (*samples.notes, *notes)
    return Estimation(
        samples, (system,), system, estimate, delays, signal_notes, tuple(warnings), history
    )


def _regressed(observed: Observed, settings: IdentificationSettings, _: Progress) -> Fitted:
    """Fit the rows of the measured motion."""
    recording, samples, system, robot, base = observed
    elastic, notes = isinstance(robot, ElasticRobot), list[Finding]()
    if settings.covariance == MODEL_ERROR and not elastic:
        system = count_model_error(samples, system, robot, base)
    if settings.method == 'iv' and not elastic:
        system, _warm, fell = fit_warm(samples, system, robot, 'wls', settings.iterations)
        system, estimate, notes = fit_by_instruments(observed._replace(system=system), settings)
        notes = [*fell, *notes]
    else:
        # The instruments of springs follow from a weighted fit.
        method = 'wls' if settings.method == 'iv' else settings.method
        system, estimate, notes = fit_warm(samples, system, robot, method, settings.iterations)
    system, estimate, warnings = account_for_springs(
        recording, samples, system, robot, base, estimate
    )
    return system, estimate, [*notes, *warnings], None


def _estimate_in_chunks(
    chunks: Iterable[Recording],
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
    mixed: MixedModel | None,
) -> Estimation:
    found = observe_chunks(chunks, robot, base, settings.signals)
    system = _penalised(as_asked(found.system, settings), settings, mixed)
    estimate = fit(system, settings.method, settings.iterations)
    notes = (*found.notes, finding('long_recording', count=len(found.sampled_systems)))
    return Estimation(found.samples, found.sampled_systems, system, estimate, found.delays, notes)


def _estimate_logs(
    logs: LogSet,
    robot: Robot,
    base: BaseParameters,
    settings: IdentificationSettings,
    progress: Progress,
    mixed: MixedModel | None,
) -> Estimation:
    found = observe_logs(logs, robot, base, settings.signals)
    progress('estimating')
    total = found.total
    system = _penalised(as_asked(total.system, settings), settings, mixed)
    parts = [
        dataclasses.replace(part, system=_penalised(part.system, settings, mixed))
        for part in found.parts
    ]
    found = dataclasses.replace(found, parts=tuple(parts))
    estimate = fit(system, settings.method, settings.iterations)
    return Estimation(
        total.samples,
        total.sampled_systems,
        system,
        estimate,
        total.delays,
        total.notes,
        (*found.disagreement(estimate.value), *found.agreement(estimate)),
    )


def _penalised(
    system: System, settings: IdentificationSettings, mixed: MixedModel | None
) -> System:
    """Return the system with the penalties of a mixed model where they count."""
    return mixed.attach(system) if mixed is not None and settings.method == MIXED else system


def as_asked(system: System, settings: IdentificationSettings) -> System:
    """Return the system without what the model may leave out where that is not to count."""
    counted = settings.covariance == MODEL_ERROR
    return system if counted else dataclasses.replace(system, D=None)
