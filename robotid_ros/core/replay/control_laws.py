"""Control laws: what turns the measured state into a torque, by the type of a controller."""

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

Step = Callable[[int, Array], Array]  # the torque (n,) of an update, by the state [q q̇] (2n,)
GainRows = Sequence[Mapping[str, float]]  # recorded gains of each joint, by name
# Strategies of control_toolbox, and their prefix in the name of a recorded gain.
STRATEGIES = ('legacy', 'none', 'back_calculation', 'conditional_integration')
ANTIWINDUP = 'antiwindup_'
# Names of a trajectory controller's gains.
TRAJECTORY_GAINS = (
    *('p', 'i', 'd', 'ff_velocity_scale', 'i_clamp', 'i_clamp_min', 'i_clamp_max', 'u_clamp_min'),
    *('u_clamp_max', 'error_deadband', 'tracking_time_constant'),
    *(ANTIWINDUP + strategy for strategy in STRATEGIES),
)


@dataclasses.dataclass(frozen=True)
class LinearStep:
    """A `Step` that is `u[k] − L [q q̇]`."""

    feed_forward: Array  # u (K, n)
    feedback: Array  # L (n, 2n)

    def __call__(self, k: int, state: Array) -> Array:
        """Return the torque (n,) of an update."""
        return self.ahead(k, state) - np.asarray(self.feedback @ state)

    def ahead(self, k: int, state: Array) -> Array:
        """Return that without the feedback."""
        torque: Array = self.feed_forward[k]
        return torque


class Loop(NamedTuple):
    """Torque per position error and velocity; time with which an integral's start decays, (n,)."""

    stiffness: Array  # [N·m/rad or N/m]
    damping: Array  # [N·m·s/rad or N·s/m]
    integral_time: Array  # 0 without integral [s]


@dataclasses.dataclass(frozen=True)
class ControlLaw(ABC):
    """
    Control loop of every joint, whatever its output v_τ: `τ = g_τ sat(v_τ)` (DIDIM eq. 54).

    Once a period it turns the measured state into a torque that is held until the next one.
    """

    rate: float  # of updates [Hz]
    # (n,) drive gain g_τ, torque per unit of the output; the output saturates at plus and minus
    # `limit`, in its own unit; one count of the position sensor, 0: none [rad or m].
    gain: Array = dataclasses.field(default_factory=lambda: np.ones(1), kw_only=True)
    limit: Array | float = dataclasses.field(default=np.inf, kw_only=True)
    resolution: Array | float = dataclasses.field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name != 'rate':
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
        Return `step(k, [q q̇]) -> tau` along a reference, to be called for k = 0, 1, 2 … in turn.

        The integral starts where the torque on the reference is `initial_effort` (n,), as that of
        a controller that has held the robot for a while; without it at 0, as after activation.
        """
        gain, limit = self.gain, np.asarray(self.limit)
        law = self.output(desired, None if initial_effort is None else initial_effort / gain)
        coarse, limited = np.any(self.resolution > 0.0), np.any(np.isfinite(limit))
        count = np.where(np.asarray(self.resolution) > 0.0, self.resolution, 1e-300)

        if isinstance(law, LinearStep) and not coarse and not limited:
            return LinearStep(law.feed_forward * gain, law.feedback * gain[:, None])

        def step(k: int, state: Array) -> Array:
            if coarse:
                q, dq = np.split(state, 2)
                state = np.concatenate([np.round(q / count) * count, dq])
            output = law(k, state)
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


def initial_integral(
    initial_effort: Array | None, without: Array, gain: Array,
    low: Array | float = -np.inf, high: Array | float = np.inf,
) -> Array:  # fmt: skip
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
    Velocity loop inside a position loop, as drives have it; gains are (n,).

    `e_v = k_p (q_r − q) + k_ff q̇_r − v` and `v_τ = k_v e_v + k_i ∫e_v`. With k_v and k_p alone it
    is the law of DIDIM eq. 53; with differences of positions, that of EMPS.
    """

    kp: Array  # [1/s]
    kv: Array  # output per velocity
    ki: Array | float = 0.0  # of the velocity loop, output per position
    velocity_feedforward: Array | float = 0.0  # share k_ff of the reference's velocity
    differences: Array | float = 0.0  # 1: v = (q[k] − q[k−2])/(2 Ts), not the measured velocity

    @property
    def loop(self) -> Loop:
        """`k_p k_v g_τ`, `k_v g_τ` and `k_v/k_i`."""
        damping = self.kv * self.gain
        return Loop(self.kp * damping, damping, _ratio(self.kv, self.ki))

    def output(self, desired: Motion, initial_effort: Array | None = None) -> Step:
        """Start the cascade; see `ControlLaw.output`."""
        wanted = self.kp * desired.q + self.velocity_feedforward * desired.dq
        kp, kv, ki = self.kp, self.kv, np.asarray(self.ki) / self.rate
        start = kv * (wanted[0] - kp * desired.q[0] - desired.dq[0])
        integral = initial_integral(initial_effort, start, ki)
        n, past, differences = wanted.shape[1], deque[Array](maxlen=3), np.any(self.differences)

        def step(k: int, state: Array) -> Array:
            nonlocal integral
            q, dq = state[:n], state[n:]
            if differences:
                if not past:
                    past.extend((q - 2.0 * dq / self.rate, q - dq / self.rate))
                past.append(q.copy())
                dq = (past[2] - past[0]) * (0.5 * self.rate)
            error = wanted[k] - kp * q - dq
            integral = integral + ki * error
            return kv * error + integral

        return step


@dataclasses.dataclass(frozen=True)
class JointTrajectoryEffort(ControlLaw):
    """
    ros2_control's joint_trajectory_controller with effort as its only command interface.

    `u[k] = ff q̇_r[k+1] + sat(p e + I + d (q̇_r − q̇))`, `e = q_r − q` at k: the feed-forward is
    that of the next update, and `u_clamp` bounds the PID alone. `I += i Ts e`
    within `i_clamp`, before the output with the strategy 'legacy' of control_toolbox, after it
    with the others (`integrates_after`), which differ in what they add where the PID is clamped.
    All are (n,) or one for all joints, in effort.
    """

    p: Array
    i: Array | float = 0.0
    d: Array | float = 0.0
    ff_velocity_scale: Array | float = 0.0
    i_clamp_min: Array | float = -np.inf  # of the integral, kept while it is summed
    i_clamp_max: Array | float = np.inf
    u_clamp_min: Array | float = -np.inf
    u_clamp_max: Array | float = np.inf
    error_deadband: Array | float = 0.0  # position error that is not integrated
    integrates_after: Array | float = 0.0  # 1: an error is integrated after its own output
    tracking_rate: Array | float = 0.0  # of back calculation from the clamped output [1/s]
    conditional: Array | float = 0.0  # 1: an error that drives a clamped PID further is left out

    @property
    def loop(self) -> Loop:
        """`p g_τ`, `d g_τ` and `p/i`."""
        return Loop(self.p * self.gain, self.d * self.gain, _ratio(self.p, self.i))

    def output(self, desired: Motion, initial_effort: Array | None = None) -> Step:
        """Start the controller, just activated; see `ControlLaw.output`."""
        p, d, i = self.p, np.asarray(self.d), np.asarray(self.i) / self.rate
        n, q_r, wanted = desired.q.shape[1], desired.q, p * desired.q + d * desired.dq
        ahead = self.ff_velocity_scale * desired.dq
        forward = np.vstack([ahead[1:], ahead[-1:]])
        low, high = np.asarray(self.i_clamp_min), np.asarray(self.i_clamp_max)
        u_low, u_high = np.asarray(self.u_clamp_min), np.asarray(self.u_clamp_max)
        if not (np.any(i) or np.any(np.isfinite(u_low)) or np.any(np.isfinite(u_high))):
            return LinearStep(wanted + forward, np.hstack([np.eye(n) * p, np.eye(n) * d]))
        integral = initial_integral(initial_effort, forward[0] + 0.0 * q_r[0], i, low, high)
        deadband, after, tracking = map(
            np.asarray, (self.error_deadband, self.integrates_after, self.tracking_rate)
        )
        simple, early = not (np.any(deadband) or np.any(after)), i * (1.0 - after)
        conditional = np.asarray(self.conditional) != 0.0

        def step(k: int, state: Array) -> Array:
            nonlocal integral
            q, dq = state[:n], state[n:]
            error = q_r[k] - q
            if not simple:
                error = np.where(np.abs(error) > deadband, error, 0.0)
            integral = np.minimum(np.maximum(integral + early * error, low), high)
            pid = wanted[k] - p * q - d * dq + integral
            output = np.minimum(np.maximum(pid, u_low), u_high)
            if not simple:
                rests = conditional & (output != pid) & (error * pid > 0.0)
                added = np.where(rests, 0.0, self.i * error) + tracking * (output - pid)
                change = np.where(error != 0.0, after * added / self.rate, 0.0)
                integral = np.minimum(np.maximum(integral + change, low), high)
            return output + forward[k]

        return step


@dataclasses.dataclass(frozen=True)
class RecordedTorque(ControlLaw):
    """The torque (K, n) that was measured, held to the next update, whatever the robot does."""

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
        return lambda k, state: self.torque[k]


def control_law_of(
    controller: Controller, joints: tuple[str, ...], drive_gain: Array
) -> ControlLaw:
    """
    Return the control law that a recorded controller followed, of drive gains g_τ (n,).

    UnknownNameError: there is no law for controllers of this type; ControllerError: it does not
    command efforts, or gains of a joint are missing.
    """
    if controller.type not in CONTROL_LAWS:
        raise UnknownNameError('control law', controller.type, tuple(CONTROL_LAWS))
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
    return CONTROL_LAWS[controller.type].make(controller.rate, gains, drive_gain)


def _gain(rows: GainRows, name: str, default: float = 0.0) -> Array:
    """Return a recorded gain of joints (n,), with a default where a joint has none."""
    values = np.array([float(row.get(name, np.nan)) for row in rows])
    return np.where(np.isnan(values), default, values)


def _law(cls: type[ControlLaw], rate: float, rows: GainRows, **known: Any) -> ControlLaw:
    """Make a law of what is known and, by the names of its other fields, of recorded gains."""
    defaults = {f.name: f.default for f in dataclasses.fields(cls) if f.name not in known}
    del defaults['rate']
    gains = {
        name: _gain(rows, name, default if isinstance(default, float) else 0.0)
        for name, default in defaults.items()
    }
    return cls(rate, **gains, **known)


def _trajectory_controller(rate: float, rows: GainRows, drive_gain: Array) -> ControlLaw:
    gain = partial(_gain, rows)
    # A bound that is not given is that of the deprecated i_clamp.
    clamp = gain('i_clamp', np.inf)
    low, high = gain('i_clamp_min', -np.inf), gain('i_clamp_max', np.inf)
    # A strategy of anti-windup is a gain of 1 by its prefix and name; without one it is 'legacy'.
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
    return _law(
        JointTrajectoryEffort,
        rate,
        rows,
        i_clamp_min=np.where(np.isfinite(low), low, -clamp),
        i_clamp_max=np.where(np.isfinite(high), high, clamp),
        integrates_after=np.maximum(np.maximum(none, back), conditional),
        tracking_rate=np.where(active, 1.0 / np.where(given > 0.0, given, usual), 0.0),
        conditional=conditional,
        gain=drive_gain,
        limit=np.inf,
        resolution=0.0,
    )


class LawOfType(NamedTuple):
    """What makes a control law of rate, rows of gains and drive gains; names of the gains."""

    make: Callable[[float, GainRows, Array], ControlLaw]
    gains: tuple[str, ...]


CONTROL_LAWS = {
    'joint_trajectory_controller/JointTrajectoryController': LawOfType(
        _trajectory_controller, TRAJECTORY_GAINS
    ),
    'cascade': LawOfType(
        lambda rate, rows, gain: _law(CascadeControl, rate, rows, gain=gain),
        tuple(f.name for f in dataclasses.fields(CascadeControl)[1:] if f.name != 'gain'),
    ),
}
