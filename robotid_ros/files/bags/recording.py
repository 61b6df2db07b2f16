"""From a bag to a `Recording`, or to a `ChunkedRecording` where it is too long for memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
import contextlib
import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np

from ...core.findings import Finding, finding
from ...core.signals.recording import (
    find_phase,
    MAX_SAMPLES,
    range_of_positions,
    Recording,
    Reference,
    RunContext,
)
from ...core.signals.stamp_correction import undo_clock_jumps
from ...exceptions import RecordingError
from ..formats.joint_table import concatenate, JointTable
from ..formats.read_options import BAG_SUFFIXES, DEFAULTS, ReadOptions
from .joint_states import add_reference, find_topic, MARGIN, read_joint_states, select_joints
from .session import add_context, Clock
from .storage import Bag, METADATA, open_bag, UNBOUNDED, Window

# Messages of a chunk that wait for the next one, as a jump shows from both of its sides: ten times
# what a part between two jumps must hold to be kept.
OVERLAP = 1000
OFFSET_TOLERANCE = 1000  # offsets of one clock differ by rounding only [ns]


def on_one_clock(states: JointTable, before: float = 0.0) -> tuple[JointTable, np.ndarray, bool]:
    """Join states before and after a clock was set; return them, which to keep, if it was."""
    origin, began = states.stamp[0], states.received[0]
    time, kept, jumps, notes = undo_clock_jumps(
        (states.stamp - origin) * 1e-9, (states.received - began) * 1e-9, states.position, before
    )
    if kept.all() and not jumps.size:
        return states, kept, False
    stamp = origin + np.round(time * 1e9).astype(np.int64)
    fixed = dataclasses.replace(states, stamp=stamp, notes=(*states.notes, *notes))
    return fixed, kept, bool(jumps.size)


def correct_clock_chunks(tables: Iterable[JointTable]) -> Iterator[tuple[JointTable, bool]]:
    """Join successive chunks on the clock of the first; yield them, and whether a clock jumped."""
    overlap: JointTable | None = None
    rest: JointTable | None = None
    origin, shift = None, 0
    for states in tables:
        raw = states if overlap is None else concatenate(overlap, states)
        origin = raw.stamp[0] if origin is None else origin
        fixed, kept, jumped = on_one_clock(raw, float(raw.stamp[0] + shift - origin) * 1e-9)
        offset = fixed.stamp - raw.stamp
        last = int(np.flatnonzero(kept)[-1])
        others = np.flatnonzero(kept & (np.abs(offset - offset[last]) > OFFSET_TOLERANCE))
        # The overlap is of one clock, the last.
        cut = max(len(raw.stamp) - OVERLAP, int(others[-1]) + 1 if others.size else 0)
        fixed = dataclasses.replace(fixed, stamp=fixed.stamp + shift)
        if kept[:cut].any():
            yield fixed.rows(np.flatnonzero(kept[:cut])), jumped
        rest = dataclasses.replace(fixed.rows(np.flatnonzero(kept[cut:]) + cut), notes=())
        overlap, shift = raw.rows(slice(cut, None)), shift + int(offset[last])
    if rest is not None and len(rest.stamp):
        yield rest, False


# Difference of two clocks in the course of a recording that is no accident: relative, above what
# crystals differ by and busy machines hold up, and absolute [s].
MIN_DRIFT, MIN_SECONDS = 0.02, 0.3
# Beyond this factor times of reception tell no time: they are those of a conversion.
MAX_FACTOR = 2.0
# Share of the messages at either end whose median counts: single ones are held up.
END_SHARE, MIN_MESSAGES = 0.02, 20
SIMULATED = 1e8  # stamps before this count from a simulation's start, not from 1970 [s]


def drift_notes(stamp: np.ndarray, received: np.ndarray) -> tuple[Finding, ...]:
    """Tell of stamps (N,) [ns] that take longer or shorter than their reception, (N,) [ns]."""
    if len(stamp) < MIN_MESSAGES:
        return ()
    ends = max(1, int(END_SHARE * len(stamp)))
    # Joint states may have been put in order; differences, for nanoseconds of 1970 round.
    offset = (stamp - stamp[0]) - (received - received[0])
    passed, told = (float(x[-1] - x[0]) * 1e-9 for x in (received, stamp))
    drift = float(np.median(offset[-ends:]) - np.median(offset[:ends])) * 1e-9
    converted = passed <= 0.0 or not 1.0 / MAX_FACTOR < told / passed < MAX_FACTOR
    if converted or abs(drift) < max(MIN_DRIFT * passed, MIN_SECONDS):
        return ()
    figures = {'stamped': told, 'received': passed, 'share': drift / passed}
    if stamp[0] * 1e-9 < SIMULATED:
        return (finding('simulated_time', **figures),)
    return (finding('clock_drifts', inertia=abs(2.0 * drift / passed), **figures),)


ProgressCallback = Callable[[float], None]
# Of a chunk [s]: 60,000 joint states at 1 kHz, a tenth of what is held in memory anyway.
CHUNK_DURATION = 60.0
# One joint state in so many is kept of the clock: an hour at 1 kHz takes 7200 of them, and between
# two, half a second apart at 1 kHz, times are interpolated.
DECIMATION = 500


@dataclasses.dataclass(frozen=True)
class ChunkedRecording(RunContext):
    """
    A recording that is too long for memory: iterating over it reads it, chunk by chunk.

    It is cut as a `Recording` is; a part that is short enough is one. Chunks share one clock and
    carry joint states; the first one also what the controller followed.
    """

    topic: str  # of the joint states
    clock: Clock  # of one in `DECIMATION` joint states
    numbers: np.ndarray  # of these joint states, from 0
    position_range: np.ndarray  # lowest and highest position of each joint, (2, n)
    start: float  # of the part that is read [s]
    stop: float
    max_samples: int  # that are held in memory
    progress: ProgressCallback  # called with the share that is read
    options: ReadOptions = DEFAULTS

    @classmethod
    def open(
        cls,
        bag: Bag,
        topic: str,
        joints: Sequence[str] | None,
        progress: ProgressCallback,
        max_samples: int,
    ) -> ChunkedRecording:
        """Index a recording: its clock, its joints and their context."""
        count, jumped, total, source = 0, False, bag.count(topic), str(bag.path)
        times, numbers, ranges, available = (list[np.ndarray]() for _ in range(4))
        for states, jump in correct_clock_chunks(_read_chunks(bag, topic, joints)):
            size = len(states.stamp)
            chosen = np.unique([*range(0, size, DECIMATION), size - 1])
            times.append(np.stack([states.received, states.stamp])[:, chosen])
            numbers.append(chosen + count)
            ranges.append(range_of_positions(states.position))
            quantities = states.effort, states.position
            available.append(np.array([np.isfinite(x).any(axis=0) for x in quantities]))
            count, jumped = count + size, jumped | jump
            progress(count / total)
        names, ends = states.joints, range_of_positions(np.concatenate(ranges))
        optional = joints is None
        kept = _usable_joints(names, np.any(available, axis=0), source, optional, bag.options)
        received, stamp = np.concatenate(times, axis=1)
        clock = Clock(received, stamp, jumped)
        run = RunContext(
            tuple(kept),
            source=source,
            origin=int(clock.stamp[0]),
            left_out=_ranges_of_others(names, ends, kept),
            notes=drift_notes(clock.stamp, clock.received),
        )
        found = add_context(bag, run, clock, (int(clock.stamp[-1]) - run.origin) * 1e-9).context
        return cls(
            **{**found, 'notes': (*bag.notes, *found['notes'])},
            topic=topic,
            clock=clock,
            numbers=np.concatenate(numbers),
            position_range=ends[:, [names.index(joint) for joint in kept]],
            start=0.0,
            stop=math.inf,
            max_samples=max_samples,
            progress=progress,
            options=bag.options,
        )

    @property
    def time_range(self) -> tuple[float, float]:
        """Times of the first and the last sample [s]."""
        end = (int(self.clock.stamp[-1]) - self.origin) * 1e-9
        return max(self.start, 0.0), min(self.stop, end)

    @property
    def duration(self) -> float:
        """Time from the first to the last sample [s]."""
        first, last = self.time_range
        return max(0.0, last - first)

    @property
    def size(self) -> int:
        """Number of samples, exact where their rate is."""
        first, last = np.interp(self.time_range, self._times(), self.numbers)
        return round(float(last - first)) + 1

    @property
    def rate(self) -> float:
        """Usual number of samples per second [Hz]."""
        return 1.0 / float(np.median(np.diff(self._times()) / np.diff(self.numbers)))

    def between(self, start: float, stop: float) -> Recording | ChunkedRecording:
        """Return the samples with `start <= t < stop` [s, the recording's clock]."""
        first, last = max(start, self.start), min(stop, self.stop)
        part = dataclasses.replace(self, start=first, stop=last)
        return part if part.size > self.max_samples else part.load()

    def phase(self, name: str) -> Recording | ChunkedRecording:
        """Return the samples of a phase, as `Recording.phase`."""
        phase = find_phase(self.phases, name)
        return self.between(phase.start, phase.stop)

    def load(self) -> Recording:
        """Return all of it in memory, with what the controller followed; there must be some."""
        with open_bag(self.source, self.options) as bag:
            chunks = list(self._chunks(bag))
            if not chunks:
                raise RecordingError(
                    f"'{self.source}' has no joint states from {self.start:g} to {self.stop:g} s: "
                    'choose another part'
                )
            notes = (*self.notes, *(note for chunk in chunks for note in chunk.notes))
            values: dict[str, Any] = {**self.context, 'notes': tuple(dict.fromkeys(notes))}
            for name in ('time', 'position', 'effort'):
                values[name] = np.concatenate([getattr(chunk, name) for chunk in chunks])
            recording = Recording(**values)
            return self._with_reference(bag, recording).between(self.start, self.stop)

    def __iter__(self) -> Iterator[Recording]:
        first, last = self.time_range
        with open_bag(self.source, self.options) as bag:
            for number, chunk in enumerate(self._chunks(bag)):
                self.progress((float(chunk.time[0]) - first) / max(last - first, 1e-9))
                yield chunk if number else self._with_reference(bag, chunk)

    def _chunks(self, bag: Bag) -> Iterator[Recording]:
        window = UNBOUNDED if self.clock.jumped else self._window(self.start, self.stop)
        tables = _read_chunks(bag, self.topic, self.joints, window)
        for states, _ in correct_clock_chunks(tables):
            chunk = to_recording(states, self.origin, self.source)
            chunk = chunk.between(self.start, self.stop)
            if chunk.time.size:
                yield chunk

    def _with_reference(self, bag: Bag, chunk: Recording) -> Recording:
        """Add what the controller followed; its stamps jump where others do."""
        chunk = dataclasses.replace(chunk, controller=self.controller)
        if self.clock.jumped:
            return chunk
        window = self._window(float(chunk.time.min()), float(chunk.time.max()))
        return add_reference(bag, chunk, window)

    def _window(self, start: float, stop: float) -> Window:
        """Return times of reception [ns] that hold all of a part."""
        times, at = self._times(), self.clock.received_at
        low = None if start <= times[0] else at(self.origin + int(start * 1e9)) - MARGIN
        high = None if stop >= times[-1] else at(self.origin + int(stop * 1e9)) + MARGIN
        return low, high

    def _times(self) -> np.ndarray:
        return np.asarray((self.clock.stamp - self.origin) * 1e-9)


def _read_chunks(
    bag: Bag, topic: str, joints: Sequence[str] | None, window: Window = UNBOUNDED
) -> Iterator[JointTable]:
    """Yield joint states, the joints of the first chunk."""
    for found in read_joint_states(bag, topic, CHUNK_DURATION, window):
        states = select_joints(found, joints)
        joints = states.joints
        yield states


def open_recording(
    path: str | Path,
    joints: Sequence[str] | None = None,
    *,
    options: ReadOptions = DEFAULTS,
    progress: ProgressCallback | None = None,
    max_samples: int = MAX_SAMPLES,
) -> Recording | ChunkedRecording:
    """
    Read one recording, or index it where it has more than `max_samples` joint states.

    It is a rosbag2 folder, .mcap or .db3 file, also one that was cut short, a ROS 1 bag or a
    table; of `joints` the order is kept, None: all that one publisher sends. Its time counts from
    the first joint state. RecordingError: it is missing, empty, damaged, or has no joint states or
    no effort; UnknownNameError: it lacks a joint.
    """
    path, tables = Path(path), list[JointTable]()
    with contextlib.ExitStack() as stack:
        bag: Bag | None = None
        no_bag = path.suffix not in BAG_SUFFIXES and not (path / METADATA).exists()
        if path.exists() and no_bag and not options.effort_topic:
            from ..formats.open_table import open_table  # who reads bags needs no tables

            table = open_table(path, options)
            tables = [table] if table is not None and len(table.stamp) <= max_samples else []
        if not tables:
            bag = stack.enter_context(open_bag(path, options))
            topic = find_topic(bag, joints)
            if bag.count(topic) > max_samples:
                told = progress or (lambda _: None)
                return ChunkedRecording.open(bag, topic, joints, told, max_samples)
            tables = next(read_joint_states(bag, topic))
        # Of all publishers one table, of the joints that can be used, on one clock.
        alone = joints is None and len(tables) == 1
        states = tables[0] if alone else select_joints(tables, joints)
        has = np.array([np.isfinite(x).any(axis=0) for x in (states.effort, states.position)])
        if not has.all():
            kept = _usable_joints(states.joints, has, str(path), joints is None, options)
            states = states.columns(kept)
        jumped, grows = False, bool((np.diff(states.stamp) >= 0).all())
        if not (grows and np.array_equal(states.stamp, states.received)):
            states, rows, jumped = on_one_clock(states)
            states = states if rows.all() else states.rows(rows)
        recording = to_recording(states, states.stamp[0], str(path))
        left_out = dict[str, tuple[float, float]]()
        for each in tables:
            ends = range_of_positions(each.position)
            left_out |= _ranges_of_others(each.joints, ends, states.joints)
        notes = (*recording.notes, *drift_notes(states.stamp, states.received))
        recording = dataclasses.replace(recording, notes=notes, left_out=left_out)
        if bag is None:
            return recording
        clock = Clock(states.received, states.stamp, jumped)
        recording = add_context(bag, recording, clock, float(recording.time[-1]))
        # The stamps of the reference jump as well, and nothing says where.
        recording = recording if jumped else add_reference(bag, recording)
        return dataclasses.replace(recording, notes=(*bag.notes, *recording.notes))


def to_recording(states: JointTable, origin: int, source: str) -> Recording:
    """Return joint states alone as a recording, its time from `origin` [ns]."""
    velocity = states.velocity if np.isfinite(states.velocity).any() else None
    time, reference = (states.stamp - origin) * 1e-9, None
    if states.command is not None:
        nothing = np.full(states.command.shape, np.nan)
        reference = Reference(time, states.command, nothing, nothing)
    return Recording(
        joints=states.joints,
        time=time,
        position=states.position,
        velocity=velocity,
        effort=states.effort,
        reference=reference,
        source=source,
        origin=int(origin),
        notes=states.notes,
    )


def _usable_joints(
    joints: Sequence[str], available: np.ndarray, source: str, optional: bool, options: ReadOptions
) -> list[str]:
    """Return joints with any effort, if it is needed, and any position, `available` (2, n)."""
    kept, needs = list(joints), 'an identification needs measured positions'
    remedies = "give the robot's state broadcaster the effort interfaces", needs
    found = available[0] | options.commands, available[1]
    for name, has, remedy in zip(('effort', 'position'), found, remedies, strict=True):
        if not has.any():
            raise RecordingError(f"'{source}' has no {name} of any joint: {remedy}")
        lacking = [joint for joint, each in zip(joints, has, strict=True) if not each]
        if lacking and not optional:
            raise RecordingError(
                f"'{source}' has no {name} of {', '.join(lacking)}: {remedy}, or leave them out "
                'of robot.joints'
            )
        kept = [joint for joint in kept if joint not in lacking]
    if not kept:
        raise RecordingError(f"'{source}' has no joint with both position and effort: {needs}")
    return kept


def _ranges_of_others(
    joints: Sequence[str], ends: np.ndarray, kept: Collection[str]
) -> dict[str, tuple[float, float]]:
    """Return lowest and highest position, of `ends` (2, n), of joints but those that are kept."""
    pairs = zip(joints, ends.T.tolist(), strict=True)
    return {k: (low, high) for k, (low, high) in pairs if k not in kept and low <= high}
