"""Physics, sensors and controller together, cycle by cycle and without a clock."""

from pathlib import Path

import numpy as np
import pytest

from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.nodes.simulated_robot.simulated_robot_node import ControlLoop, Outputs
from robotid_ros.plant.physics import build_drives_of, Physics, Sensors
from robotid_ros.plant.trajectory import Goal, Point
from robotid_ros.plant.trajectory_controller import (
    ControllerSettings,
    GoalOutcome,
    GoalTolerances,
    TrajectoryController,
)
from robotid_ros.simulation_settings import GainSettings

ROOT = Path(__file__).parents[2]
CONFIGURATIONS = sorted((ROOT / 'config').glob('*.yaml'))


class Robot:
    """A configured robot whose messages are kept."""

    def __init__(self, path, **changes):
        configuration = load(path)
        self.settings = settings = configuration.simulation
        for name, value in changes.items():
            object.__setattr__(settings, name, value)
        robot, urdf = configuration.robot, read_urdf(configuration)
        self.physics, step = build_drives_of(
            settings, lambda given: Physics(urdf, given, robot.joints, robot.locked)
        )
        self.controller = TrajectoryController(
            ControllerSettings(
                self.physics.joints, self.physics.wraparound, round(1e9 / settings.update_rate),
                settings.gains, settings.constraints,
                command_interface=settings.command_interface,
            )
        )  # fmt: skip
        self.states, self.commands, self.clocks = [], [], []
        outputs = Outputs(
            lambda *state: self.states.append(state),
            lambda stamp, state: self.commands.append((stamp, list(state.output))),
            self.clocks.append,
        )
        sensors = Sensors(settings, self.physics.joint_state_names)
        self.loop = ControlLoop(self.physics, sensors, self.controller, settings, outputs, step)
        self.controller.activate(self.physics.position.tolist(), [0.0] * len(self.physics.joints))

    def run(self, cycles):
        for _ in range(cycles):
            self.loop.cycle()


@pytest.mark.parametrize('path', CONFIGURATIONS, ids=lambda p: p.stem)
def test_every_robot_holds_still_and_follows(path):
    robot = Robot(path)
    start = robot.physics.position
    robot.run(1000)
    assert np.abs(robot.physics.velocity).max() < 0.05
    limits = [(b.joint.lower, b.joint.upper) for b in robot.physics.bodies]
    middle = [0.5 * (low + high) if np.isfinite(low + high) else 0.0 for low, high in limits]
    step = 0.1 * np.sign(np.array(middle) - start + 1e-9)
    held = robot.controller.state.desired.positions
    points = [
        Point(0, list(held), [0.0] * len(held)),
        Point(10**9, (np.array(held) + step).tolist(), [0.0] * len(held)),
    ]
    goal = robot.controller.start(Goal(robot.physics.joints, 0, points), GoalTolerances())
    robot.run(2500)
    assert goal.outcome is GoalOutcome.SUCCEEDED, goal.text
    np.testing.assert_allclose(robot.physics.position, np.array(held) + step, atol=0.03)


@pytest.mark.parametrize('interface', ['position', 'velocity'])
@pytest.mark.parametrize('name', ['arm3', 'puma560_elastic'])
def test_drives_hold_weights_and_springs_by_loops_that_nobody_tuned(name, interface):
    own = GainSettings(20.0, ff_velocity_scale=1.0)
    gains = {f'joint_{number}': own for number in range(1, 7)}
    robot = Robot(
        ROOT / 'config' / f'{name}.yaml',
        command_interface=interface,
        gains=gains,
        update_rate=500.0,
    )
    robot.run(500)
    held = np.array(robot.controller.state.desired.positions)
    assert np.abs(robot.physics.position - held).max() < 1e-4
    still = [0.0] * len(held)
    points = [Point(0, held.tolist(), still), Point(10**9, (held + 0.2).tolist(), still)]
    goal = robot.controller.start(Goal(robot.physics.joints, 0, points), GoalTolerances())
    worst = 0.0
    for _ in range(1000):
        robot.run(1)
        worst = max(worst, *map(abs, robot.controller.state.error))
    assert goal.outcome is GoalOutcome.SUCCEEDED
    assert worst < 0.01
    assert np.abs(robot.physics.position - held - 0.2).max() < 1e-3


def test_effort_identity_rates_and_stamps():
    path = ROOT / 'config' / 'tx40.yaml'
    robot = Robot(path, state_rate=300.0)
    robot.run(2000)
    assert len(robot.states) == 600
    assert len(robot.commands) == 2000
    commands = dict(robot.commands)
    period = round(1e9 * robot.physics.period)
    sigma = np.array(robot.settings.noise.effort)
    errors = []
    for stamp, _, _, effort in robot.states[1:]:
        cycle = max(s for s in commands if s <= stamp)
        assert 20_000 <= stamp - cycle <= 40_000
        errors.append(np.subtract(effort, commands[cycle - period]) / sigma)
    assert np.abs(np.mean(errors)) < 0.1
    assert np.std(errors) == pytest.approx(1.0, rel=0.1)


def test_a_seed_repeats_everything():
    path = ROOT / 'config' / 'scara.yaml'
    first, same = (Robot(path, real_time_factor=2.0) for _ in range(2))
    for robot in (first, same):
        robot.run(2000)
    assert len(first.states) == 1000
    assert first.states == same.states
    assert len(first.clocks) == 200
