"""The preview shows the designed motion on a topic of its own, and never on a robot's."""

from collections.abc import Callable, Iterator
from pathlib import Path
import time

import numpy as np
from parameter_overrides import parameter_overrides
import pytest
import rclpy
from rclpy.clock import ClockType
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from waiting import PATIENCE, wait_until

from robotid_ros.files.configuration import read_mapping
from robotid_ros.files.trajectory_file import read_design
from robotid_ros.nodes.common.runtime import SpinThread
from robotid_ros.nodes.common.waiting import result_of
from robotid_ros.nodes.excitation.excitation_node import Excitation

pytestmark = pytest.mark.ros
CONFIG = Path(__file__).resolve().parents[3] / 'config'
STORED = CONFIG / 'trajectories' / 'scara.yaml'
Pair = tuple[Excitation, Node]


@pytest.fixture
def start(domain: int) -> Iterator[Callable[..., Pair]]:
    """Start the node with remappings, and a client."""
    context = Context()
    rclpy.init(context=context, domain_id=domain)
    executor, made = SingleThreadedExecutor(context=context), []

    def make(*remappings: str) -> Pair:
        values = read_mapping(CONFIG / 'scara.yaml')
        values['excitation'].update(trajectory=str(STORED), rate=200.0)
        arguments = ['--ros-args', *(x for rule in remappings for x in ('-r', rule))]
        node = Excitation(
            context=context, parameter_overrides=parameter_overrides(values), cli_args=arguments
        )
        client = rclpy.create_node('client', context=context)
        made.extend([node, client])
        for one in (node, client):
            executor.add_node(one)
        return node, client

    spinning = SpinThread(executor)
    yield make
    for node in made:
        if isinstance(node, Excitation):
            node.close()
    spinning.end()
    rclpy.try_shutdown(context=context)


def call(pair: Pair, name: str) -> Trigger.Response:
    client = pair[1].create_client(Trigger, f'excitation/{name}')
    wait_until(client.service_is_ready, f'{name} is served', pair[1].get_service_names_and_types)
    return result_of(client.call_async(Trigger.Request()), PATIENCE, name)


def designed(pair: Pair) -> None:
    assert call(pair, 'design').success
    wait_until(lambda: not pair[0].busy, 'the design is read')


def heard(pair: Pair, topic: str) -> None:
    """Wait until what the node publishes on a topic arrives at somebody."""
    (publisher,) = (p for p in pair[0].publishers if p.topic_name == topic)
    wait_until(publisher.get_subscription_count, f'somebody listens to {topic}')


def silent(topic: list[JointState], since: Time) -> bool:
    """Whether nothing was sent since then, also a moment later."""
    time.sleep(0.3)
    return all(Time.from_msg(m.header.stamp) <= since for m in list(topic))


def test_it_plays_the_trajectory_that_will_be_run(start: Callable[..., Pair]):
    pair = start('excitation/preview:=/shown/joint_states')
    shown, real = [], []
    pair[1].create_subscription(JointState, '/shown/joint_states', shown.append, 5000)
    pair[1].create_subscription(JointState, '/joint_states', real.append, 5000)
    heard(pair, '/shown/joint_states')
    assert call(pair, 'show').message == 'no trajectory: call ~/design first'
    designed(pair)
    answer = call(pair, 'show')
    assert answer.success
    assert answer.message == 'see ~/preview for 20 s'
    wait_until(lambda: len(shown) > 150, 'it is shown', lambda: len(shown))
    assert call(pair, 'stop').message == 'the preview was stopped'
    assert call(pair, 'stop').message == 'nothing was running'
    assert silent(shown, pair[1].get_clock().now())
    count = len(shown)
    plan = read_design(STORED).trajectory
    sampled = plan.sample(np.arange(count) * plan.period / 2004.0)
    assert shown[0].name == ['joint_1', 'joint_2']
    np.testing.assert_allclose([m.position for m in shown], sampled.q, atol=1e-9)
    np.testing.assert_allclose([m.velocity for m in shown], sampled.dq, atol=1e-9)
    assert np.ptp(sampled.q[:, 0]) > 0.01
    stamps = np.array([m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec for m in shown])
    assert (np.diff(stamps) > 0.0).all()
    assert not real


def test_it_never_speaks_for_a_robot(start: Callable[..., Pair]):
    pair = start('excitation/preview:=/joint_states')
    real = []
    pair[1].create_subscription(JointState, '/joint_states', real.append, 100)
    designed(pair)
    answer = call(pair, 'show')
    assert not answer.success
    assert "'/joint_states' carries the joint states of a robot" in answer.message
    assert silent(real, Time(clock_type=ClockType.ROS_TIME))


def test_it_never_speaks_where_another_does(start: Callable[..., Pair]):
    pair = start('excitation/preview:=/arm/joint_states')
    pair[1].create_publisher(JointState, '/arm/joint_states', 10)
    designed(pair)
    wait_until(lambda: pair[0].count_publishers('/arm/joint_states') == 2, 'the other is known')
    answer = call(pair, 'show')
    assert not answer.success
    assert 'on which nobody else publishes' in answer.message
