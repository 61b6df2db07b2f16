"""Joint states of a topic as tables, one for each set of joints."""

from collections.abc import Iterable, Iterator, Sequence
import dataclasses
from dataclasses import dataclass, field

import numpy as np

from ....exceptions import RecordingError, shortened
from ...formats.joint_table import concatenate, FIELDS, JointTable
from ..messages.message_decoding import BATCH, batches, Decoder, is_between_batches, Layout, stamps
from ..schema.message_definitions import JOINT_STATE
from .controller_states import commanded_effort, controllers_of
from .joint_topics import dynamic_state_topics, read_effort
from .storage import Bag


@dataclass
class _JointSet:
    """Messages with one set of joints, as decoded so far."""

    joints: tuple[str, ...]
    order: list[np.ndarray] = field(default_factory=list)
    parts: list[JointTable] = field(default_factory=list)

    def joined(self) -> JointTable:
        order, states = np.concatenate(self.order), concatenate(*self.parts)
        if (np.diff(order) < 0).any():
            states = states.rows(np.argsort(order, kind='stable'))
        if len(order) > 1 and not states.stamp.any():
            note = 'the joint states carry no stamps: the times of reception count'
            return dataclasses.replace(states, stamp=states.received, notes=(note,))
        return states


def read_joint_states(
    bag: Bag,
    topic: str,
    seconds: float = np.inf,
    start: int | None = None,
    stop: int | None = None,
) -> Iterator[list[JointTable]]:
    """
    Read the joint states of a topic, those with the same set of joints together.

    Parameters
    ----------
    bag : an open recording
    topic : of sensor_msgs/JointState
    seconds : start a new list whenever so much time has passed, to bound the memory
    start, stop : only what was received between these times [ns]

    Yields
    ------
    One table per set of joints.

    """
    if (table := bag.table(topic)) is not None:
        for part in _pieces(table, seconds, start, stop):
            yield _with_effort(bag, [part])
        return
    decoder = Decoder(bag.typestore, JOINT_STATE, fault_of)
    joint_sets: dict[frozenset[str], _JointSet] = {}
    count, began, found = 0, None, False
    for batch in batches(bag.blocks(topic, start, stop)):
        received = batch.received.astype(np.int64)
        if began is None:
            began = received[0]
        late = received[0] - began >= seconds * 1e9
        if joint_sets and late and is_between_batches(count):
            yield _with_effort(bag, [p.joined() for p in joint_sets.values()])
            found = True
            joint_sets, began = {}, received[0]
        for number, payloads, rows in decoder.groups(batch):
            part = _table(decoder.layouts[number], payloads, received[rows])
            same = joint_sets.setdefault(frozenset(part.joints), _JointSet(part.joints))
            same.order.append(rows + count)
            same.parts.append(part if part.joints == same.joints else part.columns(same.joints))
        count += batch.total
        bag.add_left_out(topic, decoder.left_out)
    if joint_sets:
        yield _with_effort(bag, [p.joined() for p in joint_sets.values()])
    elif not found and start is None and stop is None:
        reason = next(iter(decoder.left_out), 'there are none')
        raise RecordingError(
            f"'{bag.path}' has no joint states that can be read ({reason}): correct the publisher "
            'and record again'
        )


def _pieces(
    table: JointTable, seconds: float, start: int | None, stop: int | None
) -> Iterator[JointTable]:
    """Yield a table that is in memory as `read_joint_states` yields messages."""
    first = 0 if start is None else int(np.searchsorted(table.received, start))
    last = len(table.stamp) if stop is None else int(np.searchsorted(table.received, stop))
    table = table.rows(slice(first, last))
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
        return [_with_topic(bag, table, bag.options.effort_topic) for table in tables]
    if not _joints_with_effort(tables):
        for topic in dynamic_state_topics(bag):
            filled = [_with_topic(bag, table, topic) for table in tables]
            if _joints_with_effort(filled):
                return filled
    joints = {joint for table in tables for joint in table.joints}
    silent = joints - _joints_with_effort(tables)
    controllers = controllers_of(bag, joints, silent) if silent else []
    return [_with_commands(bag, table, controllers) for table in tables] if controllers else tables


def _joints_with_effort(tables: Iterable[JointTable]) -> set[str]:
    """Return the joints that report efforts; drivers without sensors may publish zeros."""
    return {
        joint
        for table in tables
        for joint, live in zip(table.joints, _has_values(table.effort), strict=True)
        if live
    }


def _has_values(effort: np.ndarray) -> np.ndarray:
    """Return which columns of (N, n) hold anything but 0 and NaN."""
    return np.asarray(np.nan_to_num(effort).any(axis=0))


def _with_commands(bag: Bag, table: JointTable, controllers: Sequence[str]) -> JointTable:
    """Take what controllers command for the efforts of their joints, unless that is 0 as well."""
    command = commanded_effort(bag, controllers, table.joints, table.stamp, table.received)
    zero = np.isfinite(table.effort).any(axis=0)
    taken = np.where(zero, _has_values(command), np.isfinite(command).any(axis=0))
    if not taken.any():
        return table
    live = _has_values(table.effort)
    what = 'an effort of exactly 0' if zero[taken].any() else 'no effort'
    names = shortened([j for j, new in zip(table.joints, taken, strict=True) if new])
    whose = f' of {names}' if live.any() else ''
    note = f"the joint states report {what}{whose}: the controller's commands are taken for it"
    effort = np.where(live, table.effort, command)
    return dataclasses.replace(table, effort=effort, notes=(*table.notes, note))


def _with_topic(bag: Bag, table: JointTable, name: str) -> JointTable:
    effort = read_effort(bag, name, table.joints, table.stamp, table.received)
    notes = (*table.notes, f'the efforts are those of {name}')
    return dataclasses.replace(table, effort=effort, notes=notes)


def fault_of(layout: Layout) -> str:
    """Say why a message is no joint state, '' where it is one."""
    joints = layout.texts.get('name', ())
    if not joints:
        return 'no joint is named'
    if len(set(joints)) != len(joints):
        return 'a joint is named twice'
    for name in FIELDS:
        count = layout.numbers[name][2] if name in layout.numbers else 0
        if count not in (0, len(joints)):
            return f'there are not as many values of {name} as joints'
    return ''


def _table(layout: Layout, payloads: np.ndarray, received: np.ndarray) -> JointTable:
    joints = layout.texts['name']
    columns = []
    for name in FIELDS:
        values = layout.column(payloads, name)
        if values.shape[1] == 0:
            values = np.full((len(payloads), len(joints)), np.nan)
        columns.append(values.astype(float, copy=False))
    return JointTable(joints, stamps(layout, payloads), received, *columns)
