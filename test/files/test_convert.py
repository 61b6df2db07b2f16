"""Any log as our own bag: whole or not at all, nothing replaced."""

import errno
import os

from bag_tools import EPOCH, joint_state, states, status, STEP, write_mcap
from mcap.writer import Writer
import numpy as np
import pytest

from robotid_ros.exceptions import FileError, RecordingError
from robotid_ros.files.bags import BagWriter, dump_session, open_recording, RecordedSession
from robotid_ros.files.bags.session import SESSION_TOPIC
from robotid_ros.files.convert import convert


@pytest.fixture
def source(tmp_path):
    return write_mcap(tmp_path / 'in', states(300))


@pytest.mark.parametrize('name', ['out.mcap', 'out'])
@pytest.mark.parametrize('kind', ['file', 'folder', 'link'])
def test_nothing_is_replaced(tmp_path, source, name, kind):
    output = tmp_path / name
    if kind == 'file':
        output.write_text('mine')
    elif kind == 'folder':
        output.mkdir()
    else:
        output.symlink_to(tmp_path / 'nowhere')
    with pytest.raises(FileError, match='exists already: choose another name'):
        convert(source, output)
    assert kind != 'file' or output.read_text() == 'mine'


@pytest.mark.parametrize('name', ['out.mcap', 'out'])
def test_a_full_disk_leaves_nothing(tmp_path, source, name, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Writer, 'finish', fail)
    with pytest.raises(FileError, match='no space left'):
        convert(source, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ['in']


def test_a_source_that_breaks_off_leaves_nothing(tmp_path):
    frames = (joint_state(EPOCH, ('a',), (1.0,), frame='x' * k) for k in range(1001))
    rows = [*states(300), *frames]
    path = write_mcap(tmp_path / 'in', rows)
    with pytest.raises(RecordingError, match='different layouts'):
        convert(path, tmp_path / 'out.mcap')
    assert [path.name for path in tmp_path.iterdir()] == ['in']


def test_a_session_stays_one(tmp_path):
    with BagWriter(tmp_path / 'in', 'bag') as writer:
        writer.add_topic('/joint_states', 'sensor_msgs/msg/JointState')
        writer.add_topic('/excitation/state', 'diagnostic_msgs/msg/DiagnosticStatus')
        writer.write_text('/robot_description', '<robot/>', EPOCH)
        session = RecordedSession(configuration={'robot': {'name': 'x'}})
        writer.write_text(SESSION_TOPIC, dump_session(session), EPOCH)
        for name, k in (('exciting', 0), ('validating', 150)):
            writer.write('/excitation/state', status({'state': name}), EPOCH + k * STEP)
        for k, data in enumerate(states(300)):
            writer.write('/joint_states', data, EPOCH + k * STEP)
    convert(writer.path, tmp_path / 'out.mcap')
    before, after = open_recording(writer.path), open_recording(tmp_path / 'out.mcap')
    assert (after.urdf, after.configuration) == ('<robot/>', {'robot': {'name': 'x'}})
    assert after.phases == before.phases and len(after.phases) == 2
    np.testing.assert_array_equal(after.effort, before.effort)
    np.testing.assert_array_equal(after.time, before.time)


def test_publishers_of_different_joints_stay_apart(tmp_path):
    rows = [
        joint_state(EPOCH + k * STEP, joints, *(np.full(len(joints), float(k)) for _ in range(3)))
        for k in range(300)
        for joints in (('a',), ('b', 'c'))
    ]
    with BagWriter(tmp_path / 'in', 'bag') as writer:
        writer.add_topic('/joint_states', 'sensor_msgs/msg/JointState')
        for k, data in enumerate(rows):
            writer.write('/joint_states', data, EPOCH + (k // 2) * STEP)
    found = convert(writer.path, tmp_path / 'out')
    assert (found.count, set(found.joints)) == (600, {'a', 'b', 'c'})
    recording = open_recording(tmp_path / 'out', ('a', 'c'))
    np.testing.assert_array_equal(recording.position, np.arange(300.0)[:, None] * [1, 1])
