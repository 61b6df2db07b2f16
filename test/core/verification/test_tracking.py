"""Errors of two runs, and when the second one counts as better."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.excitation.trajectory import Trajectory
from robotid_ros.core.model import inverse_dynamics, Robot
from robotid_ros.core.verification.tracking import (
    CREEP,
    evaluate_postures,
    static_postures,
    Tracking,
    tracks_better,
)

JOINTS = ('a', 'b')


def run(*scales: float) -> Tracking:
    time = np.linspace(0.0, 1.0, 1001)
    return Tracking(JOINTS, time, np.sin(2.0 * np.pi * time)[:, None] * scales)


def test_root_mean_square_and_peak_per_joint():
    found = run(0.2, -0.1)
    np.testing.assert_allclose(found.rms, np.array([0.2, 0.1]) / np.sqrt(2.0), rtol=1e-3)
    np.testing.assert_allclose(found.peak, [0.2, 0.1])


@pytest.mark.parametrize(
    ('scales', 'better'),
    [
        ((0.5, 0.5), True),
        ((0.9, 1.0), True),
        # Noise: neither better nor worse.
        ((0.995, 1.0), False),
        ((0.9, 1.005), True),
        # One joint gains much, the other one loses.
        ((0.1, 1.02), False),
        ((1.0, 1.0), False),
        ((2.0, 2.0), False),
    ],
)
def test_better_is_smaller_together_and_larger_nowhere(scales: tuple[float, float], better: bool):
    assert tracks_better([run(1.0, 1.0)], [run(*scales)]) is better


@pytest.mark.parametrize(('spread', 'better'), [(0.02, True), (0.3, False)])
def test_better_is_smaller_by_more_than_runs_differ(spread: float, better: bool):
    alike, apart = [run(1.0, 1.0)] * 2, [run(1.0, 1.0), run(1.0 + spread, 1.0)]
    smaller, smaller_apart = [run(0.85, 0.85)] * 2, [run(0.85, 0.85), run(0.85, 0.85 + spread)]
    assert tracks_better(alike, smaller)
    assert tracks_better(apart, smaller) is better
    assert tracks_better(alike, smaller_apart) is better


STICTION = np.array([0.9, 0.5, 0.2])
# What the model does not know [N·m], of a motor, say, and of a load.
UNKNOWN = np.array([0.3, -0.2, 0.0])


def rest_pairs(robot: Robot, chi: np.ndarray) -> list[np.ndarray]:
    """Rest in five postures; the sag of some mrad has another sign on each side."""
    still = np.zeros((1, robot.n))

    def rest(q: np.ndarray, sign: float) -> tuple[np.ndarray, np.ndarray]:
        q = q + sign * 0.004
        held = inverse_dynamics(robot, chi, q[None], still, still)[0]
        return q, held + UNKNOWN + sign * STICTION

    postures = np.random.default_rng(0).uniform(-1.5, 1.5, (5, robot.n))
    return [np.array([rest(q, 1.0), rest(q, -1.0)]) for q in postures]


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
