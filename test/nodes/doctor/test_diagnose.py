"""What is wrong with a graph is found in a snapshot of it, and nothing else is."""

from collections.abc import Callable
import dataclasses
from pathlib import Path
import re
from types import SimpleNamespace

from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest

from robotid_ros.core.model import RobotSettings
from robotid_ros.core.model.settings import ElasticSettings
from robotid_ros.files.configuration import Configuration
from robotid_ros.nodes.common.messages import status
from robotid_ros.nodes.doctor import recording_checks
from robotid_ros.nodes.doctor.controller_manager import state_from_answers, states_by_diagnostics
from robotid_ros.nodes.doctor.diagnose import diagnose
from robotid_ros.nodes.doctor.findings import Finding, Severity
from robotid_ros.nodes.doctor.graph_snapshot import (
    ControllerStates,
    Disk,
    Endpoint,
    GraphSnapshot,
    ManagerState,
    Topic,
)
from robotid_ros.nodes.doctor.weight_checks import effort_kind

from .conftest import controller, EPOCH, PERIOD, topics, URDF, WEIGHT

N = 500
OTHER = Endpoint('/other')


def told(snapshot: GraphSnapshot, severity: str, subject: str, says: str) -> list[Finding]:
    """Return the findings of a severity and subject that say something."""
    found = diagnose(snapshot)
    of_kind = [f for f in found if (f.severity.name, f.subject) == (severity, subject)]
    matching = [finding for finding in of_kind if re.search(says, finding.text)]
    assert matching, '\n'.join(map(str, found))
    return matching


def test_a_healthy_robot_is_fine(snapshot: Callable[..., GraphSnapshot]):
    found = diagnose(snapshot())
    assert {finding.severity for finding in found} == {Severity.OK}
    subjects = {finding.subject for finding in found}
    assert {'controller', 'DIDIM', 'timing', 'clock', 'efforts', 'description'} <= subjects


def test_the_worst_comes_first(snapshot: Callable[..., GraphSnapshot]):
    found = diagnose(snapshot(manager=None, malformed=3, controller_states=None))
    severities = [finding.severity for finding in found]
    assert severities == sorted(severities, reverse=True)
    assert set(severities) == set(Severity)


TOPIC = topics()
SILENT = {'controller_states': None, 'joint_states': (), 'descriptions': ()}
MANAGER = ManagerState(
    {'arm_controller': 'inactive', 'position_controller': 'active', 'jsb': 'active'},
    {'arm': 'active'},
    claimed={'position_controller': ('joint2/position',)},
)


@pytest.mark.parametrize(
    ('changes', 'severity', 'subject', 'says'),
    [
        ({'nodes': ()}, 'ERROR', 'network', 'no other node is heard in ROS domain 0'),
        (SILENT, 'ERROR', 'network', "'/joint_states' and '/arm_con.* and '/robot_desc"),
        (
            {'environment': {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'HERE'}},
            'ERROR', 'network', "is 'HERE': set it to one of SUBNET",
        ),
        ({'environment': {}}, 'NOTE', 'network', 'anybody on the network may command'),
        ({'environment': {'ROS_LOCALHOST_ONLY': '1'}}, 'NOTE', 'network', 'overrules ROS_AUTO'),
        (
            {'controller': None, 'candidates': ('left', '/arm2/right')},
            'ERROR', 'controller', "no controller 'arm_controller', but left, /arm2/right",
        ),
        ({'controller': None, 'candidates': ()}, 'ERROR', 'controller', 'nobody serves'),
        (
            {'controller': None},
            'ERROR', 'controller', 'does not say which joints',
        ),
        ({'name_was_given': False}, 'NOTE', 'controller', 'set excitation.controller to arm_c'),
        (
            {'controller_states': ControllerStates(EPOCH + 4_000_000 * np.arange(100), True)},
            'NOTE', 'timing', 'updates at 500 Hz, its states arrive at 250 Hz',
        ),
        ({'candidates': ()}, 'ERROR', 'controller', 'does not serve follow_joint_trajectory'),
        ({'controller_states': None}, 'ERROR', 'controller', "silent, the controller is 'active'"),
        (
            {'controller': controller(gains={})},
            'ERROR', 'controller', r'no proportional gain .*: set gains\.zjoint\.p',
        ),
        ({'controller': controller(gains={})}, 'NOTE', 'DIDIM', 'DIDIM lacks the gains of zj'),
        (
            {'controller': controller(command_interfaces=('position',))},
            'NOTE', 'DIDIM', 'needs effort commands, .* commands position',
        ),
        (
            {'controller': controller(values={'constraints.joint2.trajectory': 0.1})},
            'WARNING', 'controller', 'no path tolerance for zjoint, joint3, so that the robot r',
        ),
        ({'manager': None}, 'NOTE', 'hardware', ''),
        ({'manager': MANAGER}, 'ERROR', 'controller', "'inactive', and 'position_controller' ha"),
        (
            {'manager': ManagerState({}, {'arm': 'unconfigured'})},
            'ERROR', 'hardware', "hardware 'arm' is 'unconfigured'",
        ),
        (
            {'manager': ManagerState({'jsb': 'inactive'}, types={
                'jsb': 'joint_state_broadcaster/JointStateBroadcaster'})},
            'WARNING', 'hardware', "'jsb', which publishes joint states, is 'inactive'",
        ),
        ({'manager': ManagerState(obstacle='why')}, 'NOTE', 'hardware', 'not checked, why'),
        ({'joint_states': ()}, 'ERROR', 'joint states', 'silent though /robot publishes it'),
        (
            {'joint_states': (), 'joint_state_topics': ('/franka/joint_states',),
             'topics': topics(joint_states=Topic('/joint_states'))},
            'ERROR', 'joint states', 'nobody publishes .*, there is /franka/joint_states',
        ),
        ({'malformed': 2}, 'WARNING', 'joint states', '2 joint states name a joint twice'),
        (
            {'controller': controller(joints=('zjoint', 'joint9'))},
            'ERROR', 'joint states', 'the joint states lack joint9, they name zjoint',
        ),
        (
            {'topics': topics(joint_states=Topic('/joint_states', (OTHER, Endpoint('/two'))))},
            'WARNING', 'joint states', '2 publishers send the same joints',
        ),
        ({'descriptions': ()}, 'ERROR', 'description', 'holds nothing though /robot'),
        ({'descriptions': ('<robot',)}, 'ERROR', 'description', 'not valid XML'),
        ({'descriptions': (URDF, '<a/>')}, 'WARNING', 'description', '2 different descr'),
        (
            {'descriptions': (URDF.replace('velocity="3"', 'velocity="0"'),)},
            'WARNING', 'description', 'no velocity limit of zjoint, joint2, joint3',
        ),
        (
            {'descriptions': (), 'configured_description': URDF},
            'NOTE', 'description', 'the configured robot.urdf is taken',
        ),
        (
            {'controller': controller(joints=('zjoint', 'joint2', 'a'))},
            'ERROR', 'description', "unknown movable joint of the URDF 'a'",
        ),
        (
            {'topics': topics(joint_trajectory=Topic('/arm/jt', (OTHER,)))},
            'ERROR', 'other clients', "/other can command 'arm_controller' on '/arm/jt'",
        ),
        ({'running_goals': 1}, 'ERROR', 'other clients', 'a goal of another client runs'),
        (
            {'running_goals': 1, 'topics': topics(excitation_session=Topic('s', (OTHER,)))},
            'WARNING', 'other clients', "a session of /other uses 'arm_controller'",
        ),
        (
            {'topics': topics(goals=Topic('g', (), (OTHER,)))},
            'NOTE', 'other clients', '/other can send goals',
        ),
        (
            {'topics': topics(joint_states=Topic('j', (Endpoint('/a', '', False),), (OTHER,)))},
            'WARNING', 'topics', '/other hears nothing of /a on .*reliable messages',
        ),
        (
            {'topics': topics(robot_description=Topic('d', (Endpoint('/a'),)))},
            'WARNING', 'topics', "/a does not keep 'd' for nodes that start later",
        ),
        (
            {'topics': topics(joint_states=Topic('j', (Endpoint('/a', 'std_msgs/msg/String'),)))},
            'ERROR', 'topics', '/a publishes std_msgs/msg/String',
        ),
        ({'disk': Disk('/x', "'/x' may not be written to")}, 'ERROR', 'disk', 'may not be wri'),
        ({'disk': Disk('/x', '', 10**9)}, 'WARNING', 'disk', '1.0 GB are free'),
        ({'disk': Disk('/x', '', 10**8)}, 'ERROR', 'disk', '0.1 GB are free'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(
    snapshot: Callable[..., GraphSnapshot], changes: dict, severity: str, subject: str, says: str
):
    told(snapshot(**changes), severity, subject, says)


def at(index: int, value: float) -> np.ndarray:
    """Return efforts of a robot at rest, with one joint replaced."""
    effort = WEIGHT + 0.02 * np.random.default_rng(4).normal(size=(N, 3))
    effort[:, index] = value
    return effort


NAN = np.full((N, 3), np.nan)
STILL = np.zeros((N, 3))
STAMP = EPOCH + PERIOD * np.arange(N)
SLOW = EPOCH + 20 * (STAMP - EPOCH)
GAPS = STAMP + PERIOD * (np.arange(N) // 4)


@pytest.mark.parametrize(
    ('changes', 'severity', 'subject', 'says'),
    [
        ({'position': NAN}, 'ERROR', 'joint states', 'position of zjoint, joint2, joint3 is not'),
        ({'velocity': at(1, np.nan)}, 'ERROR', 'joint states', 'velocity of joint2 is not a numb'),
        ({'velocity': NAN}, 'NOTE', 'joint states', 'hold no velocity'),
        (
            {'position': STILL, 'velocity': STILL, 'effort': STILL + WEIGHT + 0.001},
            'WARNING', 'joint states', 'never change by a single bit',
        ),
        ({'effort': NAN}, 'WARNING', 'efforts', 'what the controller commands is taken for it'),
        ({'effort': at(2, np.nan)}, 'ERROR', 'efforts', 'effort of joint3 is not a number'),
        ({'effort': STILL}, 'WARNING', 'efforts', '0: what the controller commands is taken for'),
        ({'effort': 0.0 * at(2, np.nan)}, 'WARNING', 'efforts', 'an effort of exactly 0: what'),
        ({'effort': at(1, 0.0)}, 'WARNING', 'efforts', 'effort of joint2 is exactly zero'),
        (
            {'effort': at(1, 10.0)},
            'WARNING', 'efforts', r'opposite to the weight, joint2 10 \(description: -9.81 N·m\)',
        ),
        ({'effort': at(1, -80.0)}, 'WARNING', 'efforts', r'do not fit the weight, joint2 -80'),
        (
            {'effort': at(0, 9.0)},
            'WARNING', 'efforts', r'more than weight and friction, zjoint 9 \(description: 0 N·m',
        ),
        (
            {'effort': 0.02 * np.random.default_rng(5).normal(size=(N, 3))},
            'WARNING', 'efforts', 'hold no weight, joint2 .*without_gravity',
        ),
        (
            {'position': np.linspace(0, 0.1, N)[:, None] * np.ones(3)},
            'NOTE', 'efforts', 'moves, so that efforts are not compared',
        ),
        (
            {'position': np.array([0.0, np.pi / 2, 0.0]) + 1e-5 * at(0, 0.0)},
            'NOTE', 'efforts', 'no joint bears a weight that would show',
        ),
        ({'stamp': 0 * STAMP}, 'ERROR', 'timing', '500 of 500 stamps are zero'),
        ({'stamp': 0 * STAMP + EPOCH}, 'ERROR', 'timing', 'never advance'),
        ({'stamp': STAMP // 4_000_000 * 4_000_000}, 'WARNING', 'timing', '250 of 500 stamps rep'),
        (
            {'stamp': np.where(np.arange(N) == 9, STAMP - 10 * PERIOD, STAMP)},
            'WARNING', 'timing', '1 jump back',
        ),
        ({'stamp': SLOW, 'received': SLOW}, 'WARNING', 'timing', 'states come at 25 Hz'),
        (
            {'stamp': STAMP + PERIOD * (np.arange(N) // 100)},
            'NOTE', 'timing', r'0\.8 % of the joint states are lost, the longest gap is 4 ms',
        ),
        (
            {'stamp': GAPS, 'received': GAPS},
            'WARNING', 'timing', r'19\.9 % of the joint states are lost',
        ),
        (
            {'stamp': STAMP + np.where(np.arange(N) % 2, 10**6, 0)},
            'WARNING', 'timing', r'the stamps jitter by 1\.00 ms',
        ),
        ({'received': STAMP + 10**9}, 'WARNING', 'clock', '1 s behind the clock of this machine'),
        ({'received': STAMP - 10**9}, 'WARNING', 'clock', '1 s ahead of the clock'),
    ],
)  # fmt: skip
def test_what_is_wrong_with_states_is_told(
    snapshot: Callable[..., GraphSnapshot],
    stream: Callable,
    changes: dict,
    severity: str,
    subject: str,
    says: str,
):
    found = snapshot(joint_states=(stream(**changes),))
    told(found, severity, subject, says)
    others = [f for f in diagnose(found) if f.severity > Severity.NOTE and f.subject != subject]
    assert not others


def test_every_finding_that_is_not_fine_says_what_to_do(snapshot: Callable[..., GraphSnapshot]):
    found = diagnose(snapshot(manager=MANAGER, joint_states=(), descriptions=(), controller=None))
    assert all(finding.remedy for finding in found if finding.severity > Severity.NOTE)


def test_one_joint_that_stands_still_to_the_last_bit_is_noted(
    snapshot: Callable[..., GraphSnapshot], stream: Callable
):
    states = stream()
    frozen = np.where(np.arange(3) == 1, 0.0, states.position)
    velocity = np.where(np.arange(3) == 1, 0.0, states.velocity)
    found = snapshot(joint_states=(stream(position=frozen, velocity=velocity),))
    told(found, 'NOTE', 'joint states', 'position and velocity of joint2 never change')


def test_without_any_effort_nothing_can_be_identified(
    snapshot: Callable[..., GraphSnapshot], stream: Callable
):
    found = snapshot(
        joint_states=(stream(effort=NAN),), controller_states=ControllerStates(np.array([EPOCH]))
    )
    told(found, 'ERROR', 'efforts', 'report no effort, and none is commanded')
    found = dataclasses.replace(found, joint_states=(stream(effort=STILL),))
    told(found, 'ERROR', 'efforts', 'exactly zero though the arm bears its weight: nothing can')


def test_a_drive_gain_of_the_configuration_counts(
    snapshot: Callable[..., GraphSnapshot], stream: Callable
):
    gain = (1.0, -1.0, 50.0)
    states = stream(effort=WEIGHT / gain + 0.001 * np.random.default_rng(6).normal(size=(N, 3)))
    configuration = Configuration(robot=RobotSettings(drive_gain=gain))
    found = diagnose(snapshot(configuration=configuration, joint_states=(states,)))
    assert {finding.severity for finding in found} == {Severity.OK}
    told(snapshot(joint_states=(states,)), 'WARNING', 'efforts', 'opposite to the weight, joint2')


@pytest.mark.parametrize(
    ('effort', 'kind'),
    [
        (at(0, 0.0), 'joint_torque'),
        (at(0, 0.0) - WEIGHT, 'without_gravity'),
        (-at(0, 0.0), 'auto'),
        (NAN, 'auto'),
        (STILL, 'auto'),
    ],
)
def test_the_kind_of_effort_shows_at_rest(
    snapshot: Callable[..., GraphSnapshot], stream: Callable, effort: np.ndarray, kind: str
):
    assert effort_kind(snapshot(joint_states=(stream(effort=effort),))) == kind


def test_joints_that_are_not_meant_count_where_they_stand(
    snapshot: Callable[..., GraphSnapshot], stream: Callable
):
    """With joint3 folded back by 90°, its link loads joint2 by less."""
    position = stream().position + np.array([0.0, 0.0, np.pi / 2])
    effort = stream().effort + np.array([0.0, 2 * 9.81 * 0.1, 0.0])
    configuration = Configuration(robot=RobotSettings(joints=('zjoint', 'joint2')))
    found = snapshot(
        configuration=configuration,
        controller=controller(joints=('zjoint', 'joint2')),
        joint_states=(stream(position=position, effort=effort),),
    )
    fine = told(found, 'OK', 'efforts', 'agree at rest with the weight')
    values = re.findall(r'joint2 (-[\d.]+) \(description: (-[\d.]+)', fine[0].text)
    assert np.allclose(*map(float, values[0]), rtol=0.01)


def test_stamps_are_compared_with_simulated_time(
    snapshot: Callable[..., GraphSnapshot], stream: Callable
):
    states = stream()
    clock = np.stack([states.received, states.stamp - EPOCH + 500_000])
    simulated = stream(stamp=states.stamp - EPOCH + PERIOD)
    assert not told(
        snapshot(joint_states=(simulated,), clock=clock), 'OK', 'clock', 'agree with /clock'
    )[0].remedy
    told(snapshot(joint_states=(simulated,)), 'WARNING', 'clock', 'behind the clock of this')


def test_motors_behind_springs_are_asked_for(snapshot: Callable[..., GraphSnapshot]):
    elastic = ElasticSettings(joints=('joint2',))
    configuration = Configuration(robot=RobotSettings(elastic=elastic))
    told(
        snapshot(configuration=configuration),
        'ERROR', 'joint states', 'the joint states lack joint2_motor',
    )  # fmt: skip


def test_one_silent_topic_is_no_fault_of_the_network(snapshot: Callable[..., GraphSnapshot]):
    goals = Topic('goals', (Endpoint('/robot'),))
    silent = {'goals': goals, 'joint_states': topics()['joint_states']}
    found = diagnose(snapshot(**SILENT, topics=silent, controller=None, candidates=()))
    assert not [f for f in found if f.subject == 'network' and f.severity == Severity.ERROR]


def test_publishers_of_different_joints_are_no_rivals(
    snapshot: Callable[..., GraphSnapshot], stream: Callable
):
    two = topics(joint_states=Topic('/joint_states', (OTHER, Endpoint('/robot'))))
    gripper = stream(joints=('a', 'b', 'c'))
    found = diagnose(snapshot(topics=two, joint_states=(stream(), gripper)))
    assert max(finding.severity for finding in found) == Severity.OK


def test_controller_manager_is_understood():
    one = SimpleNamespace(name='a', state='active', type='t', claimed_interfaces=['j/effort'])
    component = SimpleNamespace(name='arm', state=SimpleNamespace(label='inactive'))
    state = state_from_answers([one], [component], 500.0)
    assert (state.controllers, state.hardware) == ({'a': 'active'}, {'arm': 'inactive'})
    assert (state.claimed, state.rate) == ({'a': ('j/effort',)}, 500.0)


def test_diagnostics_tell_the_states_where_services_cannot_be_asked():
    statuses = [
        status('controller_manager: Controllers Activity', '', {'a.state': 'active', 'b': 'x'}),
        status('controller_manager: Hardware Components Activity', '', {'arm': 'inactive'}),
        status('other: Controllers Activity', '', {'c': 'active'}, level=DiagnosticStatus.ERROR),
    ]
    assert states_by_diagnostics(statuses) == ({'a': 'active'}, {'arm': 'inactive'})


def test_the_folder_of_recordings_is_looked_at(tmp_path: Path):
    assert recording_checks.look_at_disk(str(tmp_path / 'new')).free > 0
    (tmp_path / 'file').touch()
    assert (
        'is a file, not a folder'
        in recording_checks.look_at_disk(str(tmp_path / 'file' / 'new')).obstacle
    )
    assert not (tmp_path / 'new').exists()
