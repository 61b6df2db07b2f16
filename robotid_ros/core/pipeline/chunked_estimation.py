"""The observation system of a recording that comes in chunks, as triangular factors."""

from collections.abc import Iterable, Iterator
import dataclasses
from typing import NamedTuple

import numpy as np

from ...exceptions import StandstillError
from ..findings import Finding
from ..model.base_parameters import BaseParameters
from ..model.robot import Robot
from ..regression.block_sampling import BlockSampler
from ..regression.model_error import COLUMNS, ModelErrors
from ..regression.observation_system import observe, System
from ..regression.triangular_factors import TriangularFactors
from ..signals.preparation import EDGE_PERIODS, prepare
from ..signals.recording import Recording
from ..signals.samples import Samples, SignalSettings
from ..timing.delays import Delays, prepare_without_delay, remove_delay

RecordingOrChunks = Recording | Iterable[Recording]
# Rows of a chunk that a recording in memory is cut into: a minute at 1 kHz. Memory grows with it,
# and so does the share of rows that overlap where it is small.
CHUNK_SAMPLES = 60_000
# Of what comes in chunks, however short the first is [s]: zeros that wander are told by waves so
# long, slower than motions are.
LEAST_DURATION = 30.0
MAX_NOTES = 20  # of all chunks together, for the user


@dataclasses.dataclass(frozen=True)
class ChunkedSystem:
    """
    The observation system of a recording that is too long for memory.

    Attributes
    ----------
    system : triangular factors of all chunks
    samples : of the first chunk that moves
    sampled_systems : rows of some chunks, in memory, from all over the recording
    delays : of the efforts behind the positions, removed
    notes : findings on the signals

    """

    system: System
    samples: Samples
    sampled_systems: tuple[System, ...]
    delays: Delays
    notes: tuple[Finding, ...]


def observe_chunks(
    chunks: Iterable[Recording], robot: Robot, base: BaseParameters, settings: SignalSettings
) -> ChunkedSystem:
    """
    Turn a recording that comes in chunks into triangular factors.

    Cut-off, decimation and delays are those of the first chunk that moves. Chunks overlap by the
    transients of the filters at their ends, so that every row counts once.

    Raises
    ------
    RecordingError : a chunk cannot be used, or nothing moves

    """
    factors, notes = TriangularFactors(robot.n, base.rank + COLUMNS), dict[Finding, None]()
    sampled_systems = BlockSampler[System]()
    first: ObservedChunk | None = None
    for chunk in observe_in_turn(chunks, robot, base, settings):
        if first is None:
            first = chunk
            errors = ModelErrors.of(chunk.samples, chunk.system, robot, base, LEAST_DURATION)
        notes.update(dict.fromkeys(chunk.notes))
        factors.add(errors.attach(chunk.samples, chunk.system))
        if sampled_systems.takes_next():
            sampled_systems.add(chunk.system, chunk.system.valid.shape[1])
    if first is None:
        raise StandstillError('no joint moves in any chunk of the recording: record a motion')
    total = factors.system(errors.attach(first.samples, first.system))
    sampled = tuple(sampled_systems.blocks)
    return ChunkedSystem(total, first.samples, sampled, first.delays, tuple(notes)[:MAX_NOTES])


class ObservedChunk(NamedTuple):
    """Samples and rows of a chunk, the delays removed in it, and findings on its signals."""

    samples: Samples
    system: System
    delays: Delays
    notes: tuple[Finding, ...]


def observe_in_turn(
    chunks: Iterable[Recording], robot: Robot, base: BaseParameters, settings: SignalSettings
) -> Iterator[ObservedChunk]:
    """
    Yield the rows of each chunk in which something moves, see `observe_chunks`.

    Raises
    ------
    RecordingError : a chunk cannot be used

    """
    delays: Delays | None = None
    tail: Recording | None = None
    for chunk in chunks:
        recording = chunk.select(robot.joints)
        recording = recording if tail is None else _concatenate(tail, recording)
        tail, notes = _overlap(recording, settings), list[Finding]()
        try:
            if delays is None:
                samples, system, delays, notes = prepare_without_delay(
                    recording, robot, base, settings
                )
            else:
                samples = prepare(remove_delay(recording, delays), robot, settings)
                system = observe(samples, robot, base)
        except StandstillError:
            continue
        settings = dataclasses.replace(
            settings, cutoff=samples.cutoff, decimation=samples.decimation
        )
        tail = _overlap(recording, settings)
        yield ObservedChunk(samples, system, delays, (*notes, *samples.notes))


def _overlap(recording: Recording, settings: SignalSettings) -> Recording:
    """Return the end of a chunk in which filters have transients; the next chunk repeats it."""
    lowest = settings.band or settings.cutoff
    seconds = 2.0 * EDGE_PERIODS / lowest if lowest else 0.0
    return recording.between(float(np.nanmax(recording.time)) - seconds, np.inf)


def _concatenate(first: Recording, second: Recording) -> Recording:
    """Concatenate two chunks, joint states only."""
    time, position, effort = (
        np.concatenate([getattr(chunk, name) for chunk in (first, second)])
        for name in ('time', 'position', 'effort')
    )
    return Recording(second.joints, time, position, effort, source=second.source)


def split_into_chunks(recording: Recording) -> Iterator[Recording]:
    """Cut a long recording that is in memory."""
    for start in range(0, len(recording.time), CHUNK_SAMPLES):
        rows = slice(start, start + CHUNK_SAMPLES)
        yield Recording(
            recording.joints,
            recording.time[rows],
            recording.position[rows],
            recording.effort[rows],
            source=recording.source,
        )
