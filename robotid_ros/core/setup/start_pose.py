"""Where a session starts: a pose that is free, can be held, and leaves room to move."""

import numpy as np
import numpy.typing as npt

from ...exceptions import TrajectoryError
from ..arrays import Array
from ..excitation.collision_scene import CollisionScene
from ..excitation.limits import apply_margins, motion_limits
from ..excitation.settings import ExcitationSettings
from ..model.dynamics import inverse_dynamics
from ..model.robot import Limits, Robot

# Poses that are looked at, from the middle of the ranges outwards, and those of them whose room is
# measured: enough for seven joints beside a torso, a second or so.
DRAWS, MEASURED = 2000, 100
# Farthest from the middle of a range: its share, and the angle for wide ones [rad].
WIDEST, WIDEST_ANGLE = 0.8, np.pi / 2
# Share of the efforts' limits that gravity may take there, if such a pose is free: a motion turns
# round about its start, and one that is held with the last of a drive can only be left one way.
HELD_SHARE = 0.75
# Moves whose freedom is the room of a pose, and how far they reach, as shares of that width.
MOVES, REACHES = 30, (0.3, 0.6)
# Of a pose, which stands in a file.
DECIMALS = 3
# What the distance from the middle costs, in shares of free moves.
DISTANCE_COST = 0.1


def find_start(
    robot: Robot, settings: ExcitationSettings, scene: CollisionScene | None = None
) -> tuple[Array, float]:
    """
    Find the pose with the most room, of those that are free and that the drives can hold.

    The same description gives the same pose: draws are seeded and begin at the middle of the
    ranges (0 where a joint has none).

    Returns
    -------
    The pose (n,), and its room: the share of moves from there that are free.

    Raises
    ------
    TrajectoryError : no pose is free, or none can be held

    """
    scene = scene or CollisionScene(robot, settings.workspace)
    limits = apply_margins(motion_limits(robot, settings), settings.margins)
    middle, width = _ranges(robot, limits)
    draws = np.random.default_rng(0).uniform(-1.0, 1.0, (DRAWS, robot.n))
    draws *= np.linspace(0.0, 1.0, DRAWS)[:, None]
    poses = np.round(middle + width * draws, DECIMALS)
    shares = _effort_shares(robot, limits, poses)
    largest = shares.max(axis=1)
    held = largest <= 1.0
    if not held.any():
        raise TrajectoryError(_weakness(robot, shares))
    free = _free(scene, poses, largest <= HELD_SHARE)
    if not free.size:
        free = _free(scene, poses, held)
    if not free.size:
        raise TrajectoryError(_collision_text(scene, poses[held][:MEASURED]))
    free = free[:: -(-len(free) // MEASURED)]
    costs = DISTANCE_COST * np.abs(draws[free]).mean(axis=1)
    room = np.array([_room(robot, scene, limits, poses[k], width) for k in free])
    best = int(np.argmax(room - costs))
    return np.asarray(poses[free[best]]), float(room[best])


def _effort_shares(robot: Robot, limits: Limits, poses: Array) -> Array:
    """Return the efforts at rest over their limits, infinite outside of the joints', (N, n)."""
    still = np.zeros_like(poses)
    effort = np.abs(inverse_dynamics(robot, robot.prior, poses, still, still))
    inside = (poses >= limits.lower) & (poses <= limits.upper)
    return np.where(inside, effort / limits.effort, np.inf)


def _free(scene: CollisionScene, poses: Array, among: npt.NDArray[np.bool_]) -> Array:
    """Return the numbers of the poses (N, n) that are free, of those `among` which are asked."""
    asked = np.flatnonzero(among)
    return np.array([k for k in asked if scene.is_free(poses[k : k + 1])], dtype=int)


def _weakness(robot: Robot, shares: Array) -> str:
    joint = robot.joints[int(np.argmax((shares > 1.0).mean(axis=0)))]
    return (
        f'the effort limit of {joint} cannot hold the arm in any of {len(shares)} poses: correct '
        'it, or the masses of the description, or leave the joint out (robot.joints)'
    )


def _ranges(robot: Robot, limits: Limits) -> tuple[Array, Array]:
    """Return the middle of each joint's range and how far poses are drawn from it, (n,)."""
    limited = np.isfinite(robot.limits.lower) & np.isfinite(robot.limits.upper)
    middle = np.where(limited, 0.5 * (limits.lower + limits.upper), 0.0)
    width = WIDEST * 0.5 * (limits.upper - limits.lower)
    return middle, np.where(robot.prismatic, width, np.minimum(width, WIDEST_ANGLE))


def _room(robot: Robot, scene: CollisionScene, limits: Limits, pose: Array, width: Array) -> float:
    """Return the share of random moves of all joints that end where the robot may be."""
    moves = np.random.default_rng(1).uniform(-1.0, 1.0, (MOVES, robot.n)) * width
    ends = pose + np.concatenate([reach * moves for reach in REACHES])
    held = np.asarray(_effort_shares(robot, limits, ends).max(axis=1) <= 1.0)
    free = (ok and scene.is_free(q[None]) for ok, q in zip(held, ends, strict=True))
    return sum(free) / len(ends)


def _collision_text(scene: CollisionScene, poses: Array) -> str:
    closest = np.array([scene.clearances(q[None])[0] for q in poses])
    pair = scene.geometry.collisionPairs[int(np.argmax((closest < 0.0).mean(axis=0)))]
    names = [str(scene.geometry.geometryObjects[k].name) for k in (pair.first, pair.second)]
    return (
        f'no pose is free of collisions: {" and ".join(names)} touch in most of them; correct the '
        'collision geometry of the description'
    )
