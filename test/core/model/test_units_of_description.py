"""Descriptions in millimetres and grams are refused, or named, with the unit."""

from pathlib import Path
import re

import pytest

from robotid_ros.core.findings import render, select
from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.exceptions import ModelError

URDFS = sorted((Path(__file__).resolve().parents[3] / 'urdf').glob('*.urdf'))


def scaled(text, attribute, factor):
    def times(match):
        return f'{match[1]}"{" ".join(str(factor * float(x)) for x in match[2].split())}"'

    return re.sub(rf'({attribute}=)"([^"]*)"', times, text)


@pytest.mark.parametrize('urdf', URDFS, ids=lambda path: path.stem)
def test_descriptions_in_metres_and_kilograms_are_taken(urdf):
    robot = build_robot(urdf.read_text(), RobotSettings())
    assert not select(robot.warnings, 'masses_in_grams')


@pytest.mark.parametrize('name', ['arm3', 'tx40', 'ur10'])
def test_millimetres_are_refused(name):
    (urdf,) = (path for path in URDFS if path.stem == name)
    with pytest.raises(ModelError, match='not in millimetres'):
        build_robot(scaled(urdf.read_text(), 'xyz', 1e3), RobotSettings())


@pytest.mark.parametrize('name', ['arm3', 'tx40', 'ur10'])
def test_grams_are_named(name):
    (urdf,) = (path for path in URDFS if path.stem == name)
    text = re.sub(
        r'<mass value="([^"]*)"', lambda m: f'<mass value="{1e3 * float(m[1])}"', urdf.read_text()
    )
    (told,) = select(build_robot(text, RobotSettings()).warnings, 'masses_in_grams')
    assert 'grams' in render(told)


@pytest.mark.parametrize('factor', [1e6, 1e9])
def test_inertias_in_millimetres_are_named(factor):
    (urdf,) = (path for path in URDFS if path.stem == 'ur10')
    text = re.sub(
        '(i[xyz][xyz])="([^"]*)"',
        lambda m: f'{m[1]}="{factor * float(m[2])}"',
        urdf.read_text(),
    )
    (told,) = select(build_robot(text, RobotSettings()).warnings, 'inertias_in_other_unit')
    assert 'kg·mm²' in render(told)


def test_angles_in_degrees_are_refused():
    (urdf,) = (path for path in URDFS if path.stem == 'ur10')
    with pytest.raises(ModelError, match='three numbers in radians'):
        build_robot(scaled(urdf.read_text(), 'rpy', 180.0 / 3.14159), RobotSettings())
