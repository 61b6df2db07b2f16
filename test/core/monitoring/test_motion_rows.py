"""Rows are means over blocks of regressor and effort alike, of joints that move."""

import itertools

import numpy as np
import pytest

from robotid_ros.core.model import regressor
from robotid_ros.core.monitoring.motion_rows import MotionRows

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
