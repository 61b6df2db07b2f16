"""Efforts on topics of their own."""

import functools

from bag_tools import EPOCH, header, joint_state, STEP, STORE, write_mcap
import numpy as np
import pytest
from rosbags.typesys import get_types_from_msg, get_typestore, Stores

from robotid_ros.core.findings import select
from robotid_ros.exceptions import RecordingError, UnknownNameError
from robotid_ros.files.bags import BagWriter, open_recording
from robotid_ros.files.bags.messages import definition
from robotid_ros.files.formats.read_options import ReadOptions

JOINTS = ('a', 'b')
COUNT = 200
Q, TAU = np.random.default_rng(5).normal(size=(2, COUNT, 2))
DYNAMIC = 'control_msgs/msg/DynamicJointState'
ARRAY = 'std_msgs/msg/Float64MultiArray'
WRENCH = 'geometry_msgs/msg/WrenchStamped'


@functools.cache
def dynamic_store():
    store = get_typestore(Stores.ROS2_JAZZY)
    types = get_types_from_msg(definition(DYNAMIC)[0], DYNAMIC)
    store.register({k: v for k, v in types.items() if k not in store.fielddefs})
    return store


def dynamic(stamp, effort):
    store = dynamic_store()
    value = store.types['control_msgs/msg/InterfaceValue']
    values = [value(['position', 'torque'], np.array([9.0, tau])) for tau in effort[::-1]]
    message = store.types[DYNAMIC](header(stamp), list(JOINTS[::-1]), values)
    return bytes(store.serialize_cdr(message, DYNAMIC))


def array(_, effort):
    layout = STORE.types['std_msgs/msg/MultiArrayLayout']([], 0)
    message = STORE.types[ARRAY](layout, np.array([7.0, *effort, 8.0]))
    return bytes(STORE.serialize_cdr(message, ARRAY))


def wrench(stamp, effort):
    vector = STORE.types['geometry_msgs/msg/Vector3']
    content = STORE.types['geometry_msgs/msg/Wrench'](vector(*effort, 0.0), vector(0.0, 0.0, 0.0))
    return bytes(STORE.serialize_cdr(STORE.types[WRENCH](header(stamp), content), WRENCH))


def bag(folder, kind, serialize, effort=False, late=0, every=1):
    """Record positions, and efforts on `/x` received half a step later."""
    with BagWriter(folder, 'bag') as writer:
        writer.add_topic('/joint_states', 'sensor_msgs/msg/JointState')
        writer.add_topic('/x', kind)
        for k in range(COUNT):
            stamp = EPOCH + k * STEP
            state = joint_state(stamp, JOINTS, Q[k], (), Q[k] if effort else ())
            writer.write('/joint_states', state, stamp)
            if k % every == 0:
                writer.write('/x', serialize(stamp, TAU[k]), stamp + late)
    return writer.path


@pytest.mark.parametrize(
    ('kind', 'serialize', 'name'),
    [
        *((DYNAMIC, dynamic, '/x'), (DYNAMIC, dynamic, '/x:torque')),
        (ARRAY, array, '/x:data[1:3]'),
    ],
)
@pytest.mark.parametrize('chunks', [False, True])
def test_efforts_are_read_from_any_field(tmp_path, kind, serialize, name, chunks):
    path = bag(tmp_path, kind, serialize, effort=True, late=STEP // 3 if kind == DYNAMIC else 0)
    options = ReadOptions(effort_topic=name)
    recording = open_recording(path, options=options, max_samples=50 if chunks else 10_000)
    recording = recording.load() if chunks else recording
    np.testing.assert_allclose(recording.effort, TAU, rtol=1e-12)
    (note,) = select(recording.notes, 'efforts_of_topic') or [None]
    assert chunks or note.values == {'topic': name}


def test_a_single_number_is_the_effort_of_a_single_joint(tmp_path):
    path = bag(tmp_path, WRENCH, wrench)
    options = ReadOptions(effort_topic='/x:wrench.force.y')
    with pytest.raises(RecordingError, match='/x has 1 numbers for 2 joints'):
        open_recording(path, options=options)


def test_dynamic_joint_states_are_found_where_there_are_no_efforts(tmp_path):
    recording = open_recording(bag(tmp_path, DYNAMIC, dynamic))
    np.testing.assert_array_equal(recording.effort, TAU)
    assert select(recording.notes, 'efforts_of_topic')[0].values == {'topic': '/x'}
    kept = open_recording(bag(tmp_path / 'own', DYNAMIC, dynamic, effort=True))
    np.testing.assert_array_equal(kept.effort, Q)


def test_slower_efforts_are_interpolated(tmp_path):
    path = bag(tmp_path, ARRAY, array, every=2)
    recording = open_recording(path, options=ReadOptions(effort_topic='/x:data[1:3]'))
    np.testing.assert_allclose(recording.effort[::2], TAU[::2], rtol=1e-9)
    middle = 0.5 * (TAU[0:-2:2] + TAU[2::2])
    np.testing.assert_allclose(recording.effort[1:-1:2], middle, rtol=1e-9)


@pytest.mark.parametrize(
    ('name', 'error', 'text'),
    [
        (
            '/y',
            UnknownNameError,
            "unknown topic of the recording '/y': use one of /joint_states, /x",
        ),
        ('/x:force', UnknownNameError, "unknown field of /x 'force': use one of data"),
        ('/x', RecordingError, '/x has 4 numbers for 2 joints: choose'),
    ],
)
def test_what_is_not_there_is_one_sentence(tmp_path, name, error, text):
    path = bag(tmp_path, ARRAY, array)
    with pytest.raises(error, match=text.replace('[', r'\[')):
        open_recording(path, options=ReadOptions(effort_topic=name))


def test_an_unknown_interface_is_one_sentence(tmp_path):
    path = bag(tmp_path, DYNAMIC, dynamic)
    with pytest.raises(UnknownNameError, match=r"'x': use one of position, torque"):
        open_recording(path, options=ReadOptions(effort_topic='/x:x'))


def test_numbers_follow_the_description_where_names_are_missing(tmp_path):
    from ..formats.tables import urdf

    path = bag(tmp_path, ARRAY, array)
    options = ReadOptions(effort_topic='/x:data[1:3]', urdf=urdf('b', 'a'))
    np.testing.assert_allclose(open_recording(path, options=options).effort, TAU[:, ::-1])


def test_a_bag_of_joint_states_keeps_its_own_efforts(tmp_path):
    states = [joint_state(EPOCH + k * STEP, JOINTS, Q[k], (), TAU[k]) for k in range(COUNT)]
    np.testing.assert_array_equal(open_recording(write_mcap(tmp_path, states)).effort, TAU)


def test_options_of_tables_are_passed_over_and_told(tmp_path):
    rows = [joint_state(EPOCH + k * STEP, JOINTS, Q[k], (), TAU[k]) for k in range(COUNT)]
    options = ReadOptions(units=(('effort', 'mNm'),))
    recording = open_recording(write_mcap(tmp_path, rows), options=options)
    np.testing.assert_array_equal(recording.effort, TAU)
    assert select(recording.notes[:1], 'options_of_tables')
