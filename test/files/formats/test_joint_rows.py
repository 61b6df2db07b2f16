"""Rows in order or not, with the data of a row in one piece or in several."""

import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.exceptions import RecordingError

from .tables import Q, read, TAU, TIME

ORDERS = {
    'newest first': np.arange(600)[::-1],
    'shuffled': np.random.default_rng(0).permutation(600),
    'in blocks': np.r_[300:600, 0:300].reshape(-1, 2)[:, ::-1].ravel(),
    'up and down': np.r_[0:300, 299:-1:-1],
}


@pytest.mark.parametrize('order', ORDERS.values(), ids=list(ORDERS))
def test_rows_in_no_order_of_time_are_refused(order):
    with pytest.raises(RecordingError, match='go back and forth: sort the rows'):
        read(t=TIME[order], q_=Q[order], tau_=TAU[order])


def test_a_clock_that_starts_again_keeps_the_order():
    found = read(t=np.tile(TIME, 2), q_=np.tile(Q, (2, 1)), tau_=np.tile(TAU, (2, 1)))
    time = np.concatenate([TIME, TIME + TIME[-1] + 2.0])
    np.testing.assert_allclose(found.stamp * 1e-9, time, atol=1e-9)
    assert tuple(select(found.notes, 'trials_joined')) == found.notes[1:] != ()


def test_efforts_between_positions_of_several_trials_are_refused():
    stamp = np.repeat(TIME, 2)
    stamp[1::2] += 0.005
    q, tau = np.full((2, 1200, 2), np.nan)
    q[::2], tau[1::2] = Q, stamp[1::2, None]
    twice = {'t': np.tile(stamp, 2), 'q_': np.tile(q, (2, 1)), 'tau_': np.tile(tau, (2, 1))}
    twice['tau_'][1200:] += 100.0
    with pytest.raises(RecordingError, match='go back and forth'):
        read(**twice)


@pytest.mark.parametrize('at', [0, 1, 3])
def test_rows_of_other_sensors_are_left_out(at):
    """Joint states at 100 Hz, joined with a sensor at 400 Hz."""
    stamp = np.arange(2400) * 0.0025
    q, tau = np.full((2, 2400, 2), np.nan)
    q[at::4], tau[at::4] = Q, TAU
    found = read(t=stamp, q_=q, tau_=tau, imu=np.cos(stamp))
    np.testing.assert_array_equal(found.position, Q)
    np.testing.assert_array_equal(found.effort, TAU)
    np.testing.assert_allclose(found.stamp * 1e-9, stamp[at::4], atol=1e-9)
    (rows,) = select(found.notes, 'rows_without_states')
    assert rows.values == {'count': 1800}
