"""The recorder: nothing is lost or overwritten, and what cannot be recorded is said at once."""

from collections.abc import Iterator
import contextlib
from pathlib import Path
import resource
import shutil
import signal
import threading

from builtin_interfaces.msg import Duration
from control_msgs.action import FollowJointTrajectory
from diagnostic_msgs.msg import DiagnosticStatus
from live_session import Nodes
from mcap.reader import make_reader
import numpy as np
import pytest
from rclpy.action import ActionClient
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from waiting import PATIENCE, wait_until

from robotid_ros.exceptions import RobotIdError
from robotid_ros.files.bags import open_recording
from robotid_ros.nodes.common.messages import format_seconds, status, values_of
from robotid_ros.nodes.common.processes import prefer_threads
from robotid_ros.nodes.common.runtime import LATCHED
from robotid_ros.nodes.common.waiting import result_of

from .conftest import read_when, Session

pytestmark = pytest.mark.ros


class Heartbeats:
    """What the recorder says of itself."""

    def __init__(self, session: Session):
        self.session, self.seen = session, []
        session.client.node.create_subscription(
            DiagnosticStatus, 'recorder/heartbeat', self.seen.append, 1000
        )

    def wait(self, state: str) -> dict[str, str]:
        """Wait for the next one in a state; return its values."""
        first = len(self.seen)

        def found() -> dict[str, str] | None:
            values = (values_of(message) for message in self.seen[first:])
            return next((v for v in values if v['state'] == state), None)

        return wait_until(found, f'a heartbeat is {state}', self.session.describe)


class Excitation:
    """States as the excitation publishes them, ten in a second."""

    def __init__(self, session: Session):
        node = session.client.node
        self.session = session
        self._publisher = node.create_publisher(DiagnosticStatus, 'excitation/state', LATCHED)
        self._trajectory = node.create_publisher(String, 'excitation/trajectory', LATCHED)
        self.state, self.session_id, self.published = 'idle', 'one', 0
        self._stamp, self._silent = 0, threading.Event()
        session.client.wait_for(
            lambda: self._publisher.get_subscription_count() > 1, what='the recorder listens'
        )
        self._thread = threading.Thread(target=self._publish, daemon=True)
        self._thread.start()

    def be(self, state: str) -> None:
        """Change the state; return when it was said three times more."""
        self._stamp, self.state = self.session.robot.now, state
        before = self.published
        self.session.client.wait_for(lambda: self.published > before + 3, what='it is said')

    def die(self) -> None:
        self._silent.set()
        self._thread.join()

    def _publish(self) -> None:
        while not self._silent.wait(0.1):
            stamp = format_seconds(self._stamp)
            values = {'state': self.state, 'session': self.session_id}
            self.send({**values, 'stamp': stamp, 'cycles': '2'})

    def send(self, values: dict[str, str]) -> None:
        self._publisher.publish(status('excitation', '', values))
        self.published += 1

    def send_trajectory(self, text: str) -> None:
        self._trajectory.publish(String(data=text))


@contextlib.contextmanager
def excitation_of(session: Session) -> Iterator[Excitation]:
    excitation = Excitation(session)
    # As the real one does: its states come in time on a busy machine, too.
    prefer_threads(True)
    try:
        yield excitation
    finally:
        prefer_threads(False)
        excitation.die()


@pytest.fixture
def excitation(session: Session) -> Iterator[Excitation]:
    start(session)
    with excitation_of(session) as excitation:
        yield excitation


@pytest.fixture
def session(joined: Session, nodes: Nodes) -> Iterator[Session]:
    """Give each test a recorder of its own beside one robot."""
    yield joined
    nodes.processes.stop(('recorder',))


def start(session: Session, **settings: str) -> None:
    """Start the recorder, and the robot where there is none yet."""
    values = {'folder': str(session.folder), **settings}
    parameters = {f'recorder.{name}': value for name, value in values.items()}
    session.start('simulated_robot', 'recorder', recorder=parameters)
    session.robot.wait()
    session.ready('recorder')


def record(session: Session, duration: float, seen: int) -> Path:
    """Record for so long, and until so many states were seen from outside meanwhile."""
    client, before = session.client, len(session.robot.stamps)
    for topic in ('recorder/state', 'recorder/bag'):
        client.latest.pop(topic, None)
    path = Path(client.call_set_bool('recorder/record', True))
    read_when(path, lambda r: r.duration > duration, f'{duration:g} s are recorded')
    client.wait_for(
        lambda: len(session.robot.stamps) > before + seen, what=f'{seen} states are seen'
    )
    client.call_set_bool('recorder/record', False)
    session.until('recorder', 'closed')
    client.wait_for(lambda: 'recorder/bag' in client.latest, what='the bag is told')
    assert path == Path(client.latest['recorder/bag'].data)
    return path


def test_a_recording_is_what_was_published_and_is_never_overwritten(session: Session):
    start(session, name='mine')
    first = record(session, 0.5, 0)
    content = (first / f'{first.name}.mcap').read_bytes()
    # From its first recording on, the recorder knows the robot's topics.
    second = record(session, 3.0, 200)
    assert first.name == 'mine'
    assert second != first
    assert (first / f'{first.name}.mcap').read_bytes() == content
    recording = open_recording(second)
    assert recording.joints == ('joint_1', 'joint_2')
    # Each state that was seen from outside is in the bag, and none twice.
    seen = dict(zip(list(session.robot.stamps), session.robot.positions, strict=False))
    stamps = recording.origin + np.round(recording.time * 1e9).astype(np.int64)
    expected = [s for s in seen if stamps[0] <= s <= stamps[-1]]
    assert len(expected) > 50
    rows = {stamp: row for row, stamp in enumerate(stamps.tolist())}
    assert len(rows) == len(stamps)
    assert set(expected) <= set(rows)
    positions = recording.position[[rows[stamp] for stamp in expected]]
    assert np.array_equal(positions, np.stack([seen[stamp] for stamp in expected]))
    assert recording.urdf is not None
    assert recording.controller is not None
    assert recording.controller.gains['joint_1']['p'] > 0.0
    assert recording.configuration is not None
    assert recording.configuration['robot']['name'] == 'scara'


def test_recording_twice_at_once_is_refused(session: Session):
    start(session)
    with pytest.raises(RobotIdError, match='not recording'):
        session.client.call_set_bool('recorder/record', False)
    session.client.call_set_bool('recorder/record', True)
    with pytest.raises(RobotIdError, match='already recording'):
        session.client.call_set_bool('recorder/record', True)
    session.client.call_set_bool('recorder/record', False)
    session.until('recorder', 'closed')


def test_a_full_disk_is_one_sentence_and_what_was_written_stays(session: Session):
    start(session)
    process = session.process('recorder')
    path = Path(session.client.call_set_bool('recorder/record', True))
    read_when(path, lambda r: r.duration > 0.7, '0.7 s are recorded')
    size = (path / f'{path.name}.mcap').stat().st_size + 100_000
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, size))
    message = session.until('recorder', 'failed')
    assert str(path) in message
    assert '\n' not in message
    assert process.poll() is None
    assert open_recording(path).duration > 0.5
    with pytest.raises(RobotIdError, match='not recording'):
        session.client.call_set_bool('recorder/record', False)


def test_a_folder_that_cannot_be_written_is_said(session: Session, tmp_path: Path):
    blocked = tmp_path / 'blocked'
    blocked.write_text('a file where a folder should be')
    start(session, folder=str(blocked))
    with pytest.raises(RobotIdError, match='blocked'):
        session.client.call_set_bool('recorder/record', True)
    session.until('recorder', 'failed')


def test_the_heartbeat_says_what_is_written(session: Session):
    start(session)
    heartbeats = Heartbeats(session)
    assert heartbeats.wait('idle')['path'] == ''
    path = Path(session.client.call_set_bool('recorder/record', True))
    first = heartbeats.wait('recording')
    read_when(path, lambda r: r.duration > 0.5, '0.5 s are recorded')
    later = heartbeats.wait('recording')
    assert Path(later['path']) == path
    assert int(later['messages']) > int(first['messages'])
    assert later['skipped'] == '0'
    session.client.call_set_bool('recorder/record', False)
    heartbeats.wait('idle')


def test_a_session_whose_bag_cannot_be_opened_is_tried_once(session: Session, tmp_path: Path):
    blocked = tmp_path / 'blocked'
    blocked.write_text('a file where a folder should be')
    start(session, folder=str(blocked))
    heartbeats = Heartbeats(session)
    with excitation_of(session) as excitation:
        excitation.be('approaching')
        assert str(blocked) in heartbeats.wait('failed')['path']
        assert str(blocked) in session.until('recorder', 'failed')
        excitation.be('exciting')
        heartbeats.wait('failed')
        assert session.client.states('recorder').count('failed') == 1
        # The next session's is none of this failure, though its end was not heard.
        blocked.unlink()
        excitation.session_id = 'two'
        heartbeats.wait('recording')
        said = [values_of(message) for message in heartbeats.seen]
        assert 'failed' not in [v['state'] for v in said if v['session'] == 'two']
        excitation.be('done')
        heartbeats.wait('idle')


def test_a_full_disk_leaves_one_bag(session: Session, excitation: Excitation):
    heartbeats = Heartbeats(session)
    excitation.be('exciting')
    path = Path(heartbeats.wait('recording')['path'])
    read_when(path, lambda r: r.duration > 0.3, '0.3 s are recorded')
    size = (path / f'{path.name}.mcap').stat().st_size
    resource.prlimit(session.process('recorder').pid, resource.RLIMIT_FSIZE, (size, size))
    assert Path(heartbeats.wait('failed')['path']) == path
    excitation.be('validating')
    assert heartbeats.wait('failed')['messages'] != '0'
    assert list(path.parent.glob('*/*.mcap')) == [path / f'{path.name}.mcap']


def test_a_folder_that_is_removed_is_noticed(session: Session, excitation: Excitation):
    heartbeats = Heartbeats(session)
    excitation.be('exciting')
    path = Path(heartbeats.wait('recording')['path'])
    read_when(path, lambda r: r.duration > 0.3, '0.3 s are recorded')
    shutil.rmtree(path)
    heartbeats.wait('failed')
    message = session.until('recorder', 'failed')
    assert f"folder '{path}' was removed while recording: nothing of it is left" in message
    assert not path.exists()


def test_a_dead_excitation_ends_recording_and_motion(session: Session, excitation: Excitation):
    heartbeats = Heartbeats(session)
    excitation.be('approaching')
    heartbeats.wait('recording')
    move(session, 60.0)
    excitation.be('exciting')
    session.robot.wait_moving(0.02)
    excitation.die()
    excitation.send({'state': 'is this one?'})
    silent = session.robot.now
    session.until('recorder', 'closed')
    # A second after its death, and half a second until the robot rests.
    assert session.robot.rest_after(silent) < 1.5
    recording = open_recording(session.client.value('recorder', 'path'))
    assert [phase.name for phase in recording.phases] == ['approaching', 'exciting', 'failed']
    assert recording.phases[1].stop - recording.phases[1].start > 0.2


@pytest.mark.parametrize('how', ['by hand', 'INT'])
def test_a_recording_that_ends_early_says_so(how: str, session: Session, excitation: Excitation):
    heartbeats = Heartbeats(session)
    excitation.be('approaching')
    path = Path(heartbeats.wait('recording')['path'])
    excitation.be('exciting')
    read_when(path, lambda r: r.duration > 0.5, '0.5 s are recorded')
    if how == 'by hand':
        session.client.call_set_bool('recorder/record', False)
        session.until('recorder', 'closed')
        # The session goes on: it gets no second bag.
        excitation.be('validating')
        heartbeats.wait('idle')
    else:
        process = session.process('recorder')
        process.send_signal(getattr(signal, f'SIG{how}'))
        assert process.wait(PATIENCE) == 0
    assert [p for p in session.folder.glob('*/*.mcap')] == [path / f'{path.name}.mcap']
    recording = open_recording(path)
    assert [phase.name for phase in recording.phases] == ['approaching', 'exciting', 'failed']


def test_a_session_whose_end_was_missed_shares_no_bag(session: Session, excitation: Excitation):
    """As by a recorder that was suspended: a latched state is overwritten by the next one."""
    heartbeats = Heartbeats(session)
    excitation.be('approaching')
    first = Path(heartbeats.wait('recording')['path'])
    read_when(first, lambda r: r.duration > 0.5, '0.5 s are recorded')
    excitation.session_id = 'two'
    heartbeats.wait('idle')
    values = heartbeats.wait('recording')
    # By this name a session knows that the bag is its own.
    assert values['session'] == 'two'
    second = Path(values['path'])
    read_when(second, lambda r: r.duration > 0.5, '0.5 s are recorded')
    excitation.be('done')
    heartbeats.wait('idle')
    names = [[phase.name for phase in open_recording(path).phases] for path in (first, second)]
    assert names == [['approaching', 'failed'], ['approaching', 'done']]


@pytest.mark.parametrize('state', ['idle', 'designing'])
def test_an_excitation_that_is_started_anew_ends_its_bag(
    state: str, session: Session, excitation: Excitation
):
    """Killed and started again within the silence that would tell: nobody says 'failed'."""
    heartbeats = Heartbeats(session)
    excitation.be('approaching')
    path = Path(heartbeats.wait('recording')['path'])
    excitation.be('exciting')
    excitation.be('approaching')
    excitation.session_id = ''
    excitation.be(state)
    assert 'cut' in session.until('recorder', 'closed')
    phases = open_recording(path).phases[:4]
    assert [phase.name for phase in phases] == ['approaching', 'exciting', 'approaching', 'failed']
    assert phases[2].cut


def test_states_have_the_times_of_their_own_reception(session: Session, excitation: Excitation):
    heartbeats = Heartbeats(session)
    excitation.be('approaching')
    heartbeats.wait('recording')
    excitation.be('exciting')
    excitation.be('done')
    session.until('recorder', 'closed')
    path = Path(session.client.value('recorder', 'path'))
    with (path / f'{path.name}.mcap').open('rb') as stream:
        found = [m for _, _, m in make_reader(stream).iter_messages(['/excitation/state'])]
    # The first one too, which comes another way than all others: not when it was written.
    assert all(m.publish_time < m.log_time for m in found)
    recording = open_recording(path)
    assert [phase.name for phase in recording.phases] == ['approaching', 'exciting', 'done']
    assert all(phase.stop >= phase.start for phase in recording.phases)


def test_no_trajectory_ends_the_recorder(session: Session, excitation: Excitation):
    heartbeats, skipped = Heartbeats(session), 0
    texts = ('a: [1', '? [a]\n: 1', '\0', '- 1', '&a [*a]', '{' * 3000)
    for number, text in enumerate(texts, start=1):
        excitation.session_id = f'session {number}'
        excitation.send_trajectory(text)
        excitation.send({'state': '', 'stamp': 'never', '': text})
        skipped += text not in ('- 1', '\0')
        excitation.be('approaching')
        values = heartbeats.wait('recording')
        assert (values['session'], int(values['skipped'])) == (excitation.session_id, skipped)
        # A state that is none is no end of the session.
        session.client.latest.pop('recorder/state')
        session.client.call_set_bool('recorder/record', False)
        session.until('recorder', 'closed')
        excitation.send({'state': text})
        excitation.be('exciting')
        heartbeats.wait('idle')
        assert len(list(session.folder.glob('*/*.mcap'))) == number
        assert session.process('recorder').poll() is None
        excitation.be('idle')


def move(session: Session, duration: float) -> None:
    """Send the controller a long and slow motion of its own."""
    robot, node = session.robot, session.client.node
    client = ActionClient(node, FollowJointTrajectory, '/arm_controller/follow_joint_trajectory')
    session.client.wait_for(client.server_is_ready, what='the controller serves its action')
    goal = (robot.positions[-1] + 3.0).tolist()
    point = JointTrajectoryPoint(positions=goal, time_from_start=Duration(sec=int(duration)))
    trajectory = JointTrajectory(joint_names=['joint_1', 'joint_2'], points=[point])
    request = FollowJointTrajectory.Goal(trajectory=trajectory)
    # In the executor's thread: the client knows its request only after it has sent it.
    task = node.executor.create_task(lambda: client.send_goal_async(request))
    answer = result_of(result_of(task, PATIENCE, 'executor'), PATIENCE, 'controller')
    assert answer.accepted
