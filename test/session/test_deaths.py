"""Processes end by Ctrl-C or are killed: the robot stops, bags are readable, nothing hangs."""

from collections.abc import Iterator
import os
from pathlib import Path
import signal

from live_session import child_of, dead, Nodes
import numpy as np
import pytest
from trajectory_msgs.msg import JointTrajectory
from waiting import PATIENCE, wait_until

from robotid_ros.core.excitation.design import Design
from robotid_ros.core.excitation.trajectory import waypoints
from robotid_ros.core.findings import select
from robotid_ros.core.signals.recording import Recording
from robotid_ros.files.bags import open_recording

from .conftest import LONG, read_when, Session, SLOW

pytestmark = pytest.mark.ros

SIGNALS = {'INT': signal.SIGINT, 'TERM': signal.SIGTERM, 'KILL': signal.SIGKILL}


@pytest.fixture
def moving(joined: Session, nodes: Nodes, trajectory: Path) -> Iterator[Session]:
    """Start a session, and wait until the robot moves fast; what does not die stays up."""
    session = joined
    session.start(
        *('simulated_robot', 'excitation', 'recorder'),
        simulated_robot=SLOW,
        excitation={
            'excitation.trajectory': str(trajectory),
            'excitation.periods': LONG,
            # It goes on when the recorder dies.
            'excitation.require_recorder': False,
        },
        recorder={'recorder.folder': str(nodes.folder)},
    )
    session.robot.wait()
    session.ready('excitation', 'recorder')
    # The recorder must have found the excitation, or its bag begins late.
    node = session.client.node
    session.client.wait_for(
        lambda: node.count_subscribers('excitation/state') > 1, what='the recorder listens'
    )
    session.client.call_trigger('excitation/start')
    session.until('recorder', 'recording')
    session.until('excitation', 'exciting')
    session.robot.wait_moving()
    yield session
    session.end_motion()


def bag_of(session: Session) -> Path:
    return Path(session.client.value('recorder', 'path'))


# One handler of all nodes takes SIGINT and SIGTERM.
@pytest.mark.parametrize('name', ['INT', 'KILL'])
def test_robot_rests_when_the_excitation_goes(name: str, moving: Session):
    process = moving.process('excitation')
    stamp = moving.robot.now
    process.send_signal(SIGNALS[name])
    if name == 'KILL':
        # How long the system takes to bury a process is not the guardian's matter.
        process.wait(PATIENCE)
        stamp = moving.robot.now
    assert moving.robot.rest_after(stamp) < 0.5
    code = process.wait(PATIENCE)
    assert code == (-signal.SIGKILL if name == 'KILL' else 0)
    if name != 'KILL':
        assert moving.until('excitation', 'failed') == 'stopped by request'
    moving.until('recorder', 'closed')
    recording = open_recording(bag_of(moving))
    phases = [phase.name for phase in recording.phases]
    assert (phases[:2], phases[-1]) == (['approaching', 'exciting'], 'failed')
    assert select(recording.notes, 'session_cut')[0].values['phase'] == 'exciting'
    assert recording.controller is not None
    assert 'exciting' in recording.trajectories


def test_robot_rests_when_asked_to_stop(moving: Session):
    stamp = moving.robot.now
    moving.client.call_trigger('excitation/stop')
    assert moving.robot.rest_after(stamp) < 0.5
    assert moving.until('excitation', 'failed') == 'stopped by request'


def test_robot_rests_when_the_guardian_dies(moving: Session):
    guardian = child_of(moving.process('excitation').pid, 'guardian')
    os.kill(guardian, signal.SIGKILL)
    wait_until(lambda: dead(guardian), 'the guardian is dead', moving.describe)
    stamp = moving.robot.now
    assert moving.robot.rest_after(stamp) < 0.5
    assert 'guardian' in moving.until('excitation', 'failed')


@pytest.mark.slow
def test_robot_rests_when_the_excitation_is_suspended(moving: Session):
    process = moving.process('excitation')
    stamp = moving.robot.now
    process.send_signal(signal.SIGSTOP)
    assert moving.robot.rest_after(stamp) < 0.5
    process.send_signal(signal.SIGCONT)
    assert 'this process was suspended for' in moving.until('excitation', 'failed')


@pytest.mark.slow
def test_robot_rests_when_the_guardian_is_suspended(moving: Session):
    guardian = child_of(moving.process('excitation').pid, 'guardian')
    os.kill(guardian, signal.SIGSTOP)
    stamp = moving.robot.now
    try:
        assert moving.robot.rest_after(stamp) < 0.5
        assert 'the guardian is suspended' in moving.until('excitation', 'failed')
    finally:
        os.kill(guardian, signal.SIGCONT)


@pytest.mark.slow
def test_robot_rests_when_somebody_else_commands_it(moving: Session):
    publisher = moving.client.node.create_publisher(
        JointTrajectory, '/arm_controller/joint_trajectory', 1
    )

    def noticed() -> bool:
        # Again and again: its listeners may know the publisher later than it knows them.
        publisher.publish(JointTrajectory())
        return moving.client.state('excitation') == 'failed'

    wait_until(noticed, 'the excitation notices', moving.describe, period=0.1)
    assert 'somebody else' in moving.client.message('excitation')
    assert moving.robot.rest_after(moving.robot.now) < 0.5


@pytest.mark.parametrize('name', ['TERM', 'KILL'])
def test_bag_is_readable_when_the_recorder_goes(name: str, moving: Session):
    process, path = moving.process('recorder'), bag_of(moving)

    def nearly_all() -> Recording | None:
        # A kill may lose what was not yet handed to the operating system: half a second.
        now = moving.robot.now
        recording = read_when(path, lambda r: r.duration > 2.0, '2 s are recorded')
        return recording if now - last_stamp(recording) < 500_000_000 else None

    before = wait_until(nearly_all, 'all but half a second can be read', moving.describe)
    process.send_signal(SIGNALS[name])
    assert process.wait(PATIENCE) == (-signal.SIGKILL if name == 'KILL' else 0)
    recording = open_recording(path)
    assert recording.controller is not None
    assert recording.urdf is not None
    assert last_stamp(recording) >= last_stamp(before)
    # The robot does not depend on it.
    stamp = moving.robot.now
    moving.client.wait_for(lambda: moving.robot.now > stamp, what='the robot goes on')
    moving.robot.wait_moving()
    assert moving.client.state('excitation') == 'exciting'


def test_identification_ends_at_once(joined: Session):
    session = joined
    session.start('identification')
    session.ready('identification')
    process = session.process('identification')
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 0


def last_stamp(recording: Recording) -> int:
    """When a recording ends, on the robot's clock [ns]."""
    return recording.origin + round(recording.time[-1] * 1e9)


@pytest.mark.slow
def test_a_motion_in_pieces_is_the_same_and_ends_without_anybody(
    session: Session, tmp_path: Path, designed: Design, trajectory: Path
):
    horizon = 1.0
    session.start(
        *('simulated_robot', 'excitation', 'recorder'),
        simulated_robot={},
        excitation={
            'excitation.trajectory': str(trajectory),
            'excitation.periods': 1,
            'excitation.horizon': horizon,
        },
        recorder={'recorder.folder': str(tmp_path)},
    )
    session.robot.wait()
    session.ready('excitation', 'recorder')
    session.client.call_trigger('excitation/start')
    session.until('excitation', 'done')
    session.until('recorder', 'closed')
    recording = open_recording(bag_of(session))
    (phase,) = (p for p in recording.phases if p.name == 'validating')
    assert recording.reference is not None and designed.validation is not None
    moved = recording.reference.between(phase.start, phase.stop)
    points = waypoints(designed.validation, 50.0)
    planned = points.sample(np.clip(moved.time - phase.start, 0.0, points.duration)).q
    assert np.abs(moved.q - planned).max() < 1e-6

    session.client.call_trigger('excitation/start')
    session.until('excitation', 'exciting')
    session.robot.wait_moving()
    stamp = session.robot.now
    processes = [session.process(name).pid for name in ('excitation', 'recorder')]
    for pid in (child_of(processes[0], 'guardian'), *processes):
        os.kill(pid, signal.SIGKILL)
    assert session.robot.rest_after(stamp) < horizon + 0.3
