"""Gravity and stiction come apart where efforts at rest are known from both sides."""

import dataclasses

import numpy as np

from robotid_ros.core.excitation.trajectory import Trajectory
from robotid_ros.core.model import inverse_dynamics, Robot
from robotid_ros.core.verification.tracking import (
    CREEP,
    evaluate_postures,
    RestPair,
    static_postures,
)

STICTION = np.array([0.9, 0.5, 0.2])
# What the model does not know [N·m], of a motor, say, and of a load.
UNKNOWN = np.array([0.3, -0.2, 0.0])


def rest_pairs(robot: Robot, chi: np.ndarray) -> list[RestPair]:
    """Rest in five postures; the sag of some mrad has another sign on each side."""
    still = np.zeros((1, robot.n))

    def rest(q: np.ndarray, sign: float) -> tuple[np.ndarray, np.ndarray]:
        q = q + sign * 0.004
        held = inverse_dynamics(robot, chi, q[None], still, still)[0]
        return q, held + UNKNOWN + sign * STICTION

    postures = np.random.default_rng(0).uniform(-1.5, 1.5, (5, robot.n))
    return [RestPair(*rest(q, 1.0), *rest(q, -1.0)) for q in postures]


def test_what_gravity_lacks_and_what_sticks_are_told_apart(robot: Robot, truth: np.ndarray):
    rows = evaluate_postures(robot, truth, rest_pairs(robot, truth))
    for j, row in enumerate(rows):
        np.testing.assert_allclose(row.stiction, STICTION[j], rtol=1e-9)
        np.testing.assert_allclose(row.gravity_error, abs(UNKNOWN[j]), atol=1e-9)
        np.testing.assert_allclose(row.gravity_worst, UNKNOWN[j], atol=1e-9)
        coulomb, viscous = (truth[robot.column(f'{name}{j + 1}')] for name in ('Fc', 'Fv'))
        # But for Coriolis torques at that speed.
        expected = coulomb + CREEP * viscous
        np.testing.assert_allclose(row.predicted_stiction, expected, atol=1e-5)
        assert (row.joint, row.unit) == (robot.joints[j], 'N·m')


def test_postures_leave_room_on_both_sides(robot: Robot):
    coefficients = np.random.default_rng(1).normal(size=(10, 3))
    plan = Trajectory(robot.joints, 'mfs', 4.0, 5, np.zeros(3), coefficients)
    limits = dataclasses.replace(robot.limits, lower=np.full(3, -0.2), upper=np.full(3, 0.2))
    postures = static_postures(plan, dataclasses.replace(robot, limits=limits), 7, 0.05)
    assert np.shape(postures) == (7, 3)
    assert np.abs(postures).max() <= 0.15 + 1e-12
