"""Joint states: complete, in time, numbers; efforts at rest beside the weight of the masses."""

from collections.abc import Collection, Iterator
import dataclasses
from itertools import compress
import math
from typing import Any

import numpy as np

from ...core.arrays import any_effort, Array
from ...core.findings import Finding, finding, select, Severity
from ...core.model import build_robot, inverse_dynamics, Robot
from ...core.setup.joint_choice import place_locked_joints
from ...exceptions import RobotIdError
from ...files.bags.summary import timing_of
from ...files.formats.joint_table import JointTable
from ..common.joint_states import MAX_TRAVEL
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
    if missing := [joint for joint in needed if joint not in stream.joints]:
        yield finding('joints_lacking', missing, published=tuple(stream.joints))
    # Values that are no numbers, and such as never change.
    names = [joint for joint in stream.joints if joint in snapshot.joints] or stream.joints
    states = stream.columns(names)
    absent = not np.isfinite(states.velocity).any()
    if absent:
        yield finding('no_velocity')
    for what in ('position',) if absent else ('position', 'velocity'):
        if bad := [*compress(names, ~np.isfinite(getattr(states, what)).all(axis=0))]:
            yield finding('not_a_number', bad, quantity=what)
    if len(stream.stamp) > 1:
        # States that never change by the last bit: sensors have noise.
        still = _constant(states.position) & _constant(states.velocity)
        if still.all() and _constant(states.effort).all():
            # Positions alone may rest on a step of their encoder.
            found = finding('states_frozen')
            yield found if states.fullness[0] else found.at(Severity.INFO)
        elif still.any() and not still.all():
            yield finding('joints_frozen', [*compress(names, still)])
    yield from _timing_findings(stream)
    # Stamps against the clock when they arrived: the quickest message tells the offset.
    now, clock = stream.received.astype(float), 'the clock of this machine'
    if snapshot.clock.size:
        clock, now = '/clock', np.interp(now, *snapshot.clock)
    age = float((now - stream.stamp).min()) * 1e-9
    if (stream.stamp == 0).any() or -MAX_AHEAD <= age <= MAX_AGE:
        yield finding('clocks_agree', clock=clock)
    else:
        side = 'behind' if age > 0.0 else 'ahead of'
        yield finding('clock_offset', offset=abs(age), side=side, clock=clock)


def _constant(values: Array) -> np.ndarray:
    """Whether each column holds one value only, or none."""
    return np.asarray((values == values[0]).all(axis=0) | ~np.isfinite(values).any(axis=0))


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


def described_robot(snapshot: GraphSnapshot) -> tuple[Robot | None, tuple[Finding, ...]]:
    """Build the robot that a session would take, if possible; and say what there is of it."""
    topic = snapshot.topic('robot_description')
    if not snapshot.description:
        nodes = topic.publishing_nodes
        where = {'empty': topic.name, 'nodes': nodes} if nodes else {'topic': topic.name}
        return None, (finding('no_description', **where),)
    settings, stream, joints = snapshot.configuration.robot, snapshot.states, snapshot.joints
    try:
        settings = dataclasses.replace(settings, joints=joints)
        if joints and stream is not None:
            last = zip(stream.joints, stream.position[-1].tolist(), strict=True)
            q = {joint: place for joint, place in last if math.isfinite(place)}
            settings = place_locked_joints(snapshot.description, settings, q)
        robot = build_robot(snapshot.description, settings)
    except RobotIdError as reason:
        return None, (finding('description_unusable', reason=str(reason)),)
    found = []
    # Limits below which a motion has to be kept.
    for name in ('velocity', 'effort'):
        values = getattr(robot.limits, name)
        if lacking := [*compress(robot.joints, ~np.isfinite(values) | (values <= 0.0))]:
            found.append(finding('no_limit', lacking, limit=name))
    found += [*robot.warnings, finding('described', robot.joints, robot=robot.name)]
    return robot, tuple(found)


def effort_findings(snapshot: GraphSnapshot, robot: Robot | None) -> Iterator[Finding]:
    """Check efforts; without a robot only whether there are any."""
    stream = snapshot.states
    if stream is None:
        return
    joints = [j for j in snapshot.joints or stream.joints if j in stream.joints]
    effort = stream.columns(joints).effort
    finite = np.isfinite(effort)
    commanded = snapshot.commands_effort
    if not finite.any() or (commanded and not any_effort(effort)):
        what = 'an effort of exactly 0' if finite.any() else 'no effort'
        yield finding('commands_for_efforts' if commanded else 'no_efforts', what=what)
        return
    if bad := [*compress(joints, ~finite.all(axis=0))]:
        yield finding('effort_not_a_number', bad)
        return
    known = robot if robot is not None and set(robot.joints) <= set(stream.joints) else None
    if not effort.any():
        bearing = known is not None and compare_weights(stream, known)[3].size > 0
        found = finding('efforts_all_zero', bears='bears' if bearing else None)
        yield found.at(Severity.ERROR) if bearing else found
        return
    if dead := [*compress(joints, ~np.any(effort, axis=0))]:
        yield finding('effort_zero', dead)
    elif len(effort) > 1 and (effort == effort[0]).all():
        yield finding('efforts_frozen')
    if known is not None:
        yield from weight_findings(stream, known, dead)


# Weight that shows in an effort at rest: more than these shares of the effort limit and of the
# largest weight, and than twice the description's dry friction, all of which friction may hide.
FRICTION_SHARE, LEAST_SHARE, FRICTION_FACTOR = 0.05, 0.05, 2.0
OFFSET_FACTOR = 2.0  # an effort that bears no weight exceeds what friction may hide by so much
# Reported over predicted effort: masses of a description may be off by a factor of two, units and
# gears by more; what is below a fifth holds no weight.
MAX_SCALE, NO_WEIGHT = 2.5, 0.2


def compare_weights(stream: JointTable, robot: Robot) -> tuple[Array, Array, Array, np.ndarray]:
    """Return efforts at rest, weight, what friction may hide, (n,), and the heavy joints."""
    states = stream.columns(robot.joints)
    q = states.position.mean(axis=0, keepdims=True)
    rest = np.zeros_like(q)
    weight = inverse_dynamics(robot, robot.prior, q, rest, rest)[0]
    hidden = FRICTION_SHARE * np.nan_to_num(robot.limits.effort, posinf=0.0)
    hidden = np.maximum(hidden, FRICTION_FACTOR * robot.dry_friction)
    hidden = np.maximum(hidden, LEAST_SHARE * np.abs(weight).max()) + 1e-9
    measured = robot.efforts_to_torques(states.effort.mean(axis=0))
    return measured, weight, hidden, np.flatnonzero(np.abs(weight) > hidden)


def weight_findings(stream: JointTable, robot: Robot, dead: Collection[str]) -> Iterator[Finding]:
    """Check sign, unit and zero of efforts, but for those of joints that are `dead`."""
    travel = np.ptp(np.nan_to_num(stream.columns(robot.joints).position), axis=0)
    if moving := [*compress(robot.joints, travel > MAX_TRAVEL)]:
        yield finding('moves', moving)
        return
    measured, weight, hidden, heavy = compare_weights(stream, robot)
    if not np.isfinite(weight).all():
        return

    def about(name: str, chosen: np.ndarray, **values: Any) -> Finding:
        """Return a finding on these joints, with both efforts."""
        values |= {'efforts': measured[chosen], 'weights': weight[chosen]}
        joints = [robot.joints[j] for j in chosen]
        return finding(name, joints, units=[robot.units[j][1] for j in joints], **values)

    bearing, heavy = len(heavy), np.array([j for j in heavy if robot.joints[j] not in dead], int)
    ratio = measured[heavy] / weight[heavy]
    size = np.abs(ratio)
    opposite = ratio < -NO_WEIGHT
    scaled = ~opposite & ((size > MAX_SCALE) | (size < 1.0 / MAX_SCALE))
    if not heavy.size:
        yield finding('no_weight')
    elif (size < NO_WEIGHT).all():
        yield about('efforts_without_weight', heavy)
    elif not (opposite | scaled).any():
        if len(heavy) == bearing:  # what the others are, these do not show
            yield about('efforts_like_weight', heavy)
    else:
        if opposite.any():
            arm = 'arm' if opposite.all() else None
            yield about('efforts_opposite', heavy[opposite], arm=arm)
        if scaled.any():
            yield about('efforts_unlike_weight', heavy[scaled])
    # Efforts beyond weight and friction, of joints whose limit tells what friction may take.
    rest = np.abs(measured - weight) > OFFSET_FACTOR * hidden
    light = (np.abs(weight) <= hidden) & np.isfinite(robot.limits.effort)
    if (rest & light).any():
        yield about('efforts_beyond_weight', np.flatnonzero(rest & light))


# What efforts are by a finding on them: values of `robot.effort_kind`.
KINDS = {'efforts_without_weight': 'without_gravity', 'efforts_like_weight': 'joint_torque'}


def effort_kind(snapshot: GraphSnapshot) -> str:
    """Return what efforts at rest show themselves to be, a value of `robot.effort_kind`."""
    found = tuple(effort_findings(snapshot, described_robot(snapshot)[0]))
    return next((kind for name, kind in KINDS.items() if select(found, name)), 'auto')
