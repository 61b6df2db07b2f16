"""What robot and controller said during a motion: kept as it came, and read afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from ...core.arrays import Array
from ...core.signals.recording import Recording
from ...core.timing.update_rate import observed_update_rate
from ...core.verification.tracking import Tracking
from ...exceptions import RobotStateError
from ...files.formats.joint_table import JointTable
from ..common.controller import by_joint, is_well_formed_state, STATE_TYPE
from ..common.messages import is_well_formed, stack_joint_states, stamps_to_nanoseconds

# States of a motion that must be there: lost ones are no reason to doubt a root mean square.
LEAST_STATES = 50


@dataclass(frozen=True)
class MotionLog:
    """
    Serialised messages, and the stamps between which they count, on the robot's clock [ns].

    To read those of a motion takes seconds, in which the robot has to be watched: that is for a
    process of its own.
    """

    joints: tuple[str, ...]
    states: list[bytes]
    joint_states: list[bytes]
    start: int = 0
    stop: int = 1 << 62

    def tracking(self) -> Tracking:
        """
        Return the controller's errors.

        Raises
        ------
        RobotStateError : there are next to none

        """
        stamp = stamps_to_nanoseconds(self._states)
        rows = np.flatnonzero((stamp >= self.start) & (stamp <= self.stop))
        if len(rows) < LEAST_STATES:
            raise RobotStateError(
                f'only {len(rows)} states of the controller are there of a whole motion: give '
                'this machine less to do'
            )
        states = [self._states[row] for row in rows]
        error = np.array([by_joint(m, m.error.positions, self.joints) for m in states], float)
        return Tracking(self.joints, _seconds(stamp[rows] - self.start), error)

    def recording(self) -> Recording:
        """Return positions and efforts, see `_samples`."""
        stamp, position, effort = self._samples()
        rows = (stamp >= self.start) & (stamp <= self.stop)
        time = _seconds(stamp[rows] - self.start)
        return Recording(self.joints, time, position[rows], effort[rows], source='the robot')

    def means(self) -> tuple[Array, Array]:
        """Return the mean position and effort (n,), as published."""
        _, position, effort = self._samples()
        if not len(position) or not np.isfinite(effort).all():
            raise RobotStateError('no efforts at rest: is the driver running?')
        return position.mean(axis=0), effort.mean(axis=0)

    def update_rate(self, nominal: float) -> float:
        """
        Return how often the controller updates, which its parameter need not say [Hz].

        Raises
        ------
        RobotStateError : neither parameter nor states say it

        """
        steps = np.diff(_seconds(self._measured.stamp))
        rate = 1.0 / float(np.median(steps)) if len(steps) and np.median(steps) > 0.0 else 0.0
        stamp = stamps_to_nanoseconds(self._states)
        found = observed_update_rate(nominal, _seconds(stamp - stamp[:1]), rate)
        if not found:
            raise RobotStateError("the controller's states do not show how often it updates")
        return found

    @cached_property
    def _states(self) -> list[Any]:
        states = _decode(self.states, STATE_TYPE)
        return [m for m in states if is_well_formed_state(m, self.joints)]

    @cached_property
    def _measured(self) -> JointTable:
        joint_states = _decode(self.joint_states, JointState)
        return stack_joint_states(list(filter(is_well_formed, joint_states)), self.joints)

    def _samples(self) -> tuple[NDArray[np.int64], Array, Array]:
        """Stamps, positions, efforts: commanded ones where joint states hold none."""
        measured = self._measured
        if np.nan_to_num(measured.effort).any():
            return measured.stamp, measured.position, measured.effort
        rows = []
        for message in self._states:
            position = by_joint(message, message.feedback.positions, self.joints)
            effort = by_joint(message, message.output.effort, self.joints)
            if position is not None and effort is not None:
                rows.append((message, position, effort))
        if not rows:
            return measured.stamp, measured.position, measured.effort
        messages, positions, efforts = zip(*rows, strict=True)
        return stamps_to_nanoseconds(messages), np.array(positions), np.array(efforts)


def _decode(messages: Sequence[bytes], message_type: type) -> list[Any]:
    decoded = []
    for data in messages:
        try:
            decoded.append(deserialize_message(data, message_type))
        except Exception:  # the middleware raises whatever the bytes lead to
            continue
    return decoded


def _seconds(nanoseconds: NDArray[np.int64]) -> Array:
    return np.asarray(nanoseconds * 1e-9, np.float64)
