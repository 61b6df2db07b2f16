"""Recordings that are too long for memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
import dataclasses
import math

import numpy as np

from ....core.signals.recording import find_phase, Recording, RunContext
from ....exceptions import RecordingError
from ...formats.joint_table import JointTable
from ...formats.read_options import DEFAULTS, ReadOptions
from . import session_context
from .clock_alignment import Clock, correct_clock_chunks
from .clock_drift import drift_notes
from .clock_index import ClockIndex
from .controller_states import add_reference, MARGIN, UNBOUNDED, Window
from .joint_state_checks import ranges_of_others, to_recording, usable_joints
from .joint_states import read_joint_states
from .publishers import select_joints
from .storage import Bag, open_bag

ProgressCallback = Callable[[float], None]
# Of a chunk [s]: 60,000 joint states at 1 kHz, a tenth of what is held in memory anyway.
CHUNK_DURATION = 60.0


@dataclasses.dataclass(frozen=True)
class ChunkedRecording(RunContext):
    """
    A recording that is too long for memory: iterating over it reads it, chunk by chunk.

    It is cut as a `Recording` is; a part that is short enough is one. Chunks share one clock and
    carry joint states; the first one also what the controller followed.

    Attributes
    ----------
    topic : of the joint states
    clock : of one in `clock_index.DECIMATION` joint states
    numbers : of these joint states, from 0
    position_range : lowest and highest position of each joint, (2, n)
    start, stop : of the part that is read [s]
    max_samples : that are held in memory
    progress : called with the share that is read
    options : how to read it

    """

    topic: str
    clock: Clock
    numbers: np.ndarray
    position_range: np.ndarray
    start: float
    stop: float
    max_samples: int
    progress: ProgressCallback
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
        """
        Index a recording: its clock, its joints and their context.

        Raises
        ------
        RecordingError, UnknownNameError : as in `read_recording`

        """
        index, total, source = ClockIndex(), bag.count(topic), str(bag.path)
        for states, jumped in _read_chunks(bag, topic, joints):
            index.add(states, jumped)
            progress(index.count / total)
        kept = usable_joints(index.joints, index.data_available, source, joints is None)
        extremes = index.position_range[:, [index.joints.index(joint) for joint in kept]]
        clock, origin = index.clock(), index.origin
        end = (int(clock.stamp[-1]) - origin) * 1e-9
        run = RunContext(
            tuple(kept),
            source=source,
            origin=origin,
            left_out=ranges_of_others(index.joints, index.position_range, kept),
            notes=drift_notes(clock.stamp, clock.received),
        )
        found = session_context.add_context(bag, run, clock, end).context
        found['notes'] = (*bag.notes, *found['notes'])
        numbers, limits = index.numbers(), (0.0, math.inf, max_samples)
        own = (topic, clock, numbers, extremes, *limits, progress, bag.options)
        return cls(found.pop('joints'), *own, **found)

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
        """
        Return all of it in memory, with what the controller followed.

        Raises
        ------
        RecordingError : there is nothing in it

        """
        with open_bag(self.source, self.options) as bag:
            chunks = list(self._chunks(bag))
            if not chunks:
                raise RecordingError(
                    f"'{self.source}' has no joint states from {self.start:g} to {self.stop:g} s: "
                    'choose another part'
                )
            notes = (*self.notes, *(note for chunk in chunks for note in chunk.notes))
            samples = {
                name: np.concatenate([getattr(chunk, name) for chunk in chunks])
                for name in ('time', 'position', 'effort')
            }
            recording = Recording(
                **{**self.context, **samples, 'notes': tuple(dict.fromkeys(notes))}
            )
            return self._with_reference(bag, recording).between(self.start, self.stop)

    def __iter__(self) -> Iterator[Recording]:
        first, last = self.time_range
        with open_bag(self.source, self.options) as bag:
            for number, chunk in enumerate(self._chunks(bag)):
                self.progress((float(chunk.time[0]) - first) / max(last - first, 1e-9))
                yield chunk if number else self._with_reference(bag, chunk)

    def _chunks(self, bag: Bag) -> Iterator[Recording]:
        window = (None, None) if self.clock.jumped else self._window(self.start, self.stop)
        for states, _ in _read_chunks(bag, self.topic, self.joints, window):
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
        times = self._times()
        low = None if start <= times[0] else self._received(start) - MARGIN
        high = None if stop >= times[-1] else self._received(stop) + MARGIN
        return low, high

    def _received(self, time: float) -> int:
        return int(self.clock.received_at(np.array([self.origin + int(time * 1e9)]))[0])

    def _times(self) -> np.ndarray:
        return np.asarray((self.clock.stamp - self.origin) * 1e-9)


def _read_chunks(
    bag: Bag, topic: str, joints: Sequence[str] | None, window: Window = UNBOUNDED
) -> Iterator[tuple[JointTable, bool]]:
    """Yield joint states on one clock, the joints of the first chunk, and whether it jumped."""

    def tables() -> Iterator[JointTable]:
        chosen = joints
        for found in read_joint_states(bag, topic, CHUNK_DURATION, *window):
            states = select_joints(found, chosen)
            chosen = states.joints
            yield states

    return correct_clock_chunks(tables())
