"""What a configuration takes from a live graph, and what it cannot go without."""

import dataclasses

import pytest

from robotid_ros.exceptions import ControllerError, ModelError
from robotid_ros.nodes.doctor.diagnose import known_facts

from .conftest import JOINTS, URDF


def test_the_controller_and_the_efforts_tell_what_they_are(snapshot):
    text, facts = known_facts(snapshot())
    assert text == URDF
    assert facts.joints == JOINTS and facts.command_interface == 'effort'
    assert facts.effort_kind == 'joint_torque'
    assert all(gains['p'] > 0.0 for gains in facts.gains.values()) and len(facts.gains) == 3


@pytest.mark.parametrize(
    ('commands', 'followed'),
    [(('velocity',), 'velocity'), (('position', 'velocity'), 'position'), ((), 'effort')],
)
def test_drives_follow_one_of_what_is_commanded(snapshot, commands, followed):
    controller = dataclasses.replace(snapshot().controller, command_interfaces=commands)
    assert known_facts(snapshot(controller=controller))[1].command_interface == followed


@pytest.mark.parametrize(
    ('changes', 'error', 'says'),
    [
        ({'controller': None, 'candidates': ('left', 'right')}, ControllerError, 'left, right'),
        ({'controller': None, 'candidates': ()}, ControllerError, 'robotid doctor'),
        ({'descriptions': ()}, ModelError, 'no robot descriptions'),
        ({'descriptions': (URDF, f'{URDF} ')}, ModelError, '2 robot descriptions'),
    ],
)
def test_what_is_missing_is_one_sentence(snapshot, changes, error, says):
    with pytest.raises(error, match=says):
        known_facts(snapshot(**changes))
