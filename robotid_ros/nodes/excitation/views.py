"""What RViz and Foxglove show beside the robot: the designed motion, and where it may go."""

from collections.abc import Iterator
from itertools import product

from geometry_msgs.msg import Point, Pose, Quaternion, Vector3
import numpy as np
import pinocchio as pin
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from ...core.excitation.collision_bodies import check_obstacle
from ...core.excitation.collision_scene import box_corners
from ...core.excitation.design import Design
from ...core.excitation.settings import Obstacle, Workspace
from ...core.excitation.trajectory import Waypoints, waypoints
from ...exceptions import RobotStateError

# The ground is a slab of this side and thickness, whose upper face is the plane [m].
GROUND_SIDE, GROUND_THICKNESS = 4.0, 0.01
GROUND = ColorRGBA(r=0.6, g=0.6, b=0.6, a=0.4)
OBSTACLE = ColorRGBA(r=0.84, g=0.37, b=0.0, a=0.6)
BOX, BOX_WIDTH = ColorRGBA(r=0.0, g=0.45, b=0.7, a=1.0), 0.005


class Preview:
    """
    Plays a design's motions in real time, as joint states that a robot_state_publisher can show.

    They are on `~/preview`, which moves nothing. Callbacks of `group` run one at a time.
    """

    def __init__(self, node: Node, group: CallbackGroup):
        self._node = node
        self._publisher = node.create_publisher(JointState, '~/preview', 10)
        self._motions: list[Waypoints] = []
        self._next = 0
        self._timer = node.create_timer(1.0, self._publish, group, autostart=False)

    def play(self, design: Design, rate: float) -> float:
        """
        Play a period of the excitation, then the validation, at a rate [Hz].

        Returns how long it takes [s]. `RobotStateError`: the topic is that of a robot.
        """
        topic = self._publisher.topic_name
        robot = {'/joint_states', self._node.resolve_topic_name('joint_states')}
        if topic in robot or self._node.count_publishers(topic) > 1:
            raise RobotStateError(
                f"'{topic}' carries the joint states of a robot: remap 'excitation/preview' to a "
                'topic on which nobody else publishes'
            )
        plans = (design.trajectory, design.validation)
        self._motions = [waypoints(plan, rate) for plan in plans if plan is not None]
        self._next = 0
        self._timer.timer_period_ns = round(1e9 / rate)
        self._timer.reset()
        return sum(motion.duration for motion in self._motions)

    def stop(self) -> bool:
        """Stop the animation; return whether it was playing."""
        playing = not self._timer.is_canceled()
        self._timer.cancel()
        return playing

    def _publish(self) -> None:
        motion = self._motions[0]
        message = JointState(
            name=list(motion.joints),
            position=motion.q[self._next].tolist(),
            velocity=motion.dq[self._next].tolist(),
        )
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)
        self._next += 1
        if self._next == len(motion.time):
            self._motions, self._next = self._motions[1:], 0
            if not self._motions:
                self.stop()


def workspace_markers(settings: Workspace, frame: str) -> MarkerArray:
    """
    Draw a workspace in a frame; what an earlier message drew is deleted.

    `ConfigurationError`: an obstacle of the wrong size, a box that is none.
    """
    markers = [Marker(action=Marker.DELETEALL), *_shapes(settings)]
    for number, marker in enumerate(markers):
        marker.header.frame_id, marker.id = frame, number
    return MarkerArray(markers=markers)


def _shapes(settings: Workspace) -> Iterator[Marker]:
    """Draw ground, obstacles and the box of the tool."""
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
