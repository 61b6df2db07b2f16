"""Node `recorder`: everything an identification needs, in one self-contained bag a session."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from std_msgs.msg import String
from std_srvs.srv import SetBool

from ...exceptions import RobotIdError
from ...files.yaml import parse_yaml
from ...node_settings import RecorderSettings
from ..common import runtime
from ..common.messages import State, values_of
from ..common.runtime import LATCHED, one_line
from ..common.worker_node import WorkerNode
from .bag_writer_loop import BagWriterLoop


class Recorder(WorkerNode):
    """
    Records from 'approaching' to 'done' or 'failed', or between two calls of `~/record`.

    Parameters
    ----------
    options : of `WorkerNode`, for example `context` and `parameter_overrides`

    """

    def __init__(self, **options: Any):
        super().__init__('recorder', ('robot', 'recorder'), **options)
        self.settings: RecorderSettings = self.configuration.recorder
        self.recording = False
        self._loop: BagWriterLoop | None = None
        self._design: Mapping[str, Any] = {}
        self._bag = self.create_publisher(String, '~/bag', LATCHED)
        self.create_subscription(DiagnosticStatus, 'excitation/state', self._on_state, LATCHED)
        self.create_subscription(String, 'excitation/trajectory', self._on_trajectory, LATCHED)
        self.create_service(SetBool, '~/record', self._on_record)
        self.publish_state('idle', 'waiting for a session')

    def close(self) -> None:
        """End the recording; the bag is whole."""
        if self._loop is not None:
            self._loop.stop(immediately=True)
        super().close()

    def _on_trajectory(self, message: String) -> None:
        content = parse_yaml(message.data, 'excitation/trajectory')
        self._design = content if isinstance(content, Mapping) else {}

    def _on_state(self, message: DiagnosticStatus) -> None:
        state = values_of(message).get('state')
        if state in {s.value for s in State if s.moving} and not self.recording:
            self._start_recording(message)
        elif state in {s.value for s in State if s.ended} and self._loop is not None:
            if self._loop.started_by_session:
                self._loop.stop()

    def _on_record(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if request.data == self.recording:
            response.message = 'already recording' if request.data else 'not recording'
            return response
        if request.data:
            response.message = self._start_recording()
            response.success = self.recording
        else:
            assert self._loop is not None
            self._loop.stop()
            response.success, response.message = True, 'closing: its path will be on ~/bag'
        return response

    def _start_recording(self, state: DiagnosticStatus | None = None) -> str:
        """Open a bag and record in a worker thread; say where, or why not."""
        now = datetime.now().strftime('%Y-%m-%d_%H-%M-%S')
        name = self.settings.name or f'{self.configuration.robot.name or "robot"}_{now}'
        try:
            self._loop = BagWriterLoop(self, name, lambda: self._design, state)
        except RobotIdError as error:
            self._fail(error)
            return one_line(error)
        self.recording = True
        path = str(self._loop.path)
        self.publish_state('recording', f"recording '{path}'", {'path': path})
        self.get_logger().info(f"recording '{path}'")
        self.start_worker(self._record, self._loop)
        return path

    def _record(self, loop: BagWriterLoop) -> None:
        failure = None
        try:
            counts = loop.run()
        except RobotIdError as error:
            failure = error
        # Before the state is published: a client that reads it may start the next one.
        self.recording = False
        if failure is not None:
            self._fail(failure)
            return
        path = str(loop.path)
        self.publish_state('closed', f"recorded '{path}'", {'path': path, **counts})
        self._bag.publish(String(data=path))
        self.get_logger().info(f"recorded '{path}'")

    def _fail(self, error: RobotIdError) -> None:
        self.publish_state('failed', one_line(error))
        self.get_logger().error(one_line(error))


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return runtime.run(Recorder, args)
