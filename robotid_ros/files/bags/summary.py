"""What is in a recording, how good it is, and what it can be used for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...core.finding_codes import finding
from ...core.findings import Finding
from ...core.signals.derived_efforts import refuse_derived_efforts
from ...core.signals.invalid_samples import clipped_samples
from ...core.signals.periodic import MIN_PERIODS
from ...core.signals.recording import MAX_SAMPLES, Phase, range_of_positions
from ...core.signals.resampling import resample_uniformly
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
from .session import changed_gains, cut_notes, read_phases, read_session, read_urdf, Session
from .storage import Bag

MIN_TRAVEL = 1e-3  # a joint that travels less is at rest [rad or m]
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
    session: Session
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
        session = read_session(bag)
        clock = Clock(received, raw, jumped=False)
        phases = read_phases(bag, session, clock, int(raw[0]), duration)
        channels = statistics.channels()
        urdf = options.urdf or read_urdf(bag)
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


def _averaging(session: Session, phases: tuple[Phase, ...]) -> tuple[bool, str]:
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
    seconds = run.stop - run.start
    if seconds * run.speed[0] < MIN_PERIODS * period:
        return False, (
            f'{seconds:.3g} s of a period of {period / run.speed[0]:.3g} s: two whole periods are '
            'needed'
        )
    return True, ''


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
    session: Session,
    phases: tuple[Phase, ...],
    has_urdf: bool,
) -> tuple[Suitability, ...]:
    moving = [c.joint for c in channels if c.travel > MIN_TRAVEL]
    with_effort = [c.joint for c in channels if c.effort not in ('absent', 'constant')]
    efforts = [joint for joint in moving if joint in with_effort]
    names = {phase.name for phase in phases}
    states = any(bag.topics(CONTROLLER_STATE).values())
    gains = bool(session.controller.get('gains')) and not changed_gains(session)
    effort = session.controller.get('command_interfaces') in (None, [], ['effort'])
    checks = (
        (
            'identification',
            bool(efforts) and not obstacle,
            obstacle or 'no joint that moves has a live effort',
        ),
        ('period averaging, mle', *_averaging(session, phases)),
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


class ChannelStatistics:
    """
    Counts, extremes and faults of joint states; memory grows by two stamps a message.

    Attributes
    ----------
    sets : how many messages there are of each set of joints
    findings : what was found, and why no identification is possible, of the first chunk in motion

    """

    def __init__(self) -> None:
        self.sets: dict[tuple[str, ...], int] = {}
        self.findings: tuple[list[Finding], str] = ([], '')
        self._joints: tuple[str, ...] = ()
        self._stamps: list[np.ndarray] = []
        self._missing: dict[str, Any] = dict.fromkeys(FIELDS, 0)
        self._ranges: dict[str, list[np.ndarray]] = {name: [] for name in FIELDS}

    def add(self, tables: Sequence[JointTable]) -> JointTable | None:
        """Count a chunk; return the states of its fullest publisher, None where that paused."""
        for table in tables:
            self.sets[table.joints] = self.sets.get(table.joints, 0) + len(table.stamp)
        same = [table for table in tables if set(self._joints) <= set(table.joints)]
        if not same:
            return None
        states = max(same, key=lambda t: (t.has_effort, len(t.stamp)))
        states = states.columns(self._joints or states.joints)
        still = not self._stamps or not (self._travel() > MIN_TRAVEL).any()
        self._joints = states.joints
        self._stamps.append(np.stack([states.stamp, states.received]))
        for name in FIELDS:
            values = getattr(states, name)
            self._missing[name] = self._missing[name] + (~np.isfinite(values)).sum(axis=0)
            self._ranges[name].append(range_of_positions(values))
        if still:
            self.findings = check_joint_states(join_measured_joints(tables))
        return states

    def stamps(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all stamps and times of reception, as they came [ns]."""
        stamp, received = np.concatenate(self._stamps, axis=1)
        return stamp, received

    def channels(self) -> tuple[Channel, ...]:
        """Describe each joint."""
        travel = self._travel().tolist()
        return tuple(
            Channel(joint, travel[j], *(self._quality(name, j) for name in FIELDS))
            for j, joint in enumerate(self._joints)
        )

    def _range(self, name: str) -> np.ndarray:
        return range_of_positions(np.concatenate(self._ranges[name]))

    def _travel(self) -> np.ndarray:
        low, high = self._range('position')
        return np.where(high >= low, high - low, 0.0)

    def _quality(self, name: str, joint: int) -> str:
        total = sum(stamps.shape[1] for stamps in self._stamps)
        missing, (low, high) = int(self._missing[name][joint]), self._range(name)[:, joint]
        if missing == total:
            return 'absent'
        if missing:
            return f'{missing} NaN'
        return 'constant' if low == high else 'live'


def join_measured_joints(tables: Sequence[JointTable]) -> JointTable:
    """Bring all joints that have positions and efforts together, on one clock."""
    fullest = max(tables, key=lambda t: (t.has_effort, len(t.stamp)))
    whole = [
        joint
        for table in tables
        if len(table.stamp) >= MIN_MESSAGES * len(fullest.stamp)
        for joint, both in zip(
            table.joints,
            (np.isfinite(table.position) & np.isfinite(table.effort)).any(axis=0),
            strict=True,
        )
        if both
    ]
    try:
        states = select_joints(tables, tuple(dict.fromkeys(whole))) if whole else fullest
    except RobotIdError:
        states = fullest
    return correct_clock(states)[0]


def check_joint_states(states: JointTable) -> tuple[list[Finding], str]:
    """
    Check for what is repaired or wrong.

    Returns
    -------
    Notes, and why no identification is possible ('' when one is)

    """
    recording = to_recording(states, states.stamp[0], '')
    try:
        resampled, rate, _, notes = resample_uniformly(recording, SignalSettings())
        refuse_derived_efforts(resampled.joints, resampled.position, resampled.effort, rate=rate)
    except RobotIdError as error:
        return list(states.notes), str(error)
    saturated = clipped_samples(resampled.effort).mean(axis=0)
    travel = np.ptp(resampled.position, axis=0)
    for j, joint in enumerate(resampled.joints):
        effort = resampled.effort[:, j]
        if np.ptp(effort) == 0.0:
            if travel[j] > MIN_TRAVEL:
                notes.append(finding('effort_constant', [joint]))
        elif travel[j] <= MIN_TRAVEL:
            notes.append(finding('did_not_move', [joint]))
        elif saturated[j] < MAX_CLIPPED and does_negative_work(resampled.position[:, j], effort):
            notes.append(finding('effort_against_motion', [joint]))
        if saturated[j] > 0.0:
            notes.append(finding('effort_flat', [joint], share=saturated[j]))
    return notes, ''


def does_negative_work(position: np.ndarray, effort: np.ndarray) -> bool:
    """Return whether the work of an effort along a motion is clearly negative."""
    power = (effort[1:] + effort[:-1]) * np.diff(position)
    return bool(power.sum() < -NEGATIVE_WORK * np.abs(power).sum())
