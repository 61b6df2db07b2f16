"""When simulated gains are scaled to the simulated inertia (DIDIM eq. 59), and when not."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.excitation.trajectory import Motion
from robotid_ros.core.identification_settings import ReplaySettings
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.replay.control_laws import JointTrajectoryEffort
from robotid_ros.core.replay.didim import didim, gain_scale_of
from robotid_ros.core.replay.replay_problem import ReplayProblem, Torque
from robotid_ros.core.replay.simulation import direct_model, simulate
from robotid_ros.exceptions import DivergenceError

from .arms import parameters, planar_urdf
from .test_didim import D, P, RATE, TIGHT, wave


def case_of(update, size=1.0, inertia_share=1.0, settings=TIGHT):
    """Return an arm of `size` times the mass, torque and gains, whose J_ap is a share of its J."""
    robot = build_robot(planar_urdf(), RobotSettings(gravity=(0.0, -9.81, 0.0)))
    base, chi = base_parameters(robot), size * parameters(robot, 4)
    law, desired = JointTrajectoryEffort(RATE, size * P, 0.0, size * D), wave(4.0)
    run = simulate(direct_model(robot, chi), law, desired, step=settings.step)
    torque = Torque(np.arange(len(run.tau)) * 1.0, run.tau, np.ones(len(run.tau), bool), RATE)
    settings = dataclasses.replace(settings, gain_update=update)
    measured = Motion(run.q, run.dq, run.ddq)
    replay = ReplayProblem(robot, base, law, desired, torque, measured, settings)
    inertia = inertia_share * replay.inertia(chi)
    return dataclasses.replace(replay, a_priori_inertia=inertia), base.of(chi)


def test_a_start_far_from_the_robot_takes_scaled_gains_and_the_fits_take_the_robots():
    # M(q) is 1 at the regular start and some hundred times as much in truth: the robot's gains
    # would let a sampled loop with that start swing up.
    replay, true = case_of('initial', size=100.0)
    found = didim(replay, replay.initial_parameters('regular'))
    np.testing.assert_allclose(found.estimate.value, true, rtol=1e-5, atol=1e-5)
    first, *others = (record.gain_scale for record in found.history.iterations)
    np.testing.assert_allclose(first, 1.0 / replay.a_priori_inertia)
    for scale in others:
        np.testing.assert_array_equal(scale, 1.0)
    alone, _ = case_of('never', size=100.0)
    with pytest.raises(DivergenceError, match='DIDIM cannot start'):
        didim(alone, alone.initial_parameters('regular'))


def test_inertias_too_small_to_scale_by_leave_the_robots_gains():
    replay, true = case_of('initial', inertia_share=0.02)
    found = didim(replay, replay.initial_parameters('regular'))
    np.testing.assert_array_equal(found.history.iterations[0].gain_scale, 1.0)
    np.testing.assert_allclose(found.estimate.value, true, atol=1e-6)


@pytest.mark.parametrize('update', ['initial', 'every_iteration'])
def test_scaled_loops_keep_natural_frequency_and_damping(update):
    replay, _ = case_of(update)
    for inertia in (np.ones(2), np.array([7.0, 0.2])):
        scale = gain_scale_of(replay, inertia, own_gains=False)
        scaled = dataclasses.replace(replay, law=replay.law.scaled(scale))
        wanted = replay.loop_dynamics(replay.a_priori_inertia)
        np.testing.assert_allclose(scaled.loop_dynamics(inertia), wanted)


def test_the_papers_update_is_right_where_the_a_priori_inertias_are():
    replay, true = case_of('every_iteration')
    found = didim(replay, replay.initial_parameters('regular'))
    np.testing.assert_allclose(found.estimate.value, true, atol=1e-5)
    assert not np.allclose(found.history.iterations[0].gain_scale, 1.0)


def test_wrong_a_priori_inertias_bias_the_papers_update_alone():
    settings = ReplaySettings(decimation=5, step=0.002)
    errors = {}
    for update in ('initial', 'every_iteration'):
        replay, true = case_of(update, inertia_share=0.6, settings=settings)
        found = didim(replay, replay.initial_parameters('prior'))
        errors[update] = np.abs(found.estimate.value - true).max() / np.abs(true).max()
        tuned = replay.a_priori_inertia if update == 'every_iteration' else None
        last = found.history.iterations[-1]
        inertia = last.inertia if tuned is None else tuned
        # Eq. 60: the loop is that of J_ap, whatever the robot is.
        omega, _ = replay.loop_dynamics(last.inertia / last.gain_scale)
        np.testing.assert_allclose(omega, np.sqrt(P / inertia), rtol=1e-9)
    assert errors['initial'] < 1e-3 < 0.01 < errors['every_iteration']
