"""Closed-loop methods on a robot that the package did not simulate: MuJoCo and its controller."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.identification_settings import IdentificationSettings, ReplaySettings
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.replay.didim import didim
from robotid_ros.core.replay.replay_problem import make_replay_problem
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import SignalSettings

from .plant_arm import session


def within(estimate, true, sigmas=3.0):
    """Tell which base parameters are within so many standard deviations of the truth."""
    return np.abs(estimate.value - true) <= sigmas * estimate.sigma


def test_didim_finds_the_plants_parameters_from_torque_alone():
    recording, robot, base, true = session()
    # What a recording says of the positions does not matter: here it says nothing.
    samples = prepare(recording, robot, SignalSettings())
    blind = dataclasses.replace(
        recording, position=0.0 * recording.position, velocity=0.0 * recording.position
    )
    samples = dataclasses.replace(samples, **{k: 0.0 * samples.q for k in ('q', 'dq', 'ddq')})
    replay = make_replay_problem(blind, robot, base, ReplaySettings(), samples)
    found = didim(replay, replay.initial_parameters())
    assert within(found.estimate, true).all()
    assert found.history.steps <= 5
    # Friction and inertias are known to some per cent, so that three of their σ mean something.
    known = found.estimate.relative_sigma < 3.0
    assert known.sum() >= 10
    gap = np.abs(found.estimate.value - true)[known] / np.abs(true[known])
    assert gap.max() < 0.05


@pytest.fixture(scope='module')
def noisy():
    """Return the session with noise on what it says of the positions, and the truth."""
    recording, robot, _, true = session()
    noise = 2e-3 * np.random.default_rng(6).normal(size=recording.position.shape)
    position = recording.position + noise
    return dataclasses.replace(recording, position=position, velocity=None), robot, true


@pytest.mark.parametrize('method', ['ols', 'wls', 'iv'])
def test_noise_of_positions_biases_least_squares_and_not_simulated_instruments(noisy, method):
    recording, robot, true = noisy
    settings = IdentificationSettings(
        method=method,
        model='plain',
        essential=False,
        covariance='residuals',
        signals=SignalSettings(cutoff=40.0, decimation=10, rows='smooth'),
    )
    found = identify(recording, robot, settings)
    right = within(found.estimate, true)
    assert right.all() if method == 'iv' else right.mean() < 0.8
    assert not select(found.findings, 'reference_instruments')


def test_instruments_are_those_of_the_reference_where_no_loop_can_be_simulated(noisy):
    recording, robot, _ = noisy
    alone = dataclasses.replace(recording, controller=None)
    settings = IdentificationSettings(method='iv', model='plain', essential=False)
    found = identify(alone, robot, settings)
    (said,) = select(found.findings, 'reference_instruments')
    assert 'does not hold the controller' in said.values['reason']
