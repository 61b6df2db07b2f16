"""The recorder by hand: nothing is lost or overwritten, and a full disk is one sentence."""

from collections.abc import Iterator
import contextlib
from pathlib import Path
import resource
import time

import numpy as np
import pytest

from robotid_ros.exceptions import RecordingError
from robotid_ros.files.bags import read_recording

from .conftest import Session

pytestmark = [pytest.mark.ros, pytest.mark.slow]


@pytest.fixture(scope='module')
def arena(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    session = Session(config, tmp_path_factory.mktemp('recorder'))
    session.start('simulated_robot')
    session.robot.wait()
    yield session
    session.close()


def record(arena: Session, seconds: float) -> Path:
    arena.director.last.pop('recorder/bag', None)
    arena.director.switch('recorder/record', True)
    time.sleep(seconds)
    arena.director.switch('recorder/record', False)
    arena.until('recorder', 'closed')
    arena.director.wait_for(lambda: 'recorder/bag' in arena.director.last, 5.0, 'the bag')
    return Path(arena.director.last['recorder/bag'].data)


def test_a_recording_is_what_was_published_and_is_never_overwritten(arena: Session):
    values = {'recorder.folder': str(arena.folder), 'recorder.name': 'mine'}
    arena.restart(recorder=values)
    first = record(arena, 3.0)
    content = (first / f'{first.name}.mcap').read_bytes()
    second = record(arena, 0.5)
    assert first.name == 'mine'
    assert second != first
    assert (first / f'{first.name}.mcap').read_bytes() == content
    recording = read_recording(first)
    assert recording.joints == ('joint_1', 'joint_2')
    # Each state that was seen from outside is in the bag, and none twice.
    seen = {stamp: q for stamp, q in arena.robot.rows}
    stamps = recording.origin + np.round(recording.time * 1e9).astype(np.int64)
    expected = [s for s in seen if stamps[0] <= s <= stamps[-1]]
    # (The eyes of this test are best effort: on a busy machine they miss many.)
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


def test_recording_twice_at_once_is_refused(arena: Session):
    arena.restart(recorder={'recorder.folder': str(arena.folder)})
    with pytest.raises(Exception, match='not recording'):
        arena.director.switch('recorder/record', False)
    arena.director.switch('recorder/record', True)
    with pytest.raises(Exception, match='already recording'):
        arena.director.switch('recorder/record', True)
    arena.director.switch('recorder/record', False)
    arena.until('recorder', 'closed')


def until_recorded(path: Path, duration: float) -> None:
    """Wait until a bag that is being written holds so much; it can be read at any time."""
    end = time.monotonic() + 30.0
    while True:
        with contextlib.suppress(RecordingError):
            if read_recording(path).duration > duration:
                return
        assert time.monotonic() < end, 'the recorder writes nothing'
        time.sleep(0.1)


def test_a_full_disk_is_one_sentence_and_what_was_written_stays(arena: Session):
    arena.restart(recorder={'recorder.folder': str(arena.folder)})
    process = arena.process('recorder')
    arena.director.switch('recorder/record', True)
    path = Path(arena.director.value('recorder', 'path'))
    until_recorded(path, 0.7)
    size = (path / f'{path.name}.mcap').stat().st_size + 100_000
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, size))
    message = arena.until('recorder', 'failed')
    assert str(path) in message
    assert '\n' not in message
    assert process.poll() is None
    assert read_recording(path).duration > 0.5
    with pytest.raises(Exception, match='not recording'):
        arena.director.switch('recorder/record', False)


def test_a_folder_that_cannot_be_written_is_said(arena: Session, tmp_path: Path):
    blocked = tmp_path / 'blocked'
    blocked.write_text('a file where a folder should be')
    arena.restart(recorder={'recorder.folder': str(blocked)})
    with pytest.raises(Exception, match='blocked'):
        arena.director.switch('recorder/record', True)
    assert arena.director.state('recorder') == 'failed'
