"""Descriptions in millimetres and degrees are refused, with the unit."""

from pathlib import Path
import re

import pytest

from robotid_ros.core.model import build_robot, RobotSettings
from robotid_ros.exceptions import ModelError

URDFS = sorted((Path(__file__).resolve().parents[3] / 'urdf').glob('*.urdf'))


def scaled(text, attribute, factor):
    def times(match):
        return f'{match[1]}"{" ".join(str(factor * float(x)) for x in match[2].split())}"'

    return re.sub(rf'({attribute}=)"([^"]*)"', times, text)


@pytest.mark.parametrize('name', ['arm3', 'tx40', 'ur10'])
def test_millimetres_are_refused(name):
    (urdf,) = (path for path in URDFS if path.stem == name)
    with pytest.raises(ModelError, match='not in millimetres'):
        build_robot(scaled(urdf.read_text(), 'xyz', 1e3), RobotSettings())


def test_angles_in_degrees_are_refused():
    (urdf,) = (path for path in URDFS if path.stem == 'ur10')
    with pytest.raises(ModelError, match='three numbers in radians'):
        build_robot(scaled(urdf.read_text(), 'rpy', 180.0 / 3.14159), RobotSettings())
