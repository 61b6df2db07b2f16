"""Bootstrap and leave-one-out against what fresh data show."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.excitation.trajectory import FAMILIES, Trajectory
from robotid_ros.core.finding_codes import select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.regression.block_bootstrap import bootstrap, leave_one_out
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.regression.observation_system import System
from robotid_ros.core.regression.triangular_factors import triangular_factor
from robotid_ros.core.signals.samples import SignalSettings
from robotid_ros.exceptions import ConfigurationError, RecordingError

TRUTH = np.array([1.5, -0.7, 2.0])
PERIOD, RATE = 10.0, 40.0


def system(seed=0, periods=8, noise=0.3, odd=0.0):
    """Return a periodic motion of two joints with correlated noise, one period being odd."""
    rng = np.random.default_rng(seed)
    count = round(PERIOD * RATE)
    time = np.arange(periods * count) / RATE
    phases = np.random.default_rng(9).uniform(0, 6, (2, 3))
    W = np.sin(2 * np.pi / PERIOD * time[None, :, None] * np.array([1, 2, 3]) + phases[:, None, :])
    white = rng.normal(size=(2, len(time) + 19))
    colour = [np.convolve(x, np.ones(20) / np.sqrt(20.0), 'valid') for x in white]
    Y = W @ TRUTH + noise * np.array([[1.0], [0.3]]) * colour
    Y[:, 2 * count : 3 * count] += odd * W[:, 2 * count : 3 * count, 0]
    valid = np.ones(Y.shape, dtype=bool)
    return System(('a', 'b', 'c'), ('1',) * 3, ('j1', 'j2'), time, W, Y, valid)


@pytest.mark.parametrize('method', ['ols', 'wls'])
def test_bootstrap_is_what_fresh_data_show(method):
    values = [fit(system(seed), method).value for seed in range(150)]
    observed = np.cov(values, rowvar=False)
    stated = np.mean([bootstrap(system(seed), method, draws=200) for seed in range(6)], axis=0)
    ratio = np.sqrt(np.diag(stated) / np.diag(observed))
    assert np.all((ratio > 0.75) & (ratio < 1.3))
    classical = fit(system(0), method).classical
    assert np.all(np.diag(classical) < 0.3 * np.diag(observed))


def test_few_blocks_do_not_make_the_variance_smaller():
    """Of the mean of ten blocks it is what their sample variance says, not 9/10 of that."""
    count, Y = 20, np.random.default_rng(4).normal(size=(1, 20))
    one = np.ones((1, count, 1)), Y, np.ones((1, count), dtype=bool)
    mean = System(('a',), ('1',), ('j1',), np.arange(float(count)), *one)
    blocks = Y.reshape(10, 2).mean(axis=1)
    found = bootstrap(mean, 'ols', draws=20_000)
    assert found.item() == pytest.approx(np.var(blocks, ddof=1) / 10, rel=0.05)


@pytest.mark.parametrize('method', ['ols', 'wls'])
def test_bootstrap_of_triangular_factors_is_that_of_their_rows(method):
    rows = system()
    parts = np.array_split(np.concatenate([rows.W, rows.Y[:, :, None]], axis=2), 50, axis=1)
    batches = np.stack([triangular_factor(part) for part in parts], axis=1)
    total = triangular_factor(batches.reshape(2, -1, 4))
    factors = dataclasses.replace(
        rows,
        time=np.arange(4.0),
        W=total[:, :, :-1],
        Y=total[:, :, -1],
        valid=np.ones((2, 4), dtype=bool),
        counts=np.array([3200, 3200]),
        batches=batches,
    )
    np.testing.assert_allclose(bootstrap(factors, method), bootstrap(rows, method), rtol=1e-8)


def test_an_odd_period_is_predicted_worst():
    residual = leave_one_out(system(noise=0.05, odd=0.5), PERIOD)
    assert residual.shape == (8, 2)
    assert np.all(np.argmax(residual, axis=0) == 2)


@pytest.mark.parametrize('share, periods', [(0.2, 3), (0.8, 4)])
def test_a_part_of_a_period_counts_where_it_is_most_of_one(share, periods):
    one = system(periods=4)
    end = round((3 + share) * PERIOD * RATE)
    part = {name: getattr(one, name)[:, :end] for name in ('W', 'Y', 'valid')}
    found = leave_one_out(dataclasses.replace(one, time=4.0 + one.time[:end], **part), PERIOD)
    assert len(found) == periods


def test_a_period_left_out_is_really_left_out():
    one = system(periods=3)
    Y = one.Y.copy()
    Y[:, :400] *= 5.0
    other = dataclasses.replace(one, Y=Y)
    rest = dataclasses.replace(one, valid=one.valid & (one.time >= PERIOD))
    chi = fit(rest).value
    expected = [
        np.linalg.norm(y - w @ chi) / np.linalg.norm(y)
        for w, y in zip(other.W[:, :400], other.Y[:, :400], strict=True)
    ]
    np.testing.assert_allclose(leave_one_out(other, PERIOD)[0], expected, rtol=1e-9)


def test_what_cannot_be_done_is_said():
    with pytest.raises(ConfigurationError, match='irls'):
        bootstrap(system(), 'irls')
    with pytest.raises(RecordingError, match='period'):
        leave_one_out(system(periods=1), PERIOD)


def test_identification_offers_both(robot, record):
    recording = record(duration=40.0, noise=0.05)
    signals = SignalSettings(cutoff=15.0)
    plain = identify(recording, robot, IdentificationSettings(signals=signals, essential=False))
    drawn = identify(
        recording,
        robot,
        IdentificationSettings(signals=signals, essential=False, covariance='bootstrap'),
    )
    np.testing.assert_array_equal(drawn.estimate.value, plain.estimate.value)
    ratio = drawn.estimate.sigma / plain.estimate.sigma
    assert np.all((ratio > 0.4) & (ratio < 2.5)) and 0.7 < np.median(ratio) < 1.4
    asked = IdentificationSettings(signals=signals, essential=False, leave_one_out=True)
    with pytest.raises(RecordingError, match='leave_one_out'):
        identify(recording, robot, asked)
    trajectory = Trajectory(
        robot.joints, 'ffs', PERIOD, 1, np.zeros(3), np.zeros((FAMILIES['ffs'].size(1), 3))
    )
    known = dataclasses.replace(recording, trajectories={'exciting': trajectory})
    found = identify(known, robot, asked)
    (periods,) = select(found.findings, 'periods_predicted')
    assert periods.values['count'] == 4 and 'j3' in periods.joints
