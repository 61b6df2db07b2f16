"""Along a simulated motion: σ that respect the decimation, and rows without the transient."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.identification_settings import ReplaySettings
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import NOISE_BAND
from robotid_ros.core.replay.control_laws import JointTrajectoryEffort
from robotid_ros.core.replay.simulated_observation import observe_simulation
from robotid_ros.core.replay.simulation import direct_model, simulate

from .arms import parameters, Pushed
from .test_didim import case_of, D, INERTIA, P, RATE

SETTINGS = ReplaySettings(decimation=5, step=0.002)


@pytest.fixture(scope='module')
def simulated():
    """Return a replay, its true parameters and their motion."""
    replay, true = case_of(SETTINGS, duration=4.0)
    chi = parameters(replay.robot, 4)
    return replay, true, chi, replay.simulate(chi, np.ones(2))


def test_white_noise_leaves_what_the_decimation_passes_of_it(simulated):
    """Columns are slow: of the noise that they meet, the filter took nothing away."""
    replay, _, _, run = simulated
    rng = np.random.default_rng(7)
    values, stated, classical = [], [], []
    for _ in range(100):
        noisy = replay.torque._replace(tau=run.tau + rng.normal(size=run.tau.shape))
        found = fit(observe_simulation(dataclasses.replace(replay, torque=noisy), run), 'ols')
        values.append(found.value)
        stated.append(found.sigma**2)
        classical.append(np.diag(found.classical))
    assert np.all(np.array(stated) > (1.0 - 1e-9) / NOISE_BAND * np.array(classical))
    # 1.39 is expected; of 100 draws of thirteen parameters 0.06 is chance.
    ratio = np.var(values, axis=0, ddof=1) / np.mean(classical, axis=0)
    assert ratio.mean() == pytest.approx(1.0 / NOISE_BAND, rel=0.15)


def test_the_transient_of_an_integral_takes_a_part_of_the_recording_at_most():
    """One of 100 s would leave nothing of four; without one 5/ω_n are left out."""
    slow = JointTrajectoryEffort(RATE, P, P / 100.0, D)
    with_integral, without = (
        dataclasses.replace(case[0], a_priori_inertia=INERTIA).transient
        for case in (case_of(SETTINGS, law=law, duration=4.0) for law in (slow, None))
    )
    assert 0.0 < without < with_integral == pytest.approx(0.2 * 4.0)


def test_the_transient_of_the_first_state_is_left_out(simulated):
    """The robot was pushed before the first row: it comes back to its reference within 5/ω_n."""
    replay, true, chi, run = simulated
    push = np.zeros_like(run.q)
    push[: round(0.02 * RATE)] = 30.0
    direct = direct_model(replay.robot, chi)
    pushed = simulate(direct, Pushed(replay.law, push), replay.desired, step=SETTINGS.step)
    torque = replay.torque._replace(tau=pushed.tau - push)
    replay = dataclasses.replace(replay, torque=torque, a_priori_inertia=INERTIA)
    kept = dataclasses.replace(replay, a_priori_inertia=np.full(2, 1e-9))
    error, with_transient = (
        np.abs(fit(observe_simulation(each, run), 'ols').value - true).max()
        for each in (replay, kept)
    )
    assert error < 0.15 * with_transient
