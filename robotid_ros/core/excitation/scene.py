"""
What the robot must not touch: itself, the ground, obstacles, and the walls of its tool box.

Meshes are replaced by their convex hulls, which is on the safe side and quick.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
import pinocchio as pin

from ...exceptions import CollisionError, ConfigurationError, UnknownNameError
from ..model.robot import Robot
from .bodies import collision_model
from .settings import Workspace

Array = NDArray[np.float64]
# The penalty begins at this many smallest distances, and weighs this much there and beyond.
KEEP, STIFFNESS = 1.4, 20.0


class Scene:
    """
    Clearances of configurations, with gradients.

    Parameters
    ----------
    robot : its URDF holds the geometry
    settings : tool box, ground, obstacles, distances

    Raises
    ------
    ConfigurationError : a box of the wrong size, a frame that does not exist

    """

    def __init__(self, robot: Robot, settings: Workspace) -> None:
        self.settings, self.order = settings, robot.order
        self.model: Any = robot.model.copy()
        self.data = self.model.createData()
        self.geometry, self.notes = collision_model(robot, self.model, settings)
        self.geometry_data = self.geometry.createData()
        self.tool = self._tool(settings.frame)
        self.box = [self._corner('lower', -np.inf), self._corner('upper', np.inf)]
        if (self.box[0] >= self.box[1]).any():
            raise ConfigurationError(
                'excitation.workspace.lower must be below excitation.workspace.upper in x, y and z'
            )
        self.boxed = bool(settings.lower or settings.upper)
        self.smallest = max(settings.distance, 1e-4)
        for request in self.geometry_data.collisionRequests:
            request.security_margin = KEEP * self.smallest

    def _tool(self, frame: str) -> int:
        if not frame:
            return len(self.model.frames) - 1
        if not self.model.existFrame(frame):
            raise UnknownNameError('frame', frame, tuple(f.name for f in self.model.frames))
        return int(self.model.getFrameId(frame))

    def _corner(self, name: str, default: float) -> Array:
        values = getattr(self.settings, name)
        if len(values) not in (0, 3):
            raise ConfigurationError(f"'excitation.workspace.{name}' needs three numbers: x, y, z")
        return np.array(values, dtype=float) if values else np.full(3, default)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to touch."""
        return not self.boxed and not len(self.geometry.collisionPairs)

    def _box_slack(self) -> Array:
        """Return distances of the tool inside its box, (6,) [m]; the model is up to date."""
        place = self.data.oMf[self.tool].translation
        return np.concatenate([place - self.box[0], self.box[1] - place])

    def _distances(self, q: Array) -> Array:
        """Return the distances of all pairs, negative where they overlap, (pairs,) [m]."""
        pin.computeDistances(self.model, self.data, self.geometry, self.geometry_data, q)
        return np.array([r.min_distance for r in self.geometry_data.distanceResults])

    def _near(self, q: Array) -> Array:
        """Return the distances of pairs that the penalty sees, infinity for the others."""
        geometry, data = self.geometry, self.geometry_data
        result = np.full(len(geometry.collisionPairs), np.inf)
        # Most pairs are far apart, and to tell that takes a fraction of measuring how far.
        if pin.computeCollisions(self.model, self.data, geometry, data, q, False):
            for k, found in enumerate(data.collisionResults):
                if found.isCollision():
                    result[k] = pin.computeDistance(geometry, data, k).min_distance
        return result

    def penalty(self, q: Array) -> tuple[float, NDArray[np.bool_]]:
        """
        Sum `STIFFNESS r²/2` over all clearances d of configurations (N, n).

        r is `KEEP − d/d₀` where that is positive, d₀ the smallest distance allowed.

        Returns
        -------
        The sum, and which configurations contribute (N,).

        """
        each = np.zeros(len(q))
        if not self.empty:
            for k, row in enumerate(np.ascontiguousarray(q[:, self.order])):
                each[k] = np.sum(self._excess(self._clearances(row)) ** 2)
        return 0.5 * STIFFNESS * float(each.sum()), each > 0.0

    def penalty_gradient(self, q: Array) -> Array:
        """Differentiate `penalty`, (N, n)."""
        gradient = np.zeros_like(q)
        if not self.empty:
            for k, row in enumerate(np.ascontiguousarray(q[:, self.order])):
                gradient[k, self.order] = self._slope(row)
        return gradient

    def _excess(self, clearances: Array) -> Array:
        return np.maximum(0.0, KEEP - clearances / self.smallest)

    def _clearances(self, q: Array) -> Array:
        """Return the distances of near pairs, then of the tool inside its box, [m]."""
        distances = self._near(q)
        if not self.boxed:
            return distances
        pin.updateFramePlacements(self.model, self.data)
        # A tool on the wall is allowed: there its clearance counts as the smallest distance.
        return np.concatenate([distances, self._box_slack() + self.smallest])

    def _slope(self, q: Array) -> Array:
        clearances = self._clearances(q)
        excess = self._excess(clearances)
        near, result = np.flatnonzero(excess), np.zeros_like(q)
        if len(near):
            pin.computeJointJacobians(self.model, self.data, q)
            pin.updateFramePlacements(self.model, self.data)
        pairs = len(self.geometry.collisionPairs)
        for k in near[near < pairs]:
            gradient = self._distance_gradient(int(k), float(clearances[k]))
            result -= STIFFNESS * excess[k] / self.smallest * gradient
        if self.boxed and len(near):
            jacobian = pin.getFrameJacobian(
                self.model, self.data, self.tool, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
            )[:3]
            wall = STIFFNESS * excess[pairs:]
            result -= (wall[:3] - wall[3:]) / self.smallest @ jacobian
        return result

    def _distance_gradient(self, pair: int, distance: float) -> Array:
        """Return ∂d/∂q = nᵀ (J₂(p₂) − J₁(p₁)), n from the nearest point p₁ to p₂."""
        result = self.geometry_data.distanceResults[pair]
        first, second = result.getNearestPoint1(), result.getNearestPoint2()
        normal = (second - first) / distance if abs(distance) > 1e-9 else result.normal
        objects = self.geometry.geometryObjects
        link = self.geometry.collisionPairs[pair]
        one = self._point_jacobian(objects[link.first].parentJoint, first)
        two = self._point_jacobian(objects[link.second].parentJoint, second)
        gradient: Array = normal @ (two - one)
        return gradient

    def _point_jacobian(self, joint: int, point: Array) -> Array:
        jacobian = pin.getJointJacobian(
            self.model, self.data, joint, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        )
        arm = point - self.data.oMi[joint].translation
        return jacobian[:3] - pin.skew(arm) @ jacobian[3:]

    def clear(self, q: Array) -> bool:
        """Tell whether all configurations (N, n) keep the smallest distance."""
        return self.empty or all(
            self._slack(row) >= 0.0 for row in np.ascontiguousarray(q[:, self.order])
        )

    def _slack(self, q: Array) -> float:
        """Return the least slack of one configuration [m]."""
        pairs = len(self.geometry.collisionPairs)
        clearances = self._clearances(q)
        least = float(np.min(clearances[:pairs], initial=np.inf)) - self.settings.distance
        return min(least, float(np.min(clearances[pairs:], initial=np.inf)) - self.smallest)

    def refuse(self, q: Array, time: Array) -> float | None:
        """
        Refuse configurations that come too near.

        Parameters
        ----------
        q : (N, n)
        time : (N,) [s], for the message

        Returns
        -------
        The smallest distance between bodies [m], None when there are none.

        Raises
        ------
        CollisionError : names the bodies, the time and the distance

        """
        if self.empty:
            return None
        least = np.inf
        for t, row in zip(time, np.ascontiguousarray(q[:, self.order]), strict=True):
            distances = self._distances(row)
            least = min(least, float(np.min(distances, initial=np.inf)))
            if least < self.settings.distance:
                raise CollisionError(self._names(int(np.argmin(distances)), least, float(t)))
            if self.boxed and self._slack(row) < 0.0:
                raise CollisionError(
                    f'the tool leaves its box by {-self._box_slack().min():.3f} m at {t:.3f} s: '
                    'move the start, enlarge the box or design again'
                )
        return least if np.isfinite(least) else None

    def _names(self, pair: int, distance: float, time: float) -> str:
        objects, link = self.geometry.geometryObjects, self.geometry.collisionPairs[pair]
        one, two = objects[link.first].name, objects[link.second].name
        return (
            f'{one} and {two} are {distance:.3f} m apart at {time:.3f} s, '
            f'less than {self.settings.distance:g} m: move the start, design again, or name the '
            'pair in excitation.workspace.ignored_pairs'
        )
