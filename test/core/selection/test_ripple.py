"""Ripple of the torque is found by its order where there is some, and nowhere else."""

from functools import lru_cache

import numpy as np
from plant_recording import JOINTS, plant, URDF
import pytest

from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.friction import RIPPLES
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.selection.ripple_orders import JointRows, ripple_orders
from robotid_ros.exceptions import ConfigurationError

OPEN = IdentificationSettings(essential=False)


@lru_cache
def found(ripple=(0.0,), order=60.0):
    """Identify what MuJoCo's arm did, with nothing configured."""
    robot = build_robot(URDF, RobotSettings(joints=JOINTS))
    return identify(plant(ripple=ripple, ripple_order=order).recording, robot, OPEN)


def orders(robot):
    """Return the orders of each joint."""
    return [[value for term in own if term.name in RIPPLES for value in term.constants.values()]
            for own in robot.friction]  # fmt: skip


@pytest.mark.parametrize('order', [21.3, 60.0])
def test_ripple_of_every_joint_is_found_and_right_as_is_all_else(order):
    size = (1.0, 1.5, 0.6)
    result, made = found(size, order), plant(ripple=size, ripple_order=order)
    for own in orders(result.robot):
        assert own == [pytest.approx(order, abs=0.05)]
    truth = made.base(result.robot)
    # The plant adds size · sin(order q) to the drive's torque: that much less is asked of it.
    truth |= {f'Rs{j}': -value for j, value in enumerate(size, start=1)}
    error = result.estimate.value - np.array([truth[name] for name in result.base.names])
    assert np.all(np.abs(error) <= 3.0 * result.estimate.sigma)
    assert result.selection.residual < 0.3 * result.selection.plain_residual
    assert 'ripple at joint_1, joint_2, joint_3;' in result.selection.describe(JOINTS)


def test_one_joint_with_ripple_is_the_one_that_gets_it():
    result = found((0.0, 1.5, 0.0), 60.0)
    assert orders(result.robot) == [[], [pytest.approx(60.0, rel=1e-3)], []]
    kept = result.selection.configuration(result.robot)['robot']
    chosen = RobotSettings(joints=JOINTS, friction={j: tuple(t) for j, t in
                           kept['friction'].items()},
                           friction_constants=kept['friction_constants'])  # fmt: skip
    assert build_robot(URDF, chosen).friction == result.robot.friction


def test_without_ripple_none_is_found():
    assert orders(found().robot) == [[], [], []]


def sweeps(seconds=20.0, rate=200.0):
    """Return time, position and speed of a joint that sweeps to and fro, never twice alike."""
    time = np.arange(round(seconds * rate)) / rate
    w, size = 2.0 * np.pi * np.array([0.11, 0.27, 0.43]), np.array([1.2, 0.4, 0.2])
    return time, np.sin(np.outer(time, w)) @ size, np.cos(np.outer(time, w)) @ (size * w)


def looked_for(q, dq, torque):
    moving = np.abs(dq) > 0.02
    return ripple_orders(
        JointRows(q, dq, np.ones((q.size, 1)), torque, torque, moving, 200.0), 8.0
    )


def test_up_to_three_orders_are_found_the_largest_first():
    _, q, dq = sweeps()
    noise = np.random.default_rng(1).normal(size=q.size)
    torque = 0.4 * np.sin(33.0 * q) + 0.8 * np.cos(20.5 * q + 1.0) + 0.2 * np.cos(47.0 * q) + noise
    np.testing.assert_allclose(looked_for(q, dq, torque), [20.5, 33.0, 47.0], atol=0.3)


@pytest.mark.parametrize('seed', range(20))
def test_neither_noise_nor_what_turns_with_the_direction_is_ripple(seed):
    """Coloured noise, a hum in time, friction with an error, and ripple of opposite signs."""
    time, q, dq = sweeps()
    rng = np.random.default_rng(seed)
    drawn = rng.normal(size=q.size + 400)
    walk = np.cumsum(drawn - np.concatenate([np.zeros(100), drawn[:-100]]))[400:] / 10.0
    shapes = (
        drawn[400:],
        walk,
        np.sin(2.0 * np.pi * 3.0 * time + seed),
        np.exp(-((dq / 0.1) ** 2)) * np.sign(dq),
        np.sign(dq) * np.cos(25.0 * q),
    )
    for torque in shapes:
        assert looked_for(q, dq, torque + 0.1 * drawn[400:]) == []


def test_a_joint_that_turns_in_one_direction_only_or_rests_shows_none():
    time, _, _ = sweeps()
    turn = time.copy()
    torque = np.cos(30.0 * turn)
    assert looked_for(turn, np.ones_like(turn), torque) == []
    assert looked_for(turn, np.zeros_like(turn), torque) == []


def test_ripple_that_is_configured_needs_its_order():
    terms = ('viscous', 'coulomb', 'ripple')
    with pytest.raises(ConfigurationError, match="'ripple' needs 'ripple_order'"):
        build_robot(URDF, RobotSettings(joints=JOINTS, friction={'joint_2': terms}))
    constants = {'joint_2': {'ripple_order': 60.0}}
    robot = build_robot(
        URDF,
        RobotSettings(joints=JOINTS, friction={'joint_2': terms}, friction_constants=constants),
    )
    assert orders(robot) == [[], [60.0], []]
