"""Bounds on how much nearer the bodies of a pair come when joints move."""

from typing import Any

import numpy as np

from ...arrays import Array


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


def _radius(body: Any) -> float:
    """Return the largest distance of a body's points from its joint's origin [m]."""
    body.geometry.computeLocalAABB()
    centre = body.placement.act(body.geometry.aabb_center)
    return float(np.linalg.norm(centre) + body.geometry.aabb_radius)
