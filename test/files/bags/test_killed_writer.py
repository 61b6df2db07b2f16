"""What was written survives a kill, a full disk and a cut file."""

import os
from pathlib import Path
import signal
import subprocess
import sys
import time

from bag_tools import EPOCH, JOINT_STATE, motion, states, STEP, write_mcap
from hypothesis import given, settings, strategies as st
from mcap.reader import make_reader
import numpy as np
import pytest
from rosbags.highlevel import AnyReader

from robotid_ros.exceptions import FileError, RecordingError
from robotid_ros.files.bags import BagWriter, open_recording
from robotid_ros.files.bags.mcap_reader import McapReader

WRITER = """
import sys, time
from robotid_ros.files.bags import BagWriter
data = open(sys.argv[2], 'rb').read()
writer = BagWriter(sys.argv[1], 'bag', flush_period=0.0)
writer.add_topic('/joint_states', 'sensor_msgs/msg/JointState')
for k in range(10**9):
    writer.write('/joint_states', data, 10**18 + k)
    print(k, flush=True)
    time.sleep(0.001)
"""


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    path = write_mcap(tmp_path_factory.mktemp('whole'), states(400))
    return (path / f'{path.name}.mcap').read_bytes()


def test_every_cut_reads_a_growing_beginning(tmp_path, whole):
    position = motion(400, 2)[0]
    found = []
    for length in range(9, len(whole), 331):
        path = tmp_path / f'{length}.mcap'
        path.write_bytes(whole[:length])
        try:
            recording = open_recording(path)
        except RecordingError as error:
            assert 'no messages' in str(error) or 'no joint states' in str(error)
            found.append(0)
            continue
        found.append(len(recording.time))
        np.testing.assert_array_equal(recording.position, position[: found[-1]])
    assert found == sorted(found)
    assert found[-1] == 400


@settings(max_examples=60, deadline=None)
@given(offset=st.integers(0, 10**6), byte=st.integers(0, 255))
def test_a_wrong_byte_is_never_a_traceback(tmp_path_factory, whole, offset, byte):
    data = bytearray(whole)
    data[offset % len(data)] = byte
    path = tmp_path_factory.mktemp('flip') / 'bag.mcap'
    path.write_bytes(data)
    try:
        assert len(open_recording(path).time) <= 400
    except RecordingError as error:
        assert '\n' not in str(error)


def is_finished(path):
    reader = McapReader(path)
    reader.open()
    return reader.finished


def test_a_killed_writer_loses_nothing_that_was_flushed(tmp_path):
    data = tmp_path / 'message'
    data.write_bytes(states(1)[0])
    process = subprocess.Popen(
        [sys.executable, '-c', WRITER, str(tmp_path), str(data)],
        stdout=subprocess.PIPE,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)},
    )
    for line in process.stdout:
        if int(line) >= 50:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    written = 51 + len(process.stdout.readlines())
    path = tmp_path / 'bag'
    assert not is_finished(path / 'bag.mcap')
    read = len(open_recording(path).time)
    assert written <= read <= written + 1


def _counts(path: Path) -> dict[str, int]:
    """Messages as the readers of rosbags and of the MCAP project see them."""
    with AnyReader([path]) as reader:
        ours = sum(1 for _ in reader.messages())
        assert ours == reader.message_count
    with (path / f'{path.name}.mcap').open('rb') as stream:
        indexed = make_reader(stream, validate_crcs=True)
        statistics = indexed.get_summary().statistics.message_count
        assert statistics == sum(1 for _ in indexed.iter_messages())
    return {'rosbags': ours, 'mcap': statistics}


def test_a_closed_recording_satisfies_other_readers(tmp_path):
    path = write_mcap(tmp_path, states(123))
    assert _counts(path) == {'rosbags': 123, 'mcap': 123}
    with AnyReader([path]) as reader:
        (connection,) = reader.connections
        assert connection.digest.startswith('RIHS01_')
        message = reader.deserialize(next(iter(reader.messages()))[2], JOINT_STATE)
    np.testing.assert_array_equal(message.position, motion(123, 2)[0][0])


def test_no_recording_is_ever_overwritten(tmp_path):
    first = write_mcap(tmp_path, states(3))
    content = (first / 'bag.mcap').read_bytes()
    second = write_mcap(tmp_path, states(5))
    assert (first.name, second.name) == ('bag', 'bag_2')
    assert (first / 'bag.mcap').read_bytes() == content
    with pytest.raises(FileError, match='cannot name a recording'):
        BagWriter(tmp_path, '../bag')


def test_a_closed_writer_refuses_more(tmp_path):
    writer = BagWriter(tmp_path, 'bag')
    writer.add_topic('/joint_states', JOINT_STATE)
    with pytest.raises(RecordingError, match='was not declared'):
        writer.write('/other', b'', EPOCH)
    assert writer.close() == writer.close()
    with pytest.raises(RecordingError, match='is closed'):
        writer.write('/joint_states', states(1)[0], EPOCH)


def test_a_type_that_is_not_installed_is_named(tmp_path):
    with BagWriter(tmp_path, 'bag') as writer:
        with pytest.raises(RecordingError, match='install the package no_msgs'):
            writer.add_topic('/x', 'no_msgs/msg/Thing')


def test_messages_reach_the_file_within_the_flush_period(tmp_path):
    writer = BagWriter(tmp_path, 'bag', flush_period=0.01)
    writer.add_topic('/joint_states', JOINT_STATE)
    first, second = states(2)
    writer.write('/joint_states', first, EPOCH)
    time.sleep(0.02)
    writer.write('/joint_states', second, EPOCH + STEP)
    assert len(open_recording(writer.path).time) == 2
    writer.close()


def test_on_a_full_disk_what_was_written_stays_readable(tiny_disk):
    writer = BagWriter(tiny_disk, 'bag', flush_period=0.0)
    writer.add_topic('/joint_states', JOINT_STATE)
    count = 0
    with pytest.raises(FileError, match='no space left'):
        for k, data in enumerate(states(20000)):
            writer.write('/joint_states', data, EPOCH + k * STEP)
            count += 1
    with pytest.raises(FileError, match='no space left'):
        writer.flush()
    writer.close()
    assert count > 100
    assert len(open_recording(writer.path).time) == count
