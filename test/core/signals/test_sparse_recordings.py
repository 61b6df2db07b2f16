"""Recordings of which most messages are missing."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.signals.preparation import resample_uniformly
from robotid_ros.core.signals.recording import SignalSettings
from robotid_ros.exceptions import StandstillError

PLAIN = IdentificationSettings(method='ols', essential=False)


def thinned(recording, share, length=1):
    """Return the recording without a share of its messages, lost in runs of some length."""
    count = len(recording.time)
    lost = np.random.default_rng(1).uniform(size=count // length + 1) < share
    kept = ~np.repeat(lost, length)[:count]
    columns = {name: getattr(recording, name)[kept] for name in ('time', 'position', 'effort')}
    return dataclasses.replace(recording, **columns)


@pytest.mark.parametrize(('share', 'tolerance'), [(0.5, 0.01), (0.8, 0.03), (0.9, 0.12)])
def test_a_motion_is_found_again_from_few_messages(share, tolerance, record, robot, truth):
    found = identify(thinned(record(0, 60.0), share), robot, PLAIN)
    true = found.base.of(truth)
    assert np.linalg.norm(found.estimate.value - true) < tolerance * np.linalg.norm(true)
    if share > 0.5:
        assert select(found.findings, 'gaps_interpolated')


def test_what_cannot_be_bridged_is_said(record, robot):
    with pytest.raises(StandstillError, match='messages of the recording are missing: only'):
        identify(thinned(record(0, 20.0), 0.95, 5), robot, PLAIN)


def test_bursts_between_long_gaps_are_said_to_be_doubtful(record):
    recording = record(0, 60.0)
    kept = np.arange(len(recording.time)) % 200 < 20
    columns = {name: getattr(recording, name)[kept] for name in ('time', 'position', 'effort')}
    notes = resample_uniformly(dataclasses.replace(recording, **columns), SignalSettings())[3]
    (gaps,) = select(notes, 'mostly_gaps')
    assert gaps.values['share'] == pytest.approx(0.9, abs=5e-3)


def test_interruptions_are_left_out_as_before(record):
    recording = record(0, 60.0)
    kept = np.ones(len(recording.time), dtype=bool)
    for start in range(400, 12000, 800):
        kept[start : start + 60] = False  # 0.3 s each, 7.5 % of the time
    columns = {name: getattr(recording, name)[kept] for name in ('time', 'position', 'effort')}
    result = resample_uniformly(dataclasses.replace(recording, **columns), SignalSettings())
    assert not result[2].all()
    (note,) = select(result[3], 'gap_left_out')
    assert note.values['count'] == 15


def test_a_recording_without_losses_stays_as_it_is(record):
    recording = record(0, 20.0)
    result, rate, covered, notes = resample_uniformly(recording, SignalSettings())
    np.testing.assert_array_equal(result.position, recording.position)
    assert rate == pytest.approx(200.0) and covered.all() and not notes
