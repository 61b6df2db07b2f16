"""Torques of an arm that is guided: what holds it, damping, springs, and what is refused."""

import dataclasses

import numpy as np
import pytest

from robotid_ros.core.arrays import Array
from robotid_ros.core.model import inverse_dynamics, mass_matrix, Robot
from robotid_ros.core.parameters.carried_body import carrying
from robotid_ros.core.verification.hand_guiding import HandGuiding
from robotid_ros.exceptions import ConfigurationError

Q, REST = np.array([0.1, 0.4, -0.3]), np.zeros(3)
HELD = np.array([1.0, -2.0, 3.0])
MARGIN, DAMPING_TIME = 0.1, 0.2


def law(robot: Robot, chi: Array, effort: float = 1e4, effort_share: float = 0.9) -> HandGuiding:
    limits = dataclasses.replace(
        robot.limits, lower=np.full(3, -1.0), upper=np.full(3, 1.0), effort=np.full(3, effort)
    )
    robot = dataclasses.replace(robot, limits=limits)
    options = {'damping_time': DAMPING_TIME, 'margin': MARGIN, 'effort_share': effort_share}
    return HandGuiding(robot, chi, Q, **options)


def weight(robot: Robot, chi: Array, q: Array) -> Array:
    """Torques that hold the arm, by the model that identification uses."""
    return inverse_dynamics(robot, chi, q[None], REST[None], REST[None])[0]


def test_what_holds_the_arm_gives_way_to_the_model(robot: Robot, truth: Array):
    guiding, expected = law(robot, truth), weight(robot, truth, Q)
    np.testing.assert_array_equal(guiding.torques(Q, REST, HELD, 0.0), HELD)
    np.testing.assert_allclose(guiding.torques(Q, REST, HELD, 0.5), 0.5 * (HELD + expected))
    np.testing.assert_allclose(guiding.torques(Q, REST, HELD, 1.0), expected, rtol=1e-12)
    shares = np.linspace(0.0, 1.0, 101)
    taken = [guiding.torques(Q, REST, HELD, share) for share in shares]
    # No step: 3 s² − 2 s³ rises by no more than 1.5 per unit of time.
    assert (np.abs(np.diff(taken, axis=0)) <= 0.0151 * np.abs(expected - HELD)).all()


def test_a_payload_is_carried(robot: Robot, truth: Array):
    body = np.array([2.0, 0.0, 0.0, 0.1, *np.zeros(6)])
    loaded = carrying(robot, truth, '', body)
    taken = law(robot, loaded).torques(Q, REST, HELD, 1.0)
    np.testing.assert_allclose(taken, weight(robot, loaded, Q), rtol=1e-12)
    assert not np.allclose(taken, weight(robot, truth, Q))


@pytest.mark.parametrize('share', [0.0, 1.0])
def test_a_joint_in_motion_is_braked_by_its_inertia_over_a_time(
    robot: Robot, truth: Array, share: float
):
    guiding, rng = law(robot, truth), np.random.default_rng(0)
    brake = np.diag(mass_matrix(robot, truth, Q)) / DAMPING_TIME
    for dq in rng.normal(size=(20, 3)):
        added = guiding.torques(Q, dq, HELD, share) - guiding.torques(Q, REST, HELD, share)
        np.testing.assert_allclose(added, -brake * dq, rtol=1e-9)


@pytest.mark.parametrize('side', [1.0, -1.0])
def test_springs_act_before_the_limits_alone(robot: Robot, truth: Array, side: float):
    guiding = law(robot, truth)
    inside, near = np.full(3, 0.89 * side), np.full(3, 0.95 * side)
    np.testing.assert_array_equal(
        guiding.torques(inside, REST, HELD, 1.0), guiding.holding(inside)
    )
    still = guiding.torques(near, REST, HELD, 1.0)
    assert ((still - guiding.holding(near)) * side < 0.0).all()
    further, back = (guiding.torques(near, v * side * np.ones(3), HELD, 1.0) for v in (0.1, -0.1))
    # What goes further in is braked more than what comes back.
    assert (np.abs(further - still) > np.abs(back - still)).all()


def test_springs_stop_a_joint_before_its_limit(robot: Robot, truth: Array):
    """Each joint alone, as fast as a guided arm may be, pushed by nothing but its own speed."""
    guiding, inertia = law(robot, truth), np.diag(mass_matrix(robot, truth, Q))
    q, dq, dt = np.full(3, 1.0 - MARGIN), np.full(3, 0.8), 1e-4
    largest = q
    for _ in range(20000):
        dq = dq + dt * (guiding.torques(q, dq, HELD, 1.0) - guiding.holding(q)) / inertia
        q = q + dt * dq
        largest = np.maximum(largest, q)
    assert (largest < 1.0).all()
    np.testing.assert_allclose(dq, 0.0, atol=1e-3)


def test_what_the_model_does_not_know_is_refused(robot: Robot, truth: Array):
    guiding, held = law(robot, truth), weight(robot, truth, Q)
    guiding.check(Q, held)
    guiding.check(Q, held + 0.04 * 1e4)
    with pytest.raises(ConfigurationError, match='set the payload'):
        guiding.check(Q, held + 0.1 * 1e4)
    loaded = law(robot, carrying(robot, truth, '', np.array([1e4, 0.1, *np.zeros(8)])))
    with pytest.raises(ConfigurationError, match='reduce the load'):
        loaded.check(Q, held)


def test_torques_stay_within_the_share_of_the_limits(robot: Robot, truth: Array):
    tau = law(robot, truth, effort=10.0).torques(Q, np.full(3, -500.0), HELD, 1.0)
    np.testing.assert_array_equal(tau, 9.0)
