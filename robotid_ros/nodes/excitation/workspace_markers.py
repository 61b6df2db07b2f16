"""Where the robot may go, for RViz and Foxglove: ground, obstacles and the box of the tool."""

from collections.abc import Iterator
from itertools import product

from geometry_msgs.msg import Point, Pose, Quaternion, Vector3
import numpy as np
import pinocchio as pin
from rclpy.node import Node
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from ...core.excitation.collision_bodies import check_obstacle
from ...core.excitation.collision_scene import box_corners
from ...core.excitation.settings import Obstacle, Workspace
from ..common.runtime import LATCHED

TOPIC = '~/workspace'
# The ground is a slab of this side and thickness, whose upper face is the plane [m].
GROUND_SIDE, GROUND_THICKNESS = 4.0, 0.01
GROUND = ColorRGBA(r=0.6, g=0.6, b=0.6, a=0.4)
OBSTACLE = ColorRGBA(r=0.84, g=0.37, b=0.0, a=0.6)
BOX, BOX_WIDTH = ColorRGBA(r=0.0, g=0.45, b=0.7, a=1.0), 0.005


class WorkspaceMarkers:
    """
    Publishes `~/workspace`, latched.

    Parameters
    ----------
    node : that publishes
    settings : what is checked

    """

    def __init__(self, node: Node, settings: Workspace):
        self._settings, self._frame = settings, ''
        self._publisher = node.create_publisher(MarkerArray, TOPIC, LATCHED)

    def publish(self, frame: str) -> None:
        """Publish in the frame of the robot's root link, unless that is known already."""
        if frame != self._frame:
            self._frame = frame
            self._publisher.publish(workspace_markers(self._settings, frame))


def workspace_markers(settings: Workspace, frame: str) -> MarkerArray:
    """
    Draw a workspace; what an earlier message drew is deleted.

    Raises
    ------
    ConfigurationError : an obstacle of the wrong size, a box that is none

    """
    markers = [Marker(action=Marker.DELETEALL), *_shapes(settings)]
    for number, marker in enumerate(markers):
        marker.header.frame_id, marker.id = frame, number
    return MarkerArray(markers=markers)


def _shapes(settings: Workspace) -> Iterator[Marker]:
    if settings.ground is not None:
        yield Marker(
            ns='ground',
            type=Marker.CUBE,
            pose=_pose((0.0, 0.0, settings.ground - 0.5 * GROUND_THICKNESS)),
            scale=Vector3(x=GROUND_SIDE, y=GROUND_SIDE, z=GROUND_THICKNESS),
            color=GROUND,
        )
    for name, obstacle in settings.obstacles.items():
        yield _obstacle(name, obstacle)
    if settings.lower or settings.upper:
        # Where it has no wall, as far as the ground is drawn.
        far = 0.5 * GROUND_SIDE
        walls = np.where(np.isinf(box := np.stack(box_corners(settings))), np.sign(box) * far, box)
        corners = list(product(*walls.T.tolist()))
        edges = [
            corner
            for number, one in enumerate(corners)
            for other in corners[number + 1 :]
            if sum(a != b for a, b in zip(one, other, strict=True)) == 1
            for corner in (one, other)
        ]
        yield Marker(
            ns='tool box',
            type=Marker.LINE_LIST,
            scale=Vector3(x=BOX_WIDTH),
            color=BOX,
            points=[Point(x=x, y=y, z=z) for x, y, z in edges],
        )


def _obstacle(name: str, obstacle: Obstacle) -> Marker:
    """Draw an obstacle: RViz wants diameters, the settings hold radii."""
    check_obstacle(name, obstacle)
    size = obstacle.size
    kind, (x, y, z) = {
        'box': (Marker.CUBE, size),
        'sphere': (Marker.SPHERE, (2.0 * size[0],) * 3),
        'cylinder': (Marker.CYLINDER, (2.0 * size[0], 2.0 * size[0], size[-1])),
    }[obstacle.shape]
    return Marker(
        ns=name,
        type=kind,
        pose=_pose(obstacle.position, obstacle.rpy),
        scale=Vector3(x=x, y=y, z=z),
        color=OBSTACLE,
    )


def _pose(position: tuple[float, ...], rpy: tuple[float, ...] = (0.0, 0.0, 0.0)) -> Pose:
    x, y, z = position
    turn = pin.Quaternion(pin.rpy.rpyToMatrix(*rpy))
    return Pose(
        position=Point(x=x, y=y, z=z),
        orientation=Quaternion(x=turn.x, y=turn.y, z=turn.z, w=turn.w),
    )
