"""Processes end by Ctrl-C or are killed: the robot stops, bags are readable, nothing hangs."""

from collections.abc import Iterator
import os
from pathlib import Path
import signal
import time

import pytest
from trajectory_msgs.msg import JointTrajectory

from robotid_ros.files.bags import read_recording

from .conftest import PATIENCE, Session

pytestmark = [pytest.mark.ros, pytest.mark.slow]

SIGNALS = {'INT': signal.SIGINT, 'TERM': signal.SIGTERM, 'KILL': signal.SIGKILL}


@pytest.fixture(scope='module')
def arena(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Keep one robot for all of these tests."""
    session = Session(config, tmp_path_factory.mktemp('deaths'))
    session.start('simulated_robot')
    session.robot.wait()
    yield session
    codes = session.close()
    assert codes['simulated_robot'] == 0


@pytest.fixture
def moving(arena: Session, trajectory: Path) -> Iterator[Session]:
    """Start excitation and recorder, and wait until the robot moves fast."""
    arena.restart(
        excitation={'excitation.trajectory': str(trajectory)},
        recorder={'recorder.folder': str(arena.folder)},
    )
    # The recorder must have found the excitation, or its bag begins late.
    node = arena.director.node
    arena.director.wait_for(
        lambda: node.count_subscribers('excitation/state') > 1, PATIENCE, 'discovery'
    )
    arena.director.trigger('excitation/start', PATIENCE)
    arena.until('excitation', 'exciting')
    arena.robot.wait_moving()
    yield arena
    arena.processes.stop(('excitation', 'recorder'))


def bag_of(session: Session) -> Path:
    return Path(session.director.value('recorder', 'path'))


@pytest.mark.parametrize('name', SIGNALS)
def test_robot_rests_when_the_excitation_goes(name: str, moving: Session):
    process = moving.process('excitation')
    moving.robot.wait_moving()
    stamp = moving.robot.now
    process.send_signal(SIGNALS[name])
    assert moving.robot.rest_after(stamp) < 0.5
    code = process.wait(15.0)
    assert code == (-signal.SIGKILL if name == 'KILL' else 0)
    if name == 'KILL':
        # Nobody says that the session is over; the recorder is told by hand.
        moving.director.switch('recorder/record', False)
    else:
        assert moving.director.message('excitation') == 'stopped by request'
    moving.until('recorder', 'closed')
    recording = read_recording(bag_of(moving))
    assert [phase.name for phase in recording.phases][:2] == ['approaching', 'exciting']
    assert recording.controller is not None
    assert 'exciting' in recording.trajectories


def test_robot_rests_when_asked_to_stop(moving: Session):
    moving.robot.wait_moving()
    stamp = moving.robot.now
    moving.director.trigger('excitation/stop')
    assert moving.robot.rest_after(stamp) < 0.5
    assert moving.until('excitation', 'failed') == 'stopped by request'


def test_robot_rests_when_the_guardian_dies(moving: Session):
    guardian = child_of(moving.process('excitation').pid, 'guardian')
    moving.robot.wait_moving()
    stamp = moving.robot.now
    os.kill(guardian, signal.SIGKILL)
    assert moving.robot.rest_after(stamp) < 0.5
    assert 'guardian' in moving.until('excitation', 'failed')


def test_robot_rests_when_somebody_else_commands_it(moving: Session):
    publisher = moving.director.node.create_publisher(
        JointTrajectory, '/arm_controller/joint_trajectory', 1
    )
    moving.director.wait_for(lambda: publisher.get_subscription_count() > 1, PATIENCE, 'discovery')
    moving.robot.wait_moving()
    publisher.publish(JointTrajectory())
    try:
        assert 'somebody else' in moving.until('excitation', 'failed')
        assert moving.robot.rest_after(moving.robot.now) < 0.5
    finally:
        moving.director.node.destroy_publisher(publisher)


@pytest.mark.parametrize('name', SIGNALS)
def test_bag_is_readable_when_the_recorder_goes(name: str, moving: Session):
    time.sleep(1.0)
    process, path = moving.process('recorder'), bag_of(moving)
    stamp = moving.robot.now
    process.send_signal(SIGNALS[name])
    assert process.wait(15.0) == (-signal.SIGKILL if name == 'KILL' else 0)
    recording = read_recording(path)
    assert recording.controller is not None
    assert recording.urdf is not None
    # A kill may lose what was not yet handed to the operating system: less than half a second.
    first = next(s for s, _ in moving.robot.rows if s >= stamp - 5_000_000_000)
    seen = (stamp - first) * 1e-9
    assert recording.duration > min(seen, 2.0) - 0.5
    # The robot does not depend on it.
    assert moving.director.state('excitation') == 'exciting'


@pytest.mark.parametrize('name', ['INT', 'KILL'])
def test_identification_ends_at_once(name: str, arena: Session):
    arena.start('identification')
    arena.director.last.pop('identification/state', None)
    arena.ready('identification')
    process = arena.process('identification')
    process.send_signal(SIGNALS[name])
    assert process.wait(15.0) == (-signal.SIGKILL if name == 'KILL' else 0)


def child_of(pid: int, word: str) -> int:
    """Find the child process whose command line holds a word."""
    # A thread is the parent of what it starts.
    threads = Path(f'/proc/{pid}/task').glob('*/children')
    for child in ' '.join(path.read_text() for path in threads).split():
        if word in Path(f'/proc/{child}/cmdline').read_text():
            return int(child)
    raise AssertionError(f'no {word} below {pid}')
