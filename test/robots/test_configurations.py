"""Configurations: every file loads, and builds the robot that its sources speak of."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from scipy import linalg

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.dynamics import regressor
from robotid_ros.files.configuration import load, resolve

FOLDER = Path(__file__).resolve().parents[2] / 'config'
FILES = sorted(FOLDER.glob('*.yaml'))
EVERY = pytest.mark.parametrize('path', FILES, ids=lambda path: path.stem)


def robot_of(path, **changes):
    settings = dataclasses.replace(load(path).robot, **changes)
    return build_robot(resolve(settings.urdf, path.parent).read_text(), settings)


def rank(robot):
    """Count base parameters by the singular values of random states."""
    q, dq, ddq = np.random.default_rng(0).uniform(-2, 2, (3, 200, robot.n))
    observation = regressor(robot, q, dq, ddq).reshape(-1, robot.p)
    values = linalg.svdvals(observation)
    return int(np.sum(values > 1e-9 * values[0]))


def test_every_robot_of_the_first_kind_is_configured():
    assert {path.stem for path in FILES} >= {'arm3', 'emps', 'scara', 'tx40', 'ur10'}


@EVERY
def test_configuration_names_the_robot_and_its_joints(path):
    configuration = load(path)
    robot = robot_of(path)
    assert robot.name == configuration.robot.name == path.stem
    assert robot.joints == configuration.robot.joints
    assert np.all(np.isfinite(robot.limits.acceleration))


@EVERY
def test_start_and_gains_suit_the_robot(path):
    configuration = load(path)
    robot = robot_of(path)
    simulation = configuration.simulation
    for position in (configuration.excitation.start, simulation.initial_positions):
        assert len(position) == robot.n
        assert np.all(robot.limits.lower < position) and np.all(position < robot.limits.upper)
    assert set(simulation.gains) == set(robot.joints)
    assert all(gain.p > 0 and gain.d > 0 for gain in simulation.gains.values())


@EVERY
def test_simulated_truth_is_not_the_prior(path):
    simulation = load(path).simulation
    assert simulation.inertial_error > 0
    noise = simulation.noise
    assert min(noise.effort) > 0
    assert min(noise.position) > 0 or min(noise.resolution) > 0


@pytest.mark.parametrize(
    ('name', 'expected'),
    [
        ('scara', 8),  # DIDIM eq. 64
        ('emps', 4),  # M, Fv, Fc, offset
        ('tx40', 61),  # STD section V: 58 and Ia56, Fv56, Fc56 of the wrist
        ('ur10', 58),
        ('arm3', 24),  # table 2 of Szabó and Szádeczky-Kardoss
    ],
)
def test_number_of_base_parameters(name, expected):
    assert rank(robot_of(FOLDER / f'{name}.yaml')) == expected


def test_scara_prior_gives_the_torques_of_the_paper():
    """Compare with the columns of DIDIM eq. 65 times table 1."""
    robot = robot_of(FOLDER / 'scara.yaml')
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, 50, 2))
    torque = regressor(robot, q, dq, ddq) @ robot.prior
    (d1, d2), (a1, a2) = dq.T, ddq.T
    c, s = np.cos(q[:, 1]), np.sin(q[:, 1])
    zz1, fv1, fc1, zz2, lmx, lmy, fv2, fc2 = 3.44, 0.03, 0.82, 0.062, 0.121, 0.007, 0.013, 0.137
    first = zz1 * a1 + zz2 * (a1 + a2) + fv1 * d1 + fc1 * np.sign(d1)
    first += lmx * ((2 * a1 + a2) * c - d2 * (2 * d1 + d2) * s)
    first -= lmy * ((2 * a1 + a2) * s + d2 * (2 * d1 + d2) * c)
    second = zz2 * (a1 + a2) + fv2 * d2 + fc2 * np.sign(d2)
    second += lmx * (a1 * c + d1**2 * s) + lmy * (d1**2 * c - a1 * s)
    np.testing.assert_allclose(torque, [first, second], rtol=1e-9, atol=1e-9)


def test_simulated_wrist_is_coupled_as_the_model_says():
    configuration = load(FOLDER / 'tx40.yaml')
    (coupling,) = configuration.robot.couplings.values()
    assert configuration.simulation.coupling.matrix == coupling.ratios


@pytest.mark.parametrize('path', sorted((FOLDER.parent / 'urdf').glob('*')), ids=lambda p: p.stem)
def test_every_description_becomes_a_robot_without_configuration(path):
    robot = build_robot(path.read_text(), RobotSettings())
    assert robot.name == path.stem
    assert robot.n == robot.model.nv
    assert not robot.warnings
