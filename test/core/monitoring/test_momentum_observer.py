"""The observer's residual follows external efforts as its equation says."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from robotid_ros.core.model import build_robot, inverse_dynamics
from robotid_ros.core.model.dynamics import RobotDynamics
from robotid_ros.core.monitoring.external_effort import MomentumObserver
from robotid_ros.exceptions import ConfigurationError
from robotid_ros.files.configuration import load, read_urdf

from ..conftest import motion

TX40 = Path(__file__).resolve().parents[3] / 'config' / 'tx40.yaml'
GAIN, PUSH = np.array([20.0, 30.0, 40.0]), np.array([3.0, -5.0, 2.0])


def observe(model, states, time, gain, standstill):
    """Return r, below and above along a motion, (N, 3, n)."""
    observer = MomentumObserver(model, gain, standstill)
    rows = [(row[:3], row[3]) for row in np.stack(states, axis=1)]
    observer.start(*rows[0])
    found = [observer.observed]
    for row, h in zip(rows[1:], np.diff(time).tolist(), strict=True):
        observer.step(*row, h)
        found.append(observer.observed)
    return np.array(found)


@pytest.mark.parametrize('jitter', [0.0, 0.25])
def test_the_residual_is_the_first_order_response_to_a_step(robot, truth, jitter):
    chi = truth.copy()
    # Friction that jumps has no trapezoidal rule.
    chi[[robot.column(f'Fc{joint}') for joint in (1, 2, 3)]] = 0.0
    errors = []
    for count in (200, 400):
        time = np.linspace(0.0, 1.0, count + 1)
        time[1:-1] += jitter * np.random.default_rng(3).uniform(-1.0, 1.0, count - 1) / count
        q, dq, ddq = motion(time, seed=1)
        tau = inverse_dynamics(robot, chi, q, dq, ddq) - PUSH
        model = RobotDynamics(robot, chi)
        seen = observe(model, (q, dq, ddq, tau), time, GAIN, standstill=0.0)
        expected = PUSH * (1.0 - np.exp(-np.outer(time, GAIN)))
        errors.append(np.abs(seen[:, 0] - expected).max())
        assert not seen[:, 1:].any()
    # What is left is the error of the trapezoidal rule, which is of second order.
    assert errors[0] < 2e-3
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.3)


def test_what_friction_may_hide_at_rest_is_within_the_bounds():
    configuration = load(TX40)
    couplings = {'wrist': replace(configuration.robot.couplings['wrist'])}
    couplings['wrist'] = replace(couplings['wrist'], ratios=(0.0, 0.0, 0.0, 0.3, -1.0, 1.0))
    robot = build_robot(
        read_urdf(configuration) or '', replace(configuration.robot, couplings=couplings)
    )
    chi, rng = robot.prior.copy(), np.random.default_rng(8)
    dry = rng.uniform(0.5, 3.0, 7)
    for size, joint in zip(dry, ('1', '2', '3', '4', '5', '6', '56'), strict=False):
        names = [p.name for p in robot.parameters]
        chi[names.index(f'Fc{joint}' if f'Fc{joint}' in names else names[-1])] = size
    model = RobotDynamics(robot, chi)
    q, still = rng.uniform(-1.0, 1.0, 6), np.zeros(6)
    hold = model.gravity(q) + model.friction(q, still)
    largest = np.zeros(6)
    for _ in range(50):
        # Stuck drives bear any torque up to their friction, motors that turn two joints too.
        stuck = rng.choice([-1.0, 1.0], 7) * dry @ model.drives
        states = [np.tile(x, (30, 1)) for x in (q, still, still, hold + stuck - 0.5)]
        r, below, above = observe(model, states, np.arange(30) * 0.02, (20.0,), 0.01)[-1]
        assert (r - below <= 0.5).all() and (0.5 <= r + above).all()
        largest = np.maximum(largest, np.abs(r - 0.5) / np.maximum(below, above))
    # The bounds are not wider than static friction asks for.
    assert (largest > 0.75).all()


def test_after_a_slide_friction_keeps_its_direction(robot, truth):
    model, h = RobotDynamics(robot, truth), 0.002
    time = np.arange(0.0, 1.5, h)
    # Joint 2 slides down until 0.5 s and sticks there while a push lasts.
    speed = np.where(time < 0.5, -0.4 * np.sin(2.0 * np.pi * time) ** 2, 0.0)
    change = np.where(time < 0.5, -0.8 * np.pi * np.sin(4.0 * np.pi * time), 0.0)
    q, dq, ddq = (np.zeros((len(time), 3)) for _ in range(3))
    q[:, 1], dq[:, 1], ddq[:, 1] = np.cumsum(speed) * h, speed, change
    tau = np.array([model.efforts(*state) for state in zip(q, dq, ddq, strict=True)])
    friction = truth[robot.column('Fc2')]
    tau[time >= 0.5, 1] -= friction
    seen = observe(model, (q, dq, ddq, tau), time, (30.0,), 0.01)
    r, below, above = seen[-1, :, 1]
    # All of the friction is against the last direction; viscous friction of the slowest motion.
    assert abs(r) < 0.02 * friction
    assert above > 2.0 * friction > 0.3 * friction > below


def test_the_wrong_number_of_gains_is_refused(robot, truth):
    with pytest.raises(ConfigurationError, match='has 2 values: give one, or one per joint'):
        MomentumObserver(RobotDynamics(robot, truth), (10.0, 20.0), 0.01)
