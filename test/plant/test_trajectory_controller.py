"""joint_trajectory_controller's observed law and reference, clause by clause, without ROS."""

from dataclasses import replace
import math

import numpy as np
import pytest

from robotid_ros.simulation_settings import GainSettings

from .bench import at, Bench


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


def test_continuous_joints_take_the_short_way():
    bench = Bench((3.0, 3.0), wraparound=(True, False), p=1.0)
    bench.run()
    bench.start(at(0.0, -3.0, -3.0), at(1.0, -3.0, -3.0))
    bench.run()
    assert bench.controller.state.error == pytest.approx([2 * math.pi - 6.0, -6.0])
    bench.start(at(1.0, -3.0, 3.0))
    bench.run(2)
    assert bench.reference.positions[0] == pytest.approx(3.0 - 2 * math.pi, abs=0.01)
