"""A system clock that is set neither silences the recorder nor gets into a recording unseen."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
import threading
import time

from control_msgs.msg import JointTrajectoryControllerState
from diagnostic_msgs.msg import DiagnosticStatus
from mcap.reader import make_reader
import numpy as np
from parameter_overrides import parameter_overrides
import pytest
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from waiting import wait_until

from robotid_ros.files.bags import open_recording
from robotid_ros.files.configuration import read_mapping
from robotid_ros.nodes.common.messages import format_seconds, status, values_of
from robotid_ros.nodes.common.runtime import LATCHED, SpinThread
from robotid_ros.nodes.recorder import recorder_node
from robotid_ros.nodes.recorder.recorder_node import Recorder, SystemClock

CONFIG = Path(__file__).resolve().parents[3] / 'config' / 'scara.yaml'
SECOND = 1_000_000_000


@contextmanager
def recorder(folder: Path, domain: int, **parameters: bool) -> Iterator[Node]:
    """Run a recorder; give another node beside it."""
    context = Context()
    rclpy.init(context=context, domain_id=domain)
    values = {**read_mapping(CONFIG), 'recorder': {'folder': str(folder)}}
    overrides = [
        *parameter_overrides(values),
        *(Parameter(k, value=v) for k, v in parameters.items()),
    ]
    node = Recorder(context=context, parameter_overrides=overrides)
    client = rclpy.create_node('client', context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    executor.add_node(client)
    spinning = SpinThread(executor)
    try:
        yield client
    finally:
        node.close()
        spinning.end()
        rclpy.try_shutdown(context=context)


class Robot:
    """A robot that moves, its controller, and an excitation that says so."""

    def __init__(self, node: Node):
        self._states = node.create_publisher(JointState, 'joint_states', 10)
        self._controller = node.create_publisher(
            JointTrajectoryControllerState, 'arm_controller/controller_state', 10
        )
        self._excitation = node.create_publisher(DiagnosticStatus, 'excitation/state', LATCHED)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        count = 0
        while not self._end.wait(0.005):
            now, count = time.time_ns(), count + 1
            values = np.sin([0.1 * count, 0.2 * count]).tolist()
            state = JointState(name=['joint_1', 'joint_2'], position=values, effort=values)
            state.header.stamp.sec, state.header.stamp.nanosec = divmod(now, SECOND)
            self._states.publish(state)
            self._controller.publish(JointTrajectoryControllerState(header=state.header))
            if count % 20 == 0:
                values = {'state': 'exciting', 'stamp': format_seconds(now), 'cycles': '1'}
                self._excitation.publish(status('excitation', '', values))

    def close(self) -> None:
        self._end.set()
        self._thread.join()


@pytest.mark.ros
@pytest.mark.parametrize('step', [-3600, 0.5])
def test_a_clock_that_is_set_ends_the_recording_of_a_session(
    step: float, tmp_path: Path, domain: int, monkeypatch: pytest.MonkeyPatch
):
    beats: list[DiagnosticStatus] = []
    states: list[DiagnosticStatus] = []
    with recorder(tmp_path, domain) as client:
        client.create_subscription(DiagnosticStatus, 'recorder/heartbeat', beats.append, 1000)
        client.create_subscription(DiagnosticStatus, 'recorder/state', states.append, LATCHED)
        robot = Robot(client)

        def records() -> bool:
            newest = values_of(beats[-1]) if beats else {}
            return newest.get('state') == 'recording' and int(newest['messages']) > 300

        wait_until(records, 'it records', lambda: beats[-1:])
        before = recorder_node.read_offset()
        monkeypatch.setattr(recorder_node, 'read_offset', lambda: before + round(step * SECOND))
        wait_until(lambda: states and values_of(states[-1])['state'] == 'closed', 'it closes')
        robot.close()
    sentence = f'the system clock was set by {step:+.2f} s'
    assert f'cut: {sentence}' in states[-1].message
    # Whoever moves the robot is told why.
    assert any(values_of(b)['state'] == 'closing' and sentence in b.message for b in beats)
    path = Path(values_of(states[-1])['path'])
    recording = open_recording(path)
    assert [phase.name for phase in recording.phases] == ['exciting', 'failed']
    with (path / f'{path.name}.mcap').open('rb') as stream:
        messages = make_reader(stream).iter_messages(log_time_order=False)
        topics = [channel.topic for _, channel, _ in messages]
    # Nothing follows the state that ends the session: its stamps would be of another clock.
    assert '/joint_states' in topics
    assert topics[-1] == '/excitation/state'


@pytest.mark.ros
def test_the_heartbeat_does_not_follow_the_clock_of_the_node(tmp_path: Path, domain: int):
    """Simulated time that stands still, as that of the system does where it is set back."""
    beats: list[DiagnosticStatus] = []
    with recorder(tmp_path, domain, use_sim_time=True) as client:
        client.create_subscription(DiagnosticStatus, 'recorder/heartbeat', beats.append, 10)
        wait_until(lambda: len(beats) > 3, 'its heart beats')


@pytest.mark.parametrize('step', [-10.0, 0.03])
def test_a_step_is_told_with_its_size(step: float, monkeypatch: pytest.MonkeyPatch):
    clock = SystemClock()
    assert not clock.was_set() and clock.step == 0
    system = time.time_ns
    monkeypatch.setattr(time, 'time_ns', lambda: system() + round(step * SECOND))
    assert clock.was_set()
    assert clock.step == pytest.approx(step * SECOND, abs=5e6)
    assert abs(clock.now() - system()) < SECOND


def test_a_thread_that_loses_the_processor_is_no_step(monkeypatch: pytest.MonkeyPatch):
    clock, steady, calls = SystemClock(), time.monotonic_ns, []

    def late() -> int:
        calls.append(None)
        # Between the first look at this clock and that at the system's.
        return steady() - (SECOND if len(calls) == 1 else 0)

    monkeypatch.setattr(time, 'monotonic_ns', late)
    assert not clock.was_set()
