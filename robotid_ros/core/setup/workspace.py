"""Where a robot may go: ground, distance between bodies, pairs that overlap; its start there."""

from collections.abc import Iterator
import dataclasses

import numpy as np
import pinocchio as pin

from ...exceptions import ConfigurationError, TrajectoryError
from ..excitation.collision_scene import CollisionScene
from ..excitation.settings import ExcitationSettings, Workspace
from ..model.robot import Robot
from .start_pose import find_start

# Distances between bodies that are tried [m], and the room of a start that is enough.
DISTANCES, ENOUGH_ROOM = (0.02, 0.01, 0.005), 0.6
# A base this much below the root frame still stands on its ground: feet and bolts of a plate [m].
BASE_DEPTH = 0.05
# Links with one between them that touch in so many of so many poses over their whole ranges have
# shapes that are too fat: no maker gives ranges that an arm can hardly use.
OVERLAPPING, POSES = 0.3, 100


def place_robot(
    robot: Robot, settings: ExcitationSettings
) -> tuple[ExcitationSettings, tuple[str, ...]]:
    """
    Complete the workspace and the start: ground, distance between bodies, pose.

    The distance is the largest of `DISTANCES` that leaves room to move: links of some arms pass
    each other more closely than others keep from the table. Where no pose is free, shapes of
    links with one between them that overlap in many poses are not checked, or the ground is not.

    Returns
    -------
    The settings, and sentences about what a user should look at.

    Raises
    ------
    TrajectoryError : no pose is free, or none can be held

    """
    ground, notes = _ground(robot, settings.workspace)
    standing = dataclasses.replace(settings.workspace, ground=ground)
    reason = None
    for workspace, loosened in _ever_looser(robot, standing):
        try:
            placed, more = _roomiest(robot, dataclasses.replace(settings, workspace=workspace))
        except TrajectoryError as error:
            reason = reason or error
            continue
        return placed, (*notes, *more, *loosened)
    assert reason is not None
    raise reason


def _ever_looser(
    robot: Robot, workspace: Workspace
) -> Iterator[tuple[Workspace, tuple[str, ...]]]:
    """Give the workspace, then one without what may be wrong about it, with a sentence on that."""
    yield workspace, ()
    if pairs := overlapping_pairs(robot, workspace):
        text = f'overlap in many poses by their shapes, not checked: {", ".join(pairs)}'
        yield dataclasses.replace(workspace, ignored_pairs=pairs), (text,)
    if workspace.ground is not None:
        text = f'no ground is set: no pose is free above {workspace.ground:g} m, the arm may hang'
        yield dataclasses.replace(workspace, ground=None), (text,)


def _roomiest(
    robot: Robot, settings: ExcitationSettings
) -> tuple[ExcitationSettings, tuple[str, ...]]:
    """Return the settings with distance and start, and the notes on what is not checked."""
    found, reason = [], TrajectoryError('')
    for distance in DISTANCES:
        workspace = dataclasses.replace(settings.workspace, distance=distance)
        scene = CollisionScene(robot, workspace)
        try:
            start, room = find_start(robot, settings, scene)
        except TrajectoryError as error:
            reason = error
            continue
        found.append((room, start, workspace, scene.notes))
        if room >= ENOUGH_ROOM:
            break
    if not found:
        raise reason
    _, start, workspace, notes = max(found, key=lambda each: each[0])
    placed = dataclasses.replace(settings, start=tuple(start.tolist()), workspace=workspace)
    return placed, notes


def _ground(robot: Robot, workspace: Workspace) -> tuple[float | None, tuple[str, ...]]:
    """Return the height of the ground; None where links are below it in every pose."""
    height = ground_height(robot, workspace)
    try:
        CollisionScene(robot, dataclasses.replace(workspace, ground=height))
    except ConfigurationError as error:
        return None, (f'no ground is set, the arm seems to hang ({error})',)
    return height, ()


def ground_height(robot: Robot, workspace: Workspace) -> float:
    """
    Return the height of the ground under what does not move [m], 0 where nothing is below.

    The root frame of an arm is where it is bolted down; that of a robot with a body of its own may
    be far above its feet or its pedestal.
    """
    scene = CollisionScene(robot, dataclasses.replace(workspace, ground=None))
    lowest = min(
        (_lowest(body) for body in scene.geometry.geometryObjects if body.parentJoint == 0),
        default=0.0,
    )
    return round(lowest, 3) if lowest < -BASE_DEPTH else 0.0


def _lowest(body: pin.GeometryObject) -> float:
    """Return the lowest height of a body that is fixed to the base, by its box."""
    body.geometry.computeLocalAABB()
    box = body.geometry.aabb_local
    rotation, place = body.placement.rotation, body.placement.translation
    centre, half = 0.5 * (box.min_ + box.max_), 0.5 * (box.max_ - box.min_)
    return float(place[2] + rotation[2] @ centre - np.abs(rotation[2]) @ half)


def overlapping_pairs(robot: Robot, workspace: Workspace) -> tuple[str, ...]:
    """Return the pairs 'link_a/link_b', with one link between them, whose shapes overlap."""
    near = dataclasses.replace(workspace, distance=min(DISTANCES), ground=None)
    scene = CollisionScene(robot, near)
    if not scene.pairs:
        return ()
    lower, upper = (np.clip(x, -np.pi, np.pi) for x in (robot.limits.lower, robot.limits.upper))
    poses = np.random.default_rng(0).uniform(lower, upper, (POSES, robot.n))
    touching = (scene.clearances(poses)[:, : scene.pairs] < 0.0).mean(axis=0)
    parents, bodies = list(robot.model.parents), scene.geometry.geometryObjects
    found = []
    for pair, share in zip(scene.geometry.collisionPairs, touching, strict=True):
        first, second = sorted((bodies[pair.first], bodies[pair.second]), key=_joint)
        if share > OVERLAPPING and parents[parents[_joint(second)]] == _joint(first):
            found.append('/'.join(body.name.rsplit('_', 1)[0] for body in (first, second)))
    return tuple(dict.fromkeys(found))


def _joint(body: pin.GeometryObject) -> int:
    return int(body.parentJoint)
