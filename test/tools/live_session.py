"""Processes of a session on a domain of their own, and eyes on the robot."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from contextlib import suppress
import os
from pathlib import Path
import subprocess
import threading
from typing import Any

from loopback import loopback_environment
import numpy as np
from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from sensor_msgs.msg import JointState
from session_client import SessionClient
from std_srvs.srv import Trigger
from waiting import log_to, PATIENCE, tails, wait_until

from robotid_ros.exceptions import ControllerError
from robotid_ros.nodes.common.batched_subscription import BatchedSubscription
from robotid_ros.nodes.common.processes import child_environment
from robotid_ros.nodes.demo.node_processes import claim_domain, NodeProcesses, release_domain

# Slower than this counts as rest: ten times the noise of a speed from positions [rad/s].
REST = 0.015
# A robot that was seen at rest for so long rests for good [s].
FOR_GOOD = 1.5
# Between two stamps that lie further apart nobody has seen the robot [s].
SEEN = 0.02
ROBOT_SERVICES = {
    'simulated_robot/break': Trigger,
    '/arm_controller/get_parameters': GetParameters,
    '/arm_controller/set_parameters_atomically': SetParametersAtomically,
}


def without_pages() -> dict[str, str]:
    """Variables of processes without Bokeh, as on a robot: pages take half a worker's time."""
    folder = Path(__file__).with_name('without_bokeh')
    return {'PYTHONPATH': os.pathsep.join((child_environment()['PYTHONPATH'], str(folder)))}


class Robot:
    """Watches the joint states of the robot from outside, on the robot's own clock."""

    def __init__(self, client: SessionClient, describe: Callable[[], str]):
        self.stream = BatchedSubscription(client.node, JointState, '/joint_states', depth=5000)
        self.stamps: list[int] = []
        self.positions: list[np.ndarray] = []
        self._describe = describe
        self._lock, self._end = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._end.wait(0.01):
            self._take()

    def _take(self) -> None:
        with self._lock:
            for message in self.stream.take_messages():
                stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
                self.positions.append(np.array(message.position))
                self.stamps.append(stamp)

    def speed(self, stamp: int, window: float = 0.02) -> float:
        """Largest joint speed in the window that ends at a stamp, from positions."""
        first = bisect_left(self.stamps, stamp - round(window * 1e9))
        last = bisect_right(self.stamps, stamp) - 1
        if last <= first:
            return float('nan')
        duration = (self.stamps[last] - self.stamps[first]) * 1e-9
        return float(np.abs(self.positions[last] - self.positions[first]).max() / duration)

    @property
    def now(self) -> int:
        """Last stamp of what has arrived [ns]."""
        self._take()
        return self.stamps[-1] if self.stamps else 0

    def wait(self) -> None:
        """Wait for the robot."""
        wait_until(lambda: self.stamps, 'there is a robot', self._describe)

    def wait_moving(self, speed: float = 0.3) -> None:
        """Wait until the robot moves."""
        wait_until(
            lambda: self.stamps and self.speed(self.now) > speed, 'the robot moves', self._describe
        )

    def rest_after(self, stamp: int) -> float:
        """Time from a stamp until the robot rests for good, by the robot's clock [s]."""
        wait_until(
            lambda: self._seen_since(stamp) > FOR_GOOD,
            f'the robot tells of itself for {FOR_GOOD:g} s from {stamp} on',
            self._describe,
        )
        stamps = self.stamps[bisect_left(self.stamps, stamp) :: 5]
        moving = [s for s in stamps if self.speed(s) > REST]
        time_to_rest = (max(moving, default=stamp) - stamp) * 1e-9
        print(f'at rest after {time_to_rest:.3f} s')
        return time_to_rest

    def _seen_since(self, stamp: int) -> float:
        """Time for which the robot was seen since a stamp [s]; a gap in the stamps is not seen."""
        steps = np.diff(self.stamps[bisect_left(self.stamps, stamp) :]) * 1e-9
        return float(steps[steps < SEEN].sum())

    def close(self) -> None:
        self._end.set()
        self._thread.join()
        self.stream.close()


class PatientClient(SessionClient):
    """Waits as long as a busy machine may take, and says what it has seen when that is over."""

    def __init__(self, domain: int, describe: Callable[[], str]):
        super().__init__(domain, ROBOT_SERVICES)
        self._describe = describe

    def wait_for(
        self, condition: Callable[[], bool], timeout: float = PATIENCE, what: str = ''
    ) -> None:
        wait_until(condition, what, self._describe, timeout)

    def call(
        self, service_type: type, service: str, request: Any, timeout: float = PATIENCE
    ) -> Any:
        try:
            return super().call(service_type, service, request, max(timeout, PATIENCE))
        except ControllerError as error:
            raise AssertionError(f'{error}\n{self._describe()}') from error


class Nodes:
    """
    Processes in a domain of their own, for one `Session` or for several, one after the other.

    Results have no page but with `pages`.
    """

    def __init__(self, config: Path, folder: Path, *, pages: bool = False):
        self.folder, self.domain = folder, claim_domain()
        self.logs = folder / f'log_{self.domain}'
        self.enter()
        environment = loopback_environment(self.domain)
        further = {} if pages else without_pages()
        self.processes = NodeProcesses(config, self.domain, environment=environment | further)

    def enter(self) -> None:
        """Let this process be in the domain, too."""
        log_to(self.logs)
        os.environ.update(loopback_environment(self.domain))

    def close(self) -> dict[str, int]:
        """End all; return exit codes by name."""
        codes = self.processes.stop()
        release_domain(self.domain)
        return codes


class Session:
    """A client and a robot to watch; `nodes` that are given outlive it, else it has its own."""

    def __init__(
        self, config: Path, folder: Path, *, pages: bool = False, nodes: Nodes | None = None
    ):
        self.folder, self._shares = folder, nodes is not None
        self._nodes = nodes or Nodes(config, folder, pages=pages)
        self._nodes.enter()
        self.domain, self.processes = self._nodes.domain, self._nodes.processes
        self.client = PatientClient(self.domain, self.describe)
        # After the client: whoever sends it joint states knows its services.
        self.robot = Robot(self.client, self.describe)

    def start(self, *names: str, **parameters: dict[str, object]) -> None:
        """
        Start nodes that do not run; parameters by node.

        A session waits for a recorder started beside it.
        """
        waits = {'excitation': {'excitation.require_recorder': 'recorder' in names}}
        for name in names:
            if not self.runs(name):
                self.processes.start(name, waits.get(name, {}) | parameters.get(name, {}))

    def runs(self, name: str) -> bool:
        """Whether a node was started and has not ended."""
        running = self.processes.running
        return name in running and running[name].poll() is None

    def ready(self, *nodes: str) -> None:
        """Wait until nodes have said something; it is no news of this session."""
        for node in nodes:
            self.client.wait_for(
                lambda n=node: self.client.state(n) != '', what=f'{node} says something'
            )
            if self._shares:
                self.client.forget(f'{node}/state')

    def until(self, node: str, *states: str) -> str:
        """Wait until a node is in one of these states; return its sentence."""
        ends = {*states, 'done', 'failed'}
        self.client.wait_for(
            lambda: self.client.state(node) in ends, what=f'{node} is {" or ".join(states)}'
        )
        assert self.client.state(node) in states, self.describe()
        return self.client.message(node)

    def run_whole(self, trajectory: Path | str, folder: Path) -> None:
        """Run a session of all nodes, recorded and identified in a folder."""
        records = {'recorder.folder': str(folder)}
        self.start(
            *('simulated_robot', 'excitation', 'recorder', 'identification'),
            excitation={'excitation.trajectory': str(trajectory)},
            recorder=records,
            identification=records,
        )
        self.robot.wait()
        self.ready('excitation', 'recorder', 'identification')
        self.client.call_trigger('excitation/start')
        self.until('excitation', 'done')
        self.until('identification', 'done')

    def end_motion(self) -> None:
        """End the motion that a test has left, where there is one: others come after it."""
        moves = self.client.state('excitation') not in ('', 'idle', 'done', 'failed')
        if self.runs('excitation') and moves:
            self.client.call_trigger('excitation/stop')
            self.until('excitation', 'failed')

    def describe(self) -> str:
        """Say all that is known, for a test that fails."""
        client, robot = self.client, self.robot
        lines = [f'the robot was seen {len(robot.stamps)} times, last at {robot.now}']
        for node in ('excitation', 'recorder', 'identification'):
            lines.append(f'{node}: {client.states(node)}, {client.message(node)!r}')
        codes = {name: process.poll() for name, process in self.processes.running.items()}
        return '\n'.join([*lines, f'exit codes: {codes}', tails(self._nodes.logs)])

    def process(self, name: str) -> 'subprocess.Popen[bytes]':
        return self.processes.running[name]

    def close(self) -> dict[str, int]:
        """End the processes that are its own; return exit codes by name."""
        codes = {} if self._shares else self._nodes.close()
        self.robot.close()
        self.client.close()
        return codes

    def __enter__(self) -> 'Session':
        return self

    def __exit__(self, *_: object) -> None:
        if self.client.context.ok():
            self.close()


def dead(pid: int) -> bool:
    """Whether every thread of a process has ended."""
    try:
        threads = [p.read_text() for p in Path(f'/proc/{pid}/task').glob('*/stat')]
    except OSError:
        # One of them has vanished just now: look again.
        return not Path(f'/proc/{pid}').exists()
    return all(text.rpartition(')')[2].split()[0] in 'ZX' for text in threads)


def child_of(pid: int, word: str) -> int:
    """Find the child process whose command line holds a word."""
    # A thread is the parent of what it starts; both may end while they are looked at.
    for thread in Path(f'/proc/{pid}/task').glob('*/children'):
        with suppress(OSError):
            for child in map(int, thread.read_text().split()):
                with suppress(OSError):
                    if word in Path(f'/proc/{child}/cmdline').read_text():
                        return child
    raise AssertionError(f'no {word} below {pid}')
