"""What is watched over topics: floods of malformed states neither blind nor end a session."""

from collections.abc import Callable, Iterator
from pathlib import Path
import threading
import time
from typing import Any
from unittest.mock import Mock

from control_msgs.msg import JointTrajectoryControllerState
import numpy as np
import pytest
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectoryPoint
from waiting import PATIENCE, wait_until

from robotid_ros.core.excitation.trajectory import point_to_point
from robotid_ros.core.model import build_robot, Robot
from robotid_ros.exceptions import ControllerError, RobotStateError, SensorError, SilentRobotError
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.node_settings import ExcitationNodeSettings
from robotid_ros.nodes.common.controller import TrajectoryClient
from robotid_ros.nodes.common.messages import State, to_time
from robotid_ros.nodes.excitation.supervisor import GoalPhase, SessionContext, Supervisor

pytestmark = pytest.mark.ros
CONFIG = Path(__file__).resolve().parents[3] / 'config' / 'scara.yaml'
JOINTS = ['joint_1', 'joint_2']
GARBAGE = JointState(name=['joint_1', 'joint_1'], position=[9.0, 9.0])


@pytest.fixture(scope='module')
def robot() -> Robot:
    configuration = load(CONFIG)
    return build_robot(read_urdf(configuration) or '', configuration.robot)


class Driver:
    """Publishes the states of a robot at rest, stamps of a counter; garbage beside each."""

    def __init__(self, node: Node):
        self._states = node.create_publisher(JointState, 'joint_states', 1000)
        self._controller = node.create_publisher(
            JointTrajectoryControllerState, 'arm_controller/controller_state', 1000
        )
        self._count, self._effort = 0, 0.0
        self.garbage, self.good, self.drift, self.active = 0, True, 0.0, True
        self.place = 0.0  # of the second joint, of which the controller makes its reference
        self.speed = 0.0  # of the first joint, per message
        self.publishers = [self._states]
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.wait(0.005):
            self._count += 1
            if self.good:
                state = JointState(
                    name=JOINTS,
                    position=[self.speed * self._count, self.place],
                    velocity=[0.0] * 2,
                    effort=[0.0] * 2,
                )
                state.header.stamp = to_time(self._count * 10_000_000)
                for publisher in self.publishers:
                    publisher.publish(state)
            reference = JointTrajectoryPoint(positions=[self.drift * self._count, self.place])
            message = JointTrajectoryControllerState(
                joint_names=JOINTS,
                reference=reference,
                error=JointTrajectoryPoint(positions=[0.0, 0.0]),
            )
            message.header.stamp = to_time(self._count * 10_000_000)
            if self.active:
                self._controller.publish(message)
            # The newest ones, always.
            for _ in range(self.garbage):
                self._states.publish(GARBAGE)
                self._controller.publish(JointTrajectoryControllerState(joint_names=['joint_1']))

    def close(self) -> None:
        self._end.set()
        self._thread.join()


@pytest.fixture
def driver(node: Node):
    driver = Driver(node)
    yield driver
    driver.close()


@pytest.fixture
def supervise(node: Node, robot: Robot) -> Iterator[Callable[..., Supervisor]]:
    """Supervise the robot, which is ready to move."""
    made: list[Supervisor] = []

    def make(**changed: Any) -> Supervisor:
        settings = ExcitationNodeSettings(require_recorder=False, **changed)
        context = SessionContext(
            node=node,
            robot=robot,
            settings=settings,
            publish_state=lambda *_: None,
            session='session',
            stop=threading.Event(),
            controller=TrajectoryClient(node, settings.controller, PATIENCE),
        )
        made.append(Supervisor(context))
        made[-1].check_ready()
        return made[-1]

    yield make
    for supervisor in made:
        supervisor.close()


@pytest.fixture
def monitor(supervise: Callable[..., Supervisor], driver: Driver) -> Supervisor:
    return supervise(timeout=PATIENCE, stale_after=0.5)


def test_garbage_among_the_joint_states_is_passed_over(monitor: Supervisor, driver: Driver):
    monitor.begin()
    driver.garbage = 25
    end = driver._count + 200

    def seen() -> bool:
        monitor.check()
        return driver._count > end

    wait_until(seen, 'the robot is watched for a while')


def test_two_publishers_of_the_same_states_are_named_once(
    monitor: Supervisor, driver: Driver, node: Node, capfd: pytest.CaptureFixture
):
    monitor.begin()
    end = driver._count + 20
    wait_until(lambda: monitor.check() is not None and driver._count > end, 'it is watched')
    said, text = capfd.readouterr().err, "'/joint_states' has the same states from /"
    assert text not in said, 'one publisher of them'
    driver.publishers.append(node.create_publisher(JointState, 'joint_states', 1000))

    def is_said() -> bool:
        nonlocal said
        monitor.check()
        said += capfd.readouterr().err
        return text in said

    wait_until(is_said, 'that is said')
    end = driver._count + 20
    wait_until(lambda: monitor.check() is not None and driver._count > end, 'it is watched')
    assert (said + capfd.readouterr().err).count(text) == 1


def test_a_second_publisher_is_named_with_what_is_wrong(
    monitor: Supervisor, node: Node, robot: Robot
):
    monitor.begin()
    second = node.create_publisher(JointState, 'joint_states', 1000)
    zeros = [0.0] * len(robot.joints)
    message = JointState(name=list(robot.joints), position=zeros, velocity=zeros)

    def check() -> bool:
        message.header.stamp = node.get_clock().now().to_msg()
        second.publish(message)
        monitor.check()
        return False

    with pytest.raises(RobotStateError, match="; '/joint_states' has states from /"):
        wait_until(check, 'what is wrong is said')


def test_nothing_but_garbage_is_said(monitor: Supervisor, driver: Driver):
    monitor.begin()
    driver.garbage, driver.good = 1, False
    with pytest.raises(RobotStateError, match='only malformed joint states'):
        wait_until(lambda: monitor.check() and False, 'that is said')


def test_a_joint_that_the_controller_does_not_hold_after_nan_is_named(
    supervise: Callable[..., Supervisor], robot: Robot, driver: Driver, controller
):
    points = point_to_point(robot.joints, *np.eye(2), np.ones(2), np.ones(2))
    supervisor = supervise()
    supervisor.guardian.wait_ready(PATIENCE)
    driver.place = np.nan
    with pytest.raises(SensorError, match='is not a number') as caught:
        supervisor.run(points, GoalPhase(State.APPROACHING, ''))
    assert 'the controller holds no position of joint_2 now and gives it no' in str(caught.value)


@pytest.mark.parametrize(('speed', 'brakes'), [(0.0, False), (1e-3, True)])
def test_hardware_brakes_a_robot_that_a_cancel_does_not_stop(
    speed: float, brakes: bool, supervise: Callable[..., Supervisor], robot: Robot,
    driver: Driver, controller,
):  # fmt: skip
    points = point_to_point(robot.joints, *np.eye(2), np.ones(2), np.ones(2))
    supervisor, answer = supervise(), Future()
    supervisor.guardian.wait_ready(PATIENCE)
    answer.set_result(Mock(ok=True))
    supervisor.context.controller.hardware = Mock(deactivate=Mock(return_value=[answer]))
    supervisor.braking_hardware = ('drives',)
    driver.speed = speed
    supervisor.context.stop.set()
    with pytest.raises(RobotStateError, match='stopped by request') as caught:
        supervisor.run(points, GoalPhase(State.APPROACHING, ''))
    braked = "it did not rest after 0.3 s; 'arm_controller' and drives deactivated: activate again"
    assert (braked in str(caught.value)) is brakes
    assert supervisor.context.controller.hardware.deactivate.called is brakes


def test_a_joint_that_is_held_after_nan_is_not_named(
    supervise: Callable[..., Supervisor], driver: Driver
):
    assert supervise()._find_unheld_joint() == ''


def test_a_reference_is_seen_to_rest_where_states_arrive_faster_than_they_are_decoded(
    monitor: Supervisor, driver: Driver
):
    stream, decoded = monitor._states, []
    decode = stream.decode

    def decode_slowly(sample):
        time.sleep(0.02)
        decoded.append(sample)
        return decode(sample)

    stream.decode = decode_slowly
    assert monitor.wait_for_reference()[1].tolist() == [0.0, 0.0]
    assert len(decoded) <= 5


def test_no_motion_begins_while_the_reference_moves(monitor: Supervisor, driver: Driver):
    assert monitor.wait_for_reference()[1].tolist() == [0.0, 0.0]
    driver.drift = 1e-6
    with pytest.raises(ControllerError, match='moves joint_1 though no motion of this session'):
        wait_until(lambda: monitor.wait_for_reference() is None, 'that is seen')


def test_a_controller_that_falls_silent_at_rest_is_told_at_once(
    monitor: Supervisor, driver: Driver
):
    driver.active = False
    # Not after `timeout`, as a controller that was never there.
    with pytest.raises(SilentRobotError, match=r"the controller's state stopped 0\.5") as caught:
        monitor.wait_for_reference()
    assert caught.value.joints == tuple(JOINTS)


def test_a_controller_that_refuses_is_asked_about(
    supervise: Callable[..., Supervisor], robot: Robot, driver: Driver, controller
):
    controller.accepts = False
    points = point_to_point(robot.joints, *np.eye(2), np.ones(2), np.ones(2))
    supervisor = supervise()
    supervisor.guardian.wait_ready(PATIENCE)
    with pytest.raises(ControllerError, match='refused the trajectory: was it deactivated'):
        supervisor.run(points, GoalPhase(State.APPROACHING, ''))


def test_no_motion_begins_with_a_controller_that_was_started_anew(
    monitor: Supervisor, robot: Robot, driver: Driver, node: Node
):
    driver.close()
    node.destroy_publisher(driver._controller)
    again = Driver(node)
    points = point_to_point(robot.joints, *np.eye(2), np.ones(2), np.ones(2))
    wait_until(lambda: monitor.wait_for_reference() is not None, 'it holds the robot')
    with pytest.raises(ControllerError, match=r"'arm_controller' was started anew since"):
        monitor.run(points, GoalPhase(State.APPROACHING, ''))
    again.close()


def test_a_dead_controller_that_leaves_the_graph_is_not_the_one_that_was_checked(
    supervise: Callable[..., Supervisor], driver: Driver, node: Node
):
    dead = node.create_publisher(
        JointTrajectoryControllerState, 'arm_controller/controller_state', 10
    )
    supervisor = supervise()
    wait_until(lambda: len(supervisor._states.publishers) == 2, 'both are in the graph')
    supervisor.check_ready()
    node.destroy_publisher(dead)
    wait_until(lambda: len(supervisor._states.publishers) == 1, 'it has left')
    supervisor._check_same_controller()
