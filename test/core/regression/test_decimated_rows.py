"""Rows that are kept one in so many: what is above their band is gone, and σ know of the rest."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import NOISE_BAND, observe
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.samples import SignalSettings

AMPLITUDE = 5.0  # [N·m]
SIGNALS = SignalSettings(cutoff=10.0, rows='all')


@pytest.fixture(scope='module')
def fitted(robot):
    base = base_parameters(robot)

    def fit_of(recording):
        samples = prepare(recording, robot, SIGNALS)
        return samples, fit(observe(samples, robot, base), 'ols')

    return fit_of


def test_torque_above_the_band_of_the_rows_moves_nothing(record, fitted):
    """A ripple that would be an alias of the motion's own frequency, 0.1 Hz beside the rows'."""
    plain = record(duration=20.0)
    samples, clean = fitted(plain)
    alias = samples.rate / samples.decimation + 0.1
    ripple = AMPLITUDE * np.sin(2.0 * np.pi * alias * plain.time)[:, None]
    _, found = fitted(dataclasses.replace(plain, effort=plain.effort + ripple))
    assert np.abs(found.value - clean.value).max() < 1e-3 * AMPLITUDE


def test_sigma_is_never_below_what_white_noise_leaves(record, fitted):
    for seed in range(4):
        _, found = fitted(record(seed, noise=0.05))
        assert np.all(np.diag(found.covariance) > 0.999 / NOISE_BAND * np.diag(found.classical))
