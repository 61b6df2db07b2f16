"""What is drawn has few points, and its peaks."""

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

from robotid_ros.files.report.plots import phases, thin

from . import results as made


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 4000), st.integers(4, 600), st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_thinning_keeps_extremes_ends_and_breaks(count, rows, seed, holes):
    rng = np.random.default_rng(seed)
    time = np.arange(count) * 1e-3
    for _ in range(holes):
        time[rng.integers(count) :] += 5.0
    values = rng.normal(size=(count, 2))
    t, y = thin(time, values, rows)
    gaps = int(np.sum(np.diff(time) > 1.0))
    if count > 20 * (holes + 1):  # else the usual step is no millisecond
        assert np.isnan(t).sum() == gaps and np.isnan(y[:, 0]).sum() == gaps
    assert np.nanmax(y, axis=0) == pytest.approx(values.max(axis=0), abs=0)
    assert np.nanmin(y, axis=0) == pytest.approx(values.min(axis=0), abs=0)
    assert t[0] == time[0] and t[-1] == time[-1]
    assert len(t) <= max(count, rows) + 4 * (holes + 1)
    if count > 2 * rows:
        assert len(t) <= rows + 6 * (holes + 1)


def test_few_points_are_drawn_as_they_are():
    time, values = np.arange(10.0), np.arange(20.0).reshape(10, 2)
    t, y = thin(time, values, 100)
    np.testing.assert_array_equal(t, time)
    np.testing.assert_array_equal(y, values)


def test_another_recording_is_set_behind_the_first():
    data = made.torques()
    first, second = phases({'identification': data, 'validation': data})
    assert second.place[0] > first.place[-1]
    np.testing.assert_allclose(np.diff(second.place), np.diff(data.time))
    # Parts of one session stay at their times.
    later = made.torques(start=7.0)
    assert phases({'identification': data, 'validation': later})[1].place[0] == 7.0
