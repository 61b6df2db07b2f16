"""What goes to the controller: complete points, exact rest at the end, no NaN."""

from hypothesis import given, strategies as st
import numpy as np
import pytest

from robotid_ros.core.excitation.trajectory import point_to_point, Waypoints
from robotid_ros.exceptions import TrajectoryError
from robotid_ros.nodes.common.messages import duration_message, trajectory_message


@given(st.floats(0.0, 1e6))
def test_durations_keep_their_nanoseconds(seconds: float):
    message = duration_message(seconds)
    assert 0 <= message.nanosec < 10**9
    assert message.sec + message.nanosec * 1e-9 == pytest.approx(seconds, abs=1e-9, rel=1e-15)


def test_points_are_complete_and_start_at_once():
    points = point_to_point(('a', 'b'), np.zeros(2), np.array([1.0, -0.5]), np.ones(2), np.ones(2))
    message = trajectory_message(points)
    assert message.joint_names == ['a', 'b']
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (0, 0)
    first, last = message.points[0], message.points[-1]
    assert (first.time_from_start.sec, first.time_from_start.nanosec) == (0, 0)
    for point in message.points:
        assert len(point.positions) == len(point.velocities) == len(point.accelerations) == 2
        assert len(point.effort) == 0
    assert list(last.velocities) == [0.0, 0.0]
    assert list(last.positions) == [1.0, -0.5]


def test_points_carry_the_efforts_that_they_have():
    still = np.zeros((2, 2))
    tau = np.array([[1.0, -2.0], [0.0, 0.5]])
    message = trajectory_message(
        Waypoints(('a', 'b'), np.array([0.0, 1.0]), still, still, still, tau)
    )
    assert [list(point.effort) for point in message.points] == tau.tolist()


def test_motion_that_does_not_end_at_rest_is_refused():
    end = np.array([[0.0], [1e-9]])
    points = Waypoints(('a',), np.array([0.0, 1.0]), end, end, np.zeros((2, 1)))
    with pytest.raises(TrajectoryError, match='at rest'):
        trajectory_message(points)


def test_nan_is_refused():
    with pytest.raises(TrajectoryError, match='not finite'):
        q = np.array([[0.0], [np.nan]])
        trajectory_message(
            Waypoints(('a',), np.array([0.0, 1.0]), q, np.zeros((2, 1)), np.zeros((2, 1)))
        )
