"""Pieces are the motion itself until they come to rest, each before the next one must be there."""

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

from robotid_ros.core.excitation.pieces import ARRIVED, in_pieces, LEAST, SEEN, STOPPING
from robotid_ros.core.excitation.trajectory import point_to_point, waypoints
from robotid_ros.exceptions import LimitError, TrajectoryError

from .test_trajectories import AT_REST, make


def accept(_):
    """Find nothing wrong with a way to rest."""


@given(st.sampled_from(AT_REST), st.floats(LEAST, 3.0), st.floats(2.0, 12.0), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_pieces_are_the_motion_until_they_rest_in_time(family, horizon, period, seed):
    motion = waypoints(make(family, period=period, seed=seed), 50.0)
    pieces = in_pieces(motion, horizon, accept)
    assert pieces[0].due == pieces[0].begin == 0.0
    scale, time = np.abs(motion.dq).max(), np.linspace(0.0, motion.duration, 2000)
    moved = np.abs(motion.sample(time).q - motion.q[0]).max(axis=1)
    for k, piece in enumerate(pieces):
        last, after = k == len(pieces) - 1, pieces[min(k + 1, len(pieces) - 1)].due
        rest = piece.begin + piece.points.duration
        stop = motion.duration if last else rest - STOPPING[0] * horizon
        assert piece.begin <= piece.due <= after < stop + 1e-9
        # Half of the time until it leaves the motion is left for the next one to arrive.
        assert last or after - piece.due == pytest.approx(0.5 * (stop - piece.due))
        t = np.linspace(piece.due, stop, 200)
        for own, planned in zip(
            piece.points.sample(t - piece.begin), motion.sample(t), strict=True
        ):
            np.testing.assert_allclose(own, planned, atol=1e-8 * scale / min(horizon, 1.0) ** 2)
        assert not piece.points.dq[-1].any() and not piece.points.ddq[-1].any()
        # A motion that begins slowly has longer first pieces.
        slow = time[np.argmax(moved > SEEN * moved.max())] + ARRIVED + max(STOPPING) * horizon
        assert last or rest == pytest.approx(max(piece.due + horizon, slow), abs=0.011)


def test_the_way_to_rest_keeps_all_limits():
    motion = waypoints(make('mfs', period=8.0), 50.0)
    tried = []

    def slow(way):
        tried.append(way)
        if way.duration < 0.5:
            raise LimitError('joint_0', 'acceleration', 0.0, 2.0, 1.0)

    pieces = in_pieces(motion, 1.0, slow)
    for piece in pieces[1:-1]:
        assert np.diff(piece.points.time)[-1] == pytest.approx(0.5)
    # It brakes all the way: nobody turns round to stop.
    for way in tried:
        speed = way.sample(np.linspace(0.0, way.duration, 50)).dq
        assert np.all(np.abs(speed) <= 1.6 * np.abs(way.dq[0]) + way.duration * np.abs(way.ddq[0]))


def test_a_slow_beginning_is_one_piece_until_it_is_seen():
    motion = point_to_point(('a',), np.zeros(1), np.ones(1), np.array([0.03]), np.array([1.0]))
    first, second, *_ = in_pieces(motion, 1.0, accept)
    travelled = motion.sample(np.array([first.points.duration - 0.3])).q
    assert travelled >= 1e-3 and second.due < first.points.duration


def test_what_cannot_be_stopped_says_what_to_set():
    motion = waypoints(make('mfs'), 50.0)

    def never(way):
        raise LimitError('joint_0', 'position', 0.0, 2.0, 1.0)

    with pytest.raises(TrajectoryError, match=r'joint_0.*raise excitation\.horizon'):
        in_pieces(motion, 1.0, never)
    with pytest.raises(TrajectoryError, match='too short'):
        in_pieces(motion, 0.1, accept)
