"""
The model at work: five motions that are not the excitation, without and with feed-forward.

Each robot is identified from its stored excitation, noise as configured. Then it runs as a
process, and goals go to its controller through the node `feedforward`, as they came and with
efforts, after a first goal in which these grow: two moves with trapezoids of velocity as planners
make them (points every 0.1 s), a circle, a pick without a body and a place with one. The added
latency is that from sending a goal until the controller says that it executes it, less the same
without the node; by the stamp with which the middleware publishes that, as what a client takes to
hear of it is no matter of the node. A part of it is the simulated controller's, in Python, which
reads more points: it is shown by goals with the node's points that go there without the node.

Usage: `python benchmarks/at_work.py [ROBOT ...] [--check]`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
import functools
from pathlib import Path
import statistics
import sys
from tempfile import TemporaryDirectory
import threading
import time
from typing import Any, NamedTuple

from action_msgs.msg import GoalStatus, GoalStatusArray
from common import command_line, configured, ROOT, verdict
from control_msgs.action import FollowJointTrajectory
import numpy as np
from rclpy.action import ActionClient
from verification import record

from robotid_ros.core.excitation.trajectory import Waypoints
from robotid_ros.core.model.dynamics import PathDynamics
from robotid_ros.core.model.pinocchio_model import body_frame
from robotid_ros.core.model.robot import Robot
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.verification.feed_forward import goal_with_efforts
from robotid_ros.files.collect_results import collect_results
from robotid_ros.files.configuration import Configuration, read_urdf
from robotid_ros.files.results import write_results
from robotid_ros.files.trajectory_file import read_design
from robotid_ros.nodes.common.messages import trajectory_message, values_of
from robotid_ros.nodes.common.model_node import load_model
from robotid_ros.nodes.common.runtime import LATCHED
from robotid_ros.nodes.common.waiting import result_of, wait_until
from robotid_ros.nodes.demo.demo import RelayClient
from robotid_ros.nodes.demo.node_processes import claim_domain, NodeProcesses, release_domain

sys.path.insert(0, str(ROOT / 'test' / 'tools'))
from session_client import SessionClient

# What each robot carries from pick to place [kg]; how many times smaller its error must become.
ROBOTS = {'tx40': 1.0, 'arm3': 1.0, 'scara': 1.0}
LEAST = 5.0
# Most that the node may add: of a goal [s], and of each point of it.
LATENCY, LATENCY_OF_POINT = 3e-3, 20e-6
GOALS = 60  # whose latency is measured, each way
STEP = 0.1  # from one point of a goal to the next [s]
TRAVEL, DURATION = 0.6, 1.5  # of a motion [rad, s]
TIMEOUT = 60.0
DIRECT, RELAY = '/arm_controller', '/feedforward'


class Motion(NamedTuple):
    """A goal from rest to rest: positions, velocities, accelerations (P, n) at times (P,)."""

    name: str
    time: np.ndarray
    q: np.ndarray
    dq: np.ndarray
    ddq: np.ndarray


def trapezoid(name: str, start: np.ndarray, end: np.ndarray, duration: float) -> Motion:
    """Accelerate for a quarter of the time, and brake for a quarter."""
    time = np.linspace(0.0, duration, round(duration / STEP) + 1)
    quarter, a = 0.25 * duration, 1.0 / (0.1875 * duration**2)
    braking = time > duration - quarter
    late = np.where(braking, duration - time, time)
    s = np.where(late < quarter, 0.5 * a * late**2, a * quarter * (late - 0.5 * quarter))
    s = np.where(braking, 1.0 - s, s)
    ds = a * np.minimum(late, quarter)
    dds = np.where(late < quarter, np.where(braking, -a, a), 0.0)
    dds[[0, -1]], ds[[0, -1]] = 0.0, 0.0
    return Motion(name, time, *(start * (k == 0) + np.outer(x, end - start)
                                for k, x in enumerate((s, ds, dds))))  # fmt: skip


def circle(name: str, start: np.ndarray, radius: float, duration: float) -> Motion:
    """Turn once in the space of the joints, from rest to rest."""
    time = np.linspace(0.0, duration, round(duration / STEP) + 1)
    u = time / duration
    phase = 2 * np.pi * (10 * u**3 - 15 * u**4 + 6 * u**5)
    rate = 2 * np.pi * (30 * u**2 - 60 * u**3 + 30 * u**4) / duration
    change = 2 * np.pi * (60 * u - 180 * u**2 + 120 * u**3) / duration**2
    shift = np.arange(len(start)) * np.pi / 2
    angle = phase[:, None] + shift
    rate, change = rate[:, None], change[:, None]
    q = start + radius * (np.sin(angle) - np.sin(shift))
    dq = radius * np.cos(angle) * rate
    ddq = radius * (np.cos(angle) * change - np.sin(angle) * rate**2)
    return Motion(name, time, q, dq, ddq)


class Cell:
    """A simulated robot, the node in front of it, and a client."""

    def __init__(self, config: Path, results: Path, carried: float, link: str, robot: Robot):
        self._joints, self._domain = robot.joints, claim_domain()
        self._processes = NodeProcesses(config, self._domain, log_level='error')
        simulation: dict[str, object] = {}
        if carried:
            simulation = {'simulation.payload.mass': carried, 'simulation.payload.link': link}
        self._processes.start('simulated_robot', simulation)
        self._processes.start(
            'feedforward',
            {'feedforward.results': str(results), 'feedforward.payload.frame': link},
        )
        self.client = SessionClient(self._domain)
        node = self.client.node
        relay = RelayClient(node, robot, DIRECT)
        self.set = functools.partial(relay.set, 'feedforward')
        self._actions = {
            name: ActionClient(node, FollowJointTrajectory, f'{name}/follow_joint_trajectory')
            for name in (DIRECT, RELAY)
        }
        self._arrived = threading.Event()
        topic = f'{DIRECT}/follow_joint_trajectory/_action/status'
        node.create_subscription(GoalStatusArray, topic, self._on_status, LATCHED)
        relay.wait_ready()
        for action in self._actions.values():
            wait_until(action.server_is_ready, TIMEOUT, what='an action server is missing')

    def close(self) -> None:
        """End all processes."""
        self._processes.stop()
        self.client.close()
        release_domain(self._domain)

    def move(self, motion: Motion | Waypoints, name: str = RELAY) -> float:
        """Run a motion; return how long its goal took to the controller [s]."""
        points = motion if isinstance(motion, Waypoints) else Waypoints(self._joints, *motion[1:])
        goal = FollowJointTrajectory.Goal(trajectory=trajectory_message(points))
        self._arrived.clear()
        begin = 0

        def send() -> Any:
            nonlocal begin
            begin = time.time_ns()
            return self._actions[name].send_goal_async(goal)

        handle = self._call(send)
        assert self._arrived.wait(TIMEOUT), 'the goal has not come to the controller'
        latency = 1e-9 * (self._arrived_at - begin)
        answer = self._call(handle.get_result_async)
        assert answer.status == GoalStatus.STATUS_SUCCEEDED, answer.result.error_string
        return latency

    def errors(self, count: int) -> np.ndarray:
        """Return the RMS of the tracking error of each joint in goal number `count`."""
        found = self.client.history['feedforward/tracking']
        wait_until(lambda: len(found) >= count, TIMEOUT, what='no tracking error is told')
        return np.array([float(values_of(s)['rms']) for s in found[count - 1].status])

    def _on_status(self, message: GoalStatusArray, info: dict[str, int]) -> None:
        executing = any(s.status == GoalStatus.STATUS_EXECUTING for s in message.status_list)
        if executing and not self._arrived.is_set():
            self._arrived_at = info['source_timestamp']
            self._arrived.set()

    def _call(self, function: Callable[[], Any]) -> Any:
        executor = self.client.node.executor
        assert executor is not None
        future = result_of(executor.create_task(function), TIMEOUT, 'the executor')
        return result_of(future, TIMEOUT, 'the action')


def with_efforts(results: Path, configuration: Configuration, motion: Motion) -> Waypoints:
    """Return the goal that the node makes of a motion."""
    model = load_model(results, read_urdf(configuration) or '', configuration.robot)
    goal = Waypoints(model.robot.joints, *motion[1:])
    period, ramp = 1.0 / configuration.simulation.update_rate, configuration.feedforward.ramp
    dynamics, none = PathDynamics(model.robot, model.chi), np.zeros(model.robot.n)
    return goal_with_efforts(goal, dynamics, period, none, ramp)


@contextmanager
def opened(*arguments: Any) -> Iterator[Cell]:
    """Start a cell, and end it."""
    cell = Cell(*arguments)
    try:
        yield cell
    finally:
        cell.close()


def work(name: str) -> list[str]:
    """Let one robot work; print its errors, return what misses its bound."""
    configuration, robot = configured(name)
    plan = read_design(ROOT / 'config' / 'trajectories' / f'{name}.yaml')
    recording = record(robot, configuration, plan.trajectory, configuration.excitation.periods)
    found = identify(recording, robot, configuration.identification)
    start = np.array(configuration.simulation.initial_positions or np.zeros(robot.n), dtype=float)
    # Towards the middle of each joint's range.
    middle = 0.5 * (robot.limits.lower + robot.limits.upper)
    middle = np.where(np.isfinite(middle), middle, 0.0)
    end = start + TRAVEL * np.where(middle - start >= 0.0, 1.0, -1.0)
    empty = [
        trapezoid('move', start, end, DURATION),
        trapezoid('slow move back', end, start, 2.0 * DURATION),
        circle('circle', start, 0.5 * TRAVEL, 2.0 * DURATION),
        trapezoid('pick', start, end, DURATION),
    ]
    missed = list[str]()
    latencies = list[float](), list[float](), list[float]()
    print(f'\n{name}: RMS of the tracking error of all joints [mrad or mm]')
    print('motion              without   with feed-forward   times smaller')
    link = body_frame(robot).body
    config = ROOT / 'config' / f'{name}.yaml'
    with TemporaryDirectory() as folder:
        results = Path(folder)
        write_results(collect_results(found, recording), results)
        for carried, motions in (
            (0.0, empty),
            (ROBOTS[name], [trapezoid('place', start, end, DURATION)]),
        ):
            with opened(config, results, carried, link, robot) as cell:
                if carried:
                    cell.set(payload__mass=carried)
                both = []
                for enabled in (False, True):
                    cell.set(enabled=enabled)
                    both.append([])
                    cell.move(trapezoid('', start, start + 0.1 * (end - start), DURATION))
                    position = start + 0.1 * (end - start)
                    for motion in motions:
                        if not np.allclose(motion.q[0], position):
                            cell.move(trapezoid('', position, motion.q[0], DURATION))
                        cell.move(motion)
                        count = len(cell.client.history['feedforward/tracking'])
                        both[-1].append(np.sqrt(np.mean(cell.errors(max(count, 1)) ** 2)))
                        position = motion.q[-1]
                    cell.move(trapezoid('', position, start, DURATION))
                for motion, before, after in zip(motions, *both, strict=True):
                    ratio = before / after
                    print(
                        f'{motion.name:15} {1e3 * before:11.3f} {1e3 * after:19.3f} {ratio:15.1f}'
                    )
                    if ratio < LEAST:
                        missed.append(
                            f'{name}, {motion.name}: {ratio:.1f} times smaller, not {LEAST:g}'
                        )
                if not carried:
                    near = start + 0.1 * (end - start)
                    for _ in range(GOALS // 2):
                        for kind, own in enumerate(latencies):
                            for ends in ((start, near), (near, start)):
                                goal: Motion | Waypoints = trapezoid('', *ends, 0.5)
                                if kind == 1:
                                    goal = with_efforts(results, configuration, goal)
                                own.append(cell.move(goal, RELAY if kind == 2 else DIRECT))
    direct, refined, relay = map(statistics.median, latencies)
    added = relay - direct
    points = len(trapezoid('', start, end, 0.5).time)
    bound = LATENCY + points * LATENCY_OF_POINT
    print(
        f'added latency: {1e3 * added:.1f} ms of a goal of {points} points, '
        f'{1e3 * (refined - direct):.1f} ms of them for the points that the controller reads more'
    )
    if added > bound:
        missed.append(f'{name}: {1e3 * added:.1f} ms are added, more than {1e3 * bound:.1f}')
    return missed


def main() -> int:
    """Let each robot work."""
    parser = command_line(__doc__ or '')
    parser.add_argument('robots', nargs='*', metavar='ROBOT', help=f'default: {", ".join(ROBOTS)}')
    args = parser.parse_args()
    missed = [text for name in args.robots or ROBOTS for text in work(name)]
    return verdict(missed, args.check)


if __name__ == '__main__':
    sys.exit(main())
