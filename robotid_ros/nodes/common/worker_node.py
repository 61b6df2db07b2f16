"""What the nodes of a session share: a latched state, and a worker thread for what takes long."""

from collections.abc import Callable, Mapping, Sequence
import threading
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus

from .diagnostics import Diagnostics
from .messages import status, values_of
from .processes import own_process
from .runtime import ConfiguredNode, LATCHED

# Less than `runtime.CLOSE_TIMEOUT`: what cannot end is a daemon thread, and ends with the process.
JOIN_TIMEOUT = 2.0


class WorkerNode(ConfiguredNode):
    """
    A configured node that publishes `~/state` and works in one thread beside its executor.

    The last state is repeated on `/diagnostics`, with WARN where messages were passed over.

    Parameters
    ----------
    name, groups, options : of `ConfiguredNode`

    """

    def __init__(self, name: str, groups: Sequence[str], **options: Any):
        super().__init__(name, groups, **options)
        self._status_name = name
        self._stop = threading.Event()
        self._worker: threading.Thread | None = None
        self._state = self.create_publisher(DiagnosticStatus, '~/state', LATCHED)
        self._last = self._make_status('starting', {})
        Diagnostics(self, 'state', self._diagnose)

    def close(self) -> None:
        """Ask the worker to stop, and wait for it a moment."""
        self._stop.set()
        if self._worker is not None:
            self._worker.join(JOIN_TIMEOUT)

    def start_worker(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function in the worker thread."""
        self._worker = threading.Thread(target=function, args=arguments, daemon=True)
        self._worker.start()

    def publish_state(
        self, state: str, message: str, values: Mapping[str, Any] | None = None
    ) -> None:
        """Publish a state, a sentence and values; the state 'failed' has the level ERROR."""
        level = DiagnosticStatus.ERROR if state == 'failed' else DiagnosticStatus.OK
        values = {'state': state, **own_process(), **(values or {})}
        self._last = self._make_status(message, values, level)
        self._state.publish(self._last)

    def _diagnose(self) -> DiagnosticStatus:
        """Return the last state, with what was passed over since the node's start."""
        last, passed_over = self._last, self.guard.total
        level = DiagnosticStatus.WARN if passed_over else DiagnosticStatus.OK
        values = {**values_of(last), 'messages_passed_over': passed_over}
        return self._make_status(last.message, values, max(level, last.level))

    def _make_status(
        self, message: str, values: Mapping[str, Any], level: bytes = DiagnosticStatus.OK
    ) -> DiagnosticStatus:
        hardware = self.configuration.robot.name
        return status(self._status_name, message, values, hardware=hardware, level=level)
