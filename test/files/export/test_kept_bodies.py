"""No link loses its body: grippers, chains of fixed links, frames without mass."""

import re
from xml.etree import ElementTree

from hypothesis import example, given, settings, strategies as st
import mujoco
import numpy as np
import pinocchio as pin
import pytest

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.core.model.robot import INERTIAL
from robotid_ros.core.parameters.physical_consistency import link_coordinates, UPPER
from robotid_ros.files.export.identified_model import (
    distribute,
    identified_urdf,
    is_physical,
    own_bodies,
)

INERTIAL_XML = """<inertial><!-- <mass value="9"/> --><origin rpy="{rpy}" xyz="{xyz}"/>
  <mass value='{m}'/><inertia ixx="{a}" ixy="0" ixz="0" iyy="{b}" iyz="0" izz="{c}"/></inertial>"""


def link(name, m=0.0, xyz='0 0 0', rpy='0 0 0', radius=0.05):
    """Write a link; its moments are those of a body with this radius of gyration."""
    a, b, c = (k * m * radius**2 for k in (1.0, 1.3, 0.8))
    inside = INERTIAL_XML.format(rpy=rpy, xyz=xyz, m=m, a=a, b=b, c=c) if m else ''
    return f'<link name="{name}">{inside}</link>\n'


def joint(name, parent, child, kind='revolute', more='', xyz='0.1 0 0.2', rpy='0.3 0 -0.2'):
    limit = '' if kind == 'fixed' else '<limit lower="-2" upper="2" effort="9" velocity="3"/>'
    axis = '' if kind == 'fixed' else '<axis xyz="0 0.6 0.8"/>'
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/>{axis}{limit}{more}</joint>\n'
    )


TRANSMISSION = (
    '<transmission name="t1"><joint name="j1"/><actuator name="m1">'
    '<mechanicalReduction>100</mechanicalReduction><motorInertia>1e-4</motorInertia>'
    '</actuator></transmission>\n'
)
GRIPPER = (
    link('base', 3.0)
    + link('arm', 2.0, '0.2 0 0.03', '0.4 -0.3 1.1')
    + joint('j1', 'base', 'arm', more="<dynamics damping='1' armature='0.3'/>")
    + link('hand', 0.7, '0 0 0.05', '0 0.5 0')
    + joint('j2', 'arm', 'hand')
    + link('left', 0.03, '0 0.01 0.02', radius=0.01)
    + joint('grip', 'hand', 'left', 'prismatic', '<dynamics damping="7" friction="0.2"/>')
    + link('right', 0.03, '0 -0.01 0.02', radius=0.01)
    + joint('mimic', 'hand', 'right', 'prismatic', '<mimic joint="grip" multiplier="-1"/>')
    + link('pad', 0.002, '0.01 0 0', radius=0.004)
    + joint('glue', 'left', 'pad', 'fixed')
    + TRANSMISSION
)
CHAIN = (
    link('base')
    + link('dummy')
    + joint('j1', 'base', 'dummy')
    + link('motor', 1.5, '0.02 0 0.1', '0 0 1')
    + joint('f1', 'dummy', 'motor', 'fixed')
    + link('camera', 1e-5, radius=0.01)
    + joint('f2', 'motor', 'camera', 'fixed')
    + link('tube', 1.0, '0.2 0 0', '1.5 0.2 0.1')
    + joint('f3', 'camera', 'tube', 'fixed')
    + link('wrist', 0.4)
    + joint('j2', 'tube', 'wrist')
    + link('tcp')
    + joint('f4', 'wrist', 'tcp', 'fixed')
)
ROBOTS = {'gripper': (GRIPPER, ('j1', 'j2')), 'chain': (CHAIN, ('j1', 'j2'))}


def built(name):
    text, joints = ROBOTS[name]
    return build_robot(f'<robot name="{name}">{text}</robot>', RobotSettings(joints=joints))


def drawn(robot, seed, spread):
    """Draw bodies that can exist, and positive friction and rotors."""
    rng, chi = np.random.default_rng(seed), np.array(robot.prior)
    for start in robot.first_columns:
        root = np.eye(4) + spread * rng.normal(size=(4, 4))
        S = root @ root.T + 0.01 * np.eye(4)
        svec = [S[i, j] * (1.0 if i == j else np.sqrt(2.0)) for i, j in UPPER]
        chi[start : start + 10] = link_coordinates(chi[start : start + 10]) @ svec
    rest = [k for k, p in enumerate(robot.parameters) if p.symbol not in INERTIAL]
    chi[rest] = rng.uniform(0.1, 2.0, len(rest))
    return chi


@pytest.mark.parametrize('name', ROBOTS)
@given(seed=st.integers(0, 10**6), spread=st.floats(0.01, 3.0))
@example(seed=0, spread=3.0)
@settings(max_examples=25, deadline=None)
def test_every_link_keeps_a_body_and_together_they_are_the_identified_one(name, seed, spread):
    robot = built(name)
    chi = drawn(robot, seed, spread)
    text = identified_urdf(robot, chi)
    before, after = own_bodies(robot.urdf), own_bodies(text)
    for key, body in before.items():
        if body.any():
            assert after[key][3, 3] > 0.0
            assert np.linalg.eigvalsh(after[key])[0] > 0.0, key
    again = build_robot(text, RobotSettings(joints=robot.joints))
    for start in robot.first_columns:
        own = slice(start, start + 10)
        scale = np.abs(chi[own]).max()
        np.testing.assert_allclose(again.prior[own], chi[own], rtol=0, atol=1e-10 * scale)
    assert pin.buildModelFromXML(text).nv == pin.buildModelFromXML(robot.urdf).nv
    physics, original = (mujoco.MjModel.from_xml_string(t) for t in (text, robot.urdf))
    assert (physics.nv, physics.nbody) == (original.nv, original.nbody)
    assert np.all(physics.body_mass[1:] > 0.0)


def test_links_may_have_the_names_of_joints():
    text, joints = ROBOTS['gripper']
    robot, other = (
        build_robot(f'<robot name="x">{t}</robot>', RobotSettings(joints=joints))
        for t in (text, text.replace('"grip"', '"left"').replace('"glue"', '"pad"'))
    )
    np.testing.assert_array_equal(other.prior, robot.prior)
    chi = drawn(robot, 5, 3.0)
    written = [own_bodies(identified_urdf(each, chi)) for each in (robot, other)]
    np.testing.assert_array_equal(*(list(bodies.values()) for bodies in written))


def test_small_changes_leave_fixed_and_locked_links_as_they_are_written():
    for name in ROBOTS:
        robot = built(name)
        text = identified_urdf(robot, drawn(robot, 1, 0.01))
        links = {x.get('name'): ElementTree.tostring(x) for x in ElementTree.fromstring(text)}
        changed = [
            x.get('name')
            for x in ElementTree.fromstring(robot.urdf).findall('link')
            if ElementTree.tostring(x) != links[x.get('name')]
        ]
        # Of the chain the moving link has no mass: the heaviest one fixed to it takes its part.
        assert changed == {'gripper': ['arm', 'hand'], 'chain': ['motor', 'wrist']}[name]


def test_what_was_not_identified_survives():
    robot = built('gripper')
    chi = drawn(robot, 2, 0.3)
    text = identified_urdf(robot, chi).replace(' />', '/>')
    assert TRANSMISSION.strip() in text
    assert '<dynamics damping="7" friction="0.2"/>' in text
    first = re.search(r'<dynamics[^>]*>', text).group()
    values = {(p.joint, p.symbol): v for p, v in zip(robot.parameters, chi, strict=True)}
    assert ElementTree.fromstring(first).attrib == {
        'damping': repr(float(values['j1', 'Fv'])),
        'armature': repr(float(values['j1', 'Ia'])),
        'friction': repr(float(values['j1', 'Fc'])),
    }


@pytest.mark.parametrize(
    ('terms', 'kept', 'damping', 'friction'),
    [
        # All friction that there is was identified: no damping of the description beside it.
        (('coulomb',), {'damping': '0.0'}, None, 'Fc'),
        (('asymmetric_viscous', 'offset'), {}, ('Fvp', 'Fvm'), None),
        (('offset',), {'damping': '1'}, None, None),
    ],
)
def test_only_identified_friction_is_written(terms, kept, damping, friction):
    text, joints = ROBOTS['gripper']
    robot = build_robot(
        f'<robot name="x">{text}</robot>',
        RobotSettings(joints=joints, friction={'default': terms}),
    )
    chi = drawn(robot, 3, 0.1)
    written = ElementTree.fromstring(identified_urdf(robot, chi)).find('joint/dynamics').attrib
    expected = {'armature': repr(float(chi[robot.column('Ia1')])), **kept}
    for key, symbols in (('damping', damping), ('friction', friction)):
        if symbols:
            names = [symbols] if isinstance(symbols, str) else symbols
            expected[key] = repr(float(np.mean([chi[robot.column(f'{n}1')] for n in names])))
    numbers = {key: float(value) for key, value in expected.items()}
    assert {key: float(value) for key, value in written.items()} == pytest.approx(
        numbers, rel=1e-12
    )


def test_an_identified_description_is_identified_again_without_a_trace():
    robot = built('gripper')
    chi = drawn(robot, 4, 0.2)
    once = identified_urdf(robot, chi)
    again = build_robot(once, RobotSettings(joints=robot.joints))
    assert identified_urdf(again, chi) == once


@given(st.integers(0, 10**6), st.floats(-3.0, 1.0))
@settings(max_examples=60, deadline=None)
def test_shares_add_up_and_exist(seed, decades):
    rng = np.random.default_rng(seed)

    def body(size):
        root = rng.normal(size=(4, 6)) * [[0.1], [0.1], [0.1], [1.0]]
        return size * root @ root.T

    bodies = {name: body(10 ** rng.uniform(-3, 1)) for name in 'abcd'} | {'e': np.zeros((4, 4))}
    total = body(10**decades)
    if not is_physical(total):
        return
    changed = distribute(total, bodies, ['a', 'b', 'c'])
    after = bodies | changed
    np.testing.assert_allclose(sum(after.values()), total, rtol=1e-9, atol=1e-12)
    for name in [*changed][1:]:  # which shrink
        factor = changed[name][3, 3] / bodies[name][3, 3]
        np.testing.assert_allclose(changed[name], factor * bodies[name], rtol=1e-12)
        assert 0.0 < factor < 1.0
    assert all(np.linalg.eigvalsh(after[name])[0] > 0.0 for name in 'abcd')
