"""The simulated robot over real DDS: what a client of ros2_control sees."""

import os
from pathlib import Path
import random
import signal
import subprocess
import sys
import threading
import time

from action_msgs.msg import GoalStatus
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance, JointTrajectoryControllerState
from control_msgs.srv import QueryTrajectoryState
from diagnostic_msgs.msg import DiagnosticArray
import numpy as np
import pytest
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters, SetParametersAtomically
import rclpy
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
import yaml

from robotid_ros.nodes.common.runtime import LATCHED, overrides, wait_until
from robotid_ros.nodes.simulated_robot.simulated_robot_node import SimulatedRobot

# Distinct, and not from a generator that another test may have seeded.
DOMAINS = iter(random.SystemRandom().sample(range(1, 101), 50))
ROOT = Path(__file__).parents[3]
JOINTS = ['zjoint', 'joint2', 'joint3']
LINK = """<link name="{0}"><inertial><origin xyz="0.1 0 0"/><mass value="2"/>
<inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{0}"/><origin xyz="0.3 0 0"/>
<axis xyz="0 {2} {3}"/><limit lower="-3" upper="3" effort="80" velocity="3"/></joint>"""
URDF = (
    '<robot name="three"><link name="base"/>'
    + LINK.format('zjoint', 'base', 0, 1)
    + LINK.format('joint2', 'zjoint', 1, 0)
    + LINK.format('joint3', 'joint2', 1, 0)
    + '</robot>'
)
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


# Longest wait for what must come; a busy machine takes its time [s].
PATIENCE = 30.0


class Client:
    """A client in a context of its own, spinning in a thread."""

    def __init__(self, domain):
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=domain)
        self.node = rclpy.create_node('client', context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.thread = threading.Thread(target=self.executor.spin, daemon=True)
        self.thread.start()
        self.action = ActionClient(
            self.node, FollowJointTrajectory, '/arm_controller/follow_joint_trajectory'
        )

    def close(self):
        self.executor.shutdown(timeout_sec=1.0)
        self.thread.join(1.0)
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)

    def done(self, future, timeout=PATIENCE):
        assert wait_until(future.done, timeout)
        return future.result()

    def call(self, kind, name, **fields):
        client = self.node.create_client(kind, f'/arm_controller/{name}')
        assert client.wait_for_service(PATIENCE)
        return self.done(client.call_async(kind.Request(**fields)))

    def collect(self, kind, topic, seconds, qos=TRANSIENT):
        seen = []
        subscription = self.node.create_subscription(kind, topic, seen.append, qos)
        assert wait_until(lambda: seen, PATIENCE), f'nothing on {topic}'
        time.sleep(seconds)
        self.executor.create_task(self.node.destroy_subscription, subscription)
        return seen

    def first(self, kind, topic, qos=LATCHED):
        seen = []
        subscription = self.node.create_subscription(kind, topic, seen.append, qos)
        assert wait_until(lambda: seen, PATIENCE)
        self.executor.create_task(self.node.destroy_subscription, subscription)
        return seen[0]

    def send(self, *points, joints=JOINTS, feedback=None, **fields):
        assert self.action.wait_for_server(PATIENCE)
        trajectory = JointTrajectory(joint_names=joints, points=list(points))
        goal = FollowJointTrajectory.Goal(trajectory=trajectory, **fields)
        return self.done(self.action.send_goal_async(goal, feedback))

    def result(self, handle):
        return self.done(handle.get_result_async())


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


def make_robot(context, **simulation):
    values = {'robot_description': URDF, 'simulation': SIMULATION | simulation}
    return SimulatedRobot(context=context, parameter_overrides=overrides(values))


@pytest.fixture(scope='module')
def client():
    domain = next(DOMAINS)
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    robot, client = make_robot(context), Client(domain)
    yield client
    client.close()
    robot.close()
    robot.destroy_node()
    rclpy.shutdown(context=context)


def test_joint_states_are_alphabetical_at_their_rate(client):
    seen = client.collect(JointState, '/joint_states', 2.0)
    assert len(seen) > 100
    assert seen[0].name == ['joint2', 'joint3', 'zjoint']
    periods = np.diff(stamps(seen))
    assert np.median(periods) == pytest.approx(2e6, rel=0.01)
    assert (periods > 0).all()


def test_effort_is_the_command_of_the_cycle_before(client):
    states, commands = [], []
    for kind, topic, seen in (
        (JointState, '/joint_states', states),
        (JointTrajectoryControllerState, '/arm_controller/controller_state', commands),
    ):
        client.node.create_subscription(kind, topic, seen.append, TRANSIENT)
    handle = client.send(point(0.0, 0.0, 0.0, 0.0), point(0.5, 0.3, 0.2, -0.2))
    client.result(handle)
    at, command_at = stamps(list(states)), stamps(list(commands))
    compared = 0
    for state, stamp in zip(list(states), at, strict=False):
        index = np.searchsorted(command_at, stamp) - 1
        # The broadcaster's stamp is 20 to 40 µs late; the command before is one period older.
        if index < 1 or not 0 < stamp - command_at[index] < 100_000:
            continue
        if command_at[index] - command_at[index - 1] != 1_000_000:
            continue
        z, j2, j3 = commands[index - 1].output.effort
        assert list(state.effort) == [j2, j3, z]
        compared += 1
    assert compared > 50


def test_controller_state_has_the_originals_fields(client):
    state = client.collect(
        JointTrajectoryControllerState, '/arm_controller/controller_state', 0.5
    )[-1]
    assert state.joint_names == JOINTS
    for part, fields in (
        (state.reference, (3, 3, 3, 0)),
        (state.feedback, (3, 3, 0, 0)),
        (state.error, (3, 3, 0, 0)),
        (state.output, (0, 0, 0, 3)),
    ):
        assert (
            tuple(map(len, (part.positions, part.velocities, part.accelerations, part.effort)))
            == fields
        )
    assert state.speed_scaling_factor == 1.0


def test_quality_of_service(client):
    def ends(topic, publishers):
        kind = 'publishers' if publishers else 'subscriptions'
        get = getattr(client.node, f'get_{kind}_info_by_topic')
        assert wait_until(lambda: get(topic), PATIENCE)
        return [(e.qos_profile.reliability, e.qos_profile.durability) for e in get(topic)]

    reliable = (ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL)
    assert reliable in ends('/joint_states', True)
    assert reliable in ends('/arm_controller/controller_state', True)
    assert reliable in ends('/robot_description', True)
    reader = (ReliabilityPolicy.BEST_EFFORT, DurabilityPolicy.VOLATILE)
    assert reader in ends('/arm_controller/joint_trajectory', False)


def test_goal_succeeds_with_feedback(client):
    seen = []
    handle = client.send(
        point(0.0, 0.3, 0.2, -0.2), point(0.5, 0.0, 0.0, 0.0),
        feedback=lambda message: seen.append(message.feedback),
    )  # fmt: skip
    answer = client.result(handle)
    assert answer.status == GoalStatus.STATUS_SUCCEEDED
    assert (answer.result.error_code, answer.result.error_string) == (
        0, 'Goal successfully reached!',
    )  # fmt: skip
    assert seen[0].joint_names == JOINTS
    assert len(seen[-1].actual.effort) == len(seen[-1].desired.effort) == 3


def test_refusal_says_nothing(client):
    for bad in (
        client.send(point(1.0, 0.0, 0.0), joints=JOINTS[:2]),
        client.send(point(1.0, 0.0, 0.0, 0.0), joints=['a', 'b', 'c']),
        client.send(point(1.0, 0.0, 0.0, 0.0, velocities=[0.0, 1e-6, 0.0])),
    ):
        assert not bad.accepted


def test_cancel(client):
    handle = client.send(point(0.0, 0.0, 0.0, 0.0), point(30.0, 0.5, 0.5, 0.5))
    time.sleep(0.1)
    answer = client.done(handle.cancel_goal_async())
    assert len(answer.goals_canceling) == 1
    result = client.result(handle)
    assert result.status == GoalStatus.STATUS_CANCELED
    assert (result.result.error_code, result.result.error_string) == (0, '')


def test_preemption_and_path_tolerance(client):
    first = client.send(point(0.0, 0.0, 0.0, 0.0), point(30.0, 0.1, 0.0, 0.0))
    tight = [JointTolerance(name='zjoint', position=0.01)]
    second = client.send(point(0.0, 1.0, 0.0, 0.0), path_tolerance=tight)
    result = client.result(first)
    assert result.status == GoalStatus.STATUS_ABORTED
    assert result.result.error_code == -1
    assert result.result.error_string == 'Current goal preempted by new incoming action.'
    result = client.result(second)
    assert (result.status, result.result.error_code) == (GoalStatus.STATUS_ABORTED, -4)


def test_parameters(client):
    def get(*names):
        return client.call(GetParameters, 'get_parameters', names=list(names)).values

    assert [v.double_value for v in get('gains.zjoint.p', 'gains.zjoint.d')] == [600.0, 60.0]
    assert get('command_interfaces')[0].string_array_value == ['effort']
    assert get('joints')[0].string_array_value == JOINTS
    assert get('gains.zjoint.p', 'gains.nobody.p') == []
    integer = ParameterValue(type=ParameterType.PARAMETER_INTEGER, integer_value=3)
    answer = client.call(
        SetParameters,
        'set_parameters',
        parameters=[
            Parameter(name='gains.zjoint.p', value=integer),
            double('gains.zjoint.d', 61.0),
            double('action_monitor_rate', 5.0),
        ],
    )
    wrong, right, read_only = answer.results
    assert right.successful and not wrong.successful and not read_only.successful
    assert wrong.reason.startswith('Wrong parameter type')
    assert [v.double_value for v in get('gains.zjoint.p', 'gains.zjoint.d')] == [600.0, 61.0]


def test_atomic_set_is_all_or_nothing_and_live(client):
    def set_all(*parameters):
        return client.call(
            SetParametersAtomically, 'set_parameters_atomically', parameters=list(parameters)
        ).result

    assert not set_all(double('gains.joint2.p', 1.0), double('joints', 2.0)).successful
    values = client.call(GetParameters, 'get_parameters', names=['gains.joint2.p']).values
    assert values[0].double_value == 600.0
    assert set_all(double('gains.joint2.p', 900.0), double('gains.joint2.d', 90.0)).successful
    time.sleep(0.3)
    state = client.collect(
        JointTrajectoryControllerState, '/arm_controller/controller_state', 0.3
    )[-1]
    expected = 900.0 * state.error.positions[1] + 90.0 * state.error.velocities[1]
    assert state.output.effort[1] == pytest.approx(expected, abs=1e-9)
    assert abs(expected) > 1.0, 'gravity must be held by the gains'


def test_query_state(client):
    handle = client.send(point(0.0, 0.0, 0.0, 0.0), point(2.0, 0.2, 0.0, 0.0))
    now = client.node.get_clock().now().to_msg()
    answer = client.call(QueryTrajectoryState, 'query_state', time=now)
    assert answer.success and list(answer.name) == JOINTS
    assert answer.velocity[0] == pytest.approx(0.1)
    client.done(handle.cancel_goal_async())


def test_topic_runs_a_trajectory(client):
    publisher = client.node.create_publisher(
        JointTrajectory, '/arm_controller/joint_trajectory', 10
    )
    assert wait_until(lambda: publisher.get_subscription_count() == 1, PATIENCE)
    publisher.publish(JointTrajectory(joint_names=JOINTS, points=[point(0.2, 0.4, 0.0, 0.0)]))
    reached = lambda: (  # noqa: E731
        client.first(
            JointTrajectoryControllerState, '/arm_controller/controller_state', TRANSIENT
        ).reference.positions[0]
        == 0.4
    )
    assert wait_until(reached, PATIENCE, period=0.1)


def test_descriptions_and_truth_wait_for_late_joiners(client):
    assert client.first(String, '/robot_description').data == URDF
    assert '<inertial>' in client.first(String, '/simulated_robot/true_robot_description').data
    truth = client.first(DiagnosticArray, '/simulated_robot/true_parameters')
    assert [status.name for status in truth.status] == JOINTS
    keys = [value.key for value in truth.status[0].values]
    assert keys == 'XX XY XZ YY YZ ZZ MX MY MZ M Ia Fv Fc off'.split()
    assert float(truth.status[0].values[10].value) == 0.5


def test_hardware_error_ends_goal_and_states():
    domain = next(DOMAINS)
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    robot = make_robot(context, fault={'kind': 'hardware_error', 'time': 6.0})
    client = Client(domain)
    try:
        seen = []
        client.node.create_subscription(JointState, '/joint_states', seen.append, TRANSIENT)
        handle = client.send(point(0.0, 0.0, 0.0, 0.0), point(60.0, 0.1, 0.0, 0.0))
        result = client.result(handle)
        assert (result.status, result.result.error_code) == (GoalStatus.STATUS_ABORTED, -1)
        assert 'deactivate transition' in result.result.error_string
        time.sleep(0.5)
        count = len(seen)
        time.sleep(0.5)
        assert len(seen) == count > 0
        assert not client.send(point(1.0, 0.0, 0.0, 0.0)).accepted
    finally:
        client.close()
        robot.close()
        robot.destroy_node()
        rclpy.shutdown(context=context)


def test_simulated_time_runs_faster_with_its_clock():
    domain = next(DOMAINS)
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    robot, client = make_robot(context, real_time_factor=3.0), Client(domain)
    try:
        begin = client.first(Clock, '/clock', 10).clock
        handle = client.send(point(0.0, 0.0, 0.0, 0.0), point(3.0, 0.1, 0.0, 0.0))
        assert client.result(handle).status == GoalStatus.STATUS_SUCCEEDED
        end = client.first(Clock, '/clock', 10).clock
        assert 3.0 <= (end.sec - begin.sec) < 60.0
        state = client.collect(JointState, '/joint_states', 0.2)[-1]
        assert state.header.stamp.sec < 100
    finally:
        client.close()
        robot.close()
        robot.destroy_node()
        rclpy.shutdown(context=context)


def start_process(*arguments):
    environment = os.environ | {
        'PYTHONPATH': str(ROOT),
        'ROS_DOMAIN_ID': str(next(DOMAINS)),
        'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
    }
    return subprocess.Popen(
        [sys.executable, '-m', 'robotid_ros.nodes', 'simulated_robot', *arguments],
        env=environment, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip


def test_divergence_ends_it_with_one_sentence(tmp_path):
    config = tmp_path / 'wild.yaml'
    gains = {joint: {'p': 0.0, 'd': -1e6} for joint in JOINTS}
    values = {'robot': {'urdf': 'three.urdf'}, 'simulation': SIMULATION | {'gains': gains}}
    values['simulation'] = values['simulation'] | {'limit_effort': False}
    (tmp_path / 'three.urdf').write_text(URDF)
    config.write_text(yaml.safe_dump({'/**': {'ros__parameters': values}}))
    process = start_process('--ros-args', '--params-file', str(config))
    _, text = process.communicate(timeout=2 * PATIENCE)
    assert process.returncode == 1
    assert 'diverged' in text and 'Traceback' not in text


def test_interrupt_ends_it_cleanly():
    config = ROOT / 'config' / 'tx40.yaml'
    process = start_process('--ros-args', '--params-file', str(config))
    lines = []
    for line in process.stderr:
        lines.append(line)
        if 'is active' in line:
            break
    assert 'is active' in lines[-1], lines
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert 'Traceback' not in rest


@pytest.mark.parametrize(
    ('arguments', 'word'),
    [
        ((), 'no robot'),
        (('--ros-args', '-p', 'simulation.nonsense:=1'), 'nonsense'),
        (('--ros-args', '-p', 'robot_description:=nonsense'), 'XML'),
    ],
)
def test_bad_input_is_one_sentence(arguments, word):
    process = start_process(*arguments)
    _, text = process.communicate(timeout=2 * PATIENCE)
    assert process.returncode == 1
    assert word in text and 'Traceback' not in text
