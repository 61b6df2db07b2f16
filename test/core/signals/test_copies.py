"""Rows that repeat others in every digit are copies, which validate nothing."""

import dataclasses

import numpy as np
from plant_recording import arm, plant
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.pipeline.observation import LogSet
from robotid_ros.core.signals.invalid_samples import find_copies
from robotid_ros.core.signals.recording import SignalSettings
from robotid_ros.core.verdict import judge

SETTINGS = IdentificationSettings(
    essential=False, method='wls', model='plain', signals=SignalSettings(cutoff=10.0)
)


@pytest.fixture(scope='module')
def rows():
    return np.random.default_rng(3).normal(size=(400, 4))


def test_rows_of_their_own_are_no_copies(rows):
    assert not find_copies(rows).any()
    assert not find_copies(rows[:200], rows[200:]).any()


def test_copies_are_found_where_they_are(rows):
    again = np.concatenate([rows, rows[100:200], rows[:10]])
    assert np.flatnonzero(find_copies(again)).tolist() == list(range(400, 500))
    found = find_copies(np.concatenate([rows[:100], rows[:100] + 1.0]), rows)
    assert found[:100].all() and not found[100:].any()


def test_rest_and_coarse_sensors_repeat_without_being_copied():
    rest = np.zeros((300, 2))
    coarse = np.round(np.random.default_rng(4).normal(size=(3000, 2)))
    for each in (rest, coarse, np.repeat(coarse[:20], 20, axis=0)):
        assert not find_copies(each).any()
    assert not find_copies(rest, rest).any()


def test_a_log_that_was_pasted_twice_does_not_validate_itself():
    made = dataclasses.replace(plant().recording, velocity=None)
    half = made.between(made.time[0], made.time[0] + 0.5 * made.duration)
    other = made.between(made.time[0] + 0.5 * made.duration, np.inf)
    copy = dataclasses.replace(half, time=half.time + half.duration + 0.01)
    fitted = identify(half, arm(), SETTINGS, copy)
    (told,) = select(fitted.findings, 'validation_copied')
    assert told.values['share'] == pytest.approx(1.0, abs=0.01)
    assert not judge(fitted).validated
    right = identify(half, arm(), SETTINGS, other)
    assert judge(right).validated and not select(
        right.findings, 'validation_copied', 'rows_copied'
    )
    names = 'time', 'position', 'effort'
    twice = {k: np.concatenate([getattr(half, k), getattr(copy, k)]) for k in names}
    pasted = identify(dataclasses.replace(half, **twice), arm(), SETTINGS)
    (found,) = select(pasted.findings, 'rows_copied')
    assert found.values['count'] == half.size
    np.testing.assert_allclose(pasted.estimate.sigma, fitted.estimate.sigma, rtol=0.05)
    together = identify(LogSet((half, other)), arm(), SETTINGS, copy)
    assert select(together.findings, 'validation_copied')
