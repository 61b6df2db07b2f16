"""A spring at a joint is chosen where there is one, and nowhere else."""

import ast
from functools import lru_cache
import re

import numpy as np
from plant_recording import arm, JOINTS, plant, START, URDF
import pytest

from robotid_ros.core.identification_settings import IdentificationSettings
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.dynamics import inverse_dynamics
from robotid_ros.core.pipeline.identification import identify
from robotid_ros.core.selection.candidates import SPRING
from robotid_ros.core.selection.model_selection import select_model
from robotid_ros.core.signals.recording import Recording

OPEN = IdentificationSettings(essential=False)
STIFFNESS = 25.0


@lru_cache
def found(gravity=(), springs=(0.0, 0.0, 0.0)):
    """Identify what MuJoCo's arm did, with nothing configured."""
    robot = build_robot(URDF, RobotSettings(joints=JOINTS))
    return identify(plant(gravity, springs=springs).recording, robot, OPEN)


def sprung(result):
    return [joint for joint, terms in zip(JOINTS, result.robot.friction, strict=True)
            if SPRING in terms]  # fmt: skip


@pytest.mark.parametrize('joint', range(3))
def test_a_spring_is_chosen_and_right_as_is_all_else(joint):
    springs = tuple(STIFFNESS * (np.arange(3) == joint))
    result, true = found(springs=springs), plant(springs=springs).base
    assert sprung(result) == [JOINTS[joint]]
    assert f'Kq{joint + 1}' in result.base.names
    truth = true(result.robot)
    error = result.estimate.value - np.array([truth[name] for name in result.base.names])
    assert np.all(np.abs(error) <= 3.0 * result.estimate.sigma)
    assert not any('position' in text for text in result.warnings)
    kept = result.selection.configuration(result.robot)['robot']['friction']
    assert 'spring' in kept[JOINTS[joint]]
    assert f'a spring at {JOINTS[joint]};' in result.selection.describe(JOINTS)
    # A joint that is compared again beside a spring is shown once, with the last choice.
    shown = [each.subject for each in result.selection.comparisons]
    assert len(set(shown)) == len(shown) and {*JOINTS, f'{JOINTS[joint]}, spring'} <= {*shown}


def test_two_springs_are_chosen_together():
    assert sprung(found(springs=(0.0, STIFFNESS, STIFFNESS))) == ['joint_2', 'joint_3']


def test_without_a_spring_none_is_chosen():
    assert sprung(found()) == []
    assert 'spring' not in found().selection.describe(JOINTS)


def test_gravity_in_another_direction_is_no_spring_and_is_told_right():
    gravity = np.array([0.0, 3.36, -9.22])
    result = found(gravity=tuple(gravity))
    assert sprung(result) == []
    (text,) = [text for text in result.warnings if text.startswith('gravity along')]
    told = np.array(ast.literal_eval(text[text.index('[') : text.index(']') + 1]))
    cosine = told @ gravity / np.linalg.norm(told) / np.linalg.norm(gravity)
    assert np.degrees(np.arccos(cosine)) < 5.0
    before, after = (float(x) for x in re.search(r'fitted (\S+) → (\S+) %', text).groups())
    assert after < 0.2 * before


@pytest.mark.parametrize(('share', 'springs'), [(0.005, False), (0.02, True)])
def test_less_than_a_hundredth_of_the_torque_is_no_spring(share, springs):
    """What is wrong near reversals, which come at the ends of the way, looks like one so weak."""
    robot, truth, rng = arm(), plant().truth, np.random.default_rng(3)
    chi = np.array([truth[p.joint].get(p.symbol, 0.0) for p in robot.parameters])
    time, w = np.arange(6000) / 200.0, 2.0 * np.pi * 0.11 * np.arange(1, 5)
    a, b = rng.uniform(-0.3, 0.3, (2, 4, 3))
    s, c = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
    turn, dq, ddq = s @ a + c @ b, (c * w) @ a - (s * w) @ b, -(s * w**2) @ a - (c * w**2) @ b
    tau = inverse_dynamics(robot, chi, START + turn, dq, ddq)
    tau[:, 0] += share * turn[:, 0] * np.sqrt(np.mean(tau[:, 0] ** 2) / np.var(turn[:, 0]))
    tau += 0.01 * rng.normal(size=tau.shape)
    free = build_robot(URDF, RobotSettings(joints=JOINTS))
    found, _, _ = select_model(Recording(JOINTS, time, START + turn, tau), free, OPEN)
    assert [SPRING in terms for terms in found.friction] == [springs, False, False]
