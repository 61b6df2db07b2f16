"""Efforts of the points: those of the model when they act, on the same path, none at the ends."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from robotid_ros.core.excitation.trajectory import CubicWaypoints, Trajectory, Waypoints, waypoints
from robotid_ros.core.model import build_robot, inverse_dynamics, Robot, RobotSettings
from robotid_ros.core.model.dynamics import PathDynamics
from robotid_ros.core.verification import feed_forward
from robotid_ros.core.verification.feed_forward import (
    check_feed_forward,
    goal_with_efforts,
    REST,
    slowed,
    TOLERANCE,
    with_feed_forward,
    with_rests,
)
from robotid_ros.exceptions import LimitError, TrajectoryError
from robotid_ros.plant.trajectory import Goal, Point
from robotid_ros.plant.trajectory_controller import (
    ControllerSettings,
    GoalOutcome,
    GoalTolerances,
    TrajectoryController,
)
from robotid_ros.simulation_settings import GainSettings

PERIOD = 1e-3
NS = 1_000_000_000

ARM = Path(__file__).parents[3] / 'urdf' / 'arm3.urdf'


@pytest.fixture(scope='module')
def motion(robot: Robot) -> Waypoints:
    coefficients = np.random.default_rng(2).normal(size=(10, 3)) * 0.1
    plan = Trajectory(robot.joints, 'mfs', 4.0, 5, np.array([0.1, 0.4, -0.3]), coefficients)
    return with_rests(waypoints(plan, 50.0))


@pytest.fixture(scope='module')
def driven(motion: Waypoints, robot: Robot, truth: np.ndarray) -> Waypoints:
    return with_feed_forward(motion, robot, truth, PERIOD)


def test_the_path_stays_the_same(motion: Waypoints, driven: Waypoints):
    time = np.linspace(0.0, motion.duration, 4001)
    for one, other in zip(motion.sample(time), driven.sample(time), strict=True):
        # Rounding is divided by the square of an update's length.
        np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-7 * np.abs(one).max())
    assert set(motion.time) <= set(driven.time)
    # A controller refuses 1e-6 rad/s at the end.
    assert not driven.dq[[0, 1, -2, -1]].any()


def test_a_controller_commands_the_effort_of_the_middle_of_each_update(
    motion: Waypoints, driven: Waypoints, robot: Robot, truth: np.ndarray
):
    # Updates at any phase: the controller begins when it likes.
    update = np.arange(REST, motion.duration - REST - 2.0 * PERIOD, PERIOD) + 0.37e-3
    middle = motion.sample(update + 0.5 * PERIOD)
    wanted = inverse_dynamics(robot, truth, *middle)
    around = [motion.sample(update + shift * PERIOD).dq for shift in (-0.5, 1.5)]
    for j in range(robot.n):
        commanded = np.interp(update + PERIOD, driven.time, driven.tau[:, j])
        error = np.abs(commanded - wanted[:, j]) / np.abs(wanted[:, j]).max()
        turning = np.sign(around[0][:, j]) != np.sign(around[1][:, j])
        # Coulomb friction is 10 % and more of the effort: elsewhere nothing of it is smeared.
        assert error[~turning].max() < 2.0 * TOLERANCE
        assert 0 < turning.sum() < 40
    # Half an update late would be ten times as far off as what is allowed for straight lines.
    late = inverse_dynamics(robot, truth, *motion.sample(update))
    assert np.abs(late - wanted).max() > 2.0 * TOLERANCE * np.abs(wanted).max()


def test_friction_turns_round_within_one_update(
    motion: Waypoints, driven: Waypoints, robot: Robot, truth: np.ndarray
):
    # Away from begin and end, where it comes and goes.
    first, last = REST + 0.05, motion.duration - REST - 0.05
    speed = motion.sample(np.arange(first, last, PERIOD)).dq
    inner = (driven.time[:-1] > first) & (driven.time[:-1] < last)
    jump, step = np.abs(np.diff(driven.tau, axis=0))[inner], np.diff(driven.time)[inner]
    for j in range(robot.n):
        jumps = jump[:, j] > 1.5 * truth[robot.column(f'Fc{j + 1}')]
        assert jumps.sum() == np.count_nonzero(np.diff(np.sign(speed[:, j]))) > 0
        assert step[jumps].max() <= PERIOD * (1.0 + 1e-9)
    # Points are added where efforts bend, not everywhere.
    assert len(driven.time) < 0.1 * driven.duration / PERIOD


def test_the_effort_at_rest_grows_from_none_and_goes_again(
    driven: Waypoints, robot: Robot, truth: np.ndarray
):
    still = np.zeros((1, robot.n))
    held = inverse_dynamics(robot, truth, driven.q[:1], still, still)[0]
    assert not driven.tau[[0, -1]].any()
    np.testing.assert_allclose(driven.tau[[1, -2]], [held, held])
    assert driven.time[1] == driven.time[-1] - driven.time[-2] == REST


def test_efforts_are_in_the_unit_of_the_commands(motion, driven, robot: Robot, truth):
    gains = np.array([2.0, -0.5, 1.0])
    other = with_feed_forward(motion, dataclasses.replace(robot, drive_gain=gains), truth, PERIOD)
    np.testing.assert_allclose(other.tau * gains, driven.tau, atol=1e-12)


def test_efforts_beyond_a_limit_are_refused(driven: Waypoints, robot: Robot):
    check_feed_forward(driven, robot, 1.0)
    share = 0.9 * np.abs(driven.tau[:, 1]).max() / robot.limits.effort[1]
    with pytest.raises(LimitError) as caught:
        check_feed_forward(driven, robot, share)
    assert (caught.value.joint, caught.value.quantity) == (robot.joints[1], 'effort')


def test_a_joint_that_may_bear_nothing_is_not_moved(driven: Waypoints, robot: Robot):
    none = dataclasses.replace(robot.limits, effort=np.array([60.0, 0.0, 30.0]))
    weak = dataclasses.replace(robot, limits=none)
    goal = dataclasses.replace(driven, tau=None)
    dynamics = PathDynamics(weak, robot.prior)
    for points in (driven, goal_with_efforts(goal, dynamics, PERIOD, np.zeros(3), 0.3)):
        with pytest.raises(LimitError) as caught:
            check_feed_forward(points, weak, 1.0)
        assert caught.value.joint == robot.joints[1]


def test_parameters_that_are_no_numbers_make_no_motion(
    motion: Waypoints, robot: Robot, truth: np.ndarray
):
    unknown = truth.copy()
    unknown[robot.column('off2')] = np.nan
    with pytest.raises(TrajectoryError, match='tau of the waypoints is not finite: identify'):
        with_feed_forward(motion, robot, unknown, PERIOD)


def test_an_effort_for_some_joints_alone_is_refused(driven: Waypoints):
    with pytest.raises(TrajectoryError, match='effort of each joint'):
        dataclasses.replace(driven, tau=driven.tau[:, :2])


class Controlled:
    """A trajectory controller that holds a weight, on a robot that follows it."""

    def __init__(self, motion: Waypoints, held: np.ndarray):
        gains = {joint: GainSettings(p=1000.0) for joint in motion.joints}
        self.controller = TrajectoryController(
            ControllerSettings(motion.joints, (False,) * 3, round(PERIOD * NS), gains)
        )
        self.sag, self.now = held / 1000.0, 100 * NS
        self.controller.activate(motion.q[0].tolist(), [0.0] * 3)

    def run(self, cycles: int) -> np.ndarray:
        for _ in range(cycles):
            self.now += round(PERIOD * NS)
            desired = self.controller.state.desired
            q = np.array(desired.positions) - self.sag
            command = self.controller.update(self.now, PERIOD, q.tolist(), desired.velocities)
        return np.array(command)

    def start(self, points: Waypoints):
        time = np.round(points.time * NS).astype(int).tolist()
        tau = [[]] * len(time) if points.tau is None else points.tau.tolist()
        columns = (time, points.q.tolist(), points.dq.tolist(), points.ddq.tolist(), tau)
        goal = Goal(points.joints, 0, [Point(*row) for row in zip(*columns, strict=True)])
        assert self.controller.rejection_reason(goal, self.now) == ''
        return self.controller.start(goal, GoalTolerances())


def test_a_controller_begins_without_a_bump_and_holds_no_effort_afterwards(
    motion: Waypoints, driven: Waypoints
):
    held = driven.tau[1]
    robot = Controlled(motion, held)
    before = robot.run(100)
    goal = robot.start(driven)
    # What is held is not counted twice, as a first point that is not at time 0 would let it.
    np.testing.assert_allclose(robot.run(2), before, atol=0.01 * np.abs(held).max())
    robot.run(round((driven.duration + 0.1) / PERIOD))
    assert goal.outcome is GoalOutcome.SUCCEEDED
    np.testing.assert_allclose(robot.run(10), before)


@pytest.mark.parametrize('after', ['a success', 'nothing'])
def test_no_effort_comes_back_when_a_motion_is_cancelled(
    after: str, motion: Waypoints, driven: Waypoints
):
    robot = Controlled(motion, np.zeros(3))
    robot.run(100)
    if after == 'a success':
        robot.start(driven)
        robot.run(round((driven.duration + 0.1) / PERIOD))
    # A motion with efforts, and one without: what holds the robot then is the position alone.
    for points in (driven, motion):
        goal = robot.start(points)
        robot.run(2500)
        robot.controller.cancel(goal)
        assert not robot.run(10).any()
        robot.controller.activate(motion.q[0].tolist(), [0.0] * 3)
        robot.run(10)


@pytest.mark.parametrize('kind', [Waypoints, CubicWaypoints])
def test_lines_between_efforts_of_a_goal_are_right(
    motion: Waypoints, robot: Robot, truth: np.ndarray, kind: type[Waypoints]
):
    goal = kind(
        robot.joints, motion.time[::10], *(x[::10] for x in (motion.q, motion.dq, motion.ddq))
    )
    present = np.array([1.0, -2.0, 0.5])
    points = goal_with_efforts(goal, PathDynamics(robot, truth), PERIOD, present, 0.3)
    assert points.tau is not None
    state = goal.sample(np.zeros(1))
    moving, still = (
        inverse_dynamics(robot, truth, *state[:2], a) for a in (state.ddq, 0 * state.ddq)
    )
    np.testing.assert_allclose(
        points.tau[0], present + (moving - still)[0] / robot.drive_gain, rtol=1e-9
    )
    time = np.arange(0.35, goal.duration - 0.01, PERIOD)
    wanted = inverse_dynamics(robot, truth, *goal.sample(time - 0.5 * PERIOD)) / robot.drive_gain
    sent = np.stack([np.interp(time, points.time, tau) for tau in points.tau.T], axis=1)
    limit = robot.limits.effort / np.abs(robot.drive_gain)
    scale = np.where(np.isfinite(limit), limit, np.abs(points.tau).max(axis=0))
    wrong = np.abs(sent - wanted) > 1.01 * TOLERANCE * scale
    # Where a joint turns round its friction changes, and where cubics meet their acceleration
    # does, within an update.
    step = np.abs(np.diff(wanted, axis=0)) > 0.5 * TOLERANCE * scale
    places = np.argwhere(step)
    near = np.zeros_like(wrong)
    for shift in (-1, 0, 1, 2):  # the updates of the goal lie between those of this test
        near[np.clip(places[:, 0] + shift, 0, len(near) - 1), places[:, 1]] = True
    assert not (wrong & ~near).any()
    assert len(points.time) < 0.25 * goal.duration / PERIOD


@pytest.mark.parametrize(('step', 'period', 'enough'), [(1, 2e-3, 0), (5, 1e-3, 1), (50, 1e-3, 0)])
def test_few_samples_between_points_give_the_efforts_of_all_updates(
    motion: Waypoints, robot: Robot, truth: np.ndarray, monkeypatch, step, period, enough
):
    """Where points are dense, or torques between them no polynomial, all updates are computed."""
    rows, dynamics = list[int](), PathDynamics(robot, truth)
    links = dynamics.links
    monkeypatch.setattr(dynamics, 'links', lambda *x: rows.append(len(x[0])) or links(*x))
    columns = (x[1:-1:step] for x in (motion.time - REST, motion.q, motion.dq, motion.ddq))
    goal = Waypoints(motion.joints, *columns)
    few = goal_with_efforts(goal, dynamics, period, np.zeros(3), 0.3)
    counted = rows[-1]
    monkeypatch.setattr(feed_forward, 'LAST', -1.0)
    every = goal_with_efforts(goal, dynamics, period, np.zeros(3), 0.3)
    assert counted == (6 * (len(goal.time) - 1) + 3 if enough else rows[-1])
    assert rows[-1] > goal.duration / period
    error = np.array([np.interp(every.time, few.time, tau) for tau in few.tau.T]) - every.tau.T
    assert (np.abs(error).max(axis=1) <= 0.02 * TOLERANCE * robot.limits.effort).all()


def test_a_goal_too_long_for_memory_is_refused(motion: Waypoints, robot: Robot):
    long = slowed(motion, 1e6)
    with pytest.raises(TrajectoryError, match='send it in parts'):
        goal_with_efforts(long, PathDynamics(robot, robot.prior), PERIOD, np.zeros(robot.n), 0.3)


def test_a_cubic_is_that_of_its_ends():
    time = np.array([0.0, 0.5, 1.25])
    polynomial = np.polynomial.Polynomial([0.2, -1.0, 0.7, 2.0])
    q, dq = (p(time)[:, None] for p in (polynomial, polynomial.deriv()))
    points = CubicWaypoints(('a',), time, q, dq, np.zeros_like(q))
    t = np.linspace(0.0, 1.25, 101)
    for found, order in zip(points.sample(t), range(3), strict=True):
        np.testing.assert_allclose(found[:, 0], polynomial.deriv(order)(t), rtol=1e-9, atol=1e-9)


def test_a_slowed_goal_is_the_same_path(motion: Waypoints):
    time = np.linspace(0.0, motion.duration, 301)
    slow = slowed(motion, 1.7)
    np.testing.assert_allclose(slow.sample(1.7 * time).q, motion.sample(time).q, atol=1e-9)
    np.testing.assert_allclose(slow.sample(1.7 * time).dq, motion.sample(time).dq / 1.7, atol=1e-9)


def test_what_is_held_after_a_goal_has_no_friction():
    """Rounding of the last speed is no motion."""
    robot = build_robot(ARM.read_text(), RobotSettings())
    start, end, share = np.zeros(3), np.full(3, 0.6), np.linspace(0.0, 1.0, 16)[:, None]
    s, ds, dds = (
        10 * share**3 - 15 * share**4 + 6 * share**5,
        (30 * share**2 - 60 * share**3 + 30 * share**4) / 1.5,
        (60 * share - 180 * share**2 + 120 * share**3) / 1.5**2,
    )
    goal = Waypoints(robot.joints, 1.5 * share[:, 0], start + s * end, ds * end, dds * end)
    goal = dataclasses.replace(goal, dq=np.where(np.abs(goal.dq) < 1e-12, 0.0, goal.dq))
    found = goal_with_efforts(goal, PathDynamics(robot, robot.prior), 0.002, np.zeros(3), 0.5)
    still = np.zeros((1, 3))
    weight = inverse_dynamics(robot, robot.prior, goal.q[-1:], still, goal.ddq[-1:])[0]
    np.testing.assert_allclose(found.tau[-1], weight, rtol=1e-9, atol=1e-9)
