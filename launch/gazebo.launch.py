"""
A session on a robot in Gazebo: gz_ros2_control in effort mode, then identify.launch.py.

Releases of gz_ros2_control that do not read the effort back leave it NaN in /joint_states: a
session then takes for it what the controller commands.
"""

from pathlib import Path
import tempfile

from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    OpaqueFunction,
    RegisterEventHandler,
    SetLaunchConfiguration,
)
from launch.event_handlers import OnProcessExit
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from robotid_ros.exceptions import RobotIdError
from robotid_ros.files.configuration import load
from robotid_ros.files.export.gazebo import BROADCASTER, prepare_gazebo
from robotid_ros.nodes.common.launch_actions import include_session, robot_arguments

HERE = Path(__file__).parent


def robot(context: LaunchContext) -> list:
    """Spawn the robot, its controllers, and the session once they are active."""
    try:
        configuration = load(LaunchConfiguration('config').perform(context))
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
        RegisterEventHandler(OnProcessExit(target_action=create, on_exit=[spawner])),
        RegisterEventHandler(
            OnProcessExit(target_action=spawner, on_exit=[include_session(HERE)])
        ),
    ]


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
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(gazebo),
                launch_arguments={'gz_args': LaunchConfiguration('gz_args')}.items(),
            ),
            Node(
                package='ros_gz_bridge',
                executable='parameter_bridge',
                arguments=['/clock@rosgraph_msgs/msg/Clock[gz.msgs.Clock'],
            ),
            OpaqueFunction(function=robot),
        ]
    )
