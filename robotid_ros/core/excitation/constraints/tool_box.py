"""The box that the tool may not leave."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....exceptions import ConfigurationError
from ...arrays import Array
from ..batch_kinematics import KinematicTree
from ..settings import Workspace
from .collision_bodies import tool_frame


class ToolBox:
    """
    The walls around a tool, if it has some: lower x, y, z, then upper ones.

    Parameters
    ----------
    model : Pinocchio's
    tree : its joints
    settings : frame of the tool and corners of its box

    Raises
    ------
    ConfigurationError : a box of the wrong size
    UnknownNameError : a frame that does not exist

    """

    def __init__(self, model: Any, tree: KinematicTree, settings: Workspace) -> None:
        self._tree = tree
        frame = model.frames[tool_frame(model, settings.frame)]
        self.joint = int(frame.parentJoint)
        self._offset = np.array(frame.placement.translation)
        self.corners = box_corners(settings)
        self.walls = 6 if settings.lower or settings.upper else 0

    def places(self, q: Array) -> Array:
        """Return where configurations (N, n), in the model's order, put the tool, (N, 3) [m]."""
        if not self.joint:
            return np.broadcast_to(self._offset, (len(q), 3))
        rotation, translation = (x[:, self.joint - 1] for x in self._tree.places(q))
        place: Array = rotation @ self._offset + translation
        return place

    def distances(self, q: Array) -> Array:
        """Return distances inside the walls, (N, 6) or, without a box, (N, 0) [m]."""
        if not self.walls:
            return np.empty((len(q), 0))
        place = self.places(q)
        return np.hstack([place - self.corners[0], self.corners[1] - place])

    def inwards(self, walls: NDArray[np.intp]) -> Array:
        """Return the directions in which the tool leaves walls behind, (walls, 3)."""
        sides, axes = np.divmod(walls, 3)
        return np.asarray((1.0 - 2.0 * sides)[:, None] * np.eye(3)[axes])


def box_corners(settings: Workspace) -> tuple[Array, Array]:
    """
    Return the corners of the box of the tool, (3,) each [m], infinite where it has no wall.

    Raises
    ------
    ConfigurationError : not three numbers, or the lower corner is not below the upper one

    """
    corners = []
    for name, open_side in (('lower', -np.inf), ('upper', np.inf)):
        values = getattr(settings, name)
        if len(values) not in (0, 3) or np.isnan(values).any():
            raise ConfigurationError(f"'excitation.workspace.{name}' needs three numbers: x, y, z")
        corners.append(np.array(values, dtype=float) if values else np.full(3, open_side))
    if (corners[0] >= corners[1]).any():
        raise ConfigurationError(
            'excitation.workspace.lower must be below excitation.workspace.upper in x, y and z'
        )
    return corners[0], corners[1]
