"""What the recorder says of itself all the time, so that nothing moves unrecorded."""

import time

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.clock import Clock, ClockType

from ..common.messages import format_seconds, status
from ..common.processes import own_process
from ..common.runtime import ConfiguredNode

# From one to the next [s].
PERIOD = 0.1


class Heartbeat:
    """
    Publishes `~/heartbeat`: from a timer, but while it records from the thread that writes.

    `messages` were written to the present bag. `session` has had its recording, for each gets one,
    whatever comes of it; None of none. `state` is idle, opening, recording, closing or failed.
    """

    def __init__(self, node: ConfiguredNode):
        self._node, self._published = node, 0.0
        self._publisher = node.create_publisher(DiagnosticStatus, '~/heartbeat', 10)
        self.messages = 0
        self.session: str | None = None
        self.change('idle', 'waiting for a session')
        # The node's own clock stands still where it is set back.
        node.create_timer(PERIOD, self._on_timer, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def change(self, state: str, sentence: str, path: str = '') -> None:
        """Change the state, and say so at once."""
        self.state, self._sentence, self._path = state, sentence, path
        self._publish()

    def beat(self) -> None:
        """Publish when it is time, while messages are written."""
        if time.monotonic() - self._published >= PERIOD:
            self._publish()

    def _publish(self) -> None:
        self._published = time.monotonic()
        values = {
            'state': self.state,
            **own_process(),
            'path': self._path,
            'session': self.session or '',
            'messages': self.messages,
            'skipped': self._node.guard.total,
            'stamp': format_seconds(self._node.get_clock().now().nanoseconds),
        }
        level = DiagnosticStatus.ERROR if self.state == 'failed' else DiagnosticStatus.OK
        self._publisher.publish(status('recorder', self._sentence, values, level=level))

    def _on_timer(self) -> None:
        # While it records, only the thread that writes may say that it does.
        if self.state != 'recording':
            self._publish()
