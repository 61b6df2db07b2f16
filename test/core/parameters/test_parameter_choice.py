"""Which parameters to predict with is advised where exact torques of another motion agree."""

import numpy as np
import pytest

from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import inverse_dynamics
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.parameters.essential import find_essential
from robotid_ros.core.parameters.parameter_choice import try_base, try_essential
from robotid_ros.core.parameters.standard import basic_solution, refit, standard_parameters
from robotid_ros.core.pipeline.estimation import estimate_base_parameters
from robotid_ros.core.signals.samples import SignalSettings

from ..conftest import motion

SETTINGS = IdentificationSettings(method='wls', model='plain', signals=SignalSettings(cutoff=8.0))


@pytest.fixture(scope='module')
def base(robot):
    return base_parameters(robot)


@pytest.fixture(scope='module')
def estimated(robot, base):
    def of(recording):
        return estimate_base_parameters(recording, robot, base, SETTINGS, lambda _: None)

    return of


def exact_error(robot, base, truth, value):
    """Return what parameters leave of the exact torque of another motion."""
    states = motion(np.linspace(0.0, 10.0, 1000), seed=99)
    exact = inverse_dynamics(robot, truth, *states)
    error = inverse_dynamics(robot, basic_solution(base, value), *states) - exact
    return np.linalg.norm(error / exact.std(axis=0))


def test_essential_parameters_that_are_advised_predict_another_motion_better(
    robot, base, estimated, record, truth
):
    advised = 0
    for seed in range(6):
        found = estimated(record(seed, duration=6.0, noise=0.3))
        essential = find_essential(found.system, found.estimate)
        if try_essential(found.sampled_systems, found.estimate) is None:
            continue
        advised += 1
        value = np.zeros(base.rank)
        value[essential.indices] = essential.estimate.value
        fewer, every = (exact_error(robot, base, truth, x) for x in (value, found.estimate.value))
        assert fewer < every
    assert advised


def test_one_essential_parameter_is_not_advised(estimated, record):
    """A bound that only one parameter keeps: it predicts no joint but its own."""
    found = estimated(record(1, duration=6.0, noise=0.3))
    assert try_essential(found.sampled_systems, found.estimate, 0.01, 1e-9) is None


def test_base_parameters_are_advised_where_no_body_explains_the_torque(
    robot, base, estimated, record, truth
):
    impossible = truth.copy()
    impossible[robot.column('Fc2')] = -3.0
    for chi, expected in ((truth, False), (impossible, True)):
        found = estimated(record(1, noise=0.02, of=chi))
        systems = found.sampled_systems
        standard = standard_parameters(robot, base, found.estimate, found.system)
        trial = try_base(robot, base, found.estimate, standard, 0.2, systems)
        assert bool(standard.obstacle) == (trial is not None) == expected
    assert trial.after < 0.3 * trial.before


def test_a_refit_to_all_rows_is_the_fit(robot, base, estimated, record):
    found = estimated(record(2, noise=0.05))
    normal = np.linalg.inv(found.estimate.classical)
    pull = standard_parameters(robot, base, found.estimate, None, 0.2, 0.1)
    again = refit(
        robot, base, found.estimate, (0.2, pull.spread), normal, normal @ found.estimate.value
    )
    expected = base.of(pull.value)
    assert np.allclose(again, expected, atol=1e-3 * np.abs(expected).max())
