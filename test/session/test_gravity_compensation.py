"""An arm that is guided by hand: held, pushed, stopped, orphaned, refused."""

from collections.abc import Callable, Iterator
from pathlib import Path
import signal

from controller_manager_msgs.srv import ListControllers
from geometry_msgs.msg import Vector3, Wrench, WrenchStamped
from live_session import child_of
import numpy as np
import pytest
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParametersAtomically
from std_srvs.srv import Trigger
from waiting import PATIENCE
import yaml

from .conftest import Session, write_identified

pytestmark = [pytest.mark.ros, pytest.mark.slow]

CONFIG = Path(__file__).resolve().parents[2] / 'config' / 'arm3.yaml'
NODE, HOLDS, FORWARDS = 'gravity_compensation', 'arm_controller', 'effort_controller'
START = [0.3, 0.4, -0.6]
# 1.3 times what breakaway friction over the lever of joint_2 asks for [N], as a push along y of the
# tool; largest drift [rad/s].
PUSH, DRIFT = 3.0, np.radians(0.5)
# Time is the robot's: a busy machine has four times as much of it.
SLOW = {'simulation.real_time_factor': 0.25}


class Guided:
    """A session with an arm, the node, and a hand at the tool."""

    def __init__(self, session: Session, results: Path, **simulation: object):
        self.session, node = session, session.client.node
        session.start(
            *('simulated_robot', NODE),
            simulated_robot={'simulation.effort_controller': FORWARDS, **SLOW, **simulation},
            gravity_compensation={f'{NODE}.results': str(results), 'use_sim_time': True},
        )
        self._hand = node.create_publisher(WrenchStamped, 'simulated_robot/external_wrench', 10)
        session.robot.wait()

    def ready(self) -> None:
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
        self.ready()
        assert self.start() == 'guiding', self.session.client.message(NODE)
        assert self.active() == [FORWARDS]
        self.wait(1.5)

    def failed(self) -> str:
        """Wait until it says what has stopped it; return the sentence."""
        client = self.session.client
        client.wait_for(lambda: client.state(NODE) == 'failed', what='it says why')
        return client.message(NODE)

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

    def until_handed_back(self) -> None:
        self.session.client.wait_for(lambda: self.active() == [HOLDS], what='it is handed back')

    def moved(self, start: np.ndarray) -> float:
        return float(np.abs(self.session.robot.positions[-1] - start).max())


@pytest.fixture(scope='module')
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
def results(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_identified(config, tmp_path_factory.mktemp('identified'))


@pytest.fixture
def session(config: Path, tmp_path: Path) -> Iterator[Session]:
    with Session(config, tmp_path) as session:
        yield session


def test_it_holds_the_arm_gives_way_to_a_push_and_hands_it_back(session: Session, results: Path):
    guided, robot, client = Guided(session, results), session.robot, session.client
    guided.guide()
    begin, stamp = robot.positions[-1], robot.now
    guided.wait(3.0)
    drift = guided.moved(begin) / ((robot.now - stamp) * 1e-9)
    print(f'drift {np.degrees(drift):.4f} deg/s')
    assert drift < DRIFT
    assert np.abs(begin - START).max() < 0.01
    assert float(client.value(NODE, 'rate')) > 200.0
    assert (
        0.0 < float(client.value(NODE, 'latency')) < float(client.value(NODE, 'largest_latency'))
    )
    guided.push(PUSH)
    client.wait_for(lambda: guided.moved(begin) > 0.05, what='it gives way')
    guided.push(0.0)
    client.call_trigger(f'{NODE}/stop')
    session.until(NODE, 'ready')
    assert guided.active() == [HOLDS]
    assert robot.rest_after(robot.now) < 0.5
    # It can be guided again.
    assert guided.start() == 'guiding', client.message(NODE)


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGSTOP, signal.SIGINT])
def test_a_node_that_dies_leaves_the_arm_at_rest(session: Session, results: Path, number: int):
    guided = Guided(session, results)
    guided.guide()
    guided.push(PUSH)
    session.robot.wait_moving(0.1)
    process = session.process(NODE)
    process.send_signal(number)
    assert session.robot.rest_after(session.robot.now) < 0.5
    assert guided.active() == [HOLDS]
    if number == signal.SIGSTOP:
        process.send_signal(signal.SIGCONT)
        assert 'suspended' in guided.failed()
        assert guided.active() == [HOLDS]


def test_without_its_guardian_no_arm_is_guided(session: Session, results: Path):
    guided = Guided(session, results)
    guided.guide()
    child_kill(session)
    assert 'guardian died' in guided.failed()
    assert guided.active() == [HOLDS]


def child_kill(session: Session) -> None:
    import os

    os.kill(child_of(session.process(NODE).pid, 'guardian'), signal.SIGKILL)


def push_hard(guided: Guided) -> None:
    guided.push(20.0)


def break_robot(guided: Guided) -> None:
    guided.session.client.call(Trigger, 'simulated_robot/break', Trigger.Request())


@pytest.mark.parametrize(
    ('fault', 'cause', 'sentence'),
    [
        ('', push_hard, 'speed limit'),
        ('stale_joint_states', break_robot, 'stopped'),
        ('nan_joint_state', break_robot, 'not a number'),
    ],
)
def test_what_breaks_ends_it_and_the_arm_is_handed_back(
    session: Session, results: Path, fault: str, cause: Callable[[Guided], None], sentence: str
):
    guided = Guided(
        session, results, **{'simulation.fault.kind': fault, 'simulation.fault.time': 1e6}
    )
    guided.guide()
    cause(guided)
    assert sentence in guided.failed()
    assert guided.active() == [HOLDS]
    if not fault:
        guided.push(0.0)
        assert session.robot.rest_after(session.robot.now) < 0.5


def test_an_arm_that_the_model_does_not_know_is_not_moved(session: Session, results: Path):
    guided = Guided(session, results)
    guided.ready()
    for mass, sentence in ((6.0, 'set the payload'), (50.0, 'carry less')):
        value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=mass)
        parameters = [Parameter(name=f'{NODE}.payload.mass', value=value)]
        request = SetParametersAtomically.Request(parameters=parameters)
        service = f'/{NODE}/set_parameters_atomically'
        answer = session.client.call(SetParametersAtomically, service, request)
        assert answer.result.successful
        assert guided.start() == 'failed'
        assert sentence in session.client.message(NODE)
        assert guided.active() == [HOLDS]
    assert guided.moved(np.array(START)) < 0.05


def test_an_arm_that_is_commanded_too_seldom_or_moves_is_not_guided(
    session: Session, results: Path
):
    guided = Guided(session, results, **{'simulation.state_rate': 100.0})
    guided.ready()
    assert guided.start() == 'failed'
    assert 'commands a second, hand guiding needs 200' in session.client.message(NODE)
    assert guided.active() == [HOLDS]


def test_results_that_nobody_can_trust_are_refused(session: Session, config: Path, tmp_path: Path):
    guided = Guided(session, write_identified(config, tmp_path / 'poor', relative=0.3))
    assert "'poor'" in guided.failed()
    assert guided.active() == [HOLDS]


def test_results_of_another_robot_are_refused(session: Session, identified: Path):
    guided = Guided(session, identified)
    assert 'is about joint_1, joint_2, the robot has' in guided.failed()
    assert guided.active() == [HOLDS]
