"""A push on the simulated robot in motion is told, over topics; nothing is told without."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
import numpy as np
import pytest
import rclpy
from sensor_msgs.msg import JointState
from spinning_nodes import spinning_nodes
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from waiting import wait_until

from robotid_ros.core.model import build_robot
from robotid_ros.core.monitoring.external_effort import ContactThresholds
from robotid_ros.files.configuration import read_mapping
from robotid_ros.nodes.common.messages import to_nanoseconds, values_of
from robotid_ros.nodes.common.runtime import LATCHED_HISTORY
from robotid_ros.nodes.identification.identification_node import IdentificationNode
from robotid_ros.nodes.simulated_robot.simulated_robot_node import SimulatedRobot

pytestmark = pytest.mark.ros
CONFIG = Path(__file__).resolve().parents[3] / 'config' / 'scara.yaml'
TORQUE = -5.0


@pytest.fixture
def client(domain: int) -> Iterator[rclpy.node.Node]:
    """Start a robot, and an identification that knows its true parameters."""
    values = read_mapping(CONFIG)
    values['simulation'] |= {'update_rate': 500.0, 'state_rate': 250.0}
    with spinning_nodes(domain, values, SimulatedRobot, IdentificationNode) as (*nodes, client):
        know_the_truth(*nodes)
        yield client


def know_the_truth(simulated: SimulatedRobot, node: IdentificationNode) -> None:
    robot = build_robot(simulated.urdf, node.configuration.robot)
    truth = {joint.name: joint.values for joint in simulated.loop.physics.true_parameters()}
    chi = np.array([truth[p.joint].get(p.symbol, 0.0) for p in robot.parameters])
    one = np.ones(2)
    thresholds = ContactThresholds(np.outer((0.04, 0.0, 0.0), one), 6.0 * one)
    results = SimpleNamespace(base=(), validation=(), identification=())
    outcome = SimpleNamespace(chi=chi, consistent=chi, thresholds=thresholds, results=results)
    node._start_live_prediction(robot, outcome)


def test_a_push_in_motion_is_told_and_nothing_before(client: rclpy.node.Node):
    contacts: list[DiagnosticStatus] = []
    efforts: list[JointState] = []
    wrenches: list[WrenchStamped] = []
    client.create_subscription(
        DiagnosticStatus, 'identification/contact', contacts.append, LATCHED_HISTORY
    )
    for kind, name, seen in (
        (JointState, 'external_effort', efforts),
        (WrenchStamped, 'external_wrench', wrenches),
    ):
        client.create_subscription(kind, f'identification/{name}', seen.append, 100)
    goals = client.create_publisher(JointTrajectory, 'arm_controller/joint_trajectory', 10)
    pushes = client.create_publisher(WrenchStamped, 'simulated_robot/external_wrench', 10)

    def state() -> str:
        return f'{contacts[-1:]}\n{efforts[-1:]}'

    def now() -> int:
        return to_nanoseconds(efforts[-1].header.stamp)

    def last() -> dict[str, str]:
        return values_of(contacts[-1])

    def push(torque: float) -> None:
        message = WrenchStamped()
        message.header.frame_id, message.wrench.torque.z = 'link_2', torque
        pushes.publish(message)

    wait_until(
        lambda: goals.get_subscription_count() and pushes.get_subscription_count() and efforts,
        'all are matched', state,
    )  # fmt: skip
    end = JointTrajectoryPoint(positions=[1.2, -1.8], velocities=[0.0, 0.0])
    end.time_from_start.sec = 6
    goals.publish(JointTrajectory(joint_names=['joint_1', 'joint_2'], points=[end]))
    begun = now()
    wait_until(lambda: now() > begun + 2 * 10**9, 'it moves for two seconds', state)
    assert (last()['contact'], last()['number']) == ('False', '0')
    pushed = now()
    push(TORQUE)
    wait_until(lambda: last()['contact'] == 'True', 'the contact is told', state)
    told = last()
    assert contacts[-1].level == DiagnosticStatus.WARN
    assert told['joint'] in ('joint_1', 'joint_2') and float(told['stamp']) * 1e9 > pushed
    assert 1.3 * TORQUE < float(told['effort']) < -float(told['threshold']) < 0.0
    wait_until(
        lambda: efforts[-1].effort == pytest.approx([TORQUE, TORQUE], abs=0.5),
        'both joints bear the torque', state,
    )  # fmt: skip
    assert list(efforts[-1].name) == ['joint_1', 'joint_2']
    assert wrenches[-1].header.frame_id == 'tool0'
    push(0.0)
    wait_until(lambda: last()['contact'] == 'False', 'the contact ends', state)
    kept = ('joint', 'stamp', 'number')
    assert {key: last()[key] for key in kept} == {key: told[key] for key in kept}
    late: list[DiagnosticStatus] = []
    client.create_subscription(
        DiagnosticStatus, 'identification/contact', late.append, LATCHED_HISTORY
    )
    wait_until(
        lambda: late and late[-1] == contacts[-1], 'who comes late is told of it as well', state
    )
