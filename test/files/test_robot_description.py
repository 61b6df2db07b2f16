"""Robot descriptions as files: URDF and xacro."""

import os
import sys

import pytest

from robotid_ros.exceptions import FileError, ModelError
from robotid_ros.files.robot_description import read_description

XACRO = """<?xml version="1.0"?>
<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:property name="mass" value="2.5"/>
  <link name="base"><inertial><mass value="${2 * mass}"/></inertial></link>
</robot>"""


def test_a_urdf_is_read_as_it_is(tmp_path):
    (tmp_path / 'arm.urdf').write_text('<robot name="arm"/>')
    assert read_description(tmp_path / 'arm.urdf') == '<robot name="arm"/>'


@pytest.mark.parametrize('name', ['arm.urdf.xacro', 'arm.urdf'])
def test_xacro_is_run(tmp_path, name):
    pytest.importorskip('xacro')
    (tmp_path / name).write_text(XACRO)
    assert 'mass value="5.0"' in read_description(tmp_path / name)


def test_what_xacro_refuses_is_one_sentence(tmp_path):
    pytest.importorskip('xacro')
    (tmp_path / 'arm.xacro').write_text(XACRO.replace('2 * mass', 'weight'))
    with pytest.raises(ModelError, match=r'xacro refuses .*weight.*: correct it') as caught:
        read_description(tmp_path / 'arm.xacro')
    assert '\n' not in str(caught.value)


def test_arguments_are_those_of_the_command(tmp_path):
    pytest.importorskip('xacro')
    include = '<xacro:arg name="kind" default="a"/><xacro:include filename="$(arg kind).xacro"/>'
    (tmp_path / 'arm.xacro').write_text(XACRO.replace('<link', f'{include}<link', 1))
    (tmp_path / 'b.xacro').write_text('<robot/>')
    assert read_description(tmp_path / 'arm.xacro', {'kind': 'b'})
    with pytest.raises(ModelError, match=r"there is no '.*a.xacro'.*: correct it; put the"):
        read_description(tmp_path / 'arm.xacro')


def test_packages_of_a_checkout_are_found_beside_that_of_the_file(tmp_path, monkeypatch):
    pytest.importorskip('xacro')
    monkeypatch.delenv('AMENT_PREFIX_PATH', raising=False)
    for folder, name, text in (
        ('arm_of_mine', 'arm_description', '<xacro:include filename="$(find parts)/link.xacro"/>'),
        ('parts', 'parts', '<link name="base"/>'),
    ):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / 'package.xml').write_text(f'<package><name>{name}</name></package>')
        (tmp_path / folder / 'link.xacro').write_text(f'{XACRO.splitlines()[1]}{text}</robot>')
    assert '<link name="base"/>' in read_description(tmp_path / 'arm_of_mine' / 'link.xacro')
    assert 'AMENT_PREFIX_PATH' not in os.environ
    (tmp_path / 'parts' / 'package.xml').unlink()
    with pytest.raises(ModelError, match=r"package 'parts' not found.*; put the packages"):
        read_description(tmp_path / 'arm_of_mine' / 'link.xacro')


def test_without_xacro_the_remedy_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'xacro', None)
    (tmp_path / 'arm.xacro').write_text(XACRO)
    with pytest.raises(FileError, match='pip install xacro, or give what'):
        read_description(tmp_path / 'arm.xacro')
