"""A description without inertials is enough to identify."""

import re

import numpy as np
import pytest

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.base_parameters import base_parameters
from robotid_ros.core.setup.assumed_inertials import MASS, with_inertials

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
    text, (note,) = with_inertials(arm(inertial))
    assert f'rods of {MASS:g} kg are assumed' in note
    assumed, known = (build_robot(x, RobotSettings()) for x in (text, arm(INERTIAL.format(2.0))))
    assert base_parameters(assumed).combinations == base_parameters(known).combinations
    for inertia in assumed.model.inertias.tolist()[1:]:
        assert inertia.mass == MASS
        assert np.linalg.eigvalsh(inertia.inertia).min() > 0.0
    np.testing.assert_allclose(assumed.model.inertias[1].lever, [0.05, 0.0, 0.2])


def test_descriptions_with_a_mass_and_malformed_ones_stay():
    for text in (arm(INERTIAL.format(2.0)), '<robot', re.sub('revolute', 'fixed', arm())):
        assert with_inertials(text) == (text, ())
