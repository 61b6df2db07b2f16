"""What becomes of joint_trajectory_controller's goals, as observed, without ROS."""

from dataclasses import replace
import math

import pytest

from robotid_ros.plant.trajectory import Goal
from robotid_ros.plant.trajectory_controller import GoalOutcome, GoalTolerances, Tolerance
from robotid_ros.simulation_settings import ConstraintSettings, JointConstraintSettings

from .bench import at, Bench, JOINTS, S


def test_success_at_the_first_cycle_past_the_end_and_the_last_point_is_held():
    bench = Bench(ff_velocity_scale=1.0)
    bench.follows = True
    goal = bench.start(at(0.0, 0.0, 0.0), at(0.1, 0.1, 0.2, effort=[7.0, 3.0]))
    bench.run(99)
    assert goal.outcome is None
    bench.run(3)
    assert (goal.outcome, goal.code) == (GoalOutcome.SUCCEEDED, 0)
    assert goal.text == 'Goal successfully reached!'
    bench.run(5)
    assert bench.reference.positions == [0.1, 0.2]
    assert bench.command == [7.0, 3.0]


def test_effort_of_an_old_success_comes_back_after_a_later_cancel():
    bench = Bench()
    bench.follows = True
    bench.start(at(0.0, 0.0, 0.0), at(0.01, 0.0, 0.0, effort=[7.0, 3.0]))
    bench.run(20)
    later = bench.start(at(0.0, 0.0, 0.0), at(1.0, 0.3, 0.3))
    bench.run(100)
    assert bench.command == [0.0, 0.0]
    bench.controller.cancel(later)
    bench.run(2)
    assert bench.command == [7.0, 3.0]


def test_cancel_holds_the_measured_position():
    bench = Bench()
    goal = bench.start(at(0.0, 0.0, 0.0, v=[0.0, 0.0]), at(1.0, 1.0, 1.0, v=[0.0, 0.0]))
    bench.run(500)
    bench.q = [0.31, 0.32]
    bench.run()
    bench.controller.cancel(goal)
    bench.q = [0.4, 0.4]
    bench.run()
    assert (goal.outcome, goal.code, goal.text) == (GoalOutcome.CANCELED, 0, '')
    assert bench.reference.positions == [0.31, 0.32]
    assert bench.reference.velocities == [0.0, 0.0]


def test_decelerate_on_cancel_brakes_along_a_ramp():
    joints = {j: JointConstraintSettings(max_deceleration_on_cancel=2.0) for j in JOINTS}
    bench = Bench(constraints=ConstraintSettings(decelerate_on_cancel=True, joints=joints))
    bench.follows = True
    goal = bench.start(at(0.0, 0.0, 0.0), at(1.0, 1.0, 0.5))
    bench.run(500)
    bench.controller.cancel(goal)
    assert goal.outcome is GoalOutcome.CANCELED
    start = bench.q
    bench.run(252)
    assert bench.reference.velocities[1] == pytest.approx(0.0, abs=1e-9)
    assert 0.0 < bench.reference.velocities[0] < 1.0
    bench.run(400)
    assert bench.reference.positions[0] - start[0] == pytest.approx(1.0 / 4.0, rel=0.01)


@pytest.mark.parametrize(
    ('goal', 'word'),
    [
        (Goal((), 0, [at(1.0)]), 'joints'),
        (Goal(('a',), 0, [at(1.0, 0.0)]), 'joints'),
        (Goal(('a', 'c'), 0, [at(1.0, 0.0, 0.0)]), "'c'"),
        (Goal(JOINTS, 0, []), 'no points'),
        (Goal(JOINTS, 0, [at(1.0, 0.0, 0.0), at(1.0, 0.0, 0.0)]), 'increase'),
        (Goal(JOINTS, 0, [at(1.0)]), 'positions'),
        (Goal(JOINTS, 0, [at(1.0, 0.0)]), 'positions'),
        (Goal(JOINTS, 0, [at(1.0, 0.0, 0.0, v=[0.0])]), 'velocities'),
        (Goal(JOINTS, 0, [at(1.0, 0.0, 0.0, a=[0.0])]), 'accelerations'),
        (Goal(('b', 'b'), 0, [at(1.0, 0.0, 0.0)]), 'joints'),
        (Goal(JOINTS, 0, [at(1.0, 0.0, 0.0, effort=[7.0])]), 'effort'),
        (Goal(JOINTS, 5 * S, [at(1.0, 0.0, 0.0)]), 'past'),
        (Goal(JOINTS, 0, [at(1.0, 0.0, 0.0, v=[1e-6, 0.0])]), 'not zero'),
    ],
)
def test_refused(goal, word):
    bench = Bench()
    assert word in bench.controller.rejection_reason(goal, bench.now)


@pytest.mark.parametrize(
    'point',
    [
        at(1.0, math.nan, 0.0),
        at(1.0, math.inf, 1e9),
        at(-1.0, 0.0, 0.0),
        at(1.0, 0.0, 0.0, v=[1e-8, 0.0]),
    ],
)
def test_accepted_without_a_check(point):
    bench = Bench()
    goal = bench.start(point)
    bench.run(1005)
    assert goal.outcome is GoalOutcome.SUCCEEDED


def test_inactive_refuses_and_aborts_what_runs():
    bench = Bench(p=10.0)
    goal = bench.start(at(1.0, 1.0, 1.0))
    bench.run(10)
    bench.controller.deactivate()
    assert (goal.outcome, goal.code) == (GoalOutcome.ABORTED, -1)
    assert goal.text == 'Current goal cancelled during deactivate transition.'
    assert bench.run() == [0.0, 0.0]
    assert bench.controller.rejection_reason(Goal(JOINTS, 0, [at(1.0, 0.0, 0.0)]), bench.now)


def test_joint_order_of_the_goal_is_free():
    bench = Bench()
    bench.start(at(0.0, 2.0, 1.0), at(1.0, 2.0, 1.0), joints=('b', 'a'))
    bench.run()
    assert bench.reference.positions == [1.0, 2.0]


def test_stamps_wait_or_jump():
    bench = Bench()
    bench.start(at(0.0, 1.0, 1.0), at(1.0, 2.0, 2.0), stamp=bench.now + S // 2)
    bench.run(251)
    assert bench.reference.positions[0] == pytest.approx(0.5, abs=0.01)
    bench.run(750)
    assert bench.reference.positions[0] == pytest.approx(1.5, abs=0.01)
    bench.start(at(0.0, 1.0, 1.0), at(1.0, 2.0, 2.0), stamp=bench.now - 3 * S // 10)
    bench.run()
    assert bench.reference.positions[0] == pytest.approx(1.301)


def test_path_tolerance_aborts_and_writes_no_command_in_that_cycle():
    joints = {'a': JointConstraintSettings(trajectory=0.1)}
    bench = Bench(constraints=ConstraintSettings(joints=joints), p=10.0)
    goal = bench.start(at(0.0, 0.0, 0.0), at(1.0, 1.0, 0.0))
    bench.run(90)
    before = bench.command
    bench.q = [-0.2, 0.0]
    assert bench.run() == before
    assert (goal.outcome, goal.code) == (GoalOutcome.ABORTED, -4)
    assert goal.text == 'Aborted due to path tolerance violation'
    bench.run()
    assert bench.reference.positions == [-0.2, 0.0]


def test_far_first_point_aborts_at_once_but_holding_is_not_checked():
    joints = {'a': JointConstraintSettings(trajectory=0.1)}
    bench = Bench(constraints=ConstraintSettings(joints=joints))
    bench.run()
    bench.q = [3.0, 0.0]
    bench.run(5)
    assert bench.controller.state.error[0] == pytest.approx(-3.0)
    goal = bench.start(at(0.0, 0.6, 0.0))
    bench.run()
    assert goal.code == -4


def test_goal_time():
    joints = {j: JointConstraintSettings(goal=0.01) for j in JOINTS}
    for goal_time, asked, cycles, code in (
        (0.2, 0.0, 320, -5),
        (0.2, -1.0, 3000, None),
        (0.0, 0.0, 3000, None),
        (0.0, 0.1, 220, -5),
    ):
        bench = Bench(constraints=ConstraintSettings(goal_time=goal_time, joints=joints))
        goal = bench.start(at(0.1, 1.0, 1.0), tolerances=GoalTolerances(goal_time=asked))
        bench.run(cycles)
        assert (goal.code if goal.outcome else None) == code
    assert goal.text.startswith('Aborted due to goal_time_tolerance exceeding by 0.10')
    assert goal.text.endswith(' seconds')


def test_goal_is_reached_late_but_in_time():
    joints = {j: JointConstraintSettings(goal=0.01) for j in JOINTS}
    bench = Bench(constraints=ConstraintSettings(goal_time=1.0, joints=joints))
    goal = bench.start(at(0.1, 1.0, 1.0))
    bench.run(600)
    bench.q = [1.005, 0.995]
    bench.dq = [0.02, 0.0]
    bench.run()
    assert goal.outcome is None, 'it still moves'
    bench.dq = [0.0, 0.0]
    bench.run()
    assert goal.outcome is GoalOutcome.SUCCEEDED


@pytest.mark.parametrize(
    ('path', 'expected'),
    [
        ((('a', Tolerance(0.5)),), -4),
        ((('a', Tolerance(-1.0)),), None),
        ((('a', Tolerance(9.0, 0.4)),), -4),
        ((('a', Tolerance(9.0)),), None),
        # One that means nothing leaves them all at their defaults.
        ((('a', Tolerance(9.0, -2.0)),), -4),
        ((('a', Tolerance(9.0)), ('c', Tolerance(1.0))), -4),
        ((('a', Tolerance(math.nan)),), -4),
    ],
)
def test_tolerances_of_the_goal(path, expected):
    joints = {'a': JointConstraintSettings(trajectory=0.2)}
    bench = Bench(constraints=ConstraintSettings(joints=joints))
    zero = [0.0, 0.0]
    goal = bench.start(
        at(0.0, 0.0, 0.0, v=zero), at(2.0, 1.0, 0.0, v=zero), tolerances=GoalTolerances(dict(path))
    )
    bench.run(1990)
    assert (goal.code if goal.outcome else None) == expected


def test_changed_constraints_wait_for_the_next_goal():
    bench = Bench()
    goal = bench.start(at(0.0, 0.0, 0.0), at(1.0, 1.0, 0.0))
    strict = ConstraintSettings(joints={'a': JointConstraintSettings(trajectory=0.01)})
    bench.controller.configure(replace(bench.controller.settings, constraints=strict))
    bench.run(100)
    assert goal.outcome is None
    goal = bench.start(at(0.0, 0.0, 0.0), at(1.0, 1.0, 0.0))
    bench.run(100)
    assert goal.code == -4


def test_preemption_and_topic():
    bench = Bench()
    first = bench.start(at(1.0, 1.0, 1.0))
    bench.run(10)
    second = bench.start(at(1.0, 2.0, 2.0))
    assert (first.outcome, first.code) == (GoalOutcome.ABORTED, -1)
    assert first.text == 'Current goal preempted by new incoming action.'
    # A trajectory of the topic takes over; the goal is judged on it and never goes to its target.
    bench.controller.replace_trajectory(Goal(JOINTS, 0, [at(0.05, 0.0, 0.0)]))
    bench.run(100)
    assert second.outcome is GoalOutcome.SUCCEEDED


def test_nan_is_commanded_hidden_and_called_a_success():
    joints = {j: JointConstraintSettings(0.1, 0.1) for j in JOINTS}
    bench = Bench(constraints=ConstraintSettings(joints=joints), p=10.0)
    bench.q = [-0.01, 0.0]
    bench.run()
    shown = list(bench.controller.state.output)
    goal = bench.start(at(0.0, math.nan, 0.0), at(0.05, math.nan, 0.0))
    bench.run(10)
    assert math.isnan(bench.command[0])
    assert bench.controller.state.output == shown
    bench.run(100)
    assert goal.outcome is GoalOutcome.SUCCEEDED
    bench.start(at(0.1, 0.0, 0.0))
    bench.run(200)
    assert bench.command == pytest.approx([0.1, 0.0])
    assert bench.controller.state.output == [], 'the original shows none from then on'


def test_update_rate_of_the_reference_is_the_clock_of_the_goal():
    """Sampling is exact at every cycle over a long goal: no drift by counting."""
    bench = Bench()
    points = [at(0.01 * k, 0.01 * k, -0.01 * k) for k in range(2001)]
    goal = bench.start(*points)
    bench.follows = True
    worst = 0.0
    for k in range(19_999):
        bench.run()
        worst = max(worst, abs(bench.reference.positions[0] - 1e-3 * k))
    assert worst < 1e-9
    assert goal.outcome is None
