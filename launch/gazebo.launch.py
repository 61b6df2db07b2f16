"""
A session on a robot in Gazebo: gz_ros2_control in effort mode, then identify.launch.py.

Its joint states hold no efforts (NaN): a session takes for them what the controller commands, and
Gazebo applies. Gains are lowered to what the bodies of the description bear, for Gazebo has no
rotors. On a busy machine the controller's clock lags: a lower real_time_factor helps.
"""

import os
from pathlib import Path
import shlex
import tempfile

from launch import Action, LaunchContext, LaunchDescription
from launch.actions import (
    AppendEnvironmentVariable,
    DeclareLaunchArgument,
    ExecuteProcess,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    SetLaunchConfiguration,
    TimerAction,
)
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from robotid_ros.exceptions import RobotIdError
from robotid_ros.files.configuration import Configuration, load
from robotid_ros.files.export.gazebo import (
    BROADCASTER,
    gazebo_configuration,
    prepare_gazebo,
    WORLD,
)
from robotid_ros.nodes.common.launch_files import (
    check_installed,
    end_launch,
    include_session,
    robot_arguments,
    VIEWS,
)

HERE = Path(__file__).parent
# How long Gazebo may take to begin, and to hold the robot, and its controllers to be there [s].
START_TIME = 60.0


def configured(context: LaunchContext) -> Configuration:
    """Read the configuration that the launch was given."""
    try:
        return load(LaunchConfiguration('config').perform(context))
    except RobotIdError as error:
        raise RuntimeError(str(error)) from None


def robot(context: LaunchContext) -> list:
    """Spawn the robot, its controllers, and the session once they are active."""
    folder = Path(tempfile.mkdtemp(prefix='robotid_'))
    given = Path(LaunchConfiguration('config').perform(context))
    parameters = folder / 'controllers.yaml'
    configuration = configured(context)
    said: list[Action] = []
    try:
        if configuration.robot.elastic.joints:
            said = [LogInfo(msg='Gazebo has no springs: the joints of the robot are rigid')]
        there = gazebo_configuration(given.absolute(), folder)
        context.launch_configurations['config'] = str(there)
        description = prepare_gazebo(configuration, parameters)
    except RobotIdError as error:
        raise RuntimeError(str(error)) from None
    controller = configuration.simulation.controller
    spawner = Node(
        package='controller_manager',
        executable='spawner',
        arguments=[
            *(BROADCASTER, controller, '--param-file', str(parameters)),
            *('--controller-manager-timeout', str(START_TIME)),
        ],
    )
    create = Node(
        package='ros_gz_sim',
        executable='create',
        arguments=['-topic', 'robot_description', '-name', configuration.robot.name or 'robot'],
    )
    return [
        *said,
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
        within(START_TIME, create, 'the robot was not spawned in time: see what Gazebo says'),
        after(create, spawner, 'the robot was not spawned: see what Gazebo says'),
        after(spawner, include_session(HERE), 'the controllers are not active: see what they say'),
    ]


def after(process: Node, action: Action, failure: str) -> RegisterEventHandler:
    """Begin an action when a process has done its work, and end the launch when it has failed."""

    def ended(event: ProcessExited, _: LaunchContext) -> list[Action]:
        return [action] if event.returncode == 0 else end_launch(failure)

    return RegisterEventHandler(OnProcessExit(target_action=process, on_exit=ended))


def within(seconds: float, process: Node, failure: str) -> TimerAction:
    """End the launch when a process has not ended in time."""

    def look(_: LaunchContext) -> list[Action]:
        return end_launch(failure) if process.return_code is None else []

    return TimerAction(period=seconds, actions=[OpaqueFunction(function=look)])


def gazebo(context: LaunchContext) -> list[Action]:
    """Start Gazebo itself: a shell between it and the launch would keep a signal to itself."""
    arguments = shlex.split(LaunchConfiguration('gz_args').perform(context))
    if not any(Path(word).suffix == '.sdf' for word in arguments):
        world = Path(tempfile.mkdtemp(prefix='robotid_')) / 'world.sdf'
        factor = LaunchConfiguration('real_time_factor').perform(context)
        gravity = ' '.join(map(str, configured(context).robot.gravity))
        world.write_text(WORLD.format(factor=factor, gravity=gravity))
        arguments.append(str(world))
    paths = [os.environ.get(k, '') for k in ('GZ_SIM_SYSTEM_PLUGIN_PATH', 'LD_LIBRARY_PATH')]
    return [
        ExecuteProcess(
            cmd=['gz', 'sim', *arguments],
            name='gazebo',
            output='screen',
            additional_env={'GZ_SIM_SYSTEM_PLUGIN_PATH': os.pathsep.join(paths)},
            on_exit=end_launch('Gazebo ended'),
        )
    ]


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
    arguments = [
        *robot_arguments(HERE.parent / 'config'),
        DeclareLaunchArgument(
            'gz_args', default_value='-r', description='of Gazebo; -s: without a window'
        ),
        DeclareLaunchArgument(
            'real_time_factor',
            default_value='1.0',
            description='at most, of a world that gz_args does not name',
        ),
        DeclareLaunchArgument(
            'auto_start',
            default_value='true',
            choices=['true', 'false'],
            description='start the excitation at once; false: wait for excitation/start',
        ),
        SetLaunchConfiguration('simulated', 'true'),
        SetLaunchConfiguration('use_sim_time', 'true'),
    ]
    return LaunchDescription(
        [
            *arguments,
            OpaqueFunction(function=check_views),
            OpaqueFunction(function=meshes),
            OpaqueFunction(function=gazebo),
            Node(
                package='ros_gz_bridge',
                executable='parameter_bridge',
                arguments=['/clock@rosgraph_msgs/msg/Clock[gz.msgs.Clock'],
            ),
            OpaqueFunction(function=robot),
        ]
    )
