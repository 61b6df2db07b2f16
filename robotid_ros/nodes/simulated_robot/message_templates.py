"""Messages of a fixed layout, serialised once and patched: a thousand a second cost little."""

from collections.abc import Mapping, Sequence
import itertools
import struct
from typing import Any

from control_msgs.msg import JointTrajectoryControllerState
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectoryPoint

from ...plant.controller_types import ControllerState

# Found again in the serialised template; no name holds these bytes.
_MARK = 0x5A_11_77_00
# Field of a trajectory point by interface.
_OUTPUTS = {'effort': 'effort', 'velocity': 'velocities', 'position': 'positions'}


class MessageTemplate:
    """
    A serialised message whose numbers can be replaced.

    Parameters
    ----------
    message : with every array at its final length
    arrays : paths such as 'reference.positions', arrays of float64 or one such number
    times : paths of stamps and durations; the message's last field is among these or `arrays`

    """

    def __init__(self, message: Any, arrays: Sequence[str], times: Sequence[str]):
        marks: list[tuple[str, str, list[Any]]] = []
        numbers = (1e200 + 1e190 * k for k in itertools.count())
        for path in arrays:
            owner, name = _owner(message, path)
            old = getattr(owner, name)
            values = [next(numbers) for _ in ([old] if isinstance(old, float) else old)]
            setattr(owner, name, values[0] if isinstance(old, float) else values)
            marks.append((path, f'<{len(values)}d', values))
        for index, path in enumerate(times):
            owner, name = _owner(message, path)
            stamp = getattr(owner, name)
            stamp.sec, stamp.nanosec = _MARK + 2 * index, _MARK + 2 * index + 1
            marks.append((path, '<iI', [stamp.sec, stamp.nanosec]))
        self._buffer = bytearray(serialize_message(message))
        self._fields = {path: self._locate(layout, values) for path, layout, values in marks}
        # ROS 2 reserves more than messages with empty arrays take, and sends what was there.
        del self._buffer[max(offset + layout.size for layout, offset in self._fields.values()) :]

    def fill(self, arrays: Mapping[str, Sequence[float]], times: Mapping[str, int]) -> bytes:
        """Serialise the message with these arrays and times [ns]."""
        buffer = self._buffer
        for path, values in arrays.items():
            layout, offset = self._fields[path]
            layout.pack_into(buffer, offset, *values)
        for path, time in times.items():
            layout, offset = self._fields[path]
            layout.pack_into(buffer, offset, *divmod(time, 10**9))
        return bytes(buffer)

    def _locate(self, layout: str, values: list[Any]) -> tuple[struct.Struct, int]:
        form = struct.Struct(layout)
        offset = self._buffer.find(form.pack(*values))
        assert offset >= 0, 'a message is serialised in another byte order'
        return form, offset


class JointStateTemplate:
    """
    `sensor_msgs/JointState` in alphabetical order, as joint_state_broadcaster sends it.

    `joints` are names in the order in which values come.
    """

    ARRAYS = ('position', 'velocity', 'effort')

    def __init__(self, joints: Sequence[str]):
        self._order = sorted(range(len(joints)), key=lambda index: joints[index])
        zeros = [0.0] * len(joints)
        message = JointState(name=sorted(joints), position=zeros, velocity=zeros, effort=zeros)
        self._template = MessageTemplate(message, self.ARRAYS, ('header.stamp',))

    def fill(
        self, stamp: int, q: Sequence[float], dq: Sequence[float], tau: Sequence[float]
    ) -> bytes:
        """Serialise the message; stamp in ns."""
        values = zip(self.ARRAYS, (q, dq, tau), strict=True)
        arrays = {name: [x[i] for i in self._order] for name, x in values}
        return self._template.fill(arrays, {'header.stamp': stamp})


class ControllerStateTemplate:
    """
    `control_msgs/JointTrajectoryControllerState` of joints in the controller's order.

    It commands the interface 'effort', 'velocity' or 'position'.
    """

    ARRAYS = (
        'reference.positions', 'reference.velocities', 'reference.accelerations',
        'feedback.positions', 'feedback.velocities',
        'error.positions', 'error.velocities', 'speed_scaling_factor',
    )  # fmt: skip
    TIMES = ('header.stamp', 'reference.time_from_start', 'feedback.time_from_start')

    def __init__(self, joints: Sequence[str], interface: str = 'effort'):
        zeros = [0.0] * len(joints)
        message = JointTrajectoryControllerState(joint_names=list(joints))
        message.reference = JointTrajectoryPoint(
            positions=zeros, velocities=zeros, accelerations=zeros
        )
        message.feedback = JointTrajectoryPoint(positions=zeros, velocities=zeros)
        message.error = JointTrajectoryPoint(positions=zeros, velocities=zeros)
        output = _OUTPUTS[interface]
        message.output = JointTrajectoryPoint(**{output: zeros})
        self._arrays = (*self.ARRAYS, f'output.{output}')
        self._template = MessageTemplate(message, self._arrays, self.TIMES)

    def fill(self, stamp: int, state: ControllerState) -> bytes:
        """Serialise the message; stamp in ns."""
        desired, current = state.desired, state.current
        values = (
            desired.positions, desired.velocities, desired.accelerations,
            current.positions, current.velocities,
            state.error, state.error_velocity, (state.speed_scaling,), state.output,
        )  # fmt: skip
        times = (stamp, desired.time, current.time)
        return self._template.fill(
            dict(zip(self._arrays, values, strict=True)), dict(zip(self.TIMES, times, strict=True))
        )


def _owner(message: Any, path: str) -> tuple[Any, str]:
    *owners, name = path.split('.')
    for owner in owners:
        message = getattr(message, owner)
    return message, name
