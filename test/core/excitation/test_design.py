"""Designs keep every limit, are reproducible, and the impossible is refused with the reason."""

from dataclasses import replace
import os
from pathlib import Path
import subprocess
import sys

from hypothesis import given, HealthCheck, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from robotid_ros.core.excitation import (
    check,
    Design,
    design,
    motion_limits,
    Trajectory,
    Waypoints,
    waypoints,
)
from robotid_ros.core.excitation.settings import Margins, Obstacle, Validation, Workspace
from robotid_ros.core.model import build_robot, inverse_dynamics
from robotid_ros.exceptions import (
    CollisionError,
    ConfigurationError,
    LimitError,
    TrajectoryError,
    UnknownNameError,
)
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.files.trajectory import read_design

from .robots import quick, robot_named

NONE = Validation(kind='none')
FREE = Workspace(self_collision=False)
CONFIG = Path(__file__).resolve().parents[3] / 'config'


def worst(robot, trajectory, excitation):
    """Largest shares of the limits at 1 kHz, by plain sampling: a second implementation."""
    limits = motion_limits(robot, excitation)
    t = np.arange(0.0, trajectory.period, 1e-3)
    q, dq, ddq = trajectory.sample(t)
    jerk = np.gradient(ddq, t, axis=0)[2:-2]
    tau = inverse_dynamics(robot, robot.prior, q, dq, ddq)
    half = 0.5 * (limits.upper - limits.lower)
    return {
        'position': (np.abs(q - 0.5 * (limits.lower + limits.upper)) / half).max(axis=0),
        'velocity': (np.abs(dq) / limits.velocity).max(axis=0),
        'acceleration': (np.abs(ddq) / limits.acceleration).max(axis=0),
        'jerk': (np.abs(jerk) / limits.jerk).max(axis=0),
        'effort': (np.abs(tau) / limits.effort).max(axis=0),
    }


@given(
    st.sampled_from(['emps', 'scara', 'arm3']),
    st.sampled_from(['mfs', 'bspline', 'quintic']),
    st.integers(2, 6),
    st.floats(2.0, 20.0),
    st.integers(0, 9999),
    st.floats(0.0, 0.2),
)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_designs_keep_all_limits(name, family, order, period, seed, margin):
    robot = robot_named(name)
    excitation = quick(
        family=family,
        order=order,
        period=period,
        seed=seed,
        iterations=4,
        margins=Margins(*(margin,) * 5),
        validation=NONE,
        workspace=FREE,
    )
    result = design(robot, excitation)
    for quantity, share in worst(robot, result.trajectory, excitation).items():
        assert share.max() <= 1.0 + 1e-6, quantity
        reported = np.array(getattr(result.usage, quantity))
        # The check is exact where sampling is not, and the other way round for finite differences.
        assert (share <= reported * (1.0 + 1e-3) + 1e-4).all(), quantity


@pytest.mark.parametrize('solver', ['gradient', 'genetic', 'hybrid'])
def test_same_seed_same_trajectory(solver):
    robot, excitation = robot_named('scara'), quick(solver=solver, iterations=4, workspace=FREE)
    one, two = design(robot, excitation), design(robot, excitation)
    other = design(robot, replace(excitation, seed=1))
    assert one.trajectory == two.trajectory
    assert one.validation == two.validation
    assert one.trajectory.hash not in (other.trajectory.hash, one.validation.hash)


@pytest.mark.parametrize('name', ['scara', 'arm3'])
def test_default_design_of_a_configuration_is_reproduced(name, tmp_path):
    """Two processes, one of them told to use more threads, make the same file of the same seed."""
    hashes, values = [], []
    for count in ('1', '4'):
        path = tmp_path / f'{count}.yaml'
        command = [sys.executable, '-m', 'robotid_ros.cli', 'design', str(CONFIG / f'{name}.yaml')]
        threads = dict.fromkeys(('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'), count)
        environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path), **threads}
        subprocess.run([*command, '-o', str(path)], check=True, env=environment)
        made = read_design(path)
        assert not any('stopped before its end' in note for note in made.notes)
        hashes.append((made.trajectory.hash, made.validation.hash))
        values.append(made.value)
    assert hashes[0] == hashes[1]
    stored = read_design(CONFIG / 'trajectories' / f'{name}.yaml')
    # Another processor rounds otherwise and may end elsewhere, but hardly worse.
    assert values[0] == pytest.approx(stored.value, rel=0.25)


@pytest.mark.parametrize('name', ['arm3', 'tx40', 'ur10'])
def test_search_improves_on_its_start(name):
    result = design(robot_named(name), quick(iterations=80, validation=NONE, workspace=FREE))
    values = [value for _, value in result.history]
    assert values == sorted(values, reverse=True)
    assert result.value <= values[0]
    start = design(robot_named(name), quick(iterations=1, validation=NONE, workspace=FREE))
    assert result.value < 0.9 * start.value


def test_figures_are_those_of_the_trajectory():
    robot = robot_named('arm3')
    result = design(robot, quick())
    singular = np.array(result.singular_values)
    assert result.condition_numbers['raw'] == pytest.approx(singular[0] / singular[-1], rel=1e-6)
    # The search sees a smoothed sign(dq) on fewer samples.
    assert result.value == pytest.approx(result.condition_numbers['raw'], rel=0.5)
    assert len(result.columns) == len(singular)
    assert Design.from_dict(result.to_dict()) == result


def test_start_and_columns_of_choice():
    robot = robot_named('scara')
    excitation = quick(start=(0.4, -0.3), columns=('ZZ2', 'Fv1', 'Fc2'))
    result = design(robot, excitation)
    np.testing.assert_array_equal(result.trajectory.start, [0.4, -0.3])
    assert result.columns == ('ZZ2', 'Fv1', 'Fc2')


@pytest.mark.parametrize('interrupt', ['stop', 'ctrl-c', 'time'])
def test_best_so_far_is_kept(interrupt):
    robot = robot_named('arm3')
    calls = []

    def progress(state):
        calls.append(state)
        if len(calls) == 5 and interrupt == 'ctrl-c':
            raise KeyboardInterrupt
        return len(calls) == 5 and interrupt == 'stop'

    excitation = quick(time_limit=0.0 if interrupt == 'time' else 60.0, validation=NONE)
    result = design(robot, excitation, progress)
    assert len(calls) == (1 if interrupt == 'time' else 5)
    assert check(robot, result.trajectory, excitation)


def test_circle_is_a_circle():
    import pinocchio as pin

    robot = robot_named('ur10')
    start = (0.0, -1.2, 1.2, -1.5, -1.5, 0.0)
    excitation = quick(start=start, iterations=3, validation=Validation(kind='circle'))
    trajectory = design(robot, excitation).validation
    data, places = robot.model.createData(), []
    times = np.linspace(0.0, trajectory.period, 500)
    for q in trajectory.sample(times).q[:, robot.order]:
        pin.framesForwardKinematics(robot.model, data, q)
        places.append(data.oMf[len(robot.model.frames) - 1].translation.copy())
    places = np.array(places)
    radius = np.linalg.norm(places - 0.5 * (places.max(axis=0) + places.min(axis=0)), axis=1)
    np.testing.assert_allclose(radius, 0.05, atol=1e-5)
    speed = np.linalg.norm(np.diff(places, axis=0), axis=1) / np.diff(times)
    assert 0.05 < speed.max() <= 0.5 + 1e-3
    assert trajectory.at_rest


# What is refused, and by which words.


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
        ({'noise': (1.0, 1.0, 1.0)}, ConfigurationError, 'one per joint'),
        ({'columns': ('ZZ9',)}, UnknownNameError, 'ZZ9'),
        ({'criterion': 'mix'}, ConfigurationError, 'excitation.mix'),
        ({'workspace': Workspace(frame='hand')}, UnknownNameError, 'hand'),
        ({'workspace': Workspace(lower=(0.0,))}, ConfigurationError, 'three numbers'),
        ({'workspace': Workspace(ignored_pairs=('a/b',))}, ConfigurationError, 'a/b'),
    ],
)
def test_refuses_settings_that_do_not_fit(changes, error, words):
    refused('scara', error, words, **changes)


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
def test_limits_too_tight_to_excite_are_kept_nevertheless(quantity):
    """A slow robot is no reason to refuse: its trajectory is slow, and its figures say so."""
    robot = robot_named('arm3')
    slow = replace(robot, limits=replace(robot.limits, **{quantity: np.full(3, 1e-4)}))
    excitation = quick(iterations=3, validation=NONE, workspace=FREE)
    result = design(slow, excitation)
    assert max(getattr(result.usage, quantity)) <= 1.0
    fast = design(robot, excitation)
    assert result.condition_numbers['raw'] > 10.0 * fast.condition_numbers['raw']


def test_refuses_a_start_in_self_collision():
    folded = (0.0, -1.57, 3.0, 0.0, 0.0, 0.0)
    words = r'link_\w+ and \w+ are -?\d+\.\d+ m apart at 0.000 s, less than 0.1 m: move the start'
    workspace = Workspace(distance=0.1)
    refused('ur10', CollisionError, words, start=folded, workspace=workspace)


@pytest.mark.parametrize(('goal', 'speed'), [(9.0, 0.0), (0.1, 9.0)])
def test_refuses_ends_that_contradict_the_limits(goal, speed):
    """An end outside the limits; an end so fast that the motion swings out before it."""
    robot = robot_named('scara')
    ends, speeds = np.array([[0.0, 0.0], [goal, 0.0]]), np.array([[0.0, 0.0], [speed, 0.0]])
    points = Waypoints(robot.joints, np.array([0.0, 30.0]), ends, speeds, 0.0 * speeds)
    with pytest.raises(LimitError, match='position of joint_1'):
        check(robot, points, quick())


def test_refuses_a_tool_box_without_inside():
    workspace = Workspace(lower=(0.0, 0.0, 1.0), upper=(1.0, 1.0, 0.5))
    words = 'excitation.workspace.lower must be below excitation.workspace.upper'
    refused('arm3', ConfigurationError, words, workspace=workspace)


# The check alone.


def scaled(trajectory, factor):
    return Trajectory(
        trajectory.joints,
        trajectory.family,
        trajectory.period,
        trajectory.order,
        trajectory.start,
        factor * trajectory.coefficients,
    )


def test_check_names_joint_time_and_excess():
    robot, excitation = robot_named('arm3'), quick(validation=NONE)
    trajectory = design(robot, excitation).trajectory
    fast = scaled(trajectory, 1.6)
    with pytest.raises(LimitError) as caught:
        check(robot, waypoints(fast, 50.0, 2), excitation)
    error = caught.value
    share = worst(robot, fast, excitation)[error.quantity]
    assert share[robot.joints.index(error.joint)] > 1.0
    assert abs(error.value) > abs(error.limit)
    if error.quantity == 'velocity':
        j = robot.joints.index(error.joint)
        assert fast.sample(error.time).dq[0, j] == pytest.approx(error.value, rel=1e-4)


def test_check_sees_between_the_points():
    """Points at rest inside the limits whose joining quintic overshoots."""
    robot, excitation = robot_named('scara'), quick()
    limit = robot.limits.velocity[0]
    time, still = np.array([0.0, 0.5]), np.zeros((2, 2))
    q = np.array([[0.0, 0.0], [0.5 * limit / 1.875 * 1.01, 0.0]])
    with pytest.raises(LimitError, match='velocity of joint_1') as caught:
        check(robot, Waypoints(robot.joints, time, q, still, still), replace(excitation))
    assert caught.value.time == pytest.approx(0.25, abs=1e-6)
    assert caught.value.value == pytest.approx(1.01 * limit, rel=1e-9)


def test_check_refuses_other_joints():
    robot, excitation = robot_named('scara'), quick(iterations=1, validation=NONE)
    values = design(robot, excitation).trajectory.to_dict()
    swapped = Trajectory.from_dict({**values, 'joints': values['joints'][::-1]})
    with pytest.raises(TrajectoryError, match='design it for this robot'):
        check(robot, swapped, excitation)


def test_check_of_a_joint_with_one_bound():
    robot, excitation = robot_named('scara'), quick(iterations=1, validation=NONE)
    trajectory = design(robot, excitation).trajectory
    lowest = trajectory.sample(np.linspace(0.0, 8.0, 2001)).q[:, 0].min()
    for bound, fine in ((lowest - 1e-3, True), (lowest + 1e-3, False)):
        lower, upper = np.array([bound, -9.0]), np.array([np.inf, 9.0])
        limited = replace(robot, limits=replace(robot.limits, lower=lower, upper=upper))
        if fine:
            check(limited, trajectory, excitation)
        else:
            with pytest.raises(LimitError, match='position of joint_1'):
                check(limited, trajectory, replace(excitation, amplitude=99.0))


def test_check_refuses_points_that_are_not_finite():
    still = np.zeros((2, 1))
    with pytest.raises(TrajectoryError, match='not finite'):
        Waypoints(('a',), np.array([0.0, 1.0]), np.array([[0.0], [np.nan]]), still, still)


@pytest.mark.parametrize(
    'path', sorted((CONFIG / 'trajectories').glob('*.yaml')), ids=lambda p: p.stem
)
def test_stored_designs_suit_their_robots(path):
    """What is kept in the package passes the last check with the robot's present configuration."""
    configuration = load(CONFIG / path.name)
    robot = build_robot(read_urdf(configuration), configuration.robot)
    stored = read_design(path)
    for trajectory in (stored.trajectory, stored.validation):
        usage = check(robot, waypoints(trajectory, 50.0, 2), configuration.excitation)
        assert max(max(usage.velocity), max(usage.effort)) < 1.0
