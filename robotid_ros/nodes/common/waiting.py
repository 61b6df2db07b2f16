"""Bounded waits of worker threads for what the executor's thread brings about."""

from collections.abc import Callable
import threading
import time
from typing import Any

from rclpy.node import Node
from rclpy.task import Future

from ...exceptions import ControllerError

# How long an answer is waited for before it is asked for again [s]: most take far less.
REPEAT_PERIOD = 1.0


def run_in_executor(node: Node, function: Callable[[], object]) -> None:
    """
    Call a function in the thread of a node's executor, soon; at once where none spins.

    What a node has may be destroyed there only: an executor that just waits for it would end with
    an error.
    """
    if node.executor is None:
        function()
    else:
        node.executor.create_task(function)


def wait_until(
    condition: Callable[[], bool], timeout: float, *, period: float = 0.005, what: str = ''
) -> bool:
    """
    Wait in a worker thread for something that the executor's thread brings about.

    Returns
    -------
    Whether it came true in time; with `what` given, running out of time is an error instead.

    Raises
    ------
    ControllerError : it did not come true, and `what` says how to put it

    """
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            if what:
                raise ControllerError(what)
            return False
        time.sleep(period)
    return True


def result_of(future: Future, timeout: float, what: str) -> Any:
    """
    Wait in a worker thread for the result of a service call or a goal.

    Raises
    ------
    ControllerError : no answer in time; `what` says from whom

    """
    return answer_of(lambda: future, timeout, what, period=timeout)


def answer_of(
    ask: Callable[[], Future], timeout: float, what: str, period: float = REPEAT_PERIOD
) -> Any:
    """
    Wait in a worker thread for the answer to a request that does no harm when it is repeated.

    A service may know a client later than the client knows it, and its first answers are lost: it
    is asked again.

    Parameters
    ----------
    ask : sends the request
    timeout : longest wait in all [s]
    what : who is asked
    period : from one request to the next [s]

    Raises
    ------
    ControllerError : no answer in time

    """
    done, end = threading.Event(), time.monotonic() + timeout
    futures: list[Future] = []
    while not done.is_set() and (not futures or time.monotonic() < end):
        futures.append(ask())
        futures[-1].add_done_callback(lambda _: done.set())
        done.wait(max(0.0, min(period, end - time.monotonic())))
    answered = next((future for future in futures if future.done()), None)
    for future in futures:
        if future is not answered:
            future.cancel()
    if answered is None:
        raise ControllerError(f'no answer from {what} within {timeout:g} s: is it still running?')
    return answered.result()
