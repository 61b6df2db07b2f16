"""Friction that grows with the load: the share of the truth, found from a wrong prior."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, inverse_dynamics, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.settings import ElasticSettings
from robotid_ros.core.pipeline.estimation import iterate_friction_load
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import observe
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Recording, SignalSettings
from robotid_ros.exceptions import ConfigurationError

from ..conftest import motion, URDF

TERMS = ('viscous', 'coulomb', 'load_coulomb')
SETTINGS = IdentificationSettings(
    signals=SignalSettings(cutoff=20.0, standstill=0.05, time_offset=False)
)
SHARE = {'Fv': 0.5, 'Fc': 0.8, 'Fl': 0.15}


def arm(**settings):
    return build_robot(
        URDF, RobotSettings(friction={'default': TERMS}, rotor_inertia=False, **settings)
    )


@pytest.fixture(scope='module')
def case():
    """Return a robot whose prior is some 20 % off, the truth, and its motion and torque."""
    robot, rng = arm(), np.random.default_rng(2)
    chi = robot.prior * (1.0 + 0.2 * rng.uniform(-1.0, 1.0, robot.p))
    for k, parameter in enumerate(robot.parameters):
        chi[k] = SHARE.get(parameter.symbol, chi[k])
    time = np.arange(6000) / 200.0
    q, dq, ddq = motion(time, 0)
    return robot, chi, Recording(robot.joints, time, q, inverse_dynamics(robot, chi, q, dq, ddq))


def estimate(robot, recording):
    base = base_parameters(robot)
    return base, fit(observe(prepare(recording, robot, SETTINGS.signals), robot, base), 'wls')


def test_the_truth_is_found(case):
    robot, chi, recording = case
    found, notes = iterate_friction_load(recording, robot, SETTINGS)
    assert notes == []
    base, result = estimate(found, recording)
    assert {f'Fl{j}' for j in (1, 2, 3)} <= set(base.names)
    scale = np.maximum(np.abs(base.of(chi)), 0.1)
    np.testing.assert_allclose(result.value / scale, base.of(chi) / scale, atol=0.01)
    # Filters and differences alone remain; the URDF's links as load do not fit as well.
    assert result.total_residual < 0.2 * estimate(robot, recording)[1].total_residual


def test_noise_leaves_no_bias_beyond_what_is_stated(case):
    robot, chi, recording = case
    rng = np.random.default_rng(0)
    noise = 0.02 * recording.effort.std(axis=0) * rng.normal(size=recording.effort.shape)
    noisy = dataclasses.replace(recording, effort=recording.effort + noise)
    base, result = estimate(iterate_friction_load(noisy, robot, SETTINGS)[0], noisy)
    assert np.abs((result.value - base.of(chi)) / result.sigma).max() < 4.0


def test_other_robots_stay_as_they_are_and_simulations_are_refused(case):
    _, _, recording = case
    plain = build_robot(URDF, RobotSettings())
    assert iterate_friction_load(recording, plain, SETTINGS) == (plain, [])
    with pytest.raises(ConfigurationError, match='load_coulomb'):
        iterate_friction_load(recording, arm(), dataclasses.replace(SETTINGS, method='didim'))
    elastic = arm(elastic=ElasticSettings(joints=('j2',))).elastic
    with pytest.raises(ConfigurationError, match='rigid joints'):
        iterate_friction_load(recording, elastic, SETTINGS)


def test_an_identification_predicts_with_it(case):
    robot, _, recording = case
    settings = dataclasses.replace(SETTINGS, essential=False)
    found = identify(recording, robot, settings, recording)
    assert found.validation.total_residual(moving=True) < 0.01
    values = dict(zip(found.estimate.names, found.estimate.value, strict=True))
    assert values['Fl2'] == pytest.approx(SHARE['Fl'], rel=0.05)
    assert found.standard.value[robot.column('Fl2')] == pytest.approx(SHARE['Fl'], rel=0.1)
    pieces = identify(iter([recording]), robot, settings)
    assert select(pieces.findings, 'load_of_urdf')
