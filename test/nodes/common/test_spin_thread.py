"""A thread that spins ends without an error of its own, and tells those of callbacks."""

import sys

import pytest
import rclpy
from rclpy.context import Context
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.qos import QoSPolicyKind
from std_msgs.msg import String
from waiting import wait_until

from robotid_ros.nodes.common.runtime import LATCHED, NodeExecutor, SpinThread

# An executor that is shut down while it prepares to wait lacks what it waits for: rarely, so that
# threads take turns as often as they can, a few hundred times.
ENDS, SWITCH_INTERVAL = 300, 1e-6


def node_of(context: Context, domain: int) -> Node:
    rclpy.init(context=context, domain_id=domain)
    return rclpy.create_node('spun', context=context)


@pytest.fixture
def hurried():
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures('hurried')
def test_the_end_of_a_busy_executor_is_no_failure(domain):
    context = Context()
    node = node_of(context, domain)
    node.create_timer(1e-6, lambda: None)
    for _ in range(ENDS):
        executor = NodeExecutor(context=context)
        executor.add_node(node)
        spinning = SpinThread(executor)
        spinning.end()
        assert not spinning.failures
    node.destroy_node()
    rclpy.try_shutdown(context=context)


def test_a_callback_that_fails_ends_it(domain, capsys):
    context = Context()
    node = node_of(context, domain)
    node.create_timer(1e-4, lambda: [][0])
    executor = NodeExecutor(context=context)
    executor.add_node(node)
    spinning = SpinThread(executor)
    wait_until(spinning.stop.is_set, 'the failure ends it', lambda: spinning.failures)
    spinning.end()
    assert [type(failure) for failure in spinning.failures] == [IndexError]
    assert 'IndexError' in capsys.readouterr().err
    node.destroy_node()
    rclpy.try_shutdown(context=context)


def test_a_subscription_that_gets_nothing_is_still_heard_of(domain):
    context, events = Context(), []
    node = node_of(context, domain)
    # Whatever else a node does wakes its executor.
    node.create_timer(0.05, lambda: None)
    callbacks = PublisherEventCallbacks(incompatible_qos=events.append)
    node.create_publisher(String, 'text', 1, event_callbacks=callbacks)
    executor = NodeExecutor(context=context)
    executor.add_node(node)
    spinning = SpinThread(executor)
    node.create_subscription(String, 'text', print, LATCHED)
    wait_until(lambda: events, 'the event is told')
    assert events[0].total_count == 1
    assert events[0].last_policy_kind == QoSPolicyKind.DURABILITY
    spinning.end()
    node.destroy_node()
    rclpy.try_shutdown(context=context)
