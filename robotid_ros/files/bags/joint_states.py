"""Joint states of a bag: the topic that counts, its tables by set of joints, one of all."""

from collections.abc import Iterable, Iterator, Sequence
import contextlib
import dataclasses
import itertools
import re

import numpy as np

from ...core.finding_codes import finding
from ...core.model.urdf_parsing import movable_joints
from ...core.signals.clock_correction import stamps_by_motion
from ...exceptions import RecordingError, RobotIdError, shortened, UnknownNameError
from ..formats.column_names import OTHER, REFERENCE
from ..formats.joint_table import concatenate, FIELDS, interpolate, JointTable
from .joint_topics import (
    commanded_effort,
    controllers_of,
    DYNAMIC_STATE,
    HALF,
    read_effort,
    topics_of,
)
from .messages import BATCH, batches, Decoder, JOINT_STATE, JOINT_STATES_TOPIC, Layout, stamps
from .session import read_urdf
from .storage import Bag, UNBOUNDED, Window

# Messages of each topic that are looked at where there are several: a second at 100 Hz.
FIRST_MESSAGES = 100
# Publishers of some joints each are interpolated together when this share of their stamps has
# near neighbours in all of them: a tenth may be lost at the ends and in gaps, publishers that ran
# one after the other are refused.
MIN_SHARED = 0.9
# Messages (places among the topic's, table) with one set of joints, as decoded so far.
_Parts = list[tuple[np.ndarray, JointTable]]


def find_topic(bag: Bag, joints: Sequence[str] | None = None) -> str:
    """
    Topic of the measured joint states of the robot.

    Of several it is one with positions of the robot, by its name not of commands or predictions,
    with efforts, called `/joint_states`, of most joints, the fullest: the first of these that
    tells them apart decides. `joints` are those that are asked for, None for those of the options
    or of the robot description. Raises RecordingError where there is none.
    """
    counts = {topic: count for topic, count in bag.topics(JOINT_STATE).items() if count}
    if not counts:
        raise RecordingError(
            f"'{bag.path}' holds no joint states (its topics: {shortened(sorted(bag.topics()))}): "
            'record sensor_msgs/JointState'
        )
    if len(counts) == 1:
        return next(iter(counts))
    asked: Sequence[str] = joints or bag.options.joints
    if not asked:
        with contextlib.suppress(RobotIdError):
            asked = movable_joints(bag.options.urdf or read_urdf(bag) or '')[0]
    # Of the first messages the joints with positions, and those with efforts but 0.
    first: dict[str, tuple[set[str], set[str]]] = {topic: (set(), set()) for topic in counts}
    for topic, (joints_of, with_effort) in first.items():
        for layout, payloads, *_ in bag.groups(topic, limit=FIRST_MESSAGES, fault_of=fault_of):
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
    bag: Bag,
    topic: str,
    seconds: float = np.inf,
    window: Window = UNBOUNDED,
) -> Iterator[list[JointTable]]:
    """
    Read the joint states of a topic, those with the same set of joints together.

    Yields one table per set of joints, anew whenever so many `seconds` have passed, to bound the
    memory; `window` are the times of reception between which it is read [ns].
    """
    if bag.table:
        whole = seconds == np.inf and window == UNBOUNDED
        for part in [bag.table] if whole else _pieces(bag.table, seconds, window):
            yield _with_effort(bag, [part]) if bag.options.effort_topic else [part]
        return
    decoder = Decoder(bag.typestore, JOINT_STATE, fault_of)
    joint_sets: dict[frozenset[str], _Parts] = {}
    count, began, found = 0, None, False
    for whole, batch in batches(bag.blocks(topic, *window)):
        received = batch.received.astype(np.int64)
        began = received[0] if began is None else began
        if joint_sets and whole and received[0] - began >= seconds * 1e9:
            yield _with_effort(bag, [*map(_joined, joint_sets.values())])
            joint_sets, began, found = {}, received[0], True
        for number, payloads, rows in decoder.groups(batch):
            part = _table(decoder.layouts[number], payloads, received[rows])
            same = joint_sets.setdefault(frozenset(part.joints), [])
            same.append((rows + count, part.columns(same[0][1].joints) if same else part))
        count += batch.total
        bag.add_left_out(topic, decoder.left_out)
    if joint_sets:
        yield _with_effort(bag, [*map(_joined, joint_sets.values())])
    elif not found and window == UNBOUNDED:
        reason = next(iter(decoder.left_out), 'there are none')
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


def _table(layout: Layout, payloads: np.ndarray, received: np.ndarray) -> JointTable:
    joints = layout.texts['name']
    columns = [layout.column(payloads, name).astype(float, copy=False) for name in FIELDS]
    empty = np.full((len(payloads), len(joints)), np.nan)
    columns = [column if column.shape[1] else empty for column in columns]
    return JointTable(joints, stamps(layout, payloads), received, *columns)


def fault_of(layout: Layout) -> str:
    """Say why a message is no joint state, '' where it is one."""
    joints = layout.texts.get('name', ())
    if not joints:
        return 'no joint is named'
    if len(set(joints)) != len(joints):
        return 'a joint is named twice'
    for name in FIELDS:
        if name in layout.numbers and layout.numbers[name][2] != len(joints):
            return f'there are not as many values of {name} as joints'
    return ''


def _pieces(table: JointTable, seconds: float, window: Window) -> Iterator[JointTable]:
    """Yield a table that is in memory as `read_joint_states` yields messages."""
    ends = (
        None if time is None else int(np.searchsorted(table.received, time)) for time in window
    )
    table = table.rows(slice(*ends))
    began = 0
    for k in range(BATCH, len(table.stamp), BATCH):
        if table.received[k] - table.received[began] >= seconds * 1e9:
            yield table.rows(slice(began, k))
            began = k
    if len(table.stamp):
        yield table.rows(slice(began, None))


def _with_effort(bag: Bag, tables: list[JointTable]) -> list[JointTable]:
    """Take efforts of another topic where asked to, or where the joint states have none."""
    if bag.options.effort_topic:
        return _with_topic(bag, tables, bag.options.effort_topic)
    live = _joints_with_effort(tables)
    for topic in () if live else topics_of(bag, DYNAMIC_STATE):
        filled = _with_topic(bag, tables, topic)
        if _joints_with_effort(filled):
            return filled
    joints = {joint for table in tables for joint in table.joints}
    controllers = controllers_of(bag, joints, joints - live) if joints - live else []
    return [_with_commands(bag, table, controllers) for table in tables] if controllers else tables


def _joints_with_effort(tables: Iterable[JointTable]) -> set[str]:
    """Return the joints that report efforts; drivers without sensors may publish zeros."""
    return {j for table in tables for j in itertools.compress(table.joints, _live(table.effort))}


def _live(effort: np.ndarray) -> np.ndarray:
    """Return which columns of (N, n) hold anything but 0 and NaN."""
    return np.asarray(np.nan_to_num(effort).any(axis=0))


def _with_commands(bag: Bag, table: JointTable, controllers: Sequence[str]) -> JointTable:
    """Take what controllers command for the efforts of their joints, unless that is 0 as well."""
    command = commanded_effort(bag, controllers, table)
    zero = np.isfinite(table.effort).any(axis=0)
    taken = np.where(zero, _live(command), np.isfinite(command).any(axis=0))
    if not taken.any():
        return table
    live = _live(table.effort)
    what = 'an effort of exactly 0' if zero[taken].any() else 'no effort'
    note = finding('commands_as_efforts', itertools.compress(table.joints, taken), what=what)
    effort = np.where(live, table.effort, command)
    return dataclasses.replace(table, effort=effort, notes=(*table.notes, note))


def _with_topic(bag: Bag, tables: Sequence[JointTable], name: str) -> list[JointTable]:
    note = finding('efforts_of_topic', topic=name)
    efforts = (read_effort(bag, name, table) for table in tables)
    return [
        dataclasses.replace(table, effort=effort, notes=(*table.notes, note))
        for table, effort in zip(tables, efforts, strict=True)
    ]


def select_joints(tables: Sequence[JointTable], joints: Sequence[str] | None) -> JointTable:
    """
    Make one table with the joints asked for.

    One publisher that has them all is preferred, then one with effort, then the fastest; several
    that have some of them each are joined by interpolation. Raises UnknownNameError where nobody
    publishes a joint; RecordingError where the joints come from publishers that do not run at one
    time.
    """
    ranked = sorted(tables, key=lambda table: table.fullness, reverse=True)
    if joints is None:
        joints = ranked[0].joints
    known = tuple(sorted({name for table in ranked for name in table.joints}))
    for joint in joints:
        if joint not in known:
            raise UnknownNameError('joint of the recording', joint, known)
    for table in ranked:
        if set(joints) <= set(table.joints):
            return table.columns(joints)
    return _interpolate_together(ranked, joints)


def _interpolate_together(ranked: Sequence[JointTable], joints: Sequence[str]) -> JointTable:
    """Bring all publishers onto the stamps of the slowest; exact where they run in step."""
    owners = {joint: next(t for t in ranked if joint in t.joints) for joint in joints}
    used = list({id(table): table for table in owners.values()}.values())
    slowest = min(used, key=lambda t: len(t.stamp))
    # A sample counts where every publisher has one before and one after it, not far away.
    together, exact = np.ones(len(slowest.stamp), dtype=bool), True
    values = np.full((len(slowest.stamp), len(FIELDS), len(joints)), np.nan)
    for table in used:
        own = [joint for joint in joints if owners[joint] is table]
        states = np.stack([getattr(table.columns(own), name) for name in FIELDS], axis=1)
        found, inside = interpolate(slowest.stamp, table.stamp, states, HALF)
        values[:, :, [joints.index(joint) for joint in own]] = found
        together &= inside
        exact &= bool(np.isin(slowest.stamp, table.stamp).all())
    publishers = [f'[{", ".join(table.joints)}]' for table in used]
    if together.mean() < MIN_SHARED:
        raise RecordingError(
            'joint states come from several publishers that do not run at one time '
            f'({" and ".join(publishers)}): record one publisher of all joints, or identify each '
            'group by itself'
        )
    notes = () if exact else (finding('several_publishers', groups=publishers),)
    return JointTable(
        tuple(joints), slowest.stamp, slowest.received, *values.swapaxes(0, 1), notes=notes
    ).rows(together)
