"""Messages are taken in batches whose size is bounded, whatever arrives meanwhile."""

import itertools
import time
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from sensor_msgs.msg import JointState
from waiting import wait_until

from robotid_ros.nodes.common.batched_subscription import BatchedSubscription, SerializedMessage

pytestmark = pytest.mark.ros


@pytest.fixture
def node(domain: int):
    context = Context()
    rclpy.init(context=context, domain_id=domain)
    yield rclpy.create_node('listener', context=context)
    rclpy.try_shutdown(context=context)


def filled(node: Node, count: int) -> BatchedSubscription:
    """Subscribe to a topic on which so many messages wait, numbered by their effort."""
    publisher = node.create_publisher(JointState, 'joint_states', 1000)
    stream = BatchedSubscription(node, JointState, 'joint_states')
    wait_until(publisher.get_subscription_count, 'it is subscribed')
    for k in range(count):
        publisher.publish(JointState(effort=[float(k)]))
    return stream


def test_a_flood_that_is_faster_than_its_reader_ends(node: Node, monkeypatch: pytest.MonkeyPatch):
    stream = BatchedSubscription(node, JointState, 'joint_states', depth=7)
    endless = itertools.repeat((b'', {'received_timestamp': 1, 'source_timestamp': 1}))
    handle = MagicMock()
    handle.take_message = lambda *_: next(endless)
    monkeypatch.setattr(stream, '_subscription', SimpleNamespace(handle=handle))
    assert len(list(stream.take_serialized())) == 7


@pytest.mark.parametrize(('time_limit', 'expected'), [(1e6, [4.0, 6.0, 8.0]), (0.0, [])])
def test_of_many_messages_the_newest_usable_ones_are_decoded(
    node: Node, time_limit: float, expected: list[float]
):
    stream = filled(node, 10)
    samples: list[SerializedMessage] = []

    def arrived() -> bool:
        samples.extend(stream.take_serialized())
        return len(samples) == 10

    wait_until(arrived, 'all arrive', lambda: len(samples))
    stream.take_serialized = lambda: iter(samples)
    messages, unusable = stream.take_newest(lambda m: m.effort[0] % 2 == 0, 3, time_limit)
    assert [message.effort[0] for message in messages] == expected
    assert unusable == (3 if expected else 1)


def test_a_reader_that_is_held_up_decodes_all_the_same(node: Node):
    """A busy machine takes the processor away from it, which is no time that it has used."""
    stream = filled(node, 10)
    samples: list[SerializedMessage] = []
    wait_until(
        lambda: samples.extend(stream.take_serialized()) or len(samples) == 10, 'all arrive'
    )
    stream.take_serialized = lambda: iter(samples)
    decode = stream.decode

    def decode_late(sample: SerializedMessage) -> object:
        time.sleep(0.02)
        return decode(sample)

    stream.decode = decode_late
    messages, _ = stream.take_newest(lambda m: m.effort[0] < 5.0, 3, 0.05)
    assert [message.effort[0] for message in messages] == [2.0, 3.0, 4.0]
