"""Servo arms in windows: against MuJoCo, the scalar law of dry friction, finite differences."""

import dataclasses

import numpy as np
import pytest
import servo_plant

from robotid_ros.core.replay.commanded import _servo_arm, commanded_log, KnownMass, make_windows
from robotid_ros.core.replay.servos import batch_mean_sign, ServoProblem, simulate_servos, Windows
from robotid_ros.core.replay.simulation import mean_sign

TRUTH = {
    'shoulder': {'stiffness': 18.0, 'damping': 0.6, 'armature': 0.028, 'Fc': 0.05},
    'elbow': {'stiffness': 14.0, 'damping': 0.5, 'armature': 0.025, 'Fc': 0.04, 'limit': 1.5},
}
DELAY = 0.033


@pytest.fixture(scope='module')
def problem():
    """Return the arm, its windows without noise, and the true parameters."""
    time = np.arange(0.0, 6.0, 0.02)
    commands = servo_plant.motion(time, 2, 1, 0.5)
    recording = servo_plant.record(servo_plant.ARM, TRUTH, commands, 50, DELAY, noise=0.0)
    robot = servo_plant.robot(servo_plant.ARM)
    log = commanded_log(recording, robot)
    heavy = KnownMass(0.0, robot.model.frames[-1].name, (0.0, 0.0, 0.0))
    arm = _servo_arm(robot, 1, heavy)  # with a scale of its bodies
    arm = dataclasses.replace(arm, names=(*arm.names, ('limit', 1)))
    joints = tuple(TRUTH)
    known = {'delay': DELAY, 'bodies': 1.0, 'bias': 0.0}
    theta = [known.get(s, TRUTH[joints[j]].get(s)) for s, j in arm.names]
    return arm, make_windows([log]), np.array(theta)


def test_it_moves_as_mujoco_does(problem):
    arm, windows, theta = problem
    states = windows.state.copy()
    states[:, 0] = windows.q[:, 0]
    q = simulate_servos(arm, windows, theta[None], states[:, None], 1e-3)[0][:, 0]
    # Of the velocity at the start, which is smoothed, nothing is left after half a second.
    late = windows.time > 0.5
    travel = np.ptp(windows.q, axis=(0, 1))
    assert np.abs((q - windows.q)[late] / travel).max() < 3e-4


def test_its_sensitivities_are_those_of_whole_simulations(problem):
    arm, windows, theta = problem
    scales = np.ones((3, arm.robot.n))
    whole = ServoProblem(arm, windows, scales, 1.0 / scales[0])
    fit = whole.evaluate(theta, windows.state)
    sizes = np.maximum(np.abs(theta), 0.01)
    linear = whole.linearise(fit, sizes)
    for k, step in enumerate(1e-4 * sizes):
        moved = theta.copy()
        moved[k] += step
        change = (fit.residual - whole.evaluate(moved, windows.state).residual) / step
        slope = (change * fit.residual).sum(axis=(1, 2))
        # The scores hold the same, without what initial states explain; compare with these kept.
        assert np.isfinite(linear.scores[:, k]).all() and np.isfinite(slope).all()
        rows = np.vstack([theta, moved])
        states = np.repeat(windows.state[:, None], 2, axis=1)
        q = simulate_servos(arm, windows, rows, states, 4e-3)[0]
        near = (q[:, 1] - q[:, 0]) / step * windows.valid[..., None]
        assert np.abs(near - change).max() < 0.03 * np.abs(change).max() + 1e-9


def test_dry_friction_stops_and_holds_as_the_scalar_law_says():
    rng = np.random.default_rng(0)
    speed, rest, friction = rng.normal(size=(3, 500))
    speed[::7], friction = 0.01 * speed[::7], np.abs(friction)
    speed[::11] = 0.0
    expected = [
        mean_sign(*map(float, each), 0.01) for each in zip(speed, rest, friction, strict=True)
    ]
    np.testing.assert_allclose(batch_mean_sign(speed, rest, friction, 0.01), expected, atol=1e-12)


def test_commands_are_held_and_late():
    time = np.array([0.0, 0.1, 0.25, 0.3])
    u = np.array([[1.0], [3.0], [-2.0], [5.0]])
    none = np.zeros((1, 1))
    windows = Windows(
        np.array([0.05]), np.zeros(1, int), none, none > 0, none[..., None], none, ((time, u),)
    )
    fine = 0.05 + 1e-5 * (np.arange(30_000) + 0.5) - 0.0123
    held = u[np.maximum(np.searchsorted(time, fine, side='right') - 1, 0), 0]
    found = windows.commanded(0.0123, 0.01, 30)[0, :, 0]
    np.testing.assert_allclose(found, held.reshape(30, -1).mean(axis=1), atol=5e-3)
