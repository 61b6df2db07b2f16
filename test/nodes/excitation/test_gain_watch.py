"""Gains that somebody changes are noticed, those that the session sets itself are not."""

from collections.abc import Iterator

import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter
from waiting import wait_until

from robotid_ros.exceptions import RobotStateError
from robotid_ros.nodes.excitation.checks import GainWatch

pytestmark = pytest.mark.ros
GAIN, BOUND, LIMIT = 'gains.joint_1.p', 'gains.joint_1.i_clamp_min', 'gains.joint_1.u_clamp_max'


@pytest.fixture
def nodes(domain: int) -> Iterator[tuple[Node, Node, Node]]:
    context = Context()
    rclpy.init(context=context, domain_id=domain)
    names = ('excitation', 'arm_controller', 'other_controller')
    found = tuple(rclpy.create_node(name, context=context) for name in names)
    for node in found[1:]:
        node.declare_parameter(GAIN, 50.0)
        node.declare_parameter(BOUND, 0.0)
        node.declare_parameter(LIMIT, 1.0)
        node.declare_parameter('constraints.goal_time', 0.0)
    yield found
    rclpy.try_shutdown(context=context)


def test_a_changed_gain_is_named_with_both_values(nodes: tuple[Node, Node, Node]):
    node, controller, other = nodes
    watch = GainWatch(node, 'arm_controller')
    watch.expect({GAIN: 50.0, 'constraints.goal_time': 0.0})
    wait_until(lambda: watch._events.publishers, 'the events are heard')

    def change(where: Node, name: str, value: float) -> None:
        where.set_parameters([Parameter(name, value=value)])

    def seen() -> str:
        try:
            watch.check()
        except RobotStateError as error:
            return str(error)
        return ''

    # Of another controller, no gain, and one that the session is about to try.
    change(other, GAIN, 1.0)
    change(controller, 'constraints.goal_time', 3.0)
    watch.expect({GAIN: 100.0})
    change(controller, GAIN, 100.0)
    # Written otherwise, but no other value.
    watch.expect({BOUND: 0.0, LIMIT: float('nan')})
    change(controller, BOUND, -0.0)
    change(controller, LIMIT, float('nan'))
    change(controller, GAIN, 20.0)
    said = wait_until(seen, 'the change is noticed')
    assert said.startswith(f"{GAIN} of '/arm_controller' was changed from 100.0 to 20.0")
    watch.close()
