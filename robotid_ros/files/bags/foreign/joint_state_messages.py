"""Joint states as serialized messages, thousands at once."""

from collections.abc import Iterator, Sequence
import struct

import numpy as np

# Rows that are serialized together: some megabytes.
_BATCH = 8192


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
    prefix, starts = _layout(joints, counts)
    for first in range(0, len(stamp), _BATCH):
        rows = slice(first, first + _BATCH)
        size = len(stamp[rows])
        matrix = np.tile(np.frombuffer(prefix, np.uint8), (size, 1))
        matrix[:, 4:8] = (stamp[rows] // 10**9).astype('<i4').view(np.uint8).reshape(size, 4)
        matrix[:, 8:12] = (stamp[rows] % 10**9).astype('<u4').view(np.uint8).reshape(size, 4)
        for values, start, count in zip(fields, starts, counts, strict=True):
            if count:
                block = np.ascontiguousarray(values[rows], '<f8').view(np.uint8)
                matrix[:, start : start + 8 * count] = block
        data, length = matrix.tobytes(), matrix.shape[1]
        yield from (data[k : k + length] for k in range(0, len(data), length))


def serialize_temperature(joint: str, stamp: int, value: float) -> bytes:
    """Return a sensor_msgs/Temperature [°C] with a joint in its frame_id, at a time [ns]."""
    data = bytearray(b'\0\1\0\0' + struct.pack('<iI', *divmod(stamp, 10**9)))
    _append_text(data, joint)
    return bytes(data + bytes(-(len(data) - 4) % 8) + struct.pack('<dd', value, 0.0))


def _layout(joints: Sequence[str], counts: Sequence[int]) -> tuple[bytes, list[int]]:
    """Return a message without its numbers, and where those of each field begin."""
    data = bytearray(b'\0\1\0\0' + bytes(8))
    _append_text(data, '')
    _append_length(data, len(joints))
    for joint in joints:
        _append_text(data, joint)
    starts = []
    for count in counts:
        _append_length(data, count)
        if count:
            data += bytes(-(len(data) - 4) % 8)
        starts.append(len(data))
        data += bytes(8 * count)
    return bytes(data), starts


def _append_length(data: bytearray, count: int) -> None:
    data += bytes(-(len(data) - 4) % 4) + struct.pack('<I', count)


def _append_text(data: bytearray, text: str) -> None:
    encoded = text.encode() + b'\0'
    _append_length(data, len(encoded))
    data += encoded
