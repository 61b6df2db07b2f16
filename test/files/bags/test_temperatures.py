"""Temperatures of joints are read beside the joint states, wherever they are published."""

from bag_tools import EPOCH, header, joint_state, STEP, STORE
import numpy as np
import pytest
from rosbags.typesys import get_types_from_msg, get_typestore, Stores

from robotid_ros.core.finding_codes import select
from robotid_ros.files.bags import BagWriter, open_recording, read_recording
from robotid_ros.files.bags.messages import definition
from robotid_ros.files.convert import convert
from robotid_ros.files.formats.read_options import ReadOptions

JOINTS, COUNT, EVERY = ('a', 'b'), 400, 40
Q, TAU = np.random.default_rng(5).normal(size=(2, COUNT, 2))
# They rise in a straight line, so that those between two messages are known, too.
DEGREES = np.column_stack([np.linspace(30.0, 50.0, COUNT), np.linspace(25.0, 20.0, COUNT)])
DYNAMIC, STATE = 'control_msgs/msg/DynamicJointState', 'sensor_msgs/msg/JointState'
ONE = 'sensor_msgs/msg/Temperature'


def dynamic(stamp, values, name='temperature'):
    store = get_typestore(Stores.ROS2_JAZZY)
    types = get_types_from_msg(definition(DYNAMIC)[0], DYNAMIC)
    store.register({k: v for k, v in types.items() if k not in store.fielddefs})
    value = store.types['control_msgs/msg/InterfaceValue']
    content = [value(['effort', name], np.array([9.0, x])) for x in values[::-1]]
    message = store.types[DYNAMIC](header(stamp), list(JOINTS[::-1]), content)
    return bytes(store.serialize_cdr(message, DYNAMIC))


def state(stamp, values):
    return joint_state(stamp, JOINTS[::-1], (), (), values[::-1])


def one(joint):
    def serialize(stamp, values):
        where = header(stamp)
        where.frame_id = joint
        content = STORE.types[ONE](where, values[0 if joint == 'a' else 1], 0.0)
        return bytes(STORE.serialize_cdr(content, ONE))

    return serialize


def bag(folder, *topics):
    with BagWriter(folder, 'bag') as writer:
        writer.add_topic('/joint_states', STATE)
        for topic, kind, _ in topics:
            writer.add_topic(topic, kind)
        for k in range(COUNT):
            stamp = EPOCH + k * STEP
            writer.write('/joint_states', joint_state(stamp, JOINTS, Q[k], (), TAU[k]), stamp)
            for topic, _, serialize in topics if k % EVERY == 0 else ():
                writer.write(topic, serialize(stamp, DEGREES[k]), stamp)
    return writer.path


@pytest.mark.parametrize(
    'topics',
    [
        [('/dynamic_joint_states', DYNAMIC, dynamic)],
        [('/motor_x', ONE, one('a')), ('/arm/b/temperature', ONE, one(''))],
    ],
    ids=['interface', 'one each'],
)
def test_temperatures_of_a_topic_are_those_of_its_joints(tmp_path, topics):
    path = bag(tmp_path, *topics)
    recording = read_recording(path, JOINTS)
    last = (COUNT - 1) // EVERY * EVERY
    np.testing.assert_allclose(recording.temperature[: last + 1], DEGREES[: last + 1])
    np.testing.assert_array_equal(recording.effort, TAU)
    assert not select(recording.notes, 'topic_chosen')
    # Another order of the joints, and a bag that was converted.
    convert(path, tmp_path / 'other.mcap')
    other = open_recording(tmp_path / 'other.mcap', JOINTS[::-1])
    np.testing.assert_allclose(other.temperature[: last + 1], DEGREES[: last + 1, ::-1])


def test_other_temperatures_are_not_those_of_joints(tmp_path):
    topics = (
        ('/dynamic_joint_states', DYNAMIC, lambda *x: dynamic(*x, name='torque')),
        ('/tool/temperature', ONE, one('tool0')),
        ('/joint_temperatures', STATE, state),
    )
    assert read_recording(bag(tmp_path, *topics), JOINTS).temperature is None


def test_a_joint_without_a_temperature_has_none(tmp_path):
    found = read_recording(bag(tmp_path, ('/x', ONE, one('a'))), JOINTS).temperature
    assert np.isfinite(found[:, 0]).all() and np.isnan(found[:, 1]).all()


@pytest.mark.parametrize(
    'names', [['actual_temperature_1', 'actual_temperature_2'], ['a_temp', 'b_temp']]
)
def test_columns_of_a_table_are_temperatures_of_joints(tmp_path, names):
    time = 0.01 * np.arange(COUNT)
    content = np.column_stack([time, Q, TAU, DEGREES])
    path = tmp_path / 'log.csv'
    header = ','.join(['t', 'q_1', 'q_2', 'tau_1', 'tau_2', *names])
    np.savetxt(path, content, delimiter=',', header=header, comments='')
    options = ReadOptions(joints=JOINTS)
    recording = read_recording(path, options=options)
    np.testing.assert_array_equal(recording.position, Q)
    # Once a second is enough of what changes slowly; behind the last one it stays.
    assert np.abs(recording.temperature[:301] - DEGREES[:301]).max() < 1e-6
    assert np.ptp(recording.temperature[301:], axis=0).max() < 1e-6
    convert(path, tmp_path / 'log.mcap', options)
    np.testing.assert_allclose(
        read_recording(tmp_path / 'log.mcap').temperature, recording.temperature
    )


def test_the_temperature_of_a_room_is_no_joint_s(tmp_path):
    content = np.column_stack([0.01 * np.arange(COUNT), Q, TAU, DEGREES[:, 0]])
    names = 't,q_1,q_2,tau_1,tau_2,temperature'
    np.savetxt(tmp_path / 'log.csv', content, delimiter=',', header=names, comments='')
    assert (
        read_recording(tmp_path / 'log.csv', options=ReadOptions(joints=JOINTS)).temperature
        is None
    )
