"""Errors of two runs, and when the second one counts as better."""

import numpy as np
import pytest

from robotid_ros.core.verification.tracking import Tracking, tracks_better

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
