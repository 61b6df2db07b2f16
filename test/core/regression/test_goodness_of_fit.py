"""Figures of fit are those of textbooks."""

from pathlib import Path

import numpy as np
import pytest

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.core.regression.goodness_of_fit import validate_samples, validate_system
from robotid_ros.core.regression.observation_system import observe
from robotid_ros.core.regression.validation import Validation
from robotid_ros.core.signals.recording import Samples


def test_determination_is_the_squared_correlation_of_a_line_and_its_data():
    rng = np.random.default_rng(0)
    time = np.linspace(0.0, 1.0, 50)
    measured = 30.0 + time[:, None] * [5.0, -2.0] + rng.normal(size=(50, 2))
    line = np.column_stack([np.polyval(np.polyfit(time, y, 1), time) for y in measured.T])
    fit = Validation(('a', 'b'), time, measured, line, np.ones((50, 2), dtype=bool))
    squared = [np.corrcoef(measured[:, j], line[:, j])[0, 1] ** 2 for j in range(2)]
    np.testing.assert_allclose(fit.r2, squared, rtol=1e-9)
    np.testing.assert_allclose(fit.rms, np.std(measured - line, axis=0), rtol=1e-9)


def test_residuals_are_shares_of_the_effort_by_joint_and_where_it_moves():
    rng = np.random.default_rng(0)
    measured, error = rng.normal(size=(2, 60, 3))
    moving = rng.uniform(size=(60, 3)) < 0.6
    fit = Validation(('a', 'b', 'c'), np.arange(60.0), measured, measured - error, moving)
    norm = np.linalg.norm
    np.testing.assert_allclose(fit.relative_residual, norm(error, axis=0) / norm(measured, axis=0))
    by_joint = [norm(error[m, j]) / norm(measured[m, j]) for j, m in enumerate(moving.T)]
    np.testing.assert_allclose(fit.moving_residual, by_joint)
    ratio = norm(error[moving]) / norm(measured[moving])
    np.testing.assert_allclose(fit.total_residual(), norm(error) / norm(measured))
    np.testing.assert_allclose(fit.total_residual(moving=True), ratio)


URDF = Path(__file__).resolve().parents[3] / 'urdf' / 'arm3.urdf'


@pytest.fixture(scope='module')
def case():
    robot = build_robot(URDF.read_text(), RobotSettings())
    chi = robot.prior.copy()
    for k in range(1, robot.n + 1):
        chi[robot.column(f'Fv{k}')], chi[robot.column(f'Fc{k}')] = 0.5, 0.7
        chi[robot.column(f'off{k}')] = 0.3
    time = np.arange(2000) * 1e-3
    rates = 2.0 * np.pi * np.array([0.5, 0.8, 1.1])
    q, dq, ddq = np.sin(time[:, None] * rates), None, None
    dq, ddq = rates * np.cos(time[:, None] * rates), -(rates**2) * q
    tau = inverse_dynamics(robot, chi, q, dq, ddq, successive=True)
    valid = np.ones(q.shape, dtype=bool)
    samples = Samples(robot.joints, time, q, dq, ddq, tau, 1000.0, valid, decimation=5)
    return robot, chi, samples


def test_parts_of_samples_add_up(case):
    robot, chi, samples = case
    found = validate_samples(samples, robot, chi)
    total = sum(found.parts.values())
    np.testing.assert_allclose(total, found.predicted, atol=1e-9)
    np.testing.assert_allclose(found.offset, 0.3, atol=1e-6)
    still = np.zeros_like(samples.q)
    links = chi.copy()
    for k in range(1, robot.n + 1):
        links[[robot.column(f'{name}{k}') for name in ('Fv', 'Fc', 'off')]] = 0.0
    gravity = inverse_dynamics(robot, links, samples.q, still, still)[::5]
    middle = slice(20, -20)  # away from the filter's transients
    np.testing.assert_allclose(found.gravity[middle], gravity[middle], atol=1e-3)
    friction = 0.5 * samples.dq[::5] + 0.7 * np.sign(samples.dq[::5])
    clear = np.abs(samples.dq[::5]) > 1.0  # away from reversals, which the filter rounds
    np.testing.assert_allclose(found.friction[clear], friction[clear], atol=0.05)


def test_parts_of_rows_are_those_of_their_samples(case):
    robot, chi, samples = case
    base = base_parameters(robot)
    system = observe(samples, robot, base)
    by_rows = validate_system(system, robot, base, base.of(chi))
    by_samples = validate_samples(samples, robot, chi)
    np.testing.assert_allclose(by_rows.predicted, by_samples.predicted, atol=1e-6)
    np.testing.assert_allclose(by_rows.friction, by_samples.friction, atol=1e-6)
    np.testing.assert_allclose(
        by_rows.inertia + by_rows.gravity, by_samples.inertia + by_samples.gravity, atol=1e-6
    )
    np.testing.assert_allclose(by_rows.gravity[20:-20], by_samples.gravity[20:-20], atol=1e-3)
    np.testing.assert_allclose(by_rows.velocity, samples.dq[::5])
