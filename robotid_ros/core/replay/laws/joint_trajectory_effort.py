"""The law of ros2_control's joint_trajectory_controller in effort mode."""

from __future__ import annotations

import dataclasses

import numpy as np

from ...arrays import Array
from .control_loop import ControlLaw, Desired, initial_integral, Step


@dataclasses.dataclass(frozen=True)
class JointTrajectoryEffort(ControlLaw):
    """
    ros2_control's joint_trajectory_controller with effort as its only command interface.

    `u[k] = ff q̇_r[k+1] + effort[k+1] + sat(p e + I + d (q̇_r − q̇))`, `e = q_r − q` at k: the
    feed-forwards are those of the next update, and `u_clamp` bounds the PID alone. `I += i Ts e`
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
    def stiffness(self) -> Array:
        """`p g_τ`, (n,)."""
        return self.p * self.gain

    @property
    def integral_time(self) -> Array:
        """`p/i`, (n,) [s]; zero without integral."""
        i = np.broadcast_to(self.i, self.p.shape)
        return np.divide(self.p, i, out=np.zeros_like(self.p), where=i != 0.0)

    @property
    def damping(self) -> Array:
        """`d g_τ`, (n,)."""
        return np.asarray(self.d) * self.gain

    def output(self, desired: Desired, initial_effort: Array | None = None) -> Step:
        """Start the controller, just activated; see `ControlLaw.output`."""
        ahead = self.ff_velocity_scale * desired.dq + desired.effort
        forward = np.vstack([ahead[1:], ahead[-1:]])
        clamped = np.any(np.isfinite(self.u_clamp_min)) or np.any(np.isfinite(self.u_clamp_max))
        if np.any(self.i) or clamped:
            return self._with_integral(desired, forward, initial_effort)
        p, d = self.p, np.asarray(self.d)
        known = p * desired.q + d * desired.dq + forward
        return lambda k, q, dq: known[k] - p * q - d * dq

    def _with_integral(
        self, desired: Desired, forward: Array, initial_effort: Array | None
    ) -> Step:
        p, d, i = self.p, np.asarray(self.d), np.asarray(self.i) / self.rate
        q_r, wanted = desired.q, p * desired.q + d * desired.dq
        low, high = np.asarray(self.i_clamp_min), np.asarray(self.i_clamp_max)
        u_low, u_high = np.asarray(self.u_clamp_min), np.asarray(self.u_clamp_max)
        integral = initial_integral(initial_effort, forward[0] + 0.0 * q_r[0], i, low, high)
        deadband, integrates_after = (
            np.asarray(self.error_deadband),
            np.asarray(self.integrates_after),
        )
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


def recommended_tracking_time(p: Array, i: Array, d: Array) -> Array:
    """Return the time constant of back calculation where none is given, (n,) [s]."""
    safe = np.where(i != 0.0, i, 1.0)
    constant = np.where(d != 0.0, np.sqrt(np.abs(d / safe)), np.abs(p / safe))
    return np.where(constant > 0.0, constant, 1.0)
