"""The simulated robot over real DDS: what a client of ros2_control sees."""

import contextlib
import os
from pathlib import Path
import signal
import subprocess
import sys
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
from rclpy.time import Time
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from waiting import PATIENCE, wait_until
import yaml

from robotid_ros.nodes.common.runtime import LATCHED, parameter_overrides, SpinThread
from robotid_ros.nodes.demo.domains import claim_domain, release_domain
from robotid_ros.nodes.simulated_robot.control_loop import MAX_LAG
from robotid_ros.nodes.simulated_robot.simulated_robot_node import SimulatedRobot

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
GET = '/arm_controller/get_parameters'
SET = '/arm_controller/set_parameters'
SET_ALL = '/arm_controller/set_parameters_atomically'
QUERY = '/arm_controller/query_state'
BREAK = '/simulated_robot/break'
SERVICES = {
    GET: GetParameters,
    SET: SetParameters,
    SET_ALL: SetParametersAtomically,
    QUERY: QueryTrajectoryState,
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
def running(**simulation):
    """Start a robot and a client."""
    with contextlib.ExitStack() as ends:
        domain, context = claim_domain(), rclpy.Context()
        ends.callback(release_domain, domain)
        rclpy.init(context=context, domain_id=domain)
        ends.callback(rclpy.try_shutdown, context=context)
        values = {'robot_description': URDF, 'simulation': SIMULATION | simulation}
        robot = SimulatedRobot(context=context, parameter_overrides=parameter_overrides(values))
        ends.callback(robot.destroy_node)
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(robot)
        ends.callback(SpinThread(executor).end)
        ends.callback(robot.close)
        client = Client(domain)
        ends.callback(client.close)
        yield robot, client


@pytest.fixture(scope='module')
def client():
    with running() as (_, client):
        yield client


def test_a_robot_of_position_commands_scales_its_speed_and_may_hide_its_torques():
    with running(command_interface='position', report_effort=False) as (robot, client):
        state = client.first(JointTrajectoryControllerState, COMMANDS, TRANSIENT)
        assert (len(state.output.positions), len(state.output.effort)) == (3, 0)
        assert state.speed_scaling_factor == 1.0
        assert np.isnan(client.first(JointState, STATES, TRANSIENT).effort).all()
        interface = client.call(GET, names=['speed_scaling.state_interface']).values[0]
        assert interface.string_value == 'speed_scaling/speed_scaling_factor'
        scaling = 'simulation.speed_scaling'
        refused, accepted = (
            robot.set_parameters([rclpy.Parameter(scaling, value=value)])[0]
            for value in (1.5, 0.5)
        )
        assert accepted.successful and not refused.successful
        client.when(lambda state: state.speed_scaling_factor == 0.5, 'the factor is 0.5')
        topic = '/speed_scaling_state_broadcaster/speed_scaling'
        assert client.first(Float64, topic, TRANSIENT).data == 50.0


def test_joint_states_are_alphabetical_at_their_rate(client):
    seen = client.collect(JointState, STATES, 300)
    assert seen[0].name == ['joint2', 'joint3', 'zjoint']
    periods = np.diff(stamps(seen))
    assert np.median(periods) == pytest.approx(2e6, rel=0.01)
    assert (periods > 0).all()


def with_command_before(states, commands):
    """Pair each joint state with the command of the cycle before, where both have arrived."""
    command_at = stamps(commands)
    for state, stamp in zip(states, stamps(states), strict=True):
        index = np.searchsorted(command_at, stamp) - 1
        # The broadcaster's stamp is 20 to 40 µs late; the command before is one period older.
        if index < 1 or not 0 < stamp - command_at[index] < 100_000:
            continue
        if command_at[index] - command_at[index - 1] == 1_000_000:
            yield state, commands[index - 1]


def test_effort_is_the_command_of_the_cycle_before(client):
    with (
        client.listen(JointState, STATES) as states,
        client.listen(JointTrajectoryControllerState, COMMANDS) as commands,
    ):
        wait_until(lambda: states and commands, 'both arrive')
        client.result(client.send(point(0.0, 0.0, 0.0, 0.0), point(0.5, 0.3, 0.2, -0.2)))
        pairs = []

        def enough():
            pairs[:] = with_command_before(list(states), list(commands))
            return len(pairs) > 50

        wait_until(enough, 'states meet commands', lambda: len(pairs), period=0.2)
    for state, command in pairs:
        z, j2, j3 = command.output.effort
        assert list(state.effort) == [j2, j3, z]


def test_controller_state_has_the_originals_fields(client):
    state = client.first(JointTrajectoryControllerState, COMMANDS, TRANSIENT)
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


@pytest.mark.parametrize('topic', [STATES, COMMANDS, '/robot_description'])
def test_what_is_published_is_reliable_and_kept(client, topic):
    offered(client, topic, 'publishers', ReliabilityPolicy.RELIABLE, 'TRANSIENT_LOCAL')


def test_trajectories_are_taken_as_by_the_original(client):
    topic = '/arm_controller/joint_trajectory'
    offered(client, topic, 'subscriptions', ReliabilityPolicy.BEST_EFFORT, 'VOLATILE')


def offered(client, topic, ends, reliability, durability):
    """Wait until an end of a topic is known that has this quality of service."""
    wanted = (reliability, DurabilityPolicy[durability])

    def known():
        found = getattr(client.node, f'get_{ends}_info_by_topic')(topic)
        return [(end.qos_profile.reliability, end.qos_profile.durability) for end in found]

    wait_until(lambda: wanted in known(), f'{topic} is {wanted}', known)


def test_goal_succeeds_with_feedback(client):
    seen = []
    handle = client.send(
        point(0.0, 0.3, 0.2, -0.2), point(2.0, 0.0, 0.0, 0.0),
        feedback=lambda message: seen.append(message.feedback),
    )  # fmt: skip
    answer = client.result(handle)
    assert answer.status == GoalStatus.STATUS_SUCCEEDED
    assert (answer.result.error_code, answer.result.error_string) == (
        0, 'Goal successfully reached!',
    )  # fmt: skip
    wait_until(lambda: seen, 'feedback')
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
    handle = client.send(point(0.0, 0.0, 0.0, 0.0), point(LONG, 0.5, 0.5, 0.5))
    client.when(lambda state: state.reference.velocities[0] > 0.0, 'it moves')
    answer = client.cancel(handle)
    assert len(answer.goals_canceling) == 1
    result = client.result(handle)
    assert result.status == GoalStatus.STATUS_CANCELED
    assert (result.result.error_code, result.result.error_string) == (0, '')


def test_preemption_and_path_tolerance(client):
    first = client.send(point(0.0, 0.0, 0.0, 0.0), point(LONG, 0.1, 0.0, 0.0))
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
        return client.call(GET, names=list(names)).values

    assert [v.double_value for v in get('gains.zjoint.p', 'gains.zjoint.d')] == [600.0, 60.0]
    assert get('command_interfaces')[0].string_array_value == ['effort']
    assert get('joints')[0].string_array_value == JOINTS
    assert get('gains.zjoint.p', 'gains.nobody.p') == []
    integer = ParameterValue(type=ParameterType.PARAMETER_INTEGER, integer_value=3)
    answer = client.call(
        SET,
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


def test_values_that_the_original_refuses_are_refused(client):
    parameters = [
        double('constraints.goal_time', -0.5),
        double('speed_scaling.initial_scaling_factor', 0.5),
        double('constraints.goal_time', 0.0),
    ]
    results = client.call(SET, parameters=parameters).results
    assert [result.successful for result in results] == [False, False, True]


def test_parameters_of_every_controller(client):
    names = ['is_async', 'thread_priority', 'speed_scaling.initial_scaling_factor']
    names += ['speed_scaling.state_interface', 'speed_scaling.command_interface']
    is_async, priority, factor, state, command = client.call(GET, names=names).values
    assert is_async.type == ParameterType.PARAMETER_BOOL and not is_async.bool_value
    assert priority.integer_value == -100
    assert factor.double_value == 1.0
    assert {state.type, command.type} == {ParameterType.PARAMETER_STRING}


def test_atomic_set_is_all_or_nothing_and_live(client):
    def set_all(*parameters):
        return client.call(SET_ALL, parameters=list(parameters)).result

    assert not set_all(double('gains.joint2.p', 1.0), double('joints', 2.0)).successful
    values = client.call(GET, names=['gains.joint2.p']).values
    assert values[0].double_value == 600.0
    assert set_all(double('gains.joint2.p', 900.0), double('gains.joint2.d', 90.0)).successful
    now = client.node.get_clock().now()
    state = client.when(
        lambda state: Time.from_msg(state.header.stamp) > now, 'a later state arrives'
    )
    expected = 900.0 * state.error.positions[1] + 90.0 * state.error.velocities[1]
    assert state.output.effort[1] == pytest.approx(expected, abs=1e-9)
    assert abs(expected) > 1.0, 'gravity must be held by the gains'


def test_query_state(client):
    handle = client.send(point(0.0, 0.0, 0.0, 0.0), point(LONG, 0.1 * LONG, 0.0, 0.0))
    state = client.when(lambda state: state.reference.velocities[0] > 0.0, 'it moves')
    answer = client.call(QUERY, time=state.header.stamp)
    assert answer.success and list(answer.name) == JOINTS
    assert answer.velocity[0] == pytest.approx(0.1)
    client.cancel(handle)


def test_topic_runs_a_trajectory(client):
    publisher = client.node.create_publisher(
        JointTrajectory, '/arm_controller/joint_trajectory', 10
    )
    message = JointTrajectory(joint_names=JOINTS, points=[point(0.2, 0.4, 0.0, 0.0)])
    with client.listen(JointTrajectoryControllerState, COMMANDS) as seen:

        def reached():
            # Again and again: the reader, best effort, may know the writer later than it knows it.
            publisher.publish(message)
            return seen and seen[-1].reference.positions[0] == 0.4

        wait_until(reached, 'it is reached', lambda: seen[-1:], period=0.5)
    client.node.destroy_publisher(publisher)


def test_descriptions_and_truth_wait_for_late_joiners(client):
    assert client.first(String, '/robot_description').data == URDF
    assert '<inertial>' in client.first(String, '/simulated_robot/true_robot_description').data
    truth = client.first(DiagnosticArray, '/simulated_robot/true_parameters')
    assert [status.name for status in truth.status] == JOINTS
    keys = [value.key for value in truth.status[0].values]
    assert keys == 'XX XY XZ YY YZ ZZ MX MY MZ M Ia Fv Fc off'.split()
    assert float(truth.status[0].values[10].value) == 0.5


def test_hardware_error_ends_goal_and_states():
    with (
        running(fault={'kind': 'hardware_error', 'time': LONG}) as (robot, client),
        client.listen(JointState, STATES) as seen,
    ):
        handle = client.send(point(0.0, 0.0, 0.0, 0.0), point(LONG, 0.1, 0.0, 0.0))
        wait_until(lambda: seen, 'joint states')
        assert client.call(BREAK).message == 'hardware_error'
        result = client.result(handle)
        assert (result.status, result.result.error_code) == (GoalStatus.STATUS_ABORTED, -1)
        assert 'deactivate transition' in result.result.error_string
        ended = robot.loop.now()
        wait_until(lambda: robot.loop.now() > ended + 500_000_000, 'the robot lives on')
        assert (stamps(list(seen)) < ended).all()
        assert not client.send(point(1.0, 0.0, 0.0, 0.0)).accepted


def test_nothing_breaks_where_no_fault_is_configured(client):
    answer = client.call(BREAK)
    assert not answer.success
    assert 'simulation.fault.kind' in answer.message


def test_simulated_time_runs_faster_with_its_clock():
    with running(real_time_factor=3.0) as (_, client), client.listen(Clock, '/clock', 10) as seen:

        def clock():
            return Time.from_msg(seen[-1].clock).nanoseconds * 1e-9

        real = time.monotonic()
        wait_until(lambda: seen, 'the clock')
        begin = clock()
        handle = client.send(point(0.0, 0.0, 0.0, 0.0), point(3.0, 0.1, 0.0, 0.0))
        assert client.result(handle).status == GoalStatus.STATUS_SUCCEEDED
        wait_until(lambda: clock() - begin >= 3.0, 'the clock goes on', clock)
        # Never faster than asked for, but what a busy machine delayed is made up for.
        assert clock() - begin <= 3.0 * (time.monotonic() - real + MAX_LAG)
        stamp = Time.from_msg(client.first(JointState, STATES, TRANSIENT).header.stamp)
        wait_until(
            lambda: clock() >= stamp.nanoseconds * 1e-9, 'the state is of this clock', clock
        )


@pytest.fixture
def start_process(domain):
    started = []

    def start(*arguments):
        environment = os.environ | {'PYTHONPATH': str(ROOT), 'ROS_DOMAIN_ID': str(domain)}
        started.append(subprocess.Popen(
            [sys.executable, '-m', 'robotid_ros.nodes', 'simulated_robot', *arguments],
            env=environment, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        ))  # fmt: skip
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_divergence_ends_it_with_one_sentence(tmp_path, start_process):
    config = tmp_path / 'wild.yaml'
    gains = {joint: {'p': 0.0, 'd': -1e6} for joint in JOINTS}
    values = {'robot': {'urdf': 'three.urdf'}, 'simulation': SIMULATION | {'gains': gains}}
    values['simulation'] = values['simulation'] | {'limit_effort': False}
    (tmp_path / 'three.urdf').write_text(URDF)
    config.write_text(yaml.safe_dump({'/**': {'ros__parameters': values}}))
    process = start_process('--ros-args', '--params-file', str(config))
    _, text = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert 'diverged' in text and 'Traceback' not in text


def test_interrupt_ends_it_cleanly(start_process):
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
def test_bad_input_is_one_sentence(arguments, word, start_process):
    process = start_process(*arguments)
    _, text = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert word in text and 'Traceback' not in text
