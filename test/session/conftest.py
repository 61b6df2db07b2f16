"""Processes of a session on a domain of their own, and eyes on the robot."""

from collections.abc import Callable, Iterator
import os
from pathlib import Path
import random
import subprocess
import threading
import time

import numpy as np
import pytest
from sensor_msgs.msg import JointState
import yaml

from robotid_ros.core.excitation import Design, design
from robotid_ros.core.model import build_robot
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.files.trajectory_file import write_design
from robotid_ros.nodes.common.batched_subscription import Stream
from robotid_ros.nodes.demo.node_processes import environment, Processes
from robotid_ros.nodes.demo.session_client import Director

CONFIG = Path(__file__).resolve().parents[2] / 'config' / 'scara.yaml'
# Slower than this counts as rest: ten times the noise of a speed from positions [rad/s].
REST = 0.015
# Longest wait for what must come: on a busy machine a node takes its time to start [s].
PATIENCE = 60.0


class Robot:
    """Watches the joint states of the robot from outside, on the robot's own clock."""

    def __init__(self, director: Director):
        self.node = director.node
        self.stream = Stream(director.node, JointState, '/joint_states', depth=5000)
        self.rows: list[tuple[int, np.ndarray]] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._end.wait(0.01):
            for message in self.stream.messages():
                stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
                self.rows.append((stamp, np.array(message.position)))

    def speed(self, stamp: int, window: float = 0.02) -> float:
        """Largest joint speed in the window that ends at a stamp, from positions."""
        rows = [(s, q) for s, q in self.rows if stamp - window * 1e9 <= s <= stamp]
        if len(rows) < 2:
            return float('nan')
        (first, q0), (last, q1) = rows[0], rows[-1]
        return float(np.abs(q1 - q0).max() / ((last - first) * 1e-9))

    @property
    def now(self) -> int:
        """Last stamp [ns]."""
        return self.rows[-1][0] if self.rows else 0

    def wait(self, timeout: float = PATIENCE) -> None:
        """Wait for the robot."""
        end = time.monotonic() + timeout
        while not self.rows and time.monotonic() < end:
            time.sleep(0.01)
        assert self.rows, 'there is no robot'

    def wait_moving(self, speed: float = 0.3, timeout: float = PATIENCE) -> int:
        """Wait until the robot moves; return the stamp."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if self.rows and self.speed(self.now) > speed:
                return self.now
            time.sleep(0.005)
        raise AssertionError('the robot did not move')

    def rest_after(self, stamp: int, timeout: float = 5.0) -> float:
        """Time from a stamp until the robot rests for good [s]."""
        end = time.monotonic() + timeout
        while time.monotonic() < end and self.now < stamp + 1_500_000_000:
            time.sleep(0.02)
        stamps = [s for s, _ in self.rows if s >= stamp]
        moving = [s for s in stamps[::5] if self.speed(s) > REST]
        time_to_rest = (max(moving, default=stamp) - stamp) * 1e-9
        print(f'at rest after {time_to_rest:.3f} s')
        return time_to_rest

    def close(self) -> None:
        self._end.set()
        self._thread.join()
        self.stream.close()


class Session:
    """Processes, a director and a robot to watch."""

    def __init__(self, config: Path, folder: Path):
        self.folder = folder
        self.domain = random.SystemRandom().randint(1, 100)
        os.environ.update(environment(self.domain))
        self.processes = Processes(config, self.domain)
        self.director = Director(self.domain)
        self.robot = Robot(self.director)

    def start(self, *names: str, **parameters: dict[str, object]) -> None:
        """Start nodes; parameters by node."""
        for name in names:
            self.processes.start(name, parameters.get(name))

    def restart(self, **parameters: dict[str, object]) -> None:
        """Start nodes anew and wait until they are ready."""
        self.processes.stop(parameters)
        for name, values in parameters.items():
            self.director.last.pop(f'{name}/state', None)
            self.processes.start(name, values)
        self.ready(*parameters)

    def ready(self, *nodes: str) -> None:
        """Wait until nodes have said something."""
        for node in nodes:
            self.director.wait_for(lambda n=node: self.director.state(n) != '', PATIENCE, node)

    def until(self, node: str, *states: str, timeout: float = PATIENCE) -> str:
        """Wait until a node is in one of these states; return its sentence."""
        self.director.wait_for(
            lambda: self.director.state(node) in states, timeout, f'{node}: {states}'
        )
        return self.director.message(node)

    def process(self, name: str) -> 'subprocess.Popen[bytes]':
        return self.processes.running[name]

    def close(self) -> dict[str, int]:
        codes = self.processes.stop()
        self.robot.close()
        self.director.close()
        return codes


@pytest.fixture(scope='session')
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Take the SCARA, with updates at 500 Hz to spare the processor, and a short excitation."""
    values = yaml.safe_load(CONFIG.read_text())
    groups = values['/**']['ros__parameters']
    groups['excitation'].update(
        period=4.0, periods=2, order=3, starts=1, time_limit=3.0, settle=0.2, timeout=5.0
    )
    # A busy machine may hold up the simulated robot for longer than a real one is silent.
    groups['excitation']['stale_after'] = 1.0
    groups['simulation'].update(update_rate=500.0)
    path = tmp_path_factory.mktemp('config') / 'scara.yaml'
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.fixture(scope='session')
def designed(config: Path) -> Design:
    """Design for it, once."""
    configuration = load(config)
    robot = build_robot(read_urdf(configuration) or '', configuration.robot)
    return design(robot, configuration.excitation)


@pytest.fixture(scope='session')
def trajectory(designed: Design, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_design(tmp_path_factory.mktemp('trajectory') / 'trajectory.yaml', designed)


@pytest.fixture
def make_session(config: Path, tmp_path: Path) -> Iterator[Callable[[], Session]]:
    made: list[Session] = []

    def make() -> Session:
        made.append(Session(config, tmp_path))
        return made[-1]

    yield make
    for session in made:
        session.close()


@pytest.fixture
def session(make_session: Callable[[], Session]) -> Session:
    return make_session()
