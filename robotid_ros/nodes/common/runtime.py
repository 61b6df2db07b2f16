"""What nodes share; executors spin beside the main thread, which takes signals at once."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import functools
import itertools
from pathlib import Path
import signal
import sys
import threading
import time
import traceback
from typing import Any
from weakref import WeakKeyDictionary

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import rclpy
from rclpy._rclpy_pybind11 import RCLError
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.context import Context
from rclpy.duration import Duration
from rclpy.event_handler import EventHandler
from rclpy.exceptions import InvalidHandle
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from std_msgs.msg import String
from std_srvs.srv import Trigger

from ...exceptions import ModelError, RobotIdError
from ...files.configuration import read_urdf
from .messages import one_line, status, status_array, values_of
from .processes import cancel_exit, exit_after, launcher_is_gone, own_process
from .ros_parameters import configuration_from_overrides, declare_settings
from .waiting import wait_until

# The history is for who listens: a thread that is late must not miss a state that passes quickly.
LATCHED, LATCHED_HISTORY = (
    QoSProfile(
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL,
    )
    for depth in (1, 100)
)
# A node's own clock stands still where its time is simulated or was set back.
STEADY = Clock(clock_type=ClockType.STEADY_TIME)
# A node that cannot close within this time is ended [s]: nothing may hang, and `ros2 launch` sends
# SIGTERM 5 s after SIGINT.
CLOSE_TIMEOUT = 4.5
DELIVERY_TIMEOUT = 1.0  # of the last messages to all who listen, alive or not [s]
SPIN_END_TIMEOUT = 0.5  # in which an executor and its thread end [s]
LAUNCHER_PERIOD = 0.1  # from one look whether its launch is still there to the next [s]
# Of `close` for a worker [s], below `CLOSE_TIMEOUT`: a daemon thread ends with the process.
JOIN_TIMEOUT = 2.0
# How often the middleware's events are looked at [s]: they only warn of incompatible QoS, and to
# wait in every turn for all, two of each publisher and subscription, takes up to half of the time.
EVENT_PERIOD = 1.0
DIAGNOSTICS_PERIOD = 1.0  # from one status on `/diagnostics` to the next, as REP 107 has it [s]


class MessageGuard:
    """No message ends a node: what a callback cannot use is passed over, counted and told."""

    def __init__(self, warn: Callable[[str], Any]):
        self.counts, self._warn = Counter[str](), warn

    @property
    def total(self) -> int:
        """Messages that were passed over."""
        return self.counts.total()

    def wrap(self, topic: str, callback: Callable[..., Any]) -> Callable[..., Any]:
        """Return a callback of a subscription that passes over what this one cannot use."""

        @functools.wraps(callback)
        def guarded(*arguments: Any) -> None:
            try:
                callback(*arguments)
            except Exception as error:
                # Whatever the content leads to: it may come from anybody on the network.
                self.counts[topic] = count = self.counts[topic] + 1
                if count & (count - 1) == 0:
                    sentence = f"a message on '{topic}' was passed over, {count} so far"
                    self._warn(f'{sentence}: {one_line(error)}')

        return guarded


class ConfiguredNode(Node):
    """
    A node that was given a robot's configuration as parameters, and declares `groups` of it.

    A relative URDF path starts from `folder`, by default that of the parameter file; options of
    `rclpy.node.Node`, for example `context` and `parameter_overrides`. Its `guard` counts the
    messages that callbacks could not use. `ConfigurationError`: an unknown key or a wrong type.
    """

    def __init__(
        self, name: str, groups: Sequence[str], *, folder: str | Path | None = None, **options: Any
    ):
        # Before the node, which subscribes to the clock at once.
        self.guard = MessageGuard(lambda text: self.get_logger().warn(text))
        super().__init__(name, **options)
        try:
            given = {key: p.value for key, p in self._parameter_overrides.items()}
            files = (b for a, b in itertools.pairwise(sys.argv) if a == '--params-file')
            if folder is None and (file := next(files, None)) is not None:
                folder = Path(file).absolute().parent
            self.configuration, self.values = configuration_from_overrides(given, folder)
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

    def follow_description(self, take: Callable[[str], None]) -> None:
        """Hand the configuration's description to a function, without one each published one."""
        if urdf := read_urdf(self.configuration):
            take(urdf)
        else:
            topic = String, 'robot_description'
            self.create_subscription(*topic, lambda message: take(message.data), LATCHED)

    def close(self) -> None:
        """Let work in progress end in good order; the executor still spins meanwhile."""


def full_name(node: str, namespace: str) -> str:
    """Return the full name of a node."""
    return f'{namespace}/{node}'.replace('//', '/')


def publish_diagnostics(node: Node, task: str, current: Callable[[], DiagnosticStatus]) -> None:
    """Publish a status `<node>: <task>` on `/diagnostics` once a second, as REP 107 asks for."""
    name = f'{node.get_fully_qualified_name().lstrip("/")}: {task}'
    publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)

    def publish() -> None:
        found = current()
        found.name = name
        publisher.publish(status_array(node.get_clock().now().to_msg(), [found]))

    node.create_timer(DIAGNOSTICS_PERIOD, publish, clock=STEADY)


def start_thread(function: Callable[..., object], *arguments: Any) -> threading.Thread:
    """Call a function in a thread that ends with the process."""
    thread = threading.Thread(target=function, args=arguments, daemon=True)
    thread.start()
    return thread


Start = Callable[..., object]


async def in_thread(node: Node, work: Callable[[], Any], start: Start = start_thread) -> Any:
    """Return or raise what a function does that `start` calls beside the executor."""
    executor = node.executor
    assert executor is not None
    done: Future = Future(executor=executor)

    def call() -> None:
        try:
            done.set_result(work())
        except Exception as error:
            done.set_exception(error)
            if not isinstance(error, RobotIdError):
                raise
        finally:
            executor.wake()

    start(call)
    return await done


def serve(
    node: Node,
    name: str,
    work: Callable[..., str],
    start: Start | None = None,
    kind: type = Trigger,
    **options: Any,
) -> None:
    """Offer a Trigger or SetBool `~/name`: `work` does it or raises, `start` gives it a thread."""
    if start:  # what waits for its answer holds up requests of its own service alone
        options['callback_group'] = MutuallyExclusiveCallbackGroup()

    async def answer(request: Any, response: Any) -> Any:
        values = (getattr(request, field) for field in request.get_fields_and_field_types())
        job = functools.partial(work, *values)
        try:
            response.message = await in_thread(node, job, start) if start else job()
            response.success = True
        except Exception as error:
            response.message = one_line(error)
            # Of a thread, it is on the terminal by now.
            if start is None and not isinstance(error, RobotIdError):
                raise
        return response

    node.create_service(kind, f'~/{name}', answer, **options)


class WorkerNode(ConfiguredNode):
    """A configured node that publishes `~/state` and works in one thread beside its executor."""

    description = ''

    def __init__(self, name: str, groups: Sequence[str], **options: Any):
        super().__init__(name, groups, **options)
        hardware = self.configuration.robot.name
        self._make_status = functools.partial(status, name, hardware=hardware)
        self._stop = threading.Event()
        self._worker: threading.Thread | None = None
        self._state = self.create_publisher(DiagnosticStatus, '~/state', LATCHED)
        self._last = self._make_status('starting', {})
        publish_diagnostics(self, 'state', self._diagnose)

    def close(self) -> None:
        """Ask the worker to stop, and wait for it a moment."""
        self._stop.set()
        if self._worker is not None:
            self._worker.join(JOIN_TIMEOUT)

    def subscribe_description(self) -> None:
        """Keep the robot description that is published."""
        self.create_subscription(
            String, 'robot_description', lambda m: setattr(self, 'description', m.data), LATCHED
        )

    def wait_for_urdf(self) -> str:
        """Return the configuration's description, else the published one; `ModelError`: none."""
        if (urdf := read_urdf(self.configuration)) is not None:
            return urdf
        timeout = self.configuration.excitation.timeout
        wait_until(lambda: self._stop.is_set() or self.description, timeout)
        if not self.description:
            raise ModelError(
                'there is no robot description: set robot.urdf, or start robot_state_publisher, '
                "which publishes '/robot_description'"
            )
        return self.description

    def start_worker(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function in the worker thread."""
        self._worker = start_thread(function, *arguments)

    def publish_state(self, state: str, message: str, values: Mapping[str, Any] = {}) -> None:
        """Publish a state, a sentence and values; the state 'failed' has the level ERROR."""
        values = {'state': state, **own_process(), **values}
        self._last = self._make_status(message, values, failed=state == 'failed')
        self._state.publish(self._last)

    def _diagnose(self) -> DiagnosticStatus:
        """Return the last state, with what was passed over since the node's start."""
        last, passed_over = self._last, self.guard.total
        failed = last.level == DiagnosticStatus.ERROR
        values = {**values_of(last), 'messages_passed_over': passed_over}
        return self._make_status(last.message, values, warn=passed_over > 0, failed=failed)


def run(make: Callable[[], Node], args: Sequence[str] | None = None) -> int:
    """Run a node until it is asked to stop: 0; 1 on an error, which is logged in a sentence."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    arguments = sys.argv if args is None else ['node', *args]
    try:
        rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
        node = make()
    except Exception as error:
        # Other errors are those of the arguments: rcl says what, over several lines.
        prefix = '' if isinstance(error, RobotIdError) else 'cannot start: '
        rclpy.logging.get_logger('robotid_ros').fatal(prefix + one_line(error))
        rclpy.try_shutdown()
        return 1
    executor = NodeExecutor(context=node.context)
    executor.add_node(node)
    spinning = SpinThread(executor, stop)
    while not stop.wait(LAUNCHER_PERIOD):
        if launcher_is_gone():
            node.get_logger().error('the program that started this node is gone: it ends as well')
            break
    exit_after(CLOSE_TIMEOUT)
    if hasattr(node, 'close'):
        node.close()
    # Others must have what was published: with the process goes what they still lack.
    end = time.monotonic() + DELIVERY_TIMEOUT
    for publisher in node.publishers:
        # Not every middleware can tell, and a publisher may be gone by now.
        with contextlib.suppress(RCLError, InvalidHandle):
            publisher.wait_for_all_acked(Duration(seconds=max(0.0, end - time.monotonic())))
    spinning.end()
    node.executor = None  # what other threads still close, they close at once
    for failure in spinning.failures:
        node.get_logger().fatal(one_line(failure))
    node.destroy_node()
    rclpy.try_shutdown(context=node.context)
    cancel_exit()
    return 1 if spinning.failures else 0


class NodeExecutor(SingleThreadedExecutor):
    """An executor that looks at each of the middleware's events once in `EVENT_PERIOD`."""

    def __init__(self, **options: Any):
        super().__init__(**options)
        self._due: WeakKeyDictionary[EventHandler, float] = WeakKeyDictionary()

    def can_execute(self, entity: Any) -> bool:
        """Whether to wait for an entity in this turn."""
        if isinstance(entity, EventHandler):
            now = time.monotonic()
            if now < self._due.get(entity, now):
                return False
            self._due[entity] = now + EVENT_PERIOD
        return bool(super().can_execute(entity))


class SpinThread:
    """Spins an executor in a thread; `stop` is set at its end, `failures` are of callbacks."""

    def __init__(self, executor: Executor, stop: threading.Event | None = None) -> None:
        self.executor, self.stop = executor, stop or threading.Event()
        self.failures: list[BaseException] = []
        self._ended = False
        self._thread = start_thread(self._spin)

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
            *_, (frame, _) = traceback.walk_tb(error.__traceback__)
            # What rclpy lacks because of its own shutdown, or a handle before that has ended.
            inside = frame.f_globals.get('__name__', '').startswith('rclpy.')
            lacks = inside and (self._ended or isinstance(error, AttributeError))
            if self.stop.is_set() and (isinstance(error, InvalidHandle) or lacks):
                return
            self.failures.append(error)
            if not isinstance(error, RobotIdError):
                sys.excepthook(type(error), error, error.__traceback__)
        finally:
            self.stop.set()


@contextlib.contextmanager
def lone_node(name: str, namespace: str, domain: int | None, **options: Any) -> Iterator[Node]:
    """Give a node in a context of its own that spins in a thread; options of `rclpy.node.Node`."""
    context = Context()
    options |= {'context': context, 'namespace': namespace}
    options |= {'use_global_arguments': False, 'enable_rosout': False}
    with contextlib.ExitStack() as ends:
        ends.callback(rclpy.try_shutdown, context=context)
        no_signals = SignalHandlerOptions.NO
        rclpy.init(context=context, domain_id=domain, signal_handler_options=no_signals, args=[])
        node = rclpy.create_node(name, **options)
        ends.callback(node.destroy_node)
        executor = NodeExecutor(context=context)
        executor.add_node(node)
        ends.callback(SpinThread(executor).end)
        yield node
