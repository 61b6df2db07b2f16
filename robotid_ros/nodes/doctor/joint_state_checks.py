"""Joint states: there, complete, in time, numbers."""

from collections.abc import Iterator, Sequence

import numpy as np

from ...core.arrays import Array
from ...core.finding_codes import finding
from ...core.findings import Finding, Severity
from ...core.model.robot import Robot
from ...files.bags.summary import timing_of
from ...files.formats.joint_table import JointTable
from ..identification.gain_proposal import MAX_TRAVEL
from .graph_snapshot import GraphSnapshot

# Least rate [Hz]: motions of an excitation reach some hertz, and are differentiated twice.
LEAST_RATE = 50.0
# Share of messages that may be missing: real broadcasters drop up to 2.3 % at 1 kHz.
MAX_LOST = 0.05
# Jitter of the stamps, over their usual interval, that still tells one interval from the next.
MAX_JITTER = 0.3
# Stamps behind the clock when the quickest of the messages arrives, and ahead of it [s]: a network
# takes milliseconds, clocks that are synchronised differ by less.
MAX_AGE, MAX_AHEAD = 0.1, 0.02


def joint_state_findings(snapshot: GraphSnapshot, robot: Robot | None) -> Iterator[Finding]:
    """Check the joint states of the joints that are meant, and of the motors behind springs."""
    stream = snapshot.states
    topic = snapshot.topic('joint_states')
    nodes = topic.publishing_nodes
    if stream is None:
        if nodes:
            yield finding('states_silent', topic=topic.name, nodes=nodes)
        else:
            others = [name for name in snapshot.joint_state_topics if name != topic.name]
            yield finding('no_states', topic=topic.name, others=others)
        return
    if snapshot.malformed:
        yield finding('malformed_states', count=snapshot.malformed, nodes=nodes)
    needed = snapshot.joints if robot is None else robot.recorded_joints
    missing = [joint for joint in needed if joint not in stream.joints]
    if missing:
        yield finding('joints_lacking', missing, published=tuple(stream.joints))
    yield from _value_findings(snapshot, stream)
    yield from _timing_findings(stream)
    yield from _clock_findings(snapshot, stream)


def _value_findings(snapshot: GraphSnapshot, stream: JointTable) -> Iterator[Finding]:
    """Find values that are no numbers, and such as never change."""
    names = [joint for joint in stream.joints if joint in snapshot.joints] or stream.joints
    states = stream.columns(names)
    absent = not np.isfinite(states.velocity).any()
    if absent:
        yield finding('no_velocity')
    for what in ('position',) if absent else ('position', 'velocity'):
        if bad := names_where(~np.isfinite(getattr(states, what)).all(axis=0), names):
            yield finding('not_a_number', bad, quantity=what)
    if len(stream.stamp) < 2:
        return
    # States that never change by the last bit: sensors have noise.
    still = _constant(states.position) & _constant(states.velocity)
    if still.all() and _constant(states.effort).all():
        # Positions alone may rest on a step of their encoder.
        found = finding('states_frozen')
        yield found if states.has_effort else found.at(Severity.INFO)
    elif still.any() and not still.all():
        yield finding('joints_frozen', names_where(still, names))


def _constant(values: Array) -> np.ndarray:
    """Whether each column holds one value only, or none."""
    return np.asarray((values == values[0]).all(axis=0) | ~np.isfinite(values).any(axis=0))


def names_where(mask: np.ndarray, names: Sequence[str]) -> list[str]:
    """Return the names that a mask chooses."""
    return [name for name, chosen in zip(names, mask, strict=True) if chosen]


def moving_joints(stream: JointTable, joints: Sequence[str]) -> list[str]:
    """Names of the joints that travel in the course of the stream."""
    travel = np.ptp(np.nan_to_num(stream.position), axis=0) > MAX_TRAVEL
    return [joint for joint in names_where(travel, stream.joints) if joint in joints]


def _timing_findings(stream: JointTable) -> Iterator[Finding]:
    """Check the stamps against each other."""
    timing, count = timing_of(stream.stamp, stream.stamp), len(stream.stamp)
    if zero := int((stream.stamp == 0).sum()):
        yield finding('zero_stamps', zero=zero, count=count)
        return
    if timing.rate == 0.0:
        yield finding('stamps_stand')
        return
    findings = []
    if timing.backward or timing.repeated:
        figures = {'repeated': timing.repeated, 'backward': timing.backward, 'count': count}
        findings.append(finding('irregular_stamps', **figures))
    if timing.lost:
        share = timing.lost / (timing.lost + count)
        found = finding('states_lost', share=share, gap=timing.longest_gap)
        findings.append(found.at(Severity.WARNING) if share > MAX_LOST else found)
    if timing.jitter * timing.rate > MAX_JITTER:
        findings.append(finding('stamps_uneven', jitter=timing.jitter, rate=timing.rate))
    if timing.rate < LEAST_RATE:
        findings.append(finding('slow_states', rate=timing.rate, least=LEAST_RATE))
    yield from findings or (finding('timing_right', rate=timing.rate, jitter=timing.jitter),)


def _clock_findings(snapshot: GraphSnapshot, stream: JointTable) -> Iterator[Finding]:
    """Compare stamps with the clock when they arrived; the quickest message tells the offset."""
    now = stream.received.astype(float)
    clock = 'the clock of this machine'
    if snapshot.clock.size:
        received, time = snapshot.clock
        clock, now = '/clock', np.interp(now, received, time)
    age = float((now - stream.stamp).min()) * 1e-9
    if (stream.stamp == 0).any() or -MAX_AHEAD <= age <= MAX_AGE:
        yield finding('clocks_agree', clock=clock)
        return
    side = 'behind' if age > 0.0 else 'ahead of'
    yield finding('clock_offset', offset=abs(age), side=side, clock=clock)
