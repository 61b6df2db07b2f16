"""When a reported effort acted: commands are held, and hardware reports them updates later."""

import numpy as np
import pytest

from robotid_ros.core.signals.recording import Controller, Recording, Reference
from robotid_ros.core.timing.delay_compensation import hold_delay

PERIOD = 1e-3


def recording(lag, noise=0.0, dropped=0.0):
    """Return 2 s of states at 500 Hz whose efforts are the commands of `lag` updates before."""
    rng = np.random.default_rng(0)
    stamps = PERIOD * np.arange(2000)
    command = 10.0 * np.sin(2 * np.pi * 1.5 * stamps) + 0.2 * rng.normal(size=2000)
    rows = np.arange(10, 2000, 2)
    effort = command[rows - lag] + noise * rng.normal(size=rows.size)
    kept = rng.uniform(size=2000) >= dropped
    return Recording(
        ('a',),
        stamps[rows] + rng.uniform(20e-6, 40e-6, rows.size),
        np.zeros((rows.size, 1)),
        effort[:, None],
        reference=Reference(
            stamps[kept], *np.zeros((3, kept.sum(), 1)), command=command[kept, None]
        ),
        controller=Controller('arm', 'jtc', 1.0 / PERIOD, ('a',), ('effort',)),
    )


@pytest.mark.parametrize('lag', [0, 1, 2])
@pytest.mark.parametrize('noise, dropped', [(0.0, 0.0), (0.3, 0.02)])
def test_a_held_command_acts_half_a_period_after_it_was_given(lag, noise, dropped):
    assert hold_delay(recording(lag, noise, dropped)) == pytest.approx((lag - 0.5) * PERIOD)


def test_measured_torque_that_is_no_command_is_left_alone():
    assert hold_delay(recording(1, noise=5.0)) is None
