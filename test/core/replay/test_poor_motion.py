"""DIDIM where the motion tells little: what it does not tell stays at the prior."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.excitation.trajectory import Motion
from robotid_ros.core.findings import select
from robotid_ros.core.identification_settings import ReplaySettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.robot_builder import build_robot
from robotid_ros.core.model.settings import RobotSettings
from robotid_ros.core.parameters.standard import physically_consistent_links
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.replay import didim as didim_module
from robotid_ros.core.replay.control_laws import JointTrajectoryEffort
from robotid_ros.core.replay.didim import didim, next_iterate, start_candidates
from robotid_ros.core.replay.replay_problem import MAX_DAMPING_PER_UPDATE, ReplayProblem, Torque
from robotid_ros.core.replay.simulated_observation import CREEPING, observe_simulation
from robotid_ros.core.replay.simulation import direct_model, mass_matrices, simulate
from robotid_ros.exceptions import DivergenceError

from .arms import parameters, planar_urdf

RATE = 250.0
P, D = np.array([4000.0, 1500.0, 150.0]), np.array([220.0, 75.0, 6.0])
SETTINGS = ReplaySettings(decimation=5, step=0.004)


def slow_wrist(duration=6.0):
    """Return a reference on which two joints move and the third hardly does."""
    t = np.arange(round(duration * RATE))[:, None] / RATE
    q, dq, ddq = (np.zeros((t.size, 3)) for _ in range(3))
    rng = np.random.default_rng(1)
    for harmonics in ((1, 2, 1), (3, 4, 0), (5, 6, 0)):
        w = 2.0 * np.pi / duration * np.array(harmonics)
        a = rng.uniform(0.3, 0.6, 3) * (1.0, 1.0, 0.005)
        q += a * (1.0 - np.cos(w * t))
        dq += a * w * np.sin(w * t)
        ddq += a * w * w * np.cos(w * t)
    return Motion(q, dq, ddq)


@pytest.fixture(scope='module')
def case():
    """Return a replay with most noise on the third joint, and the true base parameters."""
    urdf = planar_urdf(count=3).replace('izz="0.04"', 'izz="0.03"')  # not a flat body
    robot = build_robot(urdf, RobotSettings(gravity=(0.0, -9.81, 0.0)))
    base, chi = base_parameters(robot), parameters(robot, 4)
    law, desired = JointTrajectoryEffort(RATE, P, 0.0, D), slow_wrist()
    run = simulate(direct_model(robot, chi), law, desired, step=0.001)
    noise = np.random.default_rng(2).normal(size=run.tau.shape)
    tau = run.tau + noise * (0.2, 0.2, 4.0)
    torque = Torque(np.arange(len(tau)) * 1.0, tau, np.ones(len(tau), dtype=bool), RATE)
    wrong = robot.prior.copy()
    for first in robot.first_columns:
        wrong[first : first + 10] *= 1.3
    robot = dataclasses.replace(robot, prior=wrong)
    measured = Motion(run.q, run.dq, run.ddq)
    return ReplayProblem(robot, base, law, desired, torque, measured, SETTINGS), base.of(chi)


@pytest.fixture(scope='module', params=['regular', 'prior'])
def found(case, request):
    return didim(case[0], case[0].initial_parameters(request.param))


def test_every_start_ends_near_the_truth(case, found):
    estimate, true = found.estimate, case[1]
    assert np.all(np.abs(estimate.value - true) <= 4.0 * estimate.sigma)
    assert np.all(estimate.residual[:2] < 0.05)
    assert not select(found.history.findings, 'not_converged')


def test_what_the_slow_joint_does_not_tell_stays_near_its_prior_and_is_named(case, found):
    estimate, prior = found.estimate, case[0].prior
    assert {estimate.names[k][-1] for k in estimate.from_prior} == {'3'}
    (said,) = select(found.history.findings, 'near_description')
    for k in estimate.from_prior:
        spread = np.sqrt(prior.covariance[k, k])
        assert abs(estimate.value[k] - prior.mean[k]) < spread
        assert estimate.sigma[k] > 0.5 * spread
        assert estimate.names[k] in said.values['parameters']
    assert 'ZZ1R' not in said.values['parameters']


def test_a_thin_rod_may_have_its_centre_off_its_axis_as_any_link(case):
    """Its prior's σ there is a share of its length: a description may draw it as a line."""
    replay, _ = case
    robot, mass, length = replay.robot, 2.0, 0.6

    def prior(radius):
        chi = robot.prior.copy()
        scatter = mass * np.diag([length**2 / 3.0, radius**2 / 4.0, radius**2 / 4.0])
        chi[robot.first_columns[2] :][:10] = [
            scatter[1, 1] + scatter[2, 2], 0.0, 0.0, scatter[0, 0] + scatter[2, 2], 0.0,
            scatter[0, 0] + scatter[1, 1], 0.5 * mass * length, 0.0, 0.0, mass,
        ]  # fmt: skip
        found = dataclasses.replace(replay, robot=dataclasses.replace(robot, prior=chi)).prior
        k = replay.base.names.index('MY3')
        return found.mean[k], float(np.sqrt(found.covariance[k, k]))

    thin, thinner = prior(1e-3), prior(1e-4)
    assert abs(thinner[0]) < 1e-9
    assert thinner[1] == pytest.approx(thin[1], rel=1e-3)
    assert 0.01 < thin[1] / (mass * length) < 0.05


def test_friction_is_no_more_certain_than_the_description_says_it_is_large(case):
    """The torque of a slow motion may be less than all the friction that there is."""
    replay, _ = case
    prior = replay.robot.prior.copy()
    prior[replay.robot.column('Fc3')] = 500.0
    robot = dataclasses.replace(replay.robot, prior=prior)
    found = dataclasses.replace(replay, robot=robot).prior
    k = replay.base.names.index('Fc3')
    assert found.mean[k] == 500.0
    assert np.sqrt(found.covariance[k, k]) >= 500.0 * (1.0 - 1e-9)


def test_friction_that_holds_a_joint_is_as_uncertain_as_it_is_far_from_the_prior(case):
    replay, _ = case
    chi = parameters(replay.robot, 4)
    chi[replay.robot.column('Fc3')] = 300.0
    estimate = next_iterate(replay, start_candidates(replay, chi), [])[0].estimate
    k = estimate.names.index('Fc3')
    assert estimate.value[k] == pytest.approx(300.0)
    assert estimate.sigma[k] > 300.0 - replay.prior.mean[k]


def test_simulations_compare_by_all_rows_also_those_in_which_friction_holds_a_joint(case):
    """A joint that is held would have no error, and any motion of it would be a worse one."""
    replay, _ = case
    chi = parameters(replay.robot, 4)
    chi[replay.robot.column('Fc3')] = 300.0
    iterate, system = next_iterate(replay, start_candidates(replay, chi), [])
    assert system.equations[2] == 0
    measured, simulated = system.Y, system.predict(replay.base.of(chi))
    left = np.linalg.norm(measured - simulated, axis=1) / np.linalg.norm(measured, axis=1)
    assert left[2] > 0.0
    assert iterate.error == pytest.approx(np.sqrt(np.mean(left**2)))


def test_rows_in_which_friction_holds_a_joint_are_left_out(case):
    replay, _ = case
    chi = parameters(replay.robot, 4)
    chi[replay.robot.column('Fc3')] = 30.0
    system = observe_simulation(replay, replay.simulate(chi, np.ones(3)))
    assert not system.valid[2].any()
    assert system.valid[:2].mean() > 0.9


def test_rows_in_which_a_joint_creeps_are_left_out(case):
    """Noise in the loop of the robot shakes its friction loose there, not that of a simulation."""
    replay, _ = case
    run = replay.simulate(parameters(replay.robot, 4), np.ones(3))
    system = observe_simulation(replay, run)
    speed, reach = np.abs(run.dq[:, 2]), SETTINGS.decimation
    center = np.rint((system.time - replay.start) * RATE).astype(int)
    creeps = [speed[max(0, k - reach) : k + reach + 1].max() < CREEPING for k in center]
    assert 0.05 < np.mean(creeps) < 0.95
    assert not system.valid[2][creeps].any()
    fast = [speed[max(0, k - reach) : k + reach + 1].min() > CREEPING for k in center]
    assert system.valid[2][fast].all()


def test_the_prior_can_be_simulated_at_the_robots_gains(case):
    replay, _ = case
    stiff = dataclasses.replace(replay, law=JointTrajectoryEffort(RATE, 9.0 * P, 0.0, 5.0 * D))
    least, plain = stiff.minimum_damped_inertia(), replay.robot.prior
    chi = stiff.prior_parameters()
    mass = mass_matrices(direct_model(replay.robot, chi), replay.desired.q)
    values = np.linalg.eigvalsh(mass / np.sqrt(np.outer(least, least)))
    np.testing.assert_allclose(values.min(), 1.0, rtol=1e-6)
    changed = [p.symbol for p, a, b in zip(replay.robot.parameters, chi, plain, strict=True)
               if a != b]  # fmt: skip
    assert changed == ['Ia'] * 3
    with pytest.raises(DivergenceError):
        stiff.simulate(plain, np.ones(3))
    stiff.simulate(chi, np.ones(3))


def test_a_loop_without_damping_is_slower_than_its_updates(case):
    """The mass on its spring goes through so many radians in an update, and no more."""
    stiff = dataclasses.replace(case[0], law=JointTrajectoryEffort(RATE, 9.0 * P, 0.0, 0.0 * D))
    frequency = np.sqrt(9.0 * P / stiff.minimum_damped_inertia())
    np.testing.assert_allclose(frequency / RATE, MAX_DAMPING_PER_UPDATE)


def test_a_fit_that_no_body_has_is_replaced_by_the_nearest_bodies(case):
    replay, _ = case
    run = replay.simulate(parameters(replay.robot, 4), np.ones(3))
    system = observe_simulation(replay, run)
    system = dataclasses.replace(system, Y=-system.Y)
    estimate = fit(system, 'wls')
    with pytest.raises(DivergenceError, match='not positive definite'):
        replay.inertia(replay.standard_parameters(estimate.value))
    chi = replay.consistent_fit(system, estimate)
    assert physically_consistent_links(chi, replay.robot.first_columns).all()
    assert replay.inertia(chi).min() > 0.0


def test_a_result_that_has_not_converged_is_the_last_simulation_with_a_warning(case):
    replay = dataclasses.replace(case[0], settings=dataclasses.replace(SETTINGS, iterations=2))
    found = didim(replay, replay.initial_parameters('prior'))
    last = found.history.iterations[-1]
    np.testing.assert_array_equal(found.estimate.value, last.value)
    assert select(found.history.findings[:1], 'not_converged')
    missed = np.abs(fit(found.system, 'wls').value - found.estimate.value)
    assert np.all(missed <= found.estimate.sigma)
    assert np.all(last.torque_error[:2] < found.history.iterations[0].torque_error[:2])


def test_a_fit_within_its_noise_that_cannot_be_simulated_leaves_what_could_be(case, monkeypatch):
    def step(replay, candidates, iterates):
        if isinstance(candidates, list) and iterates:  # the last simulation, of the result
            raise DivergenceError('no robot has this fit', 1)
        return next_iterate(replay, candidates, iterates)

    monkeypatch.setattr(didim_module, 'next_iterate', step)
    found = didim(case[0], case[0].initial_parameters('prior'))
    last = found.history.iterations[-1]
    np.testing.assert_array_equal(found.estimate.value, last.value)
    assert not select(found.history.findings, 'not_converged')
    apart = np.abs(fit(found.system, 'wls').value - last.value)
    assert np.all(apart <= found.estimate.sigma)
