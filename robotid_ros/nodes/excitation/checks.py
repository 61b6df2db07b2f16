"""What must hold while a robot moves, checked on the latest messages; no ROS in here."""

from collections.abc import Sequence
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....core.arrays import Array
from ....core.model.missing_joints import MAX_LOCKED_TRAVEL
from ....core.model.robot import Robot
from ....exceptions import ConfigurationError, RobotStateError, SilentRobotError, TrackingError
from ....node_settings import ExcitationNodeSettings
from ...common.joint_states import JointStateArrays, stamps_to_nanoseconds
from .silence import Silence
from .speed_scaling import SpeedScaling

# A joint cannot move this far at bitwise constant effort [rad or m]: noise and friction change the
# last digits. Less would take a joint that is held at rest for one that moves.
CONSTANT_EFFORT_TRAVEL = 0.02
# The controller's reference rests where it is sent to, up to rounding [rad or m].
AT_END = 1e-6
# joint_trajectory_controller leaves its commands out for good once one of them was not a number.
NO_COMMANDS = (
    'after one that was not a number it does not before it is cleaned up, configured and activated'
)
# Fields of trajectory_msgs/JointTrajectoryPoint that mirror interfaces; accelerations are none.
_QUANTITIES = {'positions': 'position', 'velocities': 'velocity', 'effort': 'effort'}


def expand_per_joint(values: Sequence[float], joints: Sequence[str], name: str) -> Array:
    """
    Expand one value to all joints, or take one per joint.

    Raises
    ------
    ConfigurationError : neither

    """
    if len(values) not in (1, len(joints)):
        raise ConfigurationError(
            f"'excitation.{name}' has {len(values)} values: give one, or one per joint "
            f'({len(joints)})'
        )
    return np.broadcast_to(np.asarray(values, dtype=float), len(joints)).copy()


def describe_violation(
    states: Sequence[Any], joints: Sequence[str], tolerance: Sequence[float], end: Array | None
) -> str:
    """
    Say which joint left its tolerance, by states of the controller that has stopped a motion.

    On the way a controller stops at the first state beyond a tolerance, at the end with the last
    one whose reference is still there. From the next state on it holds what it measured: whoever
    brakes is away from that, whichever joint was the reason.

    Parameters
    ----------
    states : since the motion was sent, oldest first; some may be lost
    joints : in the order of the arrays
    tolerance : (n,) [rad or m]
    end : (n,) where the motion ends, if the violated tolerance is that of the end

    """

    def values(point: Any, state: Any) -> Array:
        index = [state.joint_names.index(joint) for joint in joints]
        return np.asarray(point.positions, dtype=float)[index]

    if end is not None:
        states = [
            s for s in states if np.abs(values(s.reference, s) - end).max(initial=0.0) <= AT_END
        ][-1:]
    if not states:
        return 'no state of the controller that arrived here shows which joint'
    shares = np.stack([np.abs(values(s.error, s)) for s in states]) / np.asarray(tolerance)
    largest = shares.max(axis=1)
    row = int(np.argmax(largest > 1.0)) if (largest > 1.0).any() else int(np.argmax(largest))
    k = int(np.argmax(shares[row]))
    seen = f'{joints[k]} was {shares[row, k] * tolerance[k]:.4g} away from its reference'
    if largest[row] > 1.0:
        return f'by the states that arrived here {seen}, more than {tolerance[k]:.4g}'
    return (
        f'no state that arrived here is beyond a tolerance, in the nearest one {seen} of '
        f"{tolerance[k]:.4g}: the controller's log names the joint"
    )


class Watchdog:
    """
    Stops the motion when the robot leaves what is safe.

    Parameters
    ----------
    robot : joints and limits
    settings : how far from them is too far
    now : time at which the watch begins [s, any monotonic clock]
    effort_reported : whether joint states hold efforts; else those that are commanded count

    """

    def __init__(
        self,
        robot: Robot,
        settings: ExcitationNodeSettings,
        now: float,
        *,
        effort_reported: bool = True,
    ):
        self._settings, self.joints = settings, robot.joints
        self._effort_reported = effort_reported
        # Whether an effort other than 0 was ever measured, and is commanded now.
        self._sensed = self._commands_effort = False
        self._beyond = expand_per_joint(
            settings.position_tolerance, robot.joints, 'position_tolerance'
        )
        self._lower, self._upper = robot.limits.lower, robot.limits.upper
        self._effort = settings.effort_share * robot.limits.effort / np.abs(robot.drive_gain)
        self._tracking = expand_per_joint(settings.tracking_error, robot.joints, 'tracking_error')
        self._speed = SpeedScaling(now)
        self._locked = robot.locked
        self._stamp = -1
        self._malformed = 0
        # What was a number once, by the name of the quantity: (n,).
        self._reported: dict[str, NDArray[np.bool_]] = {}
        self.begin(now)

    def begin(self, now: float) -> None:
        """Begin to watch a motion: what lasts for a while counts from now."""
        self._joints_silence, self._controller_silence = Silence(now), Silence(now)
        self._high_since = np.full(len(self.joints), np.nan)
        # Per joint: the effort, and stamp and position when it last changed.
        self._changed = np.full((3, len(self.joints)), np.nan)

    def check_joint_states(self, states: JointStateArrays, now: float, malformed: int = 0) -> None:
        """
        Check what the sensors say since the last call, which may be nothing.

        Parameters
        ----------
        states : that can be read
        now : time [s]
        malformed : messages that cannot

        Raises
        ------
        RobotStateError : which joint, what, how much

        """
        # A repeated stamp brings nothing new: it counts as silence.
        heard = bool(len(states.stamp)) and int(states.stamp[-1]) != self._stamp
        self._malformed = malformed + (0 if heard else self._malformed)
        if len(states.stamp):
            self._stamp = int(states.stamp[-1])
            self._check_finite('position', states.position)
            self._check_position(states.position)
            self._check_still_finite('velocity', states.velocity)
            self._sensed = self._sensed or bool(np.nan_to_num(states.effort).any())
            if self._commands_effort and not self._sensed:
                # A driver without sensors: at rest both may have been 0.
                self._effort_reported = False
            if self._effort_reported:
                self._check_finite('effort', states.effort)
                self._check_effort(states.stamp, states.effort)
                self._check_effort_changes(states)
        silence = self._joints_silence.update(now, heard=heard)
        if self._malformed and silence > self._settings.stale_after:
            raise RobotStateError(
                f'only malformed joint states for {silence:.2f} s, {self._malformed} of them, '
                'with a joint named twice or values missing: who publishes them?'
            )
        self._check_silence('joint states', silence)

    def check_locked(self, messages: Sequence[Any]) -> None:
        """
        Check that the joints that do not take part stand where the model has them.

        Parameters
        ----------
        messages : sensor_msgs/JointState, well formed; some of them need not name these joints

        Raises
        ------
        RobotStateError : which one, where it stands, and where it should

        """
        for message in messages if self._locked else ():
            for name, position in zip(message.name, message.position, strict=False):
                place = self._locked.get(name, position)
                # A wheel or a forearm that has turned by a whole turn stands where it stood.
                distance = position - place if math.isfinite(position) else 0.0
                if abs(math.remainder(distance, math.tau)) > MAX_LOCKED_TRAVEL:
                    raise RobotStateError(
                        f'{name} stands at {position:.3f}, where the motion was designed and '
                        f'checked for collisions it was at {place:.3f}: move it there, or set '
                        f'robot.locked.{name} and design again'
                    )

    def check_controller_state(self, message: Any | None, now: float) -> None:
        """
        Check the controller's last state, None when nothing has arrived since the last call.

        Raises
        ------
        RobotStateError : which joint, what, how much

        """
        if message is not None:
            index = [message.joint_names.index(joint) for joint in self.joints]
            error = np.asarray(message.error.positions, dtype=float)[index][None]
            self._check_finite('tracking error', error)
            self._check_tracking(error[0])
            self._speed.check(message, now)
            self._check_interfaces(message, index)
            self._check_commanded_effort(message, index)
        silence = self._controller_silence.update(now, heard=message is not None)
        self._check_silence("the controller's state", silence, 'is the controller active?')

    def _check_commanded_effort(self, message: Any, index: list[int]) -> None:
        effort = np.asarray(message.output.effort, dtype=float)
        if len(effort) != len(message.joint_names):
            if self._effort_reported:
                return
            raise RobotStateError(f'the controller publishes no commands any more: {NO_COMMANDS}')
        effort = effort[index][None]
        self._commands_effort = bool(effort.any())
        if not self._effort_reported:
            self._check_finite('commanded effort', effort)
            self._check_effort(stamps_to_nanoseconds([message]), effort)

    def _check_finite(self, what: str, values: Array) -> None:
        for joint, column in zip(self.joints, values.T, strict=True):
            if not np.isfinite(column).all():
                raise RobotStateError(f'{what} of {joint} is not a number: check its sensor')

    def _check_interfaces(self, message: Any, index: list[int]) -> None:
        """Check whatever the controller says, of interfaces that it has."""
        for part in ('reference', 'feedback', 'error', 'output'):
            for field, quantity in _QUANTITIES.items():
                values = np.asarray(getattr(getattr(message, part), field), dtype=float)
                if len(values) == len(message.joint_names):
                    self._check_still_finite(f"the controller's {part} {quantity}", values[index])

    def _check_still_finite(self, what: str, values: Array) -> None:
        """Check values (n,) or (N, n): what a robot never reports is no number throughout."""
        finite = np.isfinite(np.atleast_2d(values))
        reported = self._reported.setdefault(what, np.zeros(len(self.joints), bool))
        lost = reported & ~finite.all(axis=0)
        if lost.any():
            joint = self.joints[int(np.argmax(lost))]
            raise RobotStateError(f'{what} of {joint} is not a number any more: check its sensor')
        reported |= finite.any(axis=0)

    def _check_position(self, position: Array) -> None:
        beyond = np.maximum(self._lower - position, position - self._upper).max(axis=0)
        worst = int(np.argmax(beyond - self._beyond))
        if beyond[worst] > self._beyond[worst]:
            raise RobotStateError(
                f'position of {self.joints[worst]} is {beyond[worst]:.4g} beyond its limits '
                f'[{self._lower[worst]:.4g}, {self._upper[worst]:.4g}], more than the '
                f'{self._beyond[worst]:.4g} of excitation.position_tolerance: jog it back, or see '
                'that its limits are right'
            )

    def _check_effort(self, stamps: NDArray[np.int64], efforts: Array) -> None:
        """Tolerate short peaks: the effort must stay high for a while."""
        high = np.abs(efforts) >= self._effort
        for time, row, effort in zip(stamps * 1e-9, high, efforts, strict=True):
            self._high_since = np.where(row, np.fmin(self._high_since, time), np.nan)
            long = time - self._high_since >= self._settings.effort_time
            if long.any():
                k = int(np.argmax(long))
                raise RobotStateError(
                    f'effort of {self.joints[k]} is {effort[k]:.4g}, for '
                    f'{time - self._high_since[k]:.2f} s at or above {self._effort[k]:.4g}, '
                    f'{self._settings.effort_share:.0%} of its limit'
                )

    def _check_effort_changes(self, states: JointStateArrays) -> None:
        """Find a sensor that has failed: its joint moves on while its effort stays the same."""
        stamp, position, effort = states.stamp[-1] * 1e-9, states.position[-1], states.effort
        now = np.stack([effort[-1], np.full(len(self.joints), stamp), position])
        changed = (effort != self._changed[0]).any(axis=0)
        self._changed = np.where(changed, now, self._changed)
        silent = stamp - self._changed[1] > self._settings.stale_after
        failed = silent & (np.abs(position - self._changed[2]) > CONSTANT_EFFORT_TRAVEL)
        if failed.any():
            joint = self.joints[int(np.argmax(failed))]
            raise RobotStateError(f'effort of {joint} stays the same while it moves: check it')

    def _check_tracking(self, error: Array) -> None:
        worst = int(np.argmax(np.abs(error) / self._tracking))
        if abs(error[worst]) > self._tracking[worst]:
            raise TrackingError(
                f'{self.joints[worst]} is {abs(error[worst]):.4g} away from its reference, more '
                f'than {self._tracking[worst]:.4g}'
            )

    def _check_silence(
        self, what: str, silence: float, hint: str = 'is the driver running?'
    ) -> None:
        if silence > self._settings.stale_after:
            text = f'{what} stopped {silence:.2f} s ago: {hint}'
            raise SilentRobotError(text, self.joints)
