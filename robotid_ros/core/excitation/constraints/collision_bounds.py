"""Bounds on distances of bodies: how near they are, and how much nearer they come."""

from typing import Any

import numpy as np

from ...arrays import Array
from ..batch_kinematics import KinematicTree


def approach_bounds(model: Any, geometry: Any) -> Array:
    """
    Bound how much nearer two bodies come per unit that each joint moves, (pairs, n) [m/rad, 1].

    The joints between two bodies turn one of them against the other; no point of it is farther
    from the axis than the links in between and the strokes of prismatic joints are long.
    """
    result = np.zeros((len(geometry.collisionPairs), model.nv))
    for k, pair in enumerate(geometry.collisionPairs):
        bodies = [geometry.geometryObjects[i] for i in (pair.first, pair.second)]
        chains = [list(model.supports[body.parentJoint])[1:] for body in bodies]
        for body, chain, other in zip(bodies, chains, chains[::-1], strict=True):
            between = [j for j in chain if j not in other]
            # Ground has no radius, and no joint that moves it.
            reach = _radius(body) if between else 0.0
            for joint in reversed(between):
                prismatic = 'P' in model.joints[joint].shortname().removeprefix('JointModel')
                place = model.joints[joint].idx_q
                ends = model.lowerPositionLimit[place], model.upperPositionLimit[place]
                reach += float(np.abs(ends).max()) if prismatic else 0.0
                result[k, joint - 1] = 1.0 if prismatic else reach
                reach += float(np.linalg.norm(model.jointPlacements[joint].translation))
    return result


class BoundingSpheres:
    """
    Spheres around the bodies of a geometry: bounds on the distances of all pairs at once.

    Parameters
    ----------
    model, geometry : Pinocchio's; half-spaces are the second bodies of their pairs

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
        # Normal and offset of a half-space, not a number for other bodies.
        self._planes = np.full((len(bodies), 4), np.nan)
        for k, body in enumerate(bodies):
            if _is_plane(body):
                self._planes[k] = *np.ravel(body.geometry.n), body.geometry.d

    def gaps(self, q: Array) -> Array:
        """Return lower bounds on distances at q (N, n), in the model's order, (N, pairs) [m]."""
        rotation, translation = self._tree.places(q)
        count = len(q)
        rotation = np.concatenate([np.broadcast_to(np.eye(3), (count, 1, 3, 3)), rotation], axis=1)
        translation = np.concatenate([np.zeros((count, 1, 3)), translation], axis=1)
        turned = (rotation[:, self._joints] @ self._centres[:, :, None])[..., 0]
        centres = turned + translation[:, self._joints]
        one, other = centres[:, self._first], centres[:, self._second]
        apart: Array = np.linalg.norm(one - other, axis=2) - self._radii[self._second]
        planes = self._planes[self._second]
        above = np.sum(one * planes[:, :3], axis=2) - planes[:, 3]
        return np.where(np.isnan(above), apart, above) - self._radii[self._first]


def _is_plane(body: Any) -> bool:
    return hasattr(body.geometry, 'n') and hasattr(body.geometry, 'd')


def _sphere(body: Any) -> tuple[Array, float]:
    """Return a sphere around a body: centre in its joint's frame, and radius [m]; 0 of planes."""
    if _is_plane(body):
        return np.zeros(3), 0.0
    body.geometry.computeLocalAABB()
    centre = np.asarray(body.placement.act(body.geometry.aabb_center))
    return centre, float(body.geometry.aabb_radius)


def _radius(body: Any) -> float:
    """Return the largest distance of a body's points from its joint's origin [m]."""
    centre, radius = _sphere(body)
    return float(np.linalg.norm(centre)) + radius
