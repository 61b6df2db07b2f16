"""A description without inertials is enough to identify."""

from pathlib import Path
import re

import numpy as np
import pytest

from robotid_ros.core.findings import select
from robotid_ros.core.model import build_robot, inverse_dynamics, mass_matrix, RobotSettings
from robotid_ros.core.model.assumed_inertials import lacks_inertials, with_inertials
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.exceptions import ModelError

URDF = Path(__file__).resolve().parents[3] / 'urdf'

JOINT = """<link name="{0}_link">{2}</link><joint name="{0}" type="revolute"><parent link="{1}"/>
<child link="{0}_link"/><origin xyz="0.1 0 0.4"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="3" effort="50"/></joint>"""
INERTIAL = """<inertial><origin xyz="0.1 0 0.2"/><mass value="{0}"/>
<inertia ixx="{0}" iyy="{0}" izz="{0}" ixy="0" ixz="0" iyz="0"/></inertial>"""


def arm(inertial=''):
    parts, parent = ['<robot name="arm"><link name="base"/>'], 'base'
    for name in ('a', 'b', 'c'):
        parts.append(JOINT.format(name, parent, inertial))
        parent = f'{name}_link'
    return ''.join([*parts, '</robot>'])


@pytest.mark.parametrize('inertial', ['', INERTIAL.format(0.0)])
def test_the_base_parameters_are_those_of_any_inertials(inertial):
    known = build_robot(arm(INERTIAL.format(2.0)), RobotSettings())
    assumed = build_robot(arm(inertial), RobotSettings(mass=30.0))
    assert base_parameters(assumed).combinations == base_parameters(known).combinations
    assert assumed.assumed_inertials and not known.assumed_inertials
    (found,) = select(assumed.warnings, 'masses_assumed')
    assert found.values['mass'] == 30.0
    for inertia in assumed.model.inertias.tolist()[1:]:
        assert np.linalg.eigvalsh(inertia.inertia).min() > 0.0
    np.testing.assert_allclose(assumed.model.inertias[1].lever, [0.05, 0.0, 0.2])
    again = build_robot(assumed.urdf, RobotSettings())
    np.testing.assert_allclose(again.prior, assumed.prior, rtol=1e-8)


def test_a_mass_is_shared_by_length_and_reach():
    """Three steps of 0.412 m: base and links are as long, but for the last one, and carry less."""
    found = build_robot(arm(), RobotSettings(mass=30.0))
    step = np.hypot(0.1, 0.4)
    length, reach = step * np.array([1, 1, 1, 0]), step * np.array([3, 2, 1, 0])
    share = (length + 0.3 * step) * (reach + 0.3 * step)
    masses = [inertia.mass for inertia in found.model.inertias.tolist()[1:]]
    np.testing.assert_allclose(masses, 30.0 * share[1:] / share.sum(), rtol=1e-8)


@pytest.mark.parametrize('name', ['ur10', 'tx40'])
def test_weight_and_inertia_of_known_arms_are_of_the_right_size(name):
    """By the mass of the whole arm alone; the wrist is left to the drives' own inertia."""
    text = (URDF / f'{name}.urdf').read_text()
    known = build_robot(text, RobotSettings())
    masses = map(float, re.findall('<mass value="([^"]+)"', text))
    bare = re.sub('<inertial>.*?</inertial>', '', text, flags=re.DOTALL)
    assumed = build_robot(bare, RobotSettings(mass=sum(masses)))
    q = np.random.default_rng(0).uniform(-3.0, 3.0, (50, known.n))
    still = np.zeros_like(q)
    ratio = [
        np.abs(inverse_dynamics(robot, robot.prior, q, still, still)).max(axis=0)[1:3]
        for robot in (assumed, known)
    ]
    inertia = [
        np.diagonal(mass_matrix(robot, robot.prior, q), axis1=1, axis2=2).max(axis=0)[:3]
        for robot in (assumed, known)
    ]
    for found, expected in (ratio, inertia):
        assert np.all(np.abs(np.log(found / expected)) < np.log(2.0))


def test_descriptions_with_a_mass_or_of_no_known_one_stay():
    described = arm(INERTIAL.format(2.0))
    assert with_inertials(described, 30.0) == (described, ())
    assert not lacks_inertials(described)
    for mass in (0.0, -1.0, np.nan, np.inf):
        assert with_inertials(arm(), mass) == (arm(), ())
    assert lacks_inertials(arm()) and lacks_inertials(arm(INERTIAL.format(0.0)))
    with pytest.raises(ModelError, match=r'set robot\.mass'):
        build_robot(arm(), RobotSettings())


def test_one_ball_in_all_links_is_a_placeholder():
    ball = INERTIAL.format(2.0).replace('0.1 0 0.2', '0 0 0')
    assert lacks_inertials(arm(ball)) and not lacks_inertials(
        arm(ball).replace('="2.0"', '="3"', 1)
    )
    with pytest.raises(ModelError, match=r'same placeholder in each link.*set robot\.mass'):
        build_robot(arm(ball), RobotSettings())
    found, bare = (build_robot(arm(x), RobotSettings(mass=30.0)) for x in (ball, ''))
    assert found.assumed_inertials
    np.testing.assert_array_equal(found.prior, bare.prior)


@pytest.mark.parametrize(
    ('text', 'match'), [('<robot', 'not valid XML'), ('<robot name="a"/>', 'no links')]
)
def test_malformed_descriptions_are_told(text, match):
    with pytest.raises(ModelError, match=match):
        build_robot(text, RobotSettings(mass=1.0))
