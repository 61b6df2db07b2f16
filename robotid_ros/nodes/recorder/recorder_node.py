"""Node `recorder`: everything an identification needs, in one self-contained bag a session."""

from collections.abc import Mapping
import contextlib
from datetime import datetime
from functools import partial
from pathlib import Path
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy._rclpy_pybind11 import RCLError
from rclpy.exceptions import InvalidHandle
from std_msgs.msg import String
from std_srvs.srv import SetBool

from ...exceptions import RecordingError, RobotIdError
from ...files.yaml import parse_yaml
from ...node_settings import RecorderSettings
from ..common import runtime
from ..common.controller import ControllerClient
from ..common.messages import (
    ENDED,
    format_seconds,
    MOVING,
    one_line,
    State,
    STATES,
    status,
    values_of,
)
from ..common.processes import own_process
from ..common.runtime import LATCHED, LATCHED_HISTORY, serve, STEADY, WorkerNode
from .bag_writer_loop import BagWriterLoop, ReceivedState

PERIOD = 0.1  # from one heartbeat to the next [s]


class Recorder(WorkerNode):
    """Records from 'approaching' to 'done' or 'failed', or between calls of `~/record`."""

    def __init__(self, **options: Any):
        super().__init__('recorder', ('robot', 'recorder'), **options)
        self.settings: RecorderSettings = self.configuration.recorder
        self._loop: BagWriterLoop | None = None
        excitation = self.configuration.excitation
        self._controller = ControllerClient(self, excitation.controller, excitation.timeout)
        self._design: Mapping[str, Any] = {}
        # Whether it records a verification, from which nothing is to be identified.
        self._verification = False
        self._bag = self.create_publisher(String, '~/bag', LATCHED)
        self._heartbeat = self.create_publisher(DiagnosticStatus, '~/heartbeat', 10)
        # The session that has had its recording, for each gets one, whatever comes of it.
        self._session: str | None = None
        # Idle, opening, recording, closing or failed; a sentence; and the path of the bag.
        self._writing = 'idle', 'waiting for a session', ''
        self._beaten = 0.0
        self.create_timer(PERIOD, self._on_timer, clock=STEADY)
        self.create_subscription(
            DiagnosticStatus, 'excitation/state', self._on_state, LATCHED_HISTORY
        )
        self.create_subscription(String, 'excitation/trajectory', self._on_trajectory, LATCHED)
        serve(self, 'record', self._on_record, kind=SetBool)
        self.publish_state('idle', 'waiting for a session')

    @property
    def recording(self) -> bool:
        """Whether a bag is open."""
        return self._writing[0] in ('opening', 'recording', 'closing')

    def close(self) -> None:
        """End the recording; the bag is whole."""
        if self._loop is not None:
            self._loop.stop('the recorder was ended', immediately=True)
        super().close()

    def _on_trajectory(self, message: String) -> None:
        content = parse_yaml(message.data, 'excitation/trajectory')
        self._design = content if isinstance(content, Mapping) else {}

    def _on_state(self, message: DiagnosticStatus, info: Mapping[str, int]) -> None:
        published = info['source_timestamp']
        received = message, info['received_timestamp'] or published, published
        values, loop = values_of(message), self._loop
        state, session = values.get('state'), values.get('session', '')
        loop = loop if self.recording else None
        if state in MOVING and session != self._session:
            # The recording that runs or closes is of the session before. The excitation repeats
            # its state soon, and this session is taken up then.
            if loop is not None and (loop.started_by_session or loop.ending):
                if not loop.ending:
                    loop.stop('the end of its session was not heard')
                return
            self._session = session
            self._verification = state == State.VERIFYING.value
            if loop is None:
                self._start_recording(received)
                return
        own = loop if loop and loop.started_by_session and not loop.ending else None
        if own and state in STATES - MOVING - ENDED:
            # An excitation that was started anew: it does not move the robot, who did is gone.
            own.stop(f"the excitation is '{state}', the end of its session was not heard")
        elif loop is not None:
            loop.hear(received)
        if state in MOVING or state not in STATES:
            return
        self._session = None
        if self._writing[0] == 'failed':
            self._change('idle', 'waiting for a session')
        if state in ENDED and own:
            own.stop()

    def _on_record(self, wanted: bool) -> str:
        if wanted == self.recording:
            raise RecordingError('already recording' if wanted else 'not recording')
        if wanted:
            text = self._start_recording()
            if not self.recording:
                raise RecordingError(text)
            return text
        if self._loop is not None:
            self._loop.stop('the recording was ended by ~/record')
        return 'closing: its path will be on ~/bag'

    def _start_recording(self, state: ReceivedState | None = None) -> str:
        """Open a bag and record in a worker thread; say where, or why not."""
        now = datetime.now().strftime('%Y-%m-%d_%H-%M-%S')
        name = self.settings.name or f'{self.configuration.robot.name or "robot"}_{now}'
        by_session = state is not None
        try:
            self._loop = BagWriterLoop(
                self, name, self._controller, lambda: self._design, by_session, self._beat
            )
        except RobotIdError as error:
            return self._fail(error, Path(self.settings.folder, name).expanduser())
        if state is not None:
            self._loop.hear(state)
        path = str(self._loop.path)
        # What an earlier recording came to, such as a failure, is not this one's.
        self._change('opening', f"opening '{path}'", str(self._loop.path.absolute()))
        self.publish_state('recording', f"recording '{path}'", {'path': path})
        self.get_logger().info(f"recording '{path}'")
        self.start_worker(self._record, self._loop)
        return path

    def _change(self, state: str, sentence: str, path: str = '') -> None:
        self._writing = state, sentence, path
        self._publish_heartbeat()

    def _publish_heartbeat(self) -> None:
        self._beaten = time.monotonic()
        state, sentence, path = self._writing
        values = {
            **{'state': state, **own_process(), 'path': path, 'session': self._session or ''},
            'messages': sum(self._loop.counts.values()) if self._loop else 0,
            'skipped': self.guard.total,
            'stamp': format_seconds(self.get_clock().now().nanoseconds),
        }
        self._heartbeat.publish(status('recorder', sentence, values, failed=state == 'failed'))

    def _on_timer(self) -> None:
        # While it records, only the thread that writes may say that it does.
        if self._writing[0] != 'recording':
            self._publish_heartbeat()

    def _beat(self) -> None:
        """Say that it records; called by the thread that writes."""
        loop = self._loop
        assert loop is not None
        state = 'closing' if loop.ending else 'recording' if loop.receiving else 'opening'
        path = str(loop.path.absolute())
        if self._writing[0] != state:
            why = f': {loop.reason}' if loop.reason else ''
            self._change(state, f"{state} '{path}'{why}", path)
            if loop.reason:
                self.publish_state(state, loop.reason, {'path': path})
        if time.monotonic() - self._beaten >= PERIOD:
            self._publish_heartbeat()

    def _record(self, loop: BagWriterLoop) -> None:
        try:
            loop.run()
        except Exception as error:
            self._fail(error, loop.path)
            if not isinstance(error, RobotIdError):
                raise
            return
        path = str(loop.path)
        sentence = f"recorded '{path}'" + (f', cut: {loop.reason}' if loop.reason else '')
        # The node may have been destroyed meanwhile.
        with contextlib.suppress(InvalidHandle, RCLError):
            # Before the state is published: a client that reads it may start the next one.
            self._change('idle', sentence)
            self.publish_state('closed', sentence, {'path': path, **loop.counts})
            if not (loop.started_by_session and self._verification):
                self._bag.publish(String(data=path))
        self.get_logger().info(sentence)

    def _fail(self, error: Exception, path: Path) -> str:
        sentence, where = f"'{path}' is not recorded: {one_line(error)}", str(path.absolute())
        with contextlib.suppress(InvalidHandle, RCLError):
            self._change('failed', sentence, where)
            self.publish_state('failed', sentence, {'path': where})
        self.get_logger().error(sentence)
        return sentence


main = partial(runtime.run, Recorder)
