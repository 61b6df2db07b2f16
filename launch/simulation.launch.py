"""A whole session on the simulated robot: identify.launch.py beside a robot from its URDF."""

from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, SetLaunchConfiguration
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import Parameter

from robotid_ros.nodes.common.launch_files import include_session, package_node, robot_arguments

HERE = Path(__file__).parent


def clock(context: LaunchContext) -> list[SetLaunchConfiguration]:
    """Let the session follow the robot's clock where it is not the wall's."""
    return [SetLaunchConfiguration('use_sim_time', 'false' if factor(context) == 1.0 else 'true')]


def robot(context: LaunchContext) -> list[Node]:
    """Start the robot; when it ends, the session does."""
    overrides = [Parameter('simulation.real_time_factor', factor(context))]
    if controller := LaunchConfiguration('controller').perform(context):
        overrides.append(Parameter('simulation.controller', controller))
    parameters = [LaunchConfiguration('config').perform(context), *overrides]
    return [package_node('simulated_robot', parameters, LaunchConfiguration('log_level'))]


def factor(context: LaunchContext) -> float:
    """Real-time factor as a number."""
    text = LaunchConfiguration('real_time_factor').perform(context)
    try:
        return float(text)
    except ValueError:
        raise RuntimeError(f'real_time_factor:={text} is not a number, such as 2.0') from None


def generate_launch_description() -> LaunchDescription:
    """Describe the launch; arguments that are not declared here are those of the session."""
    arguments = [
        *robot_arguments(HERE.parent / 'config'),
        DeclareLaunchArgument(
            'real_time_factor',
            default_value='1.0',
            description='speed of simulated time; 1.0: wall time, 0.0: as fast as it goes',
        ),
        DeclareLaunchArgument(
            'auto_start',
            default_value='true',
            choices=['true', 'false'],
            description='start the excitation at once; false: wait for excitation/start',
        ),
    ]
    return LaunchDescription(
        [
            *arguments,
            SetLaunchConfiguration('simulated', 'true'),
            OpaqueFunction(function=clock),
            include_session(HERE),
            OpaqueFunction(function=robot),
        ]
    )
