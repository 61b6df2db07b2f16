"""Joints that mimic identified ones stand still in the model, which is told."""

import numpy as np
import pytest

from robotid_ros.core.excitation.design import design
from robotid_ros.core.excitation.settings import ExcitationSettings
from robotid_ros.core.findings import select
from robotid_ros.core.model import build_robot, inverse_dynamics, RobotSettings
from robotid_ros.exceptions import ConfigurationError

from ..setup.test_joint_selection import gripper

MIMIC = '<mimic joint="two" multiplier="-0.4" offset="0.05"/>'
NAMES = ('one', 'two', 'finger')


def built(text, **settings):
    return build_robot(text, RobotSettings(joints=NAMES, friction={'default': ()}, **settings))


def test_they_stand_where_their_leader_at_zero_puts_them():
    robot, locked = built(gripper(MIMIC)), built(gripper(''), locked={'follower': 0.05})
    (told,) = select(robot.warnings, 'followers_stand_still')
    assert told.joints == ('follower',) and robot.joints == robot.links == NAMES
    motion = np.random.default_rng(2).uniform(-1.0, 1.0, (3, 20, 3))
    expected = inverse_dynamics(locked, locked.prior, *motion)
    np.testing.assert_allclose(inverse_dynamics(robot, robot.prior, *motion), expected, atol=1e-12)


def test_a_place_that_is_configured_needs_no_finding():
    robot = built(gripper(MIMIC), locked={'follower': 0.1})
    assert not select(robot.warnings, 'followers_stand_still')


def test_planning_refuses_what_it_does_not_know():
    with pytest.raises(ConfigurationError, match=r'no motion can be planned while follower'):
        design(built(gripper(MIMIC)), ExcitationSettings())
