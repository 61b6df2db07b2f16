"""Stamps that are no times of their own: rounded, equal, repeated."""

from hypothesis import given, strategies as st
import numpy as np
import pytest

from robotid_ros.core.signals.stamp_correction import (
    observed_update_rate,
    spread_equal_stamps,
    stamps_by_motion,
)
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


def stamps(rate: float, count: int = 2000, jitter: float = 0.0, kept: float = 1.0) -> np.ndarray:
    """Return stamps of updates [s]: some late by up to a share of their period, some lost."""
    rng = np.random.default_rng(0)
    time = (np.arange(count) + rng.uniform(0.0, jitter, count)) / rate
    return time[rng.uniform(size=count) < kept]


@pytest.mark.parametrize('jitter, kept', [(0.0, 1.0), (0.2, 0.97)])
@pytest.mark.parametrize(
    'nominal, real, joints',
    [
        (1000.0, 500.0, 500.0),  # more than the controller_manager's
        (300.0, 1000.0 / 3.0, 1000.0),  # rounded up, and down
        (400.0, 1000.0 / 3.0, 1000.0),
        (250.0, 500.0, 500.0),  # changed while it ran
        (1000.0, 500.0, 100.0),  # joint states at a rate of their own
        (0.0, 500.0, 500.0),
    ],
)
def test_the_states_tell_the_rate(nominal, real, joints, jitter, kept):
    found = observed_update_rate(nominal, stamps(real, jitter=jitter, kept=kept), joints)
    assert found == pytest.approx(real, rel=0.01)


@pytest.mark.parametrize(
    'nominal, stamp, joints',
    [
        (500.0, stamps(499.0, jitter=0.3, kept=0.9), 500.0),
        (125.0, stamps(125.0), 500.0),
        (1000.0, stamps(1000.0, jitter=0.2, kept=0.4), 400.0),  # most are lost
        (500.0, stamps(50.0), 500.0),  # a publishing rate of its own, a relay
        (0.0, stamps(50.0), 500.0),
        (1000.0, stamps(500.0, count=50), 500.0),  # too few
        (1000.0, np.floor(stamps(1000.0) * 250.0) / 250.0, 250.0),  # a coarse clock
    ],
)
def test_the_parameter_stands_where_they_cannot(nominal, stamp, joints):
    assert observed_update_rate(nominal, stamp, joints) == nominal


MILLISECOND = 1_000_000


def starved_run() -> tuple[np.ndarray, ...]:
    """Return times, stamps of a starved clock [ns], positions and velocities of a simulation."""
    rng = np.random.default_rng(1)
    count = np.arange(6000)
    # The step's position follows from its velocity; 5 % of the samples are lost; at rest first.
    dq = np.where(count < 800, 0.0, np.sin((count - 800) / 150.0))[:, None] * [1.0, 0.4]
    q = np.cumsum(dq, axis=0) / RATE
    lag = np.where(rng.uniform(size=count.size) < 0.4, 1, 0)
    lag[3000:3040] = np.arange(40)  # the clock stands
    kept = rng.uniform(size=count.size) > 0.05
    kept[0], lag[0] = True, 0
    time = count * MILLISECOND
    stamp = np.maximum.accumulate(time - lag * MILLISECOND)
    return time[kept], stamp[kept], q[kept], dq[kept]


def test_a_starved_clock_is_replaced_by_what_the_motion_says() -> None:
    time, stamp, q, dq = starved_run()
    told, (note,) = stamps_by_motion(stamp, q, dq)
    moving = np.abs(dq[:, 0]) > 0.1
    assert np.mean(told[moving] == time[moving]) > 0.99
    assert np.abs(told - time).max() <= 2 * MILLISECOND
    assert note.values['rate'] == pytest.approx(RATE)
    assert np.abs(stamp - time).max() == 39 * MILLISECOND


def test_stamps_of_a_clock_that_runs_stay() -> None:
    time, _, q, dq = starved_run()
    for stamps_ in (time, time + 1_700_000_000 * 10**9):
        told, notes = stamps_by_motion(stamps_, q, dq)
        assert (told is stamps_) and notes == []
    # So do those that were rounded: they are told apart, and spread elsewhere.
    rounded = time // (10 * MILLISECOND) * 10 * MILLISECOND
    assert stamps_by_motion(rounded, q, dq)[0] is rounded


def test_a_starved_clock_without_velocities_is_refused() -> None:
    _, stamp, q, dq = starved_run()
    rng = np.random.default_rng(2)
    for velocity in (np.full_like(dq, np.nan), dq * rng.uniform(-2.0, 2.0, dq.shape)):
        with pytest.raises(RecordingError, match='lower real-time factor'):
            stamps_by_motion(stamp, q, velocity)
