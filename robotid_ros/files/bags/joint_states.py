"""Joint states of a bag: the topic that counts, its tables by set of joints, one of all."""

from collections.abc import Iterable, Iterator, Sequence
import contextlib
import dataclasses
import itertools
import math
import re

import numpy as np

from ...core.findings import finding
from ...core.signals.recording import Recording, Reference
from ...core.signals.stamp_correction import observed_update_rate, stamps_by_motion
from ...exceptions import RecordingError, RobotIdError, shortened, UnknownNameError
from ..formats.joint_table import concatenate, FIELDS, JointTable
from .messages import (
    by_place,
    CONTROLLER_STATE,
    JOINT_STATE,
    JOINT_STATES_TOPIC,
    Layout,
    stamps,
)  # fmt: skip
from .session import read_urdf
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
# Usual intervals between two values beyond which nothing is interpolated: at the ends half a
# sample is not worth a hole.
MAX_SPACING, BEYOND = 4.5, 0.5
_SLICE = re.compile(r'(?P<field>[^\[]*)\[(?P<start>\d*):(?P<stop>\d*)\]$')


def topics_of(bag: Bag, kind: str) -> list[str]:
    """Topics of a type that is known, with messages; the fullest first."""
    counts = {topic: count for topic, count in bag.topics(kind).items() if count}
    known = counts and kind in bag.fields(kind)
    return sorted(counts, key=lambda t: -counts[t]) if known else []


def _read_fields(
    bag: Bag,
    topic: str,
    joints: Sequence[str],
    fields: Sequence[Sequence[str]],
    window: Window = UNBOUNDED,
) -> tuple[np.ndarray, list[np.ndarray]] | None:
    """Read stamps (N,) [ns] and fields (N, n), or NaN, of one controller, if it has any."""
    parts = []
    for layout, payloads, _, order in itertools.chain.from_iterable(bag.groups(topic, window)):
        names = layout.texts.get('joint_names', ())
        if set(joints) & set(names):
            each = [*fields, *MEASURED_FIELDS]
            held = [next((f for f in one if f in layout.numbers), one[0]) for one in each]
            found = (_of_joints(layout.column(payloads, f), names, joints) for f in held)
            parts.append((order, stamps(layout, payloads), *found))
    if not parts:
        return None
    stamp, *columns, position, velocity = by_place(parts)
    return stamps_by_motion(stamp, position, velocity)[0], columns


def _of_joints(found: np.ndarray, names: Sequence[str], joints: Sequence[str]) -> np.ndarray:
    """Return columns (M, any) of the joints of these names by `joints`, (M, n), else NaN."""
    values = np.full((len(found), len(joints)), np.nan)
    if found.shape[1] == len(names):
        own = [j for j, joint in enumerate(joints) if joint in names]
        values[:, own] = found[:, [names.index(joints[j]) for j in own]]
    return values


def add_reference(bag: Bag, recording: Recording, window: Window = UNBOUNDED) -> Recording:
    """Add what the controller followed and commanded in a window of time, and its rate."""
    controller = recording.controller
    own = f'/{controller.name}/' if controller else '//'
    for topic in sorted(topics_of(bag, CONTROLLER_STATE), key=lambda topic: own not in topic):
        found = _read_fields(bag, topic, recording.joints, REFERENCE_FIELDS, window)
        if found and not np.isnan(found[1][0]).all(axis=0).any():
            break
    else:
        return recording
    stamp, (q, dq, ddq, command) = found
    time, notes = (stamp - recording.origin) * 1e-9, recording.notes
    reference = Reference(time, q, dq, ddq, command if np.isfinite(command).any() else None)
    rate = observed_update_rate(controller.rate, time, recording.rate) if controller else 0.0
    if controller and rate != controller.rate:
        stated = f'{controller.rate:g} Hz' if controller.rate else 'unknown'
        note = finding('update_rate', controller=controller.name, rate=rate, stated=stated)
        controller, notes = dataclasses.replace(controller, rate=rate), (*notes, note)
    return dataclasses.replace(recording, reference=reference, controller=controller, notes=notes)


def commanded_effort(bag: Bag, topics: Sequence[str], states: JointTable) -> np.ndarray:
    """Return what controllers commanded one cycle before joint states, (N, n); NaN: unknown."""
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
    groups = itertools.chain.from_iterable(bag.groups(topic, _around(states)))
    for layout, payloads, reception, order in groups:
        stamped = 'header.stamp.sec' in layout.numbers
        at = stamps(layout, payloads) if stamped else np.zeros_like(reception)
        if 'interface_values.0.interface_names' in layout.texts:
            values = _interfaces(layout, payloads, topic, field, states.joints)
        else:
            found = _array(layout, payloads, topic, field)
            count, own = found.shape[1], states.joints
            names = next((layout.texts[key] for key in NAMES if key in layout.texts), ())
            if len(names) != count:  # the user's, the description's or the states'
                from ...core.setup.joint_choice import JointTree

                tree = JointTree(bag.options.urdf or '<robot/>')
                orders = (bag.options.joints, tree.independent, own)
                names = next((each for each in orders if len(each) == count), ())
            if len(names) != count:
                raise RecordingError(
                    f'{topic} has {count} numbers for {len(own)} joints: choose among them as in '
                    f"'{topic}:data[0:{len(own)}]'"
                )
            values = _of_joints(found, names, own)
        parts.append((order, at, reception, values))
    if not parts:
        return np.full(states.effort.shape, np.nan)
    at, reception, values = by_place(parts)
    at, wanted = (at, states.stamp) if at.any() else (reception, states.received)
    return _interpolated(wanted, at, values)


def _interpolated(wanted: np.ndarray, time: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Interpolate values (M, n) at times (M,) at others (N,), not in gaps."""
    time, first = np.unique(time, return_index=True)
    found = np.full((len(wanted), values.shape[1]), np.nan)
    if len(time) > 1:
        after = np.clip(np.searchsorted(time, wanted), 1, len(time) - 1)
        usual = float(np.median(np.diff(time)))
        near = time[after] - time[after - 1] <= MAX_SPACING * usual
        near &= (wanted >= time[0] - BEYOND * usual) & (wanted <= time[-1] + BEYOND * usual)
        for k, column in enumerate(values[first].T):
            found[near, k] = np.interp(wanted[near] - time[0], time - time[0], column)
    return found


def _interfaces(
    layout: Layout, payloads: np.ndarray, topic: str, field: str, joints: Sequence[str]
) -> np.ndarray:
    """Return one interface of each joint of a DynamicJointState, (M, n)."""
    values, known = np.full((len(payloads), len(joints)), np.nan), set[str]()
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
    usual = next((key for key in EFFORT_FIELDS if key in numbers), '')
    only = next(iter(numbers)) if len(numbers) == 1 else ''
    path = (part['field'] if part else field) or usual or only
    expression = re.compile(re.escape(path).replace(r'\*', r'\d+') + '$')
    found = [layout.column(payloads, key) for key in layout.numbers if expression.match(key)]
    if not found:
        raise UnknownNameError(f'field of {topic}', path or '(none given)', tuple(numbers))
    start, stop = (int(part[key]) if part and part[key] else None for key in ('start', 'stop'))
    return np.concatenate(found, axis=1).astype(float)[:, start:stop]


# Messages of each topic that are looked at where there are several: a second at 100 Hz.
FIRST_MESSAGES = 100
# Messages (places among the topic's, table) with one set of joints, as decoded so far.
_Parts = list[tuple[np.ndarray, JointTable]]


def find_topic(bag: Bag, joints: Sequence[str] | None = None) -> str:
    """Find the topic of the measured joint states: the first test of `rank` decides of several."""
    counts = {topic: count for topic, count in bag.topics(JOINT_STATE).items() if count}
    if not counts:
        raise RecordingError(
            f"'{bag.path}' holds no joint states (its topics: {shortened(sorted(bag.topics()))}): "
            'record sensor_msgs/JointState'
        )
    if len(counts) == 1:
        return next(iter(counts))
    # Most logs have one topic and need none of these.
    from ...core.setup.joint_choice import JointTree
    from ..formats.column_names import OTHER, REFERENCE

    asked: Sequence[str] = joints or bag.options.joints
    if not asked:
        with contextlib.suppress(RobotIdError):
            asked = JointTree(bag.options.urdf or read_urdf(bag) or '').movable
    # Of the first messages the joints with positions, and those with efforts but 0.
    first: dict[str, tuple[set[str], set[str]]] = {topic: (set(), set()) for topic in counts}
    for topic, (joints_of, with_effort) in first.items():
        groups = bag.groups(topic, limit=FIRST_MESSAGES, fault_of=fault_of)
        for layout, payloads, *_ in itertools.chain.from_iterable(groups):
            names = layout.texts['name']
            known = np.isfinite(layout.column(payloads, 'position')).any(axis=0)
            joints_of.update(itertools.compress(names, known))
            with_effort.update(itertools.compress(names, _live(layout.column(payloads, 'effort'))))
    published = set().union(*(names for names, _ in first.values()))
    wanted = published & set(asked) or published

    def rank(topic: str) -> tuple[bool | int, ...]:
        names, with_effort = first[topic]
        words = {w.lower() for w in re.findall('[A-Z]?[a-z]+|[A-Z]+', topic) if len(w) > 1}
        words |= {word.removesuffix('s') for word in words}
        return (
            not wanted.isdisjoint(names),
            words.isdisjoint(REFERENCE | OTHER),
            not wanted.isdisjoint(with_effort) or bool(bag.options.effort_topic),
            topic == JOINT_STATES_TOPIC,
            topic.endswith(JOINT_STATES_TOPIC),
            len(wanted & names),
            counts[topic],
        )

    best, *others = sorted(counts, key=rank, reverse=True)
    bag.add_note(finding('topic_chosen', topic=best, others=others))
    return best


def read_joint_states(
    bag: Bag, topic: str, seconds: float = np.inf, window: Window = UNBOUNDED
) -> Iterator[list[JointTable]]:
    """Yield a topic's tables, one per set of joints, anew every so many `seconds`."""
    if bag.table:
        low, high = (
            None if t is None else int(np.searchsorted(bag.table.received, t)) for t in window
        )
        table = bag.table.rows(slice(low, high))
        passed = (table.received - table.received[:1]) // (seconds * 1e9)
        ends = [0, *(np.flatnonzero(np.diff(passed)) + 1), len(passed)]
        for start, stop in itertools.pairwise(ends if len(passed) else ()):
            alone = [table.rows(slice(start, stop))]
            yield _with_effort(bag, alone) if bag.options.effort_topic else alone
        return
    joint_sets: dict[frozenset[str], _Parts] = {}
    began, found = None, False
    for groups in filter(None, bag.groups(topic, window, fault_of=fault_of)):
        now = min(int(received[0]) for _, _, received, _ in groups)
        began = now if began is None else began
        if joint_sets and now - began >= seconds * 1e9:
            yield _with_effort(bag, [*map(_joined, joint_sets.values())])
            joint_sets, began, found = {}, now, True
        for layout, payloads, received, order in groups:
            joints, empty = layout.texts['name'], np.full((len(payloads), 1), np.nan)
            columns = (layout.column(payloads, name).astype(float, copy=False) for name in FIELDS)
            values = [x if x.shape[1] else np.repeat(empty, len(joints), axis=1) for x in columns]
            part = JointTable(joints, stamps(layout, payloads), received, *values)
            same = joint_sets.setdefault(frozenset(joints), [])
            same.append((order, part.columns(same[0][1].joints) if same else part))
    if joint_sets:
        yield _with_effort(bag, [*map(_joined, joint_sets.values())])
    elif not found and window == UNBOUNDED:
        reason = next(iter(bag.left_out[topic]), 'there are none')
        raise RecordingError(
            f"'{bag.path}' has no joint states that can be read ({reason}): correct the publisher "
            'and record again'
        )


def _joined(parts: _Parts) -> JointTable:
    order = np.concatenate([order for order, _ in parts])
    states = concatenate(*(table for _, table in parts))
    if (np.diff(order) < 0).any():
        states = states.rows(np.argsort(order, kind='stable'))
    if len(order) > 1 and not states.stamp.any():
        return dataclasses.replace(states, stamp=states.received, notes=(finding('no_stamps'),))
    stamp, notes = stamps_by_motion(states.stamp, states.position, states.velocity)
    return dataclasses.replace(states, stamp=stamp, notes=(*states.notes, *notes))


def fault_of(layout: Layout) -> str:
    """Say why a message is no joint state, '' where it is one."""
    joints = layout.texts.get('name', ())
    if not joints:
        return 'no joint is named'
    if len(set(joints)) != len(joints):
        return 'a joint is named twice'
    counts = {name: layout.numbers[name][2] for name in FIELDS if name in layout.numbers}
    wrong = (name for name, count in counts.items() if count != len(joints))
    return next((f'there are not as many values of {name} as joints' for name in wrong), '')


def _with_effort(bag: Bag, tables: list[JointTable]) -> list[JointTable]:
    """Take efforts of another topic where asked to, or where the joint states have none."""
    if bag.options.effort_topic:
        return _with_topic(bag, tables, bag.options.effort_topic)
    live = _joints_with_effort(tables)
    for topic in () if live else topics_of(bag, DYNAMIC_STATE):
        filled = _with_topic(bag, tables, topic)
        if _joints_with_effort(filled):
            return filled
    # Controllers all of whose joints, as far as they are of these, report none.
    joints, controllers = {joint for table in tables for joint in table.joints}, list[str]()
    for topic in topics_of(bag, CONTROLLER_STATE) if joints - live else ():
        first = itertools.chain.from_iterable(bag.groups(topic, limit=1))
        own = joints & {n for layout, *_ in first for n in layout.texts.get('joint_names', ())}
        if own and not own & live:
            controllers.append(topic)
    if not controllers:
        return tables
    found = []
    for table in tables:
        # What they command counts as effort, unless that is 0 as well.
        command = commanded_effort(bag, controllers, table)
        zero, known = (np.isfinite(x).any(axis=0) for x in (table.effort, command))
        taken = np.where(zero, _live(command), known)
        if taken.any():
            what = 'an effort of exactly 0' if zero[taken].any() else 'no effort'
            note = finding(
                'commands_as_efforts', itertools.compress(table.joints, taken), what=what
            )
            notes = (*table.notes, note)
            effort = np.where(_live(table.effort), table.effort, command)
            table = dataclasses.replace(table, effort=effort, notes=notes)
        found.append(table)
    return found


def _joints_with_effort(tables: Iterable[JointTable]) -> set[str]:
    """Return the joints that report efforts; drivers without sensors may publish zeros."""
    return {j for table in tables for j in itertools.compress(table.joints, _live(table.effort))}


def _live(effort: np.ndarray) -> np.ndarray:
    """Return which columns of (N, n) hold anything but 0 and NaN."""
    return np.asarray((np.abs(effort) > 0.0).any(axis=0))


def _with_topic(bag: Bag, tables: Sequence[JointTable], name: str) -> list[JointTable]:
    note = finding('efforts_of_topic', topic=name)
    return [
        dataclasses.replace(t, effort=read_effort(bag, name, t), notes=(*t.notes, note))
        for t in tables
    ]


def select_joints(tables: Sequence[JointTable], joints: Sequence[str] | None) -> JointTable:
    """Return the joints asked for, of the fullest table that has them all, or all of its own."""
    ranked = sorted(tables, key=lambda table: table.fullness, reverse=True)
    joints = ranked[0].joints if joints is None else joints
    for table in ranked:
        if set(joints) <= set(table.joints):
            return table.columns(joints)
    known = tuple(sorted({name for table in ranked for name in table.joints}))
    for joint in joints:
        if joint not in known:
            raise UnknownNameError('joint of the recording', joint, known)
    publishers = [f'[{", ".join(table.joints)}]' for table in ranked]
    raise RecordingError(
        f'joint states come from several publishers ({" and ".join(publishers)}): record one '
        'publisher of all joints, or identify each group by itself with --joints'
    )
