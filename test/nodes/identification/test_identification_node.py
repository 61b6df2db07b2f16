"""The node answers whatever others publish, and leaves the gains of a moving robot alone."""

from collections.abc import Iterator
import os
from pathlib import Path
import time

from control_msgs.msg import JointTrajectoryControllerState
from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest
import rclpy
from sensor_msgs.msg import JointState
from spinning_nodes import spinning_nodes
from std_msgs.msg import String
from std_srvs.srv import Trigger
from waiting import PATIENCE, wait_until

from robotid_ros.core.model import build_robot
from robotid_ros.core.monitoring.external_effort import ContactThresholds
from robotid_ros.exceptions import ControllerError
from robotid_ros.files.configuration import read_mapping
from robotid_ros.nodes.common.batched_subscription import BatchedSubscription
from robotid_ros.nodes.common.controller import subscribe_states
from robotid_ros.nodes.common.joint_states import check_at_rest
from robotid_ros.nodes.common.messages import status
from robotid_ros.nodes.common.runtime import LATCHED
from robotid_ros.nodes.common.waiting import result_of, run_in_executor
from robotid_ros.nodes.identification.identification_node import IdentificationNode
from robotid_ros.nodes.identification.live_topics import LivePrediction

pytestmark = pytest.mark.ros
ROOT = Path(__file__).resolve().parents[3]
STATE = 'arm_controller/controller_state'


@pytest.fixture
def nodes(tmp_path: Path, domain: int) -> Iterator[tuple[IdentificationNode, rclpy.node.Node]]:
    values = read_mapping(ROOT / 'config' / 'scara.yaml')
    values['recorder'] = {'folder': str(tmp_path / 'recordings')}
    values['excitation']['timeout'] = PATIENCE
    with spinning_nodes(domain, values, IdentificationNode) as nodes:
        yield nodes


def ask(client: rclpy.node.Node, name: str) -> Trigger.Response:
    service = client.create_client(Trigger, f'identification/{name}')
    wait_until(service.service_is_ready, f'{name} is served')
    return result_of(service.call_async(Trigger.Request()), PATIENCE, name)


def test_no_message_ends_the_node(nodes, tmp_path):
    client = nodes[1]
    texts: list[str] = []
    client.create_subscription(
        DiagnosticStatus, 'identification/state', lambda m: texts.append(m.message), LATCHED
    )
    bag = client.create_publisher(String, 'recorder/bag', LATCHED)
    description = client.create_publisher(String, 'robot_description', LATCHED)
    state = client.create_publisher(DiagnosticStatus, 'excitation/state', LATCHED)
    wait_until(lambda: bag.get_subscription_count() and state.get_subscription_count(), 'matched')
    (tmp_path / 'elsewhere').mkdir()
    for name in ('', 'x' * 10_000, str(tmp_path / 'elsewhere')):
        bag.publish(String(data=name))
        shown = name[:200]
        wait_until(lambda s=shown: any(f"'{s}'" in text for text in texts), 'it is refused', texts)
    description.publish(String(data='no URDF <'))
    state.publish(DiagnosticStatus())
    assert ask(client, 'identify').message == 'there is no recording yet: record a session'
    assert sorted(path.name for path in tmp_path.iterdir()) == ['elsewhere']


def test_malformed_joint_states_leave_the_live_prediction(nodes):
    node, client = nodes
    urdf = (ROOT / 'urdf' / 'scara.urdf').read_text()
    robot = build_robot(urdf, node.configuration.robot)
    publisher = client.create_publisher(JointState, 'joint_states', 100)
    stream = node.create_subscription(JointState, 'joint_states', lambda _: 1 / 0, 100)
    two = np.ones(2)
    thresholds = ContactThresholds(np.ones((3, 2)), 5.0 * two)
    values = {'chi': robot.prior, 'consistent': robot.prior, 'thresholds': thresholds}
    results = {'base': (), 'validation': (), 'identification': ()}
    values = {**values, 'results': type('Results', (), results)}
    outcome = type('Outcome', (), values)
    node._start_live_prediction(robot, outcome)
    assert isinstance(node._live[0], LivePrediction)
    wait_until(lambda: publisher.get_subscription_count() > 1, 'matched')
    predicted: list[JointState] = []
    client.create_subscription(
        JointState, 'identification/predicted_effort', predicted.append, 100
    )
    external: list[JointState] = []
    client.create_subscription(JointState, 'identification/external_effort', external.append, 100)
    names = list(robot.joints)
    count = 0

    def is_predicted() -> bool:
        nonlocal count
        count += 1
        for message in (
            JointState(name=[*names, names[0]], position=[0.0] * (len(names) + 1)),
            JointState(name=names, position=[0.0]),
            JointState(name=names, position=[1e308] * len(names), effort=[float('nan')]),
            JointState(name=names),
        ):
            publisher.publish(message)
        publisher.publish(os.urandom(64))
        good = JointState(name=names, position=[0.1] * len(names), effort=[0.5] * len(names))
        good.header.stamp.sec, good.header.stamp.nanosec = 1, count * 10_000_000
        publisher.publish(good)
        return bool(predicted) and bool(external)

    wait_until(is_predicted, 'it is predicted', lambda: node.guard.counts, period=0.05)
    assert np.isfinite([*predicted[-1].effort, *external[-1].effort]).all()
    # A callback of ours that fails is counted, and fails no node.
    assert node.guard.counts['joint_states'] > 0
    run_in_executor(node, lambda: node.destroy_subscription(stream))


class Controller:
    """States of a controller at 100 Hz, with a reference that moves or rests."""

    def __init__(self, client: rclpy.node.Node, speed: float, *, repeats: bool = False):
        self._repeats = repeats
        self._publisher = client.create_publisher(JointTrajectoryControllerState, STATE, 10)
        self._speed, self._count = speed, 0
        self._timer = client.create_timer(0.01, self._publish)

    def _publish(self) -> None:
        self._count += 1
        message = JointTrajectoryControllerState(joint_names=['a', 'b'])
        message.header.stamp.sec, centi = divmod(1 if self._repeats else self._count, 100)
        message.header.stamp.nanosec = centi * 10**7
        # Noise of an encoder on what is measured.
        moved = self._speed * 0.01 * self._count
        message.reference.positions = [0.5, moved]
        message.feedback.positions = [0.5 + 1e-3 * (self._count % 2), moved]
        self._publisher.publish(message)
        self._publisher.publish(JointTrajectoryControllerState(joint_names=['a', 'b']))


@pytest.mark.parametrize('speed', [0.0, 0.01])
def test_a_robot_that_moves_is_known(nodes, speed):
    node, client = nodes
    controller = Controller(client, speed)
    if speed:
        with pytest.raises(ControllerError, match=r'the robot moves \(b\): wait until it rests'):
            check_at_rest(subscribe_states(node, 'arm_controller'), PATIENCE)
    else:
        check_at_rest(subscribe_states(node, 'arm_controller'), PATIENCE)
    assert controller


def test_a_controller_that_is_silent_is_not_at_rest(nodes):
    with pytest.raises(ControllerError, match='does not say whether the robot rests'):
        check_at_rest(subscribe_states(nodes[0], 'arm_controller'), 0.1)


def test_a_state_that_is_repeated_is_no_evidence_of_rest(nodes):
    node, client = nodes
    controller = Controller(client, 0.0, repeats=True)
    with pytest.raises(ControllerError, match=r'whether the robot rests \(a, b\)'):
        check_at_rest(subscribe_states(node, 'arm_controller'), 2.0)
    assert controller._count > 2


class Fingers:
    """Joint states of two joints: one is published at 100 Hz, the other once."""

    def __init__(self, node: rclpy.node.Node, client: rclpy.node.Node, often: str, once: str):
        self.stream = BatchedSubscription(node, JointState, 'joint_states')
        self._publisher = client.create_publisher(JointState, 'joint_states', 100)
        self._client, self._often, self.place = client, often, 0.0
        wait_until(self._publisher.get_subscription_count, 'they are connected')
        self._publisher.publish(JointState(name=[once], position=[0.0]))
        self._timer = client.create_timer(0.01, self._publish)

    def _publish(self) -> None:
        state = JointState(name=[self._often], position=[self.place])
        state.header.stamp = self._client.get_clock().now().to_msg()
        self._publisher.publish(state)


def test_a_gripper_does_not_say_that_the_arm_rests(nodes):
    fingers = Fingers(*nodes, often='finger', once='arm')
    with pytest.raises(ControllerError, match=r'whether the robot rests \(arm\)'):
        check_at_rest(fingers.stream, 2.0)


@pytest.mark.parametrize(('joints', 'unknown'), [((), 'finger'), (('arm', 'wrist'), 'wrist')])
def test_rest_is_asked_of_every_joint_that_is_named_or_heard(nodes, joints, unknown):
    fingers = Fingers(*nodes, often='arm', once='finger')
    with pytest.raises(ControllerError, match=rf'whether the robot rests \({unknown}\)'):
        check_at_rest(fingers.stream, 2.0, joints)


def test_a_gripper_that_is_published_as_it_moves_does_not_keep_the_arm_from_resting(nodes):
    fingers = Fingers(*nodes, often='arm', once='finger')
    check_at_rest(fingers.stream, PATIENCE, ('arm',))


def test_a_joint_that_is_not_asked_for_must_not_move_either(nodes):
    node, client = nodes
    arm = Fingers(node, client, often='arm', once='finger')
    wheel = Fingers(node, client, often='wheel', once='wheel')
    client.create_timer(0.01, lambda: setattr(wheel, 'place', wheel.place + 0.01))
    with pytest.raises(ControllerError, match=r'the robot moves \(wheel\)'):
        check_at_rest(arm.stream, PATIENCE, ('arm',))


def test_gains_are_left_alone_during_a_session(nodes, tmp_path):
    node, client = nodes
    state = client.create_publisher(DiagnosticStatus, 'excitation/state', LATCHED)
    update = node._gain_update

    def refused() -> str:
        state.publish(status('excitation', '', {'state': 'exciting'}))
        if update._session != 'exciting':
            return ''
        with pytest.raises(ControllerError) as caught:
            update.set('', tmp_path, '')
        return str(caught.value)

    assert 'the excitation moves the robot (exciting)' in wait_until(refused, 'it is refused')


def test_gains_are_left_alone_while_an_excitation_is_up_that_was_not_heard(nodes):
    """The one before died in motion; the new one may move the robot already."""
    node, client = nodes
    update = node._gain_update
    update._session, update._heard = 'approaching', time.monotonic() - 10.0
    update._check_no_session()  # nobody is there
    state = client.create_publisher(DiagnosticStatus, 'excitation/state', LATCHED)
    wait_until(lambda: node.count_publishers('excitation/state'), 'the new one is seen')
    with pytest.raises(ControllerError, match=r"'.*excitation/state' does not say"):
        update._check_no_session()
    state.publish(status('excitation', '', {'state': 'idle'}))
    wait_until(lambda: update._session == 'idle', 'it is heard')
    update._check_no_session()


def test_its_parameters_can_be_read(nodes):
    name = 'identification.controller_gains.although_not_better'
    assert nodes[0].get_parameter(name).value is False
