"""The start of a motion is read from the controller's reference."""

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np

from robotid_ros.core.excitation import point_to_point, Trajectory, Waypoints, waypoints
from robotid_ros.nodes.excitation.motion_start import estimate_start

ORIGIN = 1_700_000_000_000_000_000


def motion() -> Waypoints:
    still = np.zeros((2, 2))
    return Waypoints(
        ('a', 'b'), np.array([0.0, 2.0]), np.array([[0.1, -0.3], [0.6, 0.9]]), still, still
    )


def observed(points: Waypoints, start: int, stamps: np.ndarray) -> np.ndarray:
    return points.sample(np.clip((stamps - start) * 1e-9, 0.0, points.duration)).q


@settings(max_examples=30)
@given(
    offset=st.integers(0, 30_000_000),
    period=st.integers(1_000_000, 8_000_000),
    drop=st.integers(0, 2**31),
)
def test_start_is_found_between_samples_that_jitter_and_get_lost(offset, period, drop):
    points = motion()
    rng = np.random.default_rng(drop)
    stamps = ORIGIN + np.arange(0, 600_000_000, period)
    stamps = stamps + rng.integers(-100_000, 100_000, len(stamps))
    stamps = stamps[rng.random(len(stamps)) > 0.05]
    start = ORIGIN + offset
    found = estimate_start(points, stamps, observed(points, start, stamps))
    assert found is not None
    assert abs(found - start) < 1_000


def test_nothing_is_said_before_the_reference_moves():
    points = motion()
    stamps = ORIGIN + np.arange(0, 100_000_000, 1_000_000)
    resting = np.tile(points.q[0], (len(stamps), 1))
    assert estimate_start(points, stamps, resting) is None
    # Barely begun: too little to tell when.
    early = observed(points, ORIGIN, stamps[:20])
    assert estimate_start(points, stamps[:20], early) is None


def test_a_motion_of_no_length_has_no_start():
    points = point_to_point(('a',), np.zeros(1), np.zeros(1), np.ones(1), np.ones(1))
    stamps = ORIGIN + np.arange(10) * 1_000_000
    assert estimate_start(points, stamps, np.zeros((10, 1))) is None


def test_periodic_trajectory_starts_where_it_was_sent():
    trajectory = Trajectory.from_dict(
        {
            'family': 'mfs',
            'joints': ['a'],
            'period': 2.0,
            'order': 3,
            'start': [0.2],
            'coefficients': coefficients('mfs', 3),
        }
    )
    points = waypoints(trajectory, 100.0, 2)
    stamps = ORIGIN + np.arange(0, 400_000_000, 1_000_000)
    start = ORIGIN + 12_345_678
    found = estimate_start(points, stamps, observed(points, start, stamps))
    assert found is not None
    assert abs(found - start) < 1_000


def coefficients(family: str, order: int) -> list[list[float]]:
    from robotid_ros.core.excitation.trajectories.families import FAMILIES

    rng = np.random.default_rng(3)
    return rng.normal(size=(FAMILIES[family].size(order), 1)).tolist()
