"""The wrench at one frame that explains external efforts."""

import numpy as np

from ..arrays import Array
from ..excitation.collision_bodies import tool_frame
from ..model.robot_dynamics import InverseDynamics
from .contact_thresholds import ContactThresholds
from .external_effort import ExternalEffort


class ExternalWrench:
    """
    Estimates the wrench that acts on the robot at a frame.

    τ_ext = Jᵀ w, weighted by what is unknown of each joint's effort and regularised by the size
    that wrenches are expected to have: the mean of w for Gaussian τ_ext and w. What a posture or
    the number of joints leaves open stays near zero, with a σ near the expected size.

    Parameters
    ----------
    model : with the robot's kinematics
    frame : its name; empty: the last body
    force, torque : expected size of the wrench [N, N·m]

    Raises
    ------
    UnknownNameError : the robot has no such frame

    """

    def __init__(self, model: InverseDynamics, frame: str, force: float, torque: float):
        self._model, self._frame = model, tool_frame(model.robot.model, frame)
        self.frame = str(model.robot.model.frames[self._frame].name)
        self._information = np.diag(np.repeat([force**-2, torque**-2], 3))

    def estimate(self, q: Array, effort: Array, sigma: Array) -> tuple[Array, Array]:
        """
        Estimate the wrench.

        Parameters
        ----------
        q : (n,) positions
        effort, sigma : (n,) external efforts and their standard deviation [N·m or N]

        Returns
        -------
        Force and torque (6,) in the axes of the frame, at its origin, and their standard
        deviations (6,) [N, N·m].

        """
        J = self._model.jacobian(q, self._frame) / sigma
        covariance = np.linalg.inv(J @ J.T + self._information)
        return covariance @ (J @ (effort / sigma)), np.sqrt(np.diag(covariance))


def effort_sigma(seen: ExternalEffort, thresholds: ContactThresholds) -> Array:
    """Return the standard deviation of external efforts (n,), residual and friction."""
    return np.hypot(thresholds.sigma(seen.speed, seen.inertia), seen.hidden)
