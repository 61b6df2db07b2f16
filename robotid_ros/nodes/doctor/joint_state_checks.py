"""Joint states: there, complete, in time, numbers."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...core.arrays import Array
from ...core.model.robot import Robot
from ...exceptions import shortened
from ...files.bags.summary import Timing, timing_of
from ...files.formats.joint_table import JointTable
from ..identification.rest_check import MAX_TRAVEL
from .findings import error, Finding, fine, note, Severity, warning
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
_STATES, _TIMING, _CLOCK = 'joint states', 'timing', 'clock'


def joint_state_findings(snapshot: GraphSnapshot, robot: Robot | None) -> Iterator[Finding]:
    """Check the joint states of the joints that are meant, and of the motors behind springs."""
    stream = snapshot.states
    if stream is None:
        yield _silent(snapshot)
        return
    if snapshot.malformed:
        yield warning(
            _STATES,
            f'{snapshot.malformed} joint states name a joint twice or lack values',
            f'see who publishes them ({snapshot.topic("joint_states").publishing_nodes})',
        )
    needed = snapshot.joints if robot is None else robot.recorded_joints
    missing = [joint for joint in needed if joint not in stream.joints]
    if missing:
        yield error(
            _STATES,
            f'the joint states lack {shortened(missing)}, they name {shortened(stream.joints)}',
            'let the joint_state_broadcaster publish every joint, or correct robot.joints',
        )
    yield from _value_findings(snapshot, stream)
    yield from _timing_findings(stream)
    yield from _clock_findings(snapshot, stream)


def _silent(snapshot: GraphSnapshot) -> Finding:
    topic = snapshot.topic('joint_states')
    if topic.publishers:
        return error(
            _STATES,
            f"'{topic.name}' is silent though {topic.publishing_nodes} publishes it",
            "activate hardware and joint_state_broadcaster ('ros2 control list_controllers')",
        )
    others = [name for name in snapshot.joint_state_topics if name != topic.name]
    there = f', there is {shortened(others)}' if others else ''
    return error(
        _STATES,
        f"nobody publishes '{topic.name}'{there}",
        'start the joint_state_broadcaster, remap its topic, or set --namespace',
    )


def _value_findings(snapshot: GraphSnapshot, stream: JointTable) -> Iterator[Finding]:
    """Find values that are no numbers, and such as never change."""
    names = [joint for joint in stream.joints if joint in snapshot.joints] or stream.joints
    states = stream.columns(names)
    position, velocity, effort = states.position, states.velocity, states.effort
    absent = not np.isfinite(velocity).any()
    if absent:
        yield note(
            _STATES,
            'the joint states hold no velocity',
            'nothing, positions are differentiated; only effort controllers need it',
        )
    for what, values in (('position', position), ('velocity', velocity)):
        bad = _where(np.any(~np.isfinite(values), axis=0), names)
        if bad and not (what == 'velocity' and absent):
            yield error(
                _STATES,
                f'{what} of {shortened(bad)} is not a number',
                f'check the sensor and the {what} state interface',
            )
    if len(stream.stamp) > 1:
        yield from _frozen_findings(names, (position, velocity), effort)


def _frozen_findings(
    names: Sequence[str], motion: tuple[Array, Array], effort: Array
) -> Iterator[Finding]:
    """Find states that never change by the last bit: sensors have noise."""
    still = _constant(motion[0]) & _constant(motion[1])
    if still.all() and _constant(effort).all():
        # Positions alone may rest on a step of their encoder.
        told = Severity.WARNING if np.isfinite(effort).any() else Severity.NOTE
        yield Finding(
            told,
            _STATES,
            'positions, velocities and efforts never change by a single bit',
            'let the robot move: if they stay so, the hardware repeats old states',
        )
    elif still.any() and not still.all():
        yield note(
            _STATES,
            f'position and velocity of {shortened(_where(still, names))} never change by a single '
            'bit, those of the others do',
            'let it move: if they stay so, its encoder has failed',
        )


def _constant(values: Array) -> np.ndarray:
    """Whether each column holds one value only, or none."""
    return np.asarray((values == values[0]).all(axis=0) | ~np.isfinite(values).any(axis=0))


def _where(mask: Any, names: Sequence[str]) -> list[str]:
    return [name for name, chosen in zip(names, mask, strict=True) if chosen]


def moving_joints(stream: JointTable, joints: Sequence[str]) -> list[str]:
    """Names of the joints that travel in the course of the stream."""
    travel = np.ptp(np.nan_to_num(stream.position), axis=0) > MAX_TRAVEL
    return [joint for joint in _where(travel, stream.joints) if joint in joints]


def _timing_findings(stream: JointTable) -> Iterator[Finding]:
    """Check the stamps against each other."""
    timing = timing_of(stream.stamp, stream.stamp)
    count = len(stream.stamp)
    if (stream.stamp == 0).any():
        yield error(
            _TIMING,
            f'{(stream.stamp == 0).sum()} of {count} stamps are zero',
            'let the publisher stamp its messages',
        )
        return
    if timing.rate == 0.0:
        yield error(
            _TIMING,
            'the stamps of the joint states never advance',
            'let the publisher stamp its messages, and listen for longer (--duration)',
        )
        return
    findings = list(_irregularities(stream, timing))
    if timing.rate < LEAST_RATE:
        findings.append(
            warning(
                _TIMING,
                f'joint states come at {timing.rate:.3g} Hz',
                f'publish them at {LEAST_RATE:g} Hz or more, best at the rate of the controller',
            )
        )
    if not findings:
        sentence = f'{timing.rate:.4g} Hz, jitter {1e3 * timing.jitter:.3f} ms, none lost'
        findings.append(fine(_TIMING, sentence))
    yield from findings


def _irregularities(stream: JointTable, timing: Timing) -> Iterator[Finding]:
    count = len(stream.stamp)
    if timing.backward or timing.repeated:
        yield warning(
            _TIMING,
            f'{timing.repeated} of {count} stamps repeat the one before, {timing.backward} jump '
            'back',
            'look for a second publisher, or a clock that was set',
        )
    if timing.lost:
        share = timing.lost / (timing.lost + count)
        yield Finding(
            Severity.WARNING if share > MAX_LOST else Severity.NOTE,
            _TIMING,
            f'{100 * share:.1f} % of the joint states are lost, the longest gap is '
            f'{1e3 * timing.longest_gap:.0f} ms',
            'record on the robot itself, with less load or over a better network',
        )
    if timing.jitter * timing.rate > MAX_JITTER:
        yield warning(
            _TIMING,
            f'the stamps jitter by {1e3 * timing.jitter:.2f} ms at {timing.rate:.4g} Hz',
            'stamp the states when they are measured, and run the control loop with real-time '
            'priority',
        )


def _clock_findings(snapshot: GraphSnapshot, stream: JointTable) -> Iterator[Finding]:
    """Compare stamps with the clock when they arrived; the quickest message tells the offset."""
    now = stream.received.astype(float)
    clock = 'the clock of this machine'
    if snapshot.clock.size:
        received, time = snapshot.clock
        clock, now = '/clock', np.interp(now, received, time)
    age = float((now - stream.stamp).min()) * 1e-9
    if (stream.stamp == 0).any() or -MAX_AHEAD <= age <= MAX_AGE:
        yield fine(_CLOCK, f'stamps agree with {clock}')
        return
    side = 'behind' if age > 0.0 else 'ahead of'
    yield warning(
        _CLOCK,
        f'joint states are stamped {abs(age):.3g} s {side} {clock}',
        'synchronise the clocks (chrony), and set use_sim_time everywhere or nowhere',
    )
