"""The last check names what leaves a limit, when, and by how much."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from robotid_ros.core.excitation.collision_scene import CollisionScene
from robotid_ros.core.excitation.design import design
from robotid_ros.core.excitation.limits import check_trajectory
from robotid_ros.core.excitation.settings import Obstacle, Workspace
from robotid_ros.core.excitation.trajectory import Trajectory, Waypoints, waypoints
from robotid_ros.core.model import build_robot
from robotid_ros.exceptions import CollisionError, LimitError, TrajectoryError
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.files.trajectory_file import read_design

from .robots import CONFIG, NONE, quick, robot_named, worst


@pytest.mark.parametrize(('goal', 'speed'), [(9.0, 0.0), (0.1, 9.0)])
def test_refuses_ends_that_contradict_the_limits(goal, speed):
    """An end outside the limits; an end so fast that the motion swings out before it."""
    robot = robot_named('scara')
    ends, speeds = np.array([[0.0, 0.0], [goal, 0.0]]), np.array([[0.0, 0.0], [speed, 0.0]])
    points = Waypoints(robot.joints, np.array([0.0, 30.0]), ends, speeds, 0.0 * speeds)
    with pytest.raises(LimitError, match='position of joint_1'):
        check_trajectory(robot, points, quick())


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
        check_trajectory(robot, waypoints(fast, 50.0, 2), excitation)
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
        check_trajectory(
            robot, Waypoints(robot.joints, time, q, still, still), replace(excitation)
        )
    assert caught.value.time == pytest.approx(0.25, abs=1e-6)
    assert caught.value.value == pytest.approx(1.01 * limit, rel=1e-9)


def test_check_sees_bodies_pass_between_its_steps():
    """A thin post that the arm sweeps over within 20 ms, far from it before and after."""
    robot = robot_named('arm3')
    q = np.column_stack([np.linspace(-0.6, 0.6, 21), np.full(21, 0.3), np.full(21, 0.3)])
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q[10, robot.order])
    tool = tuple(data.oMf[len(robot.model.frames) - 1].translation.tolist())
    post = Obstacle('sphere', tool, size=(0.01,))
    scene = CollisionScene(robot, Workspace(obstacles={'post': post}))
    slacks = scene.clearances(q).min(axis=1)
    assert not scene.is_free(q) and scene.is_free(q[:3])
    assert min(slacks[0], slacks[-1]) > 0.0 > slacks[10]
    with pytest.raises(CollisionError, match='post'):
        scene.check_path(q, np.linspace(0.0, 0.02, 21), step=20)


@pytest.mark.parametrize('name', ['ur10', 'tx40', 'arm3'])
def test_spheres_are_never_farther_apart_than_bodies(name, rng):
    robot = robot_named(name)
    ball = Obstacle('sphere', (0.4, 0.1, 0.3), size=(0.1,))
    scene = CollisionScene(robot, Workspace(ground=0.1, obstacles={'ball': ball}))
    q = rng.uniform(-2.0, 2.0, (200, robot.n))
    exact = np.array([scene._distances(row) for row in scene._model_order(q)])
    gaps = scene._gaps(scene._model_order(q))
    assert (gaps <= np.maximum(exact, 0.0) + 1e-6).all()
    # They are of use: most pairs need no other measurement.
    assert np.mean(gaps > 0.05) > 0.3
    assert scene.is_free(q) == bool((exact >= scene.settings.distance).all())


def test_a_penalty_that_remembers_is_that_of_all_pairs(rng):
    """Configurations move a little from call to call, then far, then in another number."""
    robot = robot_named('ur10')
    scene, start = CollisionScene(robot, Workspace(ground=0.1)), rng.uniform(-2.0, 2.0, (40, 6))
    steps = [start + scale * rng.normal(size=start.shape) for scale in (0.0, 1e-3, 1e-2, 1.0)]
    for q in (*steps, steps[0], steps[1][:7]):
        fresh = CollisionScene(robot, Workspace(ground=0.1))
        value, slopes = scene.penalty(q)
        expected, expected_slopes = fresh.penalty(q)
        assert value == pytest.approx(expected, rel=1e-6) and value > 0.0
        np.testing.assert_allclose(slopes, expected_slopes, atol=1e-3 * np.abs(slopes).max())


@pytest.mark.parametrize('name', ['ur10', 'tx40'])
def test_bounds_hold_how_fast_bodies_approach(name, rng):
    robot = robot_named(name)
    scene = CollisionScene(robot, Workspace())
    one = rng.uniform(-2.0, 2.0, (200, robot.n))
    steps = rng.uniform(-0.05, 0.05, (200, robot.n))
    before, after = (np.array([scene._distances(q) for q in x]) for x in (one, one + steps))
    # Where bodies overlap, their depth is an estimate.
    apart = (before > 0.0) & (after > 0.0)
    changes, bounds = (
        x[apart] for x in (np.abs(after - before), np.abs(steps) @ scene.approach_bounds.T)
    )
    assert (changes <= bounds + 1e-6).all()
    assert np.median(changes / bounds) > 0.05


def test_check_refuses_other_joints():
    robot, excitation = robot_named('scara'), quick(iterations=1, validation=NONE)
    values = design(robot, excitation).trajectory.to_dict()
    swapped = Trajectory.from_dict({**values, 'joints': values['joints'][::-1]})
    with pytest.raises(TrajectoryError, match='design it for this robot'):
        check_trajectory(robot, swapped, excitation)


def test_check_of_a_joint_with_one_bound():
    robot, excitation = robot_named('scara'), quick(iterations=1, validation=NONE)
    trajectory = design(robot, excitation).trajectory
    lowest = trajectory.sample(np.linspace(0.0, 8.0, 2001)).q[:, 0].min()
    for bound, fine in ((lowest - 1e-3, True), (lowest + 1e-3, False)):
        lower, upper = np.array([bound, -9.0]), np.array([np.inf, 9.0])
        limited = replace(robot, limits=replace(robot.limits, lower=lower, upper=upper))
        if fine:
            check_trajectory(limited, trajectory, excitation)
        else:
            with pytest.raises(LimitError, match='position of joint_1'):
                check_trajectory(limited, trajectory, replace(excitation, amplitude=99.0))


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
        usage = check_trajectory(robot, waypoints(trajectory, 50.0, 2), configuration.excitation)
        assert max(max(usage.velocity), max(usage.effort)) < 1.0
