"""What is in a recording, how good it is, and what it can be used for."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ....core.signals.recording import MAX_SAMPLES, Phase
from ....exceptions import shortened
from ...formats.read_options import DEFAULTS, ReadOptions
from ...robot_description import summarise_description
from ..schema.message_definitions import CONTROLLER_STATE
from ..schema.session_header import Session
from ..schema.session_phases import cut_notes
from . import session_context
from .channel_statistics import Channel, ChannelStatistics
from .chunked_recording import CHUNK_DURATION
from .clock_alignment import correct_clock_chunks
from .joint_state_checks import MIN_TRAVEL
from .joint_states import read_joint_states
from .publishers import find_topic
from .storage import Bag, open_bag

# Intervals of so many usual ones are gaps: one lost message makes it 2, jitter stays below.
GAP_FACTOR = 1.8


@dataclass(frozen=True)
class TopicSummary:
    """One topic: name, type, number of messages, mean rate [Hz] (0 below two messages)."""

    name: str
    type: str
    count: int
    rate: float


@dataclass(frozen=True)
class Timing:
    """
    Stamps of the joint states.

    Attributes
    ----------
    rate : usual rate, from the median interval [Hz]
    jitter : standard deviation of the intervals without gaps [s]
    gaps, lost : intervals with messages missing, and how many are missing
    longest_gap, longest_gap_start : longest interval and when it begins [s]
    repeated, backward : stamps equal to the one before, or earlier

    """

    rate: float
    jitter: float
    gaps: int
    lost: int
    longest_gap: float
    longest_gap_start: float
    repeated: int
    backward: int


@dataclass(frozen=True)
class Suitability:
    """A use of a recording, whether it is `possible`, and else the `reason`."""

    purpose: str
    possible: bool
    reason: str


@dataclass(frozen=True)
class BagSummary:
    """Everything `robotid inspect` shows; `description` is '' where no robot's was recorded."""

    path: Path
    duration: float
    topics: tuple[TopicSummary, ...]
    timing: Timing
    channels: tuple[Channel, ...]
    phases: tuple[Phase, ...]
    session: Session
    description: str
    suitability: tuple[Suitability, ...]
    notes: tuple[str, ...]

    @property
    def usable(self) -> bool:
        """Whether an identification can be made from it."""
        return self.suitability[0].possible


def summarise(path: str | Path, options: ReadOptions = DEFAULTS) -> BagSummary:
    """
    Summarise a recording.

    Raises
    ------
    RecordingError : missing, damaged, or without joint states

    """
    with open_bag(path, options) as bag:
        topic = find_topic(bag)
        statistics = ChannelStatistics()
        tables = read_joint_states(
            bag, topic, np.inf if bag.count(topic) <= MAX_SAMPLES else CHUNK_DURATION
        )
        chunks = correct_clock_chunks(filter(None, map(statistics.add, tables)))
        stamp = np.concatenate([chunk.stamp for chunk, _ in chunks])
        notes, obstacle = statistics.findings
        raw, received = statistics.stamps()
        timing = timing_of(raw, stamp)
        duration = float(np.ptp(stamp)) * 1e-9
        session = session_context.read_session(bag)
        lag = int(np.median(raw - received))
        phases = session_context.read_phases(
            bag, session, lambda t: t + lag, int(raw[0]), duration
        )
        channels = statistics.channels()
        urdf = options.urdf or session_context.read_urdf(bag)
        description = urdf and summarise_description(urdf, [c.joint for c in channels])
        return BagSummary(
            path=Path(path),
            duration=duration,
            topics=_topics(bag, duration),
            timing=timing,
            channels=channels,
            phases=phases,
            session=session,
            description=description or '',
            suitability=_suitability(bag, channels, obstacle, session, phases, bool(urdf)),
            notes=tuple(
                dict.fromkeys(
                    (
                        *bag.notes,
                        *cut_notes(phases),
                        *_timing_notes(timing, statistics.sets),
                        *notes,
                    )
                )
            ),
        )


def _topics(bag: Bag, duration: float) -> tuple[TopicSummary, ...]:
    found: dict[str, tuple[str, int]] = {}
    for c in bag.connections:
        found[c.topic] = (c.msgtype, found.get(c.topic, ('', 0))[1] + c.msgcount)
    return tuple(
        TopicSummary(name, kind, count, (count - 1) / duration if duration and count > 1 else 0.0)
        for name, (kind, count) in sorted(found.items())
    )


def timing_of(raw: np.ndarray, stamp: np.ndarray) -> Timing:
    """Measure stamps [ns]: odd ones as they came (`raw`), everything else on one clock."""
    repeated, backward = int((np.diff(raw) == 0).sum()), int((np.diff(raw) < 0).sum())
    steps = np.diff(stamp) * 1e-9
    forward = steps[steps > 0]
    if not forward.size:
        return Timing(0.0, 0.0, 0, 0, 0.0, 0.0, repeated, backward)
    usual = float(np.median(forward))
    gaps = steps > GAP_FACTOR * usual
    longest = int(np.argmax(steps))
    return Timing(
        rate=1.0 / usual,
        jitter=float(np.std(forward[forward <= GAP_FACTOR * usual])),
        gaps=int(gaps.sum()),
        lost=int((np.round(steps[gaps] / usual) - 1).sum()),
        longest_gap=float(steps[longest]),
        longest_gap_start=float(stamp[longest] - stamp[0]) * 1e-9,
        repeated=repeated,
        backward=backward,
    )


def _timing_notes(timing: Timing, counts: Mapping[tuple[str, ...], int]) -> list[str]:
    notes = []
    if len(counts) > 1:
        sets = [f'[{shortened(joints)}] {count} times' for joints, count in counts.items()]
        notes.append(f'joint states name different sets of joints: {shortened(sets)}')
    if timing.backward:
        notes.append(f'{timing.backward} stamps jump back: two publishers, or a clock was set')
    if timing.repeated:
        notes.append(f'{timing.repeated} stamps repeat: the same state was published twice')
    if timing.lost:
        notes.append(f'{timing.lost} messages are missing in {timing.gaps} gaps')
    return notes


def _suitability(
    bag: Bag,
    channels: tuple[Channel, ...],
    obstacle: str,
    session: Session,
    phases: tuple[Phase, ...],
    has_urdf: bool,
) -> tuple[Suitability, ...]:
    moving = [c.joint for c in channels if c.travel > MIN_TRAVEL]
    with_effort = [c.joint for c in channels if c.effort not in ('absent', 'constant')]
    efforts = [joint for joint in moving if joint in with_effort]
    names = {phase.name for phase in phases}
    states = any(bag.topics(CONTROLLER_STATE).values())
    gains = bool(session.controller.get('gains')) and not session_context.changed_gains(session)
    effort = session.controller.get('command_interfaces') in (None, [], ['effort'])
    checks = (
        (
            'identification',
            bool(efforts) and not obstacle,
            obstacle or 'no joint that moves has a live effort',
        ),
        ('period averaging, mle', 'exciting' in session.trajectories, 'no excitation trajectory'),
        ('validation', 'validating' in names, 'no validation phase: use --part'),
        (
            'didim',
            states and gains and effort,
            'no controller state, or no gains that stayed'
            if effort
            else 'the controller commands no efforts',
        ),
        (
            'self-contained',
            has_urdf and bool(session.configuration),
            'no configuration: defaults count without -c CONFIG'
            if has_urdf
            else 'no robot description: give --urdf FILE or -c CONFIG',
        ),
    )
    return tuple(Suitability(purpose, ok, '' if ok else reason) for purpose, ok, reason in checks)
