"""Pairs of bodies that keep their distance whatever the joints between them do."""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
import pinocchio as pin

from ...arrays import Array
from ..batch_kinematics import KinematicTree

# Pairs with more joints between them have too many configurations to go through.
MAX_JOINTS = 2
# Configurations at most: wrists of arms that part by a few millimetres need the most, 10 µs each.
MAX_CELLS = 20_000


def keeps_distance(
    distance_at: Callable[[Array], float], middle: Array, half: Array, bounds: Array, least: float
) -> bool:
    """
    Prove that a distance is never below a least one, by branch and bound.

    What is d in the middle of a cell is at least d − Σ bounds ∘ half in all of it. Cells where
    that is not enough are cut in three, and the part in the middle is measured already.

    Parameters
    ----------
    distance_at : of a configuration (n,)
    middle, half : (n,) of the range of configurations
    bounds : (n,) how fast the distance changes with each joint
    least : to be kept

    Returns
    -------
    Whether it is proven; not within `MAX_CELLS` measurements counts as no.

    """
    cells, measured = deque([(middle, half, distance_at(middle))]), 1
    while cells:
        middle, half, distance = cells.popleft()
        reach = bounds * half
        if distance < least or measured > MAX_CELLS:
            return False
        if distance - reach.sum() >= least:
            continue
        cut = int(np.argmax(reach))
        half = half.copy()
        half[cut] /= 3.0
        step = np.zeros_like(half)
        step[cut] = 2.0 * half[cut]
        cells.append((middle, half, distance))
        cells += [(x, half, distance_at(x)) for x in (middle - step, middle + step)]
        measured += 2
    return True


def always_apart(
    model: Any,
    geometry: Any,
    candidates: NDArray[np.intp],
    bounds: Array,
    limits: tuple[Array, Array],
    least: float,
) -> NDArray[np.bool_]:
    """
    Find pairs of bodies that are never nearer than `least`, as far as that is soon proven.

    Parameters
    ----------
    model, geometry : Pinocchio's
    candidates : numbers of the pairs to look at
    bounds : (pairs, n) how fast pairs approach with each joint
    limits : (n,) lower and upper ones of the joints, in the model's order
    least : distance [m]

    Returns
    -------
    (pairs,) whether it is proven of each.

    """
    data, places = model.createData(), geometry.createData()
    lower, upper = limits
    # A turn is all that a joint without limits has.
    turns = KinematicTree(model).axes[:, 3:].any(axis=1) & (upper - lower > 2.0 * np.pi)
    lower, upper = np.where(turns, -np.pi, lower), np.where(turns, np.pi, upper)
    result = np.zeros(len(bounds), dtype=bool)
    for pair in candidates.tolist():
        joints = np.flatnonzero(bounds[pair])
        ends = np.stack([lower[joints], upper[joints]])
        if len(joints) > MAX_JOINTS or not np.isfinite(ends).all():
            continue
        q = pin.neutral(model)

        def distance_at(x: Array, q: Array = q, joints: Any = joints, pair: int = pair) -> float:
            q[joints] = x
            pin.updateGeometryPlacements(model, data, geometry, places, q)
            return float(pin.computeDistance(geometry, places, pair).min_distance)

        middle, half = 0.5 * (ends[0] + ends[1]), 0.5 * (ends[1] - ends[0])
        result[pair] = keeps_distance(distance_at, middle, half, bounds[pair, joints], least)
    return result
