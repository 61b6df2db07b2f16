"""
A process that stops the robot when the excitation dies, by whatever signal.

A controller goes on with its goal when the client is gone. The guardian holds the other end of a
pipe: it is told each goal before the goal is sent (`goal <uuid>`) and when it has ended (`done`).
When the pipe closes while a goal runs, it calls the action's cancel service until the controller
confirms. It lives in a session of its own and takes no signal meant for the terminal's processes.
"""

import os
from pathlib import Path
import signal
import subprocess
import sys
import time
import uuid

import rclpy
from rclpy.node import Node

from ...exceptions import ControllerError

READY = 'ready'
# How long a dead client's goal is pursued [s].
CANCEL_RETRY_TIME = 5.0


class Guardian:
    """
    The excitation's end of the pipe.

    Parameters
    ----------
    cancel_service : full name of the action's cancel service
    domain : ROS domain of the node

    """

    def __init__(self, cancel_service: str, domain: int):
        root = str(Path(__file__).parents[3])
        path = os.pathsep.join(filter(None, (root, os.environ.get('PYTHONPATH'))))
        self._process = subprocess.Popen(
            [sys.executable, '-m', __name__, cancel_service],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, 'PYTHONPATH': path, 'ROS_DOMAIN_ID': str(domain)},
        )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it still watches."""
        return self._process.poll() is None

    def wait_ready(self, timeout: float) -> None:
        """
        Wait until it could cancel a goal.

        Raises
        ------
        ControllerError : it died, or cannot reach the controller

        """
        end = time.monotonic() + timeout
        stdout = self._process.stdout
        assert stdout is not None
        while READY.encode() not in (stdout.read() or b''):
            if not self.is_running or time.monotonic() > end:
                raise ControllerError(
                    'the guardian, which stops the robot should this node die, cannot reach the '
                    'controller: nothing was moved, try again'
                )
            time.sleep(0.01)

    def set_goal(self, goal_id: uuid.UUID) -> None:
        """
        Name the goal that is about to be sent.

        Raises
        ------
        ControllerError : the guardian is dead

        """
        self._send_line(f'goal {goal_id.hex}')

    def clear_goal(self) -> None:
        """Say that no goal runs any more."""
        self._send_line('done')

    def close(self, timeout: float = 1.0) -> None:
        """Close the pipe, which cancels a goal that still runs, and let it end."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            pass  # It still pursues the goal, and ends by itself.
        self._process.stdout.close()

    def _send_line(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f'{line}\n'.encode())
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise ControllerError(
                'the guardian, which stops the robot should this node die, is gone: start again'
            ) from error


def main() -> int:
    """Guard until the pipe closes."""
    # SIGPIPE, SIGINT and SIGTERM go to whole groups; the guardian ends with its pipe only.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Imported late: whoever embeds a guardian needs no action types.
    from action_msgs.srv import CancelGoal

    rclpy.init(signal_handler_options=rclpy.signals.SignalHandlerOptions.NO)
    node = Node(
        f'guardian_{os.getpid()}',
        use_global_arguments=False,
        enable_rosout=False,
        start_parameter_services=False,
    )
    client = node.create_client(CancelGoal, sys.argv[1])
    if not client.wait_for_service(timeout_sec=30.0):
        return 1
    os.write(sys.stdout.fileno(), f'{READY}\n'.encode())
    goal = _last_goal()
    if goal is None:
        return 0
    request = CancelGoal.Request()
    request.goal_info.goal_id.uuid = list(goal.bytes)
    end = time.monotonic() + CANCEL_RETRY_TIME
    while time.monotonic() < end:
        future = client.call_async(request)
        rclpy.spin_until_future_complete(node, future, timeout_sec=0.2)
        answer = future.result() if future.done() else None
        # A goal that is unknown may still be on its way.
        if answer and answer.return_code in (
            CancelGoal.Response.ERROR_NONE,
            CancelGoal.Response.ERROR_GOAL_TERMINATED,
        ):
            node.get_logger().warn('the excitation is gone: its motion was cancelled')
            return 0
        time.sleep(0.02)
    node.get_logger().fatal('the excitation is gone and its motion could not be cancelled')
    return 1


def _last_goal() -> uuid.UUID | None:
    """Read the pipe to its end; return the goal that runs."""
    goal = None
    for line in sys.stdin:
        word, _, name = line.strip().partition(' ')
        goal = uuid.UUID(hex=name) if word == 'goal' else None
    return goal


if __name__ == '__main__':
    code = main()
    sys.stderr.flush()
    # Everything is said and done; the middleware's own teardown can only delay the end.
    os._exit(code)
