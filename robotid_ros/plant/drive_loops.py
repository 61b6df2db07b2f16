"""Cascaded loops of drives that are commanded positions or velocities, at their own rate."""

from collections.abc import Callable, Sequence
from dataclasses import replace
import math

import numpy as np

from ..simulation_settings import SimulationSettings
from .physics import Physics
from .urdf_reading import Array

# Takes what the controller commands for a period, returns the efforts that the drives report after
# it: their mean over the period, as drives filter their currents. Samples of a torque that swings
# with each new command would all be of one phase of it.
Step = Callable[[Sequence[float]], list[float]]


class DriveLoops:
    """
    The loops of all joints, several steps of them in a period of the hardware.

    A position loop, P with feed-forward of the command's slope ṙ, and a velocity loop, PI:
    `v = kp (r − q) + s ṙ`, `τ = J ω (e + ∫e dt / Ti)`, `e = v − q̇`. The integral rests while the
    effort is at its limit. Position commands are interpolated linearly over the controller's
    period; the present position is held until the first one.

    Parameters
    ----------
    settings : kp, s, ω, Ti, rates
    physics : whose period is that of the loops; J [kg·m², kg] is its inertia at the start
    ratio : steps of the loops in a period of the hardware

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
