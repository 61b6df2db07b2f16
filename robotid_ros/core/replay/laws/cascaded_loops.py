"""Cascaded position and velocity loops: DIDIM's PD law, and what drives have."""

from __future__ import annotations

import dataclasses

import numpy as np

from ...arrays import Array
from .control_loop import ControlLaw, Desired, initial_integral, Step, with_differenced_velocity


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
    def stiffness(self) -> Array:
        """`k_p k_v g_τ`, (n,)."""
        return self.kp * self.kv * self.gain

    @property
    def integral_time(self) -> Array:
        """`k_v/k_i`, (n,) [s]; zero without integral."""
        ki = np.broadcast_to(self.ki, self.kv.shape)
        return np.divide(self.kv, ki, out=np.zeros_like(self.kv), where=ki != 0.0)

    @property
    def damping(self) -> Array:
        """`k_v g_τ`, (n,)."""
        return self.kv * self.gain

    def output(self, desired: Desired, initial_effort: Array | None = None) -> Step:
        """Start the cascade; see `ControlLaw.output`."""
        wanted = self.kp * desired.q + self.velocity_feedforward * desired.dq
        forward = self.acceleration_feedforward * desired.ddq + desired.effort
        kp, kv, ki = self.kp, self.kv, np.asarray(self.ki) / self.rate
        low, high = -np.asarray(self.integral_limit), np.asarray(self.integral_limit)
        start = kv * (wanted[0] - kp * desired.q[0] - desired.dq[0]) + forward[0]
        integral = initial_integral(initial_effort, start, ki, low, high)

        def proportional(k: int, q: Array, dq: Array) -> Array:
            return kv * (wanted[k] - kp * q - dq) + forward[k]

        def with_integral(k: int, q: Array, dq: Array) -> Array:
            nonlocal integral
            error = wanted[k] - kp * q - dq
            integral = np.clip(integral + ki * error, low, high)
            return kv * error + integral + forward[k]

        step = with_integral if np.any(ki) else proportional
        return with_differenced_velocity(step, self.rate) if self.differences else step
