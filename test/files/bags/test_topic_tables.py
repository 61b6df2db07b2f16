"""Bags without sensor_msgs/JointState: other topics whose fields are positions and efforts."""

import json
import struct

from bag_tools import controller_state, EPOCH, header, STEP, STORE
from mcap.writer import Writer
import numpy as np
import pytest
from rosbags.typesys import get_types_from_msg, get_typestore, Stores

from robotid_ros.exceptions import RecordingError
from robotid_ros.files.bags import BagWriter, read_recording
from robotid_ros.files.bags.messages.protobuf import parser_of
from robotid_ros.files.bags.read.summary import summarise
from robotid_ros.files.bags.schema.message_definitions import CONTROLLER_STATE, definition
from robotid_ros.files.formats.read_options import ReadOptions

from ..formats.tables import urdf

JOINTS, COUNT = ('base', 'elbow'), 60
TIME = np.arange(COUNT) * STEP * 1e-9
# Fast: the whole recording takes a tenth of a second.
SPEED = 50.0
Q = np.column_stack([np.sin(SPEED * TIME), np.cos(2.0 * SPEED * TIME)])
DQ = SPEED * np.column_stack([np.cos(SPEED * TIME), -2.0 * np.sin(2.0 * SPEED * TIME)])
TAU = 3.0 * Q[:, ::-1] + 1.0
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
    recording = read_recording(path, JOINTS, options=ReadOptions(**options))
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
    assert any('no sensor_msgs/JointState: those of /state are taken' in note for note in notes)
    summary = summarise(path, ReadOptions(urdf=URDF))
    assert {topic.name for topic in summary.topics} == {'/joint_states', '/state'}
    assert summary.description == "'arm' with the joints base, elbow"


def test_numbers_without_names_are_told_apart_by_their_values(tmp_path):
    check(bag(tmp_path, ARRAY, array), urdf=URDF)


def test_columns_choose_among_fields(tmp_path):
    path = bag(tmp_path, ARRAY, array)
    with pytest.raises(RecordingError, match=r'record /joint_states, or name fields .* --columns'):
        check(path)
    columns = (('position', 'data[0:2]'), ('effort', 'data[4:6]'))
    check(path, urdf=URDF, columns=columns)


def write_mcap(path, encoding, schema, definition_, serialize):
    with path.open('wb') as stream:
        writer = Writer(stream)
        writer.start()
        number = writer.register_schema(
            schema, 'protobuf' if definition_ else 'jsonschema', definition_
        )
        channel = writer.register_channel('/joint_states', encoding, number)
        for k in range(COUNT):
            writer.add_message(channel, EPOCH + k * STEP, serialize(k), EPOCH + k * STEP)
        writer.finish()
    return path


def test_messages_in_json_are_joint_states(tmp_path):
    def serialize(k):
        lists = {'position': Q[k], 'velocity': DQ[k], 'effort': TAU[k]}
        content = {'name': JOINTS, **{key: value.tolist() for key, value in lists.items()}}
        return json.dumps(content).encode()

    check(write_mcap(tmp_path / 'a.mcap', 'json', 'sensor_msgs/JointState', b'', serialize))


def varint(value):
    value &= 2**64 - 1
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def field(number, value):
    """Encode a field: an integer as a number of any length, bytes behind their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def declared(name, fields, nested=b''):
    """Encode a message of descriptor.proto: {name: (number, type, repeated, other type)}."""
    content = field(1, name)
    for own, (number, kind, repeated, other) in fields.items():
        parts = field(1, own) + field(3, number) + field(4, 3 if repeated else 1)
        content += field(2, parts + field(5, kind) + (field(6, other) if other else b''))
    return content + nested


TIMES = declared(b'Time', {b'seconds': (1, 3, False, b''), b'nanos': (2, 5, False, b'')})
STATES = declared(
    b'States',
    {
        b'stamp': (1, 11, False, b'.lab.States.Time'),
        b'name': (2, 9, True, b''),
        b'position': (3, 1, True, b''),
        b'torque': (4, 1, True, b''),
        b'steps': (5, 18, True, b''),
        b'ok': (6, 8, False, b''),
        b'gain': (7, 2, False, b''),
    },
    field(3, TIMES),
)
DEFINITION = field(1, field(1, b'a.proto') + field(2, b'lab') + field(4, STATES))


def encoded(k):
    seconds, nanos = divmod(EPOCH + k * STEP, 10**9)
    stamp = (field(1, seconds) if seconds else b'') + field(2, nanos)
    message = field(1, stamp) + b''.join(field(2, joint.encode()) for joint in JOINTS)
    message += field(3, Q[k].astype('<f8').tobytes())
    return message + b''.join(varint(4 << 3 | 1) + struct.pack('<d', x) for x in TAU[k])


def test_messages_of_protocol_buffers_are_joint_states(tmp_path):
    check(write_mcap(tmp_path / 'a.mcap', 'protobuf', 'lab.States', DEFINITION, encoded))


def test_fields_of_protocol_buffers():
    parse = parser_of(DEFINITION, 'lab.States')
    empty = parse(b'')
    assert empty == {'name': [], 'position': [], 'torque': [], 'steps': [], 'ok': 0, 'gain': 0}
    packed = field(5, varint(1) + varint(4)) + field(99, b'unknown')
    one = varint(7 << 3 | 5) + struct.pack('<f', 0.5)
    found = parse(packed + field(6, 1) + one + field(1, field(1, -2)))
    assert (found['steps'], found['ok'], found['gain']) == ([-1, 2], 1, 0.5)
    assert found['stamp'] == {'seconds': -2, 'nanos': 0}
    for broken in (b'\x0a\x7f', b'\x80', b'\x0b'):
        with pytest.raises(ValueError, match=r'longer|end|known'):
            parse(broken)
