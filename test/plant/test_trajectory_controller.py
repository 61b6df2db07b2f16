"""joint_trajectory_controller's observed behaviour, clause by clause, without ROS."""

from dataclasses import replace
import math

import numpy as np
import pytest

from robotid_ros.plant.acceptance import Rules
from robotid_ros.plant.controller_types import ControllerSettings
from robotid_ros.plant.interpolation import Goal, Point
from robotid_ros.plant.outcome import Outcome
from robotid_ros.plant.settings import (
    ConstraintSettings,
    GainSettings,
    JointConstraintSettings,
)
from robotid_ros.plant.tolerances import GoalTolerances, Tolerance
from robotid_ros.plant.trajectory_controller import TrajectoryController

JOINTS = ('a', 'b')
MS = 1_000_000
S = 1_000_000_000


class Bench:
    """A controller on a robot that is wherever the test puts it."""

    def __init__(
        self, position=(0.0, 0.0), constraints=None, rules=None, wraps=(False, False), **gains
    ):
        of = GainSettings(**gains)
        self.controller = TrajectoryController(
            ControllerSettings(
                JOINTS,
                wraps,
                MS,
                {'a': of, 'b': of},
                constraints or ConstraintSettings(),
                rules or Rules(),
            )
        )
        self.q, self.dq, self.now = list(position), [0.0, 0.0], 100 * S
        self.follows = False
        self.controller.activate(self.q, self.dq)

    def run(self, cycles=1):
        for _ in range(cycles):
            self.now += MS
            if self.follows:
                desired = self.controller.state.desired
                self.q, self.dq = list(desired.positions), list(desired.velocities)
            self.command = self.controller.update(self.now, 1e-3, self.q, self.dq)
        return self.command

    def start(self, *points, tolerances=None, joints=JOINTS, stamp=0):
        goal = Goal(joints, stamp, list(points))
        assert self.controller.refusal(goal, self.now) == ''
        return self.controller.start(goal, tolerances or GoalTolerances())

    @property
    def reference(self):
        return self.controller.state.desired


def at(time, *positions, v=None, a=None, effort=None):
    return Point(round(time * S), list(positions), v or [], a or [], effort or [])


def test_law_takes_errors_now_and_feedforward_from_the_next_sample():
    bench = Bench(p=100.0, d=7.0, ff_velocity_scale=20.0)
    bench.start(
        at(0.0, 0.0, 0.0, v=[0.0, 0.0], effort=[1.0, 2.0]),
        at(1.0, 0.5, 1.0, v=[0.0, 0.0], effort=[3.0, 6.0]),
    )
    bench.run(300)
    bench.q, bench.dq = [0.03, -0.02], [0.1, 0.2]
    bench.run()
    t, d = 0.3, np.array([0.5, 1.0])
    r, v = d * (3 * t**2 - 2 * t**3), d * (6 * t - 6 * t**2)
    ahead = t + 1e-3
    expected = 20.0 * d * (6 * ahead - 6 * ahead**2) + np.array([1.0, 2.0])
    expected += ahead * np.array([2.0, 4.0]) + 100.0 * (r - bench.q) + 7.0 * (v - bench.dq)
    np.testing.assert_allclose(bench.command, expected, rtol=1e-12)
    np.testing.assert_allclose(bench.controller.state.output, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ('v', 'a', 'peak'),
    [(None, None, 0.2), ([0.0, 0.0], None, 0.3), ([0.0, 0.0], [0.0, 0.0], 0.375)],
)
def test_interpolation_by_what_the_points_give(v, a, peak):
    bench = Bench()
    bench.start(at(0.0, 0.0, 0.0, v=v, a=a), at(1.0, 0.2, 0.2, v=v, a=a))
    speeds = []
    for _ in range(999):
        bench.run()
        speeds.append(bench.reference.velocities[0])
    assert max(speeds) == pytest.approx(peak, rel=1e-5)


def test_accelerations_without_velocities_give_a_zero_reference():
    bench = Bench((0.5, 0.5))
    zero = [0.0, 0.0]
    bench.start(at(0.0, 0.5, 0.5, a=zero), at(1.0, 0.6, 0.6, a=zero))
    bench.run(10)
    assert bench.reference.positions == zero


def test_first_segment_starts_at_the_measured_state_and_the_last_effort():
    bench = Bench(p=1000.0)
    bench.q = [-0.05, 0.0]
    held = bench.run()[0]
    assert held == pytest.approx(50.0)
    bench.start(at(1.0, 0.1, 0.0))
    bench.run()
    # The reference jumps to the measured position, the torque comes back as feed-forward.
    assert bench.reference.positions[0] == pytest.approx(-0.05)
    assert bench.command[0] == pytest.approx(held, rel=2e-3)
    bench.q = [-0.06, 0.0]
    assert bench.run()[0] > held + 9.0


def test_first_point_at_zero_does_not_bump():
    bench = Bench(p=1000.0)
    bench.q = [-0.05, 0.0]
    held = bench.run()[0]
    bench.start(at(0.0, 0.0, 0.0), at(1.0, 0.0, 0.0))
    assert bench.run()[0] == pytest.approx(held)


def test_integral_is_a_torque_clamped_and_frozen_by_zero_gain():
    bench = Bench(i=100.0, i_clamp_max=0.5, i_clamp_min=-0.2)
    bench.q = [-1.0, 1.0]
    bench.run(3)
    assert bench.command == pytest.approx([0.3, -0.2])
    bench.run(10)
    assert bench.command == pytest.approx([0.5, -0.2])
    settings = bench.controller.settings
    bench.controller.configure(replace(settings, gains={}))
    bench.q = [5.0, 5.0]
    assert bench.run(5)[1] == pytest.approx(-0.2)
    bench.controller.deactivate()
    assert bench.run() == [0.0, 0.0]
    bench.controller.activate(bench.q, bench.dq)
    assert bench.run() == [0.0, 0.0]


def test_output_clamp_does_not_limit_feedforward():
    bench = Bench(p=100.0, u_clamp_max=3.0, u_clamp_min=-3.0)
    bench.start(at(0.0, 9.0, 9.0, effort=[5.0, 0.0]), at(1.0, 9.0, 9.0, effort=[5.0, 0.0]))
    assert bench.run() == pytest.approx([8.0, 3.0])


def test_gains_change_in_the_next_update_also_while_a_goal_runs():
    bench = Bench(p=10.0)
    bench.start(at(0.0, 1.0, 1.0), at(1.0, 1.0, 1.0))
    assert bench.run() == pytest.approx([10.0, 10.0])
    gains = {'a': GainSettings(p=20.0), 'b': GainSettings(p=10.0)}
    bench.controller.configure(replace(bench.controller.settings, gains=gains))
    assert bench.run() == pytest.approx([20.0, 10.0])


def test_invalid_gains_are_skipped_with_a_warning():
    bench = Bench(p=10.0)
    bad = GainSettings(p=99.0, u_clamp_min=1.0, u_clamp_max=0.0)
    bench.controller.configure(replace(bench.controller.settings, gains={'a': bad, 'b': bad}))
    bench.q = [-1.0, -1.0]
    assert bench.run() == pytest.approx([10.0, 10.0])
    assert 'Skipping' in bench.controller.warnings[0]


def test_success_at_the_first_cycle_past_the_end_and_the_last_point_is_held():
    bench = Bench(ff_velocity_scale=1.0)
    bench.follows = True
    goal = bench.start(at(0.0, 0.0, 0.0), at(0.1, 0.1, 0.2, effort=[7.0, 3.0]))
    bench.run(99)
    assert goal.outcome is None
    bench.run(3)
    assert (goal.outcome, goal.code) == (Outcome.SUCCEEDED, 0)
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
    assert (goal.outcome, goal.code, goal.text) == (Outcome.CANCELED, 0, '')
    assert bench.reference.positions == [0.31, 0.32]
    assert bench.reference.velocities == [0.0, 0.0]


def test_decelerate_on_cancel_brakes_along_a_ramp():
    joints = {j: JointConstraintSettings(max_deceleration_on_cancel=2.0) for j in JOINTS}
    bench = Bench(constraints=ConstraintSettings(decelerate_on_cancel=True, joints=joints))
    bench.follows = True
    goal = bench.start(at(0.0, 0.0, 0.0), at(1.0, 1.0, 0.5))
    bench.run(500)
    bench.controller.cancel(goal)
    assert goal.outcome is Outcome.CANCELED
    start = bench.q
    bench.run(252)
    assert bench.reference.velocities[1] == pytest.approx(0.0, abs=1e-9)
    assert 0.0 < bench.reference.velocities[0] < 1.0
    bench.run(400)
    assert bench.reference.positions[0] - start[0] == pytest.approx(1.0 / 4.0, rel=0.01)


@pytest.mark.parametrize(
    ('goal', 'word'),
    [
        (Goal(('a',), 0, [at(1.0, 0.0)]), 'joints'),
        (Goal(('a', 'c'), 0, [at(1.0, 0.0, 0.0)]), "'c'"),
        (Goal(JOINTS, 0, []), 'no points'),
        (Goal(JOINTS, 0, [at(1.0, 0.0, 0.0), at(1.0, 0.0, 0.0)]), 'increase'),
        (Goal(JOINTS, 0, [at(1.0)]), 'positions'),
        (Goal(JOINTS, 0, [at(1.0, 0.0)]), 'positions'),
        (Goal(JOINTS, 0, [at(1.0, 0.0, 0.0, v=[0.0])]), 'velocities'),
        (Goal(JOINTS, 0, [at(1.0, 0.0, 0.0, a=[0.0])]), 'accelerations'),
        (Goal(JOINTS, 5 * S, [at(1.0, 0.0, 0.0)]), 'past'),
        (Goal(JOINTS, 0, [at(1.0, 0.0, 0.0, v=[1e-6, 0.0])]), 'not zero'),
    ],
)
def test_refused(goal, word):
    bench = Bench()
    assert word in bench.controller.refusal(goal, bench.now)


@pytest.mark.parametrize(
    'point',
    [
        at(1.0, math.nan, 0.0),
        at(1.0, math.inf, 1e9),
        at(-1.0, 0.0, 0.0),
        at(1.0, 0.0, 0.0, effort=[1.0]),
        at(1.0, 0.0, 0.0, v=[1e-8, 0.0]),
    ],
)
def test_accepted_without_a_check(point):
    bench = Bench()
    bench.start(point)
    bench.run(5)


def test_inactive_refuses_and_aborts_what_runs():
    bench = Bench(p=10.0)
    goal = bench.start(at(1.0, 1.0, 1.0))
    bench.run(10)
    bench.controller.deactivate()
    assert (goal.outcome, goal.code) == (Outcome.ABORTED, -1)
    assert goal.text == 'Current goal cancelled during deactivate transition.'
    assert bench.run() == [0.0, 0.0]
    assert bench.controller.refusal(Goal(JOINTS, 0, [at(1.0, 0.0, 0.0)]), bench.now)
    assert bench.controller.query(bench.now) is None


def test_rules_allow_more():
    bench = Bench((0.3, 0.4), rules=Rules(True, True, True))
    bench.start(at(0.0, 0.1), at(1.0, 0.2, v=[0.5]), joints=('b',))
    bench.run(2000)
    assert bench.reference.positions == pytest.approx([0.3, 0.2])
    assert bench.reference.velocities == pytest.approx([0.0, 0.5])
    bench.start(at(0.0, 0.0, 0.0, v=[1.0, 0.0]), Point(S, [], [1.0, 2.0]))
    bench.run(1500)
    assert bench.reference.positions == pytest.approx([1.0, 1.0])


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
    assert (goal.outcome, goal.code) == (Outcome.ABORTED, -4)
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
    assert goal.outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize(
    ('path', 'expected'),
    [
        ((('a', Tolerance(0.5)),), -4),
        ((('a', Tolerance(-1.0)),), None),
        ((('a', Tolerance(-0.5)),), -4),
        ((('a', Tolerance(9.0)), ('x', Tolerance(1.0))), -4),
        ((('a', Tolerance(9.0, 0.4)),), -4),
        ((('a', Tolerance(9.0)),), None),
    ],
)
def test_tolerances_of_the_goal(path, expected):
    joints = {'a': JointConstraintSettings(trajectory=0.2)}
    bench = Bench(constraints=ConstraintSettings(joints=joints))
    zero = [0.0, 0.0]
    goal = bench.start(
        at(0.0, 0.0, 0.0, v=zero), at(2.0, 1.0, 0.0, v=zero), tolerances=GoalTolerances(path)
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
    assert (first.outcome, first.code) == (Outcome.ABORTED, -1)
    assert first.text == 'Current goal preempted by new incoming action.'
    # A trajectory of the topic takes over; the goal is judged on it and never goes to its target.
    bench.controller.replace_trajectory(Goal(JOINTS, 0, [at(0.05, 0.0, 0.0)]))
    bench.run(100)
    assert second.outcome is Outcome.SUCCEEDED


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
    assert goal.outcome is Outcome.SUCCEEDED


def test_continuous_joints_take_the_short_way():
    bench = Bench((3.0, 3.0), wraps=(True, False), p=1.0)
    bench.run()
    bench.start(at(0.0, -3.0, -3.0), at(1.0, -3.0, -3.0))
    bench.run()
    assert bench.controller.state.error == pytest.approx([2 * math.pi - 6.0, -6.0])
    bench.start(at(1.0, -3.0, 3.0))
    bench.run(2)
    assert bench.reference.positions[0] == pytest.approx(3.0 - 2 * math.pi, abs=0.01)


def test_query_gives_the_desired_point_of_a_time():
    bench = Bench()
    bench.run()
    bench.start(at(0.0, 0.0, 0.0), at(1.0, 1.0, 2.0))
    bench.run()
    begin = bench.now
    assert bench.controller.query(begin + S // 4).positions == pytest.approx([0.25, 0.5])


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
