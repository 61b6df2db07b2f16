"""
The library: what `import robotid_ros as rid` offers.

From any log, or from arrays, and a robot description to validated parameters and files.
Everything here stands on `core/` and `files/`, whose functions take the same values and say more.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .core.excitation.design import Design, design as design_trajectory
from .core.excitation.limits import check_joints
from .core.identification_settings import IdentificationSettings
from .core.model import build_robot, dynamics, Robot
from .core.parameters.standard import basic_solution
from .core.pipeline import identification as pipeline
from .core.pipeline.identification import Identification
from .core.pipeline.observation import validate as validate_parameters
from .core.regression.validation import Validation
from .core.signals.recording import Recording
from .exceptions import ConfigurationError, RecordingError, UnknownNameError
from .files.bags import ChunkedRecording, open_recording
from .files.configuration import Configuration, from_mapping, read_mapping, read_urdf
from .files.export.identified_model import read_identified_model
from .files.formats.read_options import QUANTITIES, ReadOptions
from .files.identification_input import open_input, split
from .files.robot_description import read_description
from .files.trajectory_file import write_design

PathLike: TypeAlias = str | Path
Log: TypeAlias = Recording | ChunkedRecording
CONFIGURATION_SUFFIXES = ('.yaml', '.yml')


def load(
    path: PathLike,
    joints: Sequence[str] = (),
    *,
    urdf: PathLike | None = None,
    columns: dict[str, str] | None = None,
    units: dict[str, str] | None = None,
    rate: float = 0.0,
    effort_topic: str = '',
) -> Log:
    """
    Read a log: a bag of ROS 2 or ROS 1, CSV, npz, MAT, HDF5, Parquet.

    The recording is one in chunks where it is too long for memory. Both can be cut:
    `.between(start, stop)` [s], `.phase('exciting')`. RecordingError: it cannot be read, or holds
    no positions and efforts of joints; UnknownNameError: a quantity that is none.

    Parameters
    ----------
    path : file or folder
    joints : to read, in this order; empty: all that were measured
    urdf : description whose joints a table's columns are of
    columns : patterns of columns by quantity, `{'position': 'q_*', 'effort': 'tau_*'}`
    units : by quantity, `{'position': 'deg', 'effort': 'A*0.12'}`
    rate : of a table without stamps [Hz]
    effort_topic : topic, or 'topic:field', of a bag that holds the efforts

    """
    columns, units, names = columns or {}, units or {}, tuple(joints)
    UnknownNameError.check('quantity', (*columns, *units), QUANTITIES)
    description = '' if urdf is None else read_description(urdf)
    pairs = tuple(columns.items()), tuple(units.items())
    options = ReadOptions(description, names, *pairs, rate, effort_topic)
    return open_recording(path, names or None, options=options)


def from_arrays(
    time: ArrayLike,
    position: ArrayLike,
    effort: ArrayLike,
    *,
    joints: Sequence[str],
    velocity: ArrayLike | None = None,
    source: str = 'arrays',
) -> Recording:
    """
    Make a recording of arrays; RecordingError: their shapes do not fit each other.

    Parameters
    ----------
    time : (N,) stamps [s], ascending; steps may differ
    position : (N, n) [rad or m]; of one joint (N,) will do
    effort : (N, n) torques or forces [N·m or N]; NaN where a value is missing
    joints : names of the columns, those of the description
    velocity : (N, n) [rad/s or m/s], where it was measured
    source : where they come from, for messages

    """
    stamps = np.array(time, dtype=float).ravel()
    given = {'position': position, 'effort': effort}
    given |= {} if velocity is None else {'velocity': velocity}
    arrays = {name: np.array(values, dtype=float) for name, values in given.items()}
    for name, array in arrays.items():
        arrays[name] = array = array[:, None] if array.ndim == 1 else array
        if array.shape != (stamps.size, len(joints)):
            raise RecordingError(
                f'{name} has the shape {array.shape}: give a row for each of {stamps.size} '
                f'stamps and a column for each of {len(joints)} joints'
            )
    columns = arrays['position'], arrays['effort'], arrays.get('velocity')
    return Recording(tuple(joints), stamps, *columns, source=source)


def load_robot(source: PathLike, log: Log | None = None, **settings: Any) -> Robot:
    """
    Build a robot.

    ConfigurationError: an unknown key, or no description; RobotIdError: the description cannot be
    read, or does not fit the log.

    Parameters
    ----------
    source : file of a URDF, a xacro or a configuration, or the text of a URDF
    log : what it will be identified from: joints that it lacks, or that rest in it, are locked
    settings : keys of `robot` in the configuration, such as `joints`, `gravity`, `friction`

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

    """
    recording = load(log) if isinstance(log, str | Path) else log
    robot = open_input([recording]).robot if robot is None else robot
    built = robot if isinstance(robot, Robot) else load_robot(robot, recording)
    fitted, other = split(_of_robot(recording, built))
    if validation is not None:
        other = _of_robot(validation, built)
    # Of the log's own session, with what is given in their place.
    values = _merged((recording.configuration or {}).get('identification'), settings)
    own = from_mapping({'identification': values}).identification
    return pipeline.identify(fitted, built, own, other)


def validate(
    log: Log | PathLike, parameters: Identification | ArrayLike, robot: Robot | None = None
) -> Validation:
    """
    Predict the efforts of a log.

    ConfigurationError: parameters without a robot, or as many as it does not have; RecordingError:
    the log cannot be used.

    Parameters
    ----------
    log : another motion than the one that identified; of a session, its validation counts
    parameters : an identification, or (p,) standard parameters of `robot`
    robot : where parameters are given; `robot.prior` are those of its description

    """
    if isinstance(parameters, Identification):
        robot = parameters.robot
        parameters = basic_solution(parameters.base, parameters.estimate.value)
    if robot is None:
        raise ConfigurationError('parameters need a robot: give it too')
    chi = np.asarray(parameters, dtype=float)
    if chi.shape != (robot.p,):
        raise ConfigurationError(
            f'{chi.size} parameters for a robot of {robot.p}: give one for each of '
            'robot.parameters'
        )
    fitted, other = split(_of_robot(log, robot))
    return validate_parameters(other or fitted, robot, chi, IdentificationSettings())


def design(robot: Robot | PathLike, **settings: Any) -> Design:
    """
    Design the motion that identifies a robot, and one that validates.

    RobotIdError: limits contradict each other, or nothing feasible was found.

    Parameters
    ----------
    robot : or its description
    settings : keys of `excitation` in the configuration, such as `period`, `order`,
        `workspace={'ground': 0.0}`, `time_limit`

    """
    built, configuration = _designed_for(robot, settings)
    return design_trajectory(built, configuration.excitation)


def save_design(design: Design, robot: Robot | PathLike, path: PathLike, **settings: Any) -> Path:
    """
    Write trajectory.yaml, and beside it a page that shows the arm along the motion; return that.

    RobotIdError: Bokeh is missing, a file cannot be written, or the design is another robot's.

    Parameters
    ----------
    design : what to write
    robot, settings : what it was designed with, as `design` took them
    path : of the trajectory; the page has its name, too, and ends in .html; files of the same
        names are replaced

    """
    from .files.report.page import page_beside, save_page

    built, configuration = _designed_for(robot, settings)
    page = page_beside(path)
    check_joints(built, design.trajectory.joints)
    write_design(path, design)
    return save_page('design', page, design, built, configuration)


def _designed_for(
    robot: Robot | PathLike, settings: dict[str, Any]
) -> tuple[Robot, Configuration]:
    built, source = (robot, '') if isinstance(robot, Robot) else (load_robot(robot), robot)
    return built, _configured(source, 'excitation', settings)


class InverseDynamics(dynamics.RobotDynamics):
    """`core.model.dynamics.RobotDynamics`, which says more, of an identification."""

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


def _of_robot(log: Log | PathLike, robot: Robot) -> Log:
    """Return the log of a robot's joints, in its order; it may be a file to `load`."""
    log, names = load(log) if isinstance(log, str | Path) else log, tuple(robot.recorded_joints)
    if isinstance(log, Recording):
        return log.select(names)
    if log.joints != names:
        raise RecordingError(
            f"'{log.source}' is too long for memory and has other joints than the robot: load it "
            f'with joints={list(names)}'
        )
    return log
