"""Velocities that are no derivatives of positions tell wrong times and units."""

import numpy as np
import pytest

from robotid_ros.core.findings import render
from robotid_ros.core.signals.invalid_samples import velocity_warnings

from ..conftest import motion, RATE

TIME = np.arange(round(20.0 * RATE)) / RATE
Q, DQ, _ = motion(TIME, seed=1)
JOINTS = ('a', 'b', 'c')


def told(time=TIME, position=Q, velocity=DQ):
    return velocity_warnings(JOINTS, time, position, velocity)


def test_derivatives_are_right():
    noise = 1e-4 * np.random.default_rng(2).normal(size=Q.shape)
    assert told() == told(position=Q + noise) == told(velocity=0.95 * DQ) == []
    assert velocity_warnings(JOINTS, TIME, Q, None) == []


@pytest.mark.parametrize('unit', [np.degrees(1.0), 30.0 / np.pi, 0.5 / np.pi])
def test_velocities_in_another_unit_are_no_fault(unit):
    assert told(velocity=unit * DQ) == []


@pytest.mark.parametrize('length', [0.5, 1.3, 2.0, 1e3])
def test_stamps_that_are_too_far_apart_are_told_with_the_right_rate(length):
    (found,) = told(time=length * TIME)
    assert found.joints == JOINTS
    assert found.values['ratios'] == pytest.approx([length] * 3, rel=1e-2)
    assert found.values['rate'] == pytest.approx(RATE, rel=1e-2)
    assert f'{found.values["rate"]:.4g} Hz' in render(found)


def test_one_position_in_degrees_is_told_of_its_joint():
    (found,) = told(position=Q * np.array([1.0, np.degrees(1.0), 1.0]))
    assert found.joints == ('b',) and 'rate' not in found.values
    assert found.values['ratios'] == pytest.approx([np.radians(1.0)], rel=1e-2)
