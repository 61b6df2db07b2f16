"""
Clearances of a robot: to itself, the ground, obstacles, and the walls of its tool box.

Meshes are replaced by their convex hulls, which is on the safe side and quick.
"""

from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
import pinocchio as pin

from ....exceptions import CollisionError
from ...arrays import Array
from ...model.robot import Robot
from ..settings import Workspace
from .collision_bodies import collision_model, tool_box, tool_frame
from .collision_bounds import approach_bounds, BoundingSpheres

# Clearances above this need not be measured [m].
LARGE_CLEARANCE = 0.05
# Configurations that are looked at at once: a motion that is not free is often found out early.
FREE_PART = 50
# The penalty begins at this clearance, so that the search turns before bodies touch, and becomes
# linear this much below it [m].
PENALTY_CLEARANCE, PENALTY_UNIT = 0.004, 0.01
WORLD_ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


class CollisionScene:
    """
    Clearances of configurations, with gradients: distances of bodies less the smallest allowed.

    They come in the order of the geometry's collision pairs; where the tool has a box, its
    distances from the six walls follow. `notes` are sentences for the user, `unchecked` those
    about what is not checked at all, by the names of `accept_unchecked`.

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
        robot.check_no_mimic_joints('planning a motion')
        self.model: Any = robot.model.copy()
        self.data = self.model.createData()
        self.geometry, self.notes, self.unchecked = collision_model(robot, self.model, settings)
        self.geometry_data = self.geometry.createData()
        self.pairs = len(self.geometry.collisionPairs)
        self.tool = tool_frame(self.model, settings.frame)
        self.box = tool_box(settings)
        self.boxed = bool(settings.lower or settings.upper)
        self.approach_bounds = approach_bounds(self.model, self.geometry)
        self._spheres = BoundingSpheres(self.model, self.geometry)
        # Of the last penalty: configurations, and what the clearances are at least.
        self._seen, self._least = np.empty((0, 0)), np.empty((0, 0))

    @property
    def empty(self) -> bool:
        """Whether there is nothing to touch."""
        return not self.boxed and not self.pairs

    def _model_order(self, q: Array) -> Array:
        return np.ascontiguousarray(q[:, self.order])

    def _wall_distances(self) -> Array:
        """Return distances of the tool inside its box, (6,) or (0,) [m], of the placed model."""
        if not self.boxed:
            return np.empty(0)
        pin.updateFramePlacement(self.model, self.data, self.tool)
        place = self.data.oMf[self.tool].translation
        return np.concatenate([place - self.box[0], self.box[1] - place])

    def _distances(self, q: Array) -> Array:
        """Return the distances of all pairs, negative where they overlap, (pairs,) [m]."""
        pin.computeDistances(self.model, self.data, self.geometry, self.geometry_data, q)
        return np.array([r.min_distance for r in self.geometry_data.distanceResults])

    def _measure(self, rows: Array, near: NDArray[np.bool_], least: Array) -> Array:
        """Replace the clearances of `near` pairs, bounded from below so far, by what they are."""
        pin_places = partial(
            pin.updateGeometryPlacements, self.model, self.data, self.geometry, self.geometry_data
        )
        measure = partial(pin.computeDistance, self.geometry, self.geometry_data)
        for k in np.flatnonzero(near.any(axis=1)).tolist():
            pin_places(rows[k])
            pairs = np.flatnonzero(near[k])
            found = [measure(pair).min_distance for pair in pairs.tolist()]
            least[k, pairs] = np.array(found) - self.settings.distance
        return least

    def _bounded(self, rows: Array) -> Array:
        """Return what clearances are at least, by spheres around the bodies, (N, pairs) [m]."""
        return self._spheres.gaps(rows) - self.settings.distance

    def clearances(self, q: Array) -> Array:
        """Return the clearances of configurations (N, n) [m], infinity where they are large."""
        if self.empty:
            return np.empty((len(q), 0))
        rows = self._model_order(q)
        least = self._bounded(rows)
        near = least < LARGE_CLEARANCE
        return self._with_walls(rows, np.where(near, self._measure(rows, near, least), np.inf))

    def is_free(self, q: Array) -> bool:
        """Return whether all configurations (N, n) keep the smallest distance."""
        rows = self._model_order(q)
        if self.empty:
            return True
        for part in np.array_split(rows, 1 + len(rows) // FREE_PART):
            least = self._bounded(part)
            least = self._with_walls(part, self._measure(part, least < 0.0, least))
            if (least < 0.0).any():
                return False
        return True

    def _near_clearances(self, q: Array) -> Array:
        """
        Return `clearances`, infinity for pairs that are known to be out of the penalty's reach.

        From call to call a search moves little: bodies that were c apart are still at least
        c − Σ `approach_bounds` |Δq| apart, and only those that may have come near are measured.
        """
        rows = self._model_order(q)
        least = self._bounded(rows)
        if self._seen.shape == rows.shape:
            approach = np.abs(rows - self._seen) @ self.approach_bounds.T
            least = np.maximum(least, self._least - approach)
        near = least < PENALTY_CLEARANCE
        self._seen, self._least = rows, self._measure(rows, near, least)
        return self._with_walls(rows, np.where(near, self._least, np.inf))

    def _with_walls(self, rows: Array, clearances: Array) -> Array:
        """Append the distances of the tool inside its box, where it has one."""
        if not self.boxed:
            return clearances
        found = []
        for row in rows:
            pin.framesForwardKinematics(self.model, self.data, row)
            found.append(self._wall_distances())
        return np.hstack([clearances, np.array(found).reshape(len(rows), 6)])

    def penalty(self, q: Array) -> tuple[float, Array]:
        """
        Sum `h((d₀ − d)/u)` over the clearances d of configurations (N, n).

        h is Huber's function of what is positive, r²/2 up to 1 and r − 1/2 beyond, so that bodies
        that overlap do not outweigh all else; d₀ and u: `PENALTY_CLEARANCE` and `PENALTY_UNIT`.

        Returns
        -------
        The sum, and its derivatives in the clearances (N, pairs + walls).

        """
        if self.empty:
            return 0.0, np.zeros((len(q), 0))
        near = self._near_clearances(q)
        excess = np.maximum(0.0, (PENALTY_CLEARANCE - near) / PENALTY_UNIT)
        value = np.where(excess < 1.0, 0.5 * excess**2, excess - 0.5)
        return float(np.sum(value)), -np.minimum(excess, 1.0) / PENALTY_UNIT

    def gradient(self, q: Array, weights: Array) -> Array:
        """Differentiate `Σ weights ∘ clearances` in the configurations, (N, n)."""
        result = np.zeros_like(q)
        rows = self._model_order(q)
        for k in np.flatnonzero(weights.any(axis=1)).tolist():
            pin.computeJointJacobians(self.model, self.data, rows[k])
            pin.updateGeometryPlacements(self.model, self.data, self.geometry, self.geometry_data)
            pin.updateFramePlacement(self.model, self.data, self.tool)
            for number in np.flatnonzero(weights[k]).tolist():
                result[k, self.order] += weights[k, number] * self._slope(number)
        return result

    def _slope(self, number: int) -> Array:
        if number < self.pairs:
            return self._pair_slope(number)
        side, axis = divmod(number - self.pairs, 3)
        jacobian = pin.getFrameJacobian(self.model, self.data, self.tool, WORLD_ALIGNED)
        return np.asarray((1.0 - 2.0 * side) * jacobian[axis])

    def _pair_slope(self, number: int) -> Array:
        """Return ∂d/∂q = nᵀ (J₂(p₂) − J₁(p₁)), n from the nearest point p₁ to p₂."""
        link = self.geometry.collisionPairs[number]
        result = pin.computeDistance(self.geometry, self.geometry_data, number)
        distance = float(result.min_distance)
        first, second = result.getNearestPoint1(), result.getNearestPoint2()
        normal = (second - first) / distance if abs(distance) > 1e-9 else result.normal
        objects = self.geometry.geometryObjects
        one = self._point_jacobian(objects[link.first].parentJoint, first)
        two = self._point_jacobian(objects[link.second].parentJoint, second)
        return np.asarray(normal @ (two - one))

    def _point_jacobian(self, joint: int, point: Array) -> Array:
        jacobian = pin.getJointJacobian(self.model, self.data, joint, WORLD_ALIGNED)
        arm = point - self.data.oMi[joint].translation
        return jacobian[:3] - pin.skew(arm) @ jacobian[3:]

    def check_path(self, q: Array, time: Array, step: int = 1) -> float | None:
        """
        Raise an error where a motion comes too near; return its smallest distance.

        Every `step`-th sample is measured, and between these as many as are needed to exclude
        that bodies touch there: they approach by no more than Σ `approach_bounds` |Δq|. Contacts
        between neighbouring samples are not seen.

        Parameters
        ----------
        q : (N, n) in small steps
        time : (N,) [s], for the message
        step : samples from one measurement to the next

        Returns
        -------
        The smallest distance between bodies [m], None when there are none.

        Raises
        ------
        CollisionError : names the bodies, the time and the distance

        """
        if self.empty:
            return None
        rows = self._model_order(q)
        path = np.cumsum(np.abs(np.diff(rows, axis=0, prepend=rows[:1])), axis=0)
        measure = cache(lambda k: self._checked_distances(rows[k], float(time[k])))
        intervals = list(pairwise([*range(0, len(rows) - 1, step), len(rows) - 1])) or [(0, 0)]
        smallest = np.inf
        while intervals:
            low, high = intervals.pop()
            both = np.stack([measure(low), measure(high)])
            smallest = min(smallest, float(both.min(initial=np.inf)))
            approach = self.approach_bounds @ (path[high] - path[low])
            safe = both.sum(axis=0) - approach >= 2.0 * self.settings.distance
            if high - low > 1 and not safe.all():
                middle = (low + high) // 2
                intervals += [(low, middle), (middle, high)]
        return smallest if self.pairs else None

    def _checked_distances(self, q: Array, time: float) -> Array:
        """Return the distances of all pairs, (pairs,) [m]; raise an error if one is too small."""
        distances = self._distances(q)
        if (distances < self.settings.distance).any():
            pair = int(np.argmin(distances))
            raise CollisionError(self._collision_message(pair, float(distances[pair]), time))
        walls = self._wall_distances()
        if (walls < 0.0).any():
            raise CollisionError(
                f'the tool leaves its box by {-walls.min():.3f} m at {time:.3f} s: '
                'move the start, enlarge the box or design again'
            )
        return distances

    def _collision_message(self, pair: int, distance: float, time: float) -> str:
        objects, link = self.geometry.geometryObjects, self.geometry.collisionPairs[pair]
        one, two = objects[link.first].name, objects[link.second].name
        return (
            f'{one} and {two} are {distance:.3f} m apart at {time:.3f} s, '
            f'less than {self.settings.distance:g} m: move the start, design again, or name the '
            'pair in excitation.workspace.ignored_pairs'
        )
