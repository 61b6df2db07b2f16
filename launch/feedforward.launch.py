"""Goals of MoveIt or anybody with the identified efforts: the node feedforward."""

from pathlib import Path

from launch import Action, LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.parameter_descriptions import Parameter

from robotid_ros.nodes.common.launch_files import package_node

ARGUMENTS = [
    DeclareLaunchArgument('config', description="the robot's configuration file"),
    DeclareLaunchArgument('results', description='folder that an identification wrote'),
    DeclareLaunchArgument(
        'controller', default_value='', description="that moves the robot; empty: the file's"
    ),
    DeclareLaunchArgument(
        'namespace', default_value='', description='of the robot, such as /arm1'
    ),
    DeclareLaunchArgument(
        'use_sim_time',
        default_value='false',
        choices=['true', 'false'],
        description='time from /clock',
    ),
]


def relay(context: LaunchContext) -> list[Action]:
    """Start the node."""
    given = {a.name: LaunchConfiguration(a.name).perform(context) for a in ARGUMENTS}
    paths = {k: Path(given[k]).expanduser().absolute() for k in ('config', 'results')}
    for key, path in paths.items():
        if not path.exists():
            raise RuntimeError(f"'{path}' does not exist: give {key}:=…")
    parameters = [
        Parameter('feedforward.results', str(paths['results'])),
        Parameter('use_sim_time', given['use_sim_time'] == 'true'),
    ]
    if given['controller']:
        parameters.append(Parameter('excitation.controller', given['controller']))
    return [package_node('feedforward', [str(paths['config']), *parameters], 'info')]


def generate_launch_description() -> LaunchDescription:
    """Describe the launch."""
    return LaunchDescription([*ARGUMENTS, OpaqueFunction(function=relay)])
