"""Joint states as arrays, by joint name; no ROS in here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import Array
from ...exceptions import RobotStateError


@dataclass(frozen=True)
class JointStateArrays:
    """
    Joint states by name: rows are messages, columns joints; what a message lacks is NaN.

    Parameters
    ----------
    stamp : (N,) [ns]
    position, velocity, effort : (N, n)

    """

    stamp: NDArray[np.int64]
    position: Array
    velocity: Array
    effort: Array


def is_well_formed(message: Any) -> bool:
    """Whether a sensor_msgs/JointState names each joint once, with one value or none of a kind."""
    count = len(message.name)
    lengths = (len(message.position), len(message.velocity), len(message.effort))
    return len(set(message.name)) == count and all(n in (0, count) for n in lengths)


def stack_joint_states(messages: Sequence[Any], joints: Sequence[str]) -> JointStateArrays:
    """Pick `joints` out of sensor_msgs/JointState messages that have all of them."""
    rows = [m for m in messages if set(joints) <= set(m.name)]
    stamp = stamps_to_nanoseconds(rows)
    arrays = {}
    for field in ('position', 'velocity', 'effort'):
        arrays[field] = np.full((len(rows), len(joints)), np.nan)
    for row, message in enumerate(rows):
        index = [message.name.index(joint) for joint in joints]
        for field, target in arrays.items():
            values = getattr(message, field)
            if len(values) == len(message.name):
                target[row] = np.asarray(values)[index]
    return JointStateArrays(stamp, **arrays)


def stamps_to_nanoseconds(messages: Sequence[Any]) -> NDArray[np.int64]:
    """Return the stamps of messages, (N,) [ns]."""
    stamps = [m.header.stamp for m in messages]
    return np.array([s.sec * 10**9 + s.nanosec for s in stamps], np.int64)


def is_well_formed_state(message: Any, joints: Sequence[str]) -> bool:
    """Whether a controller's state names each of its joints once, with reference and error."""
    names = message.joint_names
    lengths = (len(set(names)), len(message.reference.positions), len(message.error.positions))
    return set(joints) <= set(names) and all(n == len(names) for n in lengths)


def reference_positions(message: Any, joints: Sequence[str]) -> Array:
    """
    Read the reference positions (n,) of a controller's state, in the order of `joints`.

    Raises
    ------
    RobotStateError : a joint is missing, or its reference is not a number

    """
    names, positions = message.joint_names, message.reference.positions
    if not set(joints) <= set(names) or len(positions) != len(names):
        raise RobotStateError('the controller publishes no reference of every joint: activate it')
    reference = np.array([positions[names.index(joint)] for joint in joints])
    if not np.isfinite(reference).all():
        raise RobotStateError("the controller's reference is not a number: activate it again")
    return reference
