"""The mean sign of dry friction over a step, of one slip and of several that act on each other."""

import numpy as np
import pytest

from robotid_ros.core.replay import simulation as direct_dynamics
from robotid_ros.core.replay.simulation import mean_sign, mean_signs

H = 0.02
# Speeds, accelerations and decelerations by friction, none of them and equal ones among them.
CASES = [
    (speed, acceleration, friction)
    for speed in (-0.05, -0.001, 0.0, 0.001, 0.02)
    for acceleration in (-9.0, -3.0, -0.4, 0.0, 0.4, 2.0, 3.0)
    for friction in (0.0, 0.4, 3.0)
]


def test_the_mean_sign_is_that_of_many_small_steps():
    """In each the friction takes what speed there is, and no more than it can."""
    start, acceleration, friction = np.array(CASES).T
    count, speed, total = 2000, start.copy(), np.zeros(len(CASES))
    for _ in range(count):
        speed = speed + acceleration * H / count
        least = np.maximum(friction * H / count, 1e-30)
        sign = np.clip(speed / least, -1.0, 1.0)
        speed, total = speed - friction * H / count * sign, total + sign
    found = [mean_sign(*case, H) for case in CASES]
    np.testing.assert_allclose(found, total / count, atol=2e-3)


def slips(seed, count):
    """Return the speeds, accelerations, R M⁻¹ Rᵀ and F_c of slips that stop and reverse."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(count, count))
    delassus = root @ root.T + 0.2 * np.eye(count)
    speed, acceleration = rng.normal(size=(2, count)) * [[0.05], [3.0]]
    return speed, acceleration, delassus, rng.uniform(0.2, 1.0, count)


@pytest.mark.parametrize('count', [2, 5])
def test_signs_of_several_slips_are_each_that_of_one_under_the_friction_of_the_others(count):
    for seed in range(20):
        speed, acceleration, delassus, coulomb = slips(seed, count)
        s = mean_signs(speed, acceleration, delassus, coulomb, H)
        alone = np.diag(delassus) * coulomb
        others = acceleration - delassus @ (coulomb * s) + alone * s
        for own, *case in np.column_stack([s, speed, others, alone]).tolist():
            assert own == pytest.approx(mean_sign(*case, H), abs=1e-9)


def test_one_sweep_is_enough_where_no_slip_reverses(monkeypatch):
    calls = []

    def counted(*case):
        calls.append(case)
        return mean_sign(*case)

    monkeypatch.setattr(direct_dynamics, 'mean_sign', counted)
    fast = np.array([3.0, -2.0, 4.0, -5.0, 2.0])
    np.testing.assert_array_equal(mean_signs(fast, *slips(3, 5)[1:], H), np.sign(fast))
    assert len(calls) == 5
