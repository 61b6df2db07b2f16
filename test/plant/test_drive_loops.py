"""Drives with loops of their own against the closed forms of first and second order systems."""

import numpy as np
import pytest

from robotid_ros.plant.physics import build_drives_of, LoopGains, Physics
from robotid_ros.simulation_settings import SimulationSettings

from .test_mujoco_physics import SLIDER

MASS, MS = 2.0, 1e-3


def cart(interface, gravity=0.0, **loops):
    """Return physics and step of a cart on a rail, by default without integral and slope."""
    values = {'rate': 20000.0, 'integral_time': 0.0, 'velocity_feedforward': 0.0, **loops}
    settings = SimulationSettings(command_interface=interface, gravity=(gravity, 0.0, 0.0))
    return build_drives_of(settings, lambda s: Physics(SLIDER, s), LoopGains(**values))


def test_a_velocity_command_is_reached_as_by_a_first_order_lag():
    physics, step = cart('velocity', velocity_bandwidth=50.0)
    time = MS * np.arange(1, 101)
    rows = [(step([0.3])[0], physics.velocity[0]) for _ in time]
    effort, velocity = np.array(rows).T
    decay = np.exp(-50.0 * time)
    np.testing.assert_allclose(velocity, 0.3 * (1.0 - decay), atol=0.3 * 0.002)
    # What the drive reports is what has moved the mass, on average over the period.
    np.testing.assert_allclose(effort, MASS * np.diff(velocity, prepend=0.0) / MS, rtol=1e-9)


@pytest.mark.parametrize(('gain', 'bandwidth'), [(20.0, 200.0), (80.0, 100.0)])
def test_a_position_command_is_reached_as_by_a_second_order_lag(gain, bandwidth):
    physics, step = cart('position', position_gain=gain, velocity_bandwidth=bandwidth)
    time = MS * np.arange(1, 201)
    found = np.array([(step([1e-3]), physics.position[0])[1] for _ in time])
    # s² + ω s + ω kp = 0, complex where the loops are close to each other.
    a, b = np.roots([1.0, bandwidth, bandwidth * gain]).astype(complex)

    def response(t):
        return np.real(1.0 - (b * np.exp(a * t) - a * np.exp(b * t)) / (b - a)) * (t > 0.0)

    # The drive interpolates the step over the controller's period.
    ramp = np.mean([response(time - late) for late in MS * (np.arange(50) + 0.5) / 50], axis=0)
    np.testing.assert_allclose(found, 1e-3 * ramp, atol=1e-3 * 0.006)


def test_a_ramp_is_followed_late_by_the_gain_or_with_its_slope_not_at_all():
    for share in (0.0, 0.5, 1.0):
        physics, step = cart('position', position_gain=40.0, velocity_feedforward=share)
        for k in range(1, 501):
            step([0.2 * k * MS])
        lag = 0.2 * 500 * MS - physics.position[0]
        # To a period of the loops and rounding.
        assert lag == pytest.approx((1.0 - share) * 0.2 / 40.0, abs=0.201 * physics.period)


def test_weight_pulls_a_drive_without_integral_from_its_command():
    sag = {}
    for name, integral_time in (('without', 0.0), ('with', 0.05)):
        physics, step = cart(
            'position', -9.81, position_gain=40.0, velocity_bandwidth=200.0,
            integral_time=integral_time,
        )  # fmt: skip
        for _ in range(2000):
            (effort,) = step([0.0])
        sag[name] = physics.position[0]
        assert effort == pytest.approx(MASS * 9.81, rel=1e-6)
    assert sag['without'] == pytest.approx(-9.81 / (200.0 * 40.0), rel=1e-6)
    assert abs(sag['with']) < 1e-9


def test_efforts_stay_within_limits_and_the_integral_does_not_wind_up():
    physics, step = cart('velocity', velocity_bandwidth=200.0, integral_time=0.01)
    efforts = [step([9.0])[0] for _ in range(300)]
    assert efforts[0] == 50.0 and max(efforts) == 50.0
    # 50 N take 2 kg to 9 m/s in 0.36 s: an integral of that time would overshoot far beyond.
    fastest = max((step([9.0]), physics.velocity[0])[1] for _ in range(500))
    assert fastest < 9.0 * 1.05
    assert physics.velocity[0] == pytest.approx(9.0, rel=1e-4)


def test_commands_that_are_no_numbers_hold():
    physics, step = cart('position')
    step([np.nan])
    assert physics.position[0] == 0.0
    for _ in range(300):
        step([0.01])
    step([np.nan])
    for _ in range(300):
        step([np.nan])
    assert physics.position[0] == pytest.approx(0.01, abs=1e-5)
    physics, step = cart('velocity')
    assert step([np.nan]) == [0.0]
