"""
What Gazebo needs to stand in for the robot: a description with gz_ros2_control, and controllers.

It uses the same `simulation` settings as the simulated robot, as far as Gazebo knows them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import yaml

from ...core.model.urdf_parsing import movable_joints
from ...exceptions import ConfigurationError
from ...simulation_settings import SimulationSettings
from ..configuration import Configuration, read_urdf

BROADCASTER = 'joint_state_broadcaster'
GAINS = ('p', 'i', 'd', 'ff_velocity_scale')
LIBRARY = 'gz_ros2_control-system'
PLUGIN = 'gz_ros2_control::GazeboSimROS2ControlPlugin'
SYSTEM = 'gz_ros2_control/GazeboSimSystem'


def prepare_gazebo(configuration: Configuration, parameters: Path) -> str:
    """
    Write the parameters of the controllers, and return the description of the robot to spawn.

    Raises
    ------
    ConfigurationError : the configuration names no URDF

    """
    urdf = read_urdf(configuration)
    if urdf is None:
        raise ConfigurationError("the configuration names no URDF: set 'robot.urdf'")
    simulation = configuration.simulation
    names, followers = movable_joints(urdf)
    driven = [name for name in names if name not in followers]
    joints = simulation.joints or configuration.robot.joints or driven
    parameters.write_text(yaml.safe_dump(controller_parameters(simulation, joints)))
    return gazebo_description(urdf, joints, simulation.initial_positions, str(parameters))


def controller_parameters(settings: SimulationSettings, joints: Sequence[str]) -> dict[str, Any]:
    """
    Parameters of the controller manager, the broadcaster and a controller in effort mode.

    Returns
    -------
    The content of a ROS 2 parameter file; joints without gains in the settings get zeros.

    """
    manager = {
        'update_rate': int(settings.update_rate),
        BROADCASTER: {'type': 'joint_state_broadcaster/JointStateBroadcaster'},
        settings.controller: {'type': 'joint_trajectory_controller/JointTrajectoryController'},
    }
    gains = {joint: settings.gains[joint] for joint in joints if joint in settings.gains}
    controller = {
        'joints': list(joints),
        'command_interfaces': ['effort'],
        'state_interfaces': ['position', 'velocity'],
        'gains': {j: {name: getattr(g, name) for name in GAINS} for j, g in gains.items()},
    }
    return {
        'controller_manager': {'ros__parameters': manager},
        settings.controller: {'ros__parameters': controller},
    }


def gazebo_description(
    urdf: str, joints: Sequence[str], positions: Sequence[float], parameters: str
) -> str:
    """
    Add to a URDF what Gazebo asks for: a fixed root, effort interfaces, the plugin.

    Parameters
    ----------
    urdf : text of the robot description
    joints : joints with an effort interface
    positions : where they start [rad or m]; empty: 0
    parameters : path of the parameter file for the plugin's controller manager

    """
    robot = ElementTree.fromstring(urdf)
    children = {child.get('link') for child in robot.findall('joint/child')}
    roots = [name for link in robot.findall('link') if (name := link.get('name')) not in children]
    if roots and roots[0] and roots[0] != 'world':
        ElementTree.SubElement(robot, 'link', name='world')
        fixed = ElementTree.SubElement(robot, 'joint', name='world_joint', type='fixed')
        ElementTree.SubElement(fixed, 'parent', link='world')
        ElementTree.SubElement(fixed, 'child', link=roots[0])
    system = ElementTree.SubElement(robot, 'ros2_control', name='gazebo', type='system')
    hardware = ElementTree.SubElement(system, 'hardware')
    ElementTree.SubElement(hardware, 'plugin').text = SYSTEM
    for name, position in zip(joints, positions or [0.0] * len(joints), strict=True):
        joint = ElementTree.SubElement(system, 'joint', name=name)
        ElementTree.SubElement(joint, 'command_interface', name='effort')
        state = ElementTree.SubElement(joint, 'state_interface', name='position')
        ElementTree.SubElement(state, 'param', name='initial_value').text = f'{position!r}'
        for other in ('velocity', 'effort'):
            ElementTree.SubElement(joint, 'state_interface', name=other)
    gazebo = ElementTree.SubElement(robot, 'gazebo')
    plugin = ElementTree.SubElement(gazebo, 'plugin', filename=LIBRARY, name=PLUGIN)
    ElementTree.SubElement(plugin, 'parameters').text = parameters
    return ElementTree.tostring(robot, encoding='unicode')
