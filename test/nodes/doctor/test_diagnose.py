"""What is wrong with a graph is found in a snapshot of it, and nothing else is."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from robotid_ros.core.findings import CODES, seen_and_remedy, Severity
from robotid_ros.nodes.doctor import graph_snapshot
from robotid_ros.nodes.doctor.diagnose import diagnose, subject_of
from robotid_ros.nodes.doctor.graph_snapshot import Endpoint, GraphSnapshot, Topic

from .conftest import controller, EPOCH, JOINTS, manager, told, topics, URDF

OTHER = Endpoint('/other')


def test_a_healthy_robot_is_fine(snapshot: Callable[..., GraphSnapshot]):
    found = diagnose(snapshot())
    assert {finding.severity for finding in found} == {Severity.OK}
    subjects = {subject_of(finding) for finding in found}
    assert {'controller', 'DIDIM', 'timing', 'clock', 'efforts', 'description'} <= subjects


def test_settings_that_are_right_are_not_told(snapshot: Callable[..., GraphSnapshot]):
    values = {
        'constraints.decelerate_on_cancel': True,
        **{f'constraints.{j}.max_deceleration_on_cancel': 3.0 for j in JOINTS},
        **{f'constraints.{j}.trajectory': 0.1 for j in JOINTS},
        **{f'constraints.{j}.goal': 0.1 for j in JOINTS},
        **{'constraints.goal_time': 1.0, LAST: True, 'open_loop_control': False},
        # With position commands this keeps the reference from jumping.
        'interpolate_from_desired_state': True,
    }
    for rate, rates in ((500.0, 500.0), (333.0, 1000.0), (500.0, 1000.0), (0.0, 1000.0)):
        found = diagnose(
            snapshot(
                controller=controller(values=values, rate=rate),
                manager=manager({'arm_controller': 'active'}, {'arm': 'active'}, rate=rates),
            )
        )
        assert max(finding.severity for finding in found) == Severity.OK, found


def test_the_worst_comes_first(snapshot: Callable[..., GraphSnapshot]):
    found = diagnose(snapshot(manager=None, malformed=3, controller_states=None))
    severities = [finding.severity for finding in found]
    assert severities == sorted(severities, reverse=True)
    assert set(severities) == set(Severity)


TOPIC = topics()
LAST = 'set_last_command_interface_value_as_state_on_activation'
SILENT = {'controller_states': None, 'joint_states': (), 'descriptions': ()}
MANAGER = manager(
    {'arm_controller': 'inactive', 'position_controller': 'active', 'jsb': 'active'},
    {'arm': 'active'},
    claimed={'position_controller': ['joint2/position']},
)


@pytest.mark.parametrize(
    ('changes', 'severity', 'name', 'expected'),
    [
        ({'nodes': ()}, 'ERROR', 'no_nodes', {'domain': '0'}),
        (
            SILENT,
            'ERROR',
            'no_messages',
            {
                'topics': (
                    '/joint_states',
                    '/arm_controller/controller_state',
                    '/robot_description',
                )
            },
        ),
        ({'environment': {}}, 'INFO', 'open_network', {}),
        ({'environment': {'ROS_LOCALHOST_ONLY': '1'}}, 'INFO', 'localhost_only', {}),
        (
            {'controller': None, 'candidates': ('left', '/arm2/right')},
            'ERROR',
            'other_controllers',
            {'others': ('left', '/arm2/right')},
        ),
        ({'controller': None, 'candidates': ()}, 'ERROR', 'no_controller', {}),
        (
            {'controller': None},
            'ERROR',
            'controller_mute',
            {},
        ),
        ({'name_was_given': False}, 'INFO', 'controller_not_named', {}),
        (
            {'controller_states': EPOCH + 4_000_000 * np.arange(100)},
            'INFO',
            'slow_controller_states',
            {'update': 500.0, 'rate': 250.0},
        ),
        ({'candidates': ()}, 'ERROR', 'not_serving', {}),
        ({'controller_states': None}, 'ERROR', 'controller_silent', {'state': 'active'}),
        (
            {'controller': controller(gains={})},
            'ERROR',
            'controller_unfit',
            {},
        ),
        (
            {'controller': controller(gains={})},
            'INFO',
            'didim_gains',
            {'joints': ('zjoint', 'joint2', 'joint3')},
        ),
        (
            {'controller': controller(command_interfaces=('position',))},
            'INFO',
            'didim_commands',
            {'interfaces': ('position',)},
        ),
        (
            {'controller': controller(values={'constraints.joint2.trajectory': 0.1})},
            'WARNING',
            'no_path_tolerance',
            {'joints': ('zjoint', 'joint3')},
        ),
        (
            {'controller': controller(values={'constraints.decelerate_on_cancel': False})},
            'INFO',
            'stops_at_once',
            {},
        ),
        (
            {
                'controller': controller(
                    values={
                        'constraints.decelerate_on_cancel': True,
                        'constraints.zjoint.max_deceleration_on_cancel': 3.0,
                        'constraints.joint2.max_deceleration_on_cancel': 0.0,
                    }
                )
            },
            'WARNING',
            'no_deceleration',
            {'joints': ('joint2', 'joint3')},
        ),
        (
            {'controller': controller(values={LAST: True}, command_interfaces=('position',))},
            'INFO',
            'starts_at_last_command',
            {},
        ),
        (
            {'controller': controller(values={'open_loop_control': True})},
            'WARNING',
            'open_loop',
            {},
        ),
        (
            {'controller': controller(values={'allow_nonzero_velocity_at_trajectory_end': True})},
            'INFO',
            'ends_in_motion',
            {},
        ),
        (
            {
                'controller': controller(
                    values={'constraints.goal_time': 0.0, 'constraints.joint2.goal': 0.1}
                )
            },
            'INFO',
            'waits_for_goal',
            {'joints': ('joint2',)},
        ),
        (
            {
                'controller': controller(rate=300.0),
                'manager': manager({'arm_controller': 'active'}, rate=1000.0),
            },
            'WARNING',
            'uneven_updates',
            {'update': 300.0, 'manager': 1000.0, 'better': 333},
        ),
        ({'manager': None}, 'INFO', 'no_manager', {}),
        (
            {'manager': MANAGER},
            'ERROR',
            'joints_taken',
            {'state': 'inactive', 'other': 'position_controller'},
        ),
        (
            {'manager': manager({}, {'arm': 'unconfigured'})},
            'ERROR',
            'hardware_inactive',
            {'hardware': 'arm', 'state': 'unconfigured'},
        ),
        (
            {
                'manager': manager(
                    {'jsb': 'inactive'}, kind='joint_state_broadcaster/JointStateBroadcaster'
                )
            },
            'WARNING',
            'broadcaster_inactive',
            {'controller': 'jsb', 'state': 'inactive'},
        ),
        (
            {'manager': manager({}, obstacle='why')},
            'INFO',
            'manager_unanswered',
            {'reason': 'why'},
        ),
        ({'joint_states': ()}, 'ERROR', 'states_silent', {'nodes': '/robot'}),
        (
            {
                'joint_states': (),
                'joint_state_topics': ('/franka/joint_states',),
                'topics': topics(joint_states=Topic('/joint_states')),
            },
            'ERROR',
            'no_states',
            {'others': ('/franka/joint_states',)},
        ),
        ({'malformed': 2}, 'WARNING', 'malformed_states', {'count': 2}),
        (
            {'controller': controller(joints=('zjoint', 'joint9'))},
            'ERROR',
            'joints_lacking',
            {'joints': ('joint9',), 'published': ('zjoint', 'joint2', 'joint3')},
        ),
        (
            {'topics': topics(joint_states=Topic('/joint_states', (OTHER, Endpoint('/two'))))},
            'WARNING',
            'rival_publishers',
            {'count': 2},
        ),
        ({'descriptions': ()}, 'ERROR', 'no_description', {'nodes': '/robot'}),
        ({'descriptions': ('<robot',)}, 'ERROR', 'description_unusable', {}),
        ({'descriptions': (URDF, '<a/>')}, 'WARNING', 'several_descriptions', {'count': 2}),
        (
            {'descriptions': (URDF.replace('velocity="3"', 'velocity="0"'),)},
            'WARNING',
            'no_limit',
            {'joints': ('zjoint', 'joint2', 'joint3'), 'limit': 'velocity'},
        ),
        (
            {'controller': controller(joints=('zjoint', 'joint2', 'a'))},
            'ERROR',
            'description_unusable',
            {},
        ),
        (
            {'topics': topics(joint_trajectory=Topic('/arm/jt', (OTHER,)))},
            'ERROR',
            'commanded_by_topic',
            {'nodes': '/other', 'topic': '/arm/jt'},
        ),
        ({'running_goals': 1}, 'ERROR', 'goal_runs', {}),
        (
            {'running_goals': 1, 'topics': topics(excitation_session=Topic('s', (OTHER,)))},
            'WARNING',
            'session_runs',
            {'nodes': '/other'},
        ),
        (
            {'topics': topics(goals=Topic('g', (), (OTHER,)))},
            'INFO',
            'other_clients',
            {'nodes': ('/other',)},
        ),
        (
            {'topics': topics(joint_states=Topic('j', (Endpoint('/a', False),), (OTHER,)))},
            'WARNING',
            'quality_mismatch',
            {'lacks': 'reliable messages', 'reader': '/other', 'publisher': '/a'},
        ),
        (
            {'topics': topics(robot_description=Topic('d', (Endpoint('/a'),)))},
            'WARNING',
            'not_latched',
            {'node': '/a', 'topic': 'd'},
        ),
        (
            {'free_space': "'/x' may not be written to"},
            'ERROR',
            'not_writable',
            {'reason': "'/x' may not be written to"},
        ),
        ({'free_space': 10**9}, 'WARNING', 'disk_space', {'free': 1.0}),
        ({'free_space': 10**8}, 'ERROR', 'disk_space', {'free': 0.1}),
    ],
)
def test_what_is_wrong_is_told(
    snapshot: Callable[..., GraphSnapshot], changes: dict, severity: str, name: str, expected: dict
):
    told(snapshot(**changes), severity, name, **expected)


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


def test_what_gazebo_makes_of_gains_and_friction_is_said(
    snapshot: Callable[..., GraphSnapshot],
):
    """Its bodies have no rotors; elsewhere a drive adds them, and nothing is said."""
    stiff = controller(gains={joint: {'p': 1e5, 'd': 1e3} for joint in JOINTS})
    damped = URDF.replace('<limit', '<dynamics damping="30" friction="1"/><limit')
    for in_gazebo in (True, False):
        plugin = 'gz_ros2_control/GazeboSimSystem' if in_gazebo else 'ur_robot_driver/Hardware'
        said = manager({'arm_controller': 'active'}, {'arm': 'active'}, plugin=plugin)
        found = diagnose(snapshot(controller=stiff, manager=said, descriptions=(damped,)))
        by_name = {CODES[f.code].name: f for f in found}
        assert ('unbearable_gains' in by_name) == ('gazebo_friction' in by_name) == in_gazebo
        assert not in_gazebo or 'joint3' in by_name['unbearable_gains'].joints


def test_the_folder_of_recordings_is_looked_at(tmp_path: Path):
    assert graph_snapshot.free_space(str(tmp_path / 'new')) > 0
    (tmp_path / 'file').touch()
    refused = graph_snapshot.free_space(str(tmp_path / 'file' / 'new'))
    assert 'is a file, not a folder' in refused
    assert not (tmp_path / 'new').exists()
