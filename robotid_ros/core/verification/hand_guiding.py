"""Torques that carry an arm which somebody guides by hand."""

import numpy as np

from ...exceptions import ConfigurationError
from ..arrays import Array
from ..model import Robot
from ..model.dynamics import RobotDynamics

# How fast springs at the limits stop a joint's inertia [rad/s]: of 0.5 rad/s within 0.05 rad.
SPRING_RATE = 10.0
CRAWLING = 0.05  # of a joint that has begun to move, for its dry friction [rad/s or m/s]
# Share of the effort limit by which the arm may be held otherwise than the model predicts, beside
# friction: a wrong payload or sign is far beyond it, temperature and the like are far below.
UNEXPLAINED = 0.05


class HandGuiding:
    """
    Gravity, damping and springs at the limits.

    `τ = (1 − s) τ_held + s (g(q) − k z(q)) − D dq`: the share s of the model grows from 0 to 1
    without a step, D is the joints' inertia over a time, and z how far a joint is in the margin
    before a limit, where `k = J ω²` stops it and `2 J ω` brakes what moves further in. J is the
    inertia where it begins (n,). The speed after a push dies away in the damping time [s], margins
    are before the position limits [rad or m], and a share of the effort limits is used.
    ConfigurationError: a link has no mass.
    """

    def __init__(
        self, robot: Robot, chi: Array, q: Array, *, damping_time: float, margin: float,
        effort_share: float,
    ):  # fmt: skip
        self._dynamics = RobotDynamics(robot, chi)
        inertia = np.diag(self._dynamics.mass_matrix(q))
        self._damping = inertia / damping_time
        self._stiffness, self._brake = inertia * SPRING_RATE**2, 2.0 * inertia * SPRING_RATE
        self._low, self._high = robot.limits.lower + margin, robot.limits.upper - margin
        self._joints, self._largest = robot.joints, effort_share * robot.limits.effort

    def holding(self, q: Array) -> Array:
        """Return the torques (n,) that hold the arm, without dry friction."""
        return np.asarray(self._dynamics.gravity(q) + self._dynamics.friction(q, np.zeros_like(q)))

    def torques(self, q: Array, dq: Array, held: Array, share: float) -> Array:
        """
        Return the torques of a measured state, (n,) each.

        Those that held the arm before give way to the model, by the share 0 to 1 of that time.
        """
        s = share**2 * (3.0 - 2.0 * share)
        depth = np.maximum(q - self._high, 0.0) + np.minimum(q - self._low, 0.0)
        damping = self._damping + np.where(depth * dq > 0.0, self._brake, 0.0)
        tau = (1.0 - s) * held + s * (self.holding(q) - self._stiffness * depth) - damping * dq
        return np.asarray(np.clip(tau, -self._largest, self._largest))

    def check(self, q: Array, held: Array) -> None:
        """
        Refuse what the arm could not bear, and a model that does not know what holds the arm.

        Of where it rests, and the torques that hold it there, (n,) each. ConfigurationError: that
        takes more than may be used, or the model predicts other torques.
        """
        tau, limit = self.holding(q), self._largest
        if (beyond := np.abs(tau) > limit).any():
            k = int(np.argmax(beyond))
            raise ConfigurationError(
                f'{self._joints[k]} needs an effort of {tau[k]:.3g} to hold the arm and its load, '
                f'but {limit[k]:.3g} is allowed: reduce the load'
            )
        # Friction holds in either direction, and more than it brakes a slow motion.
        dry = np.abs(
            self._dynamics.friction(q, np.full_like(q, CRAWLING), tau)
            - self._dynamics.friction(q, np.zeros_like(q), tau)
        )
        allowed = 2.0 * dry + UNEXPLAINED * np.where(np.isfinite(limit), limit, np.abs(tau))
        off = np.abs(held - tau) - allowed
        k = int(np.argmax(off))
        if off[k] > 0.0:
            raise ConfigurationError(
                f'{self._joints[k]} is held by an effort of {held[k]:.3g}, the model predicts '
                f'{tau[k]:.3g}: set the payload that the arm carries, or identify again'
            )
