"""Filtered states, the noise of rows, and rows as means over blocks, of joints that move."""

import itertools

import numpy as np
import pytest
from scipy.signal import butter, lfilter, lsim

from robotid_ros.core.model import regressor
from robotid_ros.core.monitoring.motion_rows import (
    FilteredStates,
    MotionRows,
    RowNoise,
    StateVariableFilter,
)

from ..conftest import motion

STANDSTILL = 0.02


@pytest.fixture
def builder(robot, truth):
    return MotionRows(robot, truth, np.arange(robot.p), STANDSTILL)


def feed(builder, stamps, q, dq, ddq, effort):
    rows = []
    for k, stamp in enumerate(stamps):
        row = builder.add(int(stamp), np.stack([q[k], dq[k], ddq[k]]), effort[k])
        if row is not None:
            rows.append(row)
    return rows


@pytest.mark.parametrize('rate', [100.0, 300.0, 1000.0])
def test_rows_are_means_of_regressor_and_error(robot, truth, builder, rate):
    rng = np.random.default_rng(0)
    time = np.cumsum(rng.uniform(0.5, 1.5, round(3.0 * rate)) / rate)
    q, dq, ddq = motion(time, 1)
    effort = rng.normal(size=q.shape)
    stamps = np.round(1e9 * time).astype(np.int64)
    rows = feed(builder, stamps, q, dq, ddq, effort)
    assert 40 < len(rows) <= 60 and sum(row.used.sum() for row in rows) > 60
    W = regressor(robot, q, dq, ddq)
    error = effort.T - W @ truth
    exact = 1000.0 / rate > 4.5  # no instant is left out
    for before, row in itertools.pairwise(rows):
        inside = (stamps > before.stamp) & (stamps <= row.stamp)
        turned = np.ptp(np.sign(dq[inside]), axis=0) > 0
        still = (abs(dq[inside]) < STANDSTILL).any(axis=0) & exact
        assert not (row.used & (still | turned)).any()
        if exact and row.used.any():
            assert row.values[:, :-1] == pytest.approx(W[:, inside].mean(axis=1))
            assert row.values[:, -1] == pytest.approx(error[:, inside].mean(axis=1))
        assert row.duration == pytest.approx((row.stamp - before.stamp) * 1e-9)


def test_a_joint_at_rest_gives_no_row_nor_does_the_block_after(builder):
    time = np.arange(0.0, 1.3, 0.01)
    dq = np.tile([0.5, 0.0, -0.5], (len(time), 1))
    dq[(time > 0.355) & (time < 0.445), 2] = 0.0
    still = np.zeros_like(dq)
    rows = feed(builder, np.round(1e9 * time), still, dq, still, still)
    used = np.array([row.used for row in rows])
    assert used.sum(axis=0).tolist() == [len(rows) - 1, 0, len(rows) - 4]


def test_a_gap_begins_anew(builder):
    time = np.arange(0.0, 0.5, 0.01)
    dq = np.full((len(time), 3), 0.5)
    still = np.zeros_like(dq)
    first = feed(builder, np.round(1e9 * time), still, dq, still, still)
    builder.restart()
    second = feed(builder, np.round(1e9 * (time + 7.0)), still, dq, still, still)
    assert [row.used.all() for row in second] == [row.used.all() for row in first]
    assert all(row.duration < 0.15 for row in second)


def test_filter_is_the_butterworth_of_a_second_implementation():
    t = np.arange(0.0, 1.0, 1e-3)
    u = np.sin(2 * np.pi * 3.0 * t)
    filtered = StateVariableFilter(8.0, u[:1])
    states = [filtered.state[:, 0].copy()]
    for value in u[1:]:
        filtered.step(np.array([value]), 1e-3)
        states.append(filtered.state[:, 0].copy())
    numerator, denominator = butter(3, 2 * np.pi * 8.0, analog=True)
    for order, state in enumerate(np.transpose(states)):
        system = (np.r_[numerator, np.zeros(order)], denominator)
        _, expected, _ = lsim(system, u, t, interp=True)
        assert np.abs(state - expected).max() < 1e-8 * max(1.0, np.abs(expected).max())


def test_steps_of_any_length_give_the_same_state():
    one, many = StateVariableFilter(5.0, np.zeros(2)), StateVariableFilter(5.0, np.zeros(2))
    end = np.array([1.0, -2.0])
    one.step(end, 0.04)
    for k in range(1, 41):
        many.step(end * k / 40, 0.001)
    assert one.state == pytest.approx(many.state, rel=1e-9)


def test_a_sample_that_overflows_starts_it_anew():
    states, one = FilteredStates(np.ones(1), 10.0, 0.5), np.ones(1)
    assert states.take(1_000_000, one, one) == 0.0
    assert states.take(2_000_000, 1e308 * one, one) is None
    assert states.take(3_000_000, one, one) == 0.0
    assert states.motion[:, 0].tolist() == [1.0, 0.0, 0.0]


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
