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

from ...exceptions import RobotIdError
from .launcher import launcher_is_gone
from .message_guard import MessageGuard
from .messages import one_line
from .processes import cancel_exit, exit_after
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
