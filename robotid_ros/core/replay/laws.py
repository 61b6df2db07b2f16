"""Control laws: what closes the loop of the simulated robot, as it closes that of the real one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from ...exceptions import ControllerError, UnknownNameError
from ..model.parameters import Array
from ..signals.recording import Controller
from .loop import ControlLaw, Desired, differencing, Loop, Step


@dataclasses.dataclass(frozen=True)
class Cascade(Loop):
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
    def stiffness(self) -> Array:
        """`k_p k_v g_τ`, (n,)."""
        return self.kp * self.kv * self.gain

    @property
    def memory(self) -> Array:
        """`k_v/k_i`, (n,) [s]; zero without integral."""
        ki = np.broadcast_to(self.ki, self.kv.shape)
        return np.divide(self.kv, ki, out=np.zeros_like(self.kv), where=ki != 0.0)

    @property
    def damping(self) -> Array:
        """`k_v g_τ`, (n,)."""
        return self.kv * self.gain

    def output(self, desired: Desired, balance: Array | None = None) -> Step:
        """Start the cascade; see `Loop.output`."""
        wanted = self.kp * desired.q + self.velocity_feedforward * desired.dq
        forward = self.acceleration_feedforward * desired.ddq + desired.effort
        kp, kv, ki = self.kp, self.kv, np.asarray(self.ki) / self.rate
        low, high = -np.asarray(self.integral_limit), np.asarray(self.integral_limit)
        start = kv * (wanted[0] - kp * desired.q[0] - desired.dq[0]) + forward[0]
        integral = _initial(balance, start, ki, low, high)

        def proportional(k: int, q: Array, dq: Array) -> Array:
            return kv * (wanted[k] - kp * q - dq) + forward[k]

        def with_integral(k: int, q: Array, dq: Array) -> Array:
            nonlocal integral
            error = wanted[k] - kp * q - dq
            integral = np.clip(integral + ki * error, low, high)
            return kv * error + integral + forward[k]

        step = with_integral if np.any(ki) else proportional
        return differencing(step, self.rate) if self.differences else step


@dataclasses.dataclass(frozen=True)
class JointTrajectoryEffort(Loop):
    """
    ros2_control's joint_trajectory_controller with effort as its only command interface.

    `u[k] = ff q̇_r[k+1] + effort[k+1] + sat(p e + clamp(Σ i Ts e) + d (q̇_r − q̇))`, `e = q_r − q` at
    k: the feed-forwards look one update ahead, and `u_clamp` bounds the PID alone.

    Attributes
    ----------
    p, i, d, ff_velocity_scale : (n,) gains, in effort
    i_clamp_min, i_clamp_max : (n,) bounds of the integral's effort, kept while it is summed
    u_clamp_min, u_clamp_max : (n,) bounds of the PID's effort

    """

    p: Array
    i: Array | float = 0.0
    d: Array | float = 0.0
    ff_velocity_scale: Array | float = 0.0
    i_clamp_min: Array | float = -np.inf
    i_clamp_max: Array | float = np.inf
    u_clamp_min: Array | float = -np.inf
    u_clamp_max: Array | float = np.inf

    @property
    def stiffness(self) -> Array:
        """`p g_τ`, (n,)."""
        return self.p * self.gain

    @property
    def memory(self) -> Array:
        """`p/i`, (n,) [s]; zero without integral."""
        i = np.broadcast_to(self.i, self.p.shape)
        return np.divide(self.p, i, out=np.zeros_like(self.p), where=i != 0.0)

    @property
    def damping(self) -> Array:
        """`d g_τ`, (n,)."""
        return np.asarray(self.d) * self.gain

    def output(self, desired: Desired, balance: Array | None = None) -> Step:
        """Start the controller, just activated; see `Loop.output`."""
        p, d, i = self.p, np.asarray(self.d), np.asarray(self.i) / self.rate
        ahead = self.ff_velocity_scale * desired.dq + desired.effort
        forward = np.vstack([ahead[1:], ahead[-1:]])
        wanted = p * desired.q + d * desired.dq
        clamped = np.any(np.isfinite(self.u_clamp_min)) or np.any(np.isfinite(self.u_clamp_max))
        if not np.any(i) and not clamped:
            known = wanted + forward
            return lambda k, q, dq: known[k] - p * q - d * dq
        low, high = np.asarray(self.i_clamp_min), np.asarray(self.i_clamp_max)
        u_low, u_high = np.asarray(self.u_clamp_min), np.asarray(self.u_clamp_max)
        q_r = desired.q
        integral = _initial(balance, forward[0] + 0.0 * q_r[0], i, low, high)

        def step(k: int, q: Array, dq: Array) -> Array:
            nonlocal integral
            integral = np.minimum(np.maximum(integral + i * (q_r[k] - q), low), high)
            pid = wanted[k] - p * q - d * dq + integral
            return np.minimum(np.maximum(pid, u_low), u_high) + forward[k]

        return step


def _initial(balance: Array | None, without: Array, gain: Array, low: Array, high: Array) -> Array:
    """Return the integral that completes the output to `balance`; zero where there is none."""
    if balance is None:
        return np.zeros_like(without)
    return np.where(gain != 0.0, np.clip(balance - without, low, high), 0.0)


def pd(
    rate: float,
    natural_frequency: npt.ArrayLike,
    damping: npt.ArrayLike,
    inertia: npt.ArrayLike,
    gain: npt.ArrayLike = 1.0,
    **options: Any,
) -> Cascade:
    """
    Tune the law of DIDIM eq. 53: `v_τ = k_p k_v (q_r − q) − k_v q̇`.

    Eq. 58: `k_p = ω_n/(2ζ)`, `k_v = 2 ζ ω_n J/g_τ`.

    Parameters
    ----------
    rate : update rate [Hz]
    natural_frequency : (n,) ω_n [rad/s]
    damping : (n,) ζ
    inertia : (n,) J, see `joint_inertia` [kg·m² or kg]
    gain : (n,) drive gain g_τ
    options : the other fields of `Cascade`

    """
    omega, zeta, gain = np.asarray(natural_frequency), np.asarray(damping), np.asarray(gain)
    kv = 2.0 * zeta * omega * np.asarray(inertia) / gain
    kp = np.broadcast_to(omega / (2.0 * zeta), kv.shape)
    return Cascade(rate, kp, kv, gain=np.broadcast_to(gain, kv.shape), **options)


def law_of(controller: Controller, joints: tuple[str, ...], drive_gain: Array) -> ControlLaw:
    """
    Return the control law that a recorded controller followed.

    Parameters
    ----------
    controller : as recorded, with its type, rate and gains
    joints : the robot's, in order
    drive_gain : (n,) torque per unit of effort, g_τ

    Raises
    ------
    UnknownNameError : there is no law for controllers of this type
    ControllerError : it does not command efforts, or gains of a joint are missing

    """
    if controller.type not in LAWS:
        raise UnknownNameError('control law', controller.type, tuple(LAWS))
    missing = [joint for joint in joints if not controller.gains.get(joint)]
    if missing:
        raise ControllerError(
            f'the recording holds no gains of {controller.name or "the controller"} for '
            f'{", ".join(missing)}: record its parameters, or name them under '
            "'identification.replay.gains'"
        )
    if controller.rate <= 0.0:
        raise ControllerError('the update rate of the controller is unknown: record it')
    return LAWS[controller.type](controller, _columns(controller.gains, joints), drive_gain)


def _columns(gains: Mapping[str, Mapping[str, float]], joints: tuple[str, ...]) -> dict[str, Any]:
    """Turn gains per joint into arrays (n,) per name, NaN where a joint has none of that name."""
    names = {name: None for joint in joints for name in gains[joint]}
    return {
        name: np.array([float(gains[joint].get(name, np.nan)) for joint in joints])
        for name in names
    }


def _take(columns: dict[str, Any], name: str, default: float = 0.0) -> Array:
    values = np.asarray(columns.get(name, np.nan), dtype=float)
    return np.where(np.isnan(values), default, values)


def _trajectory_controller(
    controller: Controller, columns: dict[str, Any], drive_gain: Array
) -> ControlLaw:
    if tuple(controller.command_interfaces) != ('effort',):
        raise ControllerError(
            f'{controller.name} commands {", ".join(controller.command_interfaces) or "nothing"}, '
            'not efforts, so the law that makes the torque is unknown: identify by WLS, or give '
            "the drives' gains under 'identification.replay.gains'"
        )
    clamp = _take(columns, 'i_clamp')
    clamp = np.where(clamp > 0.0, clamp, np.inf)
    low, high = _take(columns, 'i_clamp_min', -np.inf), _take(columns, 'i_clamp_max', np.inf)
    finite = np.isfinite(low) | np.isfinite(high)
    return JointTrajectoryEffort(
        controller.rate,
        _take(columns, 'p'),
        _take(columns, 'i'),
        _take(columns, 'd'),
        _take(columns, 'ff_velocity_scale'),
        np.where(finite, low, -clamp),
        np.where(finite, high, clamp),
        _take(columns, 'u_clamp_min', -np.inf),
        _take(columns, 'u_clamp_max', np.inf),
        gain=drive_gain,
    )


def _cascade(controller: Controller, columns: dict[str, Any], drive_gain: Array) -> ControlLaw:
    return Cascade(
        controller.rate,
        _take(columns, 'kp'),
        _take(columns, 'kv'),
        _take(columns, 'ki'),
        _take(columns, 'velocity_feedforward'),
        _take(columns, 'acceleration_feedforward'),
        bool(np.any(_take(columns, 'differences'))),
        _take(columns, 'integral_limit', np.inf),
        gain=drive_gain,
        limit=_take(columns, 'limit', np.inf),
        resolution=_take(columns, 'resolution'),
    )


LAWS: dict[str, Callable[[Controller, dict[str, Any], Array], ControlLaw]] = {
    'joint_trajectory_controller/JointTrajectoryController': _trajectory_controller,
    'cascade': _cascade,
}
