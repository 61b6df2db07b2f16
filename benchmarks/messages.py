"""ROS messages without ROS: what the logs of real robots are turned into."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from rosbags.typesys import get_types_from_msg, get_typestore, Stores

from robotid_ros.files.bags.messages import CONTROLLER_STATE, definition, JOINT_STATE, STATUS

__all__ = [
    'CONTROLLER_STATE',
    'JOINT_STATE',
    'STATUS',
    'controller_state',
    'joint_state',
    'status',
]


@cache
def store() -> Any:
    """Return the message types, control_msgs included."""
    types = get_typestore(Stores.ROS2_JAZZY)
    found = get_types_from_msg(definition(CONTROLLER_STATE)[0], CONTROLLER_STATE)
    types.register({k: v for k, v in found.items() if k not in types.fielddefs})
    return types


def header(stamp: int) -> Any:
    """Return a std_msgs/Header; `stamp` in ns."""
    time = store().types['builtin_interfaces/msg/Time'](stamp // 10**9, stamp % 10**9)
    return store().types['std_msgs/msg/Header'](stamp=time, frame_id='')


def joint_state(
    stamp: int, joints: Sequence[str], position: np.ndarray, effort: np.ndarray
) -> bytes:
    """Serialize a sensor_msgs/JointState without velocity."""
    message = store().types[JOINT_STATE](
        header(stamp), list(joints), position, np.zeros(0), effort
    )
    return bytes(store().serialize_cdr(message, JOINT_STATE))


def controller_state(
    stamp: int,
    joints: Sequence[str],
    q: np.ndarray,
    dq: np.ndarray,
    ddq: np.ndarray,
    effort: np.ndarray,
) -> bytes:
    """Serialize a control_msgs/JointTrajectoryControllerState: the reference and the output."""
    types = store().types
    zero = types['builtin_interfaces/msg/Duration'](0, 0)
    none = np.zeros(0)
    empty = types['trajectory_msgs/msg/JointTrajectoryPoint'](none, none, none, none, zero)
    blank = types['trajectory_msgs/msg/MultiDOFJointTrajectoryPoint']([], [], [], zero)
    point = type(empty)
    values = {
        'header': header(stamp),
        'joint_names': list(joints),
        'reference': point(q, dq, ddq, none, zero),
        'output': point(none, none, none, effort, zero),
    }
    for field, (_, detail) in store().fielddefs[CONTROLLER_STATE][1]:
        if field not in values:
            other = [] if field.endswith('names') else 0.0
            by_type = {point.__msgtype__: empty, type(blank).__msgtype__: blank}
            values[field] = by_type.get(detail, other) if isinstance(detail, str) else other
    message = types[CONTROLLER_STATE](**values)
    return bytes(store().serialize_cdr(message, CONTROLLER_STATE))


def status(name: str, values: Mapping[str, str]) -> bytes:
    """Serialize a diagnostic_msgs/DiagnosticStatus."""
    pair = store().types['diagnostic_msgs/msg/KeyValue']
    items = [pair(key, value) for key, value in values.items()]
    message = store().types[STATUS](0, name, '', '', items)
    return bytes(store().serialize_cdr(message, STATUS))
