"""
A session on a robot in Gazebo: gz_ros2_control in effort mode, then identify.launch.py.

Its joint states hold no efforts (NaN): a session takes for them what the controller commands, and
Gazebo applies.
"""

import os
from pathlib import Path
import tempfile

from launch import Action, LaunchContext, LaunchDescription
from launch.actions import (
    AppendEnvironmentVariable,
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    OpaqueFunction,
    RegisterEventHandler,
    SetLaunchConfiguration,
    Shutdown,
)
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from robotid_ros.exceptions import RobotIdError
from robotid_ros.files.configuration import Configuration, load
from robotid_ros.files.export.gazebo import BROADCASTER, prepare_gazebo
from robotid_ros.nodes.common.launch_files import (
    check_installed,
    include_session,
    robot_arguments,
    VIEWS,
)

HERE = Path(__file__).parent


def configured(context: LaunchContext) -> Configuration:
    """Read the configuration that the launch was given."""
    try:
        return load(LaunchConfiguration('config').perform(context))
    except RobotIdError as error:
        raise RuntimeError(str(error)) from None


def robot(context: LaunchContext) -> list:
    """Spawn the robot, its controllers, and the session once they are active."""
    configuration = configured(context)
    try:
        parameters = Path(tempfile.mkdtemp(prefix='robotid_')) / 'controllers.yaml'
        description = prepare_gazebo(configuration, parameters)
    except RobotIdError as error:
        raise RuntimeError(str(error)) from None
    controller = configuration.simulation.controller
    spawner = Node(
        package='controller_manager',
        executable='spawner',
        arguments=[BROADCASTER, controller, '--param-file', str(parameters)],
    )
    create = Node(
        package='ros_gz_sim',
        executable='create',
        arguments=['-topic', 'robot_description', '-name', configuration.robot.name or 'robot'],
    )
    return [
        Node(
            package='robot_state_publisher',
            executable='robot_state_publisher',
            parameters=[
                {
                    # Without a type, launch takes a text for YAML.
                    'robot_description': ParameterValue(description, value_type=str),
                    'use_sim_time': True,
                }
            ],
        ),
        create,
        after(create, spawner, 'the robot was not spawned: see what Gazebo says'),
        after(spawner, include_session(HERE), 'the controllers are not active: see what they say'),
    ]


def after(process: Node, action: Action, failure: str) -> RegisterEventHandler:
    """Begin an action when a process has done its work, and end the launch when it has failed."""

    def ended(event: ProcessExited, _: LaunchContext) -> list[Action]:
        return [action] if event.returncode == 0 else [Shutdown(reason=failure)]

    return RegisterEventHandler(OnProcessExit(target_action=process, on_exit=ended))


def check_views(context: LaunchContext) -> None:
    """Check that what is to be opened with the session is installed, before anything starts."""
    for kind in VIEWS:
        if context.launch_configurations.get(kind) == 'true':
            check_installed(kind)


def meshes(context: LaunchContext) -> list[Action]:
    """Let Gazebo find the packages of the meshes, which it looks for in a variable of its own."""
    folders = list(configured(context).excitation.workspace.mesh_folders)
    variables = {'AMENT_PREFIX_PATH': 'share', 'ROS_PACKAGE_PATH': ''}
    for name, below in variables.items():
        prefixes = os.environ.get(name, '').split(os.pathsep)
        folders += [os.path.join(prefix, below) for prefix in prefixes if prefix]
    return [AppendEnvironmentVariable('GZ_SIM_RESOURCE_PATH', folder) for folder in folders]


def generate_launch_description() -> LaunchDescription:
    """Describe the launch; arguments that are not declared here are those of the session."""
    gazebo = PathJoinSubstitution([FindPackageShare('ros_gz_sim'), 'launch', 'gz_sim.launch.py'])
    arguments = [
        *robot_arguments(HERE.parent / 'config'),
        DeclareLaunchArgument(
            'gz_args', default_value='-r empty.sdf', description='of Gazebo; -s: without a window'
        ),
        SetLaunchConfiguration('use_sim_time', 'true'),
    ]
    return LaunchDescription(
        [
            *arguments,
            OpaqueFunction(function=check_views),
            OpaqueFunction(function=meshes),
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(gazebo),
                launch_arguments={
                    'gz_args': LaunchConfiguration('gz_args'),
                    'on_exit_shutdown': 'true',
                }.items(),
            ),
            Node(
                package='ros_gz_bridge',
                executable='parameter_bridge',
                arguments=['/clock@rosgraph_msgs/msg/Clock[gz.msgs.Clock'],
            ),
            OpaqueFunction(function=robot),
        ]
    )
