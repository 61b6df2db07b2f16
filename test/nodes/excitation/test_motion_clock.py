"""The start of a motion is read from the controller's reference."""

import time
from types import SimpleNamespace

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

from robotid_ros.core.excitation.trajectory import point_to_point, Trajectory, Waypoints, waypoints
from robotid_ros.exceptions import RobotStateError
from robotid_ros.nodes.excitation.motion_clock import course_of, estimate_start, MotionClock

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


@pytest.mark.parametrize('rest', [1.0, 7.0])
def test_a_rest_before_the_motion_belongs_to_it(rest: float):
    points = motion()
    rested = Waypoints(
        points.joints,
        np.array([0.0, rest, rest + 2.0]),
        *(np.concatenate([x[:1], x]) for x in (points.q, points.dq, points.ddq)),
    )
    stamps = ORIGIN + np.arange(0, round((rest + 0.5) * 1e9), 2_000_000)
    start = ORIGIN + 3_456_789
    found = estimate_start(rested, stamps, observed(rested, start, stamps))
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
    from robotid_ros.core.excitation.trajectory import FAMILIES

    rng = np.random.default_rng(3)
    return rng.normal(size=(FAMILIES[family].size * order, 1)).tolist()


def state(points: Waypoints, stamp: int, own_time: float, factor: float) -> SimpleNamespace:
    """Return the state of a controller whose own time since the start is given [s]."""
    return SimpleNamespace(
        header=SimpleNamespace(
            stamp=SimpleNamespace(sec=stamp // 10**9, nanosec=stamp % 10**9),
        ),
        joint_names=list(points.joints),
        reference=SimpleNamespace(
            positions=points.sample(np.clip([own_time], 0.0, points.duration)).q[0].tolist()
        ),
        speed_scaling_factor=factor,
    )


def run_clock(clock: MotionClock, points: Waypoints, factors: list[float]) -> int:
    """Let a controller run at these factors, one a millisecond, from the 30th on; return when."""
    own = 0.0
    for k, factor in enumerate(factors):
        own += 1e-3 * factor if k > 30 else 0.0
        clock.update([state(points, ORIGIN + k * 10**6, own, factor)])
    return ORIGIN + 30 * 10**6


@pytest.mark.parametrize('factor', [1.0, 0.4])
def test_a_scaled_motion_takes_longer(factor: float):
    points = motion()
    clock = MotionClock(points, 0.1)
    start = run_clock(clock, points, [factor] * 1000)
    assert clock.start is not None and abs(clock.start - start) < 1_000
    assert abs(clock.elapsed - factor * 0.969) < 1e-6
    assert abs(clock.end - start - 2.0e9 / factor) < 10_000
    told = {'speed': factor, 'speed_min': factor, 'speed_max': factor}
    assert course_of([clock]) == ({} if factor == 1.0 else told)


def test_the_speed_may_change_on_the_way():
    points = motion()
    clock = MotionClock(points, 0.1)
    # 1 s at full speed, 2 s at half of it.
    start = run_clock(clock, points, [1.0] * 1031 + [0.5] * 2030)
    assert abs(clock.end - start - 3.0e9) < 10_000
    assert course_of([clock]) == {
        'speed': pytest.approx(2 / 3),
        'speed_min': 0.5,
        'speed_max': 1.0,
    }


@pytest.mark.parametrize(
    ('factors', 'says'),
    [
        ([1.0] * 2200, 'does not end its motion'),
        ([0.0] * 2200, 'does not begin its motion'),
        # Not for ever: a tenth of the speed on average is the least.
        ([1.0] * 1000 + [0.0] * 21_000, 'does not end its motion'),
    ],
)
def test_no_motion_lasts_for_ever(factors: list[float], says: str):
    points = motion()
    clock = MotionClock(points, 0.1)
    with pytest.raises(RobotStateError, match=says):
        run_clock(clock, points, factors)


@pytest.mark.parametrize('after', [10, 40, 1000])
@pytest.mark.parametrize('jump', [-7200 * 10**9, 7200 * 10**9])
def test_a_clock_that_is_set_changes_no_motion(jump: int, after: int):
    """Set at rest, before the start shows, in motion; the controller's time is steady."""
    points = motion()
    clock = MotionClock(points, 0.1)
    for k in range(2029):
        stamp = ORIGIN + k * 10**6 + (jump if k >= after else 0)
        clock.update([state(points, stamp, 1e-3 * max(0, k - 30), 1.0)])
    # A step itself takes no time.
    assert clock.start is not None and abs(clock.start - ORIGIN - 30 * 10**6) < 1.1e6
    assert clock.elapsed == pytest.approx(1.998, abs=1.1e-3)
    assert clock.end - clock.start == pytest.approx(2.0e9, abs=1.0)
    assert course_of([clock]) == {}
    assert not clock.exact and not clock.as_planned


def test_a_result_has_time_to_arrive_whatever_the_speed_of_the_controllers_time():
    points = motion()
    clock = MotionClock(points, 0.1, patience=0.2)
    begin = time.monotonic()
    run_clock(clock, points, [1.0] * 2050)  # which may take long, too
    late = state(points, ORIGIN + 2200 * 10**6, 2.0, 1.0)
    with pytest.raises(RobotStateError, match='does not end its motion'):
        while time.monotonic() < begin + 60.0:
            clock.update([late])
            time.sleep(0.01)
    assert time.monotonic() >= begin + 0.2


def test_factors_of_controllers_that_know_none_are_one():
    points = motion()
    clock = MotionClock(points, 0.1)
    own = [max(k - 30, 0) * 1e-3 for k in range(400)]
    clock.update([state(points, ORIGIN + k * 10**6, t, 0.0) for k, t in enumerate(own)])
    assert clock.start is not None and abs(clock.start - ORIGIN - 30 * 10**6) < 1_000
    assert course_of([clock]) == {}


@pytest.mark.parametrize('factor', [1.0, 0.5])
def test_goals_of_one_phase_have_one_speed_and_rests_between_them(factor: float):
    points, clocks = motion(), []
    for start in (0, 5 * 10**9):
        clock = MotionClock(points, 0.1)
        own = [max(k - 30, 0) * 1e-3 * share for k, share in enumerate([factor] * 4100)]
        for k, time_of in enumerate(own):
            clock.update([state(points, ORIGIN + start + k * 10**6, time_of, factor)])
            if time_of > points.duration:
                break
        clocks.append(clock)
        factor = 1.0
    slow = course_of(clocks[:1]).get('speed', 1.0)
    course = course_of(clocks)
    assert course.pop('rests') == pytest.approx(5.0 - 2.0 / slow, abs=1e-5)
    mean = 4.0 / (2.0 / slow + 2.0)
    expected = {'speed': mean, 'speed_min': slow, 'speed_max': 1.0}
    assert course == ({} if slow == 1.0 else pytest.approx(expected))
