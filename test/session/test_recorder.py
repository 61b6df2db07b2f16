"""The recorder by hand: nothing is lost or overwritten, and a full disk is one sentence."""

from pathlib import Path
import resource

import numpy as np
import pytest

from robotid_ros.exceptions import RobotIdError
from robotid_ros.files.bags import read_recording

from .conftest import read_when, Session

pytestmark = [pytest.mark.ros, pytest.mark.slow]


def start(session: Session, **settings: str) -> None:
    """Start robot and recorder."""
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
    recording = read_recording(second)
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
    assert read_recording(path).duration > 0.5
    with pytest.raises(RobotIdError, match='not recording'):
        session.client.call_set_bool('recorder/record', False)


def test_a_folder_that_cannot_be_written_is_said(session: Session, tmp_path: Path):
    blocked = tmp_path / 'blocked'
    blocked.write_text('a file where a folder should be')
    start(session, folder=str(blocked))
    with pytest.raises(RobotIdError, match='blocked'):
        session.client.call_set_bool('recorder/record', True)
    session.until('recorder', 'failed')
