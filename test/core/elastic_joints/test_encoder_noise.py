"""Elastic robots with noisy encoders: least squares, instruments and likelihood."""

from dataclasses import replace

from best_cases import cramer_rao_bound
import numpy as np
import pytest

from robotid_ros.core.elastic_joints.elastic_estimation import (
    fit_with_instruments,
    fit_with_motion,
    maximum_likelihood,
)
from robotid_ros.core.excitation.trajectory import Trajectory
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.settings import ElasticSettings
from robotid_ros.core.parameters.essential import restrict
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import observe
from robotid_ros.core.signals.periodic import AveragePeriod
from robotid_ros.core.signals.recording import Recording
from robotid_ros.exceptions import UnknownNameError

from .test_elastic_estimation import build, motion, PERIOD, RATE, SETTINGS, truth

NOISE, COUNT = 1e-3, 9
TRAJECTORY = Trajectory(('joint_1', 'joint_2'), 'ffs', PERIOD, 5, np.zeros(2), np.zeros((10, 2)))


def noisy(samples, seed, noise=NOISE, count=COUNT):
    """Record some periods with noise on every encoder; efforts at the motors' names."""
    q = np.tile(samples.q, (count, 1))
    q = q + noise * np.random.default_rng(seed).normal(size=q.shape)
    effort = np.tile(np.where(samples.tau == 0.0, np.nan, samples.tau), (count, 1))
    time = np.arange(len(q)) / RATE
    return Recording(samples.joints, time, q, effort, trajectories={'exciting': TRAJECTORY})


def averages(samples, seed, noise=NOISE):
    """Average the periods of such a recording."""
    sigma = np.full(samples.q.shape[1], noise / np.sqrt(COUNT))
    q = samples.q + sigma * np.random.default_rng(seed).normal(size=samples.q.shape)
    return AveragePeriod(q, np.array(samples.tau), sigma, PERIOD)


def started(samples, robot, base, error=0.0):
    """Return an estimate whose parameters are all wrong by some share, and known to 100 %."""
    estimate = fit(observe(samples, robot, base), 'wls')
    sign = np.where(np.arange(base.rank) % 2, 1.0, -1.0)
    return replace(
        estimate,
        value=estimate.value * (1.0 + error * sign),
        covariance=np.diag(estimate.value**2),
        residual=np.ones(robot.n),
    )


def test_instruments_do_not_soften_springs():
    robot = build().elastic
    base, chi = base_parameters(robot), truth(robot)
    clean = motion(robot, chi)
    softer, right = [], []
    for seed in range(5):
        noise = 1e-3 * np.random.default_rng(seed).normal(size=clean.q.shape)
        system = observe(replace(clean, q=clean.q + noise), robot, base)
        estimate = fit(system, 'wls')
        _, better = fit_with_instruments(system, robot, estimate)
        k = base.names.index('K2')
        softer.append(estimate.value[k] / 20000.0 - 1.0)
        right.append(better.value[k] / 20000.0 - 1.0)
    assert np.mean(softer) < -0.2
    assert abs(np.mean(right)) < 0.05


@pytest.mark.parametrize('sprung', [('joint_1', 'joint_2'), ('joint_2',)])
def test_likelihood_finds_parameters_again_from_a_start_that_is_far_off(sprung):
    elastic = ElasticSettings(joints=sprung, link_friction={'default': ('viscous',)})
    robot = build(elastic=elastic).elastic
    base, chi = base_parameters(robot), truth(robot)
    clean = motion(robot, chi)
    start = started(clean, robot, base, 0.4)
    found = maximum_likelihood(averages(clean, 0, 1e-6), robot, base, start.value)
    np.testing.assert_allclose(found.value, base.of(chi), rtol=2e-3, atol=2e-3)


def test_its_sigma_is_what_it_errs_by():
    robot = build().elastic
    base, chi = base_parameters(robot), truth(robot)
    clean = motion(robot, chi)
    start = started(clean, robot, base, 0.1)
    errors = []
    for seed in range(8):
        found = maximum_likelihood(averages(clean, seed), robot, base, start.value)
        errors.append((found.value - base.of(chi)) / np.sqrt(np.diag(found.covariance)))
        assert 0.7 < found.misfit < 1.4
    assert 0.7 < np.sqrt(np.mean(np.square(errors))) < 1.4
    assert np.abs(errors).max() < 5.0


def test_nothing_falls_below_the_bound_and_the_likelihood_comes_near():
    robot = build().elastic
    base, chi = base_parameters(robot), truth(robot)
    clean = motion(robot, chi)
    periods = replace(averages(clean, 0), position=np.array(clean.q))
    start = started(clean, robot, base)
    found = maximum_likelihood(averages(clean, 0), robot, base, start.value)
    least = np.sqrt(np.diag(cramer_rao_bound(periods, robot, base, base.of(chi))))
    ratio = np.sqrt(np.diag(found.covariance)) / least
    assert ratio.min() > 0.97
    assert ratio.max() < 2.0
    quieter = replace(periods, sigma=0.5 * periods.sigma)
    half = np.sqrt(np.diag(cramer_rao_bound(quieter, robot, base, base.of(chi))))
    k = base.names.index('K1')
    assert half[k] == pytest.approx(0.5 * least[k], rel=0.1)


def test_a_delay_of_the_efforts_is_found_beside_it():
    robot = build().elastic
    base, chi = base_parameters(robot), truth(robot)
    clean = motion(robot, chi)
    periods = averages(clean, 3)
    late = replace(periods, torque=np.roll(periods.torque, 2, axis=0))
    found = maximum_likelihood(late, robot, base, started(clean, robot, base).value)
    assert found.delay == pytest.approx(2.0 / RATE, abs=2e-4)
    k = base.names.index('K1')
    assert found.value[k] == pytest.approx(20000.0, abs=4.0 * found.covariance[k, k] ** 0.5)


def test_positions_that_no_parameters_explain_have_no_likelihood():
    robot = build().elastic
    base = base_parameters(robot)
    clean = motion(robot, truth(robot))
    periods = averages(clean, 0)
    other = replace(periods, torque=periods.torque[::-1].copy())
    start = started(clean, robot, base)
    assert maximum_likelihood(other, robot, base, start.value) is None
    assert maximum_likelihood(periods, robot, base, start.value) is not None


def test_an_estimate_that_knows_its_springs_better_than_the_likelihood_stands():
    robot = build().elastic
    base = base_parameters(robot)
    clean = motion(robot, truth(robot))
    system, start = observe(clean, robot, base), started(clean, robot, base)
    better = replace(start, covariance=1e-12 * start.covariance)
    for each, method in ((start, 'ml'), (better, start.method)):
        assert fit_with_motion(noisy(clean, 0), system, robot, base, each)[0].method == method


def test_a_spring_that_encoders_do_not_show_keeps_to_its_description():
    """Without a prior it ends a fiftieth as stiff as it is, many σ off."""
    joints = ('joint_1', 'joint_2')
    robot = build(elastic=ElasticSettings(joints=joints, stiffness=(15000.0, 3e8))).elastic
    base, chi = base_parameters(robot), truth(robot)
    chi[robot.column('K2')] = 2e8
    clean = motion(robot, chi)
    start = started(clean, robot, base, 0.1)
    found = maximum_likelihood(averages(clean, 0), robot, base, start.value)
    sigma = np.sqrt(np.diag(found.covariance))
    assert np.all(np.abs(found.value - base.of(chi)) < 5.0 * sigma)
    k = base.names.index('K2')
    assert 0.3 < sigma[k] / found.value[k] < 2.0
    assert sigma[base.names.index('K1')] < 0.2 * chi[robot.column('K1')]


def test_a_start_near_the_trivial_solution_does_not_keep_the_likelihood_from_its_maximum():
    """Rows of links have no torque: a link and a spring of nothing explain them too."""
    robot = build().elastic
    base, chi = base_parameters(robot), truth(robot)
    clean = motion(robot, chi)
    start = started(clean, robot, base)
    nothing = replace(start, value=1e-4 * start.value)
    assert maximum_likelihood(averages(clean, 1), robot, base, nothing.value) is None
    system = observe(clean, robot, base)
    found, _ = fit_with_motion(noisy(clean, 1), system, robot, base, nothing)
    assert found.method == 'ml'
    error = np.abs(found.value - base.of(chi))
    assert np.all(error < 5.0 * found.sigma)


def test_a_noisy_recording_is_identified_with_its_motion():
    robot = build()
    chi = truth(robot.elastic)
    clean = motion(robot.elastic, chi)
    known = noisy(clean, 1, 3e-3)
    errors = {}
    for recording in (known, replace(known, trajectories={})):
        found = identify(recording, robot, replace(SETTINGS, essential=True))
        true = found.base.of(chi)
        there = np.abs(true) > 1e-9
        error = np.abs(found.estimate.value[there] / true[there] - 1.0)
        errors[found.estimate.method] = error.mean()
        assert len(found.essential.estimate.value) <= len(true)
    assert errors['ml'] < 0.3 * errors['iv']
    assert errors['ml'] < 0.1


def test_a_restricted_estimate_is_the_least_squares_one_without_the_column():
    robot = build().elastic
    base = base_parameters(robot)
    clean = motion(robot, truth(robot))
    noise = 0.1 * np.random.default_rng(0).normal(size=clean.tau.shape)
    system = observe(replace(clean, tau=clean.tau + noise), robot, base)
    whole = fit(system, 'ols')
    kept = [k for k in range(base.rank) if k != 3]
    fewer = system.select(kept)
    found = restrict(replace(whole, covariance=whole.classical), kept, fewer)
    np.testing.assert_allclose(found.value, fit(fewer, 'ols').value, rtol=1e-6)
    with pytest.raises(UnknownNameError):
        fit(fewer, 'ml')
