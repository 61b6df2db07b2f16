"""Messages are taken in batches whose size is bounded, whatever arrives meanwhile."""

import itertools
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from sensor_msgs.msg import JointState
from waiting import wait_until

from robotid_ros.nodes.common.batched_subscription import BatchedSubscription

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


@pytest.mark.parametrize(('time_limit', 'expected'), [(1e6, [7.0, 8.0, 9.0]), (0.0, [9.0])])
def test_of_many_messages_the_newest_are_decoded(node: Node, time_limit: float, expected):
    stream = filled(node, 10)
    seen: list[float] = []

    def arrived() -> bool:
        seen[:] = [m.effort[0] for m in stream.take_newest(3, time_limit)] or seen
        return bool(seen) and seen[-1] == 9.0

    wait_until(arrived, 'the last one arrives', lambda: seen)
    assert seen[-len(expected) :] == expected[-len(seen) :]
    assert len(seen) <= len(expected)
    assert stream.take_newest(3, 1.0) == []
