"""Rows that repeat others in every digit are copies, which validate nothing."""

import dataclasses

import numpy as np
from plant_recording import arm, plant
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.pipeline.observation import LogSet
from robotid_ros.core.signals.invalid_samples import copied_share
from robotid_ros.core.signals.recording import SignalSettings
from robotid_ros.core.verdict import judge

SETTINGS = IdentificationSettings(
    essential=False, method='wls', model='plain', signals=SignalSettings(cutoff=10.0)
)


@pytest.fixture(scope='module')
def rows():
    return np.random.default_rng(3).normal(size=(400, 4))


def test_copies_are_found_where_they_are(rows):
    assert copied_share(rows[:200], rows[200:]) == 0.0
    assert copied_share(rows[100:300], rows) == 1.0
    half = np.concatenate([rows[:200], rows[:200] + 1.0])
    assert copied_share(half, rows) == pytest.approx(0.5, abs=0.1)
    assert copied_share(rows[:20], rows) == 0.0


def test_rest_and_coarse_sensors_repeat_without_being_copied():
    rest = np.zeros((300, 2))
    coarse = np.round(np.random.default_rng(4).normal(size=(3000, 2)))
    for each, others in ((rest, rest), (coarse, np.roll(coarse, 7, axis=1))):
        assert copied_share(each, others) == 0.0


def test_a_copy_of_the_log_does_not_validate_itself():
    made = dataclasses.replace(plant().recording, velocity=None)
    half = made.between(made.time[0], made.time[0] + 0.5 * made.duration)
    other = made.between(made.time[0] + 0.5 * made.duration, np.inf)
    copy = dataclasses.replace(half, time=half.time + half.duration + 0.01)
    fitted = identify(half, arm(), SETTINGS, copy)
    (told,) = select(fitted.findings, 'validation_copied')
    assert told.values['share'] == pytest.approx(1.0, abs=0.01)
    assert not judge(fitted).validated
    right = identify(half, arm(), SETTINGS, other)
    assert judge(right).validated and not select(right.findings, 'validation_copied')
    together = identify(LogSet((half, other)), arm(), SETTINGS, copy)
    assert select(together.findings, 'validation_copied')
