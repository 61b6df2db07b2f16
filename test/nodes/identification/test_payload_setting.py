"""Setting a payload over DDS: a driver's service, what it publishes, and a relay's parameters."""

from collections.abc import Iterator
import os
import subprocess
import sys
from typing import Any

from control_msgs.msg import DynamicJointState, InterfaceValue
from geometry_msgs.msg import InertiaStamped
import numpy as np
import pytest
from rcl_interfaces.msg import SetParametersResult
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.task import Future
from sensor_msgs.msg import Imu, JointState
from std_srvs.srv import SetBool
from waiting import PATIENCE, wait_until

from robotid_ros.core.parameters.carried_body import inertia_matrix
from robotid_ros.exceptions import ConfigurationError, ControllerError
from robotid_ros.files.payload.makers import Driver, Maker, MAKERS, RELAY
from robotid_ros.files.payload.payload_file import read_body
from robotid_ros.nodes.common.runtime import SpinThread
from robotid_ros.nodes.identification import payload_setting
from robotid_ros.nodes.identification.payload_setting import _fill, PARAMETERS, PayloadSetter

pytestmark = pytest.mark.ros
BODY = np.array([1.5, 0.01, -0.02, 0.08, 0.011, 1e-5, -0.002, 0.012, 0.003, 0.013])
BEFORE = BODY / 2.0
OLD = (0.5, [0.0, 0.0, 0.1], [0.0] * 6, 'flange')


class Robot:
    """A driver with a service of an installed type, and a node with the relay's parameters."""

    def __init__(self, context: rclpy.Context):
        self.node = rclpy.create_node('driver', context=context)
        self.relay = rclpy.create_node(RELAY, context=context)
        self.relay.declare_parameters('', [*zip(PARAMETERS, OLD, strict=True)])
        self.relay.add_on_set_parameters_callback(self.check)
        self.accepts, self.publishes, self.speed, self.limit = True, True, 0.0, 10.0
        self.calls: list[bool] = []
        self.answer = Future()  # that each answer waits for
        self.answer.set_result(None)
        self.body, self.count = BEFORE, 0
        self.joints = self.node.create_publisher(JointState, 'joint_states', 10)
        self.states = self.node.create_publisher(DynamicJointState, 'dynamic_joint_states', 10)
        self.node.create_service(SetBool, 'driver/set_payload', self.set)
        self.node.create_timer(0.02, self.publish)

    def check(self, parameters: Any) -> SetParametersResult:
        heavy = any(p.name == PARAMETERS[0] and p.value > self.limit for p in parameters)
        return SetParametersResult(successful=not heavy, reason='too heavy')

    async def set(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self.calls.append(request.data)
        await self.answer
        response.success, response.message = self.accepts, 'a program runs'
        return response

    def publish(self) -> None:
        self.count += 1
        position = 0.02 * self.speed * self.count
        state = JointState(name=['elbow'], position=[position])
        state.header.stamp = self.node.get_clock().now().to_msg()
        self.joints.publish(state)
        if self.publishes:
            names = ['mass', *(f'cog.{k}' for k in 'xyz')]
            names += [f'inertia.i{k}' for k in ('xx', 'xy', 'xz', 'yy', 'yz', 'zz')]
            group = InterfaceValue(interface_names=names, values=self.body.tolist())
            self.states.publish(
                DynamicJointState(joint_names=['payload'], interface_values=[group])
            )

    def parameters(self) -> tuple[Any, ...]:
        mass, center, inertia, frame = (self.relay.get_parameter(k).value for k in PARAMETERS)
        return mass, list(center), list(inertia), frame


def maker() -> Maker:
    """Describe the driver."""
    universal = MAKERS['universal_robots'].driver
    assert universal is not None
    driver = Driver(
        'driver/set_payload',
        'std_srvs/srv/SetBool',
        # The first one is of a version that is not installed.
        (lambda body: {'mass': body[0]}, lambda body: {'data': bool(body[0] > 1.0)}),
        universal.state,
    )
    return Maker(str, False, ('tool0',), driver)


@pytest.fixture
def robot(domain: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Robot, rclpy.node.Node]]:
    monkeypatch.setitem(MAKERS, 'here', maker())  # type: ignore
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    executor = SingleThreadedExecutor(context=context)
    robot, client = Robot(context), rclpy.create_node('client', context=context)
    for node in (robot.node, robot.relay, client):
        executor.add_node(node)
    spinning = SpinThread(executor)
    yield robot, client
    spinning.end()
    rclpy.try_shutdown(context=context)
    assert not spinning.failures, spinning.failures


def test_both_are_set_and_restored(robot, tmp_path):
    driver, node = robot
    file = tmp_path / 'gripper_before.yaml'
    text = PayloadSetter(node, PATIENCE).set('here', 'tool0', BODY, file)
    assert text.startswith('set at here and the relay: 1.5 kg at (0.0100, -0.0200, 0.0800) m')
    assert driver.calls == [True]
    new = (1.5, [0.01, -0.02, 0.08], BODY[4:].tolist(), 'tool0')
    assert driver.parameters() == new
    np.testing.assert_array_equal(read_body(file)[1], BEFORE)
    # Nothing is overwritten: a second one has a file of its own.
    PayloadSetter(node, PATIENCE).set('here', 'tool0', BODY, file)
    assert (tmp_path / 'gripper_before_2.yaml').exists()
    assert (
        PayloadSetter(node, PATIENCE).restore(str(file))
        == 'set at here and the relay: as it was before'
    )
    assert driver.calls == [True, True, False] and driver.parameters() == OLD


def test_a_robot_that_carried_nothing_does_so_again(robot, tmp_path):
    driver, node = robot
    driver.body, file = np.zeros(10), tmp_path / 'before.yaml'
    PayloadSetter(node, PATIENCE).set('here', 'tool0', BODY, file)
    PayloadSetter(node, PATIENCE).restore(str(file))
    assert driver.calls == [True, False] and driver.parameters() == OLD


def test_what_was_set_before_and_is_unknown_is_not_restored(robot, tmp_path):
    driver, node = robot
    driver.publishes = False
    file = tmp_path / 'before.yaml'
    assert PayloadSetter(node, PATIENCE).set('here', 'tool0', BODY, file).endswith('is unknown')
    assert read_body(file)[2]['mass'] is None
    with pytest.raises(ConfigurationError, match=r'^the earlier payload is unknown[^\n]*$'):
        PayloadSetter(node, PATIENCE).restore(str(file))
    assert driver.calls == [True]


def test_a_driver_that_refuses_leaves_the_relay_as_it_was(robot, tmp_path):
    driver, node = robot
    driver.accepts = False
    with pytest.raises(ControllerError, match='refused the payload: a program runs'):
        PayloadSetter(node, PATIENCE).set('here', 'tool0', BODY, tmp_path / 'x.yaml')
    assert driver.calls == [True] and driver.parameters() == OLD


def test_a_driver_that_does_not_answer_may_have_set_it(robot, tmp_path):
    driver, node = robot
    driver.answer = Future()
    with pytest.raises(ControllerError, match='which may have set the payload, within'):
        PayloadSetter(node, 1.0).set('here', 'tool0', BODY, tmp_path / 'x.yaml')
    assert driver.calls == [True] and driver.parameters() == OLD
    driver.answer.set_result(None)


SETS = f"""
import sys
from pathlib import Path
sys.path[:0] = {sys.path!r}
from {__name__} import BODY, maker, MAKERS, PayloadSetter
from robotid_ros.nodes.common.runtime import lone_node
MAKERS['here'] = maker()
with lone_node('sets', '', None) as node:
    PayloadSetter(node, 60.0).set('here', 'tool0', BODY, Path(sys.argv[1]))
"""


def test_what_is_killed_between_relay_and_driver_is_restored_by_its_file(robot, tmp_path, domain):
    driver, node = robot
    driver.answer, file = Future(), tmp_path / 'before.yaml'
    environment = os.environ | {'ROS_DOMAIN_ID': str(domain)}
    with subprocess.Popen([sys.executable, '-c', SETS, str(file)], env=environment) as process:
        wait_until(lambda: driver.calls, 'the driver is asked')
        process.kill()
    driver.answer.set_result(None)
    assert driver.parameters()[0] == BODY[0]
    PayloadSetter(node, PATIENCE).restore(str(file))
    assert driver.calls == [True, False] and driver.parameters() == OLD


def test_a_relay_that_refuses_keeps_the_driver_as_it_was(robot, tmp_path):
    driver, node = robot
    driver.limit = 1.0
    with pytest.raises(ControllerError, match='too heavy'):
        PayloadSetter(node, PATIENCE).set('here', 'tool0', BODY, tmp_path / 'x.yaml')
    assert driver.calls == [] and driver.parameters() == OLD


def test_nothing_is_set_while_the_robot_moves(robot, tmp_path):
    driver, node = robot
    driver.speed = 0.5
    with pytest.raises(ControllerError, match=r'the robot moves \(elbow\): wait until it rests'):
        PayloadSetter(node, PATIENCE).set(RELAY, 'tool0', BODY, tmp_path / 'x.yaml')
    assert driver.parameters() == OLD and not list(tmp_path.iterdir())


def test_the_relay_alone(robot, tmp_path, monkeypatch):
    driver, node = robot
    file = tmp_path / 'x.yaml'
    point = np.array([*BODY[:4], *[np.nan] * 6])
    assert (
        PayloadSetter(node, PATIENCE)
        .set(RELAY, 'tool0', point, file)
        .startswith('set at the relay')
    )
    assert driver.parameters() == (1.5, [0.01, -0.02, 0.08], [0.0] * 6, 'tool0')
    PayloadSetter(node, PATIENCE).restore(str(file))
    assert driver.calls == [] and driver.parameters() == OLD
    monkeypatch.setattr(payload_setting, 'DISCOVERY', 0.1)
    monkeypatch.setattr(payload_setting, 'RELAY', 'nobody')
    with pytest.raises(ControllerError, match="there is no service 'nobody/"):
        PayloadSetter(node, 0.2).set('nobody', 'tool0', BODY, tmp_path / 'x.yaml')


def test_fields_of_messages_inside_a_request_and_arrays_are_filled():
    """As those of UR's and Franka's services, whose interfaces are not installed here."""
    universal, franka = (MAKERS[name].driver for name in ('universal_robots', 'franka'))
    assert universal is not None and franka is not None
    message, fields = InertiaStamped(), universal.requests[1](BODY)
    _fill(message, {'inertia': fields['payload']})
    held = message.inertia
    assert (held.m, held.com.x, held.com.z, held.ixy, held.izz) == (1.5, 0.01, 0.08, 1e-5, 0.013)
    imu = Imu()
    _fill(imu, {'orientation_covariance': franka.requests[0](BODY)['load_inertia']})
    np.testing.assert_array_equal(imu.orientation_covariance.reshape(3, 3), inertia_matrix(BODY))
