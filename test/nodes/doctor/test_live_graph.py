"""The doctor beside a simulated robot over real DDS: each of its faults is found."""

from collections.abc import Iterator
import contextlib
import dataclasses
import json
import re
import threading
import uuid

from action_msgs.msg import GoalInfo, GoalStatus, GoalStatusArray
from control_msgs.action import FollowJointTrajectory
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from parameter_overrides import parameter_overrides
import pytest
import rclpy
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String
import three_joint_robot
from trajectory_msgs.msg import JointTrajectory
from waiting import PATIENCE, wait_until

from robotid_ros.cli import doctor
from robotid_ros.cli.main import main
from robotid_ros.core.findings import CODES, Finding, Severity
from robotid_ros.core.model import build_robot
from robotid_ros.files.configuration import Configuration, load
from robotid_ros.nodes.common.messages import status
from robotid_ros.nodes.common.runtime import LATCHED, SpinThread
from robotid_ros.nodes.demo.node_processes import claim_domain, release_domain
from robotid_ros.nodes.doctor.diagnose import diagnose, subject_of
from robotid_ros.nodes.doctor.graph_snapshot import GraphSnapshot, snapshot_of_graph
from robotid_ros.nodes.doctor.state_checks import effort_kind
from robotid_ros.nodes.simulated_robot.simulated_robot_node import SimulatedRobot

from .conftest import JOINTS, URDF

# Slow enough for a machine with other work; the faults do not depend on it.
RATE = 200.0
SIMULATION = {
    'update_rate': RATE,
    'state_rate': RATE / 2,
    'joints': list(JOINTS),
    'gains': {joint: {'p': 600.0, 'd': 60.0} for joint in JOINTS},
    'rotor_inertia': [0.5],
    'noise': {'effort': [0.01]},
    'constraints': {'joints': {joint: {'trajectory': 0.5} for joint in JOINTS}},
}
# What a busy machine may be at fault for.
OF_THE_MACHINE = ('timing', 'clock', 'disk')
# How long the robot takes to come to rest after its start, by its own clock [s].
SETTLED = 5.0


@pytest.fixture(scope='module')
def robot() -> Iterator[SimulatedRobot]:
    with contextlib.ExitStack() as ends:
        domain, context = claim_domain(), rclpy.Context()
        ends.callback(release_domain, domain)
        rclpy.init(context=context, domain_id=domain)
        ends.callback(rclpy.try_shutdown, context=context)
        values = {'robot_description': URDF, 'simulation': SIMULATION}
        node = SimulatedRobot(
            context=context, namespace='/arm1', parameter_overrides=parameter_overrides(values)
        )
        node.domain = domain
        ends.callback(node.destroy_node)
        ends.callback(node.close)
        ends.enter_context(spinning(node))
        wait_until(lambda: node.loop.cycles > SETTLED * RATE, 'the robot rests')
        yield node


@contextlib.contextmanager
def spinning(node: Node) -> Iterator[Node]:
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    spin_thread = SpinThread(executor)
    yield node
    spin_thread.end()


@pytest.fixture
def visitor(robot: SimulatedRobot) -> Iterator[Node]:
    """Another node in the robot's domain and namespace."""
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=robot.domain)
    node = rclpy.create_node('visitor', context=context, namespace='/arm1')
    with spinning(node):
        yield node
    node.destroy_node()
    rclpy.try_shutdown(context=context)


def look(robot: SimulatedRobot, timeout: float = PATIENCE, **options) -> GraphSnapshot:
    options = {'configuration': Configuration(), 'duration': 0.5, **options}
    return snapshot_of_graph(namespace='/arm1', timeout=timeout, domain=robot.domain, **options)


def above_note(snapshot: GraphSnapshot) -> list[Finding]:
    found = [f for f in diagnose(snapshot) if f.severity > Severity.INFO]
    return [finding for finding in found if subject_of(finding) not in OF_THE_MACHINE]


def test_a_healthy_robot_has_nothing_above_a_note(robot: SimulatedRobot):
    snapshot = look(robot)
    assert above_note(snapshot) == []
    assert snapshot.states.joints == tuple(sorted(JOINTS))
    assert snapshot.controller.joints == JOINTS and snapshot.rate == RATE
    assert snapshot.descriptions == (URDF,) and snapshot.manager is None
    assert effort_kind(snapshot) == 'joint_torque'
    fine = {subject_of(f) for f in diagnose(snapshot) if f.severity == Severity.OK}
    assert {'network', 'controller', 'DIDIM', 'efforts', 'description', 'other clients'} <= fine


ALL_SILENT = [('controller_silent', ()), ('states_silent', ())]


# Those that let the arm drop come last.
@pytest.mark.parametrize(
    ('kind', 'expected'),
    [
        ('nan_joint_state', [('not_a_number', ('joint2',))]),
        ('nan_velocity', [('not_a_number', ('joint2',))]),
        ('nan_effort', [('effort_not_a_number', ('joint2',))]),
        ('dead_effort', [('effort_zero', ('joint2',))]),
        ('frozen_joint', [('joints_frozen', ('joint2',))]),
        ('frozen_states', [('states_frozen', ())]),
        ('stale_joint_states', [('states_silent', ())]),
        ('deactivate', [('controller_silent', ())]),
        ('hardware_error', ALL_SILENT),
    ],
)
def test_each_fault_is_found(robot: SimulatedRobot, kind: str, expected: list):
    # A topic that is silent for good is waited for in vain.
    silent = any('silent' in name for name, _ in expected)
    timeout, found = 3.0 if silent else PATIENCE, []

    def is_found() -> bool:
        found[:] = diagnose(look(robot, timeout, duration=0.2))
        return {*expected} <= {(CODES[f.code].name, f.joints) for f in found}

    with broken(robot, kind):
        wait_until(is_found, 'the fault is found', lambda: found)


@contextlib.contextmanager
def broken(robot: SimulatedRobot, kind: str) -> Iterator[None]:
    fault, loop = robot.loop.sensors.fault, robot.loop
    names = loop.physics.joint_state_names
    fault.joint, fault.kind = list(names).index('joint2'), kind
    loop.break_now()
    begun = loop.cycles
    wait_until(lambda: loop.cycles > begun + 2, 'the fault has begun')
    try:
        yield
    finally:
        fault.kind = ''
        if not loop.controller.active:
            state = loop.physics.joint_state([0.0] * len(JOINTS))
            loop.controller.activate(*map(loop.physics.feedback, state[:2]))


def test_others_are_found(robot: SimulatedRobot, visitor: Node):
    """Publishers of commands, of joint states and of another description, and a goal."""
    visitor.create_publisher(JointTrajectory, 'arm_controller/joint_trajectory', 1)
    states = visitor.create_publisher(JointState, 'joint_states', QoSProfile(depth=1))
    visitor.create_publisher(String, 'robot_description', LATCHED).publish(String(data='<a/>'))
    visitor.create_timer(
        0.01, lambda: states.publish(JointState(name=list(JOINTS), position=[0.0] * 3))
    )
    statuses = 'arm_controller/follow_joint_trajectory/_action/status'
    goal = GoalInfo()
    goal.goal_id.uuid = list(uuid.uuid4().bytes)
    running = GoalStatus(goal_info=goal, status=GoalStatus.STATUS_EXECUTING)
    visitor.create_publisher(GoalStatusArray, statuses, LATCHED).publish(
        GoalStatusArray(status_list=[running])
    )
    wait_until(lambda: visitor.count_publishers('joint_states') > 1, 'it knows the robot')

    def all_heard() -> dict[str, Finding]:
        found = {CODES[f.code].name: f for f in diagnose(look(robot))}
        expected = {'several_descriptions', 'goal_runs', 'rival_publishers'}
        return found if expected <= found.keys() else {}

    found = wait_until(all_heard, 'all are heard')
    values = found['commanded_by_topic'].values
    assert (values['nodes'], values['controller']) == ('/arm1/visitor', 'arm_controller')
    assert found['rival_publishers'].values['nodes'] == '/arm1/simulated_robot, /arm1/visitor'


def test_controller_manager_is_heard(robot: SimulatedRobot, visitor: Node):
    """Its rate is a parameter, and what it complains about is on /diagnostics."""
    manager = rclpy.create_node('controller_manager', context=visitor.context, namespace='/arm1')
    manager.declare_parameter('update_rate', 400)
    hardware = 'controller_manager: Hardware Components Activity'
    message = DiagnosticArray(status=[status(hardware, '\nslow', {'arm.state': 'inactive'})])
    message.status[0].level = DiagnosticStatus.WARN
    publisher = manager.create_publisher(DiagnosticArray, '/diagnostics', 1)
    manager.create_timer(0.05, lambda: publisher.publish(message))

    def heard() -> GraphSnapshot | None:
        # Participants announce themselves every 3 s. Two services are waited for in vain.
        snapshot = look(robot, timeout=2.0, duration=4.0)
        return snapshot if snapshot.manager and snapshot.manager.warnings else None

    with spinning(manager):
        snapshot = wait_until(heard, 'controller_manager is heard')
    manager.destroy_node()
    assert snapshot.manager.rate == 400.0
    (warned,) = [f for f in diagnose(snapshot) if CODES[f.code].name == 'manager_warning']
    assert warned.values == {'text': f'{hardware}: slow'}
    # Its services are not there, or not known.
    assert snapshot.manager.obstacle and not snapshot.manager.hardware


def test_nobody_notices_the_doctor(robot: SimulatedRobot, visitor: Node):
    """It publishes nothing, serves nothing and sets nothing."""
    before = robot.controller_node.controller.settings
    seen = []
    looked = threading.Event()

    def watch() -> None:
        while not looked.is_set():
            for name, namespace in visitor.get_node_names_and_namespaces():
                if name == 'robotid_doctor':
                    with contextlib.suppress(rclpy.node.NodeNameNonExistentError):
                        seen.append(
                            (
                                visitor.get_publisher_names_and_types_by_node(name, namespace),
                                visitor.get_service_names_and_types_by_node(name, namespace),
                            )
                        )
            looked.wait(0.01)

    thread = threading.Thread(target=watch)
    thread.start()
    look(robot, duration=1.0)
    looked.set()
    thread.join()
    # What rclpy gives every node.
    names = {name.rpartition('/')[2] for found in seen for kinds in found for name, _ in kinds}
    assert seen and names <= {'parameter_events', 'get_type_description'}
    assert robot.controller_node.controller.settings == before


def test_a_wrong_name_is_told_with_the_right_one(robot, monkeypatch, capsys):
    monkeypatch.setenv('ROS_DOMAIN_ID', str(robot.domain))
    # Waited for in vain each time.
    monkeypatch.setattr(doctor, 'TIMEOUT', 2.0)
    words = ['doctor', '--namespace', 'arm1', '--controller', 'arm', '--duration', '0.2', '--json']
    told = []

    def is_told() -> bool:
        assert main(words) == 1
        told[:] = json.loads(capsys.readouterr().out)
        return any(f['values'].get('others') == ['arm_controller'] for f in told)

    wait_until(is_told, 'the right one is seen', lambda: told)
    names = {'code', 'name', 'severity', 'joints', 'values', 'text', 'subject'}
    assert set(told[0]) == names
    assert told[0]['severity'] == 'error'


def test_a_configuration_is_written_for_the_robot_that_is_up(robot, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv('ROS_DOMAIN_ID', str(robot.domain))
    monkeypatch.chdir(tmp_path)
    assert main(['init', '--namespace', '/arm1']) == 0, capsys.readouterr().err
    assert 'written  three.yaml, three.urdf' in capsys.readouterr().out
    assert (tmp_path / 'three.urdf').read_text() == URDF
    configuration = load('three.yaml')
    assert configuration.robot.joints == JOINTS
    assert configuration.excitation.controller == 'arm_controller'
    simulation = configuration.simulation
    assert simulation.update_rate == RATE
    assert {(gains.p, gains.d) for gains in simulation.gains.values()} == {(600.0, 60.0)}
    assert len(simulation.gains) == 3
    assert main(['init', '--namespace', '/arm1']) == 1
    assert "'three.yaml' exists already" in capsys.readouterr().err


def test_a_robot_whose_links_have_no_inertials_is_set_up_by_its_mass(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.chdir(tmp_path)
    bare = re.sub('<inertial>.*?</inertial>', '', three_joint_robot.URDF, flags=re.DOTALL)
    with three_joint_robot.running(bare, mass=20.0) as (_, client):
        monkeypatch.setenv('ROS_DOMAIN_ID', str(client.context.get_domain_id()))
        assert main(['init', '--mass', '20']) == 0, capsys.readouterr().err
    configuration = load('three.yaml')
    assert configuration.robot.mass == 20.0
    assert configuration.simulation.gains
    text = (tmp_path / 'three.urdf').read_text()
    assert text == bare and build_robot(text, configuration.robot).assumed_inertials


def test_the_only_controller_is_taken(robot: SimulatedRobot, visitor: Node):
    """A client of one that is not there makes no second one."""
    ActionClient(visitor, FollowJointTrajectory, 'ghost/follow_joint_trajectory')
    ActionClient(visitor, FollowJointTrajectory, 'arm_controller/follow_joint_trajectory')
    defaults = Configuration()
    excitation = dataclasses.replace(defaults.excitation, controller='left_arm_controller')
    configuration = dataclasses.replace(defaults, excitation=excitation)

    def visited() -> GraphSnapshot | None:
        snapshot = look(robot, configuration=configuration, duration=0.2)
        others = [f for f in diagnose(snapshot) if CODES[f.code].name == 'other_clients']
        return snapshot if any('/arm1/visitor' in f.values['nodes'] for f in others) else None

    snapshot = wait_until(visited, 'the clients are seen')
    assert (snapshot.controller_name, snapshot.name_was_given) == ('arm_controller', False)
    assert snapshot.controller is not None
    assert snapshot.candidates == ('arm_controller',)
