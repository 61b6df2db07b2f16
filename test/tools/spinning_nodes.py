"""Nodes of one configuration and a client of theirs, in one process."""

import contextlib

from parameter_overrides import parameter_overrides
import rclpy
from rclpy.executors import SingleThreadedExecutor

from robotid_ros.nodes.common.runtime import SpinThread


@contextlib.contextmanager
def spinning_nodes(domain, values, *kinds, **options):
    """Start a node of each kind, and a client; the last one that was started ends first."""
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    options |= {'context': context, 'parameter_overrides': parameter_overrides(values)}
    nodes = [kind(**options) for kind in kinds]
    client = rclpy.create_node('client', context=context)
    executor = SingleThreadedExecutor(context=context)
    for each in (*nodes, client):
        executor.add_node(each)
    spinning = SpinThread(executor)
    yield *nodes, client
    for node in reversed(nodes):
        node.close()
    spinning.end()
    for node in (*nodes, client):
        node.destroy_node()
    rclpy.try_shutdown(context=context)
    assert not spinning.failures, spinning.failures
