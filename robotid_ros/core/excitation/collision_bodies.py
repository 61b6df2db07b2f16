"""The bodies of a scene: collision geometry of the URDF, ground, obstacles; and their pairs."""

from itertools import combinations, compress
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from ...exceptions import ConfigurationError, reason_of, UnknownNameError
from ..arrays import Array
from ..finding_codes import finding
from ..findings import Finding
from ..model.robot import Robot
from ..model.urdf_parsing import joints_without_range
from .settings import Workspace

# Pinocchio 3 has the shapes under their library's former name.
shapes = getattr(pin, 'coal', None) or pin.hppfcl
GROUND = 'ground'
# How many numbers the size of an obstacle has.
SIZES = {'box': 3, 'sphere': 1, 'cylinder': 2}
# Random configurations: pairs that are too near in each of them are taken to be always so.
DRAWS = 64
# Radius of the balls at the joints of a robot without collision geometry [m].
BALL_RADIUS = 0.01


def tool_frame(model: Any, name: str) -> int:
    """Return the number of a frame, without a name the last body's; or an `UnknownNameError`."""
    if not name:
        return len(model.frames) - 1
    if not model.existFrame(name):
        raise UnknownNameError('frame', name, tuple(f.name for f in model.frames))
    # Links may have names of joints.
    body = int(model.getFrameId(name, pin.FrameType.BODY))
    return body if body < len(model.frames) else int(model.getFrameId(name))


def collision_model(
    robot: Robot, model: Any, settings: Workspace
) -> tuple[Any, tuple[Finding, ...], dict[str, Finding]]:
    """
    Build Pinocchio's geometry with the pairs to keep apart, findings, and what is unchecked.

    Neighbours in the chain are left out, pairs that no configuration can part, and for the ground
    the first two links. Raises ConfigurationError for an obstacle of the wrong size, or a pair
    that does not exist.
    """
    geometry, notes, unchecked = _link_geometry(robot, model, settings)
    if not settings.self_collision:
        unchecked['self_collision'] = finding('self_collision_unchecked')
    if settings.ground is None:
        unchecked['ground'] = finding('ground_unchecked')
    # No matter of collisions, but of what is accepted like these.
    if robot.assumed_inertials:
        unchecked['masses'] = finding('masses_unchecked')
    lacking, limits = joints_without_range(robot.urdf), robot.limits
    free = compress(robot.joints, ~np.isfinite(limits.upper - limits.lower))
    if stops := [name for name in free if name in lacking]:
        unchecked['position_limits'] = finding('positions_unchecked', stops)
    joints = [int(body.parentJoint) for body in geometry.geometryObjects]
    moving = [k for k, joint in enumerate(joints) if joint > 0]

    def surround(name: str, place: Any, shape: Any, bodies: list[int]) -> None:
        number = geometry.addGeometryObject(pin.GeometryObject(name, 0, place, shape))
        for body in bodies:
            geometry.addCollisionPair(pin.CollisionPair(body, number))

    if settings.self_collision:
        parents = list(model.parents)
        for (k, first), (other, second) in combinations(enumerate(joints), 2):
            if first not in (second, parents[second]) and second != parents[first]:
                geometry.addCollisionPair(pin.CollisionPair(k, other))
    if settings.ground is not None:
        # The first two links stand on the ground; where they end, the third begins.
        high = [k for k in moving if len(model.supports[joints[k]]) > 3]
        half_space = shapes.Halfspace(np.array([0.0, 0.0, 1.0]), settings.ground)
        surround(GROUND, pin.SE3.Identity(), half_space, high)
    _remove_ignored(geometry, settings.ignored_pairs)
    notes += _remove_inseparable(robot, model, geometry, settings.distance)
    make = {'box': shapes.Box, 'sphere': shapes.Sphere, 'cylinder': shapes.Cylinder}
    for name, obstacle in settings.obstacles.items():
        for field, length in {'size': SIZES[obstacle.shape], 'position': 3, 'rpy': 3}.items():
            values = getattr(obstacle, field)
            if len(values) != length or not np.isfinite(values).all():
                raise ConfigurationError(
                    f"'excitation.workspace.obstacles.{name}.{field}' needs {length} finite "
                    'numbers'
                )
        if min(obstacle.size) <= 0.0:
            raise ConfigurationError(
                f"'excitation.workspace.obstacles.{name}.size' must be above zero"
            )
        place = pin.SE3(pin.rpy.rpyToMatrix(np.array(obstacle.rpy)), np.array(obstacle.position))
        surround(name, place, make[obstacle.shape](*obstacle.size), moving)
    return geometry, notes, unchecked


def _link_geometry(
    robot: Robot, model: Any, settings: Workspace
) -> tuple[Any, tuple[Finding, ...], dict[str, Finding]]:
    if '<collision' not in robot.urdf:
        missing = finding('no_collision_geometry')
        return _balls_at_joints(model, settings), (), {'collision_geometry': missing}
    try:
        geometry = pin.buildGeomFromUrdfString(
            model, robot.urdf, pin.GeometryType.COLLISION, package_dirs=list(settings.mesh_folders)
        )
    except (ValueError, RuntimeError) as error:
        unread = finding('collision_geometry_unreadable', reason=reason_of(error))
        return _balls_at_joints(model, settings), (), {'collision_geometry': unread}
    meshes = [b for b in geometry.geometryObjects if hasattr(b.geometry, 'buildConvexHull')]
    boxes = []
    for body in meshes:
        try:
            body.geometry.buildConvexHull(True, 'Qt')
            body.geometry = body.geometry.convex
        except RuntimeError:
            # Coal cannot hold more than 255 neighbours of a vertex, as in the fans of finely
            # meshed discs.
            boxes.append(body.name)
            body.geometry.computeLocalAABB()
            box = body.geometry.aabb_local
            body.placement = body.placement * pin.SE3(np.eye(3), 0.5 * (box.min_ + box.max_))
            body.geometry = shapes.Box(*(box.max_ - box.min_))
    hulls = len(meshes) - len(boxes)
    notes = [finding('convex_hulls', count=hulls)] if hulls else []
    notes += [finding('boxes', bodies=boxes)] if boxes else []
    return geometry, tuple(notes), {}


def _balls_at_joints(model: Any, settings: Workspace) -> Any:
    """Return balls at the joints and the tool, so that ground and obstacles still count."""
    geometry = pin.GeometryModel()
    if settings.ground is not None or settings.obstacles:
        tool = model.frames[len(model.frames) - 1]
        joints = range(2, model.njoints)
        places = [(model.names[joint], joint, pin.SE3.Identity()) for joint in joints]
        for place in (*places, (tool.name, tool.parentJoint, tool.placement)):
            geometry.addGeometryObject(pin.GeometryObject(*place, shapes.Sphere(BALL_RADIUS)))
    return geometry


def _link_name(body: Any) -> str:
    """Return a body's link: Pinocchio names it 'link_0', 'link_1' for each of its shapes."""
    return str(body.name).rsplit('_', 1)[0]


def _remove_ignored(geometry: Any, pairs: tuple[str, ...]) -> None:
    links = {_link_name(body) for body in geometry.geometryObjects}
    for pair in pairs:
        names = set(pair.split('/'))
        if len(names) != 2 or not names <= links | {GROUND}:
            raise ConfigurationError(
                f"'{pair}' in excitation.workspace.ignored_pairs is not a pair 'link_a/link_b' of "
                f'{", ".join(sorted(links))}'
            )
        for found in [(p.first, p.second) for p in geometry.collisionPairs]:
            ends = (geometry.geometryObjects[k] for k in found)
            if {body.name if body.name == GROUND else _link_name(body) for body in ends} == names:
                geometry.removeCollisionPair(pin.CollisionPair(*found))


def random_configurations(robot: Robot, count: int) -> Array:
    """Draw configurations (count, n) within the limits, half a turn from 0 at most."""
    lower, upper = (np.clip(x, -np.pi, np.pi) for x in (robot.limits.lower, robot.limits.upper))
    return np.random.default_rng(0).uniform(lower, upper, (count, robot.n))


def _remove_inseparable(
    robot: Robot, model: Any, geometry: Any, distance: float
) -> tuple[Finding, ...]:
    """Drop pairs nearer than allowed in each of many random configurations, or ever as near."""
    if not len(geometry.collisionPairs):
        return ()
    data, places, found = model.createData(), geometry.createData(), []
    for q in random_configurations(robot, DRAWS):
        pin.computeDistances(model, data, geometry, places, q[robot.order])
        found.append([r.min_distance for r in places.distanceResults])
    farthest, constant = np.max(found, axis=0), np.ptp(found, axis=0) < 1e-5
    pairs = [(p.first, p.second) for p in geometry.collisionPairs]
    close = list(compress(pairs, farthest < distance))
    for pair in compress(pairs, constant | (farthest < distance)):
        geometry.removeCollisionPair(pin.CollisionPair(*pair))
    for first, second in close:
        if geometry.geometryObjects[second].name == GROUND:
            raise ConfigurationError(
                f'{_link_name(geometry.geometryObjects[first])} is below the ground in each of '
                f'{DRAWS} configurations: lower excitation.workspace.ground, or name the pair '
                "'link/ground' in excitation.workspace.ignored_pairs"
            )
    names = ['/'.join(str(geometry.geometryObjects[k].name) for k in pair) for pair in close]
    return (finding('never_apart', pairs=names),) if names else ()


class BodyFrame(NamedTuple):
    """A frame of the robot description, fixed to a link."""

    name: str
    body: str  # link whose frame it is
    link: int  # place in `robot.links` of the joint that it moves with
    placement: Array  # (4, 4) of it in the frame of that joint


def body_frame(robot: Robot, name: str = '') -> BodyFrame:
    """Find a frame that moves with a joint of the robot; without a name, that of the last one."""
    model, frames, last = robot.model, list(robot.model.frames), robot.links[-1]
    number = tool_frame(model, name) if name else model.getFrameId(last, pin.FrameType.JOINT)
    frame = frames[number]
    joint = model.names[frame.parentJoint]
    if joint not in robot.links:
        raise ConfigurationError(
            f"the frame '{name}' moves with none of the joints {', '.join(robot.links)}: name one "
            'that carries the payload'
        )
    bodies = [f for f in frames if f.parentJoint == frame.parentJoint and f.type.name == 'BODY']
    body = next((f.name for f in bodies if f.placement.isApprox(frame.placement)), frame.name)
    placement = np.array(frame.placement.homogeneous)
    return BodyFrame(frame.name, body, robot.links.index(joint), placement)
