"""The topics that are recorded."""

import importlib

from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from ...exceptions import UnknownNameError
from ..common.batched_subscription import BatchedSubscription
from ..common.controller import subscribe_states
from ..common.runtime import ConfiguredNode


def subscribe(node: ConfiguredNode, controller: str) -> list[BatchedSubscription]:
    """
    Subscribe to the robot and its controller, these two first, and to what the settings name.

    Raises
    ------
    UnknownNameError : nobody publishes a topic of the settings

    """
    depth = node.configuration.recorder.depth
    subscriptions = [
        BatchedSubscription(node, JointState, 'joint_states', depth=depth),
        subscribe_states(node, controller, depth=depth),
        BatchedSubscription(node, String, 'robot_description', depth=1, latched=True),
        BatchedSubscription(node, JointTrajectory, 'excitation/reference', depth=10, latched=True),
    ]
    known = dict(node.get_topic_names_and_types())
    for topic in node.configuration.recorder.topics:
        name = node.resolve_topic_name(topic)
        if name not in known:
            raise UnknownNameError('topic', name, tuple(sorted(known)))
        subscriptions.append(
            BatchedSubscription(node, _message_class(known[name][0]), topic, depth=depth)
        )
    return subscriptions


def _message_class(name: str) -> type:
    """Class of 'sensor_msgs/msg/JointState'."""
    package, kind, message = name.split('/')
    return getattr(importlib.import_module(f'{package}.{kind}'), message)
