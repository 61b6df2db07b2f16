"""The short motion that tells a payload: its criterion, its columns, its limits."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from robotid_ros.core.excitation.collision_scene import CollisionScene
from robotid_ros.core.excitation.design import design
from robotid_ros.core.excitation.limits import check_trajectory
from robotid_ros.core.excitation.problem import (
    d_optimal,
    PayloadProblem,
    subset_d_optimal,
    with_payload,
)
from robotid_ros.core.excitation.settings import (
    ExcitationSettings,
    payload_settings,
    PayloadMotion,
    Workspace,
)
from robotid_ros.core.model import inverse_dynamics
from robotid_ros.exceptions import ConfigurationError, RobotIdError

from .robots import FREE, quick, robot_named

CARRY = PayloadMotion(mass=2.0, com=(0.0, 0.02, 0.1))


def spread(rng, count):
    root = rng.normal(size=(3 * count, count))
    return root.T @ root


def test_the_criterion_is_that_of_the_covariance_of_some(rng):
    """The inverse of the Schur complement is the covariance of the first parameters."""
    s = spread(rng, 7)
    covariance = np.linalg.inv(s)[:4, :4]
    value, gradient = subset_d_optimal(s, 4)
    assert value == pytest.approx(np.linalg.slogdet(covariance)[1] / 4)
    direction = spread(rng, 7)
    above, below = (subset_d_optimal(s + h * direction, 4)[0] for h in (1e-5, -1e-5))
    assert np.sum(gradient * direction) == pytest.approx((above - below) / 2e-5, rel=1e-6)
    assert subset_d_optimal(s, 7)[0] == d_optimal(s)[0]


def test_no_unit_or_frame_changes_the_best_motion(rng):
    """Other coordinates of the first parameters, and of the others, add a constant."""
    turn = np.zeros((7, 7))
    turn[:4, :4], turn[4:, 4:] = rng.normal(size=(4, 4)), rng.normal(size=(3, 3))
    differences = []
    for _ in range(3):
        s = spread(rng, 7)
        differences.append(subset_d_optimal(turn.T @ s @ turn, 4)[0] - subset_d_optimal(s, 4)[0])
    np.testing.assert_allclose(differences, differences[0], atol=1e-9)


def problem(name, **changes):
    robot = robot_named(name)
    settings = payload_settings(quick(payload=CARRY, workspace=FREE, **changes))
    return PayloadProblem(robot, settings, CollisionScene(robot, settings.workspace))


@pytest.mark.parametrize(('name', 'payload', 'friction'), [('ur10', 10, 18), ('scara', 4, 6)])
def test_the_columns_are_the_payloads_and_friction(name, payload, friction):
    """A horizontal arm tells four of the ten; rotors are the same with and without."""
    found = problem(name)
    names = [found.robot.parameters[k].name for k in found.columns]
    last, drives = str(found.robot.n), [n.startswith(('Fv', 'Fc', 'off')) for n in names]
    assert drives == [False] * payload + [True] * (len(names) - payload)
    assert all(n.endswith(last) for n in names[:payload])
    assert len(names) - payload <= friction


def test_the_gradient_of_the_problem(rng):
    found = problem('ur10')
    x = found.random_point(rng)
    direction = rng.normal(size=x.shape)
    gradient = found.evaluate(x)[1] @ direction
    values = [found.evaluate(x + h * direction)[0] for h in (1e-5, -1e-5)]
    assert gradient == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-4)


def test_the_prior_carries_a_point_mass():
    robot = robot_named('ur10')
    settings = quick(payload=CARRY, workspace=Workspace(frame='tool0', self_collision=False))
    q = np.array([[0.1, -1.0, 0.5, 0.2, 0.3, 0.4]])
    still = np.zeros_like(q)
    tau = [
        inverse_dynamics(robot, r.prior, q, still, still)[0]
        for r in (robot, with_payload(robot, settings))
    ]

    data = robot.model.createData()
    frame = robot.model.getFrameId('tool0')
    pin.framesForwardKinematics(robot.model, data, q[0])
    jacobian = pin.computeFrameJacobian(robot.model, data, q[0], frame, pin.LOCAL_WORLD_ALIGNED)
    arm = data.oMf[frame].rotation @ CARRY.com
    point = jacobian[:3] - np.cross(arm, jacobian[3:].T).T
    np.testing.assert_allclose(tau[1] - tau[0], -CARRY.mass * point.T @ robot.gravity, atol=1e-9)


def test_without_a_mass_nothing_changes():
    settings = ExcitationSettings()
    assert payload_settings(settings) is settings
    found = payload_settings(replace(settings, payload=CARRY))
    assert (found.period * found.periods, found.validation.kind) == (15.0, 'none')
    assert payload_settings(found) == found != settings


def test_a_designed_motion_is_short_and_keeps_limits_with_the_payload():
    robot = robot_named('arm3')
    settings = quick(payload=CARRY, workspace=FREE)
    found = design(robot, settings)
    assert found.trajectory.period == 7.5 and found.validation is None
    assert {name[-1] for name in found.columns if name.startswith(tuple('XYZM'))} == {'3'}
    for carried in (robot, with_payload(robot, settings)):
        usage = check_trajectory(carried, found.trajectory, settings)
        for limit in ('position', 'velocity', 'acceleration', 'jerk', 'effort'):
            assert max(getattr(usage, limit)) <= 1.0
    heavy = max(check_trajectory(with_payload(robot, settings), found.trajectory, settings).effort)
    assert max(found.usage.effort) == pytest.approx(heavy)


def test_a_centre_has_three_coordinates():
    wrong = quick(payload=PayloadMotion(mass=1.0, com=(0.1,)), workspace=FREE)
    with pytest.raises(ConfigurationError, match='three coordinates'):
        design(robot_named('arm3'), wrong)


def test_a_motion_that_shrinks_to_nothing_is_the_worst():
    given = problem('ur10')
    nothing = np.zeros((20, given.robot.n, given.robot.p))
    value, gradient = given.information(nothing)
    assert value == np.inf and not gradient.any()


def test_an_arm_that_cannot_hold_what_it_carries_says_so():
    heavy = quick(payload=PayloadMotion(mass=500.0, com=(0.0, 0.0, 0.5)), workspace=FREE)
    with pytest.raises(RobotIdError):
        design(robot_named('ur10'), heavy)
