"""What the simulated electronics add to the truth."""

import numpy as np
import pytest

from robotid_ros.exceptions import UnknownNameError
from robotid_ros.plant.physics import Sensors
from robotid_ros.simulation_settings import FaultSettings, NoiseSettings, SimulationSettings

JOINTS = ('a', 'b')
QUIET = NoiseSettings(position=(0.0,), velocity=(0.0,))


def read(sensors, time=0.0):
    return sensors.read(time, [0.5, -0.5], [1.0, 2.0], [3.0, 4.0])


def test_noise_has_its_deviation_and_its_seed():
    noise = NoiseSettings(position=(0.1, 0.2), velocity=(0.3,), effort=(0.0, 2.0))
    settings = SimulationSettings(noise=noise, seed=5)
    sensors = Sensors(settings, JOINTS)
    rows = np.array([read(sensors) for _ in range(6000)])
    np.testing.assert_allclose(rows.mean(0), read(Sensors(_quiet(), JOINTS)), atol=0.1)
    np.testing.assert_allclose(
        rows.std(0), [[0.1, 0.2], [0.3, 0.3], [0.0, 2.0]], rtol=0.05, atol=1e-12
    )
    assert read(Sensors(settings, JOINTS)) == tuple(map(list, rows[0]))


def test_encoder_counts():
    noise = NoiseSettings((0.0,), (0.0,), resolution=(0.2, 0.0))
    q, _, _ = read(Sensors(SimulationSettings(noise=noise), JOINTS))
    assert q == pytest.approx([0.4, -0.5])


@pytest.mark.parametrize(
    ('kind', 'expected'),
    [
        ('nan_joint_state', ([0.5, np.nan], [1.0, 2.0], [3.0, 4.0])),
        ('nan_velocity', ([0.5, -0.5], [1.0, np.nan], [3.0, 4.0])),
        ('nan_effort', ([0.5, -0.5], [1.0, 2.0], [3.0, np.nan])),
        ('dead_effort', ([0.5, -0.5], [1.0, 2.0], [3.0, 0.0])),
        ('frozen_joint', ([0.5, -0.5], [1.0, 0.0], [3.0, 4.0])),
    ],
)
def test_faults_come_and_go(kind, expected):
    fault = FaultSettings(kind, 2.0, 1.0, 'b')
    sensors = Sensors(_quiet(fault=fault), JOINTS)
    healthy = read(sensors, 1.999)
    np.testing.assert_array_equal(read(sensors, 2.0), expected)
    assert read(sensors, 3.0) == healthy


def test_frozen_joint_stays_where_it_was():
    sensors = Sensors(_quiet(fault=FaultSettings('frozen_joint', 1.0, 0.0, 'a')), JOINTS)
    read(sensors, 1.0)
    q, dq, _ = sensors.read(2.0, [9.0, 9.0], [9.0, 9.0], [0.0, 0.0])
    assert (q, dq) == ([0.5, 9.0], [0.0, 9.0])


def test_frozen_states_stay_as_they_were():
    sensors = Sensors(_quiet(fault=FaultSettings('frozen_states', 1.0)), JOINTS)
    frozen = read(sensors, 1.0)
    q, dq, tau = sensors.read(2.0, [9.0, 9.0], [9.0, 9.0], [9.0, 9.0])
    assert (q, dq, tau) == (frozen[0], [0.0, 0.0], frozen[2])


def test_unknown_joint():
    with pytest.raises(UnknownNameError, match='elbow'):
        Sensors(_quiet(fault=FaultSettings('dead_effort', 1.0, 0.0, 'elbow')), JOINTS)


def _quiet(**changes):
    return SimulationSettings(noise=QUIET, **changes)
