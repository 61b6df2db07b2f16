"""Which rows of a simulation are compared with the measured torque."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.excitation.trajectory import Motion
from robotid_ros.core.identification_settings import ReplaySettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.robot_builder import build_robot
from robotid_ros.core.model.settings import RobotSettings
from robotid_ros.core.replay.control_laws import JointTrajectoryEffort
from robotid_ros.core.replay.replay_problem import FILTER_EDGE, ReplayProblem, Torque
from robotid_ros.core.replay.simulated_observation import low_passed, observe_simulation
from robotid_ros.core.replay.simulation import Simulation

from .arms import planar_urdf

RATE, ROWS, GAP = 250.0, 12_000, (5_003, 5_050)


def replay_of(dq, measured, **settings):
    """Return a replay of a reference with these velocities, whose torque is nothing."""
    robot, zeros = build_robot(planar_urdf(), RobotSettings()), np.zeros((ROWS, 2))
    law, motion = JointTrajectoryEffort(RATE, *np.ones((3, 2))), Motion(zeros, dq, zeros)
    torque = Torque(np.arange(ROWS) * 1.0, zeros, measured, RATE)
    base, given = base_parameters(robot), ReplaySettings(**settings)
    return ReplayProblem(robot, base, law, motion, torque, motion, given)


@pytest.mark.parametrize('frequency, decimation', [(0.5, 40), (2.0, 10), (60.0, 1), (0.01, 50)])
def test_decimation_keeps_five_times_the_bandwidth_of_the_fastest_joint(frequency, decimation):
    """The band of decimated rows is 0.4 of their rate; slow motions have to leave rows too."""
    time = np.arange(ROWS)[:, None] / RATE
    dq = np.sin(2.0 * np.pi * frequency * np.array([1.0, 0.1]) * time)
    found = replay_of(dq, np.ones(ROWS, dtype=bool)).decimation
    assert 0.9 * decimation <= found <= decimation


@pytest.mark.parametrize('decimation', [4, 5])
def test_a_line_stays_one_and_ends_and_gaps_are_left_out(decimation):
    measured = np.ones(ROWS, dtype=bool)
    measured[slice(*GAP)] = False
    replay = replay_of(np.zeros((ROWS, 2)), measured, decimation=decimation)
    # Loops of 1 rad/s: the first five seconds are the transient's.
    replay = dataclasses.replace(replay, a_priori_inertia=np.ones(2))
    values, kept = low_passed(replay, 0.01 * np.arange(ROWS)[:, None]), replay.fitted_rows
    first, edge = round(5.0 * RATE), FILTER_EDGE * decimation
    runs = (first, GAP[0]), (GAP[1], ROWS)
    wanted = [np.arange(start + edge, stop - edge, decimation) for start, stop in runs]
    np.testing.assert_array_equal(kept, np.concatenate(wanted))
    np.testing.assert_allclose(values[0], 0.01 * kept, atol=1e-3)


@pytest.mark.parametrize('decimation', [1, 4])
def test_rows_that_friction_holds_all_around_are_left_out(decimation):
    """Of a torque at half the rate of the loop; and white noise is as wide as its band."""
    rng, count = np.random.default_rng(2), 8000
    replay = replay_of(np.zeros((ROWS, 2)), np.ones(ROWS, dtype=bool), decimation=decimation)
    torque = Torque(
        np.arange(0.0, count, 2.0), rng.normal(size=(count // 2, 2)),
        np.ones(count // 2, dtype=bool), RATE / 2.0,
    )  # fmt: skip
    replay = dataclasses.replace(replay, torque=torque)
    signs = np.repeat(rng.choice([-1.0, -0.3, 0.0, 0.6, 1.0], (count // 20, 2)), 20, axis=0)
    signs = np.column_stack([np.roll(column, k) for k, column in enumerate(signs.T)])
    q, ddq, tau = np.zeros((3, count, 2))
    dq = np.where(np.abs(signs) < 1.0, 0.0, signs)
    system = observe_simulation(replay, Simulation(q, dq, ddq, tau, signs))
    reach = 2 * decimation
    np.testing.assert_allclose(np.diff(system.time), reach / RATE)
    rows = np.rint(system.time * RATE).astype(int)
    around = np.clip(rows[:, None] + np.arange(-reach, reach + 1), 0, count - 1)
    held = (np.abs(signs[around]) < 1.0).all(axis=1)
    assert 0.05 < held.mean() < 0.95
    np.testing.assert_array_equal(system.valid, ~held.T)
    assert system.Y.var() == pytest.approx(system.band / decimation, rel=0.1)
