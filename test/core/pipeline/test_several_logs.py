"""Several logs of one robot in one estimate."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.pipeline import observation as all_logs
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.pipeline.observation import LogSet, observe_recording, short_names
from robotid_ros.core.regression.delays import remove_delay
from robotid_ros.core.regression.estimators import fit
from robotid_ros.core.signals.recording import Recording, SignalSettings
from robotid_ros.exceptions import ConfigurationError, RecordingError

PLAIN = IdentificationSettings(
    method='ols', essential=False, signals=SignalSettings(rows='smooth')
)


def named(recording, name):
    return dataclasses.replace(recording, source=name)


@pytest.fixture(scope='module')
def noisy(record):
    return named(record(0, noise=0.02), 'folder/a'), named(record(1, noise=0.02), 'folder/b')


def test_a_log_twice_gives_the_same_numbers_and_hardly_less_sigma(noisy, robot, record):
    log, other = noisy[0], record(7)
    settings = dataclasses.replace(PLAIN, covariance='residuals')
    once, twice = (identify(r, robot, settings, other) for r in (log, LogSet((log, log))))
    np.testing.assert_allclose(twice.estimate.value, once.estimate.value, rtol=1e-9, atol=1e-12)
    white = [np.sqrt(np.diag(found.estimate.classical)) for found in (once, twice)]
    np.testing.assert_allclose(white[0] / white[1], np.sqrt(2.0), rtol=0.01)
    # The residual came back with the motion, as what a model leaves out does: less is gained.
    ratio = once.estimate.sigma / twice.estimate.sigma
    assert ratio.min() > 0.99 and ratio.max() < 1.1 * np.sqrt(2.0) and np.median(ratio) < 1.3
    np.testing.assert_allclose(twice.fitted.rms, once.fitted.rms, rtol=1e-9)
    assert twice.validation is not None and once.validation is not None
    np.testing.assert_allclose(twice.validation.rms, once.validation.rms, rtol=1e-6)
    assert (np.diff(twice.fitted.time) > 0.0).all()
    (together,) = select(twice.findings, 'logs_together')
    assert together.values['logs'] == ('a', 'a')


def test_weighted_least_squares_agrees_too(noisy, robot):
    log = noisy[0]
    settings = dataclasses.replace(PLAIN, method='wls')
    once, twice = (identify(r, robot, settings) for r in (log, LogSet((log, log))))
    difference = np.abs(twice.estimate.value - once.estimate.value)
    assert (difference < 1e-2 * once.estimate.sigma).all()


def test_each_log_keeps_its_own_delay(record, robot, truth):
    """Noise-free recovery, where one log has its efforts 4 ms late, the other in time."""
    logs = record(0), remove_delay(record(1), -4e-3)
    found = identify(LogSet((named(logs[0], 'a'), named(logs[1], 'b'))), robot, PLAIN)
    true = found.base.of(truth)
    np.testing.assert_allclose(found.estimate.value, true, atol=2e-3 * np.abs(true).max())
    (late,) = select(found.findings, 'delay_removed')
    assert late.values['source'] == 'b' and late.values['delay'] == pytest.approx(4e-3, abs=5e-5)


def test_nothing_is_filtered_across_a_border(record, robot, truth):
    """The second log begins far from where the first one ends, and at another rate."""
    first, second = record(0), record(3)
    second = Recording(
        second.joints, second.time[::2], second.position[::2], second.effort[::2], source='b'
    )
    found = identify(LogSet((first, second)), robot, PLAIN)
    true = found.base.of(truth)
    np.testing.assert_allclose(found.estimate.value, true, atol=2e-3 * np.abs(true).max())


def test_long_logs_become_the_same_triangular_factors(noisy, robot, monkeypatch):
    logs, base = LogSet(noisy), base_parameters(robot)
    whole = observe_recording(logs, robot, base, PLAIN.signals)
    monkeypatch.setattr(all_logs, 'MAX_SAMPLES', 100)
    chunked = observe_recording(logs, robot, base, PLAIN.signals)
    np.testing.assert_array_equal(chunked.system.equations, whole.system.equations)
    one, other = fit(chunked.system, 'ols'), fit(whole.system, 'ols')
    np.testing.assert_allclose(one.value, other.value, rtol=1e-8, atol=1e-9)
    assert 0.5 < np.median(one.sigma / other.sigma) < 2.0
    assert select(chunked.notes, 'long_recording')
    assert select(identify(logs, robot, PLAIN).findings, 'long_recording')


@pytest.mark.parametrize('mass', [0.5, 2.0, 8.0])
def test_a_log_of_another_load_is_named(mass, record, robot, truth):
    loaded = truth.copy()
    loaded[robot.column('MX3')] += 0.5 * mass
    loaded[robot.column('M3')] += mass
    logs = [named(record(0, 60.0), 'a'), named(record(1, 20.0, of=loaded), 'b')]
    found = identify(LogSet(tuple(logs)), robot, PLAIN)
    (apart,) = select(found.findings, 'logs_far_apart')
    assert dict(zip(apart.values['logs'], apart.values['own'], strict=True))['b'] < 0.01
    logs[1] = named(record(1), 'b')
    again = identify(LogSet(tuple(logs)), robot, PLAIN)
    assert not select(again.findings, 'logs_far_apart')


@pytest.mark.parametrize('change', [{'method': 'didim'}])
def test_what_needs_one_log_says_so(noisy, robot, change):
    with pytest.raises(ConfigurationError, match='takes one log and not several'):
        identify(LogSet(noisy), robot, dataclasses.replace(PLAIN, **change))


def test_a_log_at_rest_is_named(noisy, robot):
    still = dataclasses.replace(noisy[1], position=np.ones_like(noisy[1].position))
    with pytest.raises(RecordingError, match='folder/b'):
        identify(LogSet((noisy[0], still)), robot, PLAIN)


def test_short_names_stay_different(noisy):
    others = [named(noisy[0], 'other/a'), *noisy]
    assert short_names(others) == ['other/a', 'folder/a', 'b']
    assert short_names([noisy[0], noisy[0]]) == ['a', 'a']
