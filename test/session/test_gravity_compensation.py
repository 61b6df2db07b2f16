"""An arm that is guided by hand: held, pushed, stopped, orphaned, refused."""

from collections.abc import Iterator
import os
from pathlib import Path
import re
import signal

from control_msgs.msg import JointTrajectoryControllerState
from controller_manager_msgs.msg import ControllerState
from controller_manager_msgs.srv import ListControllers, SwitchController
from geometry_msgs.msg import Vector3, Wrench, WrenchStamped
from live_session import child_of
import numpy as np
import pytest
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParametersAtomically
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from waiting import PATIENCE
import yaml

from robotid_ros.nodes.common.messages import duration_message
from robotid_ros.nodes.common.runtime import STEADY

from .conftest import ERROR, Session, SLOW, write_identified

pytestmark = pytest.mark.ros

CONFIG = Path(__file__).resolve().parents[2] / 'config' / 'arm3.yaml'
NODE, HOLDS, FORWARDS = 'gravity_compensation', 'arm_controller', 'effort_controller'
START = [0.3, 0.4, -0.6]
# A push along y of the tool: 1.3 times the breakaway friction of joint_2, 1.0 N·m, over its lever
# at the start, 0.913 m [N]. Largest drift [rad/s].
PUSH, DRIFT = 1.3 * 1.0 / 0.913, np.radians(0.5)


class Guided:
    """A session with an arm, the node, and a hand at the tool."""

    def __init__(self, session: Session, results: Path, **simulation: object):
        self.session, self._results, node = session, results, session.client.node
        given = {'simulation.effort_controller': FORWARDS, **SLOW, **simulation}
        session.start('simulated_robot', simulated_robot=given)
        session.start(NODE, gravity_compensation=self._parameters())
        self._hand = node.create_publisher(WrenchStamped, 'simulated_robot/external_wrench', 10)
        session.robot.wait()

    def _parameters(self) -> dict[str, object]:
        return {f'{NODE}.results': str(self._results), 'use_sim_time': True}

    def start_node(self) -> None:
        """Start the node again, after one that has ended."""
        self.session.client.forget(f'{NODE}/state')
        self.session.start(NODE, gravity_compensation=self._parameters())
        self.session.until(NODE, 'ready')

    def start(self) -> str:
        """Call ~/start; return the state in which that ends."""
        client = self.session.client
        before = len(client.history[f'{NODE}/state'])
        client.call_trigger(f'{NODE}/start')
        client.wait_for(
            lambda: (
                len(client.history[f'{NODE}/state']) > before
                and client.state(NODE) in ('guiding', 'failed')
            ),
            what='it guides, or says why not',
        )
        return client.state(NODE)

    def guide(self) -> None:
        """Guide until the model has taken over."""
        self.session.until(NODE, 'ready')
        assert self.start() == 'guiding', self.session.client.message(NODE)
        assert self.active() == [FORWARDS]
        self.wait(1.5)

    def failed(self) -> str:
        """Wait until it says what has stopped it; return the sentence."""
        client = self.session.client
        client.wait_for(lambda: client.state(NODE) == 'failed', what='it says why')
        return client.message(NODE)

    def break_sensors(self) -> str:
        """Let the robot's fault begin; return the sentence of what has stopped the node."""
        self.session.client.call(Trigger, 'simulated_robot/break', Trigger.Request())
        return self.failed()

    def carry(self, mass: float, center: list[float]) -> None:
        kind = ParameterType.PARAMETER_DOUBLE_ARRAY
        values = {
            'mass': ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=mass),
            'center': ParameterValue(type=kind, double_array_value=center),
        }
        parameters = [Parameter(name=f'{NODE}.payload.{k}', value=v) for k, v in values.items()]
        request = SetParametersAtomically.Request(parameters=parameters)
        service = f'/{NODE}/set_parameters_atomically'
        answer = self.session.client.call(SetParametersAtomically, service, request)
        assert answer.result.successful, answer.result.reason

    def push(self, force: float) -> None:
        """Push at the tool along its y axis, or let go."""
        message = WrenchStamped(wrench=Wrench(force=Vector3(y=force)))
        message.header.frame_id = 'tool0'
        self._hand.publish(message)

    def wait(self, seconds: float) -> None:
        end = self.session.robot.now + round(seconds * 1e9)
        self.session.client.wait_for(lambda: self.session.robot.now > end, what='time passes')

    def active(self) -> list[str]:
        """Return the controllers that are active."""
        answer = self.session.client.call(
            ListControllers, '/controller_manager/list_controllers', ListControllers.Request()
        )
        return [c.name for c in answer.controller if c.state == 'active']

    def moved(self, start: np.ndarray) -> float:
        return float(np.abs(self.session.robot.positions[-1] - start).max())


@pytest.fixture(scope='module')
def arm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    values = yaml.safe_load(CONFIG.read_text())
    groups = values['/**']['ros__parameters']
    # The truth of the simulation is in the terms of this model.
    groups['robot']['friction'] = {'default': ['viscous', 'coulomb']}
    # A busy machine may hold up the simulated robot for longer than a real one is silent.
    groups['excitation'].update(timeout=PATIENCE, stale_after=2.0)
    groups['simulation'].update(update_rate=500.0, initial_positions=START, inertial_error=0.0)
    path = tmp_path_factory.mktemp('config') / 'arm3.yaml'
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.fixture(scope='module')
def results(arm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_identified(arm, tmp_path_factory.mktemp('identified'), standard_error=ERROR)


@pytest.fixture
def session(arm: Path, tmp_path: Path) -> Iterator[Session]:
    with Session(arm, tmp_path) as session:
        yield session


@pytest.mark.slow
def test_it_holds_the_arm_gives_way_to_a_push_and_hands_it_back(session: Session, results: Path):
    # Without it, friction would not hold the arm.
    load = {'mass': 1.0, 'com': [0.3, 0.0, 0.0], 'link': 'link_3'}
    given = {f'simulation.payload.{key}': value for key, value in load.items()}
    given |= {'simulation.fault.kind': 'stale_joint_states', 'simulation.fault.time': 1e6}
    guided, robot, client = Guided(session, results, **given), session.robot, session.client
    session.until(NODE, 'ready')
    guided.carry(1.0, [0.3, 0.0, 0.0])
    guided.guide()
    begin, stamp = robot.positions[-1], robot.now
    guided.wait(3.0)
    drift = guided.moved(begin) / ((robot.now - stamp) * 1e-9)
    print(f'drift {np.degrees(drift):.4f} deg/s')
    assert drift < DRIFT
    assert np.abs(begin - START).max() < 0.01
    assert float(client.value(NODE, 'rate')) > 200.0
    latency, largest = (float(client.value(NODE, k)) for k in ('latency', 'largest_latency'))
    assert 0.0 < latency <= largest
    guided.push(PUSH)
    client.wait_for(lambda: guided.moved(begin) > 0.05, what='it gives way')
    guided.push(0.0)
    client.call_trigger(f'{NODE}/stop')
    session.until(NODE, 'ready')
    assert guided.active() == [HOLDS]
    assert robot.rest_after(robot.now) < 0.5
    # Its output is what it holds ahead of its loop, which would be 0, and p e + d ė.
    states, topic = list[JointTrajectoryControllerState](), f'{HOLDS}/controller_state'
    client.node.create_subscription(JointTrajectoryControllerState, topic, states.append, 1)
    client.wait_for(lambda: states, what='a controller state is heard')
    k, state = states[-1].joint_names.index('joint_2'), states[-1]
    error, change = state.error.positions[k], state.error.velocities[k]
    assert state.output.effort[k] - 1500.0 * error - 57.0 * change == pytest.approx(-4.7, abs=2.5)
    # Without its guardian no arm is guided.
    guided.guide()
    os.kill(child_of(session.process(NODE).pid, 'guardian'), signal.SIGKILL)
    assert 'guardian died' in guided.failed()
    assert guided.active() == [HOLDS]
    assert guided.start() == 'guiding', client.message(NODE)
    # A driver that has lost its hardware may say the same again and again.
    heard = list[JointState]()
    client.node.create_subscription(JointState, 'joint_states', heard.append, 1)
    client.wait_for(lambda: heard, what='a joint state is heard')
    again, old = client.node.create_publisher(JointState, 'joint_states', 1), heard[0]
    client.node.create_timer(0.01, lambda: again.publish(old), clock=STEADY)
    assert 'joint states stopped' in guided.break_sensors()
    assert guided.active() == [HOLDS]


def test_speed_a_node_that_dies_and_no_number_leave_the_arm_at_rest(
    session: Session, results: Path
):
    fault = {'simulation.fault.kind': 'nan_joint_state', 'simulation.fault.time': 1e6}
    guided, robot = Guided(session, results, **fault), session.robot
    guided.guide()
    with pytest.raises(AssertionError, match='carried at the start'):
        guided.carry(1.0, [0.1, 0.0, 0.0])
    guided.push(20.0)
    assert 'faster than its speed limit' in guided.failed()
    assert guided.active() == [HOLDS]
    guided.push(0.0)
    assert robot.rest_after(robot.now) < 0.5
    for number in (signal.SIGINT, signal.SIGKILL, signal.SIGSTOP):
        if not session.runs(NODE):
            guided.start_node()
        assert guided.start() == 'guiding', session.client.message(NODE)
        guided.wait(1.5)
        guided.push(3.0 * PUSH)
        robot.wait_moving(0.1)
        process = session.process(NODE)
        process.send_signal(number)
        assert robot.rest_after(robot.now) < 0.5
        assert guided.active() == [HOLDS]
        guided.push(0.0)
        if number == signal.SIGSTOP:
            process.send_signal(signal.SIGCONT)
            assert 'suspended' in guided.failed()
            assert guided.active() == [HOLDS]
        else:
            process.wait(PATIENCE)
    assert guided.start() == 'guiding', session.client.message(NODE)
    node = session.client.node
    lying = node.create_publisher(JointState, 'joint_states', 1)

    def jump(message: JointState) -> None:
        if message.header.frame_id != 'jumped':
            message.header.frame_id, message.position[0] = 'jumped', message.position[0] + 0.3
            message.header.stamp.nanosec += 1000
            lying.publish(message)

    jumping = node.create_subscription(JointState, 'joint_states', jump, 1)
    assert 'by its positions: check its sensor' in guided.failed()
    node.destroy_subscription(jumping)
    assert guided.active() == [HOLDS]
    assert guided.start() == 'guiding', session.client.message(NODE)
    assert 'not a number' in guided.break_sensors()
    assert guided.active() == [HOLDS]


@pytest.mark.slow
def test_a_controller_that_others_command_or_deactivate_ends_it(session: Session, results: Path):
    guided, client = Guided(session, results), session.client
    guided.guide()

    def switch(*off: str, on: list[str]) -> None:
        request = SwitchController.Request(deactivate_controllers=off, activate_controllers=on)
        request.strictness = request.STRICT
        service = '/controller_manager/switch_controller'
        assert client.call(SwitchController, service, request).ok

    switch(FORWARDS, on=[])
    assert 'is not active any more' in guided.failed()
    assert guided.active() == [HOLDS]
    assert session.robot.rest_after(session.robot.now) < 0.5
    assert guided.start() == 'guiding', client.message(NODE)
    other = client.node.create_publisher(Float64MultiArray, f'/{FORWARDS}/commands', 1)
    assert 'somebody else can command' in guided.failed()
    assert guided.active() == [HOLDS]
    assert guided.start() == 'failed'
    assert 'somebody else can command' in client.message(NODE)
    # A controller that is commanded too few efforts is deactivated, one that is commanded NaN not.
    switch(HOLDS, on=[FORWARDS])
    for efforts, active in (([np.nan] * 3, [FORWARDS]), ([0.0], [])):
        other.publish(Float64MultiArray(data=efforts))
        guided.wait(0.5)
        assert guided.active() == active


@pytest.mark.slow
def test_an_arm_that_cannot_be_held_is_not_guided(session: Session, results: Path):
    guided = Guided(session, results, **{'simulation.state_rate': 100.0})
    client = session.client
    session.until(NODE, 'ready')

    def refused() -> str:
        assert guided.start() == 'failed'
        assert guided.active() == [HOLDS]
        return client.message(NODE)

    commands = client.node.create_publisher(JointTrajectory, f'/{HOLDS}/joint_trajectory', 1)
    client.wait_for(commands.get_subscription_count, what='the controller listens')
    joints = ['joint_1', 'joint_2', 'joint_3']

    def command(*points: tuple[float, float]) -> None:
        """Send the controller seconds, and how far the first joint is from its start then."""
        trajectory = JointTrajectory(joint_names=joints)
        for second, travel in points:
            at = [START[0] + travel, *START[1:]]
            point = JointTrajectoryPoint(positions=at, time_from_start=duration_message(second))
            trajectory.points.append(point)
        commands.publish(trajectory)

    # To and fro until it was seen: on a busy machine a refusal takes its time.
    command(*((2.0 * k, 0.4 * (k % 2)) for k in range(1, 200)))
    session.robot.wait_moving(0.05)
    assert 'the arm moves' in refused()
    command((2.0, 0.0))
    guided.wait(4.0)
    session.robot.rest_after(session.robot.now)
    begin = session.robot.positions[-1]
    rate = re.search(r'allow (\d+) commands a second, hand guiding needs 200', refused())
    assert rate and int(rate[1]) < 150, client.message(NODE)
    for mass, sentence in ((6.0, 'set the payload'), (50.0, 'reduce the load')):
        guided.carry(mass, [0.0, 0.0, 0.0])
        assert sentence in refused()
    assert guided.moved(begin) < 0.01


@pytest.mark.slow
def test_it_waits_for_controllers_that_are_being_spawned(session: Session, results: Path):
    spawned: list[ControllerState] = []
    asked: list[int] = []

    def answer(_: object, response: ListControllers.Response) -> ListControllers.Response:
        asked.append(len(spawned))
        response.controller = spawned
        return response

    client = session.client
    client.node.create_service(ListControllers, '/controller_manager/list_controllers', answer)
    session.start(NODE, gravity_compensation={f'{NODE}.results': str(results)})
    client.wait_for(lambda: len(asked) > 2, what='it asks again')
    interfaces = [f'joint_{number}/effort' for number in (1, 2, 3)]
    spawned += [
        ControllerState(name=HOLDS, state='active'),
        ControllerState(
            name=FORWARDS,
            state='inactive',
            type='forward_command_controller/ForwardCommandController',
            required_command_interfaces=interfaces,
        ),
    ]
    session.until(NODE, 'ready')


@pytest.mark.parametrize('of', ['poor', 'another'])
@pytest.mark.slow
def test_results_that_nobody_can_trust_are_refused(
    session: Session, arm: Path, identified: Path, tmp_path: Path, of: str
):
    results, sentence = identified, 'has results of joint_1, joint_2, the robot has'
    if of == 'poor':
        results, sentence = write_identified(arm, tmp_path / of, relative=0.3), "'poor' for"
    session.start(NODE, gravity_compensation={f'{NODE}.results': str(results)})
    session.client.wait_for(lambda: session.client.state(NODE) == 'failed', what='it refuses')
    assert sentence in session.client.message(NODE)
