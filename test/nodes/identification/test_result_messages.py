"""Messages read back exactly what went into them."""

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
from hypothesis import given, strategies as st
import numpy as np
import pytest

from robotid_ros.core.regression.validation import Validation
from robotid_ros.core.verification.gains import GainProposal, JointGains
from robotid_ros.files.results import Entry, Residual, Results
from robotid_ros.nodes.common.messages import (
    ENDED,
    format_seconds,
    format_value,
    MOVING,
    State,
    status,
    to_nanoseconds,
    values_of,
)
from robotid_ros.nodes.identification.result_messages import (
    effort_messages,
    gains_message,
    parameters_message,
    summary_message,
)

NOW = Time(sec=5, nanosec=6)
RESULTS = Results(
    robot='r',
    method='wls',
    created='now',
    joints=('a', 'b'),
    base=(Entry('ZZ1R', 1 / 3, 0.1, 30.0, 'kg·m²', 'a', 'essential'),),
    standard=(
        Entry('ZZ1', 0.25, float('inf'), float('inf'), 'kg·m²', 'a', 'in combination'),
        Entry('Fv2', 1e-300, 0.0, 0.0, 'N·m·s/rad', 'b', 'identifiable'),
    ),
    identification=(Residual('a', 0.01, 1.0, 9.0), Residual('b', 0.02, 2.0, 9.0)),
)


@given(st.floats(allow_nan=False))
def test_numbers_keep_their_precision(value: float):
    assert float(format_value(value)) == value


@given(st.integers(0, 2**62))
def test_stamps_keep_their_nanoseconds(stamp: int):
    whole, _, fraction = format_seconds(stamp).partition('.')
    assert int(whole) * 10**9 + int(fraction) == stamp


def test_values_are_found_by_key():
    message = status('n', 'm', {'state': 'idle', 'x': 0.1}, hardware='tx40')
    assert values_of(message) == {'state': 'idle', 'x': '0.1'}
    assert (message.hardware_id, message.level) == ('tx40', DiagnosticStatus.OK)


def test_states_in_which_the_robot_moves_and_that_end_a_session_exist():
    assert MOVING | ENDED <= {s.value for s in State} and not MOVING & ENDED


def test_parameters_are_grouped_by_joint_with_full_precision():
    message = parameters_message(RESULTS, NOW)
    assert message.header.stamp == NOW
    groups = {s.name: values_of(s) for s in message.status}
    assert list(groups) == ['a', 'b']
    value, sigma, percent, unit, kind = groups['a']['ZZ1R'].split('; ')
    assert (float(value), float(sigma), float(percent)) == (1 / 3, 0.1, 30.0)
    assert (unit, kind) == ('kg·m²', 'essential')
    assert groups['a']['standard.ZZ1'].startswith('0.25; inf; inf')
    assert float(groups['b']['standard.Fv2'].split('; ')[0]) == 1e-300


def test_summary_falls_back_on_the_fit_and_says_so():
    (first, second) = summary_message(RESULTS, NOW).status
    assert 'on the identified motion' in first.message
    assert float(values_of(second)['relative_residual']) == 0.02


def test_gains_tell_old_and_new_behaviour():
    old, new = {'a': JointGains(100.0, 0.0, 10.0, 1.0)}, {'a': JointGains(400.0, 0.0, 40.0, 1.0)}
    proposal = GainProposal(old, new, (4.0, 1.0), (2.0, 0.8), (0.25,), True)
    values = values_of(gains_message(proposal, NOW).status[0])
    assert float(values['old_natural_frequency']) == pytest.approx(10.0)
    assert float(values['new_natural_frequency']) == pytest.approx(20.0)
    assert float(values['new_damping']) == pytest.approx(1.0)
    assert (float(values['new_gain_margin']), float(values['error_ratio'])) == (2.0, 0.25)


def test_efforts_carry_the_recorded_stamps():
    torques = Validation(
        ('a',), np.array([0.0, 0.002]), np.array([[1.0], [2.0]]), np.zeros((2, 1))
    )
    messages = list(effort_messages(torques, torques.measured, 1_700_000_000_123_456_789))
    assert [to_nanoseconds(m.header.stamp) for m in messages] == [
        1_700_000_000_123_456_789,
        1_700_000_000_125_456_789,
    ]
    assert [list(m.effort) for m in messages] == [[1.0], [2.0]]
