"""Friction that a simulated robot gets while it works is told on topics, of the right joint."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import numpy as np
import pytest
import rclpy
from rclpy.parameter import Parameter
from spinning_nodes import spinning_nodes
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from waiting import wait_until

from robotid_ros.core.model import build_robot
from robotid_ros.files.configuration import read_mapping
from robotid_ros.nodes.common.messages import values_of
from robotid_ros.nodes.common.runtime import LATCHED
from robotid_ros.nodes.identification.identification_node import IdentificationNode
from robotid_ros.nodes.simulated_robot.simulated_robot_node import SimulatedRobot

pytestmark = pytest.mark.ros
ROOT = Path(__file__).resolve().parents[3]
FACTOR = 'simulation.friction_factor'
# Points of a motion: as long as any machine takes for this test in simulated time [s].
STEP, SECONDS = 0.1, 600.0


@pytest.fixture
def nodes(domain: int) -> Iterator[tuple[SimulatedRobot, IdentificationNode, rclpy.node.Node]]:
    values = read_mapping(ROOT / 'config' / 'scara.yaml')
    values['simulation'] |= {'state_rate': 125.0, 'real_time_factor': 4.0}
    values['identification'] = {'drift': {'duration': 2.0}}
    with spinning_nodes(domain, values, SimulatedRobot, IdentificationNode, folder=ROOT) as nodes:
        yield nodes


def motion(joints: tuple[str, ...]) -> JointTrajectory:
    points = []
    for time in np.arange(STEP, SECONDS, STEP):
        w, size = np.array([1.3, 1.9]), np.array([0.8, 0.9])
        point = JointTrajectoryPoint(
            positions=(size * np.sin(w * time)).tolist(),
            velocities=(size * w * np.cos(w * time)).tolist(),
        )
        point.time_from_start.sec = int(time)
        point.time_from_start.nanosec = round(time % 1 * 1e9)
        points.append(point)
    points[-1].velocities = [0.0] * len(joints)
    return JointTrajectory(joint_names=list(joints), points=points)


def test_friction_that_grows_is_told(nodes):
    simulated, node, client = nodes
    urdf = (ROOT / 'urdf' / 'scara.urdf').read_text()
    robot = build_robot(urdf, node.configuration.robot)
    truth = {each.name: each.values for each in simulated.loop.physics.true_parameters()}
    chi = np.array([truth[p.joint].get(p.symbol, 0.0) for p in robot.parameters])
    results = SimpleNamespace(base=(), validation=(), identification=())
    outcome = SimpleNamespace(chi=chi, results=results, thresholds='not asked for')
    node._start_live_prediction(robot, outcome)
    seen: list[DiagnosticArray] = []
    common: list[DiagnosticStatus] = []
    client.create_subscription(DiagnosticArray, 'identification/drift', seen.append, LATCHED)
    client.create_subscription(
        DiagnosticArray, '/diagnostics', lambda m: common.extend(m.status), 100
    )
    publisher = client.create_publisher(JointTrajectory, 'arm_controller/joint_trajectory', 10)
    wait_until(publisher.get_subscription_count, 'the controller listens')

    def status_of(name: str) -> DiagnosticStatus | None:
        found = [each for message in seen[-1:] for each in message.status if each.name == name]
        return found[0] if found else None

    def texts() -> list[str]:
        return [each.message for message in seen[-1:] for each in message.status]

    first = wait_until(lambda: status_of('joint_1'), 'the parameters are published')
    assert first.message.startswith('not enough motion since') and 'Fc1' in values_of(first)
    publisher.publish(motion(robot.joints))
    for name in (*robot.joints, 'payload'):
        wait_until(
            lambda n=name: status_of(n).message == 'as identified', f'{name} is known', texts
        )
    refused, accepted = (
        simulated.set_parameters([Parameter(FACTOR, value=value)])[0]
        for value in ([1.0, 1.0, 1.0], [1.0, 2.0])
    )
    assert (
        accepted.successful and not refused.successful and 'give one per joint' in refused.reason
    )
    wait_until(lambda: status_of('joint_2').level == DiagnosticStatus.WARN, 'it is told', texts)
    told = status_of('joint_2')
    assert told.message.startswith('friction of joint_2 +')
    assert float(values_of(told)['friction_change']) == pytest.approx(1.0, abs=0.3)
    assert status_of('joint_1').level == DiagnosticStatus.OK
    wait_until(
        lambda: any(
            s.name == 'identification: drift' and s.level == DiagnosticStatus.WARN
            and 'friction of joint_2' in s.message
            for s in common
        ),
        'the diagnostics tell it',
        lambda: common[-5:],
    )  # fmt: skip
