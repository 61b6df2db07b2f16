"""Bounded waits of worker threads, and how long a source has been silent."""

from collections.abc import Callable
import threading
import time
from typing import Any, TypeVar

from rclpy.node import Node
from rclpy.task import Future

from ...exceptions import ControllerError

T = TypeVar('T')
REPEAT_PERIOD = 1.0  # from one request to the next [s]: most answers take far less
# What one look can add to a silence [s]: a process that had no processor for longer has not
# listened meanwhile. Five such looks are needed for the default of `stale_after`.
LONGEST_STEP = 0.05


class Silence:
    """Adds up the time in which a source was listened to in vain, since `now` [s, monotonic]."""

    def __init__(self, now: float):
        self._last, self._silence = now, 0.0

    def update(self, now: float, *, heard: bool) -> float:
        """Look at a time, at which something was heard or not; return the silence [s]."""
        step, self._last = min(now - self._last, LONGEST_STEP), now
        self._silence = 0.0 if heard else self._silence + step
        return self._silence


def run_in_executor(node: Node, function: Callable[[], object]) -> None:
    """Call a function in the executor, if one spins: what a node has is destroyed there."""
    if node.executor is None:
        function()
    else:
        node.executor.create_task(function)


def wait_until(
    condition: Callable[[], T], timeout: float, *, period: float = 0.005, what: str = ''
) -> T:
    """Wait for something true; return what there is by then, or raise `ControllerError` `what`."""
    end = time.monotonic() + timeout
    while not (found := condition()) and time.monotonic() <= end:
        time.sleep(period)
    if what and not found:
        raise ControllerError(what)
    return found


def result_of(future: Future, timeout: float, what: str) -> Any:
    """Wait for the result of a service call or a goal, see `answer_of`."""
    return answer_of(lambda: future, timeout, what, period=timeout)


def answer_of(
    ask: Callable[[], Future], timeout: float, what: str, period: float = REPEAT_PERIOD
) -> Any:
    """Wait for an answer, ask again after a `period`: the first one may get lost."""
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
