"""Controller gains that fit the identified inertia; no ROS in here."""

from collections.abc import Mapping
from dataclasses import dataclass
import math

import numpy as np

from ...core.arrays import Array
from ...core.model import mass_matrix, Robot
from ...node_settings import GainProposalSettings


@dataclass(frozen=True)
class JointGains:
    """
    PID gains of one joint and the behaviour they give a decoupled inertia J.

    Parameters
    ----------
    p, i, d : gains per unit of the controller's command
    inertia : J in that unit [kg·m² where the command is a torque]

    """

    p: float
    i: float
    d: float
    inertia: float

    @property
    def natural_frequency(self) -> float:
        """ω_n = √(p/J) [rad/s]."""
        return math.sqrt(max(self.p, 0.0) / self.inertia)

    @property
    def damping(self) -> float:
        """ζ = d / (2 √(p J))."""
        return self.d / (2.0 * math.sqrt(self.p * self.inertia)) if self.p > 0.0 else math.inf


def propose_gains(old: JointGains, settings: GainProposalSettings) -> JointGains:
    """
    Place the poles of J q̈ = −p e − d ė at the wanted ω_n and ζ: `p = J ω²`, `d = 2 ζ J ω`.

    The integral gain keeps its ratio to p. No gain changes by more than the allowed factor; one
    that is zero stays zero.

    Parameters
    ----------
    old : present gains
    settings : what is wanted

    """
    omega = settings.bandwidth or old.natural_frequency
    p = _bounded(old.p, old.inertia * omega**2, settings.change)
    d = _bounded(old.d, 2.0 * settings.damping * old.inertia * omega, settings.change)
    i = old.i * p / old.p if old.p else old.i
    return JointGains(p, i, d, old.inertia)


def _bounded(old: float, new: float, factor: float) -> float:
    return min(max(new, old / factor), old * factor)


Gains = dict[str, JointGains]


def propose_for_joints(
    robot: Robot,
    inertia: Array,
    present: Mapping[str, Mapping[str, float]],
    settings: GainProposalSettings,
) -> tuple[Gains, Gains]:
    """Present and proposed gains, from the inertia (n,) of each joint [kg·m² or kg]."""
    old = {}
    for joint, value, drive in zip(robot.joints, inertia, robot.drive_gain, strict=True):
        p, i, d = (float(present.get(joint, {}).get(name, 0.0)) for name in 'pid')
        old[joint] = JointGains(p, i, d, float(value / abs(drive)))
    return old, {joint: propose_gains(gains, settings) for joint, gains in old.items()}


def largest_inertia(robot: Robot, chi: Array, q: Array, poses: int) -> Array:
    """Largest M_jj (n,), motors included, on a motion (N, n), at so many of its poses."""
    # The diagonal varies slowly: more poses would cost time and hardly change the largest value.
    chosen = q[:: max(1, len(q) // poses)]
    return np.diagonal(mass_matrix(robot, chi, chosen), axis1=1, axis2=2).max(axis=0)


def gain_parameters(gains: Mapping[str, JointGains]) -> dict[str, float]:
    """Name the gains as the controller's parameters do."""
    return {
        f'gains.{joint}.{name}': getattr(values, name)
        for joint, values in gains.items()
        for name in ('p', 'i', 'd')
    }
