"""Rows in any order, with the data of a row in one piece or in several."""

import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.exceptions import RecordingError

from .tables import Q, read, TAU, TIME

NOTHING = np.full_like(Q, np.nan)
ORDERS = {
    'newest first': np.arange(600)[::-1],
    'shuffled': np.random.default_rng(0).permutation(600),
    'in blocks': np.r_[300:600, 0:300].reshape(-1, 2)[:, ::-1].ravel(),
}


@pytest.mark.parametrize('order', ORDERS.values(), ids=list(ORDERS))
def test_rows_are_sorted_by_their_stamps(order):
    found = read(t=TIME[order], q_=Q[order], tau_=TAU[order])
    np.testing.assert_allclose(found.stamp * 1e-9, TIME, atol=1e-9)
    np.testing.assert_array_equal(found.position, Q)
    np.testing.assert_array_equal(found.effort, TAU)
    assert select(found.notes[-1:], 'rows_sorted')


def test_times_that_fit_no_order_of_the_rows_are_refused():
    """A phase that goes up and down is no time: sorted, both ways would be mixed."""
    phase = np.r_[TIME[:300], TIME[299::-1] + 0.005]
    with pytest.raises(RecordingError, match='go back and forth, and in their order'):
        read(t=phase)


def test_a_clock_that_starts_again_keeps_the_order():
    found = read(t=np.tile(TIME, 2), q_=np.tile(Q, (2, 1)), tau_=np.tile(TAU, (2, 1)))
    time = np.concatenate([TIME, TIME + TIME[-1] + 2.0])
    np.testing.assert_allclose(found.stamp * 1e-9, time, atol=1e-9)
    assert tuple(select(found.notes, 'trials_joined')) == found.notes[1:] != ()


@pytest.mark.parametrize('first', ['positions', 'efforts'])
def test_a_table_of_efforts_behind_one_of_positions_is_joined(first):
    q, tau = np.vstack([Q, NOTHING]), np.vstack([NOTHING, TAU])
    order = slice(None) if first == 'positions' else slice(None, None, -1)
    blocks = np.arange(1200).reshape(2, 600)[order].ravel()
    found = read(t=np.tile(TIME, 2), q_=q[blocks], tau_=tau[blocks])
    np.testing.assert_array_equal(found.position, Q)
    np.testing.assert_allclose(found.effort, TAU, rtol=1e-12)


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
