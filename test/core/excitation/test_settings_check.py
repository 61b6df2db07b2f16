"""What cannot be designed is refused with the reason; what can, however odd, is not."""

from dataclasses import replace

import numpy as np
import pytest

from robotid_ros.core.excitation.design import design
from robotid_ros.core.excitation.settings import Obstacle, Workspace
from robotid_ros.exceptions import (
    CollisionError,
    ConfigurationError,
    LimitError,
    TrajectoryError,
    UnknownNameError,
)

from .robots import FREE, NONE, quick, robot_named, worst


def refused(name, error, words, **changes):
    with pytest.raises(error, match=words):
        design(robot_named(name), quick(**changes))


def test_refuses_start_outside_limits():
    refused('scara', LimitError, 'position of joint_2', start=(0.0, 9.0))


def test_refuses_start_that_cannot_be_held():
    robot = robot_named('arm3')
    weak = replace(robot, limits=replace(robot.limits, effort=np.array([5.0, 0.5, 0.5])))
    with pytest.raises(LimitError, match='effort of joint_2'):
        design(weak, quick(start=(0.0, -np.pi / 2.0, 0.0)))


def test_refuses_start_in_collision():
    ball = Obstacle('sphere', (0.0, 0.0, 0.8), size=(1.0,))
    workspace = Workspace(obstacles={'ball': ball})
    refused('arm3', CollisionError, 'ball', start=(0.0, 0.0, 0.0), workspace=workspace)


def test_refuses_start_outside_the_tool_box():
    workspace = Workspace(lower=(5.0, 5.0, 5.0), upper=(6.0, 6.0, 6.0))
    refused('arm3', CollisionError, 'leaves its box', start=(0.0, 0.3, 0.3), workspace=workspace)


def test_refuses_limits_that_leave_no_motion():
    robot = robot_named('arm3')
    weak = replace(robot, limits=replace(robot.limits, effort=np.full(3, 1e-3)))
    with pytest.raises(TrajectoryError, match='no room for any motion'):
        design(weak, quick(iterations=2))


@pytest.mark.parametrize('quantity', ['velocity', 'effort'])
@pytest.mark.parametrize('value', [0.0, np.inf])
def test_refuses_missing_limits(quantity, value):
    robot = robot_named('scara')
    limits = replace(robot.limits, **{quantity: np.array([1.0, value])})
    with pytest.raises(ConfigurationError, match=f'joint_2 has no {quantity} limit'):
        design(replace(robot, limits=limits), quick())


@pytest.mark.parametrize(
    ('changes', 'error', 'words'),
    [
        ({'start': (0.0,)}, ConfigurationError, 'one per joint'),
        ({'start': (0.0, np.nan)}, ConfigurationError, 'start.* not finite'),
        ({'period': np.inf}, TrajectoryError, 'not finite'),
        ({'workspace': Workspace(lower=(np.nan, 0.0, 0.0))}, ConfigurationError, 'three numbers'),
        ({'workspace': Workspace(frame='hand')}, UnknownNameError, 'hand'),
        ({'workspace': Workspace(lower=(0.0,))}, ConfigurationError, 'three numbers'),
        ({'workspace': Workspace(ignored_pairs=('a/b',))}, ConfigurationError, 'a/b'),
    ],
)
def test_refuses_settings_that_do_not_fit(changes, error, words):
    refused('scara', error, words, **changes)


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'size': (-1.0, 1.0, 1.0)}, 'ball.size.* above zero'),
        ({'size': (1.0,)}, 'ball.size.* needs 3'),
        ({'position': (np.nan, 0.0, 0.0)}, 'ball.position.* finite'),
    ],
)
def test_refuses_obstacles_that_are_none(changes, words):
    workspace = Workspace(obstacles={'ball': Obstacle(**changes)})
    refused('arm3', ConfigurationError, words, workspace=workspace)


def test_refuses_a_ground_above_the_robot():
    words = r'link_\d is below the ground .* lower excitation.workspace.ground'
    for name in 'arm3', 'scara':  # which has no third joint
        refused(name, ConfigurationError, words, workspace=Workspace(ground=2.0))


def test_refuses_a_place_without_a_free_configuration():
    ball = Obstacle('sphere', (0.0, 0.0, 0.3), size=(3.0,))
    workspace = Workspace(obstacles={'ball': ball})
    refused('arm3', TrajectoryError, 'no room for any motion', workspace=workspace)


@pytest.mark.parametrize('period', [1e-3, 0.1])
def test_refuses_a_period_too_short_to_move(period):
    words = 'distinguishes the 61 columns: lengthen excitation.period'
    refused('tx40', TrajectoryError, words, period=period, validation=NONE, workspace=FREE)


@pytest.mark.parametrize('value', [np.nan, -1.0])
@pytest.mark.parametrize('quantity', ['velocity', 'acceleration', 'jerk', 'effort'])
def test_refuses_limits_that_are_none(quantity, value):
    robot = robot_named('scara')
    limits = replace(robot.limits, **{quantity: np.array([1.0, value])})
    with pytest.raises(ConfigurationError, match=f'the {quantity} limit of joint_2 is'):
        design(replace(robot, limits=limits), quick())


def test_refuses_position_limits_that_are_not_numbers():
    robot = robot_named('scara')
    limits = replace(robot.limits, upper=np.array([1.0, np.nan]))
    with pytest.raises(ConfigurationError, match='the upper limit of joint_2 is nan'):
        design(replace(robot, limits=limits), quick())


def test_gravity_may_point_anywhere():
    """A robot on a wall: other torques, the same limits kept."""
    robot = robot_named('arm3')
    model = robot.model.copy()
    model.gravity.linear = np.array([9.81, 0.0, 0.0])
    wall, excitation = replace(robot, model=model), quick(validation=NONE, workspace=FREE)
    trajectory = design(wall, excitation).trajectory
    assert trajectory != design(robot, excitation).trajectory
    assert worst(wall, trajectory, excitation)['effort'].max() <= 1.0


def test_joint_without_position_limits_gets_a_bound():
    robot = robot_named('scara')
    free = np.full(2, np.inf)
    endless = replace(robot, limits=replace(robot.limits, lower=-free, upper=free))
    result = design(endless, quick(amplitude=1.0, validation=NONE))
    assert np.abs(result.trajectory.sample(np.linspace(0, 8, 999)).q).max() <= 1.0


def test_refuses_a_lower_limit_above_the_upper():
    robot = robot_named('scara')
    limits = replace(robot.limits, lower=np.array([-1.0, 2.0]), upper=np.array([1.0, -2.0]))
    words = 'joint_2 has a lower limit 2 that is not below its upper limit -2: correct robot.lower'
    with pytest.raises(ConfigurationError, match=words):
        design(replace(robot, limits=limits), quick())


def test_refuses_a_start_within_the_margins_of_its_limits():
    """The range is open, but what the margins leave of it is not where the start is."""
    robot = robot_named('scara')
    edge = float(robot.limits.upper[1]) - 1e-3
    with pytest.raises(LimitError, match='position of joint_2'):
        design(robot, quick(start=(0.0, edge)))


@pytest.mark.parametrize('quantity', ['velocity', 'acceleration', 'jerk'])
def test_limits_too_tight_to_excite_well_are_kept(quantity):
    """A slow robot is no reason to refuse: its trajectory is slow, and its figures say so."""
    robot, excitation = robot_named('arm3'), quick(iterations=3, validation=NONE, workspace=FREE)
    slowest = replace(robot, limits=replace(robot.limits, **{quantity: np.full(3, 1e-4)}))
    with pytest.raises(TrajectoryError, match='loosen the limits'):
        design(slowest, excitation)
    slow = replace(robot, limits=replace(robot.limits, **{quantity: np.full(3, 0.05)}))
    result = design(slow, excitation)
    assert max(getattr(result.usage, quantity)) <= 1.0
    fast = design(robot, excitation)
    assert result.condition_numbers['raw'] > 10.0 * fast.condition_numbers['raw']


def test_refuses_a_start_in_self_collision():
    folded = (0.0, -1.57, 3.0, 0.0, 0.0, 0.0)
    words = r'link_\w+ and \w+ are -?\d+\.\d+ m apart at 0.000 s, less than 0.1 m: move the start'
    workspace = Workspace(distance=0.1)
    refused('ur10', CollisionError, words, start=folded, workspace=workspace)


def test_refuses_a_tool_box_without_inside():
    workspace = Workspace(lower=(0.0, 0.0, 1.0), upper=(1.0, 1.0, 0.5))
    words = 'excitation.workspace.lower must be below excitation.workspace.upper'
    refused('arm3', ConfigurationError, words, workspace=workspace)
