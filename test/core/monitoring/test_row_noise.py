"""Correlated errors count less, and a sudden change does not pass for noise."""

import numpy as np
import pytest
from scipy.signal import lfilter

from robotid_ros.core.monitoring.motion_rows import RowNoise

ALL = np.ones(2, dtype=bool)


def fed(errors, residual=(0.5, 0.5)):
    noise = RowNoise(np.array(residual), np.ones(2))
    for k, row in enumerate(errors):
        # Joints turn round, and rest a moment, after three seconds.
        noise.add(row, ALL & (k % 30 > 0))
    return noise


def test_white_errors_count_as_they_are():
    errors = np.array([0.1, 0.02]) * np.random.default_rng(0).normal(size=(6000, 2))
    noise = fed(errors)
    assert np.sqrt(noise.variance) == pytest.approx([0.1, 0.02], rel=0.15)
    assert (noise.correlation < 1.35).all()


@pytest.mark.parametrize('rho', [0.5, 0.9])
def test_correlated_errors_count_less(rho):
    white = np.random.default_rng(1).normal(size=(20000, 2))
    errors = lfilter([np.sqrt(1.0 - rho**2)], [1.0, -rho], white, axis=0)
    lengths = np.arange(-19, 20)
    # Of sums of 20 rows, and of the 9 that remain until the next rest.
    expected = np.sum(rho ** abs(lengths) * (1.0 - abs(lengths) / 20.0))
    found = fed(errors).correlation
    assert (found > 0.6 * expected).all() and (found < 1.4 * expected).all()


def test_a_step_is_no_noise_for_two_seconds():
    errors = 0.1 * np.random.default_rng(2).normal(size=(1020, 2))
    before = fed(errors[:1000]).per_row()
    errors[1000:] += 5.0
    assert (fed(errors).per_row() < 3.0 * before).all()


def test_a_small_change_does_not_hide_behind_its_own_errors():
    errors = 0.1 * np.random.default_rng(3).normal(size=(900, 2))
    quiet, changed = (RowNoise(np.full(2, 0.5), np.ones(2)) for _ in range(2))
    for k, row in enumerate(errors):
        quiet.hold(row, ALL & (k % 30 > 0))
        # As many rows with it as without.
        changed.hold(row + 0.15 * (k >= 450), ALL & (k % 30 > 0))
    assert np.array_equal(changed.per_row(), quiet.per_row())
    before = quiet.per_row()
    changed.drop()
    for k, row in enumerate(errors):
        changed.hold(row, ALL & (k % 30 > 0))
    assert (changed.per_row() < 1.2 * before).all()
    # What nobody tells is noise in the end.
    for k, row in enumerate(np.tile(errors, (2, 1))):
        quiet.hold(row + 0.15, ALL & (k % 30 > 0))
    assert (quiet.per_row() > 1.5 * before).all()


def test_what_is_not_known_is_taken_for_large():
    level = np.array([10.0, 1.0])
    assert RowNoise(np.zeros(2), level).per_row() == pytest.approx(level * 0.1 * np.sqrt(2.0))
