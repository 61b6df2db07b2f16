"""
The excitation's end of a process that cancels the motion when nobody watches it any more.

A controller goes on with its goal when the client is gone. The guardian holds the other end of a
pipe: it reads each goal before the goal is sent (`goal <uuid>`), signs of life from the loop that
watches the robot (`beat`), and when the goal has ended (`done`). When the pipe closes while a goal
runs, or the excitation is suspended (SIGSTOP) or silent, it says why and calls the action's cancel
service until the controller confirms. Parameters of the controller that are on trial (`restore
<name> <value>`, until `keep`) are set back after that, and whenever the pipe closes.
"""

from collections.abc import Mapping
import os
import subprocess
import sys
import threading
import time
import uuid

from ....exceptions import ControllerError
from ...common.processes import is_suspended
from ...common.runtime import child_environment
from . import guardian_process
from .guardian_process import READY, SILENT, SUSPENDED

_REASONS = {
    SUSPENDED: 'this process was suspended for {:.1f} s: the guardian cancelled the motion',
    SILENT: 'this process did not watch the robot for {:.1f} s: the guardian cancelled the '
    'motion, give this machine less to do',
}
# How long the first guardian may take to reach the controller, the next ones twice as long each
# [s]: 3 are usual, and 15 on a busy machine, but some hung for two minutes where many nodes joined
# the graph at once.
FIRST_ATTEMPT = 15.0
# How often a sign of life is given at the most [s].
BEAT_PERIOD = 0.05


class Guardian:
    """
    The excitation's end of the pipe.

    Parameters
    ----------
    cancel_service : full name of the action's cancel service
    domain : ROS domain of the node

    """

    def __init__(self, cancel_service: str, domain: int):
        self._arguments, self._domain = (cancel_service, str(os.getpid())), domain
        self._process = self._start()
        self._beat = self._checked = self._longest_gap = 0.0

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
        Wait until it could cancel a goal; one that hangs gives way to another.

        Raises
        ------
        ControllerError : it has ended, or cannot reach the controller

        """
        attempt, now = FIRST_ATTEMPT, time.monotonic()
        again, end = now + attempt, now + timeout
        while READY not in self._read():
            if time.monotonic() > again:
                self.close()
                self._process.kill()
                self._process, attempt = self._start(), 2.0 * attempt
                again = time.monotonic() + attempt
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
        self._checked, self._longest_gap = time.monotonic(), 0.0
        self._send_line(f'goal {goal_id.hex}')

    def check(self) -> None:
        """
        Give a sign of life, and check that the guardian still watches.

        Raises
        ------
        ControllerError : it does not, or it has cancelled the motion, and why

        """
        now = time.monotonic()
        self._longest_gap, self._checked = max(self._longest_gap, now - self._checked), now
        for word in self._read().split():
            if word in _REASONS:
                raise ControllerError(_REASONS[word].format(self._longest_gap))
        if not self.is_running:
            raise ControllerError('the guardian died: a robot without it is not moved')
        if now - self._beat < BEAT_PERIOD:
            return
        self._beat = now
        self._send_line('beat')
        if is_suspended(self.pid):
            raise ControllerError('the guardian is suspended: a robot without it is not moved')

    def clear_goal(self) -> None:
        """Say that no goal runs any more."""
        self._send_line('done')

    def protect(self, parameters: Mapping[str, float]) -> None:
        """Name parameters of the controller that are about to be changed on trial."""
        for name, value in parameters.items():
            self._send_line(f'restore {name} {value!r}')

    def release(self) -> None:
        """Say that the controller's parameters stay as they are."""
        self._send_line('keep')

    def close(self) -> None:
        """Close the pipe, which cancels a goal that still runs, and let it end by itself."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        # Nobody waits for it: a state 'failed' must not come late.
        threading.Thread(target=self._process.wait, daemon=True).start()

    def _start(self) -> 'subprocess.Popen[bytes]':
        # Unbuffered and non-blocking: a guardian that does not read must not hold up anything.
        process = subprocess.Popen(
            [sys.executable, '-m', guardian_process.__name__, *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
            env=child_environment(ROS_DOMAIN_ID=str(self._domain)),
        )
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
        return process

    def _read(self) -> str:
        """Read what the guardian has said since the last call."""
        assert self._process.stdout is not None
        return (self._process.stdout.read() or b'').decode()

    def _send_line(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f'{line}\n'.encode())
        except (BrokenPipeError, ValueError) as error:
            raise ControllerError(
                'the guardian, which stops the robot should this node die, is gone: start again'
            ) from error
