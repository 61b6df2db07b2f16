"""The arm along a motion, as plain values that a browser draws: frames, bodies, surroundings."""

from collections.abc import Mapping
import itertools
import math
from string import digits
from typing import Any, NamedTuple

import numpy as np

from ...core.excitation.settings import Workspace
from ...core.excitation.trajectory import Trajectory
from ...core.model.robot import INERTIAL, Robot
from ...core.parameters.physical_consistency import mass_properties, pseudo_inertia
from ..results import Results
from .page import GOOD_PERCENT

# Of the second moments of a body, as a share of the largest: below, an ellipsoid is flat.
FLAT = 1e-9


class LinkBody(NamedTuple):
    """A link by its mass [kg], centre (3,) [m] and inertia (3, 3) there [kg·m²], in its frame."""

    mass: float
    centre: np.ndarray
    inertia: np.ndarray

    @property
    def principal(self) -> np.ndarray:
        """Principal moments of inertia, ascending, (3,) [kg·m²]."""
        return np.asarray(np.linalg.eigvalsh(self.inertia))

    @property
    def shape(self) -> np.ndarray | None:
        """S (3, 3) [m²]: the solid ellipsoid xᵀ S⁻¹ x ≤ 1 has this mass and inertia; or None."""
        second = 0.5 * np.trace(self.inertia) * np.eye(3) - self.inertia
        least, *_, most = np.linalg.eigvalsh(second)
        if self.mass <= 0.0 or most <= 0.0 or least < -FLAT * most:
            return None
        return 5.0 * second / self.mass


def bodies_of(results: Results, which: str) -> dict[str, LinkBody]:
    """Return the bodies of the links by joint, of the 'value' or the 'prior' of the parameters."""
    values: dict[str, dict[str, float]] = {}
    for entry in results.standard:
        if (value := getattr(entry, which)) is not None:
            values.setdefault(entry.joint, {})[entry.name.rstrip(digits)] = float(value)
    whole = {j: [v[s] for s in INERTIAL] for j, v in values.items() if {*INERTIAL} <= v.keys()}
    return {j: LinkBody(*mass_properties(pseudo_inertia(np.array(v)))) for j, v in whole.items()}


def known_shares(results: Results) -> dict[str, float]:
    """Return the share of the inertial base parameters of each joint that are known to 10 %."""
    known = dict[str, list[bool]]()
    for entry in results.base:
        if entry.column.rstrip(digits) in INERTIAL:
            known.setdefault(entry.joint, []).append(entry.percent <= GOOD_PERCENT)
    return {joint: sum(each) / len(each) for joint, each in known.items()}


def scene(
    frames: Mapping[str, Any],
    found: Mapping[str, LinkBody],
    before: Mapping[str, LinkBody],
    known: Mapping[str, float],
) -> dict[str, Any] | None:
    """
    Describe a drawing of the links, which the page's script makes; None where frames are missing.

    `frames` of the links in the root's frame are (3, 4) each; bodies by joint are the identified
    ones and those of the description; `known` are those of `known_shares`. Returns `links` with
    origins, shares and ellipsoids in the frame of the root, `centre` and `reach` [m].
    """
    links, points = list[dict[str, Any]](), list[np.ndarray]()
    for joint, rows in frames.items():
        frame = np.asarray(rows, dtype=float)
        if frame.shape != (3, 4) or not np.isfinite(frame).all():
            return None
        turn, origin = frame[:, :3], frame[:, 3]
        link = {'name': joint, 'origin': origin.round(5).tolist(), 'known': known.get(joint)}
        points.append(origin)
        for name, body in (('found', found.get(joint)), ('before', before.get(joint))):
            if body is None or body.shape is None or not np.isfinite(body.mass):
                continue
            turned, centre = turn @ body.shape @ turn.T, turn @ body.centre + origin
            reach = np.sqrt(np.diag(turned))
            points += [centre - reach, centre + reach]
            link[name] = {'centre': centre.round(5).tolist(), 'shape': turned.round(8).tolist()}
        links.append(link)
    if not links:
        return None
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    half = float(np.linalg.norm(high - low)) / 2.0 or 1.0
    return {'links': links, 'reach': half, 'centre': (0.5 * (low + high)).tolist()}


# Frames of a motion per second, and numbers of all frames of a motion at most: a megabyte of a
# page holds two millions.
RATE, NUMBERS = 25.0, 150_000
# Lengths and cosines are whole numbers of this [m, 1].
UNIT = 1e-4
# Directions in which a body is bounded: it is drawn as the outline of its outermost points.
DIRECTIONS, RING = 80, 24
# Obstacles are shown as far as so many times the reach.
SURROUNDED = 1.4


def moving_arm(
    robot: Robot, motions: Mapping[str, Trajectory], workspace: Workspace
) -> dict[str, Any]:
    """
    Describe the arm along motions, within the ground, obstacles and tool box of the workspace.

    Returns `nodes` of the skeleton, (frame, x, y, z) [m] each, the tool last, and its `edges`;
    convex `bodies` by outermost points in their frame; per motion its `period` [s] and `frames`,
    of each joint the three rows of rotation and origin, in `unit`; frame 0 is the base, which
    stands.
    """
    # With Pinocchio: who reads results needs none.
    from ...core.excitation.collision_scene import collision_model, GROUND
    from ...core.model.frames import tool_frame
    from ...core.model.kinematic_tree import KinematicTree

    model = robot.model.copy()
    geometry = collision_model(robot, model, workspace)[0]
    tree, tool = KinematicTree(model), model.frames[tool_frame(model, workspace.frame)]
    holder = int(tool.parentJoint)
    nodes = [[j, 0.0, 0.0, 0.0] for j in range(model.njoints)]
    nodes.append([holder, *map(float, tool.placement.translation)])
    edges = [[int(model.parents[j]), j] for j in range(1, model.njoints)]
    edges.append([holder, model.njoints])
    bodies = []
    for body in (each for each in geometry.geometryObjects if each.name != GROUND):
        place, points = body.placement, _outermost(body.geometry)
        described = {
            'name': str(body.name),
            'frame': int(body.parentJoint),
            'obstacle': body.name in workspace.obstacles,
            'points': np.round(points @ place.rotation.T + place.translation, 4).tolist(),
        }
        bodies.append(described)
    placed, shown = [], {}
    for name, motion in motions.items():
        # Of the joints over a period, (N, n, 3, 4), and of the base before them.
        count = min(math.ceil(RATE * motion.period), NUMBERS // (12 * tree.n)) + 1
        q = motion.sample(np.linspace(0.0, motion.period, count)).q
        rotation, origin = tree.places(q[:, robot.order])
        frames = np.concatenate([rotation, origin[..., None]], axis=3)
        base = np.broadcast_to(np.eye(3, 4), (count, 1, 3, 4))
        placed.append(np.concatenate([base, frames], axis=1))
        whole = np.rint(frames.reshape(count, -1) / UNIT).astype(int).tolist()
        shown[name] = {'period': motion.period, 'frames': whole}
    centre, reach = _extent(np.concatenate(placed), nodes, bodies)
    return {
        'nodes': nodes,
        'edges': edges,
        'bodies': bodies,
        'ground': workspace.ground,
        'box': [list(workspace.lower), list(workspace.upper)],
        'centre': centre.tolist(),
        'reach': reach,
        'unit': UNIT,
        'motions': shown,
    }


def _outermost(shape: Any) -> np.ndarray:
    """Return points (k, 3) whose convex hull looks like a shape; its box for unknown ones [m]."""
    kind = type(shape).__name__
    # Evenly spread: a spiral of the golden angle.
    k = np.arange(DIRECTIONS) + 0.5
    z, turn = 1.0 - 2.0 * k / DIRECTIONS, np.pi * (1.0 + 5.0**0.5) * k
    directions = np.column_stack([*(np.sqrt(1.0 - z**2) * (np.cos(turn), np.sin(turn))), z])
    if kind in ('Sphere', 'Capsule'):
        half = shape.halfLength if kind == 'Capsule' else 0.0
        return np.asarray(
            shape.radius * directions + np.sign(directions[:, 2:]) * [0.0, 0.0, half]
        )
    if kind == 'Cylinder':
        angle = 2.0 * np.pi * np.arange(RING) / RING
        ring = shape.radius * np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle])
        end = np.array([0.0, 0.0, shape.halfLength])
        return np.concatenate([ring - end, ring + end])
    if hasattr(shape, 'points'):
        points = np.array(shape.points())
        return points[np.unique(np.argmax(points @ directions.T, axis=0))]
    shape.computeLocalAABB()
    box = shape.aabb_local
    return np.array([*itertools.product(*zip(box.min_, box.max_, strict=True))])


def _extent(
    frames: np.ndarray, nodes: list[list[float]], bodies: list[dict[str, Any]]
) -> tuple[np.ndarray, float]:
    """Return centre and radius of what the arm reaches and of obstacles that are near [m]."""
    own = [(int(node[0]), [node[1:]]) for node in nodes]
    own += [(body['frame'], body['points']) for body in bodies if not body['obstacle']]
    turns, origins = frames[..., :3].swapaxes(2, 3), frames[:, :, None, :, 3]
    moved = [points @ turns[:, j] + origins[:, j] for j, points in own]
    arm = np.concatenate([each.reshape(-1, 3) for each in moved])
    centre = 0.5 * (arm.min(axis=0) + arm.max(axis=0))
    reach = float(np.linalg.norm(arm - centre, axis=1).max()) or 1.0
    others = [np.array(body['points']) for body in bodies if body['obstacle']]
    far = [float(np.linalg.norm(each - centre, axis=1).max()) for each in others]
    return centre, min(max(reach, *far), SURROUNDED * reach) if far else reach
