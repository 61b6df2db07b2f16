"""
What topics beside the joint states say of joints.

Trajectory controllers publish what they follow and what they command; efforts may come on topics
of their own.
"""

from collections.abc import Collection, Sequence
import dataclasses
import math
import re

import numpy as np

from ...core.finding_codes import finding
from ...core.signals.clock_correction import observed_update_rate, stamps_by_motion
from ...core.signals.recording import Recording, Reference
from ...exceptions import RecordingError, UnknownNameError
from ..formats.joint_table import interpolate, JointTable
from .messages import CONTROLLER_STATE, in_order, Layout, stamps
from .storage import Bag, UNBOUNDED, Window

DYNAMIC_STATE = 'control_msgs/msg/DynamicJointState'
# Of a controller's state, in the order of a `Reference`; 'desired' until ROS 2 Humble.
REFERENCE_FIELDS = (
    ('reference.positions', 'desired.positions'),
    ('reference.velocities', 'desired.velocities'),
    ('reference.accelerations', 'desired.accelerations'),
    ('output.effort', 'output.velocities', 'output.positions'),
)
MEASURED_FIELDS = (
    ('feedback.positions', 'actual.positions'),
    ('feedback.velocities', 'actual.velocities'),
)
# Messages with one stamp are received at most so far apart, whatever their topics [ns]. Reading a
# part takes so much more on both of its sides.
MARGIN = 2_000_000_000
# Updates for which a command counts as held: a few lost messages are bridged, a pause is not.
MAX_COMMAND_AGE = 4.5
# Interfaces and fields that hold efforts, the best first.
INTERFACES = ('effort', 'torque', 'current')
EFFORT_FIELDS = ('effort', 'efforts', 'torque', 'torques', 'tau', 'current', 'currents', 'data')
NAMES = ('name', 'names', 'joint_names', 'joint_name')
# At the ends half a sample is not worth a hole.
HALF = 0.5
_SLICE = re.compile(r'(?P<field>[^\[]*)\[(?P<start>\d*):(?P<stop>\d*)\]$')


def topics_of(bag: Bag, kind: str) -> list[str]:
    """Topics of a type that is known, with messages; the fullest first."""
    counts = {} if kind not in bag.typestore.fielddefs else bag.topics(kind)
    return sorted((topic for topic in counts if counts[topic]), key=lambda t: -counts[t])


def _read_fields(
    bag: Bag,
    topic: str,
    joints: Sequence[str],
    fields: Sequence[Sequence[str]],
    window: Window = UNBOUNDED,
) -> tuple[np.ndarray, list[np.ndarray]] | None:
    """
    Read fields of the states of one controller, received in a window of time.

    Of each field the first name that holds something counts. Returns stamps (N,) [ns], as of
    `stamps_by_motion`, and values (N, n) of each, NaN at joints that the controller lacks; None
    where it has none of them.
    """
    fields = [*fields, *MEASURED_FIELDS]
    parts = []
    for layout, payloads, _, order in bag.groups(topic, window):
        names = layout.texts.get('joint_names', ())
        if set(joints) & set(names):
            held = [next((f for f in each if f in layout.numbers), each[0]) for each in fields]
            found = (_of_joints(layout.column(payloads, f), names, joints) for f in held)
            parts.append((order, stamps(layout, payloads), *found))
    if not parts:
        return None
    stamp, *columns, position, velocity = in_order(parts)
    return stamps_by_motion(stamp, position, velocity)[0], columns


def _of_joints(found: np.ndarray, names: Sequence[str], joints: Sequence[str]) -> np.ndarray:
    """Return columns (M, any) of the joints of these names by `joints`, (M, n), else NaN."""
    values = np.full((len(found), len(joints)), np.nan)
    if found.shape[1] == len(names):
        for j, joint in enumerate(joints):
            if joint in names:
                values[:, j] = found[:, names.index(joint)]
    return values


def controllers_of(bag: Bag, joints: Collection[str], among: Collection[str]) -> list[str]:
    """Topics of the controllers whose joints, as far as they are of `joints`, are `among` some."""
    found = []
    for topic in topics_of(bag, CONTROLLER_STATE):
        named = {
            joint
            for layout, *_ in bag.groups(topic, limit=1)
            for joint in layout.texts.get('joint_names', ())
        }
        if named & set(joints) and named & set(joints) <= set(among):
            found.append(topic)
    return found


def add_reference(bag: Bag, recording: Recording, window: Window = UNBOUNDED) -> Recording:
    """
    Add what the controller followed and commanded, and the rate at which it did.

    The recording has the controller to prefer when several were recorded; `window` are the times
    of reception between which it is read [ns].
    """
    controller = recording.controller
    own = f'/{controller.name}/' if controller else '//'
    for topic in sorted(topics_of(bag, CONTROLLER_STATE), key=lambda topic: own not in topic):
        found = _read_fields(bag, topic, recording.joints, REFERENCE_FIELDS, window)
        if found and not np.isnan(found[1][0]).all(axis=0).any():
            break
    else:
        return recording
    stamp, (q, dq, ddq, command) = found
    time = (stamp - recording.origin) * 1e-9
    reference = Reference(time, q, dq, ddq, command if np.isfinite(command).any() else None)
    recording = dataclasses.replace(recording, reference=reference)
    if controller is None:
        return recording
    rate = observed_update_rate(controller.rate, time, recording.rate)
    if rate == controller.rate:
        return recording
    stated = f'{controller.rate:g} Hz' if controller.rate else 'unknown'
    note = finding('update_rate', controller=controller.name, rate=rate, stated=stated)
    controller = dataclasses.replace(controller, rate=rate)
    return dataclasses.replace(recording, controller=controller, notes=(*recording.notes, note))


def commanded_effort(bag: Bag, topics: Sequence[str], states: JointTable) -> np.ndarray:
    """
    Return what controllers commanded one cycle of the hardware before joint states, (N, n).

    That is what hardware reports that has no sensor: the command which it applied last. Of the
    controllers' topics the first one that knows a joint counts. NaN where nothing is known.
    """
    stamp, effort = states.stamp, np.full(states.effort.shape, np.nan)
    # A controller may update less often than its hardware applies and reports what it commands.
    steps = np.diff(np.unique(stamp))
    spacing = float(np.median(steps)) if len(steps) else math.inf
    for topic in topics:
        found = _read_fields(bag, topic, states.joints, [('output.effort',)], _around(states))
        if found is None or len(found[0]) < 2:
            continue
        at, first = np.unique(found[0], return_index=True)
        period = float(np.median(np.diff(at)))
        row = np.searchsorted(at, stamp - min(period, spacing) / 2, side='right') - 1
        recent = (row >= 0) & (stamp - at[row] <= MAX_COMMAND_AGE * period)
        held = np.where(recent[:, None], found[1][0][first][row], np.nan)
        effort = np.where(np.isnan(effort), held, effort)
    return effort


def _around(states: JointTable) -> Window:
    return int(states.received.min()) - MARGIN, int(states.received.max()) + MARGIN


def read_effort(bag: Bag, name: str, states: JointTable) -> np.ndarray:
    """
    Interpolate the numbers of a topic onto joint states, (N, n), NaN where it says nothing.

    `name` is `TOPIC` or `TOPIC:FIELD`. The field is an interface of a DynamicJointState, else the
    path of an array, `wrench.data`, a part of one, `data[6:12]`, or of one number in each of
    several messages, `motor_state.*.tau`. Raises RecordingError or UnknownNameError where the bag
    lacks the topic, or the topic the field.
    """
    topic, _, field = name.partition(':')
    if not bag.count(topic):
        known = (topic for topic, count in bag.topics().items() if count)
        raise UnknownNameError('topic of the recording', topic, tuple(sorted(known)))
    parts = []
    for layout, payloads, reception, order in bag.groups(topic, _around(states)):
        stamped = 'header.stamp.sec' in layout.numbers
        at = stamps(layout, payloads) if stamped else np.zeros_like(reception)
        if 'interface_values.0.interface_names' in layout.texts:
            values = _interfaces(layout, payloads, topic, field, states.joints)
        else:
            found = _array(layout, payloads, topic, field)
            names = next((layout.texts[key] for key in NAMES if key in layout.texts), ())
            if len(names) != found.shape[1]:
                names = _order(bag, states.joints, found.shape[1], topic)
            values = _of_joints(found, names, states.joints)
        parts.append((order, at, reception, values))
    if not parts:
        return np.full(states.effort.shape, np.nan)
    at, reception, values = in_order(parts)
    own, wanted = (at, states.stamp) if at.any() else (reception, states.received)
    return interpolate(wanted, own, values, HALF)[0]


def _interfaces(
    layout: Layout, payloads: np.ndarray, topic: str, field: str, joints: Sequence[str]
) -> np.ndarray:
    """Return one interface of each joint of a DynamicJointState, (M, n)."""
    values = np.full((len(payloads), len(joints)), np.nan)
    known = set[str]()
    for k, joint in enumerate(layout.texts['joint_names']):
        offered = layout.texts.get(f'interface_values.{k}.interface_names', ())
        known.update(offered)
        name = next((n for n in ((field,) if field else INTERFACES) if n in offered), None)
        if name and joint in joints:
            column = layout.column(payloads, f'interface_values.{k}.values')
            values[:, joints.index(joint)] = column[:, offered.index(name)]
    if field and np.isnan(values).all():
        raise UnknownNameError(f'interface of {topic}', field, tuple(sorted(known)))
    return values


def _array(layout: Layout, payloads: np.ndarray, topic: str, field: str) -> np.ndarray:
    """Return the numbers of a field of plain messages, (M, any)."""
    numbers = {key: entry for key, entry in layout.numbers.items() if entry[1].kind == 'f'}
    part = _SLICE.match(field)
    path = part['field'] if part else field
    path = path or next((key for key in EFFORT_FIELDS if key in numbers), '')
    if not path and len(numbers) == 1:
        path = next(iter(numbers))
    expression = re.compile(re.escape(path).replace(r'\*', r'\d+') + '$')
    found = [layout.column(payloads, key) for key in layout.numbers if expression.match(key)]
    if not found:
        raise UnknownNameError(f'field of {topic}', path or '(none given)', tuple(numbers))
    values = np.concatenate(found, axis=1).astype(float)
    start, stop = (int(part[key]) if part and part[key] else None for key in ('start', 'stop'))
    return values[:, start:stop]


def _order(bag: Bag, joints: tuple[str, ...], count: int, topic: str) -> tuple[str, ...]:
    """Names of the joints for numbers without names: user's, description's, states'."""
    for names in (bag.options.joints, bag.options.robot.independent, joints):
        if len(names) == count:
            return names
    raise RecordingError(
        f'{topic} has {count} numbers for {len(joints)} joints: choose among them as in '
        f"'{topic}:data[0:{len(joints)}]'"
    )
