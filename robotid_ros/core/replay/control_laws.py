"""
Control laws: what turns the measured state into a torque, by the type of a recorded controller.

A law is discrete: once a period it turns the measured state into a torque that is held until the
next one. It is described by a frozen value and started on a reference; `start` returns the
function that the simulation calls, with all that depends on the reference alone precomputed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
import dataclasses
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...exceptions import ControllerError, UnknownNameError
from ..arrays import Array, frozen
from ..excitation.trajectory import Motion
from ..signals.recording import Controller

Step = Callable[[int, Array, Array], Array]
Rows = Sequence[Mapping[str, float]]  # recorded gains of each joint, by name
# Strategies of control_toolbox, and their prefix in the name of a recorded gain.
STRATEGIES = ('legacy', 'none', 'back_calculation', 'conditional_integration')
ANTIWINDUP = 'antiwindup_'


class Loop(NamedTuple):
    """
    Torque per position error and per velocity, (n,) [N·m/rad, N·m·s/rad or N/m, N·s/m].

    The integral time (n,) [s] is that with which its initial value decays, 0 without integral.
    """

    stiffness: Array
    damping: Array
    integral_time: Array


@dataclasses.dataclass(frozen=True)
class ControlLaw(ABC):
    """
    Control loop of every joint, whatever its output v_τ: `τ = g_τ sat(v_τ)` (DIDIM eq. 54).

    Attributes
    ----------
    rate : update rate [Hz]
    gain : (n,) drive gain g_τ, torque per unit of the controller's output
    limit : the output saturates at plus and minus this, in its own unit
    resolution : (n,) or scalar, one count of the position sensor; 0: none [rad or m]

    """

    rate: float
    gain: Array = dataclasses.field(default_factory=lambda: np.ones(1), kw_only=True)
    limit: Array | float = dataclasses.field(default=np.inf, kw_only=True)
    resolution: Array | float = dataclasses.field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, bool | int | str) and field.name != 'rate':
                object.__setattr__(self, field.name, frozen(np.atleast_1d(value)))

    def scaled(self, factor: npt.ArrayLike) -> Any:
        """
        Scale the torques by `Ĵ/J_ap` (n,), so that ω_n and ζ stay what they are.

        DIDIM eq. 59: `k_v^s = 2 ζ ω_n Ĵ/g_τ` and an unchanged `k_p^s` are the actual gains with
        g_τ times `Ĵ/J_ap`; integral, feed-forward and saturation scale along.
        """
        return dataclasses.replace(self, gain=self.gain * np.asarray(factor, dtype=float))

    def start(self, desired: Motion, initial_effort: Array | None = None) -> Step:
        """
        Return `step(k, q, dq) -> tau`, to be called for k = 0, 1, 2 … in turn.

        The integral starts where the torque on the reference is `initial_effort` (n,), as that of
        a controller that has held the robot for a while; without it at 0, as after activation.
        """
        gain, limit = self.gain, np.asarray(self.limit)
        law = self.output(desired, None if initial_effort is None else initial_effort / gain)
        coarse, limited = np.any(self.resolution > 0.0), np.any(np.isfinite(limit))
        count = np.where(np.asarray(self.resolution) > 0.0, self.resolution, 1e-300)

        def step(k: int, q: Array, dq: Array) -> Array:
            output = law(k, np.round(q / count) * count if coarse else q, dq)
            if limited:
                output = np.minimum(np.maximum(output, -limit), limit)
            return output * gain

        return step

    @property
    @abstractmethod
    def loop(self) -> Loop:
        """Gains of the closed loops."""

    @abstractmethod
    def output(self, desired: Motion, initial_effort: Array | None = None) -> Step:
        """Start the bare law, whose output has neither limits nor a unit of torque."""


def with_differenced_velocity(step: Step, rate: float) -> Step:
    """Put `v = (q[k] − q[k−2])/(2 Ts)` in place of the measured velocity."""
    past: deque[Array] = deque(maxlen=3)
    half = 0.5 * rate

    def measuring(k: int, q: Array, dq: Array) -> Array:
        if not past:
            past.extend((q - 2.0 * dq / rate, q - dq / rate))
        past.append(q.copy())
        return step(k, q, (past[2] - past[0]) * half)

    return measuring


def initial_integral(
    initial_effort: Array | None, without: Array, gain: Array, low: Array, high: Array
) -> Array:
    """Return the integral with which the output is `initial_effort`; 0 where that is None."""
    if initial_effort is None:
        return np.zeros_like(without)
    return np.where(gain != 0.0, np.clip(initial_effort - without, low, high), 0.0)


def _ratio(gain: Array, integral: Array | float) -> Array:
    """Return gains over integral gains, (n,); 0 where there is no integral."""
    divisor = np.broadcast_to(integral, gain.shape)
    return np.divide(gain, divisor, out=np.zeros_like(gain), where=divisor != 0.0)


@dataclasses.dataclass(frozen=True)
class CascadeControl(ControlLaw):
    """
    Velocity loop inside a position loop, as drives have it.

    `e_v = k_p (q_r − q) + k_ff q̇_r − v` and `v_τ = k_v e_v + k_i ∫e_v + k_a q̈_r`. With k_v and k_p
    alone it is the law of DIDIM eq. 53; with differences of positions, that of EMPS.

    Attributes
    ----------
    kp : (n,) position gain [1/s]
    kv : (n,) velocity gain, output per velocity
    ki : (n,) integral gain of the velocity loop, output per position
    velocity_feedforward : (n,) share k_ff of the reference's velocity
    acceleration_feedforward : (n,) output per acceleration k_a
    differences : take `v = (q[k] − q[k−2])/(2 Ts)` instead of the measured velocity
    integral_limit : (n,) bound of the integral's output

    """

    kp: Array
    kv: Array
    ki: Array | float = 0.0
    velocity_feedforward: Array | float = 0.0
    acceleration_feedforward: Array | float = 0.0
    differences: bool = False
    integral_limit: Array | float = np.inf

    @property
    def loop(self) -> Loop:
        """`k_p k_v g_τ`, `k_v g_τ` and `k_v/k_i`."""
        damping = self.kv * self.gain
        return Loop(self.kp * damping, damping, _ratio(self.kv, self.ki))

    def output(self, desired: Motion, initial_effort: Array | None = None) -> Step:
        """Start the cascade; see `ControlLaw.output`."""
        wanted = self.kp * desired.q + self.velocity_feedforward * desired.dq
        forward = self.acceleration_feedforward * desired.ddq
        kp, kv, ki = self.kp, self.kv, np.asarray(self.ki) / self.rate
        low, high = -np.asarray(self.integral_limit), np.asarray(self.integral_limit)
        start = kv * (wanted[0] - kp * desired.q[0] - desired.dq[0]) + forward[0]
        integral = initial_integral(initial_effort, start, ki, low, high)

        def step(k: int, q: Array, dq: Array) -> Array:
            nonlocal integral
            error = wanted[k] - kp * q - dq
            integral = np.minimum(np.maximum(integral + ki * error, low), high)
            return kv * error + integral + forward[k]

        return with_differenced_velocity(step, self.rate) if self.differences else step


@dataclasses.dataclass(frozen=True)
class JointTrajectoryEffort(ControlLaw):
    """
    ros2_control's joint_trajectory_controller with effort as its only command interface.

    `u[k] = ff q̇_r[k+1] + sat(p e + I + d (q̇_r − q̇))`, `e = q_r − q` at k: the feed-forward is
    that of the next update, and `u_clamp` bounds the PID alone. `I += i Ts e`
    within `i_clamp`, before the output with the strategy 'legacy' of control_toolbox, after it
    with the others (`integrates_after`), which differ in what they add where the PID is clamped.

    Attributes
    ----------
    p, i, d, ff_velocity_scale : (n,) gains, in effort
    i_clamp_min, i_clamp_max : (n,) bounds of the integral's effort, kept while it is summed
    u_clamp_min, u_clamp_max : (n,) bounds of the PID's effort
    error_deadband : (n,) position error that is not integrated
    integrates_after : (n,) 1 where an error is integrated after the output it belongs to
    tracking_rate : (n,) rate of back calculation from the clamped output; 0: none [1/s]
    conditional : (n,) 1 where an error that drives a clamped PID further is not integrated

    """

    p: Array
    i: Array | float = 0.0
    d: Array | float = 0.0
    ff_velocity_scale: Array | float = 0.0
    i_clamp_min: Array | float = -np.inf
    i_clamp_max: Array | float = np.inf
    u_clamp_min: Array | float = -np.inf
    u_clamp_max: Array | float = np.inf
    error_deadband: Array | float = 0.0
    integrates_after: Array | float = 0.0
    tracking_rate: Array | float = 0.0
    conditional: Array | float = 0.0

    @property
    def loop(self) -> Loop:
        """`p g_τ`, `d g_τ` and `p/i`."""
        return Loop(self.p * self.gain, self.d * self.gain, _ratio(self.p, self.i))

    def output(self, desired: Motion, initial_effort: Array | None = None) -> Step:
        """Start the controller, just activated; see `ControlLaw.output`."""
        p, d, i = self.p, np.asarray(self.d), np.asarray(self.i) / self.rate
        q_r, wanted = desired.q, p * desired.q + d * desired.dq
        ahead = self.ff_velocity_scale * desired.dq
        forward = np.vstack([ahead[1:], ahead[-1:]])
        low, high = np.asarray(self.i_clamp_min), np.asarray(self.i_clamp_max)
        u_low, u_high = np.asarray(self.u_clamp_min), np.asarray(self.u_clamp_max)
        if not (np.any(i) or np.any(np.isfinite(u_low)) or np.any(np.isfinite(u_high))):
            known = wanted + forward
            return lambda k, q, dq: known[k] - p * q - d * dq
        integral = initial_integral(initial_effort, forward[0] + 0.0 * q_r[0], i, low, high)
        deadband, integrates_after = map(np.asarray, (self.error_deadband, self.integrates_after))
        simple = not np.any(deadband) and not np.any(integrates_after)
        early = i * (1.0 - integrates_after)

        def step(k: int, q: Array, dq: Array) -> Array:
            nonlocal integral
            error = q_r[k] - q
            if not simple:
                error = np.where(np.abs(error) > deadband, error, 0.0)
            integral = np.minimum(np.maximum(integral + early * error, low), high)
            pid = wanted[k] - p * q - d * dq + integral
            output = np.minimum(np.maximum(pid, u_low), u_high)
            if not simple:
                change = self._integral_change(error, pid, output)
                integral = np.minimum(np.maximum(integral + change, low), high)
            return output + forward[k]

        return step

    def _integral_change(self, error: Array, pid: Array, output: Array) -> Array:
        """Return what `integrates_after` adds to the integral, (n,); nothing at an error of 0."""
        rests = (np.asarray(self.conditional) != 0.0) & (output != pid) & (error * pid > 0.0)
        added = np.where(rests, 0.0, self.i * error) + self.tracking_rate * (output - pid)
        return np.asarray(np.where(error != 0.0, self.integrates_after * added / self.rate, 0.0))


@dataclasses.dataclass(frozen=True)
class RecordedTorque(ControlLaw):
    """
    The torque that was measured, whatever the robot does.

    Attributes
    ----------
    torque : (K, n) at each update, held until the next [N·m or N]

    """

    torque: Array

    def scaled(self, factor: npt.ArrayLike) -> Any:
        """Return the same: what was measured is no function of parameters."""
        return self

    @property
    def loop(self) -> Loop:
        """There is none."""
        return Loop(*np.zeros((3, self.torque.shape[1])))

    def output(self, desired: Motion, initial_effort: Array | None = None) -> Step:
        """Play the torque; see `ControlLaw.output`."""
        return lambda k, q, dq: self.torque[k]


def make_control_law(
    controller: Controller, joints: tuple[str, ...], drive_gain: Array
) -> ControlLaw:
    """
    Return the control law that a recorded controller followed.

    Parameters
    ----------
    drive_gain : (n,) torque per unit of effort, g_τ

    Raises
    ------
    UnknownNameError : there is no law for controllers of this type
    ControllerError : it does not command efforts, or gains of a joint are missing

    """
    if controller.type not in LAWS:
        raise UnknownNameError('control law', controller.type, tuple(LAWS))
    if '/' in controller.type and tuple(controller.command_interfaces) != ('effort',):
        raise ControllerError(
            f'{controller.name} commands {", ".join(controller.command_interfaces) or "nothing"}, '
            'not efforts, so the law that makes the torque is unknown: identify by WLS, or give '
            "law, rate and gains of the drives under 'identification.replay'"
        )
    missing = [joint for joint in joints if not controller.gains.get(joint)]
    if missing:
        raise ControllerError(
            f'the recording holds no gains of {controller.name or "the controller"} for '
            f'{", ".join(missing)}: record its parameters, or name them under '
            "'identification.replay.gains'"
        )
    if controller.rate <= 0.0:
        raise ControllerError('the update rate of the controller is unknown: record it')
    gains = [controller.gains[joint] for joint in joints]
    return LAWS[controller.type](controller.rate, gains, drive_gain)


def _gain(rows: Rows, name: str, default: float = 0.0) -> Array:
    """Return a recorded gain of joints (n,), with a default where a joint has none."""
    values = np.array([float(row.get(name, np.nan)) for row in rows])
    return np.where(np.isnan(values), default, values)


def _trajectory_controller(rate: float, rows: Rows, drive_gain: Array) -> ControlLaw:
    gain = partial(_gain, rows)
    # A bound that is not given is that of the deprecated i_clamp.
    clamp = gain('i_clamp', np.inf)
    low, high = gain('i_clamp_min', -np.inf), gain('i_clamp_max', np.inf)
    return JointTrajectoryEffort(
        rate,
        **{name: gain(name) for name in ('p', 'i', 'd', 'ff_velocity_scale', 'error_deadband')},
        i_clamp_min=np.where(np.isfinite(low), low, -clamp),
        i_clamp_max=np.where(np.isfinite(high), high, clamp),
        u_clamp_min=gain('u_clamp_min', -np.inf),
        u_clamp_max=gain('u_clamp_max', np.inf),
        **_antiwindup(rows),
        gain=drive_gain,
    )


def _antiwindup(rows: Rows) -> dict[str, Array]:
    """
    Return `integrates_after`, `tracking_rate`, `conditional` of `JointTrajectoryEffort`, (n,).

    A strategy is a gain of 1 by the name 'antiwindup_' and its own; without one it is 'legacy'.
    """
    gain = partial(_gain, rows)
    for name in {name for row in rows for name in row if name.startswith(ANTIWINDUP)}:
        if (strategy := name.removeprefix(ANTIWINDUP)) not in STRATEGIES:
            raise UnknownNameError('anti-windup strategy', strategy, STRATEGIES)
    none, back, conditional = (gain(ANTIWINDUP + name) for name in STRATEGIES[1:])
    p, i, d, given = map(gain, ('p', 'i', 'd', 'tracking_time_constant'))
    # The time constant of back calculation that control_toolbox recommends [s].
    divisor = np.where(i != 0.0, i, 1.0)
    usual = np.where(d != 0.0, np.sqrt(np.abs(d / divisor)), np.abs(p / divisor))
    usual = np.where(usual > 0.0, usual, 1.0)
    active = (back != 0.0) & (i != 0.0)
    return {
        'integrates_after': np.maximum(np.maximum(none, back), conditional),
        'tracking_rate': np.where(active, 1.0 / np.where(given > 0.0, given, usual), 0.0),
        'conditional': conditional,
    }


def _cascade(rate: float, rows: Rows, drive_gain: Array) -> ControlLaw:
    gain = partial(_gain, rows)
    names = ('kp', 'kv', 'ki', 'velocity_feedforward', 'acceleration_feedforward', 'resolution')
    return CascadeControl(
        rate,
        **{name: gain(name) for name in names},
        differences=bool(np.any(gain('differences'))),
        integral_limit=gain('integral_limit', np.inf),
        gain=drive_gain,
        limit=gain('limit', np.inf),
    )


LAWS: dict[str, Callable[[float, Rows, Array], ControlLaw]] = {
    'joint_trajectory_controller/JointTrajectoryController': _trajectory_controller,
    'cascade': _cascade,
}
