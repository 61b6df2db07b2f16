"""
The guardian's own process: it reads the excitation's pipe and cancels the motion in need.

It also sets the controller's parameters back that were on trial. It lives in a session of its own
and takes no signal meant for the terminal's processes.
"""

from collections.abc import Callable
import contextlib
import os
import select
import signal
import sys
import time
from typing import Any
import uuid

from action_msgs.srv import CancelGoal
from rcl_interfaces.srv import SetParametersAtomically
import rclpy
from rclpy.client import Client
from rclpy.node import Node
from rclpy.parameter import Parameter

from ...common.processes import exit_after, is_suspended, prefer_threads
from .silence import Silence

# What it tells the excitation: that it could cancel a goal; why it has cancelled one.
READY, SUSPENDED, SILENT = 'ready', 'suspended', 'silent'
# Nobody reads that any more, but it is logged.
GONE = 'gone, or its own request was not confirmed'
# How long the guardian looks for the controller's cancel service before it gives up [s].
SERVICE_TIMEOUT = 30.0
# How often it looks whether the excitation is suspended [s].
LOOK_PERIOD = 0.05
# How long the excitation may fail to watch the robot though it is not suspended [s]: on two cores
# with a load of 5 to 12 the longest gap in a session was 0.37 s.
LONGEST_SILENCE = 1.0
# How long a dead client's goal is cancelled again and again until that is confirmed [s]: the goal
# may still be on its way to the controller. How long each answer and the next try may take [s].
CANCEL_RETRY_TIME = 5.0
ANSWER_TIMEOUT, RETRY_PERIOD = 0.2, 0.02
# Of an action that is called after its controller.
CANCEL_SERVICE = '/follow_joint_trajectory/_action/cancel_goal'
# How long it may take to leave the graph [s]: whoever ends without that is missed for 20 s.
LEAVE_TIMEOUT = 1.0
# More than waits in a pipe: lines are read whole [B].
PIPE_BUFFER = 1 << 20


def main() -> None:
    """Watch until the pipe closes or nobody watches the robot; then cancel the goal that runs."""
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
    code = _guard(node)
    sys.stderr.flush()
    exit_after(LEAVE_TIMEOUT)
    node.destroy_node()
    # Nothing is left to do; the rest of the middleware's teardown can only delay the end.
    os._exit(code)


def _guard(node: Node) -> int:
    """Watch, and cancel in need; return the exit code."""
    client = node.create_client(CancelGoal, sys.argv[1])
    controller = sys.argv[1].removesuffix(CANCEL_SERVICE)
    setter = node.create_client(SetParametersAtomically, f'{controller}/set_parameters_atomically')
    end = time.monotonic() + SERVICE_TIMEOUT
    while not client.wait_for_service(timeout_sec=LOOK_PERIOD):
        if time.monotonic() > end or _read_lines(0.0) is None:
            return 1
    prefer_threads(True)
    _say(READY)
    trial: dict[str, float] = {}
    goal, reason = _watch(int(sys.argv[2]), trial)
    _say(reason)
    code = 0 if goal is None else _cancel(node, client, goal, reason)
    return max(code, _restore(node, setter, trial, reason)) if trial else code


def _say(word: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # the excitation is gone, or nothing runs any more
        os.write(sys.stdout.fileno(), f'{word}\n'.encode())


def _cancel(node: Node, client: Client, goal: uuid.UUID, reason: str) -> int:
    """Cancel a goal until the controller confirms; return the exit code."""
    request = CancelGoal.Request()
    request.goal_info.goal_id.uuid = list(goal.bytes)
    # A goal that is unknown may still be on its way.
    ended = CancelGoal.Response.ERROR_NONE, CancelGoal.Response.ERROR_GOAL_TERMINATED
    if _ask_until(node, client, request, lambda answer: answer.return_code in ended):
        node.get_logger().warn(f'the excitation is {reason}: its motion was cancelled')
        return 0
    node.get_logger().fatal(f'the excitation is {reason}, its motion could not be cancelled')
    return 1


def _restore(node: Node, client: Client, values: dict[str, float], reason: str) -> int:
    """Set parameters of the controller back until it confirms; return the exit code."""
    parameters = [Parameter(k, Parameter.Type.DOUBLE, v) for k, v in values.items()]
    request = SetParametersAtomically.Request()
    request.parameters = [parameter.to_parameter_msg() for parameter in parameters]
    if _ask_until(node, client, request, lambda answer: answer.result.successful):
        node.get_logger().warn(f"the excitation is {reason}: the controller's gains are back")
        return 0
    node.get_logger().fatal(f"the excitation is {reason}, the controller's gains are not back")
    return 1


def _ask_until(node: Node, client: Client, request: Any, confirms: Callable[[Any], bool]) -> bool:
    """Ask again and again, for a while, until an answer confirms; return whether one did."""
    end = time.monotonic() + CANCEL_RETRY_TIME
    while time.monotonic() < end:
        future = client.call_async(request)
        rclpy.spin_until_future_complete(node, future, timeout_sec=ANSWER_TIMEOUT)
        if future.done() and (answer := future.result()) and confirms(answer):
            return True
        time.sleep(RETRY_PERIOD)
    return False


def _watch(client: int, trial: dict[str, float]) -> tuple[uuid.UUID | None, str]:
    """
    Read the pipe until its end or until nobody watches a goal; return that goal and why.

    `trial` holds the parameters to set back then, by name.
    """
    goal, silence = None, None
    while (lines := _read_lines(LOOK_PERIOD)) is not None:
        now = time.monotonic()
        for line in lines:
            word, _, name = line.partition(' ')
            if word == 'beat':
                # From the first one on: a trajectory may be long to send.
                silence = Silence(now)
            elif word == 'keep':
                trial.clear()
            elif word == 'restore':
                key, _, value = name.partition(' ')
                trial[key] = float(value)
            else:
                goal, silence = uuid.UUID(hex=name) if word == 'goal' else None, None
        if goal is None:
            continue
        if is_suspended(client):
            return goal, SUSPENDED
        if silence is not None and silence.update(now, heard=bool(lines)) > LONGEST_SILENCE:
            return goal, SILENT
    return goal, GONE


def _read_lines(timeout: float) -> list[str] | None:
    """Wait for lines from the excitation, each of which it writes at once; None at the end."""
    if not select.select([sys.stdin], [], [], timeout)[0]:
        return []
    data = os.read(sys.stdin.fileno(), PIPE_BUFFER)
    return data.decode().splitlines() if data else None


if __name__ == '__main__':
    main()
