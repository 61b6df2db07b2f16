"""Joint states serialized in bulk are those that rosbags serializes."""

from bag_tools import joint_state, STORE
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays
import numpy as np

from robotid_ros.files.convert import serialize_joint_states
from robotid_ros.files.formats.joint_table import JointTable

NAMES = st.lists(
    st.text(st.characters(exclude_characters='\0', codec='utf-8'), max_size=9), max_size=6
)


@given(st.data(), NAMES, st.integers(1, 5), st.tuples(*[st.booleans()] * 3))
def test_every_byte_is_the_same(data, joints, count, present):
    stamps = data.draw(st.lists(st.integers(0, 2**31 * 10**9 - 1), min_size=count, max_size=count))
    shape = (count, len(joints))
    fields = [
        data.draw(
            arrays.arrays(float, shape, elements=st.floats(allow_nan=False, allow_infinity=False))
        )
        if there
        else np.full(shape, np.nan)
        for there in present
    ]
    times = np.array(stamps)
    found = serialize_joint_states(STORE, JointTable(tuple(joints), times, times, *fields))
    for k, stamp in enumerate(stamps):
        rows = [field[k] if there else () for field, there in zip(fields, present, strict=True)]
        assert found[k] == joint_state(stamp, joints, *rows)
