"""What the arm carries in the last recording, against the arm without it."""

import threading

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import InertiaStamped
from rclpy.task import Future
from std_srvs.srv import Trigger

from ...exceptions import RobotIdError
from ...node_settings import IdentificationNodeSettings
from ..common.messages import log_findings, one_line
from ..common.runtime import LATCHED, WorkerNode
from ..common.worker_process import run_in_process
from .payload_messages import inertia_message, payload_message, PayloadOutcome


class PayloadService:
    """
    Identifies payloads in the node's worker, and publishes `~/payload`.

    Parameters
    ----------
    node : that was asked to
    settings : what to compare with, and the frame
    stop : set when the node ends

    """

    def __init__(
        self, node: WorkerNode, settings: IdentificationNodeSettings, stop: threading.Event
    ):
        self._node, self._settings, self._stop = node, settings, stop
        self._first, self._reference = '', settings.payload.empty
        self._inertia = node.create_publisher(InertiaStamped, '~/payload', LATCHED)
        self._parameters = node.create_publisher(DiagnosticArray, '~/payload/parameters', LATCHED)

    def note_recording(self, bag: str) -> None:
        """Compare with the first recording, where no other is set."""
        self._first = self._first or bag
        self._reference = self._reference or bag

    def note_results(self, bag: str, folder: str) -> None:
        """Take what was identified from the recording in its place."""
        if self._reference == bag:
            self._reference = folder

    async def answer(
        self, response: Trigger.Response, bag: str, description: str, *, busy: bool
    ) -> Trigger.Response:
        """Identify in the node's worker, and wait for it without blocking the executor."""
        if not bag:
            response.message = 'there is no recording yet: record the arm with the payload'
        elif bag == self._first and not self._settings.payload.empty:
            response.message = (
                'there is nothing to compare with: record the arm with the payload too, or set '
                'identification.payload.empty to a recording without it'
            )
        elif busy:
            response.message = 'busy: wait for ~/state'
        else:
            done: Future = Future(executor=self._node.executor)
            self._node.start_worker(self._identify, bag, description, done)
            response.success, response.message = await done
        return response

    def _identify(self, bag: str, description: str, done: Future) -> None:
        """Identify the payload in the recording, publish it; `done` gets success and sentence."""
        found = False, ''
        try:
            outcome: PayloadOutcome = run_in_process(
                identify_in_worker,
                *(self._reference, bag, self._node.configuration, description),
                progress=lambda text: self._node.publish_state('identifying', text),
                stop=self._stop,
                time_limit=self._settings.time_limit,
            )
            self._publish(outcome)
            found = True, f"{outcome.sentence}, against '{self._reference}'"
            self._node.publish_state('done', found[1], {'file': outcome.path, 'bag': bag})
        except Exception as error:
            found = False, one_line(error)
            if self._node.context.ok():
                self._node.publish_state('failed', found[1], {'bag': bag})
                self._node.get_logger().error(found[1])
            if not isinstance(error, RobotIdError):
                raise
        finally:
            done.set_result(found)
            if self._node.executor is not None:
                self._node.executor.wake()

    def _publish(self, outcome: PayloadOutcome) -> None:
        now = self._node.get_clock().now().to_msg()
        message = inertia_message(outcome, now)
        if message is not None:
            self._inertia.publish(message)
        self._parameters.publish(payload_message(outcome, now))
        log_findings(self._node.get_logger(), outcome.findings)


def identify_in_worker(*arguments: object) -> PayloadOutcome:
    """Call `identify_payload_bag`; only a worker imports what it needs."""
    from .payload_bag import identify_payload_bag

    return identify_payload_bag(*arguments)  # type: ignore[arg-type]
