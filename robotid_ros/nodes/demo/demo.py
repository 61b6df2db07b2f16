"""The demo's session: four nodes on a ROS domain of their own, and their client."""

from collections.abc import Callable, Sequence
import functools
import os
from pathlib import Path
import signal
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
import numpy as np

from ...core.model import build_robot
from ...core.model.base_parameters import base_parameters
from ...core.model.robot import Robot
from ...exceptions import RobotIdError
from ...files.collect_results import add_true_values
from ...files.configuration import load, read_urdf
from ...files.report.page import write_report_if_possible
from ...files.results import chosen_settings, Results
from ...files.results_file import read_results, REPORT, write_results
from ...node_settings import UNCHECKED
from ..common.messages import values_of
from .node_processes import claim_domain, NodeProcesses, release_domain, ros_environment
from .session_client import SessionClient

ProgressCallback = Callable[[float, str], None]
# Share of the whole at which each state of the excitation begins, and how much of it it takes.
PROGRESS_STAGES = {
    '': (0.0, 0.02),
    'idle': (0.02, 0.0),
    'designing': (0.02, 0.15),
    'approaching': (0.17, 0.03),
    'exciting': (0.2, 0.3),
    'validating': (0.5, 0.1),
    'done': (0.6, 0.1),
}
# Where the verifications begin, which take the rest in equal parts.
VERIFYING_STAGE = 0.7
# What is verified on the robot, besides a session.
VERIFICATIONS = ('verify', 'verify_gains')
# How many times longer a design may take on a busy machine.
MOST_BUSY = 4.0
# Of a verification, each motion leaves so much of what was left: two runs and the ways to them.
LEFT_BY_MOTION = 0.6


class Demo:
    """
    A session on the simulated robot.

    Parameters
    ----------
    config : the robot's configuration file
    output : folder of recording and results
    verifications : services of the excitation that are called after the session

    Attributes
    ----------
    folder, design : of the results, and the file of the motion, when it has run
    unverified : why the results could not be verified on the robot, '' where they were

    """

    def __init__(
        self,
        config: Path,
        output: Path,
        log_level: str = 'warn',
        verifications: Sequence[str] = (),
    ):
        self._config, self._output = config, output
        self._verifications = verifications
        self.folder, self.design = output, output
        self.unverified = ''
        self._domain = claim_domain()
        self._processes = NodeProcesses(config, self._domain, log_level)
        self._on_term: Any = signal.SIG_DFL

    def run(self, show: ProgressCallback, time_limit: float) -> Results:
        """
        Run the session; return its results with the true parameters beside the identified.

        `show` is called with the share that is done, and what is being done. Where a node fails,
        or the time limit [s] has passed, there are no results: that is a RobotIdError.
        """
        show(0.0, 'starting the nodes')
        self._processes.start('simulated_robot')
        folder = {'recorder.folder': str(self._output.absolute())}
        self._processes.start('recorder', folder)
        self._processes.start('identification', folder)
        # So many share a processor that the search for the motion gets a part.
        busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        settings = load(self._config).excitation
        simulated = {
            # A busy machine may hold up the simulated robot; that is no reason to stop it.
            'excitation.stale_after': 1.0,
            'excitation.timeout': 30.0,
            'excitation.time_limit': min(busy, MOST_BUSY) * settings.time_limit,
            # Nothing real moves on this domain.
            'excitation.accept_unchecked': UNCHECKED,
        }
        self._processes.start('excitation', {**simulated, **folder})
        os.environ.update(ros_environment(self._domain))
        end = time.monotonic() + time_limit
        with SessionClient(self._domain) as client:

            def wait(done: Callable[[], bool], stage: tuple[float, float] | None = None) -> None:
                """Show progress until `done`; any node's failure ends the demo."""
                within = share_of_motions()
                while not done():
                    self._processes.check()
                    for node in ('excitation', 'recorder', 'identification'):
                        if client.state(node) == 'failed':
                            raise RobotIdError(f'{node}: {client.message(node)}')
                    if time.monotonic() > end:
                        raise RobotIdError(
                            'the demo takes too long: run it on a machine with less load'
                        )
                    state = client.state('excitation')
                    start, length = stage or PROGRESS_STAGES.get(state, (0.6, 0.1))
                    share = float(client.value('excitation', 'progress') or 0.0)
                    busy = 'identification' if state == 'done' and not stage else 'excitation'
                    share = within(share) if stage else share
                    show(start + length * share, client.message(busy))
                    time.sleep(0.1)

            wait(lambda: client.state('recorder') == 'idle')
            client.call_trigger('excitation/start', timeout=30.0)
            wait(lambda: client.state('identification') == 'done')
            self.folder = Path(client.value('identification', 'folder'))
            self.design = Path(client.value('excitation', 'file'))
            # Before the verifications, which write the report again.
            self._add_true_parameters(client.latest.get('simulated_robot/true_parameters'))
            length = (1.0 - VERIFYING_STAGE) / max(len(self._verifications), 1)
            found = client.history['excitation/verification']

            def is_verified(before: int) -> bool:
                return len(found) > before and client.state('excitation') == 'done'

            try:
                for number, service in enumerate(self._verifications):
                    before = len(found)
                    client.call_trigger(f'excitation/{service}', timeout=30.0)
                    stage = VERIFYING_STAGE + number * length, length
                    wait(functools.partial(is_verified, before), stage)
            except RobotIdError as error:
                # What was identified stays: its files are written by now.
                self.unverified = str(error)
        return read_results(self.folder)

    def _add_true_parameters(self, message: DiagnosticArray | None) -> None:
        """Put the true base parameters into results and report."""
        results = read_results(self.folder)
        if message is None:
            raise RobotIdError('the simulated robot does not publish its true parameters')
        configuration = load(self._config)
        chosen = chosen_settings(configuration.robot, results)
        robot = build_robot(read_urdf(configuration) or '', chosen)
        robot = robot.elastic or robot
        truth = true_standard_parameters(robot, message)
        names = [parameter.name for parameter in robot.parameters]
        results = add_true_values(results, base_parameters(robot), names, truth)
        write_results(results, self.folder)
        write_report_if_possible(results, self.folder / REPORT)

    def __enter__(self) -> 'Demo':
        self._on_term = signal.signal(signal.SIGTERM, signal.default_int_handler)
        return self

    def __exit__(self, *_: object) -> None:
        self._processes.stop()
        release_domain(self._domain)
        # Who is ended after this has nothing left to end in good order.
        signal.signal(signal.SIGTERM, self._on_term)


def share_of_motions() -> Callable[[float], float]:
    """Return the share of several motions, however many, from that of each: it never falls."""
    left, before = 1.0, 0.0

    def share(part: float) -> float:
        nonlocal left, before
        if part < before:
            left *= LEFT_BY_MOTION
        before = part
        return 1.0 - left * (1.0 - (1.0 - LEFT_BY_MOTION) * part)

    return share


def true_standard_parameters(robot: Robot, message: DiagnosticArray) -> np.ndarray:
    """
    Read the standard parameters (p,) of a simulated robot from what it publishes about itself.

    Joints are matched by name, motors between joints by their ratios. What the simulation does not
    have, such as the shape of a friction term, is NaN.
    """
    groups = {status.name: values_of(status) for status in message.status}
    names: dict[str, str] = {}
    for number, joint in enumerate(robot.links, start=1):
        known = groups.get(joint, {})
        names |= {f'{symbol}{number}': value for symbol, value in known.items()}
    for coupling in robot.couplings:
        for values in groups.values():
            ratios = [float(x) for x in values.get('ratios', '').split()]
            if len(ratios) == robot.n and np.allclose(ratios, coupling.ratios):
                names |= {f'{symbol}{coupling.number}': value for symbol, value in values.items()}
    return np.array([float(names.get(parameter.name, 'nan')) for parameter in robot.parameters])
