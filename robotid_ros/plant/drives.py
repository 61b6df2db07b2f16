"""Drives: their sensors with noise, quantisation and faults, and their loops."""

from collections.abc import Callable, Sequence
from dataclasses import replace
import math

import numpy as np

from ..exceptions import UnknownNameError
from ..simulation_settings import FaultSettings, per_joint, SimulationSettings
from .physics import Physics
from .urdf_reading import Array

Values = list[float]
# Faults that spoil position, velocity and effort.
NAN_FAULTS = ('nan_joint_state', 'nan_velocity', 'nan_effort')


class Fault:
    """A fault of one of the joints that begins at its configured time."""

    def __init__(self, settings: FaultSettings, joints: Sequence[str]):
        if settings.joint and settings.joint not in joints:
            raise UnknownNameError('joint', settings.joint, tuple(joints))
        self.kind, self.joint = settings.kind, list(joints).index(settings.joint or joints[0])
        # Since the start [s]; another one lets it begin then.
        self.start, self._duration = settings.time, settings.duration or float('inf')

    def active(self, time: float, *kinds: str) -> bool:
        """Whether one of these is broken at a time since the start [s]."""
        return self.kind in kinds and self.start <= time < self.start + self._duration


class Sensors:
    """Positions, velocities and efforts of joints (n,) as the hardware reports them."""

    def __init__(self, settings: SimulationSettings, joints: Sequence[str]):
        noise, count = settings.noise, len(joints)
        names = 'position', 'velocity', 'effort', 'resolution'
        values = [per_joint(getattr(noise, name), count, f'noise.{name}') for name in names]
        self._sigma, self._resolution = np.array(values[:3]), np.array(values[3])
        if not settings.report_effort:
            self._sigma[2] = np.nan
        self._random = np.random.default_rng([settings.seed, 0x22])
        self._frozen: tuple[Values, Values] | None = None
        self.fault = Fault(settings.fault, joints)

    def read(
        self, time: float, position: Sequence[float], velocity: Sequence[float],
        effort: Sequence[float],
    ) -> tuple[Values, Values, Values]:  # fmt: skip
        """Report true values (n,) at a time since the start [s]."""
        normal, step = self._random.standard_normal(self._sigma.shape), self._resolution
        values = np.array([position, velocity, effort]) + normal * self._sigma
        if step.any():
            counts = np.rint(values[0] / np.where(step, step, 1.0))
            values[0] = np.where(step, counts * step, values[0])
        q, dq, tau = values.tolist()
        if self.fault.kind:
            self._inject_fault(time, q, dq, tau)
        return q, dq, tau

    def _inject_fault(self, time: float, q: Values, dq: Values, tau: Values) -> None:
        fault, joint = self.fault, self.fault.joint
        for kind, values in zip(NAN_FAULTS, (q, dq, tau), strict=True):
            if fault.active(time, kind):
                values[joint] = float('nan')
        if fault.active(time, 'dead_effort'):
            tau[joint] = 0.0
        if not fault.active(time, 'frozen_joint', 'frozen_states'):
            self._frozen = None
            return
        self._frozen = self._frozen or (q.copy(), tau.copy())
        if fault.kind == 'frozen_states':
            q[:], dq[:], tau[:] = self._frozen[0], [0.0] * len(dq), self._frozen[1]
        else:
            q[joint], dq[joint] = self._frozen[0][joint], 0.0


# Takes what the controller commands for a period, returns the efforts that the drives report after
# it: their mean over the period, as drives filter their currents. Samples of a torque that swings
# with each new command would all be of one phase of it.
Step = Callable[[Sequence[float]], list[float]]


class DriveLoops:
    """
    The loops of all joints, `ratio` steps of them in a period of the hardware.

    A position loop, P with feed-forward of the command's slope ṙ, and a velocity loop, PI:
    `v = kp (r − q) + s ṙ`, `τ = J ω (e + ∫e dt / Ti)`, `e = v − q̇`, J the inertia [kg·m², kg] at
    the start. The integral rests while the effort is at its limit. Position commands are
    interpolated linearly over the controller's period; the present position is held until the
    first one. The period of `physics` is that of the loops.
    """

    def __init__(self, settings: SimulationSettings, physics: Physics, ratio: int):
        loops, self._physics, self._ratio = settings.drive_loops, physics, ratio
        self._position_is_commanded = settings.command_interface == 'position'
        self._kp, self._share = loops.position_gain, loops.velocity_feedforward
        self._kv = np.array(physics.drive_inertia) * loops.velocity_bandwidth
        self._ki, self._integral = np.zeros_like(self._kv), np.zeros_like(self._kv)
        if loops.integral_time:
            self._ki = self._kv * physics.period / loops.integral_time
        self._limit = np.array(physics.effort_limit)
        held = round(settings.update_rate / (settings.controller_rate or settings.update_rate))
        self._steps, self._left = ratio * held, 0
        self._target = self._reference = physics.position

    def step(self, command: Sequence[float]) -> list[float]:
        """Run a period of the hardware under a command (n,); return the mean effort."""
        applied = [self._physics.step(self._effort(command)) for _ in range(self._ratio)]
        return [sum(column) / self._ratio for column in zip(*applied, strict=True)]

    def _effort(self, command: Sequence[float]) -> list[float]:
        """Efforts (n,) of a step; a velocity that is not a number counts as 0."""
        physics, given = self._physics, np.asarray(command, dtype=float)
        wanted = np.where(np.isnan(given), 0.0, given)
        if self._position_is_commanded:
            slope = self._follow(np.where(np.isnan(given), self._target, given))
            wanted = self._kp * (self._reference - physics.position) + self._share * slope
        error = wanted - physics.velocity
        effort = self._kv * error + self._integral
        free = (np.abs(effort) < self._limit) | (effort * error < 0.0)
        self._integral = self._integral + np.where(free, self._ki * error, 0.0)
        return np.clip(effort, -self._limit, self._limit).tolist()

    def _follow(self, target: Array) -> Array:
        """Take a step towards the target (n,), and return the slope (n,) of the reference."""
        if not np.array_equal(target, self._target):
            self._target, self._left = target, self._steps
        dt, slope = self._physics.period, np.zeros(len(target))
        if self._left:
            slope = (target - self._reference) / (self._left * dt)
            self._left -= 1
        self._reference = self._reference + slope * dt
        return slope


def build_drives_of(
    settings: SimulationSettings, build_physics: Callable[[SimulationSettings], Physics]
) -> tuple[Physics, Step]:
    """Build the physics, and a step of the hardware's period for commands (n,)."""
    if settings.command_interface == 'effort':
        physics = build_physics(settings)
        return physics, physics.step
    ratio = max(1, math.ceil(settings.drive_loops.rate / settings.update_rate))
    physics = build_physics(replace(settings, update_rate=settings.update_rate * ratio))
    return physics, DriveLoops(settings, physics, ratio).step
