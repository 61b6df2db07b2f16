"""Stamps of a busy machine: what jitters in them alone is taken out, what is unknown counts."""

import dataclasses
from functools import lru_cache

import numpy as np
from plant_recording import arm, plant
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import inverse_dynamics
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.signals.recording import Recording, SignalSettings
from robotid_ros.core.signals.stamp_correction import sampling_times

RATE, SECONDS, NOISE, LOST = 500.0, 40.0, 0.05, 0.02
SETTINGS = IdentificationSettings(
    method='wls', essential=False, signals=SignalSettings(cutoff=10.0, rows='moving')
)


def motion(time):
    rng = np.random.default_rng(4)
    w = 2.0 * np.pi * 0.1 * np.arange(1, 6)
    a, b = rng.normal(size=(2, 5, 3)) * 0.5
    phase = np.outer(time, w)
    s, c = np.sin(phase), np.cos(phase)
    return s @ a + c @ b, (c * w) @ a - (s * w) @ b, -(s * w**2) @ a - (c * w**2) @ b


def busy(robot, truth, sampled, stamped, seed=0, noise=NOISE):
    """
    Record a robot on a busy machine.

    Samples are taken later than evenly, `sampled` s on average, and stamped `stamped` later still.
    """
    rng = np.random.default_rng(seed)
    even = np.arange(round(SECONDS * RATE)) / RATE
    first, second = rng.exponential(size=(2, len(even)))
    late, later = (np.minimum(x, 0.9e-3) for x in (sampled * first, stamped * second))
    q, dq, ddq = motion(even + late)
    tau = inverse_dynamics(robot, truth, q, dq, ddq) + noise * rng.normal(size=q.shape)
    q = q + 1e-5 * rng.normal(size=q.shape)
    kept = rng.random(len(even)) >= LOST
    return Recording(robot.joints, (even + late + later)[kept], q[kept], tau[kept])


def errors(found, truth, symbol=''):
    error = (found.estimate.value - found.base.of(truth)) / found.estimate.sigma
    return np.abs(
        [e for e, n in zip(error, found.base.names, strict=True) if n.startswith(symbol)]
    )


@lru_cache
def viscous(late):
    """Return errors of viscous friction under a controller whose stamps are late, and their σ."""
    made, model = plant(late=late), arm()
    found = identify(made.recording, model, SETTINGS)
    true = made.base(model)
    rows = [k for k, name in enumerate(found.base.names) if name.startswith('Fv')]
    known = np.array([true[found.base.names[k]] for k in rows])
    return found.estimate.value[rows] / known - 1.0, found.estimate.sigma[rows] / known, found


@pytest.mark.parametrize('late', [0.1e-3, 0.2e-3, 0.3e-3])
def test_a_controller_that_goes_by_late_stamps_biases_no_friction(late):
    """Its commands answer to the lateness, which adds up with unevenly spaced samples."""
    quiet, _, _ = viscous(1e-9)
    error, sigma, found = viscous(late)
    assert np.abs(error - quiet).max() < 0.02
    assert np.all(np.abs(error) < 3.0 * sigma)
    (jitter,) = select(found.findings, 'stamps_jitter')
    assert jitter.values['share'] == 0.0


@pytest.mark.parametrize(
    ('sampled', 'stamped'), [(0.3e-3, 0.0), (0.2e-3, 0.2e-3), (0.1e-3, 0.3e-3)]
)
def test_samples_that_are_late_themselves_are_within_sigma(robot, truth, sampled, stamped):
    for seed in range(2):
        found = identify(busy(robot, truth, sampled, stamped, seed), robot, SETTINGS)
        assert np.mean(errors(found, truth) < 3.0) > 0.95


def test_what_is_not_known_of_the_times_is_in_sigma(robot, truth):
    noisy = identify(busy(robot, truth, 0.4e-3, 0.4e-3, noise=1e-3), robot, SETTINGS)
    wider = noisy.estimate.sigma / np.sqrt(np.diag(noisy.estimate.noise_covariance))
    assert wider.max() > np.sqrt(2.0)


def test_even_stamps_cost_nothing(robot, truth):
    log = busy(robot, truth, 0.0, 0.0)
    by_hand = dataclasses.replace(SETTINGS.signals, stamps='recorded')
    one = identify(log, robot, SETTINGS).estimate
    other = identify(log, robot, dataclasses.replace(SETTINGS, signals=by_hand)).estimate
    np.testing.assert_array_equal(one.value, other.value)
    np.testing.assert_array_equal(one.sigma, other.sigma)


@pytest.mark.parametrize('share', [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize('jitter', [0.05e-3, 0.2e-3, 0.4e-3])
def test_the_share_that_samples_have_is_found(share, jitter):
    """Whatever was lost, whatever the period really is, while NTP slews the clock."""
    rng = np.random.default_rng(1)
    even = np.arange(10_000) * 2e-3 * 1.0007
    even = even + 1e-4 * np.clip(even - 10.0, 0.0, None)
    own, stamps = jitter * np.sqrt([[share], [1.0 - share]]) * rng.normal(size=(2, even.size))
    q = motion(even + own)[0] + 2e-5 * rng.normal(size=(even.size, 3))
    kept = rng.random(even.size) >= 0.02
    time = np.maximum.accumulate((even + own + stamps)[kept]) + 1e-9 * np.arange(kept.sum())
    found = sampling_times(time, q[kept], 2e-3)
    assert abs(found.share - share) < max(0.03, 4.0 * found.sigma)
    off = found.even - even[kept]
    assert np.sqrt(np.mean(off**2)) < 0.02e-3 + 0.35 * jitter
    left = found.time - (even + own)[kept]
    assert np.std(left) < 1.2 * jitter * np.sqrt(share * (1.0 - share)) + 0.35 * jitter


def test_irregular_samples_keep_their_stamps():
    rng = np.random.default_rng(0)
    time = np.cumsum(rng.uniform(1e-3, 3e-3, 8000))
    found = sampling_times(time, motion(time)[0], 2e-3)
    assert found is None or not found.note
