"""Joint states as serialized messages, thousands at once: one by rosbags, patched for each row."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rosbags.typesys import get_typestore, Stores

from .messages import Decoder, JOINT_STATE, TEMPERATURE

# Rows that are serialized together: some megabytes.
_BATCH = 8192
_FIELDS = ('position', 'velocity', 'effort')
_STORE = get_typestore(Stores.ROS2_JAZZY)


def serialize_joint_states(
    joints: Sequence[str], stamp: np.ndarray, fields: Sequence[np.ndarray]
) -> Iterator[bytes]:
    """
    Yield one sensor_msgs/JointState (CDR, little endian) per row.

    Parameters
    ----------
    joints : n names
    stamp : (N,) [ns]
    fields : position, velocity, effort, (N, n) each; left empty where nothing in it is finite

    """
    counts = [len(joints) if np.isfinite(values).any() else 0 for values in fields]
    sample = _serialize(JOINT_STATE, 0, '', list(joints), *map(np.zeros, counts))
    decoder = Decoder(_STORE, JOINT_STATE)
    next(decoder.groups([sample]))
    places = decoder.layouts[0].numbers
    seconds, nanoseconds = np.divmod(stamp, 10**9)
    columns = {'header.stamp.sec': seconds[:, None], 'header.stamp.nanosec': nanoseconds[:, None]}
    columns |= dict(zip(_FIELDS, fields, strict=True))
    for first in range(0, len(stamp), _BATCH):
        size = len(stamp[first : first + _BATCH])
        matrix = np.tile(np.frombuffer(sample, np.uint8), (size, 1))
        for name, (start, dtype, count) in places.items():
            block = np.ascontiguousarray(columns[name][first : first + size], dtype).view(np.uint8)
            matrix[:, start : start + dtype.itemsize * count] = block
        data, length = matrix.tobytes(), matrix.shape[1]
        yield from (data[k : k + length] for k in range(0, len(data), length))


def serialize_temperature(joint: str, stamp: int, value: float) -> bytes:
    """Return a sensor_msgs/Temperature [°C] with a joint in its frame_id, at a time [ns]."""
    return _serialize(TEMPERATURE, stamp, joint, value, 0.0)


def _serialize(kind: str, stamp: int, frame: str, *values: Any) -> bytes:
    types = _STORE.types
    time = types['builtin_interfaces/msg/Time'](*divmod(stamp, 10**9))
    message = types[kind](types['std_msgs/msg/Header'](time, frame), *values)
    return bytes(_STORE.serialize_cdr(message, kind))
