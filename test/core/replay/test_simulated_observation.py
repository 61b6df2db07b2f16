"""Which rows of a simulation are compared with the measured torque."""

import numpy as np
import pytest

from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.robot_builder import build_robot
from robotid_ros.core.model.settings import RobotSettings
from robotid_ros.core.replay.laws.control_loop import Desired
from robotid_ros.core.replay.laws.joint_trajectory_effort import JointTrajectoryEffort
from robotid_ros.core.replay.reference_and_torque import Torque
from robotid_ros.core.replay.replay_problem import ReplayProblem
from robotid_ros.core.replay.settings import ReplaySettings
from robotid_ros.core.replay.simulated_observation import FILTER_EDGE, low_passed

from .arms import planar_urdf

RATE, ROWS, GAP = 250.0, 12_000, (5_003, 5_050)


def replay_of(dq, measured, **settings):
    """Return a replay of a reference with these velocities, whose torque is nothing."""
    robot, zeros = build_robot(planar_urdf(), RobotSettings()), np.zeros((ROWS, 2))
    return ReplayProblem(
        robot, base_parameters(robot), JointTrajectoryEffort(RATE, *np.ones((3, 2))),
        Desired(zeros, dq, zeros, zeros), Torque(np.arange(ROWS) * 1.0, zeros, measured, RATE),
        ReplaySettings(**settings),
    )  # fmt: skip


@pytest.mark.parametrize('frequency, decimation', [(0.5, 40), (2.0, 10), (60.0, 1), (0.01, 50)])
def test_decimation_keeps_five_times_the_bandwidth_of_the_fastest_joint(frequency, decimation):
    """The band of decimated rows is 0.4 of their rate; slow motions have to leave rows too."""
    time = np.arange(ROWS)[:, None] / RATE
    dq = np.sin(2.0 * np.pi * frequency * np.array([1.0, 0.1]) * time)
    found = replay_of(dq, np.ones(ROWS, dtype=bool)).decimation
    assert 0.9 * decimation <= found <= decimation


@pytest.mark.parametrize('decimation', [4, 5])
def test_a_line_stays_one_and_ends_and_gaps_are_left_out(decimation):
    """Also where blocks of rows meet."""
    measured = np.ones(ROWS, dtype=bool)
    measured[slice(*GAP)] = False
    replay = replay_of(np.zeros((ROWS, 2)), measured, decimation=decimation)
    values, kept = low_passed(replay, lambda rows: 0.01 * rows[None])
    first, edge = round(replay.transient * RATE), FILTER_EDGE * decimation
    runs = (first, GAP[0]), (GAP[1], ROWS)
    wanted = [np.arange(start + edge, stop - edge, decimation) for start, stop in runs]
    np.testing.assert_array_equal(kept, np.concatenate(wanted))
    np.testing.assert_allclose(values[0], 0.01 * kept, atol=1e-3)
