"""Configuration: one YAML file per robot, in ROS 2 parameter-file format."""

from collections.abc import Mapping
import dataclasses
from dataclasses import dataclass
import os
from pathlib import Path
import sys
from typing import Any
from urllib.parse import unquote

from ..core.model import RobotSettings
from ..exceptions import ConfigurationError, FileError, shortened
from ..node_settings import (
    ExcitationNodeSettings,
    FeedForwardSettings,
    FleetSettings,
    ForceTorqueSettings,
    GravityCompensationSettings,
    IdentificationNodeSettings,
    LiveSettings,
    RecorderSettings,
)
from ..settings import parse, setting
from ..simulation_settings import SimulationSettings
from .atomic import read_text
from .robot_description import read_description
from .yaml import parse_yaml

PACKAGE = 'robotid_ros'
# Declared by every ROS node; a parameter file may hold them next to the package's own groups.
_ROS_PARAMETERS = (
    *('use_sim_time', 'qos_overrides'),
    *('start_type_description_service', 'robot_description'),
)


@dataclass(frozen=True)
class Configuration:
    """Everything a user can set for one robot; each group belongs to the code that reads it."""

    robot: RobotSettings = setting(RobotSettings, 'the robot and its dynamic model')
    excitation: ExcitationNodeSettings = setting(ExcitationNodeSettings, 'the motion to run')
    recorder: RecorderSettings = setting(RecorderSettings, 'what is recorded, and where to')
    identification: IdentificationNodeSettings = setting(
        IdentificationNodeSettings, 'the estimation'
    )
    feedforward: FeedForwardSettings = setting(
        FeedForwardSettings, 'goals of others with the identified efforts'
    )
    force_torque: ForceTorqueSettings = setting(
        ForceTorqueSettings, 'a force-torque sensor without what hangs at it'
    )
    gravity_compensation: GravityCompensationSettings = setting(
        GravityCompensationSettings, 'hand guiding with the identified model'
    )
    live: LiveSettings = setting(LiveSettings, 'the session in a browser')
    simulation: SimulationSettings = setting(SimulationSettings, 'the simulated robot')
    fleet: FleetSettings = setting(FleetSettings, 'how the bags of many robots are worked on')


def load(path: str | Path) -> Configuration:
    """Read a configuration file; the paths of the URDF and of mesh folders become absolute."""
    return load_with_mapping(path)[1]


def load_with_mapping(path: str | Path) -> tuple[dict[str, Any], Configuration]:
    """Read a configuration file as `read_mapping` does, and check it as `load` does."""
    values = read_mapping(path)
    try:
        return values, from_mapping(values, Path(path).parent)
    except ConfigurationError as error:
        raise ConfigurationError(f"in '{path}': {error}") from error


def read_mapping(path: str | Path) -> dict[str, Any]:
    """Read the groups below `/**: ros__parameters:`, unchecked; what is wrong as of `load`."""
    text = read_text(path)
    if text.lstrip().startswith('<'):
        raise ConfigurationError(
            f"'{path}' is no configuration: give the .yaml that 'robotid init {path}' writes"
        )
    content = parse_yaml(text, str(path))
    shape = (
        "it must hold '/**:', below it 'ros__parameters:', below that the groups, as 'robotid "
        "init URDF' writes it"
    )
    for key in ('/**', 'ros__parameters'):
        if not isinstance(content, Mapping) or list(content) != [key]:
            found = isinstance(content, Mapping) and shortened([*map(str, content)])
            raise ConfigurationError(
                f"'{path}' is not a robot's parameter file ({found or 'no groups'}): {shape}"
            )
        content = content[key]
    if isinstance(content, Mapping):
        return dict(content)
    raise ConfigurationError(f"'{path}' has no groups below 'ros__parameters': {shape}")


def from_mapping(values: Mapping[str, Any], folder: str | Path | None = None) -> Configuration:
    """
    Check groups, {group: {key: value}}; parameters that every ROS node has are passed over.

    Relative paths start from `folder`, None: the working directory. Returns the configuration with
    absolute paths, and with the folders above the URDF among those of its meshes: a package that
    is no more than a checkout is found there. Raises ConfigurationError at an unknown key or a
    wrong type.
    """
    own = {key: value for key, value in values.items() if key not in _ROS_PARAMETERS}
    configuration = parse(Configuration, own)
    robot, excitation = configuration.robot, configuration.excitation
    folders = [resolve(name, folder) for name in excitation.workspace.mesh_folders]
    if robot.urdf:
        urdf = resolve(robot.urdf, folder)
        robot = dataclasses.replace(robot, urdf=str(urdf))
        folders += map(Path, mesh_folders(urdf))
    workspace = dataclasses.replace(excitation.workspace, mesh_folders=tuple(map(str, folders)))
    excitation = dataclasses.replace(excitation, workspace=workspace)
    return dataclasses.replace(configuration, robot=robot, excitation=excitation)


def read_urdf(configuration: Configuration) -> str | None:
    """Read the robot description that a configuration names, or None; as `read_description`."""
    return read_description(configuration.robot.urdf) if configuration.robot.urdf else None


def resolve(uri: str, folder: str | Path | None = None) -> Path:
    """Find a file by `package://`, `file://` or a path; FileError: no such package."""
    if uri.startswith('file://'):
        return Path(unquote(uri.removeprefix('file://')))
    if not uri.startswith('package://'):
        return (Path(folder or '.') / Path(uri).expanduser()).absolute()
    package, _, rest = uri.removeprefix('package://').partition('/')
    above = Path(__file__).resolve().parents
    if package == PACKAGE and (above[2] / 'package.xml').exists():
        return above[2] / unquote(rest)
    prefixes = [p for p in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if p]
    # A wheel may be anywhere: in an environment, for one user, below another prefix.
    for share in (Path(prefix, 'share') for prefix in (*prefixes, sys.prefix, *map(str, above))):
        if (share / 'ament_index' / 'resource_index' / 'packages' / package).exists():
            return share / package / unquote(rest)
    raise FileError(
        f"the package '{package}' is not installed: install it or source its workspace"
    )


def mesh_folders(urdf: Path) -> tuple[str, ...]:
    """Return where packages of a URDF's meshes may be besides ROS's folders: those above it."""
    return tuple(map(str, urdf.parents))
