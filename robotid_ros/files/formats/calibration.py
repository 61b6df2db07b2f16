"""Calibration files of LeRobot, with which normalised positions become angles."""

from collections.abc import Mapping
import json
import math
from pathlib import Path

from ...exceptions import FileError
from ..atomic import read_text

# Steps of a turn less one, as LeRobot counts, of the servos of its arms.
STEPS_OF_TURN = 4095
# The motor that LeRobot scales to 0 to 100, whatever the units of the others.
GRIPPER = 'gripper'


def read_calibration(
    path: str | Path, degrees: bool = False
) -> tuple[tuple[str, float, float], ...]:
    """
    Return, of each motor, its name, rad per unit, and the unit that is the middle of its range.

    That is where LeRobot puts the angle 0, but of a gripper. Units are -100 to 100 of the range,
    degrees where `degrees` says so, and 0 to 100 of a gripper.

    Raises
    ------
    FileError : the file is missing, or is no calibration

    """
    try:
        content = json.loads(read_text(path))
        return tuple(_motor(name, values, degrees) for name, values in content.items())
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError) as error:
        raise FileError(
            f"'{path}' is no calibration of LeRobot ({type(error).__name__}: {error}): give "
            'calibration/robots/TYPE/ID.json, with range_min and range_max of each motor'
        ) from error


def _motor(name: str, values: Mapping[str, float], degrees: bool) -> tuple[str, float, float]:
    low, high = float(values['range_min']), float(values['range_max'])
    if not low < high:
        raise ValueError(f'the range of {name} is empty')
    if degrees and name != GRIPPER:
        return name, math.radians(1.0), 0.0
    sign = -1.0 if values.get('drive_mode') else 1.0
    units = 100.0 if name == GRIPPER else 200.0
    factor = sign * (high - low) / units * 2.0 * math.pi / STEPS_OF_TURN
    return name, factor, 50.0 if name == GRIPPER else 0.0
