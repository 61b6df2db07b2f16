"""Noisy encoders bias parameters less where positions are fitted by the trajectory's own basis."""

import dataclasses

import numpy as np

from robotid_ros.core.excitation.trajectory import Trajectory
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import observe
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.samples import SignalSettings

NOISE, DRAWS = 2e-3, 3  # [rad]


def test_parameters_are_nearer_to_the_truth(robot, truth, record):
    clean, base = record(duration=30.0), base_parameters(robot)
    plan = Trajectory(robot.joints, 'ffs', 10.0, 5, np.zeros(3), np.zeros((10, 3)))
    averaged = SignalSettings(cutoff=10.0, averaging=True)
    rng, errors = np.random.default_rng(0), {True: [], False: []}
    for _ in range(DRAWS):
        position = clean.position + NOISE * rng.normal(size=clean.position.shape)
        noisy = dataclasses.replace(clean, position=position, trajectories={'exciting': plan})
        for analytic, found in errors.items():
            samples = prepare(noisy, robot, dataclasses.replace(averaged, analytic=analytic))
            found.append(fit(observe(samples, robot, base)).value - base.of(truth))
    rms = {analytic: np.sqrt(np.mean(np.square(e), axis=0)) for analytic, e in errors.items()}
    assert np.all(rms[True] < 0.3 * rms[False])
    assert np.median(rms[True] / rms[False]) < 0.05
