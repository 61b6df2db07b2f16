"""A whole session on the simulated robot: identify.launch.py beside a robot from its URDF."""

from pathlib import Path

from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    OpaqueFunction,
    SetLaunchConfiguration,
    Shutdown,
)
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import Parameter

HERE = Path(__file__).parent
CONFIG = HERE.parent / 'config'


def clock(context: LaunchContext) -> list[SetLaunchConfiguration]:
    """Let the session follow the robot's clock where it is not the wall's."""
    return [SetLaunchConfiguration('use_sim_time', 'false' if factor(context) == 1.0 else 'true')]


def robot(context: LaunchContext) -> list[Node]:
    """Start the robot; when it ends, the session does."""
    overrides = [Parameter('simulation.real_time_factor', factor(context))]
    if controller := LaunchConfiguration('controller').perform(context):
        overrides.append(Parameter('simulation.controller', controller))
    return [
        Node(
            package='robotid_ros',
            executable='simulated_robot',
            output='both',
            emulate_tty=True,
            parameters=[LaunchConfiguration('config').perform(context), *overrides],
            ros_arguments=['--log-level', LaunchConfiguration('log_level')],
            on_exit=Shutdown(reason='simulated_robot ended'),
        )
    ]


def factor(context: LaunchContext) -> float:
    """Real-time factor as a number."""
    text = LaunchConfiguration('real_time_factor').perform(context)
    try:
        return float(text)
    except ValueError:
        raise RuntimeError(f'real_time_factor:={text} is not a number, such as 2.0') from None


def generate_launch_description() -> LaunchDescription:
    """Describe the launch; arguments that are not declared here are those of the session."""
    robots = sorted(path.stem for path in CONFIG.glob('*.yaml'))
    arguments = [
        DeclareLaunchArgument(
            'robot', default_value='tx40', choices=robots, description='a robot of this package'
        ),
        DeclareLaunchArgument(
            'config',
            default_value=[str(CONFIG), '/', LaunchConfiguration('robot'), '.yaml'],
            description='configuration file of another robot',
        ),
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
    session = PythonLaunchDescriptionSource(str(HERE / 'identify.launch.py'))
    return LaunchDescription(
        [
            *arguments,
            OpaqueFunction(function=clock),
            IncludeLaunchDescription(
                session, launch_arguments={'config': LaunchConfiguration('config')}.items()
            ),
            OpaqueFunction(function=robot),
        ]
    )
