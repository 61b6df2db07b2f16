"""Bounds on distances of bodies: how near they are, and how much nearer they come."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..arrays import Array
from .batch_kinematics import KinematicTree


def approach_bounds(model: Any, geometry: Any) -> Array:
    """
    Bound how much nearer two bodies come per unit that each joint moves, (pairs, n) [m/rad, 1].

    The joints between two bodies turn one of them against the other, and it is the same which one
    is taken to turn. The one that turns is in a ball, which the joints before sweep along, and no
    point of that moves faster than it is far from the axis. The smaller of both bounds holds.
    """
    tree, bodies = KinematicTree(model), geometry.geometryObjects
    result = np.zeros((len(geometry.collisionPairs), model.nv))
    for k, pair in enumerate(geometry.collisionPairs):
        ends = bodies[pair.first], bodies[pair.second]
        one, two = (list(model.supports[body.parentJoint])[1:] for body in ends)
        up, down = ([j for j in x if j not in y] for x, y in ((one, two), (two, one)))
        # Ground has no end; the bounds of the other body hold.
        found = [
            dict(_bounds_along(model, tree, _sphere(body), *path))
            for body, path in zip(ends, ((up, down), (down, up)), strict=True)
            if not _is_plane(body)
        ]
        for joint in (*up, *down):
            result[k, joint - 1] = min(bounds[joint] for bounds in found)
    return result


def _bounds_along(
    model: Any, tree: KinematicTree, ball: tuple[Array, float], up: list[int], down: list[int]
) -> Iterator[tuple[int, float]]:
    """
    Yield the joints of a path with how fast each moves a ball (centre in the first frame, radius).

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


class BoundingSpheres:
    """
    Spheres around the bodies of a geometry: bounds on the distances of all pairs at once.

    Half-spaces are the second bodies of their pairs.
    """

    def __init__(self, model: Any, geometry: Any) -> None:
        self._tree = KinematicTree(model)
        bodies = geometry.geometryObjects
        self._joints = np.array([body.parentJoint for body in bodies], dtype=int)
        spheres = [_sphere(body) for body in bodies]
        self._centres = np.array([centre for centre, _ in spheres]).reshape(-1, 3)
        self._radii = np.array([radius for _, radius in spheres])
        pairs = [(pair.first, pair.second) for pair in geometry.collisionPairs]
        self._first, self._second = np.array(pairs, dtype=int).reshape(-1, 2).T
        # Pairs with a half-space, and normal and offset of that.
        self._above = np.array([k for k, (_, b) in enumerate(pairs) if _is_plane(bodies[b])], int)
        planes = [bodies[pairs[k][1]].geometry for k in self._above]
        self._normals = np.array([np.ravel(plane.n) for plane in planes]).reshape(-1, 3)
        self._offsets = np.array([plane.d for plane in planes])

    def gaps(self, q: Array) -> Array:
        """Return lower bounds on distances at q (N, n), in the model's order, (N, pairs) [m]."""
        rotation, translation = self._tree.places(q)
        count = len(q)
        rotation = np.concatenate([np.broadcast_to(np.eye(3), (count, 1, 3, 3)), rotation], axis=1)
        translation = np.concatenate([np.zeros((count, 1, 3)), translation], axis=1)
        turned = (rotation[:, self._joints] @ self._centres[:, :, None])[..., 0]
        # Coordinate by coordinate, with whole rows of samples: there may be a hundred pairs.
        centres = np.ascontiguousarray((turned + translation[:, self._joints]).transpose(2, 1, 0))
        squares = sum((x[self._first] - x[self._second]) ** 2 for x in centres)
        radii = self._radii[self._first] + self._radii[self._second]
        result: Array = np.sqrt(squares) - radii[:, None]
        low = self._first[self._above]
        heights = np.einsum('xpn,px->pn', centres[:, low], self._normals)
        result[self._above] = heights - (self._offsets + self._radii[low])[:, None]
        return np.ascontiguousarray(result.T)


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
