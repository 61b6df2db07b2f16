"""Where a robot may go, and where it starts there."""

from collections.abc import Iterator
import dataclasses

import numpy as np

from ...exceptions import ConfigurationError, TrajectoryError
from ..arrays import Array
from ..excitation.collision_scene import CollisionScene, random_configurations
from ..excitation.limits import apply_margins, motion_limits
from ..excitation.settings import ExcitationSettings, Workspace
from ..finding_codes import finding
from ..findings import Finding
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
DECIMALS = 3  # of a pose, which stands in a file
DISTANCE_COST = 0.1  # what the distance from the middle costs, in shares of free moves
# Distances between bodies that are tried [m], and the room of a start that is enough.
DISTANCES, ENOUGH_ROOM = (0.02, 0.01, 0.005), 0.6
# A base this much below the root frame still stands on its ground: feet and bolts of a plate [m].
BASE_DEPTH = 0.05
# Links with one between them that touch in so many of so many poses over their whole ranges have
# shapes that are too fat: no maker gives ranges that an arm can hardly use.
OVERLAPPING, POSES = 0.3, 100


def find_start(
    robot: Robot, settings: ExcitationSettings, scene: CollisionScene | None = None
) -> tuple[Array, float]:
    """
    Find the pose with the most room, of those that are free and that the drives can hold.

    The same description gives the same pose: draws are seeded and begin at the middle of the
    ranges (0 where a joint has none). Returns the pose (n,), and its room: the share of moves from
    there that are free. TrajectoryError: no pose is free, or none can be held.
    """
    scene = scene or CollisionScene(robot, settings.workspace)
    limits = apply_margins(motion_limits(robot, settings), settings.margins)
    limited = np.isfinite(robot.limits.lower) & np.isfinite(robot.limits.upper)
    middle = np.where(limited, 0.5 * (limits.lower + limits.upper), 0.0)
    width = WIDEST * 0.5 * (limits.upper - limits.lower)
    width = np.where(robot.prismatic, width, np.minimum(width, WIDEST_ANGLE))
    draws = np.random.default_rng(0).uniform(-1.0, 1.0, (DRAWS, robot.n))
    draws *= np.linspace(0.0, 1.0, DRAWS)[:, None]
    poses = np.round(middle + width * draws, DECIMALS)
    shares = _effort_shares(robot, limits, poses)
    largest = shares.max(axis=1)
    held = largest <= 1.0
    if not held.any():
        joint = robot.joints[int(np.argmax((shares > 1.0).mean(axis=0)))]
        raise TrajectoryError(
            f'the effort limit of {joint} cannot hold the arm in any of {len(shares)} poses: '
            'correct it, or the masses of the description, or leave the joint out (robot.joints)'
        )
    for most in (HELD_SHARE, 1.0):
        asked = np.flatnonzero(largest <= most)
        free = np.array([k for k in asked if scene.is_free(poses[k : k + 1])], dtype=int)
        if free.size:
            break
    else:
        closest = np.array([scene.clearances(q[None])[0] for q in poses[held][:MEASURED]])
        pair = scene.geometry.collisionPairs[int(np.argmax((closest < 0.0).mean(axis=0)))]
        names = [str(scene.geometry.geometryObjects[k].name) for k in (pair.first, pair.second)]
        raise TrajectoryError(
            f'no pose is free of collisions: {" and ".join(names)} touch in most of them; correct '
            'the collision geometry of the description'
        )
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


def _room(robot: Robot, scene: CollisionScene, limits: Limits, pose: Array, width: Array) -> float:
    """Return the share of random moves of all joints that end where the robot may be."""
    moves = np.random.default_rng(1).uniform(-1.0, 1.0, (MOVES, robot.n)) * width
    ends = pose + np.concatenate([reach * moves for reach in REACHES])
    held = np.asarray(_effort_shares(robot, limits, ends).max(axis=1) <= 1.0)
    free = (ok and scene.is_free(q[None]) for ok, q in zip(held, ends, strict=True))
    return sum(free) / len(ends)


def place_robot(
    robot: Robot, settings: ExcitationSettings
) -> tuple[ExcitationSettings, tuple[Finding, ...]]:
    """
    Complete the workspace and the start: ground, distance between bodies, pose.

    The distance is the largest of `DISTANCES` that leaves room to move: links of some arms pass
    each other more closely than others keep from the table. Where no pose is free, shapes of
    links with one between them that overlap in many poses are not checked, or the ground is not.
    TrajectoryError: no pose is free even so, or none can be held.
    """
    ground: float | None = ground_height(robot, settings.workspace)
    notes, reason = tuple[Finding, ...](), None
    try:
        CollisionScene(robot, dataclasses.replace(settings.workspace, ground=ground))
    except ConfigurationError as error:  # links are below it in every pose
        ground, notes = None, (finding('arm_hangs', reason=str(error)),)
    standing = dataclasses.replace(settings.workspace, ground=ground)

    def ever_looser() -> Iterator[tuple[Workspace, tuple[Finding, ...]]]:
        """Give the workspace, then one without what may be wrong about it, with a finding."""
        yield standing, ()
        if pairs := overlapping_pairs(robot, standing):
            found = finding('overlapping', pairs=pairs)
            yield dataclasses.replace(standing, ignored_pairs=pairs), (found,)
        if ground is not None:
            found = finding('no_room_above_ground', height=ground)
            yield dataclasses.replace(standing, ground=None), (found,)

    for workspace, loosened in ever_looser():
        try:
            placed, more = _roomiest(robot, dataclasses.replace(settings, workspace=workspace))
        except TrajectoryError as error:
            reason = reason or error
            continue
        return placed, (*notes, *more, *loosened)
    assert reason is not None
    raise reason


def _roomiest(
    robot: Robot, settings: ExcitationSettings
) -> tuple[ExcitationSettings, tuple[Finding, ...]]:
    """Return the settings with distance and start, and the notes on what is not checked."""
    found = list[tuple[float, ExcitationSettings, tuple[Finding, ...]]]()
    for distance in DISTANCES:
        workspace = dataclasses.replace(settings.workspace, distance=distance)
        scene = CollisionScene(robot, workspace)
        try:
            start, room = find_start(robot, settings, scene)
        except TrajectoryError:
            if distance == min(DISTANCES) and not found:
                raise
            continue
        placed = dataclasses.replace(settings, start=tuple(start.tolist()), workspace=workspace)
        found.append((room, placed, scene.notes))
        if room >= ENOUGH_ROOM:
            break
    return max(found, key=lambda each: each[0])[1:]


def ground_height(robot: Robot, workspace: Workspace) -> float:
    """
    Return the height of the ground under what does not move [m], 0 where nothing is below.

    An arm is bolted down at its root frame; a robot's own may be far above its feet or pedestal.
    """
    alone = dataclasses.replace(workspace, ground=None, lower=(), upper=())
    scene = CollisionScene(robot, alone)
    heights = [0.0]
    for body in scene.geometry.geometryObjects:
        if body.parentJoint == 0:  # lowest point of the box of a body that is fixed to the base
            body.geometry.computeLocalAABB()
            box = body.geometry.aabb_local
            rotation, place = body.placement.rotation, body.placement.translation
            centre, half = 0.5 * (box.min_ + box.max_), 0.5 * (box.max_ - box.min_)
            heights.append(float(place[2] + rotation[2] @ centre - np.abs(rotation[2]) @ half))
    lowest = min(heights)
    return round(lowest, 3) if lowest < -BASE_DEPTH else 0.0


def overlapping_pairs(robot: Robot, workspace: Workspace) -> tuple[str, ...]:
    """Return the pairs 'link_a/link_b', with one link between them, whose shapes overlap."""
    near = min(DISTANCES)
    alone = dataclasses.replace(workspace, distance=near, ground=None, lower=(), upper=())
    scene = CollisionScene(robot, alone)
    if not scene.pairs:
        return ()
    poses = random_configurations(robot, POSES)
    touching = (scene.clearances(poses) < 0.0).mean(axis=0)
    parents, bodies = list(robot.model.parents), scene.geometry.geometryObjects
    found = []
    for pair, share in zip(scene.geometry.collisionPairs, touching, strict=True):
        first, second = sorted(
            (bodies[pair.first], bodies[pair.second]), key=lambda body: int(body.parentJoint)
        )
        if share > OVERLAPPING and parents[parents[second.parentJoint]] == first.parentJoint:
            found.append('/'.join(body.name.rsplit('_', 1)[0] for body in (first, second)))
    return tuple(dict.fromkeys(found))
