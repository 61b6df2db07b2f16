"""What was identified, from its files, as a model of the robot that is here now."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ....core.arrays import Array
from ....core.model import build_robot, Robot, RobotSettings
from ....exceptions import ControllerError, FileError
from ....files.results import chosen_settings, Results
from ....files.results_file import read_results


class IdentifiedModel(NamedTuple):
    """
    Identified parameters on their model.

    Parameters
    ----------
    folder : of the results
    results : as they are in the files
    urdf, settings : what the model is built from
    robot : with the friction that was chosen
    chi : (p,) standard parameters that give the identified torques, others zero
    consistent : (p,) standard parameters of bodies that can exist

    """

    folder: Path
    results: Results
    urdf: str
    settings: RobotSettings
    robot: Robot
    chi: Array
    consistent: Array


def load_model(folder: Path, urdf: str, settings: RobotSettings) -> IdentifiedModel:
    """
    Read results.

    Parameters
    ----------
    folder : of the results
    urdf, settings : of the robot that is here

    Raises
    ------
    FileError : there are none, or of another robot

    """
    results = read_results(folder)
    chosen = chosen_settings(settings, results)
    robot = build_robot(urdf, chosen)
    if results.joints not in (robot.joints, robot.recorded_joints):
        raise FileError(
            f"'{folder}' is about {', '.join(results.joints)}, the robot has "
            f'{", ".join(robot.joints)}: identify it, or name its results in '
            'excitation.verification.results'
        )
    minimal = results.minimal_parameters
    full = {entry.name: entry.value for entry in results.standard}
    chi, consistent = (
        np.array([values.get(p.name, 0.0) for p in robot.parameters]) for values in (minimal, full)
    )
    return IdentifiedModel(folder, results, urdf, chosen, robot, chi, consistent)


def find_results(configured: str, told: str, folders: Sequence[str]) -> Path:
    """
    Find the folder of the results to verify.

    Parameters
    ----------
    configured : `excitation.verification.results`, '' for none
    told : by the identification, which may be anybody on the network; '' for none yet
    folders : below one of which that must be, links followed

    Raises
    ------
    ControllerError : there are none, or they are elsewhere

    """
    if configured:
        path = Path(configured).expanduser()
        return path.parent if path.is_file() else path
    if not told:
        raise ControllerError(
            'nothing is identified yet: run a session, or name results in '
            'excitation.verification.results'
        )
    path = Path(told).resolve()
    allowed = [Path(folder).expanduser().resolve() for folder in folders if folder]
    if not any(folder in path.parents for folder in allowed):
        raise ControllerError(
            "the identification's results are in none of recorder.folder, identification.folders "
            'and identification.output_dir of this node: name them in '
            'excitation.verification.results'
        )
    return path
