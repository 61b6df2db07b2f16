"""
What every node shares: start, signals, bounded waits, shutdown.

The executor spins in a thread of its own, so that the main thread can take signals at once; work
that waits runs in further threads and never blocks the executor.
"""

from collections.abc import Callable, Sequence
import contextlib
import itertools
import os
from pathlib import Path
import signal
import sys
import threading
import time
import traceback
from typing import Any

import rclpy
from rclpy._rclpy_pybind11 import RCLError
from rclpy.duration import Duration
from rclpy.exceptions import InvalidHandle
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future

from ...exceptions import ControllerError, RobotIdError
from .launcher import launcher_is_gone
from .message_guard import MessageGuard
from .messages import one_line as one_line
from .process_exit import cancel_exit, exit_after
from .ros_parameters import configuration_from_overrides, declare_settings

LATCHED = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
# For who listens: a thread that is late must not miss a state that passes quickly.
LATCHED_HISTORY = QoSProfile(
    depth=100, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
# A node that cannot close within this time is ended [s]: nothing may hang, and `ros2 launch` sends
# SIGTERM 5 s after SIGINT.
CLOSE_TIMEOUT = 4.5
# How long the last messages may take to all who listen, alive or not [s].
DELIVERY_TIMEOUT = 1.0
# How long an executor and its thread may take to end [s].
SPIN_END_TIMEOUT = 0.5
# How long an answer is waited for before it is asked for again [s]: most take far less.
REPEAT_PERIOD = 1.0
# How often a node looks whether its launch is still there [s].
LAUNCHER_PERIOD = 0.1


class ConfiguredNode(Node):
    """
    A node that was given a robot's configuration as parameters.

    Parameters
    ----------
    name : of the node
    groups : of the configuration that it declares as parameters
    folder : what a relative URDF path starts from; None: the folder of the parameter file
    options : of `rclpy.node.Node`, for example `context` and `parameter_overrides`

    Raises
    ------
    ConfigurationError : an unknown key or a wrong type, named

    Attributes
    ----------
    guard : counts the messages that callbacks could not use

    """

    def __init__(
        self, name: str, groups: Sequence[str], *, folder: str | Path | None = None, **options: Any
    ):
        # Before the node, which subscribes to the clock at once.
        self.guard = MessageGuard(lambda text: self.get_logger().warn(text))
        super().__init__(name, **options)
        try:
            parameter_overrides = {key: p.value for key, p in self._parameter_overrides.items()}
            folder = params_file_folder(sys.argv) if folder is None else folder
            self.configuration, self.values = configuration_from_overrides(
                parameter_overrides, folder
            )
            declare_settings(self, self.configuration, groups)
        except RobotIdError:
            self.destroy_node()
            raise

    def create_subscription(
        self, msg_type: Any, topic: str, callback: Callable[..., Any], *rest: Any, **options: Any
    ) -> Any:
        """Subscribe; what the callback cannot use does not end the node, see `MessageGuard`."""
        guarded = self.guard.wrap(topic, callback)
        return super().create_subscription(msg_type, topic, guarded, *rest, **options)

    def close(self) -> None:
        """Let work in progress end in good order; the executor still spins meanwhile."""


def run(make: Callable[[], Node], args: Sequence[str] | None = None) -> int:
    """
    Run one node until it is asked to stop; the `main` of every executable.

    Returns
    -------
    0 after SIGINT or SIGTERM, 1 on an error, which is logged in one sentence.

    """
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    logger = rclpy.logging.get_logger('robotid_ros')
    try:
        rclpy.init(
            args=sys.argv if args is None else ['node', *args],
            signal_handler_options=SignalHandlerOptions.NO,
        )
        node = make()
    except Exception as error:
        # Other errors are those of the arguments: rcl says what, over several lines.
        prefix = '' if isinstance(error, RobotIdError) else 'cannot start: '
        logger.fatal(prefix + one_line(error))
        rclpy.try_shutdown()
        return 1
    return _serve(node, stop)


def _serve(node: Node, stop: threading.Event) -> int:
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    spinning = SpinThread(executor, stop)
    while not stop.wait(LAUNCHER_PERIOD):
        if launcher_is_gone():
            node.get_logger().error('the program that started this node is gone: it ends as well')
            break
    exit_after(CLOSE_TIMEOUT)
    if hasattr(node, 'close'):
        node.close()
    _await_delivery(node)
    spinning.end()
    for failure in spinning.failures:
        node.get_logger().fatal(one_line(failure))
    node.destroy_node()
    rclpy.try_shutdown(context=node.context)
    cancel_exit()
    return 1 if spinning.failures else 0


def _await_delivery(node: Node) -> None:
    """Wait until others have what was published: with the process goes what they still lack."""
    end = time.monotonic() + DELIVERY_TIMEOUT
    for publisher in node.publishers:
        # Not every middleware can tell, and a publisher may be gone by now.
        with contextlib.suppress(RCLError, InvalidHandle):
            publisher.wait_for_all_acked(Duration(seconds=max(0.0, end - time.monotonic())))


class SpinThread:
    """
    An executor that spins in a thread of its own.

    Parameters
    ----------
    executor : with its nodes
    stop : set when it ends, by itself or by `end`; default: one of its own

    Attributes
    ----------
    failures : what a callback raised, which ends the spinning

    """

    def __init__(self, executor: Executor, stop: threading.Event | None = None) -> None:
        self.executor, self.stop = executor, stop or threading.Event()
        self.failures: list[BaseException] = []
        self._ended = False
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop spinning; what rclpy lacks from here on is due to that."""
        self._ended = True
        self.stop.set()
        self.executor.shutdown(timeout_sec=SPIN_END_TIMEOUT)
        self._thread.join(SPIN_END_TIMEOUT)

    def _spin(self) -> None:
        try:
            self.executor.spin()
        except ExternalShutdownException:
            pass
        except Exception as error:
            if self.stop.is_set() and _is_of_shutdown(error, self._ended):
                return
            self.failures.append(error)
            if not isinstance(error, RobotIdError):
                sys.excepthook(type(error), error, error.__traceback__)
        finally:
            self.stop.set()


def _is_of_shutdown(error: Exception, ended: bool) -> bool:
    """
    Whether rclpy lacks what its own shutdown took away: that waits for no long callback.

    Before the executor is `ended`, while a node still closes, a lacking handle alone is that.
    """
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    inside = frame.f_globals.get('__name__', '').startswith('rclpy.')
    lacks = ended or isinstance(error, AttributeError)
    return isinstance(error, InvalidHandle) or (inside and lacks)


def params_file_folder(argv: Sequence[str]) -> Path | None:
    """Folder of the first `--params-file` among a process's arguments."""
    for flag, value in itertools.pairwise(argv):
        if flag == '--params-file':
            return Path(value).absolute().parent
    return None


def child_environment(**variables: str) -> dict[str, str]:
    """Environment in which a child process finds this package, installed or not."""
    root = str(Path(__file__).parents[3])
    path = os.pathsep.join(filter(None, (root, os.environ.get('PYTHONPATH'))))
    return {**os.environ, 'PYTHONPATH': path, **variables}


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
