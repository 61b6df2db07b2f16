"""A recording too long for memory gives, piece by piece, what it would give as a whole."""

import itertools

from bag_tools import controller_state, EPOCH, joint_state, motion, status, STEP
from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.signals.recording import Recording
from robotid_ros.exceptions import RecordingError, UnknownNameError
from robotid_ros.files.bags import (
    BagWriter,
    ChunkedRecording,
    dump_session,
    open_recording,
    RecordedSession,
)
from robotid_ros.files.bags.messages import CONTROLLER_STATE
from robotid_ros.files.bags.recording import correct_clock_chunks, on_one_clock
from robotid_ros.files.bags.summary import summarise
from robotid_ros.files.formats.joint_table import concatenate, JointTable
from robotid_ros.files.identification_input import LogPart, split

COUNT, JOINTS = 12_000, ('a', 'b')
HOUR = 3_600_000_000_000
FIELDS = ('time', 'position', 'effort')


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    monkeypatch.setattr('robotid_ros.files.bags.recording.CHUNK_DURATION', 4.0)
    monkeypatch.setattr('robotid_ros.files.bags.mcap_writer.CHUNK_SIZE', 1 << 16)


def write(folder, jump=None):
    """Write a session; the clock of its stamps jumps ahead by an hour after so many samples."""
    q, dq, tau = motion(COUNT, 2)
    q = np.cumsum(q, axis=0) * 1e-3
    gains = {'a': {'p': 1.0}, 'b': {'p': 2.0}}
    controller = {'name': 'arm', 'rate': 500.0, 'joints': JOINTS, 'gains': gains}
    with BagWriter(folder, 'bag') as writer:
        writer.add_topic('/joint_states', 'sensor_msgs/msg/JointState')
        writer.add_topic('/arm/controller_state', CONTROLLER_STATE)
        writer.add_topic('/excitation/state', 'diagnostic_msgs/msg/DiagnosticStatus', latched=True)
        writer.write_text('/robot_description', '<robot name="x"/>', EPOCH)
        writer.write_text(
            '/recorder/session', dump_session(RecordedSession(controller=controller)), EPOCH
        )
        for k in range(COUNT):
            received = EPOCH + k * STEP
            stamp = received + (HOUR if jump is not None and k >= jump else 0)
            data = joint_state(stamp, JOINTS, q[k], dq[k], tau[k])
            writer.write('/joint_states', data, received)
            if k % 10 == 0:
                data = controller_state(stamp, JOINTS, q[k], dq[k], tau[k], tau[k])
                writer.write('/arm/controller_state', data, received)
            if k in (1000, 9000):
                name = 'exciting' if k == 1000 else 'validating'
                writer.write('/excitation/state', status({'state': name}), received)
    return writer.path


def same(one, other):
    for name in FIELDS:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=0, atol=1e-9)


def joined(chunks):
    columns = {name: np.concatenate([getattr(p, name) for p in chunks]) for name in FIELDS}
    return Recording(chunks[0].joints, **columns)


def test_chunks_are_the_recording(tmp_path):
    path = write(tmp_path)
    whole = open_recording(path)
    assert isinstance(open_recording(path), Recording)
    shares = []
    chunked = open_recording(path, max_samples=5000, progress=shares.append)
    assert isinstance(chunked, ChunkedRecording) and shares[-1] == 1.0
    assert (chunked.joints, chunked.urdf, chunked.phases) == (
        whole.joints,
        whole.urdf,
        whole.phases,
    )
    assert (chunked.time_range, chunked.size) == (whole.time_range, whole.size)
    assert chunked.rate == pytest.approx(whole.rate) and chunked.controller == whole.controller
    for _ in range(2):  # it can be read again
        chunks = list(chunked)
        assert len(chunks) > 4 and max(chunk.size for chunk in chunks) < 4000
        same(joined(chunks), whole)
    first = chunks[0]
    followed = first.reference.time <= first.time[-1]
    np.testing.assert_allclose(first.reference.q[followed], first.position[::10], atol=1e-12)
    assert all(chunk.reference is None for chunk in chunks[1:])


def test_parts_of_a_chunked_recording_are_those_of_the_recording(tmp_path):
    path = write(tmp_path)
    whole, chunked = open_recording(path), open_recording(path, max_samples=5000)
    exciting, validating = split(chunked)
    assert isinstance(exciting, ChunkedRecording) and isinstance(validating, Recording)
    same(joined(list(exciting)), whole.phase('exciting'))
    same(validating, whole.phase('validating'))
    np.testing.assert_array_equal(
        validating.reference.command, whole.phase('validating').reference.command
    )
    for part in (LogPart(0.0, 0.3, True), LogPart(3.001, 9.5), LogPart(20.0, 1e9)):
        chosen, rest = split(chunked, part)
        expected = split(whole, part)
        for one, other in zip((chosen, rest), expected, strict=True):
            same(one if isinstance(one, Recording) else joined(list(one)), other)
    with pytest.raises(RecordingError, match='lasts'):
        split(chunked, LogPart(5.0, 5.2))
    with pytest.raises(UnknownNameError, match='exciting'):
        chunked.phase('resting')
    with pytest.raises(UnknownNameError, match='elbow'):
        open_recording(path, ('elbow',), max_samples=5000)


@pytest.mark.parametrize('jump', [1700, 2050, 7990])
def test_clock_jumps_are_undone_in_pieces_too(tmp_path, jump):
    path = write(tmp_path, jump)
    whole, chunked = open_recording(path), open_recording(path, max_samples=5000)
    assert whole.duration < 30.0 and whole.reference is None
    same(joined(list(chunked)), whole)
    assert [p.name for p in chunked.phases] == [p.name for p in whole.phases]
    for one, other in zip(chunked.phases, whole.phases, strict=True):
        assert one.start == pytest.approx(other.start, abs=2e-3)
    jumps = [each for chunk in chunked for each in select(chunk.notes, 'clock_jumped')]
    assert jumps[0].values['jump'] == pytest.approx(3600.0)
    same(chunked.between(18.0, 22.0), whole.between(18.0, 22.0))


def test_a_long_recording_is_inspected_in_pieces(tmp_path, monkeypatch):
    path = write(tmp_path, 5000)
    whole = summarise(path)
    monkeypatch.setattr('robotid_ros.files.bags.summary.MAX_SAMPLES', 1000)
    monkeypatch.setattr('robotid_ros.files.bags.summary.CHUNK_DURATION', 4.0)
    chunks = summarise(path)
    for field in ('duration', 'topics', 'timing', 'channels', 'phases', 'obstacles'):
        assert getattr(chunks, field) == getattr(whole, field)
    assert whole.timing.rate == pytest.approx(500.0) and whole.usable


@settings(max_examples=30, deadline=None)
@given(
    jumps=st.lists(
        st.tuples(st.integers(150, 8850), st.sampled_from([-7.0, -0.3, 6.5, 1e9])), max_size=3
    ),
    cuts=st.lists(st.integers(1, 8999), max_size=6),
)
def test_chunks_on_one_clock_are_the_whole_on_one_clock(jumps, cuts):
    count = 9000
    places = sorted({place for place, _ in jumps})
    if any(b - a < 150 for a, b in itertools.pairwise(places)):
        return
    received = EPOCH + np.arange(count) * STEP
    stamp = received.copy()
    for place, jump in jumps:
        stamp[place:] += int(jump * 1e9)
    position = np.sin(np.arange(count) * 1e-3)[:, None]
    states = JointTable(('a',), stamp, received, position, position, position)
    edges = [0, *sorted(set(cuts)), count]
    chunks = [states.rows(slice(a, b)) for a, b in itertools.pairwise(edges)]
    total = None
    for chunk, _ in correct_clock_chunks(chunks):
        total = chunk if total is None else concatenate(total, chunk)
    expected, rows, _ = on_one_clock(states)
    expected = expected.rows(rows)
    np.testing.assert_allclose(total.stamp - EPOCH, expected.stamp - EPOCH, rtol=0, atol=2000)
    np.testing.assert_array_equal(total.position, expected.position)
