"""Nothing moves unrecorded: without a recorder, while it cannot write, or when it falls silent."""

from collections.abc import Callable, Iterator
from pathlib import Path
import signal
import threading

from diagnostic_msgs.msg import DiagnosticStatus
from live_session import Nodes
import pytest

from robotid_ros.nodes.common.messages import status, values_of

from .conftest import LONG, Session, SLOW

pytestmark = pytest.mark.ros

# Between two heartbeats [s].
PERIOD = 0.1


class Recorder:
    """Answers once it has heard often enough that a session begins; it writes nothing."""

    def __init__(self, session: Session, answer: str):
        self._client, self._answer = session.client, answer
        self._publisher = session.client.node.create_publisher(
            DiagnosticStatus, 'recorder/heartbeat', 10
        )
        self.end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self.end.wait(PERIOD):
            heard = [values_of(m) for m in self._client.history['excitation/state']]
            # A session says again and again where it is, so that nobody takes it for dead.
            begun = [values['session'] for values in heard if values['state'] == 'approaching']
            state = self._answer if len(begun) > 4 else 'idle'
            values = {'state': state, 'session': begun[0] if begun else ''}
            self._publisher.publish(status('recorder', 'as asked', values))

    def close(self) -> None:
        self.end.set()
        self._thread.join()


@pytest.fixture
def session(joined: Session, nodes: Nodes) -> Iterator[Session]:
    """Give each test an excitation of its own beside one robot."""
    yield joined
    nodes.processes.stop(('excitation', 'recorder'))


@pytest.fixture
def start(session: Session, trajectory: Path) -> Iterator[Callable[..., None]]:
    def begin(*others: str, **parameters: dict[str, object]) -> None:
        settings = {'trajectory': str(trajectory), 'periods': LONG, 'require_recorder': True}
        session.start(
            *('simulated_robot', 'excitation', *others),
            simulated_robot=SLOW,
            excitation={f'excitation.{key}': value for key, value in settings.items()}
            | parameters.pop('excitation', {}),
            **parameters,
        )
        session.robot.wait()
        session.ready('excitation', *others)
        session.client.call_trigger('excitation/start')

    yield begin


@pytest.mark.slow
def test_no_session_begins_without_a_recorder(session: Session, start: Callable[..., None]):
    start(excitation={'excitation.timeout': 15.0})
    assert 'no recorder' in session.until('excitation', 'failed')
    assert 'approaching' not in session.client.states('excitation')


def test_nothing_moves_when_the_recorder_cannot_write(
    session: Session, start: Callable[..., None]
):
    recorder = Recorder(session, 'failed')
    start()
    assert "the recorder is 'failed': as asked" in session.until('excitation', 'failed')
    assert 'exciting' not in session.client.states('excitation')
    assert max(abs(p - session.robot.positions[0]).max() for p in session.robot.positions) < 1e-3
    recorder.close()


@pytest.mark.slow
def test_the_robot_rests_when_the_recorder_falls_silent(
    session: Session, start: Callable[..., None]
):
    recorder = Recorder(session, 'recording')
    start()
    session.until('excitation', 'exciting')
    session.robot.wait_moving()
    recorder.close()
    stamp = session.robot.now
    # Half a second of silence, and the stop, at half of real time.
    assert session.robot.rest_after(stamp) < 0.75
    assert 'the recorder has been silent' in session.until('excitation', 'failed')


@pytest.mark.parametrize('name', ['INT', 'KILL'])
def test_the_robot_rests_when_the_recorder_goes(
    name: str, session: Session, start: Callable[..., None]
):
    start('recorder', recorder={'recorder.folder': str(session.folder)})
    session.until('excitation', 'exciting')
    session.robot.wait_moving()
    stamp = session.robot.now
    session.process('recorder').send_signal(getattr(signal, f'SIG{name}'))
    assert session.robot.rest_after(stamp) < 0.75
    assert 'recorder' in session.until('excitation', 'failed')
