"""
What stops the robot: the watchdog of joint states and controller states, joint by joint.

Where one of its checks raises, the supervisor of a session cancels the motion, and hand guiding
gives the arm back to the trajectory controller. `nodes/excitation/checks.py` has a table of
everything that a session watches.
"""

from collections.abc import Sequence
import itertools
import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.arrays import any_effort, Array, expand_per_joint
from ...core.model.robot import Robot
from ...core.setup.joint_choice import MAX_LOCKED_TRAVEL
from ...exceptions import RobotStateError, SensorError, SilentRobotError, TrackingError
from ...files.formats.joint_table import JointTable
from ...node_settings import ExcitationNodeSettings
from . import controller as jtc
from .batched_subscription import BatchedSubscription
from .messages import is_well_formed, stack_joint_states, stamps_to_nanoseconds, to_nanoseconds
from .waiting import Silence

# A joint cannot move this far at bitwise constant effort [rad or m]: noise and friction change the
# last digits. Less would take a joint that is held at rest for one that moves.
CONSTANT_EFFORT_TRAVEL = 0.02
# A joint counts as frozen if its error exceeds this many times the largest so far, for this long
# [s], while its reference moves by this share of the tracking tolerance: it may stick at a turn.
TIMES_AS_BEFORE, FAILED_FOR, STICKING = 5.0, 0.1, 0.2
# For less where efforts are commanded: they grow with the error, and what a joint then travels
# with the fourth power of this time [s].
WOUND_UP = 0.05
STILL_FOR = 0.025  # for which the same position explains an error that stops the robot [s]
CHECK_POSITION = 'check its sensor, and whether the joint is free and has power'
LONG_CYCLE = 0.03  # from one state of the controller to the next: no loop is as slow as that [s]
# Steps of the controller's stamps that are of a clock that was set [s]: where simulated time is
# fast, a busy machine misses more than a second of it.
CLOCK_STEPS = -0.1, 3.0
AT_END = 1e-6  # the controller's reference rests where it is sent to, up to rounding [rad or m]
# Of a controller's state, and fields of them that mirror interfaces; accelerations are none.
_PARTS = ('reference', 'feedback', 'error', 'output')
_QUANTITIES = {'positions': 'position', 'velocities': 'velocity', 'effort': 'effort'}


class Watchdog:
    """
    Checks what robot and controller say of themselves, from a time on [s, any monotonic clock].

    The `settings` say how far from the robot's limits is too far. Where joint states hold no
    efforts, as far as is known, those that are commanded count: not `effort_reported`.
    """

    def __init__(
        self, robot: Robot, settings: ExcitationNodeSettings, now: float, *, effort_reported: bool
    ):
        self._settings, self.joints, self._locked = settings, robot.joints, robot.locked
        self.effort_reported = effort_reported
        # Whether an effort other than 0 was ever measured; is commanded now; nobody says what is.
        self._sensed, self._commands_effort, self._commands_unknown = False, False, True
        self._lower, self._upper = robot.limits.lower, robot.limits.upper
        self._beyond, self._tracking = (
            expand_per_joint(getattr(settings, name), len(robot.joints), f'excitation.{name}')
            for name in ('position_tolerance', 'tracking_error')
        )
        self._effort = settings.effort_share * robot.limits.effort / np.abs(robot.drive_gain)
        self._speed = jtc.SpeedScaling(now)
        self._frozen = FrozenWatch(robot.joints, STICKING * self._tracking)
        self._velocity = VelocityWatch(robot.joints, robot.limits.velocity)
        self._stamp, self._position = -1, np.full(len(robot.joints), np.nan)
        self._malformed = 0  # joint states since the last good one
        # What was a number once, by the name of the quantity: (n,).
        self._reported: dict[str, NDArray[np.bool_]] = {}
        self.begin(now)

    def begin(self, now: float) -> None:
        """Begin to watch a motion: what lasts for a while counts from now."""
        self._joints_silence, self._controller_silence = Silence(now), Silence(now)
        self._controller_stamp: int | None = None
        self._high_since = np.full(len(self.joints), np.nan)
        # Per joint: the effort, and stamp and position when it last changed.
        self._changed = np.full((3, len(self.joints)), np.nan)
        self._frozen.begin()

    def check_joint_states(self, states: JointTable, now: float, malformed: int = 0) -> None:
        """Check what sensors say since the last call, at a time [s]; others were `malformed`."""
        # A repeated stamp brings nothing new: it counts as silence.
        heard = bool(len(states.stamp)) and int(states.stamp[-1]) != self._stamp
        self._malformed = malformed + (0 if heard else self._malformed)
        if len(states.stamp):
            self._stamp, self._position = int(states.stamp[-1]), states.position[-1]
            self._check_numbers('position', states.position, SensorError)
            self._check_position(states.position)
            self._check_numbers('velocity', states.velocity)
            if self._commands_effort or self._commands_unknown:
                # Its gains make efforts of velocities.
                self._velocity.check(states)
            self._sensed = self._sensed or any_effort(states.effort)
            if self._commands_effort and not self._sensed:
                self.effort_reported = False  # a driver without sensors; at rest both were 0
            if self.effort_reported:
                self._check_numbers('effort', states.effort, RobotStateError)
                self._check_effort(states.stamp, states.effort)
                self._check_effort_changes(states)
        silence = self._joints_silence.update(now, heard=heard)
        if silence <= self._settings.stale_after:
            return
        if self._malformed:
            raise RobotStateError(
                f'only malformed joint states for {silence:.2f} s, {self._malformed} of them, '
                'with a joint named twice or values missing: who publishes them?'
            )
        if not self._stamp:
            raise RobotStateError('joint states have no stamps: let their publisher set them')
        text = f'joint states stopped {silence:.2f} s ago: is the driver running?'
        raise SilentRobotError(text, self.joints)

    def check_locked(self, messages: Sequence[Any]) -> None:
        """Check well-formed JointState: joints that do not take part stand as in the model."""
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
        """Check the controller's last state, None when nothing has arrived since the last call."""
        if message is not None:
            self._check_clock(message)
            self._check_tracking(message)
            self._speed.check(message, now)
            # Whatever else the controller says, of interfaces that it has.
            for part, field in itertools.product(_PARTS, _QUANTITIES):
                given = getattr(getattr(message, part), field)
                if (values := jtc.by_joint(message, given, self.joints)) is not None:
                    what = f"the controller's {part} {_QUANTITIES[field]}"
                    self._check_numbers(what, values)
            self._check_commanded_effort(message)
        silence = self._controller_silence.update(now, heard=message is not None)
        if silence > self._settings.stale_after:
            text = f"the controller's state stopped {silence:.2f} s ago: is the controller active?"
            raise SilentRobotError(text, self.joints)

    def is_still(self, k: int) -> bool:
        """Whether the joint with this index moved, and its position is the same now."""
        return self._frozen.is_still(k, self._stamp * 1e-9, self._position[k])

    def _check_clock(self, message: Any) -> None:
        stamp, before = to_nanoseconds(message.header.stamp), self._controller_stamp
        step, self._controller_stamp = (stamp - (before or stamp)) * 1e-9, stamp
        if not CLOCK_STEPS[0] <= step <= CLOCK_STEPS[1]:
            raise RobotStateError(
                f"the controller's clock was set by {step:+.2f} s: do not set it in a session"
            )

    def _check_tracking(self, message: Any) -> None:
        error = jtc.by_joint(message, message.error.positions, self.joints)
        assert error is not None
        self._check_numbers('tracking error', error, SensorError)
        k = int(np.argmax(np.abs(error) / self._tracking))
        joint, away, bound = self.joints[k], abs(error[k]), self._tracking[k]
        if away > bound and self.is_still(k):
            why = f'position of {joint} stays the same while its reference moves on'
            raise SensorError(f'{why}: {CHECK_POSITION}')
        if away > bound:
            why = f'{joint} is {away:.4g} away from its reference, more than {bound:.4g}'
            raise TrackingError(why)
        reference = jtc.by_joint(message, message.reference.positions, self.joints)
        if reference is not None:
            patience = WOUND_UP if self._commands_effort else FAILED_FOR
            self._frozen.check(self._stamp * 1e-9, self._position, reference, error, patience)

    def _check_commanded_effort(self, message: Any) -> None:
        effort = jtc.by_joint(message, message.output.effort, self.joints)
        if effort is not None:
            self._commands_effort = bool(effort.any())
        self._commands_unknown = not any(len(getattr(message.output, f)) for f in _QUANTITIES)
        if self.effort_reported:
            return
        if effort is None:
            why = 'the controller publishes no commands any more'
            raise RobotStateError(f'{why}: {jtc.NO_COMMANDS}')
        self._check_numbers('commanded effort', effort, RobotStateError)
        self._check_effort(stamps_to_nanoseconds([message]), effort[None])

    def _check_numbers(
        self, what: str, values: Array, error: type[RobotStateError] | None = None
    ) -> None:
        """Check values (n,) or (N, n); without an `error` those that were numbers at some time."""
        finite, more = np.isfinite(np.atleast_2d(values)), ''
        lost = ~finite.all(axis=0)
        if error is None:  # what a robot never reports is no number throughout
            reported = self._reported.setdefault(what, np.zeros(len(self.joints), bool))
            lost, error, more = reported & lost, SensorError, ' any more'
            reported |= finite.any(axis=0)
        if lost.any():
            joint = self.joints[int(np.argmax(lost))]
            raise error(f'{what} of {joint} is not a number{more}: check its sensor')

    def _check_position(self, position: Array) -> None:
        beyond = np.maximum(self._lower - position, position - self._upper).max(axis=0)
        k = int(np.argmax(beyond - self._beyond))
        if beyond[k] > self._beyond[k]:
            raise RobotStateError(
                f'position of {self.joints[k]} is {beyond[k]:.4g} beyond its limits '
                f'[{self._lower[k]:.4g}, {self._upper[k]:.4g}], more than the allowed '
                f'{self._beyond[k]:.4g}: jog it back, or correct its limits'
            )

    def _check_effort(self, stamps: NDArray[np.int64], efforts: Array) -> None:
        """Tolerate short peaks: the effort must stay high for a while."""
        high = np.abs(efforts) >= self._effort
        for stamp, row, effort in zip(stamps * 1e-9, high, efforts, strict=True):
            self._high_since = np.where(row, np.fmin(self._high_since, stamp), np.nan)
            duration = stamp - self._high_since
            long = duration >= self._settings.effort_time
            if not long.any():
                continue
            k = int(np.argmax(long))
            joint = self.joints[k]
            if self.is_still(k):
                why = f'position of {joint} stays the same at an effort of {effort[k]:.4g}'
                raise SensorError(f'{why}: {CHECK_POSITION}')
            raise TrackingError(
                f'effort of {joint} is {effort[k]:.4g}, for {duration[k]:.2f} s at or '
                f'above {self._effort[k]:.4g}, {self._settings.effort_share:.0%} of its limit: '
                'is it blocked, pushed or loaded, or without power?'
            )

    def _check_effort_changes(self, states: JointTable) -> None:
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


class FrozenWatch:
    """
    Finds a joint whose position is bitwise the same while its reference moves on.

    A joint that sticks is behind its reference, too, but not by five times as much as before; one
    that has not moved yet may stick by more. A reference moves by `sticking` (n,) [rad or m] at
    least before that is asked.
    """

    def __init__(self, joints: Sequence[str], sticking: Array):
        self._joints, self._sticking = joints, sticking
        self._first = np.full(len(joints), np.nan)
        self._travel, self._error = np.zeros((2, len(joints)))
        self.begin()

    def begin(self) -> None:
        """Begin to watch a motion."""
        # When a position last changed, and what position and reference were then.
        self._last = np.full((3, len(self._joints)), np.nan)

    def check(
        self, stamp: float, position: Array, reference: Array, error: Array, patience: float
    ) -> None:
        """
        Check stamp [s] and position (n,), NaN before the first, with the controller's (n,).

        A position may stay the same with `patience` [s].
        """
        changed = position != self._last[1]
        self._first = np.where(np.isnan(self._first), position, self._first)
        self._travel = np.fmax(self._travel, np.abs(position - self._first))
        known = changed | (reference == self._last[2])
        self._error = np.where(known, np.fmax(self._error, np.abs(error)), self._error)
        now = np.stack([np.full(len(position), stamp), position, reference])
        self._last = np.where(changed, now, self._last)
        moved = np.abs(reference - self._last[2])
        failed = moved > np.maximum(TIMES_AS_BEFORE * self._error, self._sticking)
        failed &= (stamp - self._last[0] > patience) & (self._travel > CONSTANT_EFFORT_TRAVEL)
        if failed.any():
            k = int(np.argmax(failed))
            raise SensorError(
                f'position of {self._joints[k]} stays the same while its reference has moved by '
                f'{moved[k]:.3g}: {CHECK_POSITION}'
            )

    def is_still(self, k: int, stamp: float, position: float) -> bool:
        """Whether a joint has moved, and stands bitwise since `STILL_FOR` before a stamp [s]."""
        stands = position == self._last[1, k] and stamp - self._last[0, k] >= STILL_FOR
        return bool(stands and self._travel[k] > CONSTANT_EFFORT_TRAVEL)


class VelocityWatch:
    """
    Finds a joint whose velocity differs from that of its positions by more than its limit.

    It does not differ by so much for 0.1 s where it is always zero, or smoothed. `limit` (n,)
    holds velocities that the joints cannot have [rad/s or m/s].
    """

    def __init__(self, joints: Sequence[str], limit: Array):
        self._joints, self._limit = joints, limit
        self._last: tuple[float, Array, Array] | None = None
        self._start, self._travel = 0.0, np.zeros((2, len(joints)))

    def check(self, states: JointTable) -> None:
        """Compare the travel by velocities and by positions, over about 0.1 s."""
        stamp = states.stamp * 1e-9
        position, velocity = states.position, states.velocity
        if self._last is not None:
            stamp, position, velocity = (
                np.concatenate([[old], new])
                for old, new in zip(self._last, (stamp, position, velocity), strict=True)
            )
        step, moved = np.diff(stamp), np.diff(position, axis=0)
        continues = self._last is not None and bool(np.all((step >= 0.0) & (step < FAILED_FOR)))
        self._last = stamp[-1], position[-1], velocity[-1]
        if continues:
            moved -= math.tau * np.round(moved / math.tau)  # it may count from -pi to pi
            by_velocity = 0.5 * step @ (velocity[1:] + velocity[:-1])
            self._travel = self._travel + np.stack([by_velocity, moved.sum(axis=0)])
        length = stamp[-1] - self._start
        failed = np.abs(self._travel[0] - self._travel[1]) > self._limit * max(length, FAILED_FOR)
        if continues and failed.any():
            k = int(np.argmax(failed))
            by_velocity, by_position = self._travel[:, k] / length
            raise SensorError(
                f'velocity of {self._joints[k]} is {by_velocity:.3g} by the joint states and '
                f'{by_position:.3g} by its positions: check its sensor'
            )
        if not continues or length >= FAILED_FOR:
            self._start, self._travel = stamp[-1], np.zeros_like(self._travel)


def describe_violation(
    states: Sequence[Any], joints: Sequence[str], tolerance: Array, end: Array | None
) -> str:
    """
    Say which joint left its tolerance, by states of the controller that has stopped a motion.

    On the way a controller stops at the first state beyond a tolerance, at the end with the last
    one whose reference is still there. From the next state on it holds what it measured: whoever
    brakes is away from that, whichever joint was the reason. `states` since the motion was sent
    are well formed; `tolerance` is (n,) [rad or m], `end` (n,) where it ends, if that is violated.
    """
    if end is not None:
        away = np.abs(jtc.stack_states(states, joints, 'reference') - end)
        there = away.max(axis=1, initial=0.0) <= AT_END
        states = [states[row] for row in np.flatnonzero(there)[-1:]]
    away = np.abs(jtc.stack_states(states, joints, 'error'))
    beyond = (away > tolerance).any(axis=1)
    if not beyond.any():
        text = 'no state that arrived here is beyond a tolerance'
        return f"{text}: the controller's log names the joint"
    row = int(np.argmax(beyond))
    k = int(np.argmax(away[row] / tolerance))
    seen = f'{joints[k]} was {away[row, k]:.4g} away from its reference, more than'
    return f'by the states that arrived here {seen} {tolerance[k]:.4g}'


def describe_gap(states: Sequence[Any]) -> str:
    """Say what is wrong with the controller's cycles where its states have a gap, or ''."""
    steps = np.diff(stamps_to_nanoseconds(states)) * 1e-9
    if not len(steps) or steps.max() <= max(LONG_CYCLE, TIMES_AS_BEFORE * np.median(steps)):
        return ''
    gap = f'a gap of {steps.max():.2g} s'
    return f"; the controller's states have {gap}: what holds up its cycles?"


def check_states(
    streams: Sequence[BatchedSubscription], robot: Robot, settings: ExcitationNodeSettings
) -> Watchdog:
    """
    Check that states flow, are complete and inside the limits; return what watches them then.

    Where joint states report no efforts, or exactly 0 while others are commanded, those count for
    it.
    """
    states, controller_states = streams
    state = states.wait_for_latest(
        settings.timeout,
        f"no joint states on '{states.topic}': start the joint_state_broadcaster",
        # Others may publish theirs.
        lambda m: is_well_formed(m) and not set(robot.joints).isdisjoint(m.name),
    )
    if missing := [joint for joint in robot.joints if joint not in state.name]:
        raise RobotStateError(f'the joint states lack {", ".join(missing)}: broadcast every joint')
    inactive = f"nothing on '{controller_states.topic}': activate the controller"
    message = controller_states.wait_for_latest(settings.timeout, inactive)
    measured = stack_joint_states([state], robot.joints)
    # At rest without weight both may be 0: nothing tells yet.
    none = np.isnan(measured.effort).all() or any_effort(message.output.effort)
    reported = any_effort(measured.effort) or not none
    now = time.monotonic()
    watchdog = Watchdog(robot, settings, now, effort_reported=reported)
    watchdog.check_joint_states(measured, now)
    watchdog.check_locked([state])
    jtc.SpeedScaling().check(message, now, max_pause=0.0)
    if not reported and len(message.output.effort) != len(message.joint_names):
        raise RobotStateError(
            'the joint states have no effort, and the controller publishes no commanded efforts: '
            'give the joint_state_broadcaster the effort interfaces; if the controller commands '
            f'efforts, {jtc.NO_COMMANDS}'
        )
    return watchdog
