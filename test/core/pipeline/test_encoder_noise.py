"""Elastic robots with noisy encoders: least squares and instruments."""

from dataclasses import replace

import numpy as np
import pytest

from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.parameters.essential import restrict
from robotid_ros.core.pipeline.springs import fit_with_instruments
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import observe
from robotid_ros.exceptions import UnknownNameError

from .test_elastic_estimation import build, motion, truth


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
