"""What the launch files share: the choice of a robot, its session, a node of this package."""

from collections.abc import Sequence
import os
from pathlib import Path
from typing import Any

from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, Shutdown
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

# Whose keys a process has, where security is enabled: see docs/security.md.
ENCLAVE = 'ROS_SECURITY_ENCLAVE_OVERRIDE'


def robot_arguments(folder: Path) -> list[DeclareLaunchArgument]:
    """Arguments `robot`, a configuration in a folder, and `config`, the file of another robot."""
    robots = sorted(path.stem for path in folder.glob('*.yaml'))
    return [
        DeclareLaunchArgument(
            'robot', default_value='tx40', choices=robots, description='a robot of this package'
        ),
        DeclareLaunchArgument(
            'config',
            default_value=[str(folder), '/', LaunchConfiguration('robot'), '.yaml'],
            description='configuration file of another robot',
        ),
    ]


def include_session(folder: Path) -> IncludeLaunchDescription:
    """Include identify.launch.py of a folder; its further arguments are those of the launch."""
    return IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(folder / 'identify.launch.py')),
        launch_arguments={'config': LaunchConfiguration('config')}.items(),
    )


def package_node(name: str, parameters: Sequence[Any], log_level: Any) -> Node:
    """Start a node of this package in `namespace`; when it ends, the launch does."""
    # No `name`: it would rename every node of a process, the simulated robot's controller too.
    return Node(
        package='robotid_ros',
        executable=name,
        namespace=LaunchConfiguration('namespace'),
        output='both',
        emulate_tty=True,
        parameters=list(parameters),
        ros_arguments=['--log-level', log_level],
        # A variable and no argument: children of the node have it too.
        additional_env={ENCLAVE: os.environ.get(ENCLAVE) or f'/robotid/{name}'},
        on_exit=Shutdown(reason=f'{name} ended'),
    )
