"""The filter of live joint states is exact, and no sample breaks it."""

import numpy as np
import pytest
from scipy.signal import butter, lsim

from robotid_ros.core.monitoring.motion_rows import FilteredStates, StateVariableFilter


def test_filter_is_the_butterworth_of_a_second_implementation():
    t = np.arange(0.0, 1.0, 1e-3)
    u = np.sin(2 * np.pi * 3.0 * t)
    filtered = StateVariableFilter(8.0, u[:1])
    states = [filtered.state[:, 0].copy()]
    for value in u[1:]:
        filtered.step(np.array([value]), 1e-3)
        states.append(filtered.state[:, 0].copy())
    numerator, denominator = butter(3, 2 * np.pi * 8.0, analog=True)
    for order, state in enumerate(np.transpose(states)):
        system = (np.r_[numerator, np.zeros(order)], denominator)
        _, expected, _ = lsim(system, u, t, interp=True)
        assert np.abs(state - expected).max() < 1e-8 * max(1.0, np.abs(expected).max())


def test_steps_of_any_length_give_the_same_state():
    one, many = StateVariableFilter(5.0, np.zeros(2)), StateVariableFilter(5.0, np.zeros(2))
    end = np.array([1.0, -2.0])
    one.step(end, 0.04)
    for k in range(1, 41):
        many.step(end * k / 40, 0.001)
    assert one.state == pytest.approx(many.state, rel=1e-9)


def test_a_sample_that_overflows_starts_it_anew():
    states, one = FilteredStates(np.ones(1), 10.0, 0.5), np.ones(1)
    assert states.take(1_000_000, one, one) == 0.0
    assert states.take(2_000_000, 1e308 * one, one) is None
    assert states.take(3_000_000, one, one) == 0.0
    assert states.motion[:, 0].tolist() == [1.0, 0.0, 0.0]
