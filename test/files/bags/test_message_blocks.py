"""Messages that are found at once in a chunk are those that are found one by one."""

from hypothesis import given, settings, strategies as st
from mcap.opcode import Opcode
import numpy as np

from robotid_ros.files.bags.mcap_reader import FRAME, frames_of, MESSAGE, Messages, messages_in

RECORD = st.tuples(
    st.sampled_from([Opcode.MESSAGE] * 5 + [Opcode.CHANNEL, 200]),
    st.integers(0, 3),
    st.integers(0, 2**64 - 1) | st.integers(0, 100),
    st.sampled_from([0, 1, 7, 40]),
    st.integers(1, 6) | st.sampled_from([70, 250]),
)


def chunk(records):
    """Return records of some bytes of content each, some of them several times."""
    data = b''
    for opcode, channel, time, size, times in records:
        for number in range(times):
            content = MESSAGE.pack(channel, number, time, 0) + bytes([number]) * size
            content = content if opcode == Opcode.MESSAGE else content[: size + 1]
            data += FRAME.pack(opcode, len(content)) + content
    return data


@settings(deadline=None)
@given(
    records=st.lists(RECORD, max_size=8),
    channels=st.sets(st.integers(0, 3)),
    low=st.integers(0, 120),
    high=st.integers(0, 120) | st.just(2**64),
    share=st.floats(0.0, 1.0),
    wrong=st.none() | st.tuples(st.integers(0, 99), st.integers(0, 1), st.integers(0, 2**64 - 1)),
)
def test_messages_at_once_are_those_one_by_one(records, channels, low, high, share, wrong):
    whole = chunk(records)
    data = whole[: round(share * len(whole))]
    expected, index, place = [], [], 0
    for opcode, start, length in frames_of(data):
        content = data[start : start + length]
        if opcode == Opcode.MESSAGE and len(content) >= MESSAGE.size:
            channel, _, received, _ = MESSAGE.unpack_from(content)
            if channel in channels:
                index.insert(0, (received, place))  # in any order
                if low <= received < high:
                    expected.append((received, content[MESSAGE.size :]))
        place += FRAME.size + len(content)
    index = np.array(index, np.uint64).reshape(-1, 2)
    if wrong is not None and len(index):
        index[wrong[0] % len(index), wrong[1]] = wrong[2]
    for known in (index[:0], index):
        found = messages_in(data, channels, low, high, known)
        received = [int(time) for time in found.received]
        assert list(zip(received, found.payloads(), strict=True)) == expected


def test_messages_are_put_behind_each_other_and_taken_apart():
    payloads = [b'abc', b'', b'defgh', b'xyz']
    messages = Messages.of([1, 2, 3, 4], payloads)
    assert messages.payloads() == payloads and messages.total == 4
    some = messages.rows(slice(2, 4))
    assert (some.payloads(), some.received.tolist()) == (payloads[2:], [3, 4])
    same_size = messages.rows([0, 3])
    assert [bytes(row) for row in same_size.matrix(same_size.sizes * 0 + [0, 1])] == [
        b'abc',
        b'xyz',
    ]
