"""The nodes of a session as processes on a ROS domain of their own."""

from collections.abc import Iterable, Mapping
import json
import os
from pathlib import Path
import signal
import subprocess
import sys
from typing import Any

from ...exceptions import RobotIdError
from ..common.processes import child_environment, ENDS_WITH

# From the one that moves the robot to the robot itself: ended in this order.
SHUTDOWN_ORDER = ('feedforward', 'excitation', 'recorder', 'identification', 'simulated_robot')
# Above `runtime.CLOSE_TIMEOUT`, within which a node ends by itself [s].
STOP_TIMEOUT = 6.0


class NodeProcesses:
    """
    Nodes that are started together and ended in good order; they end when this process is killed.

    Parameters
    ----------
    config : the robot's configuration file
    domain : ROS domain id
    log_level : severity from which the nodes log
    namespace : of all of them, such as '/arm1', and of their clock
    environment : variables of ROS; None: those of `ros_environment`

    """

    def __init__(
        self,
        config: Path,
        domain: int,
        log_level: str = 'warn',
        namespace: str = '/',
        environment: Mapping[str, str] | None = None,
    ):
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
        """
        Check that all are running.

        Raises
        ------
        RobotIdError : one has ended

        """
        for name, process in self.running.items():
            if process.poll() is not None:
                raise RobotIdError(
                    f"the node '{name}' ended with code {process.returncode}: see what it logged"
                )

    def stop(
        self, names: Iterable[str] = SHUTDOWN_ORDER, number: int = signal.SIGINT
    ) -> dict[str, int]:
        """
        End nodes one after another; one that does not end in time is killed.

        Returns
        -------
        Exit codes by name.

        """
        codes = {}
        for name in names:
            process = self.running.pop(name, None)
            if process is None:
                continue
            if process.poll() is None:
                process.send_signal(number)
            try:
                codes[name] = process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                codes[name] = process.wait()
        return codes

    def __enter__(self) -> 'NodeProcesses':
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def ros_environment(domain: int) -> dict[str, str]:
    """Variables that keep nodes on this machine and on their own domain."""
    return {
        'ROS_DOMAIN_ID': str(domain),
        'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
    }
