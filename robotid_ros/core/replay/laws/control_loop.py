"""
The parts that all control laws share: sensor resolution, saturation and drive gain.

A law is discrete: once a period it turns the measured state into a torque that is held until the
next one. It is described by a frozen value and started on a reference; `start` returns the
function that the simulation calls, with all that depends on the reference alone precomputed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...arrays import Array, frozen

Step = Callable[[int, Array, Array], Array]


class Desired(NamedTuple):
    """
    What the controller is asked to do at each of its updates, each (K, n).

    Attributes
    ----------
    q, dq, ddq : reference position, velocity, acceleration [rad or m, per s, per s²]
    effort : feed-forward effort, in the controller's unit

    """

    q: Array
    dq: Array
    ddq: Array
    effort: Array


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
        Scale the torques, so that ω_n and ζ stay what they are when inertias scale.

        DIDIM eq. 59: `k_v^s = 2 ζ ω_n Ĵ/g_τ` and an unchanged `k_p^s` are the actual gains with
        g_τ times `Ĵ/J_ap`; integral, feed-forward and saturation scale along.

        Parameters
        ----------
        factor : (n,) `Ĵ/J_ap` per joint

        """
        return dataclasses.replace(self, gain=self.gain * np.asarray(factor, dtype=float))

    def start(self, desired: Desired, initial_effort: Array | None = None) -> Step:
        """
        Return `step(k, q, dq) -> tau`, to be called for k = 0, 1, 2 … in turn.

        The integral starts where the torque on the reference is `initial_effort` (n,), as that of
        a controller that has held the robot for a while; without it at 0, as after activation.
        """
        gain = self.gain
        step = self.output(desired, None if initial_effort is None else initial_effort / gain)
        if np.any(self.resolution > 0.0):
            step = _with_encoder(step, self.resolution)
        if np.any(np.isfinite(self.limit)):
            step = _saturated(step, self.limit)
        return step if np.all(gain == 1.0) else lambda k, q, dq: step(k, q, dq) * gain

    @property
    @abstractmethod
    def stiffness(self) -> Array:
        """Torque per position error, (n,) [N·m/rad or N/m]."""

    @property
    @abstractmethod
    def damping(self) -> Array:
        """Torque per velocity, (n,) [N·m·s/rad or N·s/m]."""

    @property
    @abstractmethod
    def integral_time(self) -> Array:
        """Integral time, with which an integral's initial value decays, (n,) [s]."""

    @abstractmethod
    def output(self, desired: Desired, initial_effort: Array | None = None) -> Step:
        """Start the bare law, whose output has neither limits nor a unit of torque."""


def _with_encoder(step: Step, resolution: Array | float) -> Step:
    count = np.where(np.asarray(resolution) > 0.0, resolution, 1e-300)
    return lambda k, q, dq: step(k, np.round(q / count) * count, dq)


def _saturated(step: Step, limit: Array | float) -> Step:
    low, high = -np.asarray(limit), np.asarray(limit)
    return lambda k, q, dq: np.minimum(np.maximum(step(k, q, dq), low), high)


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
