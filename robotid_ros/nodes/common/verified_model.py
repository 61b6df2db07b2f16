"""The model that nodes command or verify: what was identified, on the robot that is here."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pinocchio

from ...core.arrays import Array
from ...core.model import build_robot, Robot, RobotSettings
from ...exceptions import FileError
from ...files.atomic import is_below
from ...files.configuration import Configuration
from ...files.results import chosen_settings, read_results, Results, URDF

SAME_PLACE = 1e-3  # of a joint, in two descriptions of one arm [m or 1]


class VerifiedModel(NamedTuple):
    """Results in a folder; the robot with their friction; χ (p,) of torques, and of bodies."""

    folder: Path
    results: Results
    robot: Robot
    chi: Array
    consistent: Array


def load_model(folder: Path, urdf: str, settings: RobotSettings) -> VerifiedModel:
    """Read results onto the robot that is here; `FileError`: none, or those of another."""
    results = read_results(folder)
    settings = chosen_settings(settings, results)
    robot = build_robot(urdf, settings)
    if results.joints not in (robot.joints, robot.recorded_joints):
        raise FileError(
            f"'{folder}' has results of {', '.join(results.joints)}, the robot has "
            f'{", ".join(robot.joints)}: identify this robot, or name the folder of its results'
        )
    if (file := folder / URDF).exists():
        both = map(_joint_places, (robot, build_robot(file.read_text(), settings)))
        far = np.abs(np.subtract(*both)).max(axis=(1, 2)) > SAME_PLACE
        if far.any():
            raise FileError(
                f"'{folder}' has results of an arm whose "
                f'{robot.model.names[1 + int(np.argmax(far))]} has another position or axis: '
                'identify this robot, or correct its description'
            )
    return VerifiedModel(folder, results, robot, *parameters_of(results, robot))


def expect_own(folder: str, configuration: Configuration) -> Path:
    """Return a folder of results that anybody may have named; FileError: it is not of ours."""
    path, settings = Path(folder).resolve(), configuration.identification
    known = configuration.recorder.folder, *settings.folders, settings.output_dir
    if not is_below(path, filter(None, known)):
        raise FileError(
            f"'{folder}' is in none of recorder.folder, identification.folders and "
            'identification.output_dir of this node: set them as in the node identification'
        )
    return path


def parameters_of(results: Results, robot: Robot) -> tuple[Array, Array]:
    """Return parameters (p,) that give the identified torques, others 0, and those of bodies."""
    bodies = {entry.name: entry.value for entry in results.standard}
    chi, consistent = (
        np.array([values.get(p.name, 0.0) for p in robot.parameters])
        for values in (results.minimal_parameters, bodies)
    )
    return chi, consistent


def _joint_places(robot: Robot) -> Array:
    """Return the frames of the model's joints in the base, in a pose that is not zero."""
    data = robot.model.createData()
    pinocchio.forwardKinematics(robot.model, data, np.full(robot.model.nq, 0.5))
    return np.array([place.homogeneous for place in list(data.oMi)[1:]])
