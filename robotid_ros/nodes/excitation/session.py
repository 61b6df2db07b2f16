"""
A robot that is moved under supervision: checked before, watched while, cancelled on any trouble.

Its methods are called from a worker thread, in one straight line: each step returns when it is
done and raises when the robot must stop, whose motion is cancelled then.
"""

from collections.abc import Callable
import dataclasses
import threading

import numpy as np
from rclpy.node import Node

from ...core.arrays import Array
from ...core.excitation import check_trajectory, point_to_point, Waypoints
from ...core.excitation.collision_scene import CollisionScene
from ...core.model.robot import Robot
from ...exceptions import RobotStateError
from ...node_settings import ExcitationNodeSettings
from ..common.controller_client import ControllerClient, ControllerDescription
from ..common.messages import State
from ..common.processes import prefer_threads
from .preflight import check_accepted, check_controller
from .supervised_goals import PublishState, SupervisedGoals
from .supervision.watchdog import expand_per_joint
from .trajectory_goal import TrajectoryActionClient

# A process that starts Python and joins the graph, on a machine that is busy [s].
GUARDIAN_START_TIMEOUT = 45.0
# Speed that an approach takes for the limit of joints that have none, or a higher one [rad/s].
MAX_APPROACH_VELOCITY = 10.0
# What may lie between the position that is held and the first one of a motion [rad or m]: the
# torque steps by so much times the gain.
MAX_STEP = 1e-4


def let_in(robot: Robot, start: Array, goal: Array, tolerance: Array) -> Robot:
    """
    Widen limits to where an approach begins, if it is a little outside and leads inside.

    Joints rest beyond a limit by what calibrations, stops and gravity make of it. An approach is a
    straight line in joint space: from there each joint moves towards its limits only.

    Parameters
    ----------
    robot : with its limits
    start, goal : (n,) of the approach [rad or m]
    tolerance : (n,) how far beyond its limits a joint may be, as while it moves [rad or m]

    Raises
    ------
    RobotStateError : a joint is further beyond; says which and what to do

    """
    limits = robot.limits
    beyond = np.maximum(limits.lower - start, start - limits.upper)
    worst = int(np.argmax(beyond - tolerance))
    if beyond[worst] > tolerance[worst]:
        raise RobotStateError(
            f'{robot.joints[worst]} is held at {start[worst]:.4f}, {beyond[worst]:.2g} beyond its '
            f'limits [{limits.lower[worst]:.4f}, {limits.upper[worst]:.4f}], more than the '
            f'{tolerance[worst]:.2g} of excitation.position_tolerance: jog it back, or see that '
            'its limits are right'
        )
    inward = (goal >= limits.lower) & (goal <= limits.upper)
    lower = np.where(inward, np.minimum(limits.lower, start), limits.lower)
    upper = np.where(inward, np.maximum(limits.upper, start), limits.upper)
    return dataclasses.replace(robot, limits=dataclasses.replace(limits, lower=lower, upper=upper))


class SupervisedRobot:
    """
    Moves a robot: `prepare` first, and `close` in any case.

    Parameters
    ----------
    node : whose executor spins meanwhile
    robot, settings : what moves, and how
    publish_state : called with each state, a sentence and values
    session : its name, by which the recorder says what it records
    stop : set from outside to stop the robot
    controller, action : clients of the controller, which outlive a session

    Attributes
    ----------
    robot, settings, controller : as given
    description : what the controller said when it was checked last

    """

    def __init__(
        self,
        node: Node,
        robot: Robot,
        settings: ExcitationNodeSettings,
        publish_state: PublishState,
        session: str,
        stop: threading.Event,
        controller: ControllerClient,
        action: TrajectoryActionClient,
    ):
        self._node, self.robot, self.settings = node, robot, settings
        self._publish_state, self._session, self._stop = publish_state, session, stop
        self.controller, self._action = controller, action
        self.description: ControllerDescription | None = None
        self._goals: SupervisedGoals | None = None
        self._scene = CollisionScene(robot, settings.workspace)

    def prepare(self, accept: Callable[[], None] = lambda: None) -> None:
        """
        Check all that can be checked without a design, which takes long.

        Parameters
        ----------
        accept : called once all that needs no other node is checked

        Raises
        ------
        RobotIdError : why the robot could not be moved

        """
        node, settings = self._node, self.settings
        check_accepted(self._scene.unchecked, settings, node.get_logger())
        accept()
        watching = self._publish_state, self._session, self._stop, self._action
        self._goals = SupervisedGoals(node, self.robot, settings, *watching)
        # From here on: robot and controller are discovered in these threads, too.
        prefer_threads(True)
        self.check()
        self._goals.guardian.wait_ready(max(settings.timeout, GUARDIAN_START_TIMEOUT))

    def close(self) -> None:
        """Let go of everything; a goal that still runs is cancelled by the guardian."""
        if self._goals is not None:
            self._goals.close()
            prefer_threads(False)
        self._goals = None

    @property
    def goals(self) -> SupervisedGoals:
        """What runs motions, once it is prepared."""
        assert self._goals is not None
        return self._goals

    def check(self) -> None:
        """Check robot, controller, recorder and other clients as they are now."""
        self.goals.others.check_alone()
        self.description = self.controller.describe()
        self.goals.monitor.gains.expect(self.description.values)
        check_controller(self.description, self.robot)
        self._action.wait_for_server()
        self.goals.monitor.check_ready()

    def check_motion(self, motion: Waypoints) -> None:
        """Check a motion between its points too; raises `TrajectoryError`."""
        check_trajectory(self.robot, motion, self.settings, scene=self._scene)

    def move_to(self, state: State, goal: Array, what: str, speed: float = np.inf) -> None:
        """
        Move on a straight line in joint space, and rest there.

        Parameters
        ----------
        state : that is published meanwhile
        goal : (n,) positions, such as those with which a motion begins [rad or m]
        what : is being done
        speed : largest of any joint, below that of approaches [rad/s or m/s]

        """
        monitor = self.goals.monitor
        stamp, start = monitor.wait_for_reference()
        self.goals.publish_standing(state, 0.0, stamp)
        monitor.wait_recording()
        self._approach(state, start, goal, what, speed)
        # Where another position is held, as by a controller that was restarted, what follows would
        # begin with a step.
        _, held = monitor.wait_for_reference()
        away = np.abs(held - goal)
        if away.max() <= MAX_STEP:
            return
        joint = self.robot.joints[int(np.argmax(away))]
        self._node.get_logger().warning(
            f'the controller holds {joint} {away.max():.4g} away from where the motion begins, as '
            'if it had been restarted: moving there again'
        )
        self._approach(state, held, goal, what, speed)

    def _approach(self, state: State, start: Array, goal: Array, what: str, speed: float) -> None:
        limits, share = self.robot.limits, self.settings.approach_speed
        velocity = share * np.minimum(limits.velocity, MAX_APPROACH_VELOCITY)
        velocity = np.minimum(velocity, speed)
        # Slow in acceleration too: from rest to that speed in a second.
        acceleration = np.minimum(velocity, share * limits.acceleration)
        motion = point_to_point(self.robot.joints, start, goal, velocity, acceleration)
        tolerance = expand_per_joint(
            self.settings.position_tolerance, self.robot.joints, 'position_tolerance'
        )
        robot = let_in(self.robot, start, goal, tolerance)
        check_trajectory(robot, motion, self.settings, scene=self._scene)
        self.goals.run(state, motion, 1, what)
        self.goals.wait_at_rest()
