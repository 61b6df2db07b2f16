"""Rows of a recording in memory, of its chunks or of several logs; efforts predicted of it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
import dataclasses
from itertools import accumulate
from pathlib import PurePath
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from ...exceptions import RecordingError, StandstillError
from ..arrays import Array
from ..findings import Finding, finding
from ..identification_settings import IdentificationSettings
from ..model.robot import BaseParameters, ElasticRobot, Robot
from ..regression.delays import Delays, prepare_without_delay, remove_delay
from ..regression.goodness_of_fit import validate_samples
from ..regression.model_error import count_model_error, ModelErrors
from ..regression.observation_system import (
    BATCHES_PER_CHUNK,
    Factors,
    observe,
    Observed,
    Rows,
    stack_factors,
    System,
    TriangularFactors,
)
from ..regression.validation import Validation
from ..signals.preparation import EDGE_PERIODS, prepare
from ..signals.recording import MAX_SAMPLES, Recording, SignalSettings

RecordingOrChunks = Recording | Iterable[Recording]
# Between two logs on the common time axis [s]: figures show it as a gap.
SPACING = 1.0


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
        ranges = [log.time_range for log in self.logs]
        ends = accumulate(stop - start + SPACING for start, stop in ranges)
        return [end - start for end, (start, _) in zip([0.0, *ends], ranges, strict=False)]

    def __iter__(self) -> Iterator[Recording]:
        for offset, log in zip(self.offsets, self.logs, strict=True):
            for chunk in [log] if isinstance(log, Recording) else log:
                yield dataclasses.replace(chunk, time=chunk.time + offset, reference=None)


def longest_log(recording: RecordingOrChunks) -> RecordingOrChunks:
    """Return the longest of several logs, one in memory where there is any; else what is given."""
    if not isinstance(recording, LogSet):
        return recording
    return max(recording.logs, key=lambda log: (isinstance(log, Recording), log.size))


def merge_notes(logs: Sequence[Log], notes: Sequence[Sequence[Finding]]) -> tuple[Finding, ...]:
    """Return what was noted on all logs as it is, other notes with the name of their log."""
    common = [note for note in notes[0] if all(note in other for other in notes)]
    pairs = zip(short_names(logs), notes, strict=True)
    named = [note.of(name) for name, own in pairs for note in own if note not in common]
    return tuple(dict.fromkeys([*common, *named]))


def short_names(logs: Sequence[Log]) -> list[str]:
    """Return the last part of the path of each log, or all of it where two have the same."""
    names = {log.source: PurePath(log.source).name for log in logs}
    ends = list(names.values())
    return [log.source if ends.count(names[log.source]) > 1 else names[log.source] for log in logs]


T = TypeVar('T')
# Decimated rows in memory for residuals and figures: 60 MB for six joints and 61 columns.
MAX_ROWS = 20_000


class BlockSampler(Generic[T]):
    """Every k-th of the blocks so far; k doubles whenever their rows get too many."""

    def __init__(self, max_rows: int = MAX_ROWS):
        self.blocks: list[T] = []  # those that are kept
        self._max_rows, self._rows = max_rows, list[int]()
        self._seen, self._step = 0, 1

    def takes_next(self) -> bool:
        """Return whether the next block is one to keep, and go on to the one after."""
        self._seen += 1
        return (self._seen - 1) % self._step == 0

    def add(self, block: T, rows: int) -> None:
        """Keep a block of so many rows."""
        self.blocks.append(block)
        self._rows.append(rows)
        while sum(self._rows) > self._max_rows and len(self.blocks) > 1:
            self.blocks, self._rows = self.blocks[::2], self._rows[::2]
            self._step *= 2


# Rows of a chunk that a recording in memory is cut into: a minute at 1 kHz. Memory grows with it,
# and so does the share of rows that overlap where it is small.
CHUNK_SAMPLES = 60_000
# Of chunks, however short the first is [s]: zeros that wander show in waves slower than motions.
LEAST_DURATION = 30.0
MAX_NOTES = 20  # of all chunks together, for the user


def observe_recording(
    recording: RecordingOrChunks,
    robot: Robot,
    base: BaseParameters,
    settings: SignalSettings,
    whole: bool = False,
) -> Observed[System]:
    """
    Turn a recording into rows, or into factors of as many as there are.

    It is in memory, in successive chunks, or of several logs. If `whole`, the rows are wanted in
    memory, however many. Raises a RecordingError where it cannot be used, or nothing moves.
    """
    if isinstance(recording, LogSet):
        return _observe_logs(recording, robot, base, settings)
    if isinstance(recording, Recording) and (whole or recording.size <= MAX_SAMPLES):
        observed = prepare_without_delay(recording, robot, base, settings)
        system, samples = observed.system, observed.samples
        if not isinstance(robot, ElasticRobot):  # what springs leave out, their own fits count
            system = count_model_error(samples, system, robot, base)
        notes = (*samples.notes, *observed.notes)
        return dataclasses.replace(observed, system=system, notes=notes)
    chunks = split_into_chunks(recording) if isinstance(recording, Recording) else recording
    last = deque(observe_so_far(chunks, robot, base, settings), maxlen=1)
    if not last:
        raise StandstillError('no joint moves in any chunk of the recording: record a motion')
    return last[0]()


def observe_log(
    log: Log, robot: Robot, base: BaseParameters, settings: SignalSettings, whole: bool
) -> Observed[System]:
    """
    Turn one of several logs into rows in memory if `whole`, else into triangular factors.

    A RecordingError says which one cannot be used, or does not move.
    """
    cut = split_into_chunks(log) if isinstance(log, Recording) and not whole else log
    try:
        return observe_recording(cut, robot, base, settings, whole)
    except RecordingError as error:
        raise type(error)(f'{log.source}: {error}') from error


def _observe_logs(
    logs: LogSet, robot: Robot, base: BaseParameters, settings: SignalSettings
) -> Observed[System]:
    """Turn several logs into one system; filters, decimation and delays are each log's own."""
    whole = logs.in_memory
    parts = [observe_log(log, robot, base, settings, whole) for log in logs.logs]
    rows = [part.system for part in parts if isinstance(part.system, Rows)]
    shifted = [
        dataclasses.replace(system, time=system.time + offset)
        for part, offset in zip(parts, logs.offsets, strict=True)
        for system in part.sampled_systems
    ]
    notes = [
        finding('logs_together', count=len(parts), logs=short_names(logs.logs)),
        *(() if whole else (finding('long_recording'),)),
        *merge_notes(logs.logs, [part.notes for part in parts]),
    ]
    # The mean delay of each joint that has one: what another log of the robot may have.
    delays = {j: [part.delays.get(j, 0.0) for part in parts] for j in robot.joints}
    return Observed(
        Rows.concatenate(rows) if whole else stack_factors([part.system for part in parts]),
        parts[0].samples,
        tuple(shifted),
        {j: float(np.mean(own)) for j, own in delays.items() if any(j in p.delays for p in parts)},
        tuple(notes),
        tuple(parts),
    )


def observe_so_far(
    chunks: Iterable[Recording],
    robot: Robot,
    base: BaseParameters,
    settings: SignalSettings,
    batch: float | None = None,
) -> Iterator[Callable[[], Observed[Factors]]]:
    """
    Yield after each chunk that moves what gives the triangular factors of all of them so far.

    Cut-off, decimation and delays are those of the first one. Chunks overlap by the transients of
    the filters at their ends, so that every row counts once. Batches of rows last `batch` [s];
    None: each chunk has `BATCHES_PER_CHUNK`. Raises a RecordingError where a chunk cannot be used.
    """
    factors, notes = TriangularFactors(), dict[Finding, None]()
    sampled_systems = BlockSampler[Rows]()
    first: Observed[Rows] | None = None
    passed, tail = set[Any](), list[Recording]()

    def so_far() -> Observed[Factors]:
        assert first is not None
        total = factors.system(errors.attach(first.samples, first.system))
        sampled = tuple(sampled_systems.blocks)
        return Observed(total, first.samples, sampled, first.delays, tuple(notes)[:MAX_NOTES])

    for chunk in chunks:
        recording = chunk.select(robot.joints)
        if tail:
            recording = _measured([*tail, recording])
        tail = [_end(recording, settings)]
        try:
            if first is None:
                found = prepare_without_delay(recording, robot, base, settings)
            else:
                prompt = remove_delay(recording, first.delays, settings.stamps)
                prompt.passed.update(passed)  # by the first chunk: checks of what efforts are
                samples = prepare(prompt, robot, settings)
                found = Observed(observe(samples, robot, base), samples, ())
        except StandstillError:
            continue
        samples = found.samples
        if first is None:
            first, passed = found, recording.passed
            errors = ModelErrors.of(samples, found.system, robot, base, LEAST_DURATION)
        settings = dataclasses.replace(
            settings, cutoff=samples.cutoff, decimation=samples.decimation
        )
        tail = [_end(recording, settings)]
        notes.update(dict.fromkeys((*found.notes, *samples.notes)))
        rows = errors.attach(samples, found.system)
        lasts = rows.valid.any(axis=0).sum() * samples.decimation / samples.rate
        factors.add(rows, BATCHES_PER_CHUNK if batch is None else max(1, round(lasts / batch)))
        if sampled_systems.takes_next():
            sampled_systems.add(found.system, found.system.valid.shape[1])
        yield so_far


def _measured(parts: Sequence[Recording], rows: slice = np.s_[:]) -> Recording:
    """Return rows of successive recordings, without what else is known of the run."""
    names = ('time', 'position', 'effort')
    time, position, effort = (
        np.concatenate([getattr(part, name)[rows] for part in parts]) for name in names
    )
    return Recording(parts[0].joints, time, position, effort, source=parts[-1].source)


def _end(recording: Recording, settings: SignalSettings) -> Recording:
    """Return the end of a chunk in which filters have transients; the next chunk repeats it."""
    lowest = settings.band or settings.cutoff
    seconds = 2.0 * EDGE_PERIODS / lowest if lowest else 0.0
    return recording.between(float(np.nanmax(recording.time)) - seconds, np.inf)


def split_into_chunks(recording: Recording) -> Iterator[Recording]:
    """Cut a long recording that is in memory."""
    for start in range(0, len(recording.time), CHUNK_SAMPLES):
        yield _measured([recording], slice(start, start + CHUNK_SAMPLES))


def without_delays(recording: RecordingOrChunks, delays: Delays, stamps: str) -> RecordingOrChunks:
    """Return a recording, or its chunks, without delays of the efforts, see `remove_delay`."""
    if isinstance(recording, Recording):
        return remove_delay(recording, delays, stamps)
    return (remove_delay(chunk, delays, stamps) for chunk in recording)


def validate(
    recording: RecordingOrChunks, robot: Robot, chi: Array, settings: IdentificationSettings
) -> Validation:
    """Predict the torques of a recording, or some of its chunks, with standard parameters (p,)."""
    if isinstance(recording, Recording):
        return validate_samples(prepare(recording, robot, settings.signals), robot, chi)
    sampler, signals = BlockSampler[Validation](), settings.signals
    for chunk in recording:
        if not sampler.takes_next():
            continue
        try:
            samples = prepare(chunk, robot, signals)
        except StandstillError:
            continue
        signals = dataclasses.replace(
            signals, cutoff=samples.cutoff, decimation=samples.decimation
        )
        part = validate_samples(samples, robot, chi)
        sampler.add(part, len(part.time))
    if not sampler.blocks:
        raise StandstillError('no joint moves in the part for validation: choose another part')
    return Validation.concatenate(sampler.blocks)
