"""Warnings that a closed-loop identification cannot be trusted."""

import numpy as np
import pytest

from robotid_ros.core.regression.observation_system import Rows
from robotid_ros.core.replay.didim import torque_warnings
from robotid_ros.core.replay.simulated_observation import with_all_rows


@pytest.mark.parametrize(('held', 'expected'), [(1.0, False), (0.5, True)])
def test_rows_of_held_joints_tell_of_a_wrong_law_too(held, expected):
    # A quarter of the rows is not fitted: the simulated joint is held there, by `held` times the
    # torque that was measured. Half of it leaves √(1/4)·0.5 = 25 % of all torque unexplained.
    W, Y = np.ones((1, 100, 1)), np.ones((1, 100))
    W[0, 75:] = held
    valid = np.arange(100)[None] < 75
    system = Rows(('Fc1',), ('N·m',), ('joint_1',), W, Y, valid, np.arange(100.0))
    value = np.ones(1)
    assert system.total_residual(value) == 0.0
    said = torque_warnings(with_all_rows(system).total_residual(value))
    shares = [each.values['residual'] for each in said]
    assert shares == pytest.approx([0.25] * expected, abs=5e-3)
