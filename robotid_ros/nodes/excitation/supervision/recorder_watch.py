"""Whether the recorder writes: a motion that nobody records is worth nothing."""

from collections.abc import Callable, Mapping
import time

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node

from ....exceptions import RecordingError
from ...common.batched_subscription import BatchedSubscription
from ...common.messages import values_of
from ...common.processes import is_active, is_here
from ...common.waiting import wait_until
from .silence import Silence

TOPIC = 'recorder/heartbeat'
# Five heartbeats that are missing in succession [s]; of a recorder on this machine that is alive,
# and so short of processor or disk only, the robot's motion may wait for longer.
LONGEST_SILENCE, BUSY_SILENCE = 0.5, 2.0
POLL_PERIOD = 0.005
_REMEDY = 'start the recorder, or set excitation.require_recorder to false'


class RecorderWatch:
    """
    Watches the recorder's heartbeat; its methods raise `RecordingError` when nothing is recorded.

    Parameters
    ----------
    node, session : which has to be recorded, a bag of an earlier session does not count

    """

    def __init__(self, node: Node, session: str):
        self._session = session
        self._heartbeats = BatchedSubscription(node, DiagnosticStatus, TOPIC, depth=100)
        self._state = self._message = ''
        self._values: Mapping[str, str] = {}
        self._silence = Silence(time.monotonic())

    def forget(self) -> None:
        """Forget the signs of life so far."""
        self._read()
        self._state = ''

    def wait_present(self, timeout: float, check: Callable[[], object]) -> None:
        """Wait for a sign of life; `check` as in `wait_recording`."""
        if not wait_until(lambda: bool(check() or self._read() or self._state), timeout):
            raise RecordingError(
                f"no recorder: nothing on '{self._heartbeats.topic}' within {timeout:g} s: "
                f'{_REMEDY}'
            )

    def wait_recording(self, timeout: float, check: Callable[[], object]) -> None:
        """Wait until it records; `check` is called meanwhile and raises what else is wrong."""
        begin = time.monotonic()
        while not self._is('recording'):
            check()
            self._read()
            if time.monotonic() - begin > timeout or self._is('failed'):
                raise RecordingError(f'no motion begins, {self._why()}')
            time.sleep(POLL_PERIOD)
        self._silence = Silence(time.monotonic())

    def check(self) -> None:
        """Check that it still records."""
        silence = self._silence.update(time.monotonic(), heard=self._read())
        if not self._is('recording'):
            raise RecordingError(f'the robot was stopped, {self._why()}')
        if silence > BUSY_SILENCE or (silence > LONGEST_SILENCE and not self._is_alive()):
            raise RecordingError(
                f"the robot was stopped, the recorder has been silent on '{TOPIC}' for "
                f'{silence:.2f} s: is it still running?'
            )

    def close(self) -> None:
        """Unsubscribe."""
        self._heartbeats.close()

    def _read(self) -> bool:
        """Take what has arrived; whether anything has."""
        latest = self._heartbeats.take_latest()
        if latest is not None:
            self._values = values_of(latest)
            self._state, self._message = self._values.get('state', ''), latest.message
        return latest is not None

    def _is(self, state: str) -> bool:
        """Whether that is the state of this session's recording."""
        return self._state == state and self._values.get('session') == self._session

    def _is_alive(self) -> bool:
        """Whether the recorder is known to run: on another machine it is not."""
        return is_here(self._values) and is_active(int(self._values['pid']))

    def _why(self) -> str:
        other = self._values.get('session') not in ('', self._session)
        return f"the recorder is '{self._state}'{' another session' * other}: {self._message}"
