"""
Bodies of a robot, ground and obstacles; their clearances, and those of the tool to its box.

Meshes are replaced by their convex hulls, or boxes, which is on the safe side and quick.
"""

from collections.abc import Container, Iterator
from contextlib import suppress
from functools import cache
from itertools import combinations, compress, pairwise
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from ...exceptions import CollisionError, ConfigurationError, reason_of
from ..arrays import Array, Indices, Mask
from ..findings import Finding, finding
from ..model.pinocchio_model import KinematicTree, tool_frame
from ..model.robot import Robot
from ..model.urdf_parsing import joints_without_range, parse_urdf
from .settings import Workspace

shapes = getattr(pin, 'coal', None) or pin.hppfcl  # of Pinocchio 3, by their former name
_MESHES = shapes.CachedMeshLoader()  # reads a file again only if it has changed
GROUND = 'ground'
_PACKAGE = re.compile('package://[^/]*/')
# What makes an obstacle, and how many numbers its size has.
OBSTACLES = {
    'box': (shapes.Box, 3),
    'sphere': (shapes.Sphere, 1),
    'cylinder': (shapes.Cylinder, 2),
}
DRAWS = 64  # random configurations: a pair that is too near in each is always so
BALL_RADIUS = 0.01  # radius of the balls at the joints of a robot without collision geometry [m]
FREE_PART = 50  # configurations at once: a motion that is not free is often found early
# Clearance at which the penalty begins, before bodies touch; how far below it is linear [m].
PENALTY_CLEARANCE, PENALTY_UNIT = 0.004, 0.01
FLAT = 1e-6  # thickness of a mesh over its length, below which it is flat
TOUCHING = 1e-9  # points nearer than this do not give the direction between them [m]


def collision_model(
    robot: Robot, model: Any, settings: Workspace
) -> tuple[Any, tuple[Finding, ...], dict[str, Finding]]:
    """
    Build Pinocchio's geometry with the pairs to keep apart, findings, and what is unchecked.

    Neighbours in the chain are left out, pairs that never part, and for the ground the first two
    links. ConfigurationError: an obstacle of the wrong size, or a pair that does not exist.
    """
    geometry, unchecked = _link_geometry(robot, model, settings)
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
        if not high and 'collision_geometry' not in unchecked:  # of two joints, the last link
            high = [k for k in moving if joints[k] == model.frames[-1].parentJoint]
        half_space = shapes.Halfspace(np.array([0.0, 0.0, 1.0]), settings.ground)
        surround(GROUND, pin.SE3.Identity(), half_space, high)
    notes = _remove_pairs(robot, model, geometry, settings)
    for name, obstacle in settings.obstacles.items():
        make, sizes = OBSTACLES[obstacle.shape]
        for field, length in {'size': sizes, 'position': 3, 'rpy': 3}.items():
            values, least = np.array(getattr(obstacle, field)), 0.0 if field == 'size' else -np.inf
            if len(values) != length or not ((values > least) & (values < np.inf)).all():
                raise ConfigurationError(
                    f"'excitation.workspace.obstacles.{name}.{field}' needs {length} finite "
                    f'numbers{" above zero" if field == "size" else ""}'
                )
        place = pin.SE3(pin.rpy.rpyToMatrix(np.array(obstacle.rpy)), np.array(obstacle.position))
        surround(name, place, make(*obstacle.size), moving)
    return geometry, notes, unchecked


def _link_geometry(
    robot: Robot, model: Any, settings: Workspace
) -> tuple[Any, dict[str, Finding]]:
    """Return the bodies of links, meshes as their hulls, and which links lack them."""
    geometry, unread, bare = _readable_geometry(robot.urdf, model, list(settings.mesh_folders))
    unchecked = {} if unread is None else {'collision_geometry': unread}
    if settings.ground is not None or settings.obstacles:
        # Balls at joints of links without shape, and at the tool, so that these still count.
        tool, joints = model.frames[len(model.frames) - 1], range(2, model.njoints)
        places = [(model.names[joint], joint, pin.SE3.Identity()) for joint in joints]
        for place in (*places, (tool.name, tool.parentJoint, tool.placement)):
            if place[1] in bare:
                geometry.addGeometryObject(pin.GeometryObject(*place, shapes.Sphere(BALL_RADIUS)))
    for body in filter(_is_mesh, geometry.geometryObjects):
        points = body.geometry.vertices()
        # Coal crashes at flat meshes, and cannot hold more than 255 neighbours of a vertex, as in
        # the fans of finely meshed discs: boxes replace these.
        with suppress(RuntimeError):
            if not is_flat(points):
                if body.geometry.convex is None:
                    body.geometry.buildConvexHull(True, 'Qt')
                body.geometry = body.geometry.convex
                continue
        lower, upper = points.min(axis=0), points.max(axis=0)
        body.placement = body.placement * pin.SE3(np.eye(3), 0.5 * (lower + upper))
        body.geometry = shapes.Box(*(upper - lower))
    return geometry, unchecked


def _readable_geometry(
    urdf: str, model: Any, folders: list[str]
) -> tuple[Any, Finding | None, Container[int]]:
    """Read the shapes of all links whose meshes can be read; name the others, and their joints."""
    geometry, unread = pin.GeometryModel(), dict[str, int]()
    if '<collision' not in urdf:
        return geometry, finding('no_collision_geometry'), range(model.njoints)
    try:
        return _shapes(urdf, model, folders), None, ()
    except (ValueError, RuntimeError) as error:
        reason = reason_of(error)
    # One link after the other, since a parser stops at the first mesh that is missing.
    for link in parse_urdf(urdf).findall('link[collision]'):
        name, root = link.get('name', ''), parse_urdf(urdf)
        for other in root.findall('link'):
            for shape in other.findall('collision') if other.get('name') != name else ():
                other.remove(shape)
        try:
            alone = _shapes(ElementTree.tostring(root, encoding='unicode'), model, folders)
        except (ValueError, RuntimeError):
            frame = model.getFrameId(name, pin.FrameType.BODY)
            files = [mesh.get('filename', '') for mesh in link.iterfind('collision/geometry/mesh')]
            unread[f'{name} ({", ".join(files)})'] = int(model.frames[frame].parentJoint)
        else:
            for body in alone.geometryObjects:
                geometry.addGeometryObject(body)
    if not geometry.ngeoms:
        found = finding('collision_geometry_unreadable', reason=reason)
        return geometry, found, range(model.njoints)
    return geometry, finding('links_unreadable', links=[*unread]), {*unread.values()}


def _shapes(urdf: str, model: Any, folders: list[str]) -> Any:
    """Read the shapes of a description; ValueError or RuntimeError where a mesh is missing."""
    how = {'package_dirs': folders, 'mesh_loader': _MESHES}
    try:
        read = pin.buildGeomFromUrdfString(model, urdf, pin.GeometryType.COLLISION, **how)
    except (ValueError, RuntimeError):
        # A checkout need not have its package's name: the meshes are below one of the folders.
        if (text := _PACKAGE.sub('', urdf)) != urdf:
            with suppress(ValueError, RuntimeError):
                return _shapes(text, model, folders)
        raise
    for body in filter(_is_mesh, read.geometryObjects):
        if not np.isfinite(body.geometry.vertices()).all():
            raise ValueError(f'a vertex of {body.meshPath} is no number')
    return read


def _is_mesh(body: Any) -> bool:
    return hasattr(body.geometry, 'buildConvexHull')


def is_flat(points: Array) -> bool:
    """Return whether points (N, 3) lie in a plane, or are no numbers: they have no hull."""
    if len(points) < 4 or not np.isfinite(points).all():
        return True
    spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return bool(spread[-1] <= FLAT * spread[0])


def link_name(body: str) -> str:
    """Return a body's link: Pinocchio names it 'link_0', 'link_1' for each of its shapes."""
    return body.rsplit('_', 1)[0]


def _remove_pairs(
    robot: Robot, model: Any, geometry: Any, settings: Workspace
) -> tuple[Finding, ...]:
    """Drop ignored pairs, and those too near in all of many random poses, or ever as near."""

    def pairs() -> list[Any]:
        return [pin.CollisionPair(pair.first, pair.second) for pair in geometry.collisionPairs]

    bodies = [str(body.name) for body in geometry.geometryObjects]
    links = [name if name == GROUND else link_name(name) for name in bodies]
    for text in settings.ignored_pairs:
        names = set(text.split('/'))
        if len(names) != 2 or not names <= {*links, GROUND}:
            raise ConfigurationError(
                f"'{text}' in excitation.workspace.ignored_pairs is not a pair 'link_a/link_b' of "
                f'{", ".join(sorted({*links} - {GROUND}))}'
            )
        for pair in pairs():
            if {links[pair.first], links[pair.second]} == names:
                geometry.removeCollisionPair(pair)
    if not len(geometry.collisionPairs):
        return ()
    data, places, found = model.createData(), geometry.createData(), []
    for q in robot.random_positions(DRAWS):
        pin.computeDistances(model, data, geometry, places, q[robot.order])
        found.append([r.min_distance for r in places.distanceResults])
    close, constant = np.max(found, axis=0) < settings.distance, np.ptp(found, axis=0) < 1e-5
    inseparable = list[str]()
    for pair, too_near in compress(zip(pairs(), close, strict=True), close | constant):
        geometry.removeCollisionPair(pair)
        if too_near and links[pair.second] == GROUND:
            raise ConfigurationError(
                f'{links[pair.first]} is below the ground in each of {DRAWS} configurations: '
                "lower excitation.workspace.ground, or name the pair 'link/ground' in "
                'excitation.workspace.ignored_pairs'
            )
        if too_near:
            inseparable.append(f'{bodies[pair.first]}/{bodies[pair.second]}')
    return (finding('never_apart', pairs=inseparable),) if inseparable else ()


def add_tool_box(geometry: Any, model: Any, settings: Workspace) -> None:
    """Add the tool as a point, and the walls of its box: half-spaces that it may touch."""
    frame = model.frames[tool_frame(model, settings.frame)]
    corners = np.repeat([[-np.inf], [np.inf]], 3, axis=1)
    for corner, name in zip(corners, ('lower', 'upper'), strict=True):
        values = getattr(settings, name)
        if len(values) not in (0, 3) or np.isnan(values).any():
            raise ConfigurationError(f"'excitation.workspace.{name}' needs three numbers: x, y, z")
        corner[:] = values or corner
    if (corners[0] >= corners[1]).any():
        raise ConfigurationError(
            'excitation.workspace.lower must be below excitation.workspace.upper in x, y and z'
        )
    if np.isinf(corners).all():
        return
    point = pin.GeometryObject('tool', frame.parentJoint, frame.placement, shapes.Sphere(0.0))
    number = geometry.addGeometryObject(point)
    for (side, axis), coordinate in np.ndenumerate(corners):
        if np.isfinite(coordinate):
            sign, name = 1.0 - 2.0 * side, f'wall {side}{axis} of the tool box'
            wall = shapes.Halfspace(sign * np.eye(3)[axis], sign * coordinate - settings.distance)
            body = pin.GeometryObject(name, 0, pin.SE3.Identity(), wall)
            geometry.addCollisionPair(pin.CollisionPair(number, geometry.addGeometryObject(body)))


def reaches(model: Any, tree: KinematicTree, body: Any, ball: tuple[Array, float]) -> Array:
    """
    Bound how far a body moves per unit that each joint moves, (n,) [m/rad, 1].

    The body is in a ball, of a centre (3,) in its joint's frame and a radius [m]. The joints from
    there to the base sweep the ball along, and no point of what it sweeps moves faster than it is
    far from the axis.
    """
    result, (centre, radius) = np.zeros(model.nv), ball
    for joint in reversed(list(model.supports[body.parentJoint])[1:]):
        axis = tree.axes[joint - 1]
        if axis[3:].any():
            # As the joint turns, the ball stays in one about a point of the axis.
            foot = (centre @ axis[3:]) * axis[3:]
            radius += float(np.linalg.norm(centre - foot))
            centre, result[joint - 1] = foot, radius
        else:
            number = model.joints[joint].idx_q
            limits = model.lowerPositionLimit[number], model.upperPositionLimit[number]
            radius += float(np.abs(limits).max())
            result[joint - 1] = 1.0
        centre = model.jointPlacements[joint].act(centre)
    return result


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
        self.empty = not len(self.geometry.collisionPairs)  # nothing to touch
        self._tree, bodies = KinematicTree(self.model), self.geometry.geometryObjects
        spheres = [_sphere(body) for body in bodies]
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
        # How much nearer a pair comes per unit of each joint, (pairs, n) [m/rad, 1].
        far = np.zeros(links.shape)
        for row, body, sphere in zip(far, bodies, spheres, strict=True):
            row[:] = reaches(self.model, self._tree, body, sphere)
        second = self._moving > 0.0
        self.approach_bounds = np.abs(self._moving) * np.where(
            second, far[self._second], far[self._first]
        )

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

    def _measured(self, rows: Array, places: Indices, pairs: Indices) -> Iterator[Any]:
        """Yield what Pinocchio finds of pairs; their rows come one after another."""
        scene, placed = (self.geometry, self.geometry_data), -1
        for place, pair in zip(places.tolist(), pairs.tolist(), strict=True):
            if place != placed:
                pin.updateGeometryPlacements(self.model, self.data, *scene, rows[place])
                placed = place
            yield pin.computeDistance(*scene, pair)

    def clearances(self, q: Array, largest: float = 0.0) -> Array:
        """
        Return clearances of configurations (N, n), (N, pairs) [m].

        They are measured where they may be below the largest; others are lower bounds.
        """
        rows = self._model_order(q)
        least = self._gaps(rows) - self.settings.distance
        near = least < largest
        found = [result.min_distance for result in self._measured(rows, *np.nonzero(near))]
        least[near] = np.array(found) - self.settings.distance
        return least

    def are_free(self, q: Array) -> Mask:
        """Return which configurations (N, n) keep the smallest distance, (N,)."""
        return np.all(self.clearances(q) >= 0.0, axis=1)

    def is_free(self, q: Array) -> bool:
        """Return whether all configurations (N, n) keep the smallest distance."""
        parts = np.array_split(q, 1 + len(q) // FREE_PART)
        return all(self.are_free(part).all() for part in parts)

    def penalty(self, q: Array) -> tuple[float, Array]:
        """
        Sum `h((d₀ − d)/u)` over the clearances d of configurations (N, n); its gradient (N, n).

        h is Huber's function of what is positive, r²/2 up to 1 and r − 1/2 beyond, so that bodies
        that overlap do not outweigh all else; d₀ and u: `PENALTY_CLEARANCE` and `PENALTY_UNIT`.
        A distance changes by `nᵀ (J₂(p) − J₁(p))`, n from the nearest point of one body to that of
        the other, p any point on their line.
        """
        rows, least = self._model_order(q), self.settings.distance + PENALTY_CLEARANCE
        places, pairs = np.nonzero(self._gaps(rows) < least)
        distances = np.full(len(pairs), np.inf)
        normals, points = np.zeros((2, len(pairs), 3))
        for k, nearest in enumerate(self._measured(rows, places, pairs)):
            distances[k] = distance = nearest.min_distance
            if distance < least:
                points[k] = nearest.getNearestPoint1()
                apart = abs(distance) > TOUCHING
                way = (nearest.getNearestPoint2() - points[k]) / distance if apart else None
                normals[k] = nearest.normal if way is None else way
        excess = np.maximum(0.0, (least - distances) / PENALTY_UNIT)
        value = np.where(excess < 1.0, 0.5 * excess**2, excess - 0.5).sum()
        near = np.flatnonzero(excess)
        places, pairs, pull = places[near], pairs[near], np.minimum(excess[near], 1.0)
        forces = np.hstack([normals, np.cross(points, normals)])[near]
        found, gradient = np.zeros_like(rows), np.empty_like(rows)
        if near.size:
            screws = self._tree.screws(*self._tree.places(rows))[places]
            slopes = (screws @ forces[:, :, None])[..., 0] * self._moving[pairs]
            np.add.at(found, places, -pull[:, None] / PENALTY_UNIT * slopes)
        gradient[:, self.order] = found
        return float(value), gradient

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

        @cache
        def measure(k: int) -> Array:
            distances = self._distances(rows[k])
            if (distances >= self.settings.distance).all():
                return distances
            closest = int(np.argmin(distances))
            if closest >= self.pairs:
                beyond = self.settings.distance - distances[closest]
                raise CollisionError(
                    f'the tool leaves its box by {beyond:.3f} m at {time[k]:.3f} s: move the '
                    'start, enlarge the box or design again'
                )
            bodies, pair = self.geometry.geometryObjects, self.geometry.collisionPairs[closest]
            raise CollisionError(
                f'{bodies[pair.first].name} and {bodies[pair.second].name} are '
                f'{distances[closest]:.3f} m apart at {time[k]:.3f} s, less than '
                f'{self.settings.distance:g} m: move the start, design again, or name the '
                'pair in excitation.workspace.ignored_pairs'
            )

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
