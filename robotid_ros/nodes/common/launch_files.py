"""What the launch files share: the choice of a robot, its session, nodes, and views of them."""

from functools import partial
import os
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_prefix, PackageNotFoundError
from launch import Action, actions, LaunchContext, LaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import Parameter

from ...core.model import build_robot
from ...exceptions import RobotIdError
from ...files.atomic import write_text
from ...files.configuration import load, read_urdf
from ...files.view_layouts import foxglove_layout, normal_namespace, plotjuggler_layout

# Whose keys a process has, where security is enabled: see docs/security.md.
ENCLAVE = 'ROS_SECURITY_ENCLAVE_OVERRIDE'
# The bridge to Foxglove listens to this machine alone, and nobody publishes, sets parameters or
# calls a service through it. It keeps a whole validation, which is published at once.
FOXGLOVE = {
    'address': '127.0.0.1',
    'port': 8765,
    'capabilities': ['connectionGraph'],
    'max_qos_depth': 20000,
}
# The program of each view: its package, which is its name, and what Debian package it comes in.
VIEWS = {
    'plotjuggler': ('plotjuggler', 'plotjuggler-ros'),
    'foxglove': ('foxglove_bridge', 'foxglove-bridge'),
}


def _argument(name: str, description: str, **options: Any) -> actions.DeclareLaunchArgument:
    return actions.DeclareLaunchArgument(name, description=description, **options)


def robot_arguments(folder: Path) -> list[actions.DeclareLaunchArgument]:
    """Arguments `robot`, a configuration in a folder, and `config`, the file of another robot."""
    robots = sorted(path.stem for path in folder.glob('*.yaml'))
    chosen = [str(folder), '/', LaunchConfiguration('robot'), '.yaml']
    return [
        _argument('robot', 'a robot of this package', default_value='tx40', choices=robots),
        _argument('config', 'configuration file of another robot', default_value=chosen),
    ]


def end_launch(reason: str) -> list[Action]:
    """End the launch and say why, which Shutdown keeps to itself."""
    return [actions.LogInfo(msg=f'{reason}: the launch ends'), actions.Shutdown(reason=reason)]


def include_session(folder: Path) -> actions.IncludeLaunchDescription:
    """Include identify.launch.py of a folder; its further arguments are those of the launch."""
    return actions.IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(folder / 'identify.launch.py')),
        launch_arguments={'config': LaunchConfiguration('config')}.items(),
    )


def package_node(name: str, parameters: list[Any], log_level: Any, *, alone: bool = False) -> Node:
    """Start a node in `namespace`; when it ends, the launch does unless it stands `alone`."""
    # No `name`: it would rename every node of a process, the simulated robot's controller too.
    return Node(
        package='robotid_ros',
        executable=name,
        namespace=LaunchConfiguration('namespace'),
        output='both',
        emulate_tty=True,
        parameters=parameters,
        ros_arguments=['--log-level', log_level],
        # A variable and no argument: children of the node have it too.
        additional_env={ENCLAVE: os.environ.get(ENCLAVE) or f'/robotid/{name}'},
        on_exit=None if alone else end_launch(f'{name} ended'),
    )


def model_launch(name: str) -> LaunchDescription:
    """Describe a launch of a node that commands efforts of an identified model."""
    off = {'default_value': 'false', 'choices': ['true', 'false']}
    arguments = [
        _argument('config', "the robot's configuration file"),
        _argument('results', 'folder that an identification wrote'),
        _argument('controller', "that moves the robot; empty: the file's", default_value=''),
        _argument('namespace', 'of the robot, such as /arm1', default_value=''),
        _argument('use_sim_time', 'time from /clock', **off),
    ]

    def start(context: LaunchContext) -> list[Action]:
        given = {a.name: LaunchConfiguration(a.name).perform(context) for a in arguments}
        paths = {k: Path(given[k]).expanduser().absolute() for k in ('config', 'results')}
        for key, path in paths.items():
            if not path.exists():
                raise RuntimeError(f"'{path}' does not exist: give {key}:=…")
        parameters = [
            Parameter(f'{name}.results', str(paths['results'])),
            Parameter('use_sim_time', given['use_sim_time'] == 'true'),
        ]
        if given['controller']:
            parameters.append(Parameter('excitation.controller', given['controller']))
        return [package_node(name, [str(paths['config']), *parameters], 'info')]

    return LaunchDescription([*arguments, actions.OpaqueFunction(function=start)])


def view_actions(
    kind: str, config: Path, namespace: str = '', controller: str = ''
) -> list[Action]:
    """Open one of `VIEWS` of a robot; `RuntimeError`: no program, no configuration, or no URDF."""
    check_installed(kind)
    try:
        configuration = load(config)
        controller = controller or configuration.excitation.controller
        urdf = read_urdf(configuration)
        if urdf is None:
            raise RobotIdError(f"{kind}:=true needs a description: set robot.urdf in '{config}'")
        robot, place = build_robot(urdf, configuration.robot), normal_namespace(namespace)
        program, _ = VIEWS[kind]
        view = partial(Node, package=program, executable=program)
        if kind == 'plotjuggler':
            # Motion and efforts, measured and predicted, while they are published.
            text = plotjuggler_layout(robot.joints, place)
            layout = _write(text, 'plotjuggler.xml', robot.name, place)
            return [view(arguments=['--layout', str(layout)])]
        text = foxglove_layout(robot.joints, controller, place)
        layout = _write(text, 'foxglove.json', robot.name, place, controller)
    except RobotIdError as error:
        raise RuntimeError(str(error)) from None
    where = f'ws://localhost:{FOXGLOVE["port"]}'
    told = actions.LogInfo(msg=f"Foxglove: open {where}, and import the layout '{layout}'")
    return [view(parameters=[FOXGLOVE]), told]


def check_installed(kind: str) -> None:
    """Check that a view can be opened, before anything else is started: `RuntimeError`."""
    package, debian = VIEWS[kind]
    try:
        get_package_prefix(package)
    except PackageNotFoundError:
        remedy = f'apt install ros-{os.environ.get("ROS_DISTRO", "jazzy")}-{debian}'
        raise RuntimeError(f'{kind}:=true needs the package {package}: {remedy}') from None


def _write(text: str, name: str, *of: str) -> Path:
    """Write a layout where ROS keeps what it writes by itself; an earlier one is renewed."""
    home = Path(os.environ.get('ROS_HOME') or '~/.ros').expanduser() / 'robotid_ros'
    home.mkdir(parents=True, exist_ok=True)
    words = [word for part in of for word in part.split('/') if word]
    return write_text(home / '_'.join([*words, name]), text)
