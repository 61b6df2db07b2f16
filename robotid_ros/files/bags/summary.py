"""What is in a recording, how good it is, and what it can be used for."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...core.findings import Finding, finding
from ...core.signals.invalid_samples import refuse_derived_efforts
from ...core.signals.preparation import MIN_TRAVEL, resample_uniformly
from ...core.signals.recording import MAX_SAMPLES, Phase, range_of_positions, SignalSettings
from ...exceptions import RobotIdError, shortened
from ..formats.joint_table import FIELDS, JointTable
from ..formats.read_options import DEFAULTS, ReadOptions
from .joint_states import find_topic, read_joint_states
from .messages import CONTROLLER_STATE
from .recording import CHUNK_DURATION, correct_clock_chunks, on_one_clock, to_recording
from .session import changed_gains, Clock, cut_notes, read_phases, read_session, read_urdf
from .storage import open_bag

# Intervals of so many usual ones are gaps: one lost message makes it 2, jitter stays below.
GAP_FACTOR = 1.8


class Channel(NamedTuple):
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


class Timing(NamedTuple):
    """Stamps of the joint states."""

    rate: float  # usual, from the median interval [Hz]
    jitter: float  # standard deviation of the intervals without gaps [s]
    gaps: int  # intervals with messages missing
    lost: int  # how many are missing
    longest_gap: float  # [s]
    longest_gap_start: float  # [s]
    repeated: int  # stamps equal to the one before
    backward: int  # or earlier


@dataclass(frozen=True)
class BagSummary:
    """Everything `robotid inspect` shows."""

    path: Path
    duration: float
    topics: tuple[TopicSummary, ...]
    timing: Timing
    channels: tuple[Channel, ...]
    phases: tuple[Phase, ...]
    description: str  # '' where no robot's was recorded
    obstacles: Mapping[str, str]  # why there is none of a use, '' where it is possible
    notes: tuple[Finding, ...]

    @property
    def usable(self) -> bool:
        """Whether an identification can be made from it."""
        return not self.obstacles['identification']


def summarise(path: str | Path, options: ReadOptions = DEFAULTS) -> BagSummary:
    """Summarise a recording; RecordingError: missing, damaged, or without joint states."""
    with open_bag(path, options) as bag:
        topic, sets, joints = find_topic(bag), Counter[tuple[str, ...]](), tuple[str, ...]()
        times, missing, ends = (list[np.ndarray]() for _ in range(3))
        notes, obstacle, moves = list[Finding](), '', False

        def fullest() -> Iterator[JointTable]:
            """Yield the states of the fullest publisher, chunk by chunk; keep their figures."""
            nonlocal joints, notes, obstacle, moves
            seconds = np.inf if bag.count(topic) <= MAX_SAMPLES else CHUNK_DURATION
            for tables in read_joint_states(bag, topic, seconds):
                for table in tables:
                    sets[table.joints] += len(table.stamp)
                same = [table for table in tables if set(joints) <= set(table.joints)]
                if not same:  # it pauses
                    continue
                states = max(same, key=lambda table: table.fullness)
                states = states.columns(joints or states.joints)
                joints = states.joints
                if not moves:  # the first chunk in motion says what is repaired or wrong
                    notes, obstacle = check_identifiable(states)
                times.append(np.stack([states.stamp, states.received]))
                values = np.array([getattr(states, name).T for name in FIELDS])
                missing.append((~np.isfinite(values)).sum(axis=2))
                ends.append(np.array([range_of_positions(x.T) for x in values]))
                moves |= bool((np.diff(ends[-1][0], axis=0) > MIN_TRAVEL).any())
                yield states

        stamp = np.concatenate([chunk.stamp for chunk, _ in correct_clock_chunks(fullest())])
        raw, received = np.concatenate(times, axis=1)
        timing, duration = timing_of(raw, stamp), float(np.ptp(stamp)) * 1e-9
        session = read_session(bag)
        clock = Clock(received, raw, jumped=False)
        phases = read_phases(bag, session, clock, int(raw[0]), duration)
        low, high = np.min(ends, axis=0)[:, 0], np.max(ends, axis=0)[:, 1]
        lost = np.sum(missing, axis=0)
        kinds = np.where(low == high, 'constant', 'live').astype(object)
        kinds[lost > 0] = [f'{count} NaN' for count in lost[lost > 0]]
        kinds[lost == len(raw)] = 'absent'
        travel = np.maximum(high[0] - low[0], 0.0).tolist()
        channels = tuple(map(Channel, joints, travel, *kinds))
        topics = tuple(
            TopicSummary(name, bag.kind(name), n, max(n - 1, 0) / duration if duration else 0.0)
            for name, n in sorted(bag.topics().items())
        )
        urdf, description = options.urdf or read_urdf(bag), ''
        if urdf:
            from ..robot_description import summarise_description  # many logs have none

            description = summarise_description(urdf, joints)
        every = [*bag.notes, *cut_notes(phases)]
        if len(sets) > 1:
            shown = [f'[{shortened(names)}]' for names in sets]
            every.append(finding('sets_of_joints', sets=shown, counts=tuple(sets.values())))
        efforts = any(
            c.travel > MIN_TRAVEL and c.effort not in ('absent', 'constant') for c in channels
        )
        replay = bool(session.controller.get('gains')) and not changed_gains(session)
        replay &= any(bag.topics(CONTROLLER_STATE).values())
        validates = any(phase.name == 'validating' for phase in phases)
        obstacles = {
            'identification': obstacle or 'no joint that moves has a live effort' * (not efforts),
            'validation': 'no validation phase: use --part' * (not validates),
            'didim': 'no controller state, or no constant gains' * (not replay),
        }
        if session.controller.get('command_interfaces') not in (None, [], ['effort']):
            obstacles['didim'] = 'the controller commands no efforts'
        return BagSummary(
            path=Path(path),
            duration=duration,
            topics=topics,
            timing=timing,
            channels=channels,
            phases=phases,
            description=description,
            obstacles=obstacles,
            notes=tuple(dict.fromkeys([*every, *notes])),
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


def check_identifiable(states: JointTable) -> tuple[list[Finding], str]:
    """Return what is repaired, and why no identification is possible, '' if one is."""
    states, rows, _ = on_one_clock(states)
    states = states if rows.all() else states.rows(rows)
    recording = to_recording(states, states.stamp[0], '')
    try:
        resampled, rate, _, notes = resample_uniformly(recording, SignalSettings())
        refuse_derived_efforts(resampled.joints, resampled.position, resampled.effort, rate=rate)
    except RobotIdError as error:
        return list(states.notes), str(error)
    return notes, ''
