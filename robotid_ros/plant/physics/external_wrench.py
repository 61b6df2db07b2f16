"""A wrench from outside on a link of the simulated robot: somebody pushes it."""

from collections.abc import Sequence

import mujoco
import numpy as np

from ...exceptions import ConfigurationError
from .moving_bodies import place_of_link
from .mujoco_physics import Physics
from .pseudo_inertia import Array
from .urdf_reading import parse_urdf


class ExternalWrench:
    """
    Pushes a robot, until told otherwise.

    Parameters
    ----------
    physics : whose bodies are pushed
    locked : positions of joints that are fixed

    """

    def __init__(self, physics: Physics, locked: dict[str, float] | None = None):
        self._physics, self._locked = physics, locked
        self._acting: tuple[int, Array, Array] | None = None

    def set(self, link: str, wrench: Sequence[float]) -> None:
        """
        Let a wrench act from now on, in place of another one; call `apply` before each period.

        Parameters
        ----------
        link : name of the link with which its axes turn and at whose origin it acts
        wrench : force and torque (6,) [N, N·m]; all zero: none

        Raises
        ------
        UnknownNameError : no such link, or it does not move
        ConfigurationError : a number that is none

        """
        if not np.isfinite(wrench).all():
            raise ConfigurationError('a wrench has six finite numbers')
        physics = self._physics
        root = parse_urdf(physics.urdf)
        index, place = place_of_link(root, physics.bodies, link, self._locked)
        name = physics.bodies[index].joint.name
        body = mujoco.mj_name2id(physics.model, mujoco.mjtObj.mjOBJ_BODY, name)
        self._acting = body, place, np.array(wrench, dtype=float)

    def apply(self) -> None:
        """Write the wrench as it acts in the present posture into what MuJoCo takes."""
        if self._acting is None:
            return
        (body, place, wrench), data = self._acting, self._physics.data
        axes = data.xmat[body].reshape(3, 3)
        origin = data.xpos[body] + axes @ place[:3, 3]
        force, torque = (axes @ place[:3, :3] @ part for part in (wrench[:3], wrench[3:]))
        torque = torque + np.cross(origin - data.xipos[body], force)
        data.xfrc_applied[:] = 0.0
        data.xfrc_applied[body] = [*force, *torque]
        if not wrench.any():
            self._acting = None
