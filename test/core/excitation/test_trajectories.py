"""Families are linear, periodic, at rest where they say so, and know their derivatives."""

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

from robotid_ros.core.excitation.trajectory import FAMILIES, Trajectory, waypoints
from robotid_ros.exceptions import TrajectoryError, UnknownNameError

FAMILY = st.sampled_from(sorted(FAMILIES))
AT_REST = [name for name, family in FAMILIES.items() if family.at_rest]


def make(family, order=4, period=7.0, seed=0, joints=2):
    rng = np.random.default_rng(seed)
    size = FAMILIES[family].size * order
    names = tuple(f'joint_{j}' for j in range(joints))
    return Trajectory(
        names, family, period, order, rng.normal(size=joints), rng.normal(size=(size, joints))
    )


@given(FAMILY, st.integers(1, 8), st.floats(0.5, 50.0), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_derivatives_are_those_of_the_position(family, order, period, seed):
    t = np.random.default_rng(seed).uniform(0.02, 0.98, 20) * period
    trajectory, h = make(family, order, period, seed), 1e-5 * period
    for k in range(3):
        difference = (trajectory.matrix(t + h, k) - trajectory.matrix(t - h, k)) / (2.0 * h)
        exact = trajectory.matrix(t, k + 1)
        # A through-point's third derivative jumps: samples within h of it see both sides.
        inner = np.abs(np.mod(t * (order + 1) / period + 0.5, 1.0) - 0.5) > 1e-3
        scale = np.abs(exact).max() + 1e-12
        assert np.abs(difference - exact)[inner].max(initial=0.0) < 1e-5 * scale


@given(FAMILY, st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_motion_is_linear_in_start_and_coefficients(family, seed):
    one, two = make(family, seed=seed), make(family, seed=seed + 1)
    both = Trajectory(
        one.joints,
        family,
        one.period,
        one.order,
        one.start + 2.0 * two.start,
        one.coefficients + 2.0 * two.coefficients,
    )
    t = np.linspace(-3.0, 20.0, 50)
    for a, b, c in zip(one.sample(t), two.sample(t), both.sample(t), strict=True):
        np.testing.assert_allclose(a + 2.0 * b, c, atol=1e-9)


@given(FAMILY, st.integers(1, 8), st.floats(0.1, 1.0), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_a_slower_motion_follows_the_same_path(family, order, share, seed):
    whole = make(family, order, seed=seed)
    slower, t = whole.at_speed(share), np.linspace(0.0, whole.period, 60)
    assert slower.period == whole.period / share
    for k, (a, b) in enumerate(zip(slower.sample(t / share), whole.sample(t), strict=True)):
        np.testing.assert_allclose(a, share**k * b, atol=1e-9 * (1.0 + np.abs(b).max()))


@pytest.mark.parametrize('family', AT_REST)
def test_starts_and_ends_at_rest_at_its_start(family):
    trajectory = make(family, order=5)
    for t in (0.0, trajectory.period * (1.0 - 1e-12)):
        q, dq, ddq = trajectory.sample(t)
        np.testing.assert_allclose(q[0], trajectory.start, atol=1e-9)
        np.testing.assert_allclose(dq, 0.0, atol=1e-9)
        np.testing.assert_allclose(ddq, 0.0, atol=1e-6)


@pytest.mark.parametrize('family', sorted(FAMILIES))
def test_repeats_every_period(family):
    trajectory, t = make(family), np.linspace(0.1, 6.9, 30)
    for a, b in zip(trajectory.sample(t), trajectory.sample(t + 3 * 7.0), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8)


def test_modified_series_is_the_series_plus_a_quintic():
    """MFS: the difference to the plain series of the same coefficients is of fifth order."""
    modified, plain = make('mfs'), make('ffs')
    t = np.linspace(0.0, 6.999, 60)
    difference = modified.sample(t).q - plain.sample(t).q
    fit = np.polynomial.polynomial.polyfit(t, difference, 5)
    np.testing.assert_allclose(np.polynomial.polynomial.polyval(t, fit).T, difference, atol=1e-9)


@pytest.mark.parametrize('family', sorted(FAMILIES))
def test_description_is_exact(family):
    trajectory = make(family)
    again = Trajectory.from_dict(trajectory.to_dict())
    assert again == trajectory
    assert again.hash == trajectory.hash
    changed = {**trajectory.to_dict(), 'period': np.nextafter(7.0, 8.0)}
    assert Trajectory.from_dict(changed).hash != trajectory.hash


def test_arrays_are_read_only():
    with pytest.raises(ValueError, match='read-only'):
        make('mfs').coefficients[0] = 1.0


@pytest.mark.parametrize(
    ('key', 'value', 'error'),
    [
        ('family', 'waves', UnknownNameError),
        ('order', 3, TrajectoryError),
        ('period', -1.0, TrajectoryError),
        ('start', [0.0, float('nan')], TrajectoryError),
        ('coefficients', 'none', TrajectoryError),
        ('joints', None, TrajectoryError),
    ],
)
def test_refuses_what_does_not_fit(key, value, error):
    with pytest.raises(error):
        Trajectory.from_dict({**make('mfs').to_dict(), key: value})


@pytest.mark.parametrize('family', AT_REST)
def test_controller_interpolation_reproduces_the_trajectory(family):
    """Quintic segments between the points stay within microradians of the trajectory."""
    trajectory = make(family)
    points = waypoints(trajectory, rate=50.0, periods=3)
    t = np.linspace(0.0, points.duration - 1e-9, 5001)
    for k, (a, b) in enumerate(zip(points.sample(t), trajectory.sample(t), strict=True)):
        np.testing.assert_allclose(a, b, atol=(1e-6, 1e-5, 1e-3)[k])
    assert points.time[0] == 0.0
    assert points.duration == pytest.approx(21.0, abs=1e-9)
    assert not points.dq[-1].any()
    assert not points.ddq[-1].any()
    count = len(points.q) // 3
    np.testing.assert_array_equal(points.q[::count], np.tile(trajectory.start, (4, 1)))


def test_plain_series_cannot_be_sent():
    with pytest.raises(TrajectoryError, match='does not start at rest'):
        waypoints(make('ffs'))


@pytest.mark.parametrize('family', AT_REST)
def test_the_first_periods_of_a_motion_are_those_of_a_shorter_one(family):
    trajectory = make(family, order=5)
    whole = waypoints(trajectory, 50.0, 3)
    for periods in (1, 2, 3):
        part, alone = whole.leading(periods, of=3), waypoints(trajectory, 50.0, periods)
        for name in ('time', 'q', 'dq', 'ddq'):
            np.testing.assert_array_equal(getattr(part, name), getattr(alone, name))
        assert not part.dq[-1].any()
