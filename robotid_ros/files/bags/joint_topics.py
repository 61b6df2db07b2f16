"""Efforts and temperatures of joints that come on topics of their own."""

from collections.abc import Iterator, Sequence
import contextlib
import itertools
import re

import numpy as np

from ...core.model.urdf_parsing import movable_joints
from ...exceptions import RecordingError, RobotIdError, UnknownNameError
from ..formats.column_names import WORDS
from ..formats.joint_table import interpolate
from .controller_states import MARGIN
from .messages import Decoder, Layout, stamps, TEMPERATURE
from .storage import Bag

DYNAMIC_STATE = 'control_msgs/msg/DynamicJointState'
# Interfaces and fields that hold efforts, the best first.
INTERFACES = ('effort', 'torque', 'current')
FIELDS = ('effort', 'efforts', 'torque', 'torques', 'tau', 'current', 'currents', 'data')
NAMES = ('name', 'names', 'joint_names', 'joint_name')
# Interfaces of a DynamicJointState that are temperatures, the best first.
WARMTH = ('temperature', 'motor_temperature')
# Words of topics; of columns 'temps' may be French for times.
TEMPERATURES = WORDS['temperature'] | {'temps'}
# At the ends half a sample is not worth a hole.
HALF = 0.5
_SLICE = re.compile(r'(?P<field>[^\[]*)\[(?P<start>\d*):(?P<stop>\d*)\]$')


def dynamic_state_topics(bag: Bag) -> list[str]:
    """Topics that may hold efforts where the joint states hold none."""
    if DYNAMIC_STATE not in bag.typestore.fielddefs:
        return []
    return [topic for topic, count in bag.topics(DYNAMIC_STATE).items() if count]


def read_effort(
    bag: Bag, name: str, joints: Sequence[str], stamp: np.ndarray, received: np.ndarray
) -> np.ndarray:
    """
    Interpolate the numbers of a topic onto joint states.

    Parameters
    ----------
    bag : where from
    name : `TOPIC` or `TOPIC:FIELD`. The field is an interface of a DynamicJointState, else the
        path of an array, `wrench.data`, a part of one, `data[6:12]`, or of one number in each of
        several messages, `motor_state.*.tau`
    joints : names of the columns
    stamp, received : (N,) of the joint states [ns]

    Returns
    -------
    (N, n), NaN where the topic says nothing.

    Raises
    ------
    RecordingError, UnknownNameError : the bag lacks the topic, or the topic the field

    """
    topic, _, field = name.partition(':')
    kinds = {c.topic: c.msgtype for c in bag.connections if c.msgcount}
    if topic not in kinds:
        raise UnknownNameError('topic of the recording', topic, tuple(sorted(kinds)))
    found = read_numbers(bag, topic, field, joints, received)
    if found is None:
        return np.full((len(stamp), len(joints)), np.nan)
    at, reception, values = found
    own, wanted = (at, stamp) if at.any() else (reception, received)
    return interpolate(wanted, own, values, HALF)


def read_numbers(
    bag: Bag, topic: str, field: str, joints: Sequence[str], received: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """
    Read the numbers of a topic at about the times of joint states.

    Parameters
    ----------
    bag, topic, field, joints : as of `read_effort`
    received : (N,) of the joint states [ns]

    Returns
    -------
    Stamps, 0 where one has none, times of reception (M,) [ns], and values (M, n); None without any

    Raises
    ------
    RecordingError, UnknownNameError : the topic lacks the field

    """
    kind = next(c.msgtype for c in bag.connections if c.topic == topic)
    decoder = Decoder(bag.typestore, kind)
    window = int(received.min()) - MARGIN, int(received.max()) + MARGIN
    order, times, receptions, parts = (list[np.ndarray]() for _ in range(4))
    count, stamped = 0, True
    for batch in bag.blocks(topic, *window):
        for number, payloads, rows in decoder.groups(batch):
            layout = decoder.layouts[number]
            stamped &= 'header.stamp.sec' in layout.numbers
            receptions.append(batch.received.astype(np.int64)[rows])
            times.append(stamps(layout, payloads) if stamped else np.zeros_like(receptions[-1]))
            parts.append(_values(bag, layout, payloads, topic, field, joints))
            order.append(rows + count)
        count += batch.total
        bag.add_left_out(topic, decoder.left_out)
    if not parts:
        return None
    sequence = np.argsort(np.concatenate(order), kind='stable')
    at, reception, values = (np.concatenate(x)[sequence] for x in (times, receptions, parts))
    return (at if stamped else np.zeros_like(at)), reception, values


def _values(
    bag: Bag,
    layout: Layout,
    payloads: np.ndarray,
    topic: str,
    field: str,
    joints: Sequence[str],
) -> np.ndarray:
    """Return the numbers of messages of one layout, (M, n)."""
    values = np.full((len(payloads), len(joints)), np.nan)
    if 'interface_values.0.interface_names' in layout.texts:
        names = layout.texts['joint_names']
        for j, joint in enumerate(joints):
            if joint in names:
                column = _interface(layout, payloads, names.index(joint), field)
                values[:, j] = np.nan if column is None else column
        if field and np.isnan(values).all():
            offered = {
                n
                for key, texts in layout.texts.items()
                if key.startswith('interface_values')
                for n in texts
            }
            raise UnknownNameError(f'interface of {topic}', field, tuple(sorted(offered)))
        return values
    found = _array(layout, payloads, topic, field)
    names = next((layout.texts[key] for key in NAMES if key in layout.texts), ())
    if len(names) != found.shape[1]:
        names = _order(bag, joints, found.shape[1], topic)
    for j, joint in enumerate(joints):
        if joint in names:
            values[:, j] = found[:, names.index(joint)]
    return values


def _interface(layout: Layout, payloads: np.ndarray, k: int, field: str) -> np.ndarray | None:
    """Return one interface of joint number k, (M,)."""
    offered = layout.texts.get(f'interface_values.{k}.interface_names', ())
    for name in (field,) if field else INTERFACES:
        if name in offered:
            column = layout.column(payloads, f'interface_values.{k}.values')
            return np.asarray(column[:, offered.index(name)])
    return None


def _array(layout: Layout, payloads: np.ndarray, topic: str, field: str) -> np.ndarray:
    """Return the numbers of a field of plain messages, (M, any)."""
    numbers = {key: entry for key, entry in layout.numbers.items() if entry[1].kind == 'f'}
    part = _SLICE.match(field)
    path = part['field'] if part else field
    path = path or next((key for key in FIELDS if key in numbers), '')
    if not path and len(numbers) == 1:
        path = next(iter(numbers))
    if '*' in path:
        expression = re.compile(re.escape(path).replace(r'\*', r'\d+') + '$')
        found = [layout.column(payloads, key) for key in layout.numbers if expression.match(key)]
    else:
        found = [layout.column(payloads, path)] if path in layout.numbers else []
    if not found:
        raise UnknownNameError(f'field of {topic}', path or '(none given)', tuple(numbers))
    values = np.concatenate(found, axis=1).astype(float)
    if part is None:
        return values
    start, stop = (int(part[key]) if part[key] else None for key in ('start', 'stop'))
    return values[:, start:stop]


def _order(bag: Bag, joints: Sequence[str], count: int, topic: str) -> tuple[str, ...]:
    """Names of the joints for numbers without names: user's, description's, states'."""
    candidates = [bag.options.joints]
    if bag.options.urdf:
        names, followers = movable_joints(bag.options.urdf)
        candidates.append(tuple(name for name in names if name not in followers))
    for names in (*candidates, tuple(joints)):
        if len(names) == count:
            return names
    raise RecordingError(
        f'{topic} has {count} numbers for {len(joints)} joints: choose among them as in '
        f"'{topic}:data[0:{len(joints)}]'"
    )


def temperature_topics(bag: Bag) -> list[str]:
    """Topics that may hold temperatures of joints, by their type or their name."""
    kinds = {c.topic: c.msgtype for c in bag.connections if c.msgcount}
    return [
        topic
        for topic, kind in kinds.items()
        if kind in bag.typestore.fielddefs
        and (kind in (TEMPERATURE, DYNAMIC_STATE) or says_temperature(topic))
    ]


def read_temperatures(bag: Bag, joints: Sequence[str], received: np.ndarray) -> np.ndarray | None:
    """
    Read the temperatures of joints, interpolated onto joint states by the times of reception.

    Parameters
    ----------
    bag : where from: sensor_msgs/Temperature with the joint in `frame_id` or the topic's name,
        an interface `temperature` of a DynamicJointState, or numbers of the joints, with their
        names or in their order, on a topic whose name says temperature
    joints : names of the columns, in the order of the joint states
    received : (N,) of the joint states [ns]

    Returns
    -------
    (N, n) [°C], NaN of a joint without, or None where no joint has any

    """
    found = np.full((len(received), len(joints)), np.nan)
    for topic in temperature_topics(bag):
        for field, named in _sources(bag, topic, joints):
            with contextlib.suppress(RobotIdError):  # numbers of something else
                numbers = read_numbers(bag, topic, field, named, received)
                for joint, column in zip(named, numbers[2].T if numbers else (), strict=False):
                    known, own = np.isfinite(column), found[:, joints.index(joint)]
                    if numbers and known.any() and np.isnan(own).all():
                        at = numbers[1][known] - received[0]
                        own[:] = np.interp(received - received[0], at, column[known])
    return None if np.isnan(found).all() else found


def says_temperature(topic: str) -> bool:
    """Tell whether a name says that its numbers are temperatures."""
    return bool(TEMPERATURES & set(re.findall('[a-z]+', topic.lower())))


def _sources(bag: Bag, topic: str, joints: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the field of a topic that holds temperatures, and of which joints."""
    decoder = Decoder(bag.typestore, next(c.msgtype for c in bag.connections if c.topic == topic))
    first = [data for _, data in itertools.islice(bag.messages(topic), 1)]
    for number, payloads, _ in decoder.groups(first):
        layout = decoder.layouts[number]
        if decoder.message_type == TEMPERATURE:
            parts = (*layout.texts.get('header.frame_id', ()), *topic.split('/'))
            if own := [part for part in parts if part in joints][:1]:
                yield 'temperature', own
        elif decoder.message_type == DYNAMIC_STATE:
            offered = {name for names in layout.texts.values() for name in names}
            yield from ((name, joints) for name in WARMTH if name in offered)
        elif field := _field(layout, payloads):
            yield field, joints


def _field(layout: Layout, payloads: np.ndarray) -> str:
    """Return the first array of numbers that says temperature, else the first that holds any."""
    fields = [key for key, (_, kind, _) in layout.numbers.items() if kind.kind == 'f']
    held = [key for key in fields if np.isfinite(layout.column(payloads, key)).any()]
    return next((key for key in held if says_temperature(key)), next(iter(held), ''))
