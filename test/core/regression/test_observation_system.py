"""Rows of a recording in blocks, decimated, without torque, or as triangular factors."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.model import inverse_dynamics
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.pipeline.observation import BlockSampler
from robotid_ros.core.regression import observation_system
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import (
    compress,
    decimate,
    NOISE_BAND,
    observe,
    Rows,
)
from robotid_ros.core.signals.preparation import prepare
from robotid_ros.core.signals.recording import Recording, SignalSettings

from ..conftest import motion


@pytest.mark.parametrize('decimation', [1, 3, 10])
def test_blocks_of_samples_are_as_one(robot, record, monkeypatch, decimation):
    settings = SignalSettings(cutoff=10.0, decimation=decimation)
    samples, base = prepare(record(noise=0.1), robot, settings), base_parameters(robot)
    whole = observe(samples, robot, base)
    monkeypatch.setattr(observation_system, 'BLOCK_SAMPLES', 500)
    blocks = observe(samples, robot, base)
    assert whole.band == (1.0 if decimation == 1 else observation_system.NOISE_BAND)
    for name in ('W', 'Y'):
        one, other = getattr(whole, name), getattr(blocks, name)
        np.testing.assert_allclose(other, one, atol=1e-5 * np.abs(one).max())


@pytest.mark.parametrize('order', [2, 4])
@pytest.mark.parametrize(('decimation', 'duration'), [(0, 7.77), (57, 6.0), (100, 20.0)])
def test_smooth_columns_of_few_samples_are_those_of_all(
    robot, truth, monkeypatch, order, decimation, duration
):
    time = np.arange(round(duration * 1000.0)) / 1000.0
    q, dq, ddq = motion(time, 3)
    noisy = q + 1e-4 * np.random.default_rng(0).normal(size=q.shape)
    recording = Recording(robot.joints, time, noisy, inverse_dynamics(robot, truth, q, dq, ddq))
    settings = SignalSettings(cutoff=8.0, band=4.0, order=order, decimation=decimation)
    samples, base = prepare(recording, robot, settings), base_parameters(robot)
    monkeypatch.setattr(observation_system, 'BLOCK_SAMPLES', 300)
    few = observe(samples, robot, base)
    every = observe(dataclasses.replace(samples, band_limit=np.inf), robot, base)

    def differ(few, every):
        change = np.abs(few.W - every.W) / np.abs(every.W).max(axis=(0, 1))
        return np.where(every.valid[..., None], change, 0.0).max()

    assert 0.0 < differ(few, every) < 2e-5
    # Noise that no filter took off would be mistaken for motion.
    rough = dataclasses.replace(samples, ddq=ddq + np.random.default_rng(1).normal(size=q.shape))
    unlimited = dataclasses.replace(rough, band_limit=np.inf)
    assert differ(*(observe(each, robot, base) for each in (rough, unlimited))) > 1e-3
    np.testing.assert_array_equal(few.Y, every.Y)


@pytest.mark.parametrize('samples', [8, 47, 400])
@pytest.mark.parametrize('keep', [1, 4, 11])
def test_decimated_lines_are_lines_up_to_their_ends(samples, keep):
    line = np.arange(float(samples))[None, :, None] * [[[1.0, -2.0]]] + 3.0
    found = decimate(line, keep)
    long = samples > 20 * keep
    tolerance = 1e-9 if keep == 1 else 1e-3 * keep if long else samples
    np.testing.assert_allclose(found, line[:, ::keep], atol=tolerance)
    level = np.full((2, samples), 5.0)
    np.testing.assert_allclose(decimate(level, keep), level[:, ::keep], rtol=1e-9)


def test_one_sample_in_one_is_all_of_them():
    x = np.random.default_rng(0).normal(size=(2, 30))
    np.testing.assert_array_equal(decimate(x, 1), x)


def system():
    """Return rows of two joints, the second without torque: its terms nearly cancel."""
    rng = np.random.default_rng(1)
    W = rng.normal(size=(2, 80, 3))
    W[1, :, 2] = W[1, :, 0] + W[1, :, 1] + 0.01 * rng.normal(size=80)
    Y = np.array([W[0] @ [1.0, 1.0, -1.0] + 0.1 * rng.normal(size=80), np.zeros(80)])
    valid = np.ones((2, 80), dtype=bool)
    valid[:, :7] = False
    names = tuple('abc')
    return Rows(names, ('',) * 3, ('j', 'link'), W, Y, valid, np.arange(80.0))


@pytest.mark.parametrize('units', [1.0, 1e3])
def test_residuals_are_shares_of_the_torque_or_of_the_largest_term_where_there_is_none(units):
    some, chi, norm = system(), np.array([1.0, 0.9, -1.0]), np.linalg.norm
    W, Y = some.W[:, 7:], some.Y[:, 7:]
    left = Y - W @ chi
    largest = max(norm(W[1, :, k] * chi[k]) for k in range(3))
    seen = dataclasses.replace(some, W=some.W / units)
    expected = [norm(left[0]) / norm(Y[0]), norm(left[1]) / largest]
    np.testing.assert_allclose(seen.relative_residual(chi * units), expected)
    assert seen.total_residual(chi * units) == pytest.approx(norm(left) / norm(Y))


def test_some_columns_of_factors_are_the_factors_of_some_columns():
    grams = []
    for some in (compress(system().select([0, 2]), 8), compress(system(), 8).select([0, 2])):
        parts = np.concatenate([some.W, some.Y[:, :, None]], axis=2)
        grams.append([np.swapaxes(R, -1, -2) @ R for R in (parts, some.batches)])
    for one, other in zip(*grams, strict=True):
        np.testing.assert_allclose(other, one, atol=1e-10)


AMPLITUDE = 5.0  # [N·m]
SIGNALS = SignalSettings(cutoff=10.0, rows='smooth')


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


@pytest.mark.parametrize(('count', 'step'), [(1, 1), (4, 1), (5, 2), (9, 4), (16, 4), (17, 8)])
def test_every_kth_block_stays(count, step):
    sampler = BlockSampler[int](max_rows=40)
    for block in range(count):
        if sampler.takes_next():
            sampler.add(block, 10)
    assert sampler.blocks == list(range(0, count, step))


def test_one_block_stays_however_long_it_is():
    sampler = BlockSampler[str](max_rows=40)
    sampler.add('long', 100)
    assert sampler.blocks == ['long']
