"""Signals to `ros2 launch` in mid-motion: the robot rests, all nodes end, the bag is readable."""

from collections.abc import Callable, Iterator
import contextlib
import os
from pathlib import Path
import shutil
import signal
import subprocess

from live_session import child_of, dead
from loopback import loopback_environment
import pytest
from waiting import PATIENCE, wait_until

from robotid_ros.core.findings import select
from robotid_ros.files.bags import open_recording

from .conftest import LONG, Session

pytestmark = pytest.mark.ros

pytest.importorskip('launch_ros', reason='launch is not on PyPI: tested with ROS 2')

LAUNCH = Path(__file__).resolve().parents[2] / 'launch' / 'identify.launch.py'
# From a signal to a robot at rest [s].
REST_TIME = 1.0


@pytest.fixture
def moving(
    session: Session, config: Path, trajectory: Path, tmp_path: Path
) -> Iterator['subprocess.Popen[bytes]']:
    """Launch a session beside a robot that somebody else started, up to its excitation."""
    if shutil.which('ros2') is None:
        pytest.skip('ros2 launch is not on PyPI: tested with ROS 2')
    session.start('simulated_robot')
    session.robot.wait()
    given = tmp_path / 'scara.yaml'
    replaced = f'periods: {LONG}\n      trajectory: {trajectory}'
    given.write_text(config.read_text().replace('periods: 2', replaced))
    process = subprocess.Popen(
        [
            *('ros2', 'launch', LAUNCH, f'config:={given}'),
            f'output_dir:={tmp_path / "bags"}',
        ],
        env={**os.environ, **loopback_environment(session.domain)},
        stdin=subprocess.DEVNULL,
        stdout=(tmp_path / 'launch.txt').open('w'),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        session.ready('excitation', 'recorder', 'identification')
        session.client.call_trigger('excitation/start', PATIENCE)
        session.until('excitation', 'exciting')
        session.robot.wait_moving()
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize(
    ('number', 'send'),
    [(signal.SIGINT, os.killpg), (signal.SIGTERM, os.kill), (signal.SIGKILL, os.kill)],
    ids=['Ctrl-C', 'SIGTERM', 'SIGKILL'],
)
def test_the_robot_rests_and_every_node_ends(
    number: signal.Signals,
    send: Callable[[int, int], None],
    moving: 'subprocess.Popen[bytes]',
    session: Session,
    tmp_path: Path,
) -> None:
    def log() -> str:
        return f'{(tmp_path / "launch.txt").read_text()}\n{session.describe()}'

    names = ('identification', 'recorder', 'excitation')
    pids = {name: child_of(moving.pid, f'/robotid_ros/{name}') for name in names}
    pids['guardian'] = child_of(pids['excitation'], 'common.guardian')
    stamp = session.robot.now
    send(moving.pid, number)
    assert session.robot.rest_after(stamp) < REST_TIME, log()
    wait_until(lambda: moving.poll() is not None, 'the launch ends', log)
    for name, pid in pids.items():
        wait_until(lambda pid=pid: dead(pid), f'{name} ends', log)
    (bag,) = (tmp_path / 'bags').iterdir()
    recording = open_recording(bag)
    assert recording.duration > 0.5
    (cut,) = select(recording.notes, 'session_cut')
    assert cut.values['phase'] == 'exciting'


def test_a_suspended_launch_ends_nothing(
    moving: 'subprocess.Popen[bytes]', session: Session
) -> None:
    os.kill(moving.pid, signal.SIGSTOP)
    end = session.robot.now + 1_000_000_000
    wait_until(lambda: session.robot.now > end, 'the robot is seen for a second')
    os.kill(moving.pid, signal.SIGCONT)
    assert session.client.state('excitation') == 'exciting'
    session.robot.wait_moving()
