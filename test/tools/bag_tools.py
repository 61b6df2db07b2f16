"""Recordings made to measure for the tests."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import get_typestore, Stores

from robotid_ros.files.bags.mcap_writer import BagWriter
from robotid_ros.files.bags.messages import definition
from robotid_ros.files.formats.joint_table import JointTable

STORE = get_typestore(Stores.ROS2_JAZZY)
JOINT_STATE = 'sensor_msgs/msg/JointState'
EPOCH = 1_700_000_000_000_000_000
STEP = 2_000_000


def header(stamp: int, frame: str = '') -> Any:
    time = STORE.types['builtin_interfaces/msg/Time'](stamp // 10**9, stamp % 10**9)
    return STORE.types['std_msgs/msg/Header'](stamp=time, frame_id=frame)


def joint_state(
    stamp: int,
    joints: Sequence[str],
    position: Sequence[float],
    velocity: Sequence[float] = (),
    effort: Sequence[float] = (),
    frame: str = '',
) -> bytes:
    """Serialize one sensor_msgs/JointState."""
    arrays = (np.ascontiguousarray(a, float) for a in (position, velocity, effort))
    message = STORE.types[JOINT_STATE](header(stamp, frame), list(joints), *arrays)
    return bytes(STORE.serialize_cdr(message, JOINT_STATE))


def motion(count: int, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw position, velocity and effort, (count, n) each."""
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=(count, n)) for _ in range(3))


def states(count: int, joints: Sequence[str] = ('a', 'b'), seed: int = 0) -> list[bytes]:
    """Serialize joint states of a random motion at 500 Hz."""
    rows = zip(*motion(count, len(joints), seed), strict=True)
    return [joint_state(EPOCH + k * STEP, joints, *row) for k, row in enumerate(rows)]


def write_mcap(
    folder: Path, messages: Iterable[bytes], name: str = 'bag', topic: str = '/joint_states'
) -> Path:
    """Write joint states by our own writer."""
    with BagWriter(folder, name) as writer:
        writer.add_topic(topic, JOINT_STATE)
        for k, data in enumerate(messages):
            writer.write(topic, data, EPOCH + k * STEP)
    return writer.path


def write_table(folder: Path, table: JointTable, urdf: str = '', name: str = 'bag') -> Path:
    """Write a table of joint states by our own writer, with a robot description."""
    columns = (table.position, table.velocity, table.effort)
    columns = [x if np.isfinite(x).any() else x[:, :0] for x in columns]
    with BagWriter(folder, name) as writer:
        writer.add_topic('/joint_states', JOINT_STATE)
        if urdf:
            writer.write_text('/robot_description', urdf, int(table.received[0]))
        times = zip(table.stamp.tolist(), table.received.tolist(), strict=True)
        for (stamp, received), *rows in zip(times, *columns, strict=True):
            writer.write('/joint_states', joint_state(stamp, table.joints, *rows), received)
    return writer.path


def write_sqlite(folder: Path, messages: Iterable[bytes], name: str = 'bag') -> Path:
    """Write joint states as SQLite, by rosbags."""
    path = folder / name
    with Writer(path, version=9, storage_plugin=StoragePlugin.SQLITE3) as writer:
        connection = writer.add_connection('/joint_states', JOINT_STATE, typestore=STORE)
        for k, data in enumerate(messages):
            writer.write(connection, EPOCH + k * STEP, data)
    return path


def controller_state(
    stamp: int, joints: Sequence[str], q: Any, dq: Any, ddq: Any, effort: Any, measured: Any = ()
) -> bytes:
    """Serialize one control_msgs/JointTrajectoryControllerState, positions that it measures."""
    name = 'control_msgs/msg/JointTrajectoryControllerState'
    store = control_store()
    point = store.types['trajectory_msgs/msg/JointTrajectoryPoint']
    multi = store.types['trajectory_msgs/msg/MultiDOFJointTrajectoryPoint']
    zero = store.types['builtin_interfaces/msg/Duration'](0, 0)
    none = np.zeros(0)
    kinds = {
        'header': header(stamp),
        'joint_names': list(joints),
        'reference': point(*(np.asarray(a, float) for a in (q, dq, ddq)), none, zero),
        'feedback': point(np.asarray(measured, float), none, none, none, zero),
        'output': point(none, none, none, np.asarray(effort, float), zero),
    }
    for field, description in store.fielddefs[name][1]:
        if field in kinds:
            continue
        if description[1] == 'trajectory_msgs/msg/MultiDOFJointTrajectoryPoint':
            kinds[field] = multi([], [], [], zero)
        elif description[1] == 'trajectory_msgs/msg/JointTrajectoryPoint':
            kinds[field] = point(none, none, none, none, zero)
        else:
            kinds[field] = [] if field.endswith('names') else 0.0
    return bytes(store.serialize_cdr(store.types[name](**kinds), name))


@lru_cache
def control_store() -> Any:
    """Typestore that knows control_msgs from the installed package."""
    from rosbags.typesys import get_types_from_msg

    store = get_typestore(Stores.ROS2_JAZZY)
    name = 'control_msgs/msg/JointTrajectoryControllerState'
    types = get_types_from_msg(definition(name)[0], name)
    store.register({k: v for k, v in types.items() if k not in store.fielddefs})
    return store


def status(values: dict[str, str]) -> bytes:
    """Serialize one diagnostic_msgs/DiagnosticStatus of the excitation."""
    pair = STORE.types['diagnostic_msgs/msg/KeyValue']
    name = 'diagnostic_msgs/msg/DiagnosticStatus'
    items = [pair(key, value) for key, value in values.items()]
    message = STORE.types[name](0, 'excitation', '', '', items)
    return bytes(STORE.serialize_cdr(message, name))
