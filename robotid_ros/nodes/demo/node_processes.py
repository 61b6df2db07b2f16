"""The nodes of a session as processes on a ROS domain of their own."""

from collections.abc import Iterable, Mapping
import contextlib
import json
import os
from pathlib import Path
import random
import signal
import socket
import subprocess
import sys
from typing import Any, NamedTuple

from ...core.verdict import THRESHOLDS
from ...exceptions import RobotIdError
from ...files.results import count_within_sigma, Results
from ..common.processes import child_environment, ENDS_WITH

# Domains that leave their ports below those that Linux gives to outgoing connections.
DOMAINS = range(1, 101)
# Participants that a domain has ports for. All are looked at: Fast DDS numbers them by process, so
# that the only one of a domain has a high number where its process has others.
PARTICIPANTS = 120
_claims: dict[int, socket.socket] = {}


def claim_domain() -> int:
    """Take an empty ROS domain until `release_domain` or this process ends; RobotIdError: none."""
    # A simulated robot must not meet a real one: its controller has the same name. And a fixed
    # choice would let two that begin at once meet.
    for domain in random.SystemRandom().sample(DOMAINS, len(DOMAINS)):
        claim = socket.socket(socket.AF_UNIX)
        try:
            # An abstract address: the system frees it when this process ends, however it ends.
            claim.bind(f'\0robotid_ros/domain/{domain}')
            # Nobody has a port at which participants are discovered. A guardian outlives the node
            # that it guards: it need not be the first participant.
            for participant in range(PARTICIPANTS):
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                    probe.bind(('', 7410 + 250 * domain + 2 * participant))
        except OSError:
            claim.close()
            continue
        _claims[domain] = claim
        return domain
    raise RobotIdError(
        f'every ROS domain from {DOMAINS[0]} to {DOMAINS[-1]} is in use on this machine: end '
        'nodes that are not needed'
    )


def release_domain(domain: int) -> None:
    """Give a domain back."""
    _claims.pop(domain).close()


# From the one that moves the robot to the robot itself: ended in this order.
SHUTDOWN_ORDER = (
    *('gravity_compensation', 'feedforward', 'excitation'),
    *('recorder', 'identification', 'simulated_robot'),
)
STOP_TIMEOUT = 6.0  # above `runtime.CLOSE_TIMEOUT`, within which a node ends by itself [s]


class NodeProcesses(contextlib.ExitStack):
    """Nodes of a configuration, ended in good order, or when this process is killed."""

    def __init__(
        self,
        config: Path,
        domain: int,
        log_level: str = 'warn',
        namespace: str = '/',
        environment: Mapping[str, str] | None = None,
    ):
        super().__init__()
        self.callback(self.stop)
        self._config, self._log_level, self._namespace = config, log_level, namespace
        self._environment = environment or ros_environment(domain)
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, parameters: Mapping[str, Any] | None = None) -> None:
        """Start one node with these parameters besides the file's."""
        # JSON is YAML with its types marked: a name that looks like a number stays a text.
        given = [f'{k}:={json.dumps(v, default=str)}' for k, v in (parameters or {}).items()]
        options = [word for item in given for word in ('-p', item)]
        self.running[name] = subprocess.Popen(
            [
                *(sys.executable, '-m', 'robotid_ros.nodes', name, '--ros-args'),
                *('--params-file', str(self._config), '--log-level', self._log_level),
                *('-r', f'__ns:={self._namespace}', '-r', '/clock:=clock'),
                *options,
            ],
            env=child_environment(**self._environment, **{ENDS_WITH: str(os.getpid())}),
        )

    def check(self) -> None:
        """Check that all are running; one that has ended is a RobotIdError."""
        for name, process in self.running.items():
            if process.poll() is not None:
                raise RobotIdError(
                    f"the node '{name}' ended with code {process.returncode}: see what it logged"
                )

    def stop(
        self, names: Iterable[str] = SHUTDOWN_ORDER, number: int = signal.SIGINT
    ) -> dict[str, int]:
        """End nodes one after another, or kill them after a time; return exit codes by name."""
        codes = {}
        for name in [name for name in names if name in self.running]:
            process = self.running.pop(name)
            if process.poll() is None:
                process.send_signal(number)
            try:
                codes[name] = process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                codes[name] = process.wait()
        return codes


def ros_environment(domain: int) -> dict[str, str]:
    """Variables that keep nodes on this machine and on their own domain."""
    return {'ROS_DOMAIN_ID': str(domain), 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}


# What a session has to reach: relative residual on the validation, true parameters within ±3σ.
MAX_RESIDUAL, MIN_SHARE_WITHIN = (THRESHOLDS[name] for name in ('recovered', 'recovered_share'))


class Recovery(NamedTuple):
    """How well a simulated robot was found again."""

    inside: int  # ±3σ of the truth, of so many base parameters of which that is known
    known: int
    residual: float  # the largest of a moving joint on the validation motion

    @property
    def passed(self) -> bool:
        """Whether enough true parameters lie within ±3σ and the residual is small."""
        enough = self.known and self.inside >= MIN_SHARE_WITHIN * self.known
        return bool(enough and self.residual <= MAX_RESIDUAL)

    def __str__(self) -> str:
        return (
            f'{self.inside} of {self.known} true base parameters lie within ±3σ; the largest '
            f'validation residual in motion is {100 * self.residual:.2f} %'
        )


def recovery_of(results: Results) -> Recovery:
    """Return how well the truth, which stands beside results, was found again."""
    worst = max((row.moving for row in results.validation), default=float('inf'))
    return Recovery(*count_within_sigma(results.base), worst)
