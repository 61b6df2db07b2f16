"""Several logs of one robot in one estimate: rows are stacked, nothing reaches across a border."""

from collections.abc import Iterator, Sequence
import contextlib
import dataclasses
from itertools import accumulate
from pathlib import PurePath
from typing import Any, Protocol

import numpy as np

from ...exceptions import ConfigurationError, RankDeficientError, RecordingError
from ..arrays import Array
from ..finding_codes import finding
from ..findings import Finding
from ..identification_settings import IdentificationSettings, SIMULATED
from ..model.base_parameters import BaseParameters
from ..model.robot import ElasticRobot, Robot
from ..regression.estimate import Estimate
from ..regression.estimators import fit
from ..regression.model_error import count_model_error
from ..regression.observation_system import read_only, System
from ..regression.random_effects import agreement
from ..regression.triangular_factors import joined, split, triangular_factor
from ..signals.recording import MAX_SAMPLES, Recording
from ..signals.samples import SignalSettings
from ..timing.delays import Delays, prepare_without_delay
from .chunked_estimation import ChunkedSystem, observe_chunks, RecordingOrChunks, split_into_chunks

# Methods that simulate or instrument one motion.
OF_ONE_LOG = (*SIMULATED, 'both', 'iv')
# Between two logs on the common time axis [s]: figures show it as a gap.
SPACING = 1.0
# Axis of the rows in the fields of a system.
ROW_AXIS = {
    **{'time': 0, 'W': 1, 'Y': 1, 'valid': 1, 'Z': 1, 'measured': 0, 'moving': 1, 'D': 1},
    **{'q': 0, 'dq': 0},
}
# Chance of saying that logs disagree which do not.
SIGNIFICANT = 0.01
# A log does not agree with the others when its residual is so large a share and so many times
# that of a fit to it alone: noise and what the model lacks are in both.
LARGE_RESIDUAL, MANY_TIMES = 0.1, 2.0


class ChunkedLog(Protocol):
    """A log that is too long for memory; iterating over it gives its chunks."""

    @property
    def source(self) -> str:
        """Where it comes from."""

    @property
    def notes(self) -> tuple[Finding, ...]:
        """What was repaired when it was read."""

    @property
    def time_range(self) -> tuple[float, float]:
        """Times of the first and the last sample [s]."""

    @property
    def size(self) -> int:
        """Number of samples."""

    def __iter__(self) -> Iterator[Recording]:
        """Yield the chunks."""


Log = Recording | ChunkedLog


@dataclasses.dataclass(frozen=True)
class LogSet:
    """Several logs of one robot; iterating over it gives their chunks on one time axis."""

    logs: tuple[Log, ...]

    @property
    def source(self) -> str:
        """Where they come from."""
        return ', '.join(log.source for log in self.logs)

    @property
    def notes(self) -> tuple[Finding, ...]:
        """What was repaired when they were read."""
        return merge_notes(self.logs, [log.notes for log in self.logs])

    @property
    def size(self) -> int:
        """Number of samples."""
        return sum(log.size for log in self.logs)

    @property
    def in_memory(self) -> bool:
        """Whether the rows of all of them fit into memory."""
        return self.size <= MAX_SAMPLES and all(isinstance(log, Recording) for log in self.logs)

    @property
    def offsets(self) -> list[float]:
        """What to add to the times of each log, so that they come one after the other [s]."""
        ends = accumulate(log.time_range[1] - log.time_range[0] + SPACING for log in self.logs)
        return [
            start - log.time_range[0] for start, log in zip([0.0, *ends], self.logs, strict=False)
        ]

    def __iter__(self) -> Iterator[Recording]:
        for offset, log in zip(self.offsets, self.logs, strict=True):
            for chunk in [log] if isinstance(log, Recording) else log:
                yield dataclasses.replace(chunk, time=chunk.time + offset, reference=None)


@dataclasses.dataclass(frozen=True)
class ObservedLogs:
    """Systems of the logs, their rows put together in `total`."""

    total: ChunkedSystem
    parts: tuple[ChunkedSystem, ...]
    logs: LogSet

    def disagreement(self, value: Array) -> tuple[Finding, ...]:
        """Name the logs that the base parameters (b,) predict far worse than their own do."""
        worse = []
        for name, part in zip(short_names(self.logs.logs), self.parts, strict=True):
            share, own = part.system.total_residual(value), _own_residual(part.system)
            if share > max(LARGE_RESIDUAL, MANY_TIMES * own):
                worse.append((name, share, own))
        if not worse:
            return ()
        logs, shares, alone = zip(*worse, strict=True)
        return (finding('logs_far_apart', logs=logs, shares=shares, own=alone),)

    def agreement(self, estimate: Estimate) -> tuple[Finding, ...]:
        """Test whether the logs by themselves agree on the parameters, within their σ."""
        own, names = list[Estimate](), list[str]()
        for name, part in zip(short_names(self.logs.logs), self.parts, strict=True):
            with contextlib.suppress(RankDeficientError):
                own.append(fit(part.system, estimate.method))
                names.append(name)
        if len(own) < 2:
            return (finding('agreement_not_tested'),)
        values, sigmas = (np.array([getattr(e, k) for e in own]) for k in ('value', 'sigma'))
        found = agreement(values, sigmas)
        place, test = found.parameter, {'p': found.p, 'parameter': estimate.names[found.parameter]}
        if found.p > SIGNIFICANT:
            return (finding('logs_agree', **test),)
        figures = {'logs': names, 'values': values[:, place], 'sigmas': sigmas[:, place]}
        return (finding('logs_disagree', outlier=names[found.session], **figures, **test),)


def _own_residual(system: System) -> float:
    """Return the relative residual of the least squares fit to these rows alone."""
    rows = [system.rows(joint) for joint in range(len(system.joints))]
    W, Y = (np.concatenate([pair[k] for pair in rows]) for k in (0, 1))
    return system.total_residual(np.linalg.lstsq(W, Y, rcond=None)[0])


def check_method(robot: Robot, settings: IdentificationSettings) -> None:
    """
    Check that what is asked for can be had of several logs.

    Raises
    ------
    ConfigurationError : it needs one log

    """
    what = f"method '{settings.method}'" if settings.method in OF_ONE_LOG else ''
    what = what or ('leave_one_out' if settings.leave_one_out else '')
    what = what or ('an elastic robot' if isinstance(robot, ElasticRobot) else '')
    if what:
        raise ConfigurationError(
            f"{what} takes one log and not several: give the longest one, or use method 'wls'"
        )


def longest_log(recording: RecordingOrChunks) -> RecordingOrChunks:
    """Return the longest of several logs, one in memory where there is any; else what is given."""
    if not isinstance(recording, LogSet):
        return recording
    return max(recording.logs, key=lambda log: (isinstance(log, Recording), log.size))


def observe_logs(
    logs: LogSet, robot: Robot, base: BaseParameters, settings: SignalSettings
) -> ObservedLogs:
    """
    Turn several logs into one system; filters, decimation and delays are each log's own.

    Raises
    ------
    RecordingError : a log cannot be used, or nothing moves in it

    """
    whole = logs.in_memory
    parts = [observe_log(log, robot, base, settings, whole) for log in logs.logs]
    shifted = [
        tuple(dataclasses.replace(s, time=s.time + offset) for s in part.sampled_systems)
        for part, offset in zip(parts, logs.offsets, strict=True)
    ]
    notes = [finding('logs_together', count=len(parts), logs=short_names(logs.logs))]
    if not whole:
        notes.append(finding('long_logs'))
    notes += merge_notes(logs.logs, [part.notes for part in parts])
    total = ChunkedSystem(
        (stack_rows if whole else stack_factors)([part.system for part in parts]),
        parts[0].samples,
        tuple(system for systems in shifted for system in systems),
        _mean([part.delays for part in parts], robot.joints),
        tuple(notes),
    )
    return ObservedLogs(total, tuple(parts), logs)


def observe_log(
    log: Log, robot: Robot, base: BaseParameters, settings: SignalSettings, whole: bool
) -> ChunkedSystem:
    """
    Turn one log into rows in memory if `whole`, else into triangular factors.

    Raises
    ------
    RecordingError : it cannot be used, or nothing moves in it

    """
    try:
        if not (isinstance(log, Recording) and whole):
            chunks = split_into_chunks(log) if isinstance(log, Recording) else log
            return observe_chunks(chunks, robot, base, settings)
        samples, system, delays, notes = prepare_without_delay(log, robot, base, settings)
    except RecordingError as error:
        if log.source in str(error):
            raise
        raise type(error)(f'{log.source}: {error}') from error
    counted = count_model_error(samples, system, robot, base)
    return ChunkedSystem(counted, samples, (system,), delays, (*samples.notes, *notes))


def stack_rows(systems: Sequence[System]) -> System:
    """Put the rows of systems with the same columns behind each other."""
    first, changed = systems[0], dict[str, Any]()
    for field in dataclasses.fields(first):
        values = [getattr(system, field.name) for system in systems]
        if field.name in ROW_AXIS and all(value is not None for value in values):
            changed[field.name] = read_only(np.concatenate(values, axis=ROW_AXIS[field.name]))
    noise = [system.noise for system in systems if system.noise is not None]
    return dataclasses.replace(
        first,
        **changed,
        noise=np.sqrt(np.mean(np.square(noise), axis=0)) if len(noise) == len(systems) else None,
        band=min(system.band for system in systems),
    )


def stack_factors(systems: Sequence[System]) -> System:
    """Put systems of triangular factors together."""
    batches = np.concatenate([s.batches for s in systems if s.batches is not None], axis=1)
    total = triangular_factor(np.concatenate([joined(s) for s in systems], axis=1))
    counts = np.sum([s.counts for s in systems if s.counts is not None], axis=0)
    return split(systems[0], total, counts, batches)


def merge_notes(logs: Sequence[Log], notes: Sequence[Sequence[Finding]]) -> tuple[Finding, ...]:
    """Return what was noted on all logs as it is, other notes with the name of their log."""
    common = [note for note in notes[0] if all(note in other for other in notes)]
    named = [
        note.of(name)
        for name, own in zip(short_names(logs), notes, strict=True)
        for note in own
        if note not in common
    ]
    return tuple(dict.fromkeys([*common, *named]))


def short_names(logs: Sequence[Log]) -> list[str]:
    """Return the last part of the path of each log, or all of it where two have the same."""
    names = {log.source: PurePath(log.source).name for log in logs}
    ends = list(names.values())
    return [log.source if ends.count(names[log.source]) > 1 else names[log.source] for log in logs]


def _mean(each: Sequence[Delays], joints: Sequence[str]) -> Delays:
    """Return the mean delay of each joint that has one: what another log of the robot may have."""
    named = [joint for joint in joints if any(joint in delays for delays in each)]
    return {j: float(np.mean([delays.get(j, 0.0) for delays in each])) for j in named}
