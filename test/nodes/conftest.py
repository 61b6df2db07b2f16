"""A node that spins, and a controller as its clients see it."""

from collections.abc import Iterator

from control_msgs.action import FollowJointTrajectory
import pytest
import rclpy
from rclpy.action import ActionServer, GoalResponse
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future

from robotid_ros.nodes.common.runtime import SpinThread


class Controller(Node):
    """Serves the action; its goals run until `end` is set, where it accepts them."""

    def __init__(self, context: Context):
        super().__init__('arm_controller', context=context)
        self.end = Future()
        self.accepts = True
        self._server = ActionServer(
            *(self, FollowJointTrajectory, '~/follow_joint_trajectory', self._execute),
            goal_callback=lambda _: GoalResponse.ACCEPT if self.accepts else GoalResponse.REJECT,
        )

    async def _execute(self, handle) -> FollowJointTrajectory.Result:
        await self.end
        handle.succeed()
        return FollowJointTrajectory.Result()


@pytest.fixture
def executor(domain: int) -> Iterator[SingleThreadedExecutor]:
    context = Context()
    rclpy.init(context=context, domain_id=domain)
    executor = SingleThreadedExecutor(context=context)
    spinning = SpinThread(executor)
    yield executor
    spinning.end()
    for node in executor.get_nodes():
        node.destroy_node()
    rclpy.try_shutdown(context=context)


@pytest.fixture
def node(executor: SingleThreadedExecutor) -> Node:
    node = rclpy.create_node('excitation', context=executor.context)
    executor.add_node(node)
    return node


@pytest.fixture
def controller(executor: SingleThreadedExecutor) -> Controller:
    node = Controller(executor.context)
    executor.add_node(node)
    return node
