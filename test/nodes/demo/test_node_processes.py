"""Domains that simulated robots take."""

import pytest
import rclpy

from robotid_ros.exceptions import RobotIdError
from robotid_ros.nodes.demo import node_processes
from robotid_ros.nodes.demo.node_processes import claim_domain, release_domain


def test_a_domain_with_a_participant_is_not_taken(domain, monkeypatch):
    monkeypatch.setattr(node_processes, 'DOMAINS', [domain])
    release_domain(domain)
    # Fast DDS numbers participants by process, and the ports of a domain follow that number.
    others = [rclpy.Context() for _ in range(20)]
    nodes = []
    for context in others:
        rclpy.init(context=context, domain_id=0)
        nodes.append(rclpy.create_node('other', context=context))
    last = rclpy.Context()
    rclpy.init(context=last, domain_id=domain)
    node = rclpy.create_node('only', context=last)
    with pytest.raises(RobotIdError, match='is in use on this machine'):
        claim_domain()
    for each in (node, *nodes):
        each.destroy_node()
    for context in (last, *others):
        rclpy.shutdown(context=context)
    assert claim_domain() == domain
