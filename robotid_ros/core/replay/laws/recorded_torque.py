"""No control law: the measured torque drives the simulated robot, in an open loop."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from ...arrays import Array
from .control_loop import ControlLaw, Desired, Step


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
    def stiffness(self) -> Array:
        """Zero, (n,)."""
        return np.zeros(self.torque.shape[1])

    damping = integral_time = stiffness

    def output(self, desired: Desired, initial_effort: Array | None = None) -> Step:
        """Play the torque; see `ControlLaw.output`."""
        return lambda k, q, dq: self.torque[k]
