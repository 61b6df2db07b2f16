"""Bags without sensor_msgs/JointState: other topics whose fields are positions and efforts."""

from bag_tools import controller_state, EPOCH, header, STEP, STORE
from mcap.writer import Writer
import numpy as np
import pytest
from rosbags.typesys import get_types_from_msg, get_typestore, Stores

from robotid_ros.core.finding_codes import select
from robotid_ros.exceptions import RecordingError
from robotid_ros.files.bags import BagWriter, open_recording
from robotid_ros.files.bags.messages import CONTROLLER_STATE, definition
from robotid_ros.files.bags.summary import summarise
from robotid_ros.files.formats.read_options import ReadOptions

from ..formats.tables import urdf

JOINTS, COUNT = ('base', 'elbow'), 60
TIME = np.arange(COUNT) * STEP * 1e-9
# Fast: the whole recording takes a tenth of a second.
SPEED = 50.0
Q = np.column_stack([np.sin(SPEED * TIME), np.cos(2.0 * SPEED * TIME)])
DQ = SPEED * np.column_stack([np.cos(SPEED * TIME), -2.0 * np.sin(2.0 * SPEED * TIME)])
TAU = Q + 3.0 * Q[:, ::-1] + 1.0
DYNAMIC = 'control_msgs/msg/DynamicJointState'
ARRAY = 'std_msgs/msg/Float64MultiArray'
URDF = urdf(*JOINTS)


def store_with(*kinds):
    store = get_typestore(Stores.ROS2_JAZZY)
    for kind in kinds:
        types = get_types_from_msg(definition(kind)[0], kind)
        store.register({k: v for k, v in types.items() if k not in store.fielddefs})
    return store


def dynamic(k):
    store = store_with(DYNAMIC)
    value = store.types['control_msgs/msg/InterfaceValue']
    rows = zip(Q[k, ::-1], TAU[k, ::-1], strict=True)
    values = [value(['position', 'effort'], np.array(row)) for row in rows]
    message = store.types[DYNAMIC](header(EPOCH + k * STEP), list(JOINTS[::-1]), values)
    return bytes(store.serialize_cdr(message, DYNAMIC))


def trajectory_controller(k):
    states = Q[k] + 1.0, DQ[k], DQ[k], TAU[k]
    return controller_state(EPOCH + k * STEP, JOINTS, *states, measured=Q[k])


def array(k):
    layout = STORE.types['std_msgs/msg/MultiArrayLayout']([], 0)
    message = STORE.types[ARRAY](layout, np.concatenate([Q[k], DQ[k], TAU[k]]))
    return bytes(STORE.serialize_cdr(message, ARRAY))


def bag(folder, kind, serialize):
    with BagWriter(folder, 'bag') as writer:
        writer.add_topic('/state', kind)
        for k in range(COUNT):
            writer.write('/state', serialize(k), EPOCH + k * STEP)
            if k == 0:
                writer.flush()  # so that the first chunk has one message
    return writer.path


def check(path, **options):
    recording = open_recording(path, JOINTS, options=ReadOptions(**options))
    np.testing.assert_allclose(recording.time, TIME, atol=1e-8)
    np.testing.assert_allclose(recording.position, Q, atol=1e-12)
    np.testing.assert_allclose(recording.effort, TAU, atol=1e-12)
    return recording.notes


@pytest.mark.parametrize(
    'kind, serialize', [(DYNAMIC, dynamic), (CONTROLLER_STATE, trajectory_controller)]
)
def test_states_with_names_of_joints_are_joint_states(tmp_path, kind, serialize):
    path = bag(tmp_path, kind, serialize)
    notes = check(path)
    assert select(notes, 'states_of_fields')[0].values == {'topic': '/state'}
    summary = summarise(path, ReadOptions(urdf=URDF))
    assert {topic.name for topic in summary.topics} == {'/joint_states', '/state'}
    assert summary.description == "'arm' with the joints base, elbow"


def test_columns_choose_among_fields(tmp_path):
    path = bag(tmp_path, ARRAY, array)
    for urdf_text in ('', URDF):  # numbers without names are not guessed
        with pytest.raises(RecordingError, match=r'record /joint_states, or name .* --columns'):
            check(path, urdf=urdf_text)
    columns = (('position', 'data[0:2]'), ('effort', 'data[4:6]'))
    check(path, urdf=URDF, columns=columns)


def write_mcap(path, schema, serialize, encoding):
    with path.open('wb') as stream:
        writer = Writer(stream)
        writer.start()
        number = writer.register_schema(schema, 'jsonschema', b'')
        channel = writer.register_channel('/joint_states', encoding, number)
        for k in range(COUNT):
            writer.add_message(channel, EPOCH + k * STEP, serialize(k), EPOCH + k * STEP)
        writer.finish()
    return path


def test_messages_of_another_encoding_are_one_sentence(tmp_path):
    path = write_mcap(tmp_path / 'a.mcap', 'lab.States', lambda _: b'\x0a\x01\x02', 'protobuf')
    with pytest.raises(RecordingError, match=r'no joint states \(its topics: /joint_states\)'):
        open_recording(path)
