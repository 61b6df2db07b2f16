"""Joints that mimic identified ones: torques of the constrained arm, from its energy."""

import numpy as np
import pinocchio as pin
import pytest

from robotid_ros.core.excitation.design import design
from robotid_ros.core.excitation.settings import ExcitationSettings
from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, inverse_dynamics, mass_matrix, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.model.dynamics import regressor
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.signals.recording import Recording
from robotid_ros.exceptions import ConfigurationError
from robotid_ros.files.export.identified_model import identified_urdf

from ..setup.test_joint_selection import FOLLOW, gripper

# The follower follows the first joint: its torque is felt there, through two links.
MIMIC = '<mimic joint="two" multiplier="-0.4" offset="0.05"/>'
TEXT = gripper(MIMIC)
SETTINGS = RobotSettings(joints=('one', 'two', 'finger'), friction={'default': ()})
MODEL = pin.buildModelFromXML(gripper(''))
DATA = MODEL.createData()
PLACES = [MODEL.joints[MODEL.getJointId(n)].idx_q for n in ('one', 'two', 'finger', 'follower')]


def full(q, offset=0.05):
    """Return the configuration of the unconstrained arm."""
    result = np.zeros(4)
    result[PLACES] = [*q, -0.4 * q[1] + offset]
    return result


def lagrangian(q, dq):
    kinetic = pin.computeKineticEnergy(MODEL, DATA, full(q), full(dq, 0.0))
    return kinetic - pin.computePotentialEnergy(MODEL, DATA, full(q))


def gradient(function, x, step=1e-4):
    steps = step * np.eye(x.size)
    return np.array([(function(x + s) - function(x - s)) / (2 * step) for s in steps])


def euler_lagrange(q, dq, ddq, step=1e-4):
    """Return d/dt ∂L/∂dq − ∂L/∂q by differences."""

    def momentum(t):
        at, speed = q + t * dq + 0.5 * t**2 * ddq, dq + t * ddq
        return gradient(lambda v: lagrangian(at, v), speed)

    rate = (momentum(step) - momentum(-step)) / (2 * step)
    return rate - gradient(lambda x: lagrangian(x, dq), q)


@pytest.fixture
def motion():
    rng = np.random.default_rng(2)
    return rng.uniform(-1.0, 1.0, (3, 20, 3))


def test_torques_are_those_of_the_energy(motion):
    robot = build_robot(TEXT, SETTINGS)
    assert robot.links == ('one', 'two', 'finger', 'follower')
    expected = np.array([euler_lagrange(*rows) for rows in zip(*motion, strict=True)])
    np.testing.assert_allclose(inverse_dynamics(robot, robot.prior, *motion), expected, atol=2e-5)
    W = regressor(robot, *motion)
    np.testing.assert_allclose((W @ robot.prior).T, expected, atol=2e-5)
    for q, ddq in zip(motion[0], motion[2], strict=True):
        zero = np.zeros((1, 3))
        rest = inverse_dynamics(robot, robot.prior, q[None], zero, zero)[0]
        with_it = inverse_dynamics(robot, robot.prior, q[None], zero, ddq[None])[0]
        np.testing.assert_allclose(
            mass_matrix(robot, robot.prior, q) @ ddq, with_it - rest, atol=1e-9
        )


def test_samples_of_two_blocks_count_once():
    robot = build_robot(TEXT, SETTINGS)
    motion = np.random.default_rng(3).uniform(-1.0, 1.0, (3, 1500, 3))
    parts = [regressor(robot, *motion[:, k]) for k in (slice(700), slice(700, None))]
    np.testing.assert_allclose(
        regressor(robot, *motion), np.concatenate(parts, axis=1), atol=1e-12
    )


def test_a_chain_of_mimics_multiplies():
    text = gripper('<mimic joint="finger" multiplier="2" offset="0.1"/>').replace(
        '<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="9" velocity="3"/></joint>'
        '<joint name="follower"',
        '<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="9" velocity="3"/>'
        '<mimic joint="two" multiplier="3" offset="0.2"/></joint><joint name="follower"',
    )
    robot = build_robot(text, RobotSettings())
    assert robot.joints == ('one', 'two')
    np.testing.assert_allclose(
        robot.link_positions(np.array([[0.5, 1.0]])), [[0.5, 1.0, 3.2, 6.5]]
    )
    assert FOLLOW not in text


def test_identified_again_and_written_with_its_mimic():
    settings = RobotSettings(joints=('one', 'two', 'finger'))
    robot = build_robot(TEXT, settings)
    chi = np.array(robot.prior)
    for number in (1, 2, 3):
        chi[robot.column(f'Fv{number}')], chi[robot.column(f'Fc{number}')] = 0.5, 0.3
    chi[robot.column('M4')] *= 1.2
    time = np.arange(4000) / 200.0
    rng = np.random.default_rng(0)
    w = 2.0 * np.pi * 0.1 * np.arange(1, 6)
    a, b = rng.normal(size=(2, 5, 3)) * 0.4
    s, c = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
    q, dq, ddq = s @ a + c @ b, c * w @ a - s * w @ b, -(s * w**2) @ a - (c * w**2) @ b
    tau = inverse_dynamics(robot, chi, q, dq, ddq)
    tau += 0.01 * tau.std(axis=0) * rng.normal(size=tau.shape)
    found = identify(
        Recording(robot.joints, time, q, tau),
        robot,
        IdentificationSettings(essential=False, model='plain'),
    )
    error = found.estimate.value - base_parameters(robot).of(chi)
    assert np.abs(error / found.estimate.sigma).max() < 5.0
    text = identified_urdf(robot, found.standard.value)
    assert MIMIC in text.replace(' />', '/>')
    again = build_robot(text, settings)
    torque = inverse_dynamics(again, again.prior, q[::50], 0 * dq[::50], 0 * ddq[::50])
    expected = inverse_dynamics(robot, found.standard.value, q[::50], 0 * dq[::50], 0 * ddq[::50])
    offset = [found.standard.value[robot.column(f'off{k}')] for k in (1, 2, 3)]
    np.testing.assert_allclose(torque, expected - offset, atol=1e-6)


def test_planning_refuses_what_it_does_not_know():
    robot = build_robot(TEXT, SETTINGS)
    with pytest.raises(ConfigurationError, match=r'planning a motion is not possible .*follower'):
        design(robot, ExcitationSettings())
