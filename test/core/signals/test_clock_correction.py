"""Stamps that are no times of their own: rounded, equal, repeated."""

from hypothesis import given, strategies as st
import numpy as np
import pytest

from robotid_ros.core.signals.clock_correction import spread_equal_stamps
from robotid_ros.exceptions import RecordingError

RATE = 1000.0
TIME = np.arange(3000) / RATE
VALUES = np.column_stack([np.sin(TIME), np.cos(3.0 * TIME)])


@given(st.sampled_from([0.002, 0.005, 0.01, 0.02]))
def test_rounded_stamps_are_spread_over_the_time_that_they_stand_for(resolution: float):
    rounded = np.floor(TIME / resolution + 1e-9) * resolution
    time, (note,) = spread_equal_stamps(rounded, VALUES)
    np.testing.assert_allclose(time, TIME, atol=1e-9)
    assert note.values['step'] == pytest.approx(resolution)


def test_a_rate_that_does_not_divide_the_resolution_keeps_the_order():
    time = np.arange(3000) / 300.0
    spread, _ = spread_equal_stamps(np.floor(time / 0.01) * 0.01, VALUES)
    assert np.all(np.diff(spread) > 0.0)
    assert np.abs(spread - time).max() < 0.01


def test_a_gap_is_not_filled():
    time = np.where(TIME < 1.5, TIME, TIME + 10.0)
    spread, _ = spread_equal_stamps(np.floor(time / 0.01 + 1e-9) * 0.01, VALUES)
    np.testing.assert_allclose(spread, time, atol=1e-9)


def test_messages_that_came_twice_stay():
    time, note = spread_equal_stamps(np.repeat(TIME, 2), np.repeat(VALUES, 2, axis=0))
    np.testing.assert_array_equal(time, np.repeat(TIME, 2))
    assert not note


def test_stamps_that_never_change_are_refused():
    with pytest.raises(RecordingError, match='3000 samples share 1 stamps'):
        spread_equal_stamps(np.zeros(3000), VALUES)
