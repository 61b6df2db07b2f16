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
from typing import Any

from ...exceptions import RobotIdError
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
