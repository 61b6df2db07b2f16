"""Messages are decoded in bulk as they are one by one, however many are of no use."""

from bag_tools import (
    control_store,
    controller_state,
    EPOCH,
    JOINT_STATE,
    joint_state,
    motion,
    states,
    STEP,
    STORE,
)
from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.files.bags import BagWriter, open_recording
from robotid_ros.files.bags.mcap_reader import Messages
from robotid_ros.files.bags.messages import Decoder, USUAL_FIELDS

CONTROLLER_STATE = 'control_msgs/msg/JointTrajectoryControllerState'


def test_the_usual_types_are_those_of_ros():
    assert JOINT_STATE in USUAL_FIELDS
    known = fields_of(STORE)
    assert all(known[name] == fields for name, fields in USUAL_FIELDS.items())


def fields_of(store):
    return {kind: fields for kind, (_, fields) in store.fielddefs.items()}


def garbage(kind, number):
    """Make one of many different messages that are no joint states of this robot."""
    names = [f'{"x" * (number % 50)}{number}', 'b']
    if kind == 'doubled':
        return joint_state(EPOCH, ['a', 'b', 'a'], [number, 0, 0], (), [1, 2, 3])
    if kind == 'doubled anew':
        return joint_state(EPOCH, [*names, 'b'], [number, 0, 0])
    if kind == 'too short':
        return joint_state(EPOCH, ['a', 'b'], [number], (), [1, 2])
    if kind == 'nameless':
        return joint_state(EPOCH, [], [number])
    if kind == 'other joints':
        return joint_state(EPOCH, names, [number, 0])
    return np.random.default_rng(number).bytes(5 + number % 300)


@pytest.mark.parametrize(
    'kind', ['doubled', 'doubled anew', 'too short', 'nameless', 'other joints', 'bytes']
)
def test_a_flood_of_garbage_hides_no_state(tmp_path, kind):
    good = states(3000)
    # Ten times as many as there are states, from the middle on.
    flood = [garbage(kind, number) for number in range(15_000)]
    rows = [*good[:1500]]
    for k, state in enumerate(good[1500:]):
        rows += [state, *flood[10 * k : 10 * k + 10]]
    path = tmp_path / 'bag'
    with BagWriter(tmp_path, 'bag') as writer:
        writer.add_topic('/joint_states', 'sensor_msgs/msg/JointState')
        for k, data in enumerate(rows):
            writer.write('/joint_states', data, EPOCH + k * STEP // 11)
    recording = open_recording(path)
    np.testing.assert_array_equal(recording.position, motion(3000, 2)[0])
    told = select(recording.notes, 'messages_left_out')
    count = sum(note.values['count'] for note in told)
    # Sound joint states of others are read as such, as far as they are told apart.
    assert 15_000 - 1000 * (kind == 'other joints') <= count <= 15_000
    assert len(told) <= 3


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 2**31 - 1),
            st.integers(1, 4),
            st.booleans(),
            st.text(max_size=5).filter(lambda text: '\0' not in text),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_bulk_decoding_agrees_with_message_by_message(rows):
    payloads = []
    for stamp, n, moving, frame in rows:
        names = [f'j{k}{"x" * k}' for k in range(n)]
        values = np.arange(n) + stamp * 1e-3
        speed = values if moving else ()
        payloads.append(joint_state(stamp, names, values, speed, -values, frame))
    decoder = Decoder(fields_of(STORE), JOINT_STATE)
    seen = []
    messages = Messages.of([0] * len(payloads), payloads)
    for layout, matrix, _, index in decoder.groups(messages):
        for column, row in zip(layout.column(matrix, 'position'), index, strict=True):
            message = STORE.deserialize_cdr(payloads[row], JOINT_STATE)
            np.testing.assert_array_equal(column, message.position)
            assert layout.texts['name'] == tuple(message.name)
        for name in ('velocity', 'effort'):
            for column, row in zip(layout.column(matrix, name), index, strict=True):
                message = STORE.deserialize_cdr(payloads[row], JOINT_STATE)
                np.testing.assert_array_equal(column, getattr(message, name))
        seen += list(index)
    assert sorted(seen) == list(range(len(rows)))


def test_controller_states_decode_in_bulk_too():
    data = controller_state(EPOCH, ['x', 'yy'], [1, 2], [3, 4], [5, 6], [7, 8])
    decoder = Decoder(fields_of(control_store()), CONTROLLER_STATE)
    ((layout, matrix, *_),) = decoder.groups(Messages.of([0, 0], [data, data]))
    np.testing.assert_array_equal(layout.column(matrix, 'output.effort'), [[7, 8]] * 2)
    np.testing.assert_array_equal(layout.column(matrix, 'reference.accelerations'), [[5, 6]] * 2)
