"""Derivatives from the trajectory's own basis: exact without noise, and far quieter with it."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.excitation.trajectory import FAMILIES, Trajectory
from robotid_ros.core.finding_codes import select
from robotid_ros.core.signals.filters import central_differences, lowpass
from robotid_ros.core.signals.periodic import (
    extend_periodically,
    find_period,
    fit_and_differentiate,
)
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Phase, Recording
from robotid_ros.core.signals.samples import SignalSettings

from .test_preparation import ROBOT

RATE, PERIOD, CUTOFF = 250.0, 8.0, 10.0
TIME = np.arange(round(RATE * PERIOD)) / RATE
ORDERS = {'ffs': 4, 'mfs': 4, 'bspline': 9, 'quintic': 4}


def made(family, seed=0):
    """Return a trajectory of two joints."""
    size = FAMILIES[family].size(ORDERS[family])
    coefficients = 0.3 * np.random.default_rng(seed).normal(size=(size, 2))
    start = np.array([0.4, -1.0])
    return Trajectory(ROBOT.joints, family, PERIOD, ORDERS[family], start, coefficients)


def errors(found, motion):
    """Return the standard deviations of q, dq, ddq from the true ones."""
    return np.array([np.std(a - b) for a, b in zip(found, motion, strict=True)])


@pytest.mark.parametrize('family', FAMILIES)
@pytest.mark.parametrize('late', [0.0, 0.031, 5.3])
def test_exact_without_noise_at_any_shift(family, late):
    trajectory = made(family)
    motion = trajectory.sample(TIME - late)
    for value, true in zip(
        fit_and_differentiate(motion.q, RATE, trajectory, CUTOFF), motion, strict=True
    ):
        np.testing.assert_allclose(value, true, atol=1e-10)


@pytest.mark.parametrize('family', FAMILIES)
def test_noise_counts_far_less_than_with_filter_and_differences(family):
    trajectory = made(family)
    motion = trajectory.sample(TIME)
    noisy = motion.q + 1e-4 * np.random.default_rng(1).normal(size=motion.q.shape)
    q = lowpass(extend_periodically(noisy), CUTOFF, RATE)
    dq = central_differences(q, RATE)
    half = len(TIME) // 2
    own = slice(half, half + len(TIME))
    plain = errors([x[own] for x in (q, dq, central_differences(dq, RATE))], motion)
    analytic = errors(fit_and_differentiate(noisy, RATE, trajectory, CUTOFF), motion)
    assert np.all(analytic < plain / np.array([1.5, 5.0, 20.0]))


def test_what_the_robot_does_beyond_its_trajectory_is_kept():
    trajectory = made('mfs')
    motion = trajectory.sample(TIME - 0.02)
    w = 2.0 * np.pi * 11.0 / PERIOD
    beyond = 2e-3 * np.sin(np.multiply.outer(TIME, [w, w]) + np.array([0.3, 1.0]))
    noise = 1e-5 * np.random.default_rng(2).normal(size=beyond.shape)
    found = fit_and_differentiate(motion.q + beyond + noise, RATE, trajectory, CUTOFF)
    left = np.std(found[2] - motion.ddq + w**2 * beyond) / np.std(w**2 * beyond)
    assert left < 0.01
    without = fit_and_differentiate(motion.q + noise, RATE, trajectory, CUTOFF)
    assert errors(without, motion)[2] < 0.2 * errors(found, (motion.q, motion.dq, found[2] * 0))[2]


def test_averaged_periods_are_differentiated_so():
    trajectory, rng = made('mfs'), np.random.default_rng(3)
    time = np.arange(round(4 * RATE * PERIOD)) / RATE
    motion = trajectory.sample(time)
    position = motion.q + 1e-4 * rng.normal(size=motion.q.shape)
    recording = Recording(
        ROBOT.joints, time, position, motion.dq + motion.ddq, trajectories={'exciting': trajectory}
    )
    settings = SignalSettings(cutoff=CUTOFF, averaging=True)
    plain = prepare(recording, ROBOT, settings)
    analytic = prepare(recording, ROBOT, dataclasses.replace(settings, analytic=True))
    rows = plain.valid.any(axis=1)
    true = trajectory.sample(plain.time).ddq
    assert np.std((analytic.ddq - true)[rows]) < 0.05 * np.std((plain.ddq - true)[rows])
    np.testing.assert_array_equal(analytic.tau, plain.tau)


def test_a_trajectory_of_other_joints_leaves_the_filter():
    trajectory = dataclasses.replace(made('ffs'), joints=('one', 'three'))
    time = np.arange(round(2 * RATE * PERIOD)) / RATE
    motion = trajectory.sample(time)
    recording = Recording(
        ROBOT.joints, time, motion.q, motion.dq + motion.ddq, trajectories={'exciting': trajectory}
    )
    settings = SignalSettings(cutoff=CUTOFF, averaging=True)
    plain = prepare(recording, ROBOT, settings)
    other = prepare(recording, ROBOT, dataclasses.replace(settings, analytic=True))
    np.testing.assert_array_equal(other.ddq, plain.ddq)
    assert select(other.notes, 'no_analytic_derivatives')


def test_a_period_is_that_of_the_phase():
    long, short = made('mfs'), dataclasses.replace(made('mfs', 1), period=3.0)
    time = np.arange(round(40.0 * RATE)) / RATE
    zeros = np.zeros((time.size, 2))
    recording = Recording(
        ROBOT.joints,
        time,
        zeros,
        zeros,
        phases=(Phase('exciting', 0.0, 20.0), Phase('validating', 20.0, 40.0)),
        trajectories={'exciting': long, 'validating': short},
    )
    assert find_period(recording.phase('exciting')) == PERIOD
    assert find_period(recording.phase('validating')) == 3.0
    assert find_period(recording.phase('exciting').between(0.0, 8.0)) is None
