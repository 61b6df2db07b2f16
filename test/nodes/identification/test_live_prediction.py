"""Live prediction: both sides of the comparison lag alike."""

import numpy as np
import pytest

from robotid_ros.core.model import build_robot, inverse_dynamics
from robotid_ros.core.model.settings import RobotSettings
from robotid_ros.nodes.identification.live_topics import LivePrediction

PENDULUM = """
<robot name="pendulum">
  <link name="base"/>
  <link name="bob"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="swing" type="revolute"><parent link="base"/><child link="bob"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="50" velocity="10"/></joint>
</robot>
"""


def test_residual_is_small_where_the_model_is_true():
    robot = build_robot(PENDULUM, RobotSettings())
    t = np.arange(0.0, 4.0, 2e-3)
    w = 2 * np.pi * 0.7
    q, dq, ddq = np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t)
    chi = robot.prior
    tau = inverse_dynamics(robot, chi, q[:, None], dq[:, None], ddq[:, None])
    live = LivePrediction(robot, chi)
    assert live.predict() is None
    stamps = (1e9 * t).astype(np.int64)
    residuals = []
    for k in range(0, len(t), 10):
        rows = slice(k, k + 10)
        live.update(stamps[rows], q[rows, None], tau[rows])
        stamp, _, residual = live.predict()
        residuals.append(residual[0])
        assert stamp == stamps[rows][-1]
    settled = np.array(residuals[len(residuals) // 4 :])
    assert np.abs(settled).max() < 0.02 * np.abs(tau).max()


def test_gaps_and_repetitions_do_not_upset_it():
    robot = build_robot(PENDULUM, RobotSettings())
    live = LivePrediction(robot, robot.prior)
    stamps = np.array([0, 2_000_000, 2_000_000, 1_000_000, 3_000_000_000], dtype=np.int64)
    position = np.array([[0.1], [0.1], [9.0], [9.0], [0.3]])
    live.update(stamps, position, np.zeros((5, 1)))
    stamp, predicted, _ = live.predict()
    assert stamp == 3_000_000_000
    still = inverse_dynamics(
        robot, robot.prior, np.array([[0.3]]), np.zeros((1, 1)), np.zeros((1, 1))
    )
    assert predicted == pytest.approx(still[0])


def test_one_wrong_stamp_does_not_end_it():
    robot = build_robot(PENDULUM, RobotSettings())
    live = LivePrediction(robot, robot.prior)
    stamps = np.arange(1, 500, dtype=np.int64) * 2_000_000
    stamps[100] = 2**31 * 10**9
    live.update(stamps, np.sin(stamps * 3e-9)[:, None], np.zeros((499, 1)))
    assert live.predict()[0] == stamps[-1]


def test_efforts_that_nobody_reports_leave_the_prediction():
    robot = build_robot(PENDULUM, RobotSettings())
    silent, speaking = (LivePrediction(robot, robot.prior) for _ in range(2))
    stamps = np.arange(1, 500, dtype=np.int64) * 2_000_000
    position = np.sin(stamps * 3e-9)[:, None]
    silent.update(stamps, position, np.full((499, 1), np.nan))
    speaking.update(stamps, position, np.zeros((499, 1)))
    assert silent.predict()[1] == pytest.approx(speaking.predict()[1], rel=1e-12)
    assert silent.predict()[2] is None
    # One that reports from now on has its residual at once.
    silent.update(stamps[-1:] + 2_000_000, position[-1:], np.ones((1, 1)))
    assert np.isfinite(silent.predict()[2]).all()


@pytest.mark.parametrize('silence', [np.nan, 0.0])
def test_a_driver_without_sensors_has_no_residual(silence):
    robot = build_robot(PENDULUM, RobotSettings())
    live = LivePrediction(robot, robot.prior)

    def residual(first, count, effort):
        stamps = np.arange(first, first + count, dtype=np.int64) * 2_000_000
        live.update(stamps, np.sin(stamps * 3e-9)[:, None], np.full((count, 1), effort))
        stamp, _, found = live.predict()
        return found if stamp == stamps[-1] else 'skipped'

    assert residual(1, 100, silence) is None
    assert np.isfinite(residual(101, 100, 1.0)).all()
    # One that reports may pass through 0, and misses a message with NaN.
    assert np.isfinite(residual(201, 1, 0.0)).all()
    assert residual(202, 1, np.nan) == 'skipped'
    # After a gap it is another robot, perhaps one without sensors.
    assert residual(1000, 100, silence) is None
