"""
The library: what `import robotid_ros as rid` offers.

From any log, or from arrays, and a robot description to validated parameters, files and figures.
Everything here stands on `core/` and `files/`, whose functions take the same values and say more.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .core.excitation import Design, design as design_trajectory
from .core.excitation.limits import check_joints
from .core.identification_settings import IdentificationSettings
from .core.model import build_robot, Robot, robot_dynamics
from .core.parameters.standard import basic_solution
from .core.pipeline import identification as pipeline
from .core.pipeline.results import Identification
from .core.pipeline.validation import validate as validate_parameters
from .core.regression.goodness_of_fit import Validation
from .exceptions import ConfigurationError
from .files.configuration import Configuration, from_mapping, read_mapping, read_urdf
from .files.export.identified_model import read_identified_model
from .files.identification_input import open_input, split
from .files.results import Results
from .files.robot_description import read_description
from .files.save_results import save as save_results
from .files.trajectory_file import write_design
from .logs import Log, of_robot, opened, PathLike

CONFIGURATION_SUFFIXES = ('.yaml', '.yml')


def load_robot(source: PathLike, log: Log | None = None, **settings: Any) -> Robot:
    """
    Build a robot.

    Parameters
    ----------
    source : file of a URDF, a xacro or a configuration, or the text of a URDF
    log : what it will be identified from: joints that it lacks, or that rest in it, are locked
    settings : keys of `robot` in the configuration, such as `joints`, `gravity`, `friction`

    Raises
    ------
    ConfigurationError : an unknown key, or no description
    RobotIdError : the description cannot be read, or does not fit the log

    """
    is_text = isinstance(source, str) and source.lstrip().startswith('<')
    configuration = _configured('' if is_text else source, 'robot', settings)
    text = read_urdf(configuration)
    if text is None and Path(source).suffix in CONFIGURATION_SUFFIXES and not is_text:
        raise ConfigurationError(f"'{source}' names no URDF: set robot.urdf")
    if text is None:
        text = str(source) if is_text else read_description(source)
    if log is None:
        return build_robot(text, configuration.robot)
    return open_input([log], configuration, text).robot


def identify(
    log: Log | PathLike,
    robot: Robot | PathLike | None = None,
    validation: Log | PathLike | None = None,
    **settings: Any,
) -> Identification:
    """
    Identify a robot.

    Parameters
    ----------
    log : recording, or a file to `load`; of a session, its excitation counts and its validation
        motion validates
    robot : or its description; None: the description in the log
    validation : another motion; None: that of the session, if it is one
    settings : keys of `identification` in the configuration, such as `method='didim'` or
        `signals={'cutoff': 20.0}`; what is left out is chosen

    Raises
    ------
    RobotIdError : with the remedy

    """
    recording = opened(log)
    built = _robot_of(recording, robot)
    fitted, other = split(of_robot(recording, built))
    if validation is not None:
        other = of_robot(opened(validation), built)
    return pipeline.identify(fitted, built, _identification_settings(recording, settings), other)


def validate(
    log: Log | PathLike, parameters: Identification | ArrayLike, robot: Robot | None = None
) -> Validation:
    """
    Predict the efforts of a log.

    Parameters
    ----------
    log : another motion than the one that identified; of a session, its validation counts
    parameters : an identification, or (p,) standard parameters of `robot`
    robot : where parameters are given; `robot.prior` are those of its description

    Raises
    ------
    ConfigurationError : parameters without a robot, or as many as it does not have
    RecordingError : the log cannot be used

    """
    if isinstance(parameters, Identification):
        found = parameters
        chi = basic_solution(found.base, found.estimate.value)
        robot = found.robot
    elif robot is None:
        raise ConfigurationError('parameters are of a robot: give it, too')
    else:
        chi = np.asarray(parameters, dtype=float)
        if chi.shape != (robot.p,):
            raise ConfigurationError(
                f'{chi.size} parameters for a robot of {robot.p}: give one for each of '
                'robot.parameters'
            )
    fitted, other = split(of_robot(opened(log), robot))
    return validate_parameters(other or fitted, robot, chi, IdentificationSettings())


def design(robot: Robot | PathLike, **settings: Any) -> Design:
    """
    Design the motion that identifies a robot, and one that validates.

    Parameters
    ----------
    robot : or its description
    settings : keys of `excitation` in the configuration, such as `period`, `order`,
        `workspace={'ground': 0.0}`, `time_limit`

    Raises
    ------
    RobotIdError : limits that contradict each other, nothing feasible found

    """
    built, source = (robot, '') if isinstance(robot, Robot) else (load_robot(robot), robot)
    return design_trajectory(built, _configured(source, 'excitation', settings).excitation)


def save_design(design: Design, robot: Robot | PathLike, path: PathLike, **settings: Any) -> Path:
    """
    Write trajectory.yaml, and beside it a page that shows the arm along the motion.

    Parameters
    ----------
    design : what to write
    robot, settings : what it was designed with, as `design` took them
    path : of the trajectory; the page has its name, too, and ends in .html; files of the same
        names are replaced

    Returns
    -------
    The page.

    Raises
    ------
    RobotIdError : Bokeh is not installed, a file cannot be written, or the design is another
        robot's

    """
    from .files.report.page import page_beside, write_design_page

    built, source = (robot, '') if isinstance(robot, Robot) else (load_robot(robot), robot)
    page = page_beside(path)
    check_joints(built, design.trajectory.joints)
    write_design(path, design)
    return write_design_page(page, design, built, _configured(source, 'excitation', settings))


class InverseDynamics(robot_dynamics.RobotDynamics):
    """`core.model.robot_dynamics.RobotDynamics`, which says more, of an identification."""

    @classmethod
    def load(cls, path: PathLike) -> 'InverseDynamics':
        """
        Read what an identification has written.

        Parameters
        ----------
        path : parameters.yaml with identified.urdf beside it, or their folder

        Raises
        ------
        RobotIdError : a file is missing or cannot be read, or the robot has springs

        """
        model = read_identified_model(path)
        return cls(model.robot, model.chi)


def save(result: Identification, log: Log, folder: PathLike) -> Results:
    """
    Write parameters.yaml, identified.urdf, torques.npz and report.html.

    Parameters
    ----------
    result : what was found
    log : where from
    folder : made when missing; files of the same names are replaced

    Raises
    ------
    FileError : the folder cannot be written

    """
    return save_results(result, log, folder)


def plot(result: Identification | Validation, path: PathLike | None = None) -> Any:
    """
    Draw measured and predicted efforts, and what is left, joint by joint.

    Parameters
    ----------
    result : of an identification its validation is drawn, else its fit
    path : of a picture to write: png, svg or pdf

    Returns
    -------
    matplotlib's `Figure`, which a notebook shows.

    Raises
    ------
    FileError : the picture cannot be written, or its name says no format

    """
    from .files.report.figures import draw_torques, write_picture

    if isinstance(result, Identification):
        result = result.validation or result.fitted
    figure = draw_torques(result)
    if path is not None:
        write_picture(path, figure)
    return figure


def _configured(source: PathLike, group: str, settings: dict[str, Any]) -> Configuration:
    """Return the configuration in a file, with settings of a group in place of its own."""
    path = Path(source)
    values = read_mapping(path) if path.suffix in CONFIGURATION_SUFFIXES else {}
    return from_mapping({**values, group: _merged(values.get(group), settings)}, path.parent)


def _merged(own: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Put settings in the place of others; those of a group one by one."""
    own = dict(own or {})
    groups = {k: {**own[k], **v} for k, v in settings.items() if isinstance(own.get(k), dict)}
    return {**own, **settings, **groups}


def _robot_of(log: Log, robot: Robot | PathLike | None) -> Robot:
    if isinstance(robot, Robot):
        return robot
    if robot is not None:
        return load_robot(robot, log)
    return open_input([log]).robot


def _identification_settings(log: Log, settings: dict[str, Any]) -> IdentificationSettings:
    """Return those of the log's own session, with what is given in their place."""
    values = _merged((log.configuration or {}).get('identification'), settings)
    return from_mapping({'identification': values}).identification
