"""A simulated robot of three joints, and what speaks to it as a client of ros2_control."""

import contextlib

from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTrajectoryControllerState
import numpy as np
from parameter_overrides import parameter_overrides
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters, SetParametersAtomically
import rclpy
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from waiting import wait_until

from robotid_ros.nodes.common.runtime import LATCHED, SpinThread
from robotid_ros.nodes.demo.node_processes import claim_domain, release_domain
from robotid_ros.nodes.simulated_robot.simulated_robot_node import SimulatedRobot

JOINTS = ['zjoint', 'joint2', 'joint3']
LINK = """<link name="{0}"><inertial><origin xyz="0.1 0 0"/><mass value="2"/>
<inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{0}"/><origin xyz="0.3 0 0"/>
<axis xyz="0 {2} {3}"/><limit lower="-3" upper="3" effort="{4}" velocity="3"/></joint>"""


def three_joint_urdf(effort):
    """Describe a robot whose drives can give so much [N·m]."""
    links = (('zjoint', 'base', 0, 1), ('joint2', 'zjoint', 1, 0), ('joint3', 'joint2', 1, 0))
    parts = ''.join(LINK.format(*link, effort) for link in links)
    return f'<robot name="three"><link name="base"/>{parts}</robot>'


URDF = three_joint_urdf(80)
GAINS = {joint: {'p': 600.0, 'd': 60.0} for joint in JOINTS}
SIMULATION = {
    'joints': JOINTS,
    'gains': GAINS,
    'rotor_inertia': [0.5],
    'noise': {'position': [0.0], 'velocity': [0.0]},
    'constraints': {'joints': {joint: {'trajectory': 0.5, 'goal': 0.1} for joint in JOINTS}},
}
TRANSIENT = QoSProfile(
    depth=5000,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.VOLATILE,
)
GET = '/arm_controller/get_parameters'
SET = '/arm_controller/set_parameters'
SET_ALL = '/arm_controller/set_parameters_atomically'
BREAK = '/simulated_robot/break'
SERVICES = {
    GET: GetParameters,
    SET: SetParameters,
    SET_ALL: SetParametersAtomically,
    BREAK: Trigger,
}
STATES, COMMANDS = '/joint_states', '/arm_controller/controller_state'
# Too long to end before the test does [s].
LONG = 900.0


class Client:
    """A client in a context of its own, spinning in a thread."""

    def __init__(self, domain):
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=domain)
        self.node = rclpy.create_node('client', context=self.context)
        executor = SingleThreadedExecutor(context=self.context)
        executor.add_node(self.node)
        self.spinning = SpinThread(executor)
        self.action = ActionClient(
            self.node, FollowJointTrajectory, '/arm_controller/follow_joint_trajectory'
        )
        self.services = {
            name: self.node.create_client(kind, name) for name, kind in SERVICES.items()
        }
        # Made after them: a robot that sends what is asked for here knows those who ask.
        self.first(JointState, STATES, TRANSIENT)

    def close(self):
        self.spinning.end()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)

    def done(self, future):
        wait_until(future.done, 'an answer', self.describe)
        return future.result()

    def describe(self):
        node = self.node
        return f'{node.get_topic_names_and_types()}\n{node.get_service_names_and_types()}'

    def call(self, name, **fields):
        service = self.services[name]
        wait_until(service.service_is_ready, f'{name} is served', self.describe)
        return self.done(service.call_async(SERVICES[name].Request(**fields)))

    @contextlib.contextmanager
    def listen(self, kind, topic, qos=TRANSIENT):
        """Give the list of what arrives."""
        seen = []
        subscription = self.node.create_subscription(kind, topic, seen.append, qos)
        yield seen
        self.done(self.spinning.executor.create_task(self.node.destroy_subscription, subscription))

    def collect(self, kind, topic, count, qos=TRANSIENT):
        with self.listen(kind, topic, qos) as seen:
            wait_until(lambda: len(seen) >= count, f'{count} times {topic}', lambda: len(seen))
            return list(seen)

    def first(self, kind, topic, qos=LATCHED):
        return self.collect(kind, topic, 1, qos)[0]

    def when(self, condition, what):
        """Give the controller's first state from now on that is as asked."""
        last = []

        def found():
            while seen:
                last[:] = [seen.pop(0)]
                if condition(last[0]):
                    return last[0]
            return None

        with self.listen(JointTrajectoryControllerState, COMMANDS) as seen:
            return wait_until(found, what, lambda: last)

    def send(self, *points, joints=JOINTS, feedback=None, **fields):
        wait_until(self.action.server_is_ready, 'the action is served', self.describe)
        trajectory = JointTrajectory(joint_names=joints, points=list(points))
        goal = FollowJointTrajectory.Goal(trajectory=trajectory, **fields)
        return self.ask(self.action.send_goal_async, goal, feedback)

    def result(self, handle):
        return self.ask(handle.get_result_async)

    def cancel(self, handle):
        return self.ask(handle.cancel_goal_async)

    def ask(self, request, *arguments):
        # An action client registers a request after it has sent it: an answer that the executor's
        # thread takes in between is lost, so that it is this thread that has to send.
        return self.done(self.done(self.spinning.executor.create_task(request, *arguments)))


def point(seconds, *positions, **fields):
    message = JointTrajectoryPoint(positions=list(positions), **fields)
    message.time_from_start.sec = int(seconds)
    message.time_from_start.nanosec = round(seconds % 1 * 1e9)
    return message


def double(name, value):
    return Parameter(
        name=name, value=ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value)
    )


def stamps(messages):
    return np.array([m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for m in messages])


@contextlib.contextmanager
def running(urdf=URDF, mass=0.0, **simulation):
    """Start a robot and a client."""
    with contextlib.ExitStack() as ends:
        domain, context = claim_domain(), rclpy.Context()
        ends.callback(release_domain, domain)
        rclpy.init(context=context, domain_id=domain)
        ends.callback(rclpy.try_shutdown, context=context)
        values = {'robot_description': urdf, 'simulation': SIMULATION | simulation}
        values['robot'] = {'mass': mass}
        robot = SimulatedRobot(context=context, parameter_overrides=parameter_overrides(values))
        ends.callback(robot.destroy_node)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(robot)
        ends.callback(SpinThread(executor).end)
        ends.callback(robot.close)
        client = Client(domain)
        ends.callback(client.close)
        yield robot, client
