"""joint_trajectory_controller with position and velocity commands, and with speed scaling."""

import numpy as np
import pytest

from robotid_ros.exceptions import ConfigurationError
from robotid_ros.plant.trajectory import Goal
from robotid_ros.plant.trajectory_controller import GoalOutcome
from robotid_ros.simulation_settings import ConstraintSettings, SimulationSettings

from .bench import at, Bench, JOINTS, S

STILL = [0.0, 0.0]
MOTION = (at(0.0, 0.0, 0.0, v=STILL), at(1.0, 0.5, 1.0, v=STILL))
SIZE = np.array([0.5, 1.0])


def reference(t):
    """Return the cubic of `MOTION` and its velocity."""
    return SIZE * (3 * t**2 - 2 * t**3), SIZE * (6 * t - 6 * t**2)


def test_position_commands_are_the_reference_of_the_next_update():
    bench = Bench(interface='position', p=100.0)
    bench.start(*MOTION)
    bench.run(300)
    bench.q, bench.dq = [0.03, -0.02], [0.1, 0.2]
    bench.run()
    state = bench.controller.state
    np.testing.assert_allclose(bench.command, reference(0.301)[0], rtol=1e-12)
    np.testing.assert_allclose(state.output, bench.command)
    np.testing.assert_allclose(state.error, reference(0.3)[0] - bench.q, rtol=1e-12)
    # Velocity errors are those of velocity and effort commands alone.
    assert state.error_velocity == STILL


def test_velocity_commands_are_a_pid_and_the_next_velocity():
    bench = Bench(interface='velocity', p=8.0, d=0.1, ff_velocity_scale=1.0)
    bench.start(*MOTION)
    bench.run(300)
    bench.q, bench.dq = [0.03, -0.02], [0.1, 0.2]
    bench.run()
    (r, v), (_, ahead) = reference(0.3), reference(0.301)
    expected = ahead + 8.0 * (r - bench.q) + 0.1 * (v - bench.dq)
    np.testing.assert_allclose(bench.command, expected, rtol=1e-12)


@pytest.mark.parametrize('interface', ['position', 'velocity'])
def test_efforts_of_a_goal_are_refused_where_none_are_commanded(interface):
    bench = Bench(interface=interface)
    goal = Goal(JOINTS, 0, [at(1.0, 0.1, 0.1, effort=[0.0, 0.0])])
    reason = bench.controller.rejection_reason(goal, bench.now)
    assert reason == 'point 0 has efforts, which are not commanded'


def test_a_controller_that_ends_leaves_positions_and_stops_velocities():
    position, velocity = Bench((0.2, 0.3), interface='position'), Bench(interface='velocity', p=5)
    velocity.q = [0.1, 0.1]
    for bench in (position, velocity):
        bench.run()
        bench.controller.deactivate()
    assert position.run() == [0.2, 0.3]
    assert velocity.run() == STILL
    # Started again while the drives hold the robot a little lower, it does not jump there.
    position.q = [0.19, 0.3]
    position.controller.activate(position.q, STILL)
    assert position.run() == [0.2, 0.3]


def test_trajectory_time_runs_with_the_speed_scaling():
    bench = Bench(interface='position')
    bench.follows = True
    goal = bench.start(*MOTION)
    bench.run()
    bench.controller.speed_scaling = 0.5
    bench.run(400)
    state = bench.controller.state
    np.testing.assert_allclose(state.desired.positions, reference(0.2)[0], rtol=1e-12)
    # The command is a whole period ahead, in the trajectory's time.
    np.testing.assert_allclose(bench.command, reference(0.201)[0], rtol=1e-12)
    assert (state.desired.time, state.current.time) == (S // 5, 2 * S // 5)
    assert state.speed_scaling == 0.5
    # The velocity is the trajectory's, not the robot's.
    np.testing.assert_allclose(state.desired.velocities, reference(0.2)[1], rtol=1e-12)
    bench.controller.speed_scaling = 0.0
    held = bench.run(1000)
    assert bench.run(1000) == held
    bench.controller.speed_scaling = 1.0
    bench.run(798)
    assert goal.outcome is None
    bench.run(3)
    assert goal.outcome is GoalOutcome.SUCCEEDED


def test_goal_time_is_of_the_trajectory():
    bench = Bench(interface='position', constraints=ConstraintSettings(goal_time=0.1))
    bench.controller.configure(bench.controller.settings)
    goal = bench.start(*MOTION)
    bench.controller.speed_scaling = 0.25
    bench.run(3000)
    # Three of four seconds have gone by, in which nothing is late.
    assert goal.outcome is None
    bench.follows = True
    bench.run(1002)
    assert goal.outcome is GoalOutcome.SUCCEEDED


def test_efforts_are_forwarded_to_drives_that_take_them_alone():
    with pytest.raises(ConfigurationError, match='drives that take efforts'):
        SimulationSettings(effort_controller='effort_controller', command_interface='position')
