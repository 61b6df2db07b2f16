"""The node `force_torque` as a process: driven by MuJoCo's sensors, ended, started again."""

from collections.abc import Callable, Iterator
import os
from pathlib import Path
import signal
import subprocess
import sys
import time
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Vector3, Wrench, WrenchStamped
import numpy as np
import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from sensor_arm import MASS, ROBOT, SensorArm
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from std_srvs.srv import SetBool
from waiting import PATIENCE, wait_until

from robotid_ros.files.payload.payload_file import read_body, read_sensor
from robotid_ros.nodes.common.messages import values_of
from robotid_ros.nodes.common.runtime import LATCHED, SpinThread
from robotid_ros.nodes.common.waiting import answer_of

pytestmark = pytest.mark.ros
URDF = Path(__file__).resolve().parents[3] / 'urdf' / 'ur10.urdf'
OFFSET = np.array([12.0, -5.0, 30.0, 0.4, -0.2, 0.1])
TOPIC = 'sensor/wrench'
STEP = 5_000_000  # from one sample of the motion to the next [ns]


class Client:
    """The robot's topics, and who listens to the node."""

    def __init__(self, domain: int, folder: Path):
        self.folder, self.domain, self.stamp = folder, domain, 10**9
        self.frame = 'tool0'  # of the sensor
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=domain)
        self.node = rclpy.create_node('robot', context=self.context)
        self.joints = self.node.create_publisher(JointState, 'joint_states', 10)
        self.sensor = self.node.create_publisher(WrenchStamped, TOPIC, 10)
        self.states: list[DiagnosticStatus] = []
        self.diagnostics: list[DiagnosticStatus] = []
        self.wrenches: list[np.ndarray] = []
        self.node.create_subscription(
            DiagnosticStatus, 'force_torque/state', self.states.append, LATCHED
        )
        self.node.create_subscription(
            DiagnosticArray, '/diagnostics', lambda m: self.diagnostics.extend(m.status), 10
        )
        self.node.create_subscription(
            WrenchStamped, 'force_torque/wrench_compensated', self._on_wrench, 10
        )
        self.service = self.node.create_client(SetBool, 'force_torque/identify')
        executor = SingleThreadedExecutor(context=self.context)
        executor.add_node(self.node)
        self.spinning = SpinThread(executor)
        self.processes: list[subprocess.Popen[bytes]] = []

    def _on_wrench(self, message: WrenchStamped) -> None:
        f, t = message.wrench.force, message.wrench.torque
        self.wrenches.append(np.array([f.x, f.y, f.z, t.x, t.y, t.z]))

    def start(self, **settings: str) -> subprocess.Popen[bytes]:
        given = {'robot.urdf': URDF, 'force_torque.topic': TOPIC, **settings}
        arguments = [word for key, x in given.items() for word in ('-p', f'{key}:={x}')]
        command = [sys.executable, '-m', 'robotid_ros.nodes', 'force_torque', '--ros-args']
        environment = os.environ | {'ROS_DOMAIN_ID': str(self.domain)}
        self.states.clear()
        self.processes.append(
            subprocess.Popen([*command, *arguments], cwd=self.folder, env=environment)
        )
        wait_until(lambda: self.states and self.service.service_is_ready(), 'it has started')
        wait_until(lambda: self.sensor.get_subscription_count() > 0, 'it listens')
        return self.processes[-1]

    def publish(self, q: np.ndarray, wrench: np.ndarray, step: int = STEP) -> None:
        """Publish a sample as a driver does."""
        self.stamp += step
        header = Header(stamp=Time(sec=self.stamp // 10**9, nanosec=self.stamp % 10**9))
        header.frame_id = self.frame
        force, torque = (Vector3(x=x, y=y, z=z) for x, y, z in wrench.reshape(2, 3).tolist())
        message = WrenchStamped(header=header, wrench=Wrench(force=force, torque=torque))
        self.sensor.publish(message)
        time.sleep(0.001)
        self.joints.publish(JointState(header=header, name=ROBOT.joints, position=q.tolist()))
        time.sleep(0.002)

    def hold(self, q: np.ndarray, wrench: np.ndarray, until: Callable[[], bool]) -> None:
        """Rest until something is seen: a busy machine may lose samples."""

        def seen() -> bool:
            self.publish(q, wrench, 100_000_000)
            return until()

        wait_until(seen, 'it is seen', lambda: (self.offset_status(), self.wrenches[-1:]))

    def identify(self, gather: bool) -> Any:
        request = SetBool.Request(data=gather)
        return answer_of(lambda: self.service.call_async(request), PATIENCE, 'it', PATIENCE)

    def offset_status(self) -> DiagnosticStatus | None:
        found = [s for s in self.diagnostics if s.name == 'force_torque: offset']
        return found[-1] if found else None


@pytest.fixture
def client(domain: int, tmp_path: Path) -> Iterator[Client]:
    client = Client(domain, tmp_path)
    yield client
    for process in client.processes:
        process.kill()
    client.spinning.end()
    rclpy.try_shutdown(context=client.context)
    assert not client.spinning.failures


def motion(seconds: float) -> tuple[np.ndarray, ...]:
    """Return slow sums of sines that turn the wrist to all sides."""
    t, rng = np.arange(round(seconds * 1e9 / STEP)) * STEP * 1e-9, np.random.default_rng(0)
    w, a = np.array([0.6, 1.1, 1.7]), rng.normal(size=(3, ROBOT.n)) * 0.5
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    return s @ a, c * w @ a, -(s * w**2) @ a


def test_a_sensor_is_identified_compensated_and_watched(client: Client):
    arm, rng = SensorArm(tilt=np.eye(3)), np.random.default_rng(1)
    # MuJoCo's sensors measure what the arm exerts; this one what acts on it.
    process = client.start()
    assert 'call it with true first' in client.identify(False).message
    assert client.identify(True).success
    states = motion(8.0)
    measured = OFFSET - arm.measure(*states)[1]
    for q, wrench in zip(states[0], measured, strict=True):
        client.publish(q, wrench + 0.2 * rng.normal(size=6))
    answer = client.identify(False)
    assert answer.success, answer.message
    frame, body, _ = read_body(client.folder / 'force_torque.yaml')
    assert frame == 'tool0' and body[0] == pytest.approx(MASS, rel=0.02)
    _, model = read_sensor(client.folder / 'force_torque.yaml')
    np.testing.assert_allclose(model.offset, OFFSET, atol=0.5)

    rest = np.array([[0.3, -1.2, 1.0, 0.2, 0.5, 0.0]])
    still = OFFSET - arm.measure(rest, 0.0 * rest, 0.0 * rest)[1][0]
    push = np.array([0.0, 0.0, 10.0, 0.0, 0.0, 0.0])
    client.hold(
        rest[0],
        still + push,
        lambda: bool(client.wrenches) and bool(np.abs(client.wrenches[-1] - push).max() < 0.5),
    )

    drift = np.array([0.0, 0.0, 5.0, 0.0, 0.0, 0.0])
    client.hold(
        rest[0],
        still + drift,
        lambda: (s := client.offset_status()) is not None and s.level == DiagnosticStatus.WARN,
    )
    told = client.offset_status()
    assert told is not None and told.message == 'the offset of fz has drifted: identify again'
    assert float(values_of(told)['fz']) > 2.0

    # Poses that turn nothing are refused by name, and what was found stays.
    assert client.identify(True).success
    seen = len(client.wrenches)
    client.hold(rest[0], still, lambda: len(client.wrenches) > seen + 30)
    answer = client.identify(False)
    assert not answer.success and 'the poses do not distinguish' in answer.message

    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 0
    client.wrenches.clear()
    client.start(**{'force_torque.results': 'force_torque.yaml'})
    client.hold(rest[0], still + push, lambda: len(client.wrenches) > 3)
    np.testing.assert_allclose(client.wrenches[-1], push, atol=0.5)

    def passed_over(q: np.ndarray, step: int) -> int:
        client.publish(q, still + 9.0 * push, step)
        states = [s for s in client.diagnostics if s.name == 'force_torque: state']
        return int(values_of(states[-1])['messages_passed_over']) if states else 0

    # What another sensor says, and one that turns unseen and has another weight.
    client.frame = 'forearm_link'
    wait_until(lambda: passed_over(rest[0], 10**8) > 2, 'it passes those of others over')
    client.frame, nowhere = 'tool0', np.full(6, np.nan)
    before = passed_over(nowhere, 10**9)
    wait_until(lambda: passed_over(nowhere, 10**9) > before + 2, 'it passes wrenches over')
    # What no sensor measures stays out of the filters, which would not forget it for seconds.
    for value in (np.nan, np.inf, 1e300):
        client.publish(rest[0], np.full(6, value))
    assert client.identify(True).success
    seen = len(client.wrenches)
    client.hold(rest[0], still, lambda: len(client.wrenches) > seen + 30)
    assert 'the poses do not distinguish' in client.identify(False).message
    assert max(wrench[2] for wrench in client.wrenches) < 50.0
    assert client.processes[-1].poll() is None


def test_a_sensor_of_the_other_sign_is_told(client: Client):
    client.start()
    assert client.identify(True).success
    states = motion(4.0)
    for q, wrench in zip(states[0], SensorArm(tilt=np.eye(3)).measure(*states)[1], strict=True):
        client.publish(q, wrench)
    answer = client.identify(False)
    assert not answer.success
    assert answer.message.startswith('gravity points up: set force_torque.reaction')
    assert not list(client.folder.iterdir())
