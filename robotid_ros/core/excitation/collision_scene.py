"""
Clearances of a robot: to itself, the ground, obstacles, and of its tool to the walls of its box.

Meshes are replaced by their convex hulls, which is on the safe side and quick.
"""

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
import pinocchio as pin

from ...exceptions import CollisionError, ConfigurationError
from ..arrays import Array
from ..model.robot import Robot
from .collision_bodies import collision_model, shapes, tool_frame
from .observation_matrix import KinematicTree
from .settings import Workspace

# Clearances above this need not be measured [m].
LARGE_CLEARANCE = 0.05
# Configurations that are looked at at once: a motion that is not free is often found out early.
FREE_PART = 50
# The penalty begins at this clearance, so that the search turns before bodies touch, and becomes
# linear this much below it [m].
PENALTY_CLEARANCE, PENALTY_UNIT = 0.004, 0.01
# Nearest points that are nearer to each other do not give the direction between them [m].
TOUCHING = 1e-9


def box_corners(settings: Workspace) -> tuple[Array, Array]:
    """Return the corners (3,) [m] of the box of the tool, infinite where it has no wall."""
    lower, upper = np.full((2, 3), [[-np.inf], [np.inf]])
    for name, corner in (('lower', lower), ('upper', upper)):
        values = getattr(settings, name)
        if len(values) not in (0, 3) or np.isnan(values).any():
            raise ConfigurationError(f"'excitation.workspace.{name}' needs three numbers: x, y, z")
        corner[:] = values or corner
    if (lower >= upper).any():
        raise ConfigurationError(
            'excitation.workspace.lower must be below excitation.workspace.upper in x, y and z'
        )
    return lower, upper


def add_tool_box(geometry: Any, model: Any, settings: Workspace) -> None:
    """Add the tool as a point, and the walls of its box: half-spaces that it may touch."""
    frame = model.frames[tool_frame(model, settings.frame)]
    corners = np.stack(box_corners(settings))
    if np.isinf(corners).all():
        return
    point = pin.GeometryObject('tool', frame.parentJoint, frame.placement, shapes.Sphere(0.0))
    number = geometry.addGeometryObject(point)
    for (side, axis), corner in np.ndenumerate(corners):
        if np.isfinite(corner):
            sign, name = 1.0 - 2.0 * side, f'wall {side}{axis} of the tool box'
            wall = shapes.Halfspace(sign * np.eye(3)[axis], sign * corner - settings.distance)
            body = pin.GeometryObject(name, 0, pin.SE3.Identity(), wall)
            geometry.addCollisionPair(pin.CollisionPair(number, geometry.addGeometryObject(body)))


def approach_bounds(
    model: Any, tree: KinematicTree, geometry: Any, spheres: list[tuple[Array, float]]
) -> Array:
    """
    Bound how much nearer two bodies come per unit that each joint moves, (pairs, n) [m/rad, 1].

    The joints between two bodies turn one of them against the other, and it is the same which one
    is taken to turn. The one that turns is in a ball, which the joints before sweep along, and no
    point of that moves faster than it is far from the axis. The smaller of both bounds holds.
    """
    bodies = geometry.geometryObjects
    result = np.zeros((len(geometry.collisionPairs), model.nv))
    for k, pair in enumerate(geometry.collisionPairs):
        ends = pair.first, pair.second
        one, two = (list(model.supports[bodies[end].parentJoint])[1:] for end in ends)
        up, down = ([j for j in x if j not in y] for x, y in ((one, two), (two, one)))
        # Ground has no end; the bounds of the other body hold.
        found = [
            dict(_bounds_along(model, tree, spheres[end], *path))
            for end, path in zip(ends, ((up, down), (down, up)), strict=True)
            if not _is_plane(bodies[end])
        ]
        for joint in (*up, *down):
            result[k, joint - 1] = min(bounds[joint] for bounds in found)
    return result


def _bounds_along(
    model: Any, tree: KinematicTree, ball: tuple[Array, float], up: list[int], down: list[int]
) -> Iterator[tuple[int, float]]:
    """
    Yield the joints of a path, with how fast each moves a ball of a centre in the first frame.

    The path goes by the joints `up` towards the base, then `down`, both listed from the base on.
    """
    centre, radius = ball
    for joint in (*reversed(up), *down):
        place = model.jointPlacements[joint]
        if joint in down:
            centre = place.actInv(centre)
        axis = tree.axes[joint - 1]
        if axis[3:].any():
            # As the joint turns, the ball stays in one about a point of the axis.
            foot = (centre @ axis[3:]) * axis[3:]
            bound = radius = radius + float(np.linalg.norm(centre - foot))
            centre = foot
        else:
            number, bound = model.joints[joint].idx_q, 1.0
            ends = model.lowerPositionLimit[number], model.upperPositionLimit[number]
            radius += float(np.abs(ends).max())
        yield joint, bound
        if joint in up:
            centre = place.act(centre)


def _is_plane(body: Any) -> bool:
    return hasattr(body.geometry, 'n') and hasattr(body.geometry, 'd')


def _sphere(body: Any) -> tuple[Array, float]:
    """Return a sphere around a body: centre in its joint's frame, and radius [m]; 0 of planes."""
    if _is_plane(body):
        return np.zeros(3), 0.0
    body.geometry.computeLocalAABB()
    middle, radius = np.asarray(body.geometry.aabb_center), float(body.geometry.aabb_radius)
    if hasattr(body.geometry, 'points'):
        # The corners of a hull are nearer than those of its box.
        corners = np.asarray(body.geometry.points()) - middle
        radius = min(radius, float(np.linalg.norm(corners, axis=1).max()))
    return np.asarray(body.placement.act(middle)), radius


class CollisionScene:
    """
    Clearances of configurations, with gradients: distances of bodies less the smallest allowed.

    They come in the order of the geometry's collision pairs; those of the tool and the walls of
    its box are the last ones. `notes` are findings, `unchecked` those about what is not checked at
    all, by the names of `accept_unchecked`. Raises ConfigurationError for impossible settings.
    """

    def __init__(self, robot: Robot, settings: Workspace) -> None:
        self.settings, self.order = settings, robot.order
        robot.check_no_mimic_joints('planning a motion')
        self.model: Any = robot.model.copy()
        self.data = self.model.createData()
        self.geometry, self.notes, self.unchecked = collision_model(robot, self.model, settings)
        self.pairs = len(self.geometry.collisionPairs)
        add_tool_box(self.geometry, self.model, settings)
        self.geometry_data = self.geometry.createData()
        # Whether there is nothing to touch.
        self.empty = not len(self.geometry.collisionPairs)
        self._tree, bodies = KinematicTree(self.model), self.geometry.geometryObjects
        spheres = [_sphere(body) for body in bodies]
        self.approach_bounds = approach_bounds(self.model, self._tree, self.geometry, spheres)
        self._centres = np.array([centre for centre, _ in spheres]).reshape(-1, 3)
        self._radii = np.array([radius for _, radius in spheres])
        self._joints = np.array([body.parentJoint for body in bodies], dtype=int)
        pairs = [(pair.first, pair.second) for pair in self.geometry.collisionPairs]
        self._first, self._second = np.array(pairs, dtype=int).reshape(-1, 2).T
        # Pairs whose second body is a half-space, and normal and offset of that.
        self._above = np.array([k for k, (_, b) in enumerate(pairs) if _is_plane(bodies[b])], int)
        planes = [bodies[pairs[k][1]].geometry for k in self._above]
        self._normals = np.array([np.ravel(plane.n) for plane in planes]).reshape(-1, 3)
        self._offsets = np.array([plane.d for plane in planes])
        # How joints move the second body of each pair against the first one.
        links = np.vstack([np.zeros(self._tree.n), self._tree.ancestors])[self._joints]
        self._moving = links[self._second] - links[self._first]

    def _model_order(self, q: Array) -> Array:
        return np.ascontiguousarray(q[:, self.order])

    def _distances(self, q: Array) -> Array:
        """Return the distances of all pairs, negative where they overlap, (pairs,) [m]."""
        pin.computeDistances(self.model, self.data, self.geometry, self.geometry_data, q)
        return np.array([r.min_distance for r in self.geometry_data.distanceResults])

    def _gaps(self, rows: Array) -> Array:
        """Return lower bounds on distances, by spheres around the bodies, (N, pairs) [m]."""
        if self.empty:
            return np.empty((len(rows), 0))
        rotation, translation = self._tree.places(rows)
        base = np.broadcast_to(np.eye(3), (len(rows), 1, 3, 3))
        rotation = np.concatenate([base, rotation], axis=1)[:, self._joints]
        translation = np.concatenate([np.zeros((len(rows), 1, 3)), translation], axis=1)
        turned = (rotation @ self._centres[:, :, None])[..., 0]
        # Coordinate by coordinate, with whole rows of samples: there may be a hundred pairs.
        centres = np.ascontiguousarray((turned + translation[:, self._joints]).transpose(2, 1, 0))
        squares = sum((x[self._first] - x[self._second]) ** 2 for x in centres)
        radii = self._radii[self._first] + self._radii[self._second]
        result: Array = np.sqrt(squares) - radii[:, None]
        low = self._first[self._above]
        heights = np.einsum('xpn,px->pn', centres[:, low], self._normals)
        result[self._above] = heights - (self._offsets + self._radii[low])[:, None]
        return np.ascontiguousarray(result.T)

    def _measured(
        self, rows: Array, places: NDArray[np.intp], pairs: NDArray[np.intp]
    ) -> Iterator[Any]:
        """Yield what Pinocchio finds of pairs; their rows come one after another."""
        scene, placed = (self.geometry, self.geometry_data), -1
        for place, pair in zip(places.tolist(), pairs.tolist(), strict=True):
            if place != placed:
                pin.updateGeometryPlacements(self.model, self.data, *scene, rows[place])
                placed = place
            yield pin.computeDistance(*scene, pair)

    def _bounded(self, rows: Array, largest: float) -> tuple[Array, NDArray[np.bool_]]:
        """Return least clearances (N, pairs) [m], measured where they may be below the largest."""
        least = self._gaps(rows) - self.settings.distance
        near = least < largest
        found = [result.min_distance for result in self._measured(rows, *np.nonzero(near))]
        least[near] = np.array(found) - self.settings.distance
        return least, near

    def clearances(self, q: Array, largest: float = LARGE_CLEARANCE) -> Array:
        """Return the clearances of configurations (N, n) [m], infinity where they are larger."""
        least, near = self._bounded(self._model_order(q), largest)
        return np.where(near, least, np.inf)

    def is_free(self, q: Array) -> bool:
        """Return whether all configurations (N, n) keep the smallest distance."""
        parts = np.array_split(self._model_order(q), 1 + len(q) // FREE_PART)
        return all((self._bounded(part, 0.0)[0] >= 0.0).all() for part in parts)

    def penalty(self, q: Array) -> tuple[float, Array]:
        """
        Sum `h((d₀ − d)/u)` over the clearances d of configurations (N, n).

        h is Huber's function of what is positive, r²/2 up to 1 and r − 1/2 beyond, so that bodies
        that overlap do not outweigh all else; d₀ and u: `PENALTY_CLEARANCE` and `PENALTY_UNIT`.
        Its derivatives in the clearances (N, pairs) are returned too.
        """
        near = self.clearances(q, PENALTY_CLEARANCE)
        excess = np.maximum(0.0, (PENALTY_CLEARANCE - near) / PENALTY_UNIT)
        value = np.where(excess < 1.0, 0.5 * excess**2, excess - 0.5)
        return float(np.sum(value)), -np.minimum(excess, 1.0) / PENALTY_UNIT

    def gradient(self, q: Array, weights: Array) -> Array:
        """
        Differentiate `Σ weights ∘ clearances` in the configurations, (N, n).

        A distance changes by `nᵀ (J₂(p) − J₁(p))`, n from the nearest point of one body to that of
        the other, p any point on their line.
        """
        rows, (places, numbers) = self._model_order(q), np.nonzero(weights)
        if not len(places):
            return np.zeros_like(q)
        normals, points = np.empty((2, len(numbers), 3))
        for k, nearest in enumerate(self._measured(rows, places, numbers)):
            points[k], distance = nearest.getNearestPoint1(), nearest.min_distance
            apart = abs(distance) > TOUCHING
            way = (nearest.getNearestPoint2() - points[k]) / distance if apart else nearest.normal
            normals[k] = way
        screws = self._tree.screws(*self._tree.places(rows))[places]
        forces = np.concatenate([normals, np.cross(points, normals)], axis=1)
        slopes = (screws @ forces[:, :, None])[..., 0] * self._moving[numbers]
        found, result = np.zeros_like(rows), np.empty_like(rows)
        np.add.at(found, places, weights[places, numbers][:, None] * slopes)
        result[:, self.order] = found
        return result

    def check_path(self, q: Array, time: Array, step: int = 1) -> float | None:
        """
        Return the smallest distance between bodies along a motion (N, n) [m], None without any.

        Every `step`-th sample is measured, and between these as many as are needed to exclude
        that bodies touch there: they approach by no more than Σ `approach_bounds` |Δq|. Contacts
        between neighbouring samples are not seen. Raises CollisionError where bodies come too
        near, with their names, the time and the distance.
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
            smallest = min(smallest, float(both[:, : self.pairs].min(initial=np.inf)))
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
            closest = int(np.argmin(distances))
            bodies, pair = self.geometry.geometryObjects, self.geometry.collisionPairs[closest]
            first, second = bodies[pair.first].name, bodies[pair.second].name
            if closest >= self.pairs:
                beyond = self.settings.distance - distances[closest]
                raise CollisionError(
                    f'the tool leaves its box by {beyond:.3f} m at {time:.3f} s: move the start, '
                    'enlarge the box or design again'
                )
            raise CollisionError(
                f'{first} and {second} are {distances[closest]:.3f} m apart at {time:.3f} s, less '
                f'than {self.settings.distance:g} m: move the start, design again, or name the '
                'pair in excitation.workspace.ignored_pairs'
            )
        return distances
