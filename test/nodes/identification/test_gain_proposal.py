"""Proposed gains: poles where they were asked for, changes bounded."""

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest

from robotid_ros.node_settings import GainProposalSettings
from robotid_ros.nodes.identification.gain_proposal import (
    gain_parameters,
    JointGains,
    propose_gains,
)

positive = st.floats(1e-3, 1e4)


@settings(max_examples=50)
@given(p=positive, d=positive, inertia=positive, omega=st.floats(0.1, 100.0))
def test_closed_loop_has_the_wanted_poles_when_no_bound_is_hit(p, d, inertia, omega):
    wanted = GainProposalSettings(bandwidth=omega, damping=0.7, change=1e12)
    new = propose_gains(JointGains(p, 0.0, d, inertia), wanted)
    poles = np.roots([inertia, new.d, new.p])
    assert np.abs(poles) == pytest.approx(omega, rel=1e-6)
    assert -poles.real / np.abs(poles) == pytest.approx(0.7, rel=1e-6)


@settings(max_examples=50)
@given(p=positive, i=positive, d=positive, inertia=positive, factor=st.floats(1.0, 10.0))
def test_no_gain_changes_by_more_than_the_factor(p, i, d, inertia, factor):
    new = propose_gains(
        JointGains(p, i, d, inertia), GainProposalSettings(bandwidth=30.0, change=factor)
    )
    for old, value in ((p, new.p), (i, new.i), (d, new.d)):
        assert old / factor * (1 - 1e-12) <= value <= old * factor * (1 + 1e-12)


def test_present_bandwidth_is_kept_and_only_damping_moves():
    old = JointGains(p=400.0, i=8.0, d=10.0, inertia=1.0)
    new = propose_gains(old, GainProposalSettings(damping=1.0, change=100.0))
    assert (new.p, new.i) == pytest.approx((400.0, 8.0))
    assert new.damping == pytest.approx(1.0)
    assert new.natural_frequency == pytest.approx(old.natural_frequency)


def test_a_gain_of_zero_stays_zero():
    new = propose_gains(
        JointGains(100.0, 0.0, 0.0, 1.0), GainProposalSettings(bandwidth=20.0, change=3.0)
    )
    assert new.i == 0.0
    assert new.d == 0.0


def test_parameters_are_named_as_the_controller_names_them():
    named = gain_parameters({'a': JointGains(1.0, 2.0, 3.0, 1.0)})
    assert named == {'gains.a.p': 1.0, 'gains.a.i': 2.0, 'gains.a.d': 3.0}
