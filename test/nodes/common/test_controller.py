"""What a controller says of itself, and what is missing before a motion."""

import dataclasses
import math
from pathlib import Path
import re
from types import SimpleNamespace

import numpy as np
import pytest
import rclpy

from robotid_ros.core.replay.control_laws import control_law_of
from robotid_ros.core.signals.recording import Controller
from robotid_ros.exceptions import ControllerError, RobotStateError
from robotid_ros.nodes.common import controller as adapter
from robotid_ros.nodes.common.controller import (
    check_controller,
    ControllerClient,
    ControllerDescription,
    reference_positions,
)

ROBOT = SimpleNamespace(joints=('a', 'b'))
GOOD = ControllerDescription(
    name='arm',
    joints=('b', 'a'),
    command_interfaces=('effort',),
    state_interfaces=('position', 'velocity'),
    rate=500.0,
    gains={'a': {'p': 1.0}, 'b': {'p': 2.0}},
    values={},
)


@pytest.mark.parametrize(
    'changes',
    [
        {},
        {'command_interfaces': ('position',), 'state_interfaces': ('position',), 'gains': {}},
        {'command_interfaces': ('position', 'velocity'), 'gains': {}},
    ],
)
def test_controllers_that_can_run_a_session_pass(changes: dict):
    check_controller(dataclasses.replace(GOOD, **changes), ROBOT)


@pytest.mark.parametrize(
    ('changes', 'says'),
    [
        ({'joints': ('a', 'b', 'c')}, 'controls a, b, c, the configuration names a, b'),
        ({'joints': ('a',)}, 'controls a, the configuration names'),
        ({'state_interfaces': ('position',)}, 'lacks the state interface velocity'),
        ({'state_interfaces': ()}, 'position and velocity'),
        ({'gains': {'a': {'p': 1.0}, 'b': {'p': 0.0}}}, r'set gains\.b\.p'),
        ({'gains': {}}, 'no proportional gain for a, b'),
        ({'command_interfaces': ('velocity',), 'gains': {}}, 'no proportional gain'),
    ],
)
def test_others_are_told_what_they_lack(changes: dict, says: str):
    with pytest.raises(ControllerError, match=says):
        check_controller(dataclasses.replace(GOOD, **changes), ROBOT)


def test_gains_and_their_strategy_reach_the_replay():
    values = {
        'joints': ['a'],
        'command_interfaces': ['effort'],
        'update_rate': 500,
        'constraints.a.goal': 0.1,
        'gains.a.p': 10.0,
        'gains.a.i': 5,
        'gains.a.antiwindup_strategy': 'conditional_integration',
    }
    known = ControllerDescription.from_parameters('arm', values).to_dict()
    assert known['gains'] == {
        'a': {'p': 10.0, 'i': 5.0, 'antiwindup_conditional_integration': 1.0}
    }
    controller = Controller(
        known['name'], known['type'], known['rate'], ('a',), ('effort',), known['gains']
    )
    law = control_law_of(controller, ('a',), np.ones(1))
    assert (law.rate, law.conditional[0], law.integrates_after[0], law.tracking_rate[0]) == (
        500.0,
        1.0,
        1.0,
        0.0,
    )


@pytest.mark.parametrize('value', [math.nan, math.inf])
def test_what_is_no_number_is_not_sent(domain: int, value: float):
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain)
    controller = ControllerClient(rclpy.create_node('client', context=context), 'arm', 0.1)
    with pytest.raises(ControllerError, match=r'gains\.b\.p would not be a number'):
        controller.set({'gains.a.p': 1.0, 'gains.b.p': value})
    rclpy.shutdown(context=context)


def state(names, positions):
    return SimpleNamespace(joint_names=names, reference=SimpleNamespace(positions=positions))


def test_held_reference_is_in_the_robots_order():
    assert reference_positions(state(['x', 'b', 'a'], [9.0, 2.0, 1.0]), ROBOT.joints).tolist() == [
        1.0,
        2.0,
    ]


@pytest.mark.parametrize(
    'message', [state(['a'], [1.0]), state(['a', 'b'], []), state(['a', 'b'], [1.0, float('nan')])]
)
def test_no_motion_starts_from_an_unknown_reference(message: SimpleNamespace):
    with pytest.raises(RobotStateError, match='activate it'):
        reference_positions(message, ROBOT.joints)


@pytest.mark.parametrize(
    ('commands', 'says'),
    [
        (('effort',), ''),
        (('position',), 'takes no efforts'),
        (('velocity',), 'takes no efforts'),
        (('position', 'effort'), 'is not known here'),
        (('effort', 'velocity'), 'is not known here'),
    ],
)
def test_efforts_are_for_controllers_that_command_them_alone(commands, says: str):
    why = dataclasses.replace(GOOD, command_interfaces=commands).why_no_feed_forward
    assert bool(why) == bool(says)
    assert says in why
    chained = dataclasses.replace(GOOD, values={'command_joints': ['below/b', 'below/a']})
    assert "'arm' commands below" in chained.why_no_feed_forward
    assert not dataclasses.replace(GOOD, values={'command_joints': ['b', 'a']}).why_no_feed_forward


def test_what_a_controller_has_stands_in_the_adapter_alone():
    """Topics, services and the type of states; the simulated controller is another one."""
    names = re.compile(
        r'JointTrajectoryControllerState|[\'"/](controller_state|follow_joint_trajectory|'
        r'joint_trajectory|set_parameters_atomically)\b'
    )
    nodes, rooms = Path(adapter.__file__).parents[1], ('common', 'excitation', 'recorder')
    files = [path for room in rooms for path in (nodes / room).rglob('*.py')]
    found = {path.name for path in files if names.search(path.read_text())}
    assert found == {'controller.py'}
