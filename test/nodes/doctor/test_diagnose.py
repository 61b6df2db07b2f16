"""What is wrong with a graph is found in a snapshot of it, and nothing else is."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from diagnostic_msgs.msg import DiagnosticStatus
import numpy as np
import pytest

from robotid_ros.core.finding_codes import seen_and_remedy
from robotid_ros.core.findings import Severity
from robotid_ros.nodes.common.messages import status
from robotid_ros.nodes.doctor import network_checks
from robotid_ros.nodes.doctor.controller_manager import state_from_answers, states_by_diagnostics
from robotid_ros.nodes.doctor.diagnose import diagnose, subject_of
from robotid_ros.nodes.doctor.graph_snapshot import (
    ControllerStates,
    Disk,
    Endpoint,
    GraphSnapshot,
    ManagerState,
    Topic,
)

from .conftest import controller, EPOCH, told, topics, URDF

OTHER = Endpoint('/other')


def test_a_healthy_robot_is_fine(snapshot: Callable[..., GraphSnapshot]):
    found = diagnose(snapshot())
    assert {finding.severity for finding in found} == {Severity.OK}
    subjects = {subject_of(finding) for finding in found}
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
        (SILENT, 'ERROR', 'network', '/joint_states, /arm_con.*, /robot_desc'),
        (
            {'environment': {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'HERE'}},
            'ERROR', 'network', "is 'HERE'. Set it to one of SUBNET",
        ),
        ({'environment': {}}, 'INFO', 'network', 'anybody on the network may command'),
        ({'environment': {'ROS_LOCALHOST_ONLY': '1'}}, 'INFO', 'network', 'overrules ROS_AUTO'),
        (
            {'controller': None, 'candidates': ('left', '/arm2/right')},
            'ERROR', 'controller', "no controller 'arm_controller', but left, /arm2/right",
        ),
        ({'controller': None, 'candidates': ()}, 'ERROR', 'controller', 'nobody serves'),
        (
            {'controller': None},
            'ERROR', 'controller', 'does not say which joints',
        ),
        ({'name_was_given': False}, 'INFO', 'controller', 'set excitation.controller to arm_c'),
        (
            {'controller_states': ControllerStates(EPOCH + 4_000_000 * np.arange(100), True)},
            'INFO', 'timing', 'updates at 500 Hz, its states arrive at 250 Hz',
        ),
        ({'candidates': ()}, 'ERROR', 'controller', 'does not serve follow_joint_trajectory'),
        ({'controller_states': None}, 'ERROR', 'controller', "silent, the controller is 'active'"),
        (
            {'controller': controller(gains={})},
            'ERROR', 'controller', r'no proportional gain .*: set gains\.zjoint\.p',
        ),
        ({'controller': controller(gains={})}, 'INFO', 'DIDIM', 'DIDIM lacks the gains of zj'),
        (
            {'controller': controller(command_interfaces=('position',))},
            'INFO', 'DIDIM', 'needs effort commands, .* commands position',
        ),
        (
            {'controller': controller(values={'constraints.joint2.trajectory': 0.1})},
            'WARNING', 'controller', 'no path tolerance for zjoint, joint3, so that the robot r',
        ),
        ({'manager': None}, 'INFO', 'hardware', ''),
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
        ({'manager': ManagerState(obstacle='why')}, 'INFO', 'hardware', 'not checked, why'),
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
            'INFO', 'description', 'the configured robot.urdf is taken',
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
            'INFO', 'other clients', '/other can send goals',
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


def test_every_finding_that_is_not_fine_says_what_to_do(snapshot: Callable[..., GraphSnapshot]):
    found = diagnose(snapshot(manager=MANAGER, joint_states=(), descriptions=(), controller=None))
    bad = [finding for finding in found if finding.severity > Severity.INFO]
    assert all(seen_and_remedy(finding)[1] for finding in bad)


def test_one_silent_topic_is_no_fault_of_the_network(snapshot: Callable[..., GraphSnapshot]):
    goals = Topic('goals', (Endpoint('/robot'),))
    silent = {'goals': goals, 'joint_states': topics()['joint_states']}
    found = diagnose(snapshot(**SILENT, topics=silent, controller=None, candidates=()))
    assert not [f for f in found if subject_of(f) == 'network' and f.severity == Severity.ERROR]


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
    assert network_checks.look_at_disk(str(tmp_path / 'new')).free > 0
    (tmp_path / 'file').touch()
    assert (
        'is a file, not a folder'
        in network_checks.look_at_disk(str(tmp_path / 'file' / 'new')).obstacle
    )
    assert not (tmp_path / 'new').exists()
