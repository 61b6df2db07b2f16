"""Makers' lines, read back as their documentation says, are the body again."""

import re
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation
import yaml

from robotid_ros.core.findings import finding
from robotid_ros.core.parameters.carried_body import frame_change
from robotid_ros.core.payload.payload import Payload
from robotid_ros.files.payload.makers import maker_lines
from robotid_ros.files.payload.payload_file import determined, write_payload

MASS, CENTRE = 2.5, np.array([0.03, -0.02, 0.08])
# Lines are written to seven digits.
DIGITS = 2e-7


def payload(undetermined=()):
    """Return a box of 60 by 120 by 200 mm that is turned, at the flange."""
    sides = np.array([0.06, 0.12, 0.2])
    turn = Rotation.from_euler('xyz', [0.4, -0.3, 1.1]).as_matrix()
    central = turn @ np.diag(MASS / 12.0 * (sides @ sides - sides**2)) @ turn.T
    moments = central + MASS * ((CENTRE @ CENTRE) * np.eye(3) - np.outer(CENTRE, CENTRE))
    value = np.array([*moments[np.triu_indices(3)], *MASS * CENTRE, MASS])
    unknown = np.eye(10)[:, list(undetermined)]
    return Payload('tool0', value, 1e-8 * np.eye(10), unknown, value)


def numbers(text):
    return np.array([float(x) for x in re.findall(r'-?\d+\.\d+', text)])


def energy(mass, centre, inertia, spin, speed):
    """Return the kinetic energy of a body whose flange turns and moves so."""
    velocity = speed + np.cross(spin, centre)
    return 0.5 * mass * velocity @ velocity + 0.5 * spin @ inertia @ spin


def check(mass, centre, inertia=None):
    """Compare with Pinocchio's energy of the ten parameters, about every axis."""
    assert mass == pytest.approx(MASS, rel=DIGITS)
    np.testing.assert_allclose(centre, CENTRE, rtol=DIGITS)
    if inertia is None:
        return
    xx, xy, xz, yy, yz, zz = payload().value[:6]
    dynamic = np.array([MASS, *MASS * CENTRE, xx, xy, yy, xz, yz, zz])
    true = pin.Inertia.FromDynamicParameters(dynamic)
    for spin in (*np.eye(3), *(np.ones((3, 3)) - np.eye(3))):
        motion = pin.Motion(np.array([0.1, 0.2, -0.3]), spin)
        expected = 0.5 * motion.vector @ (true * motion).vector
        found = energy(mass, centre, inertia, spin, motion.linear)
        assert found == pytest.approx(expected, rel=1e-5)


def test_universal_robots():
    """`set_target_payload(m, cog, [Ixx, Iyy, Izz, Ixy, Ixz, Iyz])`, URScript manual."""
    line = maker_lines(determined(payload()))['universal_robots']
    assert re.fullmatch(r'set_target_payload\([\d.]+, \[[^]]+\], \[[^]]+\]\)', line)
    m, x, y, z, xx, yy, zz, xy, xz, yz = numbers(line)
    check(m, [x, y, z], np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))


def test_franka():
    """`setLoad(mass, F_x_Cload, load_inertia)`, column-major, about the centre of mass."""
    line = maker_lines(determined(payload()))['franka']
    assert re.fullmatch(r'robot\.setLoad\([\d.]+, \{\{[^}]+\}\}, \{\{[^}]+\}\}\);', line)
    m, x, y, z, *inertia = numbers(line)
    check(m, [x, y, z], np.reshape(inertia, (3, 3), order='F'))


def test_kuka():
    """A, B, C as rotations about the axes of the flange in reverse order; mm and degrees."""
    line = maker_lines(determined(payload()))['kuka']
    number = r'-?\d+\.\d+'
    frame = ','.join(f'{name} {number}' for name in 'XYZABC')
    inertia = ','.join(f'{name} {number}' for name in 'XYZ')
    assert re.fullmatch(
        rf'LOAD_DATA\[1\]=\{{M {number},CM \{{{frame}\}},J \{{{inertia}\}}\}}', line
    )
    m, x, y, z, a, b, c, *moments = numbers(line)
    # About the fixed axes: C about X first, then B about Y, then A about Z.
    axes = pin.rpy.rpyToMatrix(*np.radians([c, b, a]))
    check(m, np.array([x, y, z]) / 1000.0, axes @ np.diag(moments) @ axes.T)


def test_kinova():
    """The line runs against stand-ins of the Kortex API, and keeps the tool's transform."""
    tool = SimpleNamespace(
        tool_mass=0.0, tool_mass_center=SimpleNamespace(x=0, y=0, z=0), tool_transform='kept'
    )
    told = []
    client = SimpleNamespace(GetToolConfiguration=lambda: tool, SetToolConfiguration=told.append)
    exec(maker_lines(determined(payload()))['kinova'], {'control_config': client})
    assert told == [tool] and tool.tool_transform == 'kept'
    centre = tool.tool_mass_center
    check(tool.tool_mass, [centre.x, centre.y, centre.z])


def test_tiny_numbers_have_no_exponent():
    small = payload().value * 1e-6
    lines = maker_lines(
        determined(Payload('tool0', small, 1e-20 * np.eye(10), np.zeros((10, 0)), small))
    )
    assert not any(re.search(r'\de', line) for line in lines.values())


def test_what_the_motion_does_not_tell_is_in_no_line():
    """YY is not told: Franka and KUKA want it, UR does without, Kinova never wants it."""
    lines = maker_lines(determined(payload(undetermined=(3,))))
    assert lines['franka'] is None and lines['kuka'] is None
    assert len(numbers(lines['universal_robots'])) == 4
    assert len(numbers(lines['kinova'])) == 4
    assert set(maker_lines(determined(payload(undetermined=(9,)))).values()) == {None}


def test_the_file_says_what_is_not_known(tmp_path):
    turned = payload(undetermined=(0,)).moved('tool0', frame_change(np.eye(4)))
    path = write_payload(
        tmp_path / 'body.yaml', turned, {'robot': 'r'}, [finding('long_recording')]
    )
    text = path.read_text()
    content = yaml.safe_load(text)
    assert 'nan' not in text.lower()
    assert content['parameters']['XX'] == {'value': None, 'sigma': np.inf, 'unit': 'kg·m²'}
    assert content['inertia_at_centre']['xx'] is None
    assert content['mass'] == pytest.approx(MASS)
    assert content['sigma']['mass'] == pytest.approx(1e-4)
    assert content['lines']['kuka'] is None and content['frame'] == 'tool0'
