"""The demo's session: nodes on a ROS domain of their own, their client, and the model at work."""

from collections import defaultdict
from collections.abc import Callable, Sequence
import contextlib
import functools
import os
from pathlib import Path
import signal
import time
from typing import Any, NamedTuple
import uuid

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import numpy as np
import pinocchio as pin
from rclpy.node import Node
from std_srvs.srv import Trigger

from ...core.arrays import Array
from ...core.excitation.trajectory import point_to_point
from ...core.model import build_robot
from ...core.model.base_parameters import base_parameters
from ...core.model.robot import Robot
from ...exceptions import ControllerError, RobotIdError
from ...files.collect_results import add_true_values
from ...files.configuration import load, read_urdf
from ...files.payload.makers import RELAY
from ...files.report.page import save_page_if_possible
from ...files.results import chosen_settings, read_results, REPORT, Results, write_results
from ...node_settings import UNCHECKED
from ..common.controller import reference_positions, subscribe_states, TrajectoryClient
from ..common.messages import values_of
from ..common.ros_parameters import ParameterClient
from ..common.runtime import LATCHED_HISTORY, lone_node
from ..common.waiting import result_of, wait_until
from .node_processes import claim_domain, NodeProcesses, release_domain, ros_environment

ROBOT = 'simulated_robot'
# Of the motion: largest travel of a joint [rad or m], shares of its limits of velocity and
# acceleration; joints without limits take these [rad/s, rad/s²].
TRAVEL, TRAVEL_PRISMATIC, SPEED = 0.5, 0.1, 0.4
FASTEST, HARDEST = 1.5, 5.0
# The body that is picked up weighs this share of the arm.
BODY = 0.05
TIMEOUT = 60.0


class AtWork(NamedTuple):
    """Tracking errors of one motion."""

    joints: tuple[str, ...]
    units: tuple[str, ...]
    mass: float  # of a body that is picked up [kg], 0 without
    # (4, n) without efforts, with them, with a body that the model does not know, and with one
    # that was set [units]; two rows without a body.
    rms: Array


class RelayClient:
    """A client of the node `feedforward` in front of the simulated robot; `node` spins."""

    def __init__(self, node: Node, robot: Robot, controller: str):
        self._robot = robot
        self._states = subscribe_states(node, controller)
        self._tracking, self._told = list[DiagnosticArray](), [DiagnosticStatus()]
        self._goals = TrajectoryClient(node, RELAY, TIMEOUT)
        self._nodes = {name: ParameterClient(node, name, TIMEOUT) for name in (RELAY, ROBOT)}
        for topic, kind, heard in (
            ('tracking', DiagnosticArray, self._tracking.append),
            ('state', DiagnosticStatus, self._told.append),
        ):
            node.create_subscription(kind, f'{RELAY}/{topic}', heard, LATCHED_HISTORY)

    def wait_ready(self) -> None:
        """Wait until goals are taken; ControllerError: why they are not."""

        def state() -> str:
            return values_of(self._told[-1]).get('state', 'starting')

        wait_until(lambda: state() != 'starting', TIMEOUT, what=f"'{RELAY}' says nothing")
        if state() == 'failed':
            raise ControllerError(self._told[-1].message)
        self._goals.wait_for_server()

    def held(self) -> Array:
        """Return the positions that the controller holds (n,) [rad or m]."""
        message = self._states.wait_for_latest(TIMEOUT, 'the controller publishes no state')
        return reference_positions(message, self._robot.joints)

    def set(self, name: str, **values: Any) -> None:
        """Set parameters of its group of a node; '__' stands for a point."""
        group, client = 'simulation' if name == ROBOT else name, self._nodes[name]
        wait_until(client.is_ready, TIMEOUT, what=f"'{name}' has no parameters")
        client.set({f'{group}.{key.replace("__", ".")}': x for key, x in values.items()})

    def move(self, start: Array, end: Array) -> Array:
        """Move from rest to rest; return the RMS of each joint's tracking error (n,)."""
        limits, count = self._robot.limits, len(self._tracking)
        motion = point_to_point(
            *(self._robot.joints, start, end),
            SPEED * np.minimum(limits.velocity, FASTEST),
            SPEED * np.minimum(limits.acceleration, HARDEST),
        )
        default = [0.0] * self._robot.n  # tolerances of the controller
        goal = self._goals.send(uuid.uuid4(), motion, default, default, 0.0)
        for done in (goal.accepted, goal.finished):
            wait_until(done, TIMEOUT, what=f"'{RELAY}' does not end its goal")
        wait_until(
            lambda: len(self._tracking) > count, TIMEOUT, what='no tracking error is reported'
        )
        return np.array([float(values_of(s)['rms']) for s in self._tracking[count].status])


def tool_link(robot: Robot) -> str:
    """Name of the last link that moves with the last joint."""
    last = robot.model.getJointId(robot.joints[-1])
    bodies = (f for f in robot.model.frames if f.parentJoint == last)
    return str([f.name for f in bodies if f.type == pin.FrameType.BODY][-1])


def work(client: RelayClient, robot: Robot, *, carries: bool) -> AtWork:
    """Run a motion without and with efforts, then with another body, unknown and known."""
    held = client.held()
    most = np.where(robot.prismatic, TRAVEL_PRISMATIC, TRAVEL)
    up, down = robot.limits.upper - held, held - robot.limits.lower
    there = held + np.where(up >= down, np.minimum(most, 0.5 * up), -np.minimum(most, 0.5 * down))
    masses = [robot.prior[k] for k, p in enumerate(robot.parameters) if p.symbol == 'M']
    mass = 0.0 if carries else max(0.1, round(BODY * float(np.sum(masses)), 1))
    rms = []

    def run() -> None:
        # On its way there the robot leaves the sag of what it was sent, or carried, before.
        client.move(held, there)
        rms.append(client.move(there, held))

    for enabled in (False, True):
        client.set(RELAY, enabled=enabled)
        run()
    if mass:
        client.set(ROBOT, payload__mass=mass)
        run()
        client.set(RELAY, payload__frame=tool_link(robot), payload__mass=mass)
        run()
    units = tuple(length for length, _ in robot.units.values())
    return AtWork(robot.joints, units, mass, np.array(rms))


ProgressCallback = Callable[[float, str], None]
# Share of the whole at which each state of the excitation begins, and how much of it it takes.
PROGRESS_STAGES = {
    '': (0.0, 0.02), 'idle': (0.02, 0.0), 'designing': (0.02, 0.15), 'approaching': (0.17, 0.03),
    'exciting': (0.2, 0.3), 'validating': (0.5, 0.1), 'done': (0.6, 0.1),
}  # fmt: skip
# What is verified on the robot after a session; where each begins, and the model goes to work.
VERIFICATIONS, WORKING_STAGE = {'verify': 0.7, 'verify_gains': 0.8}, 0.9
# Whose failure ends the demo; and how long a service may take [s].
SESSION_NODES, SERVICE_TIMEOUT = ('excitation', 'recorder', 'identification'), 30.0
MOST_BUSY = 4.0  # how many times longer a design may take on a busy machine


class DemoClient:
    """Drives a session as a user would, by services of the excitation; `node` spins."""

    def __init__(self, node: Node, services: Sequence[str]):
        # Made before the subscriptions, and kept: the middleware loses the answer to a client that
        # the server does not know yet, and who has sent a state knows what was here before them.
        self._clients = {
            name: node.create_client(Trigger, f'excitation/{name}') for name in services
        }
        self.states: dict[str, DiagnosticStatus] = defaultdict(DiagnosticStatus)
        self.verifications, self.truth = list[DiagnosticArray](), list[DiagnosticArray]()
        for name in SESSION_NODES:
            keep = functools.partial(self.states.__setitem__, name)
            node.create_subscription(DiagnosticStatus, f'{name}/state', keep, LATCHED_HISTORY)
        for topic, heard in (
            ('excitation/verification', self.verifications),
            ('simulated_robot/true_parameters', self.truth),
        ):
            node.create_subscription(DiagnosticArray, topic, heard.append, LATCHED_HISTORY)

    def value(self, node: str, key: str) -> str:
        """One value of the last state of a node."""
        return values_of(self.states[node]).get(key, '')

    def call(self, name: str) -> None:
        """Call a service of the excitation; no answer, or a refusal, is a RobotIdError."""
        client = self._clients[name]
        what = f"nobody serves 'excitation/{name}'"
        wait_until(client.service_is_ready, SERVICE_TIMEOUT, what=what)
        answer = result_of(client.call_async(Trigger.Request()), SERVICE_TIMEOUT, name)
        if not answer.success:
            raise RobotIdError(f"'excitation/{name}' refused: {answer.message}")


class Demo(contextlib.ExitStack):
    """A session on the simulated robot, and verifications after it; files are in `output`."""

    def __init__(
        self,
        config: Path,
        output: Path,
        log_level: str = 'warn',
        verifications: Sequence[str] = (),
    ):
        super().__init__()
        self._configuration, self._verifications = load(config), verifications
        self._output = output
        self.folder, self.design = output, output  # of the results, and the file of the motion
        self.unverified = ''  # why the results could not be verified on the robot
        self.at_work: AtWork | None = None  # a motion through `feedforward`, after verifications
        self._domain = claim_domain()
        self._processes = NodeProcesses(config, self._domain, log_level)

    def run(self, show: ProgressCallback, time_limit: float) -> Results:
        """Run it, `show` gets share and sentence; RobotIdError: a node fails, or time is up."""
        show(0.0, 'starting the nodes')
        configuration, settings = self._configuration, self._configuration.excitation
        robot = build_robot(read_urdf(configuration) or '', configuration.robot)
        carries = configuration.simulation.payload.mass > 0.0
        folder = {'recorder.folder': str(self._output.absolute())}
        # So many share a processor that the search for the motion gets a part.
        busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        # A busy machine may hold up the simulated robot; that is no reason to stop it.
        patient = {'excitation.stale_after': 1.0, 'excitation.timeout': 30.0}
        simulated = {
            **patient,
            'excitation.time_limit': min(busy, MOST_BUSY) * settings.time_limit,
            # Nothing real moves on this domain.
            'excitation.accept_unchecked': UNCHECKED,
        }
        for name, given in (
            (ROBOT, {} if carries else {'simulation.payload.link': tool_link(robot)}),
            ('recorder', folder),
            ('identification', folder),
            ('excitation', {**simulated, **folder}),
        ):
            self._processes.start(name, given)
        os.environ.update(ros_environment(self._domain))
        end = time.monotonic() + time_limit
        with lone_node('session_client', '/', self._domain) as node:
            client = DemoClient(node, ('start', *self._verifications))

            def wait(done: Callable[[], bool], begun: float | None = None) -> None:
                """Show progress until `done`, of verifications where they have `begun`."""
                while not done():
                    self._processes.check()
                    for name in SESSION_NODES:
                        if client.value(name, 'state') == 'failed':
                            raise RobotIdError(f'{name}: {client.states[name].message}')
                    if time.monotonic() > end:
                        raise RobotIdError(
                            'the demo takes too long: run it on a machine with less load'
                        )
                    state = client.value('excitation', 'state')
                    start, length = PROGRESS_STAGES.get(state, (0.6, 0.1))
                    share = start + length * float(client.value('excitation', 'progress') or 0.0)
                    busy = 'identification' if state == 'done' and not begun else 'excitation'
                    show(begun or share, client.states[busy].message)
                    time.sleep(0.1)

            wait(lambda: client.value('recorder', 'state') == 'idle')
            client.call('start')
            wait(lambda: client.value('identification', 'state') == 'done')
            self.folder = Path(client.value('identification', 'folder'))
            self.design = Path(client.value('excitation', 'file'))
            self._add_true_parameters(client.truth)

            def is_verified(count: int) -> bool:
                done = client.value('excitation', 'state') == 'done'
                return done and len(client.verifications) > count

            found = {'feedforward.results': str(self.folder.absolute())}
            given = {**found, 'feedforward.largest_slowdown': 4.0, **patient}
            try:
                for service in self._verifications:
                    verified = functools.partial(is_verified, len(client.verifications))
                    client.call(service)
                    if RELAY not in self._processes.running:  # it gets ready meanwhile
                        self._processes.start(RELAY, given)
                    wait(verified, VERIFICATIONS[service])
                if self._verifications:
                    show(WORKING_STAGE, 'the model at work, through the node feedforward')
                    relay = RelayClient(node, robot, settings.controller)
                    relay.wait_ready()
                    self.at_work = work(relay, robot, carries=carries)
            except RobotIdError as error:
                # What was identified stays: its files are written by now.
                self.unverified = str(error)
        results = read_results(self.folder)
        if self.unverified or not self._verifications:  # which write the report again
            report = self.folder / REPORT
            save_page_if_possible('identification', report, results, self.folder.absolute())
        return results

    def _add_true_parameters(self, messages: Sequence[DiagnosticArray]) -> None:
        """Put the true base parameters into results and report."""
        results = read_results(self.folder)
        if not messages:
            raise RobotIdError('the simulated robot does not publish its true parameters')
        chosen = chosen_settings(self._configuration.robot, results)
        robot = build_robot(read_urdf(self._configuration) or '', chosen)
        robot = robot.elastic or robot
        truth = true_standard_parameters(robot, messages[-1])
        names = [parameter.name for parameter in robot.parameters]
        results = add_true_values(results, base_parameters(robot), names, truth)
        write_results(results, self.folder)

    def __enter__(self) -> 'Demo':
        # The last to be undone: who is ended after it has nothing left to end in good order.
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        self.callback(signal.signal, signal.SIGTERM, before)
        self.callback(release_domain, self._domain)
        self.callback(self._processes.stop)
        return self


def true_standard_parameters(robot: Robot, message: DiagnosticArray) -> np.ndarray:
    """Read (p,) of a simulated robot: joints by name, motors by ratios, NaN what it lacks."""
    groups = {status.name: values_of(status) for status in message.status}
    names: dict[str, str] = {}
    for number, joint in enumerate(robot.links, start=1):
        names |= {f'{symbol}{number}': x for symbol, x in groups.get(joint, {}).items()}
    for coupling in robot.couplings:
        for values in groups.values():
            ratios = [float(x) for x in values.get('ratios', '').split()]
            if len(ratios) == robot.n and np.allclose(ratios, coupling.ratios):
                names |= {f'{symbol}{coupling.number}': value for symbol, value in values.items()}
    return np.array([float(names.get(parameter.name, 'nan')) for parameter in robot.parameters])
