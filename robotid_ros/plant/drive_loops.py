"""Cascaded loops of drives that are commanded positions or velocities, at their own rate."""

from collections.abc import Callable, Sequence
from dataclasses import replace
import math

from ..simulation_settings import DriveLoopSettings, SimulationSettings
from .physics import Physics

Values = list[float]
# Takes what the controller commands for a period, returns the efforts that the drives report after
# it: their mean over the period, as drives filter their currents. Samples of a torque that swings
# with each new command would all be of one phase of it.
Step = Callable[[Sequence[float]], Values]


class DriveLoop:
    """
    The loops of one joint.

    A position loop, P with feed-forward of the command's slope ṙ, and a velocity loop, PI:
    `v = kp (r − q) + s ṙ`, `τ = J ω (e + ∫e dt / Ti)`, `e = v − q̇`. The integral rests while the
    effort is at its limit.

    Parameters
    ----------
    settings : kp, s, ω, Ti
    inertia : J [kg·m², kg]
    limit : of the effort [N·m, N]
    dt : period of the loops [s]

    """

    def __init__(self, settings: DriveLoopSettings, inertia: float, limit: float, dt: float):
        self._kp, self._share = settings.position_gain, settings.velocity_feedforward
        self._kv = inertia * settings.velocity_bandwidth
        self._ki = self._kv * dt / settings.integral_time if settings.integral_time else 0.0
        self._limit, self._integral = limit, 0.0

    def follow_position(self, r: float, slope: float, q: float, dq: float) -> float:
        """Return the effort for a position command and its slope."""
        return self.follow_velocity(self._kp * (r - q) + self._share * slope, dq)

    def follow_velocity(self, v: float, dq: float) -> float:
        """Return the effort for a velocity command."""
        error = v - dq
        effort = self._kv * error + self._integral
        if abs(effort) < self._limit or effort * error < 0.0:
            self._integral += self._ki * error
        return min(max(effort, -self._limit), self._limit)


class PositionCommand:
    """
    Position commands as a drive takes them: interpolated linearly over the controller's period.

    That has so many steps of the loops, of dt [s]; `position` (n,) is held until the first one.
    """

    def __init__(self, position: Sequence[float], steps: int, dt: float):
        self._steps, self._dt = steps, dt
        self._target, self.value = list(position), list(position)
        self.slope, self._left = [0.0] * len(self._target), 0

    def advance(self, command: Sequence[float]) -> None:
        """Take a step towards the last command that is a number."""
        target = [r if r == r else old for r, old in zip(command, self._target, strict=True)]
        if target != self._target:
            self._target, self._left = target, self._steps
        duration = self._left * self._dt
        self.slope = [
            (r - x) / duration if self._left else 0.0
            for r, x in zip(target, self.value, strict=True)
        ]
        self.value = [x + v * self._dt for x, v in zip(self.value, self.slope, strict=True)]
        self._left = max(self._left - 1, 0)


def build_drives_of(
    settings: SimulationSettings, build_physics: Callable[[SimulationSettings], Physics]
) -> tuple[Physics, Step]:
    """Build the physics, and a step of the hardware's period for commands (n,)."""
    if settings.command_interface == 'effort':
        physics = build_physics(settings)
        return physics, physics.step
    ratio = max(1, math.ceil(settings.drive_loops.rate / settings.update_rate))
    physics = build_physics(replace(settings, update_rate=settings.update_rate * ratio))
    loops = [
        DriveLoop(settings.drive_loops, inertia, limit, physics.period)
        for inertia, limit in zip(physics.drive_inertia, physics.effort_limit, strict=True)
    ]
    held = round(settings.update_rate / (settings.controller_rate or settings.update_rate))
    command = PositionCommand(physics.position.tolist(), ratio * held, physics.period)

    def efforts(values: Sequence[float]) -> Values:
        q, dq = physics.position.tolist(), physics.velocity.tolist()
        if settings.command_interface == 'position':
            command.advance(values)
            rows = zip(loops, command.value, command.slope, q, dq, strict=True)
            return [loop.follow_position(*row) for loop, *row in rows]
        wanted = [v if v == v else 0.0 for v in values]
        return [loop.follow_velocity(*row) for loop, *row in zip(loops, wanted, dq, strict=True)]

    def step(values: Sequence[float]) -> Values:
        applied = [physics.step(efforts(values)) for _ in range(ratio)]
        return [sum(column) / ratio for column in zip(*applied, strict=True)]

    return physics, step
