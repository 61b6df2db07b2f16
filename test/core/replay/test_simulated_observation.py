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


@pytest.mark.parametrize('decimation', [4, 5])
def test_a_line_stays_one_and_ends_and_gaps_are_left_out(decimation):
    """Also where blocks of rows meet."""
    robot = build_robot(planar_urdf(), RobotSettings())
    measured = np.ones(ROWS, dtype=bool)
    measured[slice(*GAP)] = False
    law = JointTrajectoryEffort(RATE, *np.ones((3, 2)))
    replay = ReplayProblem(
        robot, base_parameters(robot), law, Desired(*np.zeros((4, ROWS, 2))),
        Torque(np.arange(ROWS) * 1.0, np.zeros((ROWS, 2)), measured, RATE),
        ReplaySettings(decimation=decimation),
    )  # fmt: skip
    values, kept = low_passed(replay, lambda rows: 0.01 * rows[None])
    first, edge = round(replay.transient * RATE), FILTER_EDGE * decimation
    runs = (first, GAP[0]), (GAP[1], ROWS)
    wanted = [np.arange(start + edge, stop - edge, decimation) for start, stop in runs]
    np.testing.assert_array_equal(kept, np.concatenate(wanted))
    np.testing.assert_allclose(values[0], 0.01 * kept, atol=1e-3)
