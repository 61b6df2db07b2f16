"""Efforts that come on a topic of their own."""

from collections.abc import Callable, Sequence
import re

import numpy as np

from ....core.model.urdf_parsing import movable_joints
from ....exceptions import RecordingError, UnknownNameError
from .controller_states import MARGIN
from .message_decoding import Decoder, Layout, stamps
from .storage import Bag

DYNAMIC_STATE = 'control_msgs/msg/DynamicJointState'
# Interfaces and fields that hold efforts, the best first.
INTERFACES = ('effort', 'torque', 'current')
FIELDS = ('effort', 'efforts', 'torque', 'torques', 'tau', 'current', 'currents', 'data')
NAMES = ('name', 'names', 'joint_names', 'joint_name')
# Usual intervals between two messages beyond which nothing is interpolated.
MAX_SPACING = 4.5
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
    decoder = Decoder(bag.typestore, kinds[topic])
    window = int(received.min()) - MARGIN, int(received.max()) + MARGIN
    order: list[np.ndarray] = []
    times: list[np.ndarray] = []
    parts: list[np.ndarray] = []
    count, stamped = 0, True
    for batch in bag.blocks(topic, *window):
        reception = batch.received.astype(np.int64)
        for number, payloads, rows in decoder.groups(batch):
            layout = decoder.layouts[number]
            stamped &= 'header.stamp.sec' in layout.numbers
            times.append(stamps(layout, payloads) if stamped else reception[rows])
            parts.append(_values(bag, layout, payloads, topic, field, joints))
            order.append(rows + count)
        count += batch.total
        bag.add_left_out(topic, decoder.left_out)
    if not parts:
        return np.full((len(stamp), len(joints)), np.nan)
    sequence = np.argsort(np.concatenate(order), kind='stable')
    at, first = np.unique(np.concatenate(times)[sequence], return_index=True)
    near, interpolate = interpolator(stamp if stamped and at.any() else received, at, MAX_SPACING)
    values = np.concatenate(parts)[sequence][first]
    return np.column_stack([np.where(near, interpolate(v), np.nan) for v in values.T])


def interpolator(
    wanted: np.ndarray, stamp: np.ndarray, spacing: float
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """
    Return where stamps (N,) lie between others, and how to interpolate values (M,) there.

    Not where the others are more than `spacing` of their usual intervals apart.
    """
    if len(stamp) < 2:
        return np.zeros(len(wanted), dtype=bool), lambda v: np.full(len(wanted), np.nan)
    after = np.clip(np.searchsorted(stamp, wanted), 1, len(stamp) - 1)
    width = stamp[after] - stamp[after - 1]
    usual = float(np.median(np.diff(stamp)))
    # At the ends half a sample is not worth a hole.
    inside = (wanted >= stamp[0] - 0.5 * usual) & (wanted <= stamp[-1] + 0.5 * usual)
    return inside & (width <= spacing * usual), lambda v: np.interp(
        wanted - stamp[0], stamp - stamp[0], v
    )


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
