"""From recordings of a known arm back to the arm."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, regressor, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.robot import INERTIAL
from robotid_ros.core.parameters.standard import basic_solution
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.pipeline.observation import validate
from robotid_ros.core.regression.delays import prepare_without_delay
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import Rows
from robotid_ros.core.signals.recording import SignalSettings
from robotid_ros.exceptions import ConfigurationError, RankDeficientError, UnknownNameError

from ..conftest import motion, RATE, URDF

SETTINGS = IdentificationSettings(signals=SignalSettings(cutoff=15.0))
# The hold of a mixed model is on base parameters, which another order of joints groups otherwise.
PLAIN = dataclasses.replace(SETTINGS, model='plain')


def exact_system(robot, truth, seed=0, noise=0.0):
    """Return a system without any filter, W of the true motion."""
    base = base_parameters(robot)
    time = np.arange(600) / 40.0
    W = regressor(robot, *motion(time, seed))[:, :, base.columns].copy()
    Y = W @ base.of(truth)
    Y = Y + noise * np.random.default_rng(seed).normal(size=Y.shape)
    valid = np.ones(Y.shape, dtype=bool)
    return Rows(base.names, base.units, robot.joints, W, Y, valid, time), base.of(truth)


@pytest.mark.parametrize('method', ['ols', 'wls'])
def test_exact_data_give_the_truth(robot, truth, method):
    system, expected = exact_system(robot, truth)
    estimate = fit(system, method)
    np.testing.assert_allclose(estimate.value, expected, rtol=1e-8, atol=1e-8)
    assert estimate.total_residual < 1e-12


def test_wls_is_the_solution_of_the_weighted_normal_equations(robot, truth):
    system, _ = exact_system(robot, truth, noise=0.3)
    sigma = []
    for W, Y in (system.rows(j) for j in range(robot.n)):
        chi = np.linalg.pinv(W, rcond=1e-10) @ Y
        rank = np.linalg.matrix_rank(W)
        sigma.append(np.sqrt(np.sum((Y - W @ chi) ** 2) / (len(Y) - rank)))
    weights = 1.0 / np.array(sigma)
    A = sum(w * w * W.T @ W for w, W in zip(weights, system.W, strict=True))
    g = sum(w * w * W.T @ Y for w, W, Y in zip(weights, system.W, system.Y, strict=True))
    np.testing.assert_allclose(fit(system, 'wls').value, np.linalg.solve(A, g), rtol=1e-6)


def test_units_of_torque_do_not_matter(robot, truth):
    system, _ = exact_system(robot, truth, noise=0.2)
    scaled = dataclasses.replace(system, W=system.W, Y=1000.0 * system.Y)
    one, other = fit(system), fit(scaled)
    np.testing.assert_allclose(1000.0 * one.value, other.value, rtol=1e-8)
    np.testing.assert_allclose(one.relative_sigma, other.relative_sigma, rtol=1e-6)


def test_sigma_is_what_many_draws_show(robot, truth):
    system, expected = exact_system(robot, truth)
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(250):
        noisy = system.Y + np.array([[1.0], [0.5], [0.1]]) * rng.normal(size=system.Y.shape)
        draws.append(fit(dataclasses.replace(system, Y=noisy)))
    values = np.array([d.value for d in draws])
    stated = np.sqrt(np.mean([d.sigma**2 for d in draws], axis=0))
    ratio = stated / values.std(axis=0, ddof=1)
    assert np.all((ratio > 0.7) & (ratio < 1.4))
    bias = np.abs(values.mean(axis=0) - expected) / stated
    assert np.all(bias < 0.4)
    inside = np.mean([np.abs(d.value - expected) < 3.0 * d.sigma for d in draws])
    assert inside > 0.98


def test_what_does_not_move_is_named(robot, truth):
    system, _ = exact_system(robot, truth)
    W = system.W.copy()
    W[:, :, 3] = 2.0 * W[:, :, 5]
    with pytest.raises(RankDeficientError) as caught:
        fit(dataclasses.replace(system, W=W))
    assert set(caught.value.names) == {system.names[3], system.names[5]}


def test_a_joint_that_does_not_move_is_named(robot, record):
    recording = record()
    position = recording.position * [1.0, 1.0, 1e-6]
    still = dataclasses.replace(recording, position=position, velocity=None)
    with pytest.raises(RankDeficientError, match=r'excite .* of j3: .*--joints'):
        identify(still, robot, IdentificationSettings(method='ols'))


def test_unknown_method_lists_the_known(robot, truth):
    with pytest.raises(UnknownNameError, match='wls'):
        fit(exact_system(robot, truth)[0], 'magic')


def test_recording_gives_the_truth_within_the_filters_error(robot, truth, record):
    found = identify(record(), robot, SETTINGS, record(seed=1))
    expected = found.base.of(truth)
    scale = np.maximum(np.abs(expected), 0.05)
    assert np.abs(found.estimate.value - expected).max() / scale.min() < 0.2
    assert np.all(found.validation.relative_residual < 0.01)
    assert found.standard.consistent.all()


def test_noise_stays_within_three_sigma(robot, truth, record):
    found = identify(record(duration=40.0, noise=0.05), robot, SETTINGS)
    error = np.abs(found.estimate.value - found.base.of(truth))
    assert np.mean(error <= 3.0 * found.estimate.sigma) >= 0.9


def test_consistent_parameters_predict_like_the_base(robot, truth, record):
    found = identify(record(noise=0.02), robot, SETTINGS)
    base = found.validation or found.fitted
    standard = validate(record(seed=1), robot, found.standard.value, SETTINGS)
    exact = validate(record(seed=1), robot, truth, SETTINGS)
    assert base.total_residual() < 0.1
    assert standard.total_residual() <= 1.1 * exact.total_residual() + 0.005


def test_clock_and_joint_order_do_not_matter(robot, record):
    recording = record(noise=0.01)
    found = identify(recording, robot, PLAIN)
    later = dataclasses.replace(recording, time=recording.time + 1234.5)
    shifted = identify(later, robot, PLAIN)
    np.testing.assert_allclose(shifted.estimate.value, found.estimate.value, rtol=1e-5, atol=1e-6)
    turned = recording.select(('j3', 'j1', 'j2'))
    other = build_robot(URDF, RobotSettings(joints=('j3', 'j1', 'j2')))
    swapped = identify(turned, other, PLAIN)
    one = validate(record(seed=2), robot, basic_solution(found.base, found.estimate.value), PLAIN)
    two = validate(
        record(seed=2).select(other.joints),
        other,
        basic_solution(swapped.base, swapped.estimate.value),
        PLAIN,
    )
    np.testing.assert_allclose(two.predicted[:, [1, 2, 0]], one.predicted, atol=1e-5)


def test_payload_is_the_difference(robot, truth, record):
    heavy = truth.copy()
    heavy[robot.column('M3')] += 0.8
    heavy[robot.column('MX3')] += 0.8 * 0.3
    light = identify(record(), robot, SETTINGS)
    loaded = identify(record(of=heavy), robot, SETTINGS)
    change = loaded.estimate.value - light.estimate.value
    np.testing.assert_allclose(change, light.base.of(heavy - truth), atol=5e-3)


def test_what_a_joint_says_when_it_stands(robot, record):
    recording = record()
    q = recording.position.copy()
    q[:, 2] = q[0, 2]
    still = dataclasses.replace(recording, position=q)
    with pytest.raises(RankDeficientError, match='3'):
        identify(still, robot, SETTINGS)


def test_rate_of_samples_is_known(record):
    assert np.isclose(1.0 / np.diff(record().time).mean(), RATE)


def test_what_no_body_can_do_is_a_warning_unless_any_cost_is_right(robot, truth, record):
    chi = np.array(truth)
    chi[robot.first_columns[2] : robot.first_columns[2] + 10] *= -1.0
    recording = record(noise=0.01, of=chi)
    found = identify(recording, robot, IdentificationSettings())
    assert select(found.findings, 'not_physical')
    assert found.standard.obstacle.joints == (robot.joints[2],)
    kept = identify(recording, robot, IdentificationSettings(prior_spread=0.3, prior_cost=1e6))
    assert not select(kept.findings, 'not_physical')
    assert kept.standard.spread == 0.3


@pytest.mark.parametrize('method', ['ols', 'wls'])
def test_the_plain_model_is_least_squares_and_nothing_is_chosen(record, method):
    """Its estimate is that of `numpy.linalg.lstsq`: viscous and Coulomb friction, offset."""
    robot = build_robot(URDF, RobotSettings())
    base = base_parameters(robot)
    recording = record(noise=0.05)
    settings = dataclasses.replace(PLAIN, method=method, essential=False)
    found = identify(recording, robot, settings)
    symbols = {p.symbol for p in found.robot.parameters} - set(INERTIAL)
    assert found.mixed is None and symbols == {'Ia', 'Fv', 'Fc', 'off'}
    system = prepare_without_delay(recording, robot, base, settings.signals).system
    rows = [
        (W[used], Y[used]) for W, Y, used in zip(system.W, system.Y, system.valid, strict=True)
    ]
    weights = np.ones(robot.n)
    if method == 'wls':
        for j, (W, Y) in enumerate(rows):
            chi, _, rank, _ = np.linalg.lstsq(W, Y, rcond=1e-10)
            weights[j] = np.sqrt((len(Y) - rank) / np.sum((Y - W @ chi) ** 2))
    A = np.vstack([w * W for w, (W, _) in zip(weights, rows, strict=True)])
    b = np.concatenate([w * Y for w, (_, Y) in zip(weights, rows, strict=True)])
    size = np.linalg.norm(A, axis=0)
    expected = np.linalg.lstsq(A / size, b, rcond=None)[0] / size
    assert found.estimate.names == base.names
    np.testing.assert_allclose(found.estimate.value, expected, rtol=1e-6, atol=1e-9)


def test_load_coulomb_is_of_commands(record):
    terms = {'default': ('viscous', 'coulomb', 'load_coulomb')}
    robot = build_robot(URDF, RobotSettings(friction=terms))
    with pytest.raises(ConfigurationError, match='of --method commands'):
        identify(record(), robot, IdentificationSettings(method='wls'))
