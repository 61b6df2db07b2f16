"""Xacros that load inertials as YAML give the identified bodies."""

from identified_models import of_configuration, of_description
import numpy as np
import pytest
import xacro
import yaml

from robotid_ros.exceptions import ConfigurationError, FileError
from robotid_ros.files.export.bodies import own_bodies
from robotid_ros.files.export.inertials import inertials

from .test_identified_urdf import TOOL

# Two descriptions in the manner of those that load such files.
BY_LINK = """<robot name="x" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:property name="all" value="${xacro.load_yaml('FILE')}"/>
<xacro:macro name="body" params="name"><xacro:property name="b" value="${all[name]}"/>
<link name="${name}"><inertial><origin xyz="${b.origin.xyz}" rpy="${b.origin.rpy}"/>
<mass value="${b.mass}"/><inertia ixx="${b.inertia.xx}" ixy="${b.inertia.xy}"
ixz="${b.inertia.xz}" iyy="${b.inertia.yy}" iyz="${b.inertia.yz}" izz="${b.inertia.zz}"/>
</inertial></link></xacro:macro>
LINKS
</robot>"""
BY_SECTION = """<robot name="x" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:property name="all" value="${xacro.load_yaml('FILE')['inertia_parameters']}"/>
<xacro:macro name="body" params="name"><xacro:property name="c"
value="${all['center_of_mass'][name + '_cog']}"/><xacro:property name="t"
value="${all['tensor'][name]}"/><xacro:property name="r" value="${all['rotation'][name]}"/>
<link name="${name}"><inertial><origin xyz="${c['x']} ${c['y']} ${c['z']}"
rpy="${r['roll']} ${r['pitch']} ${r['yaw']}"/><mass value="${all[name + '_mass']}"/>
<inertia ixx="${t['ixx']}" ixy="${t['ixy']}" ixz="${t['ixz']}" iyy="${t['iyy']}"
iyz="${t['iyz']}" izz="${t['izz']}"/></inertial></link></xacro:macro>
LINKS
</robot>"""
SECTIONS = """
offsets: {elbow: 0.1}
inertia_parameters:
  base_mass: 4.0
  shoulder_mass: 7.0
  elbow_mass: 2.0
  center_of_mass: {shoulder_cog: {x: 1, y: 2, z: 3}, elbow_cog: {x: 1, y: 2, z: 3}}
  rotation:
    shoulder: {roll: 1.57, pitch: 0, yaw: 0}
    elbow: {roll: 0, pitch: 0, yaw: 0}
  tensor:
    shoulder: {ixx: 1, ixy: 0, ixz: 0, iyy: 1, iyz: 0, izz: 1}
    elbow: {ixx: 1, ixy: 0, ixz: 0, iyy: 1, iyz: 0, izz: 1}
"""


def read_by(xacro_text, text, parts, folder):
    """Let a xacro load the file; returns the bodies of its links."""
    (folder / 'values.yaml').write_text(text)
    source = xacro_text.replace('FILE', str(folder / 'values.yaml'))
    calls = ''.join(f'<xacro:body name="{part}"/>' for part in parts)
    (folder / 'x.xacro').write_text(source.replace('LINKS', calls))
    return own_bodies(xacro.process_file(str(folder / 'x.xacro')).toxml())


# An arm whose links all have a body.
ARM = TOOL.replace(
    '<link name="l2"/>',
    '<link name="l2"><inertial><origin xyz="0 0.1 0"/><mass value="2"/>'
    '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/></inertial></link>',
)


def arm(folder, **names):
    """Identify it, with other names of links."""
    text = ARM
    for old, new in names.items():
        text = text.replace(f'"{old}"', f'"{new}"')
    return of_description(folder, text)


def test_each_link_has_an_entry(tmp_path):
    model = of_configuration(tmp_path, 'ur10')
    text, notes = inertials(model)
    expected = {n: b for n, b in own_bodies(model.robot.urdf).items() if b[3, 3] > 0.0}
    found = read_by(BY_LINK, text, expected, tmp_path)
    assert len(expected) == 7
    for name, body in expected.items():
        np.testing.assert_allclose(found[name], body, rtol=1e-12, atol=1e-12)
    assert all(f'# {note}\n' in text for note in notes)
    assert any('rotor inertias' in note for note in notes)
    assert any(note.startswith('friction and other torques') for note in notes)


def test_a_file_by_links_keeps_what_was_not_identified(tmp_path):
    model = arm(tmp_path, l1='x_link1', l2='x_link2')
    # A key given twice, an alias: files in use have both, and xacro reads them.
    like = tmp_path / 'like.yaml'
    like.write_text(
        'link1: {mass: 1, inertia: 0, inertia: 0, more: kept}\nlink2: &two {mass: 2}\nlink3: *two'
    )
    text, notes = inertials(model, str(like))
    content, bodies = yaml.safe_load(text), own_bodies(model.robot.urdf)
    assert content['link1']['more'] == 'kept' and content['link3'] == {'mass': 2}
    found = read_by(BY_LINK, text, ('link1', 'link2'), tmp_path)
    for part in ('link1', 'link2'):
        np.testing.assert_allclose(found[part], bodies[f'x_{part}'], rtol=1e-12, atol=1e-15)
    assert notes[-1] == f"'{like}' has no place for tool: they are left out"


def test_a_file_by_sections_keeps_what_was_not_identified(tmp_path):
    model = arm(tmp_path, l1='ur_shoulder_link', l2='ur_elbow_link')
    like = tmp_path / 'like.yaml'
    like.write_text(SECTIONS)
    text, _ = inertials(model, str(like))
    bodies = own_bodies(model.robot.urdf)
    found = read_by(BY_SECTION, text, ('shoulder', 'elbow'), tmp_path)
    for part in ('shoulder', 'elbow'):
        np.testing.assert_allclose(found[part], bodies[f'ur_{part}_link'], rtol=1e-12, atol=1e-15)
    content = yaml.safe_load(text)
    assert content['offsets'] == {'elbow': 0.1}
    assert content['inertia_parameters']['base_mass'] == 4.0


@pytest.mark.parametrize(
    ('text', 'error', 'words'),
    [
        ('[1]', ConfigurationError, 'holds no inertials'),
        ('other: {mass: 1}', ConfigurationError, 'names none of the links'),
        ('a: [', FileError, 'not valid YAML'),
        ('[' * 5000, FileError, 'not valid YAML'),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path, text, error, words):
    like = tmp_path / 'like.yaml'
    like.write_text(text)
    with pytest.raises(error, match=words):
        inertials(arm(tmp_path), str(like))
