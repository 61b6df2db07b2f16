"""A recording that comes in chunks: each becomes rows, and these triangular factors."""

from collections.abc import Iterable, Iterator
import dataclasses

import numpy as np

from ...exceptions import RecordingError, StandstillError
from ..model.base_parameters import BaseParameters
from ..model.robot import ElasticRobot, Robot
from ..regression.block_sampling import BlockSampler
from ..regression.observation_system import observe, System
from ..regression.triangular_factors import TriangularFactors
from ..signals.preparation import EDGE_PERIODS, prepare
from ..signals.recording import Recording
from ..signals.samples import Samples, SignalSettings
from ..timing.delay_compensation import Delays, prepare_without_delay, remove_delay

PIECE = 60_000  # samples of a piece of a recording that is in memory as a whole
NOTES = 20


@dataclasses.dataclass(frozen=True)
class ChunkedSystem:
    """
    The observation system of a recording that is too long for memory.

    Attributes
    ----------
    system : triangular factors of all pieces
    samples : of the first piece that moves
    sampled_systems : rows of some chunks, in memory, from all over the recording
    delays : of the efforts behind the positions, removed
    notes : remarks for the user

    """

    system: System
    samples: Samples
    sampled_systems: tuple[System, ...]
    delays: Delays
    notes: tuple[str, ...]


def observe_chunks(
    pieces: Iterable[Recording], robot: Robot, base: BaseParameters, settings: SignalSettings
) -> ChunkedSystem:
    """
    Turn a recording that comes in pieces into triangular factors.

    Cut-off, decimation and delay are those of the first piece that moves. Pieces overlap by what
    their ends spoil, so that every row counts once.

    Raises
    ------
    RecordingError : a piece cannot be used, the robot is elastic, or nothing moves

    """
    if isinstance(robot, ElasticRobot):
        raise RecordingError('springs need a recording as a whole: identify a part of it')
    factors, notes = TriangularFactors(robot.n, base.rank), dict[str, None]()
    delays: Delays = {}
    sampled_systems = BlockSampler[System]()
    start: tuple[Samples, System] | None = None
    tail: Recording | None = None
    for piece in pieces:
        recording = piece.select(robot.joints)
        recording = recording if tail is None else _joined(tail, recording)
        try:
            if start is None:
                samples, system, delays, told = prepare_without_delay(
                    recording, robot, base, settings
                )
                start = samples, system
                notes.update(dict.fromkeys(told))
            else:
                samples = prepare(remove_delay(recording, delays), robot, settings)
                system = observe(samples, robot, base)
        except StandstillError:
            tail = _end(recording, settings)
            continue
        settings = dataclasses.replace(
            settings, cutoff=samples.cutoff, decimation=samples.decimation
        )
        notes.update(dict.fromkeys(samples.notes))
        factors.add(system)
        if sampled_systems.takes_next():
            sampled_systems.add(system, system.valid.shape[1])
        tail = _end(recording, settings)
    if start is None:
        raise StandstillError('no joint moves in any piece of the recording: record a motion')
    total = factors.system(start[1])
    return ChunkedSystem(
        total, start[0], tuple(sampled_systems.blocks), delays, tuple(notes)[:NOTES]
    )


def _end(recording: Recording, settings: SignalSettings) -> Recording:
    """Return what the next piece needs of this one: what its start and this end spoil."""
    seconds = 2.0 * EDGE_PERIODS / settings.cutoff if settings.cutoff else 0.0
    return recording.between(float(np.nanmax(recording.time)) - seconds, np.inf)


def _joined(first: Recording, second: Recording) -> Recording:
    """Put two pieces behind each other, joint states only."""
    time, position, effort = (
        np.concatenate([getattr(piece, name) for piece in (first, second)])
        for name in ('time', 'position', 'effort')
    )
    return Recording(second.joints, time, position, effort, source=second.source)


def split_into_chunks(recording: Recording) -> Iterator[Recording]:
    """Cut a long recording that is in memory."""
    for first in range(0, len(recording.time), PIECE):
        rows = slice(first, first + PIECE)
        yield Recording(
            recording.joints,
            recording.time[rows],
            recording.position[rows],
            recording.effort[rows],
            source=recording.source,
        )
