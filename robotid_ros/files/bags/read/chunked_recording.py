"""Recordings that are too long for memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np

from ....core.signals.recording import Controller, Phase, phase_of, Recording
from ....exceptions import RecordingError
from . import session_context
from .clock_alignment import Clock, steadied
from .clock_index import Thinned
from .controller_states import WHOLE, Window
from .joint_state_checks import alive, as_recording
from .joint_states import choose, JointStates, sources
from .storage import Bag, open_bag

Watch = Callable[[float], None]
SECONDS = 60.0  # of a piece
MARGIN = 2_000_000_000  # between reception and stamp, where they do not follow each other [ns]


@dataclasses.dataclass(frozen=True)
class Tape:
    """
    A recording that is too long for memory: whoever iterates over it reads it, piece by piece.

    It is cut as a `Recording` is; a part that is short enough is one. Pieces share one clock and
    carry joint states; the first one also what the controller followed.

    Attributes
    ----------
    facts : all but the samples
    topic : of the joint states
    clock : of one in `thinned.THIN` joint states
    numbers : of these joint states, from 0
    extent : lowest and highest position of each joint, (2, n)
    start, stop : of the part that is read [s]
    longest : samples that are held in memory
    watch : told the share that is read

    """

    facts: Recording
    topic: str
    clock: Clock
    numbers: np.ndarray
    extent: np.ndarray
    start: float
    stop: float
    longest: int
    watch: Watch

    @classmethod
    def open(
        cls,
        path: str | Path,
        joints: Sequence[str] | None,
        topic: str,
        watch: Watch,
        longest: int,
    ) -> Tape:
        """
        Look through a recording.

        Raises
        ------
        RecordingError, UnknownNameError : as in `read_recording`

        """
        with open_bag(path) as bag:
            total = sum(c.msgcount for c in bag.connections if c.topic == topic)
            looked = Thinned()
            for states, jumped in steadied(_tables(bag, topic, joints)):
                looked.add(states, jumped)
                watch(looked.count / total)
            kept = alive(looked.joints, looked.known, str(path), joints is None)
            extent = looked.extent[:, [looked.joints.index(joint) for joint in kept]]
            clock, origin = looked.clock(), looked.origin
            end = (int(clock.stamp[-1]) - origin) * 1e-9
            none = np.empty((0, len(kept)))
            facts = Recording(
                tuple(kept), np.empty(0), none, none, source=str(path), origin=origin
            )
            facts = session_context.with_context(bag, facts, clock, end)
        return cls(facts, topic, clock, looked.numbers(), extent, 0.0, math.inf, longest, watch)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names, in the order of the columns."""
        return self.facts.joints

    @property
    def source(self) -> str:
        """Where it comes from, for messages."""
        return self.facts.source

    @property
    def origin(self) -> int:
        """The robot's clock at time 0 [ns]."""
        return self.facts.origin

    @property
    def controller(self) -> Controller | None:
        """What moved the robot, when it was recorded."""
        return self.facts.controller

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Parts of the session."""
        return self.facts.phases

    @property
    def urdf(self) -> str | None:
        """Robot description, when it was recorded."""
        return self.facts.urdf

    @property
    def configuration(self) -> Mapping[str, Any] | None:
        """Of the session, when it was recorded."""
        return self.facts.configuration

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known of it, in words; pieces have notes of their own."""
        return self.facts.notes

    @property
    def span(self) -> tuple[float, float]:
        """Times of the first and the last sample [s]."""
        end = (int(self.clock.stamp[-1]) - self.origin) * 1e-9
        return max(self.start, 0.0), min(self.stop, end)

    @property
    def duration(self) -> float:
        """Time from the first to the last sample [s]."""
        first, last = self.span
        return max(0.0, last - first)

    @property
    def size(self) -> int:
        """Number of samples, exact where their rate is."""
        first, last = np.interp(self.span, self._times(), self.numbers)
        return round(float(last - first)) + 1

    @property
    def rate(self) -> float:
        """Usual number of samples per second [Hz]."""
        return 1.0 / float(np.median(np.diff(self._times()) / np.diff(self.numbers)))

    def between(self, start: float, stop: float) -> Recording | Tape:
        """Return the samples with `start <= t < stop` [s, the recording's clock]."""
        first, last = max(start, self.start), min(stop, self.stop)
        part = dataclasses.replace(self, start=first, stop=last)
        return part if part.size > self.longest else part.whole()

    def phase(self, name: str) -> Recording | Tape:
        """
        Return the samples of a phase.

        Raises
        ------
        UnknownNameError : the recording has no such phase

        """
        phase = phase_of(self.phases, name)
        return self.between(phase.start, phase.stop)

    def whole(self) -> Recording:
        """
        Return all of it in memory, with what the controller followed.

        Raises
        ------
        RecordingError : there is nothing in it

        """
        with open_bag(self.source) as bag:
            pieces = list(self._pieces(bag))
            if not pieces:
                raise RecordingError(
                    f"'{self.source}' has no joint states from {self.start:g} to {self.stop:g} s: "
                    'choose another part'
                )
            notes = (*self.notes, *(note for piece in pieces for note in piece.notes))
            recording = dataclasses.replace(
                self.facts,
                time=np.concatenate([piece.time for piece in pieces]),
                position=np.concatenate([piece.position for piece in pieces]),
                effort=np.concatenate([piece.effort for piece in pieces]),
                notes=tuple(dict.fromkeys(notes)),
            )
            return self._followed(bag, recording).between(self.start, self.stop)

    def __iter__(self) -> Iterator[Recording]:
        first, last = self.span
        with open_bag(self.source) as bag:
            for number, piece in enumerate(self._pieces(bag)):
                self.watch((float(piece.time[0]) - first) / max(last - first, 1e-9))
                yield piece if number else self._followed(bag, piece)

    def _pieces(self, bag: Bag) -> Iterator[Recording]:
        window = (None, None) if self.clock.jumped else self._window(self.start, self.stop)
        for states, _ in steadied(_tables(bag, self.topic, self.joints, window)):
            piece = as_recording(states, self.origin, self.source)
            piece = piece.between(self.start, self.stop)
            if piece.time.size:
                yield piece

    def _followed(self, bag: Bag, piece: Recording) -> Recording:
        """Add what the controller followed; its stamps jump where others do."""
        piece = dataclasses.replace(piece, controller=self.controller)
        if self.clock.jumped:
            return piece
        window = self._window(float(piece.time.min()), float(piece.time.max()))
        return dataclasses.replace(piece, reference=session_context.reference(bag, piece, window))

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


def _tables(
    bag: Bag,
    topic: str,
    joints: Sequence[str] | None,
    window: Window = WHOLE,
) -> Iterator[JointStates]:
    for found in sources(bag, topic, SECONDS, *window):
        states = choose(found, joints)
        joints = states.joints
        yield states
