"""How often a controller updated: its parameter may name another rate, its messages may lack."""

import numpy as np
import pytest

from robotid_ros.core.signals.clock_correction import observed_update_rate


def stamps(rate: float, count: int = 2000, jitter: float = 0.0, kept: float = 1.0) -> np.ndarray:
    """Return stamps of updates [s]: some late by up to a share of their period, some lost."""
    rng = np.random.default_rng(0)
    time = (np.arange(count) + rng.uniform(0.0, jitter, count)) / rate
    return time[rng.uniform(size=count) < kept]


@pytest.mark.parametrize('jitter, kept', [(0.0, 1.0), (0.2, 0.97)])
@pytest.mark.parametrize(
    'nominal, real, joints',
    [
        (1000.0, 500.0, 500.0),  # more than the controller_manager's
        (300.0, 1000.0 / 3.0, 1000.0),  # rounded up, and down
        (400.0, 1000.0 / 3.0, 1000.0),
        (250.0, 500.0, 500.0),  # changed while it ran
        (1000.0, 500.0, 100.0),  # joint states at a rate of their own
        (0.0, 500.0, 500.0),
    ],
)
def test_the_states_tell_the_rate(nominal, real, joints, jitter, kept):
    found = observed_update_rate(nominal, stamps(real, jitter=jitter, kept=kept), joints)
    assert found == pytest.approx(real, rel=0.01)


@pytest.mark.parametrize(
    'nominal, stamp, joints',
    [
        (500.0, stamps(499.0, jitter=0.3, kept=0.9), 500.0),
        (125.0, stamps(125.0), 500.0),
        (1000.0, stamps(1000.0, jitter=0.2, kept=0.4), 400.0),  # most are lost
        (500.0, stamps(50.0), 500.0),  # a publishing rate of its own, a relay
        (0.0, stamps(50.0), 500.0),
        (1000.0, stamps(500.0, count=50), 500.0),  # too few
        (1000.0, np.floor(stamps(1000.0) * 250.0) / 250.0, 250.0),  # a coarse clock
    ],
)
def test_the_parameter_stands_where_they_cannot(nominal, stamp, joints):
    assert observed_update_rate(nominal, stamp, joints) == nominal
