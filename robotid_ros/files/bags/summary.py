"""What is in a recording, how good it is, and what it can be used for."""

from collections.abc import Mapping, Sequence
import contextlib
from dataclasses import dataclass
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from ...core.finding_codes import finding
from ...core.findings import Finding
from ...core.signals.invalid_samples import clipped_samples, refuse_derived_efforts
from ...core.signals.periodic import MIN_PERIODS
from ...core.signals.recording import MAX_SAMPLES, Phase, range_of_positions
from ...core.signals.resampling import MIN_TRAVEL, resample_uniformly
from ...core.signals.samples import SignalSettings
from ...exceptions import RobotIdError, shortened
from ..formats.joint_table import FIELDS, JointTable
from ..formats.read_options import DEFAULTS, ReadOptions
from ..robot_description import summarise_description
from .clock import Clock, correct_clock, correct_clock_chunks
from .joint_states import find_topic, read_joint_states, select_joints
from .messages import CONTROLLER_STATE
from .opening import open_bag
from .recording import CHUNK_DURATION, to_recording
from .session import (
    changed_gains,
    cut_notes,
    read_phases,
    read_session,
    read_urdf,
    RecordedSession,
)
from .storage import Bag

# Work against the motion, as a share of all work that is exchanged, beyond which the sign of an
# effort looks wrong: friction takes work, weights and springs give back what they took. A smaller
# share would also suspect efforts of joints that weights move.
NEGATIVE_WORK = 0.5
MAX_CLIPPED = 0.01  # share of clipped samples beyond which work says nothing about the sign
MIN_MESSAGES = 0.25  # share of the fullest publisher's messages below which another is left out
EXCITING = 'exciting'
# Intervals of so many usual ones are gaps: one lost message makes it 2, jitter stays below.
GAP_FACTOR = 1.8


@dataclass(frozen=True)
class Channel:
    """One joint: travel, and each quantity 'live', 'constant', '2 NaN' or 'absent'."""

    joint: str
    travel: float
    position: str
    velocity: str
    effort: str


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
    session: RecordedSession
    description: str
    suitability: tuple[Suitability, ...]
    notes: tuple[Finding, ...]

    @property
    def usable(self) -> bool:
        """Whether an identification can be made from it."""
        return self.suitability[0].possible


def summarise(path: str | Path, options: ReadOptions = DEFAULTS) -> BagSummary:
    """
    Summarise a recording.

    Raises RecordingError where it is missing, damaged, or without joint states.
    """
    with open_bag(path, options) as bag:
        topic, statistics = find_topic(bag), _Statistics()
        tables = read_joint_states(
            bag, topic, np.inf if bag.count(topic) <= MAX_SAMPLES else CHUNK_DURATION
        )
        chunks = correct_clock_chunks(filter(None, map(statistics.add, tables)))
        stamp = np.concatenate([chunk.stamp for chunk, _ in chunks])
        raw, received = np.concatenate(statistics.times, axis=1)
        timing, duration = timing_of(raw, stamp), float(np.ptp(stamp)) * 1e-9
        session = read_session(bag)
        clock = Clock(received, raw, jumped=False)
        phases = read_phases(bag, session, clock, int(raw[0]), duration)
        channels = statistics.channels()
        topics = tuple(
            TopicSummary(
                name, bag.kind(name), n, (n - 1) / duration if duration and n > 1 else 0.0
            )
            for name, n in sorted(bag.topics().items())
        )
        urdf = options.urdf or read_urdf(bag)
        description = urdf and summarise_description(urdf, [c.joint for c in channels])
        uses = _suitability(bag, channels, statistics.obstacle, session, phases, bool(urdf))
        notes = (
            *bag.notes,
            *cut_notes(phases),
            *_timing_notes(timing, statistics.sets),
            *statistics.notes,
        )
        return BagSummary(
            path=Path(path),
            duration=duration,
            topics=topics,
            timing=timing,
            channels=channels,
            phases=phases,
            session=session,
            description=description or '',
            suitability=uses,
            notes=tuple(dict.fromkeys(notes)),
        )


def _averaging(session: RecordedSession, phases: tuple[Phase, ...]) -> tuple[bool, str]:
    """Tell whether two whole periods of the excitation are there, and else why not."""
    plan = session.trajectories.get(EXCITING)
    if not isinstance(plan, Mapping):
        return False, 'no excitation trajectory'
    period = plan.get('period')
    if not isinstance(period, int | float) or not period > 0.0:
        return False, 'the excitation trajectory has no period'
    run = next((phase for phase in phases if phase.name == EXCITING), None)
    if run is None:
        return False, 'the excitation was not run'
    if not run.steady:
        return False, 'the speed changed during the excitation'
    if run.rests:
        return False, 'the robot rested between the periods'
    seconds, period = run.stop - run.start, period / run.speed[0]
    return seconds >= MIN_PERIODS * period, (
        f'{seconds:.3g} s of a period of {period:.3g} s: two whole periods are needed'
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


def _timing_notes(timing: Timing, counts: Mapping[tuple[str, ...], int]) -> list[Finding]:
    notes = []
    if len(counts) > 1:
        sets = [f'[{shortened(joints)}]' for joints in counts]
        notes.append(finding('sets_of_joints', sets=sets, counts=tuple(counts.values())))
    if timing.backward:
        notes.append(finding('stamps_backward', count=timing.backward))
    if timing.repeated:
        notes.append(finding('stamps_twice', count=timing.repeated))
    if timing.lost:
        notes.append(finding('messages_lost', count=timing.lost, gaps=timing.gaps))
    return notes


def _suitability(
    bag: Bag,
    channels: tuple[Channel, ...],
    obstacle: str,
    session: RecordedSession,
    phases: tuple[Phase, ...],
    has_urdf: bool,
) -> tuple[Suitability, ...]:
    efforts = any(
        c.travel > MIN_TRAVEL and c.effort not in ('absent', 'constant') for c in channels
    )
    validated = any(phase.name == 'validating' for phase in phases)
    commands_effort = session.controller.get('command_interfaces') in (None, [], ['effort'])
    replay = bool(session.controller.get('gains')) and not changed_gains(session)
    replay &= commands_effort and any(bag.topics(CONTROLLER_STATE).values())
    no_replay = 'no controller state, or no gains that stayed'
    lacking = 'no configuration: defaults count without -c CONFIG'
    checks = {
        'identification': (
            efforts and not obstacle,
            obstacle or 'no joint that moves has a live effort',
        ),
        'period averaging, mle': _averaging(session, phases),
        'validation': (validated, 'no validation phase: use --part'),
        'didim': (
            replay,
            no_replay if commands_effort else 'the controller commands no efforts',
        ),
        'self-contained': (
            has_urdf and bool(session.configuration),
            lacking if has_urdf else 'no robot description: give --urdf FILE or -c CONFIG',
        ),
    }
    return tuple(
        Suitability(purpose, possible, '' if possible else reason)
        for purpose, (possible, reason) in checks.items()
    )


class _Statistics:
    """
    Counts, extremes and faults of joint states; memory grows by two stamps a message.

    Attributes
    ----------
    sets : how many messages there are of each set of joints
    times : stamps and times of reception (2, N) of the chunks, as they came [ns]
    notes, obstacle : what was found in the first chunk in motion, and why no identification is
        possible

    """

    def __init__(self) -> None:
        self.sets: dict[tuple[str, ...], int] = {}
        self.times: list[np.ndarray] = []
        self.notes: list[Finding] = []
        self.obstacle = ''
        self._joints: tuple[str, ...] = ()
        self._missing: dict[str, Any] = dict.fromkeys(FIELDS, 0)
        self._ranges: dict[str, np.ndarray] = {}

    def add(self, tables: Sequence[JointTable]) -> JointTable | None:
        """Count a chunk; return the states of its fullest publisher, None where that paused."""
        for table in tables:
            self.sets[table.joints] = self.sets.get(table.joints, 0) + len(table.stamp)
        same = [table for table in tables if set(self._joints) <= set(table.joints)]
        if not same:
            return None
        states = max(same, key=lambda t: (t.has_effort, len(t.stamp)))
        states = states.columns(self._joints or states.joints)
        if not self.times or not (self._travel() > MIN_TRAVEL).any():
            self.notes, self.obstacle = check_joint_states(_join_measured_joints(tables))
        self._joints = states.joints
        self.times.append(np.stack([states.stamp, states.received]))
        for name in FIELDS:
            values = getattr(states, name)
            self._missing[name] = self._missing[name] + (~np.isfinite(values)).sum(axis=0)
            ends = [*self._ranges.get(name, ()), *range_of_positions(values)]
            self._ranges[name] = range_of_positions(np.array(ends))
        return states

    def _travel(self) -> np.ndarray:
        low, high = self._ranges['position']
        return np.where(high >= low, high - low, 0.0)

    def channels(self) -> tuple[Channel, ...]:
        """Describe each joint."""
        total, travel = sum(times.shape[1] for times in self.times), self._travel().tolist()

        def quality(name: str, joint: int) -> str:
            missing, (low, high) = int(self._missing[name][joint]), self._ranges[name][:, joint]
            if missing:
                return 'absent' if missing == total else f'{missing} NaN'
            return 'constant' if low == high else 'live'

        return tuple(
            Channel(joint, travel[j], *(quality(name, j) for name in FIELDS))
            for j, joint in enumerate(self._joints)
        )


def _join_measured_joints(tables: Sequence[JointTable]) -> JointTable:
    """Bring all joints that have positions and efforts together, on one clock."""
    states = max(tables, key=lambda t: (t.has_effort, len(t.stamp)))
    whole: dict[str, None] = {}
    for table in tables:
        if len(table.stamp) >= MIN_MESSAGES * len(states.stamp):
            measured = np.isfinite(table.position) & np.isfinite(table.effort)
            whole |= dict.fromkeys(itertools.compress(table.joints, measured.any(axis=0)))
    with contextlib.suppress(RobotIdError):
        states = select_joints(tables, tuple(whole)) if whole else states
    return correct_clock(states)[0]


def check_joint_states(states: JointTable) -> tuple[list[Finding], str]:
    """Return what is repaired or wrong, and why no identification is possible, '' if one is."""
    recording = to_recording(states, states.stamp[0], '')
    try:
        resampled, rate, _, notes = resample_uniformly(recording, SignalSettings())
        refuse_derived_efforts(resampled.joints, resampled.position, resampled.effort, rate=rate)
    except RobotIdError as error:
        return list(states.notes), str(error)
    saturated = clipped_samples(resampled.effort).mean(axis=0)
    for joint, position, effort, flat in zip(
        resampled.joints, resampled.position.T, resampled.effort.T, saturated, strict=True
    ):
        moves = np.ptp(position) > MIN_TRAVEL
        power = (effort[1:] + effort[:-1]) * np.diff(position)
        if np.ptp(effort) == 0.0:
            if moves:
                notes.append(finding('effort_constant', [joint]))
        elif not moves:
            notes.append(finding('did_not_move', [joint]))
        elif flat < MAX_CLIPPED and power.sum() < -NEGATIVE_WORK * np.abs(power).sum():
            notes.append(finding('effort_against_motion', [joint]))
        if flat > 0.0:
            notes.append(finding('effort_flat', [joint], share=flat))
    return notes, ''
