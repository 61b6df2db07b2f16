"""What may be identified: a recording in memory, the chunks of a long one, or several logs."""

from collections.abc import Iterable, Iterator, Sequence
import dataclasses
from itertools import accumulate
from pathlib import PurePath
from typing import Protocol

from ..findings import Finding
from ..signals.recording import MAX_SAMPLES, Recording

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
        ends = accumulate(log.time_range[1] - log.time_range[0] + SPACING for log in self.logs)
        return [
            start - log.time_range[0] for start, log in zip([0.0, *ends], self.logs, strict=False)
        ]

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
