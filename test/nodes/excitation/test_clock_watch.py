"""A simulated clock that is set during a session is told, one that runs or stands is not."""

import pytest
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from waiting import wait_until

from robotid_ros.exceptions import RobotStateError
from robotid_ros.nodes.common.messages import to_time
from robotid_ros.nodes.excitation.checks import ClockWatch

pytestmark = pytest.mark.ros


@pytest.mark.parametrize('step', [5.0, -5.0])
def test_a_clock_that_is_set_is_told_with_its_step(step: float, domain: int):
    context = Context()
    rclpy.init(context=context, domain_id=domain)
    simulated = [Parameter('use_sim_time', value=True)]
    node = rclpy.create_node('excitation', context=context, parameter_overrides=simulated)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    publisher = node.create_publisher(Clock, '/clock', 10)

    def show(seconds: float) -> None:
        def shown() -> bool:
            publisher.publish(Clock(clock=to_time(round(seconds * 1e9))))
            executor.spin_once(timeout_sec=0.01)
            return abs(node.get_clock().now().nanoseconds * 1e-9 - seconds) < 1e-6

        wait_until(shown, f'it is {seconds} s')

    watch = ClockWatch(node)
    for seconds in (100.0, 100.01, 100.01, 100.3, 102.3):
        show(seconds)
        watch.check()
    show(102.3 + step)
    with pytest.raises(RobotStateError, match=rf"'/clock' was set by \{step:+.2f} s"):
        watch.check()
    watch.close()
    rclpy.try_shutdown(context=context)
