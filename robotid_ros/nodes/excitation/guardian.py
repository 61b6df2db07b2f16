"""
A process that cancels the robot's motion when the excitation ends, even by SIGKILL.

A controller goes on with its goal when the client is gone. The guardian holds the other end of a
pipe: it reads each goal before the goal is sent (`goal <uuid>`) and when it has ended (`done`).
When the pipe closes while a goal runs, it calls the action's cancel service until the controller
confirms. It lives in a session of its own and takes no signal meant for the terminal's processes.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid

from action_msgs.srv import CancelGoal
import rclpy
from rclpy.client import Client
from rclpy.node import Node

from ...exceptions import ControllerError
from ..common.runtime import child_environment

READY = 'ready'
# How long the guardian looks for the controller's cancel service before it gives up [s].
SERVICE_TIMEOUT = 30.0
# How long a dead client's goal is cancelled again and again until that is confirmed [s]: the goal
# may still be on its way to the controller. How long each answer and the next try may take [s].
CANCEL_RETRY_TIME = 5.0
ANSWER_TIMEOUT, RETRY_PERIOD = 0.2, 0.02


class Guardian:
    """
    The excitation's end of the pipe.

    Parameters
    ----------
    cancel_service : full name of the action's cancel service
    domain : ROS domain of the node

    """

    def __init__(self, cancel_service: str, domain: int):
        self._process = subprocess.Popen(
            [sys.executable, '-m', __name__, cancel_service],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env=child_environment(ROS_DOMAIN_ID=str(domain)),
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
        ControllerError : it has ended, or cannot reach the controller

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
        ControllerError : the guardian has ended

        """
        self._send_line(f'goal {goal_id.hex}')

    def clear_goal(self) -> None:
        """Say that no goal runs any more."""
        self._send_line('done')

    def close(self) -> None:
        """Close the pipe, which cancels a goal that still runs, and let it end by itself."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        self._process.stdout.close()
        # Nobody waits for it: a state 'failed' must not come late.
        threading.Thread(target=self._process.wait, daemon=True).start()

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
    """Watch until the pipe closes; then cancel the goal that runs."""
    # SIGPIPE, SIGINT and SIGTERM go to whole groups; the guardian ends with its pipe only.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    rclpy.init(signal_handler_options=rclpy.signals.SignalHandlerOptions.NO)
    node = Node(
        f'guardian_{os.getpid()}',
        use_global_arguments=False,
        enable_rosout=False,
        start_parameter_services=False,
    )
    client = node.create_client(CancelGoal, sys.argv[1])
    if not client.wait_for_service(timeout_sec=SERVICE_TIMEOUT):
        return 1
    with contextlib.suppress(BrokenPipeError):  # closed before a goal was sent
        os.write(sys.stdout.fileno(), f'{READY}\n'.encode())
    goal = _last_goal()
    return 0 if goal is None else _cancel(node, client, goal)


def _cancel(node: Node, client: Client, goal: uuid.UUID) -> int:
    """Cancel a goal until the controller confirms; return the exit code."""
    request = CancelGoal.Request()
    request.goal_info.goal_id.uuid = list(goal.bytes)
    end = time.monotonic() + CANCEL_RETRY_TIME
    while time.monotonic() < end:
        future = client.call_async(request)
        rclpy.spin_until_future_complete(node, future, timeout_sec=ANSWER_TIMEOUT)
        answer = future.result() if future.done() else None
        # A goal that is unknown may still be on its way.
        if answer and answer.return_code in (
            CancelGoal.Response.ERROR_NONE,
            CancelGoal.Response.ERROR_GOAL_TERMINATED,
        ):
            node.get_logger().warn('the excitation is gone: its motion was cancelled')
            return 0
        time.sleep(RETRY_PERIOD)
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
    # Nothing is left to do; the middleware's own teardown can only delay the end.
    os._exit(code)
