"""Identify a robot that is already up: excitation, recorder and identification."""

from pathlib import Path
from typing import Any

from launch import Action, LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.parameter_descriptions import Parameter

from robotid_ros.node_settings import UNCHECKED
from robotid_ros.nodes.common.launch_files import package_node, view_actions, VIEWS

# Texts, empty by default, and what is off by default.
TEXTS = {
    'controller': "joint trajectory controller that moves the robot; empty: the file's",
    'output_dir': "folder of recordings and results; empty: the configuration file's",
    'namespace': 'of all nodes, such as /arm1, where the robot is; empty: none',
}
SWITCHES = {
    'auto_start': 'move the robot at once; false: wait for excitation/start',
    'plotjuggler': 'plot motion and efforts, measured and predicted, in PlotJuggler',
    'page': 'show the session in a browser, at the address that is printed',
    'foxglove': 'bridge the topics to Foxglove, and write a layout for it',
    'use_sim_time': 'time from /clock',
}
ARGUMENTS = [
    DeclareLaunchArgument('config', description="the robot's configuration file"),
    *(DeclareLaunchArgument(k, default_value='', description=text) for k, text in TEXTS.items()),
    *(
        DeclareLaunchArgument(
            name, default_value='false', choices=['true', 'false'], description=text
        )
        for name, text in SWITCHES.items()
    ),
    DeclareLaunchArgument(
        'log_level',
        default_value='info',
        choices=['debug', 'info', 'warn', 'error', 'fatal'],
        description='severity from which the nodes log',
    ),
]


def session(context: LaunchContext) -> list[Action]:
    """Start the nodes of a session; when one of them ends, the others do."""
    given = {a.name: LaunchConfiguration(a.name).perform(context) for a in ARGUMENTS}
    config = Path(given['config']).expanduser().absolute()
    if not config.is_file():
        raise RuntimeError(f"'{config}' does not exist: give a configuration file, config:=…")
    overrides: dict[str, Any] = {
        'excitation.controller': given['controller'],
        'excitation.auto_start': given['auto_start'] == 'true',
        'recorder.folder': given['output_dir'],
        'use_sim_time': given['use_sim_time'] == 'true',
    }
    # Set by the launch files of simulations: nothing real moves.
    if context.launch_configurations.get('simulated') == 'true':
        overrides['excitation.accept_unchecked'] = list(UNCHECKED)
        # A busy machine halts a simulation for longer than a real robot may be silent.
        overrides['excitation.stale_after'] = 2.0
    parameters = [Parameter(key, value) for key, value in overrides.items() if value != '']
    nodes = [
        package_node(name, [str(config), *parameters], given['log_level'])
        for name in ('identification', 'recorder', 'excitation')
    ]
    views: list[Action] = []
    if given['page'] == 'true':
        # A session goes on without its page.
        views.append(
            package_node('live', [str(config), *parameters], given['log_level'], alone=True)
        )
    for kind in VIEWS:
        if given[kind] == 'true':
            views += view_actions(kind, config, given['namespace'], given['controller'])
    return [*nodes, *views]


def generate_launch_description() -> LaunchDescription:
    """Describe the launch."""
    return LaunchDescription([*ARGUMENTS, OpaqueFunction(function=session)])
