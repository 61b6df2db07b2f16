"""
The process that stops the robot when the excitation dies, is suspended or does not watch it.

A controller goes on with its goal when the client is gone. The guardian holds the other end of a
pipe: it reads each goal before that is sent (`goal <uuid>`), signs of life from the loop that
watches the robot (`beat`), and the goal's end (`done`). When the pipe closes while a goal runs, or
the excitation is suspended (SIGSTOP) or silent, it says why and calls the action's cancel service
until the controller confirms; for the goal before, too, which the newer one may not have replaced.
Parameters of the controller on trial (`restore <name> <value>`, until `keep`) are set back after
that, and whenever the pipe closes. `feedforward` and `gravity_compensation` have one, too; the
latter's switches controllers back. It takes no signal meant for a terminal's processes, and
imports nothing that is slow.
"""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from typing import Any
import uuid

from action_msgs.srv import CancelGoal
from controller_manager_msgs.srv import SwitchController
from rcl_interfaces.srv import SetParametersAtomically
import rclpy
from rclpy.client import Client
from rclpy.node import Node
from rclpy.parameter import Parameter

from ...exceptions import ControllerError
from .controller import cancel_request, CANCELLED, SET_PARAMETERS, switch_request
from .processes import child_environment, exit_after, is_suspended, prefer_threads, udp_alone
from .waiting import Silence

# What it tells the excitation: that it could cancel a goal; why it has cancelled one.
READY, SUSPENDED, SILENT = 'ready', 'suspended', 'silent'
GONE = 'gone, or its own request was not confirmed'  # nobody reads that any more, it is logged
_REASONS = {
    SUSPENDED: 'this process was suspended for {:.1f} s: the guardian stopped the robot',
    SILENT: 'this process did not watch the robot for {:.1f} s: the guardian stopped the '
    'robot, give this machine less to do',
}
# How long the first guardian may take to reach the controller, the next twice as long [s]: 3 are
# usual, 15 on a busy machine, but some hung for minutes where many nodes joined the graph at once.
FIRST_ATTEMPT = 15.0
# How long a process may take that starts Python and joins the graph, on a busy machine [s].
START_TIMEOUT = 45.0
BEAT_PERIOD = 0.05  # from one sign of life to the next, at the least [s]
SERVICE_TIMEOUT = 30.0  # in which the guardian looks for the controller's cancel service [s]
LOOK_PERIOD = 0.05  # from one look whether the excitation is suspended to the next [s]
# How long the excitation may fail to watch the robot though it is not suspended [s]: on two cores
# with a load of 5 to 12 the longest gap in a session was 0.37 s.
LONGEST_SILENCE = 1.0
# How long a dead client's goal is cancelled again and again until that is confirmed [s]: the goal
# may still be on its way to the controller. How long each answer and the next try may take [s].
CANCEL_RETRY_TIME = 5.0
ANSWER_TIMEOUT, RETRY_PERIOD = 0.2, 0.02
# How long it may take to leave the graph [s]: whoever ends without that is missed for 20 s.
LEAVE_TIMEOUT = 1.0
PIPE_BUFFER = 1 << 20  # more than waits in a pipe: lines are read whole [B]


class Guardian:
    """
    The excitation's end of the pipe; its methods raise `ControllerError` where nobody guards.

    In need it calls the service `stop` to cancel the goal, or to activate the first controller to
    `switch` in place of the second; `reset` sets parameters.
    """

    def __init__(self, stop: str, reset: str, domain: int, name: str = 'excitation', *switch: str):
        self._arguments = stop, reset, str(os.getpid()), name, *switch
        self._domain = domain
        self._beat = self._checked = self._longest_gap = 0.0
        self._start()

    @property
    def is_running(self) -> bool:
        """Whether it still watches."""
        return self._process.poll() is None

    def wait_ready(self, timeout: float, check: Callable[[], object] = lambda: None) -> None:
        """
        Wait until it could stop the robot, for `START_TIMEOUT` at least.

        One that hangs gives way to another; `check` is called meanwhile, and may raise.
        """
        attempt, now = FIRST_ATTEMPT, time.monotonic()
        again, end = now + attempt, now + max(timeout, START_TIMEOUT)
        while READY not in self._read():
            check()
            if time.monotonic() > again:
                self.close()
                self._process.kill()
                self._start()
                attempt *= 2.0
                again = time.monotonic() + attempt
            if not self.is_running or time.monotonic() > end:
                raise ControllerError(
                    'the guardian cannot reach the controller, so that nothing would stop the '
                    'robot if this node died: nothing was moved, try again'
                )
            time.sleep(0.01)

    def set_goal(self, goal_id: uuid.UUID) -> None:
        """Name the goal that is about to be sent."""
        self._checked, self._longest_gap = time.monotonic(), 0.0
        self._send_line(f'goal {goal_id.hex}')

    def check(self) -> None:
        """Give a sign of life, and check that the guardian still watches."""
        now = time.monotonic()
        self._longest_gap, self._checked = max(self._longest_gap, now - self._checked), now
        for word in self._read().split():
            if word in _REASONS:
                raise ControllerError(_REASONS[word].format(self._longest_gap))
        if not self.is_running:
            raise ControllerError('the guardian died: without it the robot is not moved')
        if now - self._beat < BEAT_PERIOD:
            return
        self._beat = now
        self._send_line('beat')
        if is_suspended(self.pid):
            raise ControllerError('the guardian is suspended: without it the robot is not moved')

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
        self._sending.close()
        self._reading.close()
        # Nobody waits for it: a state 'failed' must not come late.
        threading.Thread(target=self._process.wait, daemon=True).start()

    def _start(self) -> None:
        # Unbuffered and non-blocking: a guardian that does not read must not hold up anything.
        self._process = subprocess.Popen(
            [sys.executable, '-m', __name__, *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
            env=child_environment(ROS_DOMAIN_ID=str(self._domain), **udp_alone()),
        )
        self.pid = self._process.pid
        assert self._process.stdin is not None and self._process.stdout is not None
        self._sending, self._reading = self._process.stdin, self._process.stdout
        for pipe in (self._sending, self._reading):
            os.set_blocking(pipe.fileno(), False)

    def _read(self) -> str:
        """Read what the guardian has said since the last call."""
        with _gone():
            return (self._reading.read() or b'').decode()

    def _send_line(self, line: str) -> None:
        with _gone():
            self._sending.write(f'{line}\n'.encode())


def start_guardian(node: Node, name: str, controller: str, *services: str) -> Guardian:
    """Start the guardian of a node `name`: the service `stop`, then `switch` of `Guardian`."""
    stop, *switch = services
    names = map(node.resolve_service_name, (stop, f'{controller}/{SET_PARAMETERS}'))
    return Guardian(*names, node.context.get_domain_id(), name, *switch)


@contextlib.contextmanager
def _gone() -> Iterator[None]:
    """Say so where the pipe has no other end, or was closed."""
    try:
        yield
    except (BrokenPipeError, ValueError) as error:
        why = 'the guardian, which stops the robot should this node die, is gone: start again'
        raise ControllerError(why) from error


def main() -> None:
    """Watch until the pipe closes or nobody watches the robot; then cancel the goal that runs."""
    # SIGPIPE, SIGINT and SIGTERM go to whole groups; the guardian ends with its pipe only.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    rclpy.init(signal_handler_options=rclpy.signals.SignalHandlerOptions.NO)
    off = ('use_global_arguments', 'enable_rosout', 'start_parameter_services')
    node = Node(f'guardian_{os.getpid()}', **dict.fromkeys(off, False))
    _, stop, reset, process, name, *switch = sys.argv
    code = _guard(node, stop, reset, int(process), name, *switch)
    sys.stderr.flush()
    exit_after(LEAVE_TIMEOUT)
    node.destroy_node()
    # Nothing is left to do; the rest of the middleware's teardown can only delay the end.
    os._exit(code)


def _guard(node: Node, stop: str, reset: str, process: int, name: str, *switch: str) -> int:
    """Watch a process, of the node `name`; stop the robot if it fails; return the exit code."""
    client = node.create_client(SwitchController if switch else CancelGoal, stop)
    setter = node.create_client(SetParametersAtomically, reset)
    end = time.monotonic() + SERVICE_TIMEOUT
    while not client.wait_for_service(timeout_sec=LOOK_PERIOD):
        if time.monotonic() > end or _read_lines(0.0) is None:
            return 1
    prefer_threads(True)
    _say(READY)
    trial: dict[str, float] = {}
    goals, reason = _watch(process, trial)
    _say(reason)
    confirmed = list[bool]()

    def ask(client: Client, requests: list[Any], ok: Callable[[Any], bool], what: str) -> None:
        confirmed.append(_ask_until(node, client, requests, ok))
        if confirmed[-1]:
            node.get_logger().warn(f'the {name} node is {reason}: {what}')
        else:
            node.get_logger().fatal(f'the {name} node is {reason}, nobody confirms that {what}')

    if goals and switch:
        active, other = switch
        back = [switch_request([active], [other])]
        _ask_until(node, client, back, lambda answer: answer.ok)
        time.sleep(ANSWER_TIMEOUT)  # the dead node's own request may still be on its way
        ask(client, back, lambda answer: answer.ok, f"'{active}' is active again")
    elif goals:
        cancels = [cancel_request(goal) for goal in goals]
        done = 'its motion was cancelled'
        ask(client, cancels, lambda answer: answer.return_code in CANCELLED, done)
    if trial:
        parameters = [Parameter(k, Parameter.Type.DOUBLE, v) for k, v in trial.items()]
        gains = SetParametersAtomically.Request()
        gains.parameters = [parameter.to_parameter_msg() for parameter in parameters]
        done = "the controller's gains are back"
        ask(setter, [gains], lambda answer: answer.result.successful, done)
    return 0 if all(confirmed) else 1


def _say(word: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # the excitation is gone, or nothing runs any more
        os.write(sys.stdout.fileno(), f'{word}\n'.encode())


def _ask_until(node: Node, client: Client, requests: list[Any], ok: Callable[[Any], bool]) -> bool:
    """Ask again, for a while, until each is confirmed; whether one was, or all are unknown."""
    end, count = time.monotonic() + CANCEL_RETRY_TIME, len(requests)
    while requests and time.monotonic() < end:
        asked = [(request, client.call_async(request)) for request in requests]
        for _, future in asked:
            rclpy.spin_until_future_complete(node, future, timeout_sec=ANSWER_TIMEOUT)
        answered = [(r, future.result() if future.done() else None) for r, future in asked]
        if requests := [r for r, answer in answered if not (answer and ok(answer))]:
            time.sleep(RETRY_PERIOD)
    # Goals that are unknown at last never came, or their controller was unloaded.
    unknown = CancelGoal.Response.ERROR_UNKNOWN_GOAL_ID
    unknown_all = all(getattr(answer, 'return_code', 0) == unknown for _, answer in answered)
    return len(requests) < count or unknown_all


def _watch(client: int, trial: dict[str, float]) -> tuple[list[uuid.UUID], str]:
    """Read until the pipe's end, or nobody watches a goal: what runs, why, what is on `trial`."""
    goals, silence = list[uuid.UUID](), None
    while (lines := _read_lines(LOOK_PERIOD)) is not None:
        now = time.monotonic()
        for line in lines:
            word, _, name = line.partition(' ')
            if word == 'beat':
                silence = Silence(now)  # from the first one on: a trajectory is long to send
            elif word == 'keep':
                trial.clear()
            elif word == 'restore':
                key, _, value = name.partition(' ')
                trial[key] = float(value)
            else:
                goals = [*goals[-1:], uuid.UUID(hex=name)] if word == 'goal' else []
                silence = None
        if not goals:
            continue
        if is_suspended(client):
            return goals, SUSPENDED
        if silence is not None and silence.update(now, heard=bool(lines)) > LONGEST_SILENCE:
            return goals, SILENT
    return goals, GONE


def _read_lines(timeout: float) -> list[str] | None:
    """Wait for lines from the excitation, each of which it writes at once; None at the end."""
    if not select.select([sys.stdin], [], [], timeout)[0]:
        return []
    data = os.read(sys.stdin.fileno(), PIPE_BUFFER)
    return data.decode().splitlines() if data else None


if __name__ == '__main__':
    main()
