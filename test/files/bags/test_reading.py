"""Recordings of every kind come back as they were written, or say in one sentence why not."""

from bag_tools import (
    controller_state,
    EPOCH,
    joint_state,
    motion,
    states,
    status,
    STEP,
    write_mcap,
    write_sqlite,
)
import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.regression.delays import hold_delay
from robotid_ros.exceptions import RecordingError, UnknownNameError
from robotid_ros.files.bags import (
    BagWriter,
    ChunkedRecording,
    dump_session,
    open_recording,
    RecordedSession,
)
from robotid_ros.files.bags.summary import summarise

JOINTS = ('a', 'b')
CONTROLLER_STATE = 'control_msgs/msg/JointTrajectoryControllerState'


@pytest.mark.parametrize('write', [write_mcap, write_sqlite])
def test_write_then_read_is_the_identity(tmp_path, write):
    path = write(tmp_path, states(300))
    recording = open_recording(path)
    position, velocity, effort = motion(300, 2)
    np.testing.assert_array_equal(recording.position, position)
    np.testing.assert_array_equal(recording.velocity, velocity)
    np.testing.assert_array_equal(recording.effort, effort)
    np.testing.assert_allclose(recording.time, np.arange(300) * 0.002, atol=1e-15)
    assert recording.joints == JOINTS


def test_a_bare_file_reads_like_its_folder(tmp_path):
    path = write_sqlite(tmp_path, states(50))
    (path / 'metadata.yaml').unlink()
    bare = open_recording(next(path.glob('*.db3')))
    np.testing.assert_array_equal(open_recording(path).position, bare.position)


def test_joints_come_by_name_in_the_order_asked_for(tmp_path):
    path = write_mcap(tmp_path, states(20))
    position = motion(20, 2)[0]
    np.testing.assert_array_equal(open_recording(path, ['b']).position, position[:, 1:])
    np.testing.assert_array_equal(open_recording(path, ['b', 'a']).position, position[:, ::-1])
    with pytest.raises(UnknownNameError, match='use one of a, b'):
        open_recording(path, ['elbow'])


def test_names_may_change_order_between_messages(tmp_path):
    q, _, tau = motion(40, 2)
    messages = []
    for k in range(40):
        order = [0, 1] if k % 3 else [1, 0]
        names = [JOINTS[i] for i in order]
        messages.append(joint_state(EPOCH + k * STEP, names, q[k, order], (), tau[k, order]))
    recording = open_recording(write_mcap(tmp_path, messages), JOINTS)
    np.testing.assert_array_equal(recording.position, q)
    np.testing.assert_array_equal(recording.effort, tau)
    assert recording.velocity is None


def test_joints_of_several_publishers_are_refused(tmp_path):
    q, dq, tau = motion(60, 2)
    rows = []
    for k in range(60):
        rows += [
            joint_state(EPOCH + k * STEP, [joint], q[k, j : j + 1], dq[k, j : j + 1], [tau[k, j]])
            for j, joint in enumerate(JOINTS)
        ]
    path = write_mcap(tmp_path, rows)
    np.testing.assert_array_equal(open_recording(path, ['b']).position, q[:, 1:])
    with pytest.raises(RecordingError, match=r'several publishers \(\[a\] and \[b\]\): record'):
        open_recording(path, JOINTS)


def test_a_publisher_without_effort_does_not_hide_one_with_it(tmp_path):
    q, dq, tau = motion(30, 2)
    messages = []
    for k in range(30):
        messages.append(joint_state(EPOCH + k * STEP, JOINTS, q[k], dq[k], tau[k]))
        messages.append(joint_state(EPOCH + k * STEP + 5, ['a', 'b', 'grip'], [9.0] * 3))
    recording = open_recording(write_mcap(tmp_path, messages), JOINTS)
    np.testing.assert_array_equal(recording.position, q)


def test_missing_efforts_are_named(tmp_path):
    silent = [joint_state(EPOCH + k, JOINTS, [0.0, 1.0]) for k in range(5)]
    with pytest.raises(RecordingError, match='has no effort of any joint: give'):
        open_recording(write_mcap(tmp_path, silent, 'silent'))
    half = [joint_state(EPOCH + k, JOINTS, [0, 1], [0, 1], [1.0, np.nan]) for k in range(5)]
    with pytest.raises(RecordingError, match='no effort of b'):
        open_recording(write_mcap(tmp_path, half, 'half'), JOINTS)
    assert open_recording(tmp_path / 'half').joints == ('a',)
    assert open_recording(tmp_path / 'half', ['a']).joints == ('a',)


@pytest.mark.parametrize(('reported', 'says'), [(np.nan, 'no effort'), (0.0, 'exactly 0')])
@pytest.mark.parametrize('early', [-30_000, 30_000])
def test_commands_stand_in_for_efforts_that_nobody_reports(tmp_path, early, reported, says):
    """Each state gets the command of the update before, whoever of the two publishes first."""
    n = 40
    q, dq, tau = motion(n, 2)
    with BagWriter(tmp_path, 'gazebo') as writer:
        writer.add_topic('/joint_states', 'sensor_msgs/msg/JointState')
        writer.add_topic('/arm/controller_state', CONTROLLER_STATE)
        for k in range(n):
            stamp = EPOCH + k * STEP
            state = joint_state(stamp, ('a', 'b', 'grip'), [*q[k], 0.0], [], [reported] * 3)
            writer.write('/joint_states', state, stamp)
            # The controller falls silent for a while: one command is late, then none is known.
            if not 20 <= k < 30:
                data = controller_state(stamp + early, ['b', 'a'], q[k], dq[k], tau[k], tau[k])
                writer.write('/arm/controller_state', data, stamp)
    recording = open_recording(writer.path, ('a', 'b'))
    (note,) = select(recording.notes, 'commands_as_efforts')
    assert says in note.values['what']
    expected = np.vstack([np.full((1, 2), np.nan), tau[:-1, ::-1]])
    expected[21:31] = np.nan
    expected[21:24] = tau[19, ::-1]
    np.testing.assert_array_equal(recording.effort, expected)
    assert open_recording(writer.path).joints == ('a', 'b')


def test_commands_of_a_slow_controller_stand_in_a_cycle_of_the_states_later(tmp_path):
    n, held = 40, 4
    q, dq, tau = motion(n, 2)
    with BagWriter(tmp_path, 'slow') as writer:
        writer.add_topic('/joint_states', 'sensor_msgs/msg/JointState')
        writer.add_topic('/arm/controller_state', CONTROLLER_STATE)
        for k in range(n):
            stamp = EPOCH + k * STEP
            writer.write('/joint_states', joint_state(stamp, JOINTS, q[k]), stamp)
            if k % held == 0:
                data = controller_state(stamp, JOINTS, q[k], dq[k], tau[k], tau[k])
                writer.write('/arm/controller_state', data, stamp)
    shown = np.maximum(np.arange(n) - 1, 0) // held * held
    np.testing.assert_array_equal(open_recording(writer.path).effort[1:], tau[shown][1:])


@pytest.mark.parametrize('max_samples', [1000, 100])
def test_the_rate_of_a_controller_is_that_of_its_states(tmp_path, max_samples):
    """Commands at 500 Hz that act for a period from the next state on, whatever update_rate."""
    n, controller = 400, {'name': 'arm', 'rate': 1000.0, 'joints': JOINTS}
    q, dq, tau = motion(n, 2)
    with BagWriter(tmp_path, 'fast') as writer:
        writer.add_topic('/joint_states', 'sensor_msgs/msg/JointState')
        writer.add_topic('/arm/controller_state', CONTROLLER_STATE)
        writer.write_text(
            '/recorder/session', dump_session(RecordedSession(controller=controller)), EPOCH
        )
        for k in range(n):
            stamp = EPOCH + k * STEP
            shown = joint_state(stamp + 30_000, JOINTS, q[k], dq[k], tau[max(k - 1, 0)])
            writer.write('/joint_states', shown, stamp)
            data = controller_state(stamp, JOINTS, q[k], dq[k], tau[k], tau[k])
            writer.write('/arm/controller_state', data, stamp)
    recording = open_recording(writer.path, max_samples=max_samples)
    recording = recording.load() if isinstance(recording, ChunkedRecording) else recording
    assert recording.controller.rate == pytest.approx(500.0)
    (note,) = select(recording.notes, 'update_rate')
    assert note.values['stated'] == '1000 Hz'
    assert hold_delay(recording) == pytest.approx(1e-3)


def test_states_without_stamps_take_the_time_of_reception(tmp_path):
    messages = [joint_state(0, JOINTS, [k, k], (), [1, 2]) for k in range(5)]
    recording = open_recording(write_mcap(tmp_path, messages))
    np.testing.assert_allclose(recording.time, np.arange(5) * 0.002)


@pytest.mark.parametrize(
    ('make', 'sentence'),
    [
        (lambda path: None, 'there is no recording'),
        (lambda path: path.mkdir(), 'holds no recording'),
        (lambda path: path.write_bytes(b''), 'is empty'),
        (lambda path: path.write_bytes(b'hello world'), 'holds no table of numbers'),
        (lambda path: path.write_bytes(bytes(range(256))), 'neither MCAP nor SQLite'),
        (lambda path: path.write_bytes(b'#ROSBAG V2.0\n'), 'damaged'),
        (lambda path: path.write_bytes(b'SQLite format 3\0' + bytes(4000)), 'is damaged'),
        (lambda path: path.write_bytes(b'\x89MCAP0\r\n'), 'holds no messages'),
    ],
)
def test_what_is_no_recording_is_refused(tmp_path, make, sentence):
    make(tmp_path / 'bag')
    with pytest.raises(RecordingError, match=sentence):
        open_recording(tmp_path / 'bag')


def test_recordings_without_joint_states_list_their_topics(tmp_path):
    with BagWriter(tmp_path, 'bag') as writer:
        writer.write_text('/robot_description', '<robot/>', EPOCH)
    with pytest.raises(RecordingError, match='its topics: /robot_description'):
        open_recording(writer.path)
    assert BagWriter(tmp_path, 'empty').close() == tmp_path / 'empty'
    with pytest.raises(RecordingError, match='holds no messages'):
        open_recording(tmp_path / 'empty')


def test_a_cut_database_is_damaged_not_a_traceback(tmp_path):
    path = next(write_sqlite(tmp_path, states(2000)).glob('*.db3'))
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(RecordingError, match='is damaged'):
        open_recording(path)


def test_a_session_comes_back_whole(tmp_path):
    n = 100
    q, dq, tau = motion(n, 2)
    gains = {'a': {'p': 100.0, 'd': 0.1}, 'b': {'p': 1e-3, 'd': 2.0}}
    controller = {
        'name': 'arm', 'type': 'jtc', 'rate': 500.0, 'joints': ['b', 'a'],
        'command_interfaces': ['effort'], 'gains': gains,
    }  # fmt: skip
    configuration = {'robot': {'joints': ['b', 'a'], 'gravity': [0.0, 0.1 + 0.2, -9.81]}}
    with BagWriter(tmp_path, 'bag') as writer:
        writer.add_topic('/joint_states', 'sensor_msgs/msg/JointState')
        writer.add_topic('/arm/controller_state', CONTROLLER_STATE)
        writer.add_topic('/excitation/state', 'diagnostic_msgs/msg/DiagnosticStatus', latched=True)
        writer.write_text('/robot_description', '<robot name="x"/>', EPOCH)
        writer.write_text(
            '/recorder/session',
            dump_session(RecordedSession(controller=controller, configuration=configuration)),
            EPOCH,
        )
        for k in range(n):
            stamp = EPOCH + k * STEP
            writer.write('/joint_states', joint_state(stamp, JOINTS, q[k], dq[k], tau[k]), stamp)
            data = controller_state(stamp, ['b', 'a'], q[k], dq[k], tau[k], q[k] + tau[k])
            writer.write('/arm/controller_state', data, stamp)
            if k in (10, 20, 60):
                name = {10: 'exciting', 20: 'exciting', 60: 'validating'}[k]
                values = {'state': name, 'stamp': f'{stamp // 10**9}.{stamp % 10**9:09d}'}
                writer.write('/excitation/state', status(values), stamp + 999_000)
    recording = open_recording(writer.path, JOINTS)
    np.testing.assert_array_equal(recording.reference.q, q[:, ::-1])
    np.testing.assert_array_equal(recording.reference.ddq, tau[:, ::-1])
    np.testing.assert_array_equal(recording.reference.command, (q + tau)[:, ::-1])
    np.testing.assert_allclose(recording.reference.time, recording.time)
    assert recording.controller.gains == gains
    assert recording.configuration == configuration
    assert recording.urdf == '<robot name="x"/>'
    names = [(p.name, round(p.start, 9), round(p.stop, 9)) for p in recording.phases]
    assert names == [('exciting', 0.02, 0.12), ('validating', 0.12, 0.198)]


def test_the_summary_counts_what_is_wrong(tmp_path):
    stamps = [0, 1, 2, 3, 4, 4, 8, 7, 9]
    messages = [
        joint_state(EPOCH + k * STEP, JOINTS, [i, 0], (), [i, 3.0]) for i, k in enumerate(stamps)
    ]
    summary = summarise(write_mcap(tmp_path, messages))
    timing = summary.timing
    assert (timing.repeated, timing.backward, timing.gaps, timing.lost) == (1, 1, 2, 4)
    assert [c.effort for c in summary.channels] == ['live', 'constant']
    assert not summary.usable and 'record at least' in summary.obstacles['identification']


def test_a_real_bag_without_metadata(datasets):
    recording = open_recording(datasets / 'ur10' / 'ur10_exciting_trajectory.db3')
    assert recording.position.shape == (3441, 6)
    assert recording.duration == pytest.approx(27.52)
