"""Descriptions and controllers for Gazebo, by gz_ros2_control and ros_gz of Jazzy."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pinocchio
import yaml

from ...core.arrays import Array
from ...core.model import build_robot, Robot
from ...core.model.assumed_inertials import with_inertials
from ...core.model.dynamics import inverse_dynamics
from ...core.model.robot_builder import final_leader, read_mimics
from ...core.model.settings import ElasticSettings
from ...core.model.urdf_parsing import movable_names, parse_urdf, root_link
from ...core.setup.joint_choice import JointTree
from ...core.verification.gains import body_inertia, BodyLoops, POSTURES
from ...exceptions import ConfigurationError
from ...node_settings import ExcitationNodeSettings
from ...plant.urdf_reading import joint_transform, read_joints
from ...simulation_settings import GainSettings, SimulationSettings
from ..atomic import write_text
from ..configuration import Configuration, load_with_mapping, read_urdf
from ..yaml import dump_yaml
from .simulators import render_description

BROADCASTER = 'joint_state_broadcaster'
GAINS = ('p', 'i', 'd', 'ff_velocity_scale')
SYSTEM = 'gz_ros2_control/GazeboSimSystem'
# Steps of Gazebo's physics in a second, as of its worlds that come with it [Hz].
STEP_RATE = 1000
# What a session allows at least, in times of what a joint gives way to its weight: as it moves, it
# bears more.
TIMES_SAG = {'tracking_error': 2.5, 'goal_tolerance': 1.5}

# A world without a ground, which arms would touch; Gazebo adds the systems that it needs.
WORLD = """<sdf version="1.9">
  <world name="robotid">
    <gravity>{gravity}</gravity>
    <physics name="1ms" type="ignored">
      <max_step_size>0.001</max_step_size>
      <real_time_factor>{factor}</real_time_factor>
    </physics>
    <light type="directional" name="sun"/>
  </world>
</sdf>
"""


def gazebo_configuration(path: Path, folder: Path) -> Path:
    """Return a configuration as Gazebo has it: rigid joints, room for what softer gains make."""
    values, configuration = load_with_mapping(path)
    changed = dict[str, dict[str, Any]]()
    if configuration.robot.elastic.joints:
        changed['robot'] = {k: v for k, v in values['robot'].items() if k != 'elastic'}
    own, sag = values.get('excitation', {}), RobotInGazebo(configuration).sag()
    for name, times in TIMES_SAG.items():
        allowed = np.asarray(own.get(name) or getattr(ExcitationNodeSettings(), name))
        if (times * sag > allowed).any():
            most = np.maximum(allowed, times * sag).round(4).tolist()
            changed['excitation'] = {**own, **changed.get('excitation', {}), name: most}
    if not changed:
        return path
    robot = {**changed.pop('robot', values['robot']), 'urdf': configuration.robot.urdf}
    content = {'/**': {'ros__parameters': {**values, **changed, 'robot': robot}}}
    return write_text(folder / path.name, dump_yaml(content))


class RobotInGazebo:
    """A configured robot without rotors and springs, and with gains that its bodies bear."""

    def __init__(self, configuration: Configuration):
        urdf, simulation = read_urdf(configuration), configuration.simulation
        if urdf is None:
            raise ConfigurationError("the configuration names no URDF: set 'robot.urdf'")
        urdf, _ = with_inertials(urdf, configuration.robot.mass)
        joints = simulation.joints or configuration.robot.joints or JointTree(urdf).independent
        rigid = replace(configuration.robot, joints=joints, elastic=ElasticSettings())
        self.robot = build_robot(urdf, rigid)
        self.urdf = with_fixed_joints(self.robot.urdf, self.robot)
        given = [simulation.gains.get(joint, GainSettings()) for joint in joints]
        gains = np.array([[getattr(each, name) for each in given] for name in 'pid'])
        if simulation.gains:
            gains = BodyLoops(self.robot, gains, controller_rate(simulation)).bearable_gains()
            lowered = {
                joint: replace(each, p=p, i=i, d=d)
                for joint, each, (p, i, d) in zip(joints, given, gains.T.tolist(), strict=True)
                if joint in simulation.gains
            }
            simulation = replace(simulation, gains={**simulation.gains, **lowered})
        self.simulation, self._stiffness = simulation, gains[0]

    def sag(self) -> Array:
        """Return how far each joint gives way to its weight, (n,), 0 without a gain [rad or m]."""
        poses = self.robot.random_positions(POSTURES)
        rest = np.zeros_like(poses)
        weight = inverse_dynamics(self.robot, self.robot.prior, poses, rest, rest)
        most = np.abs(weight / self.robot.drive_gain).max(axis=0)
        return np.divide(most, self._stiffness, out=np.zeros_like(most), where=self._stiffness > 0)


def prepare_gazebo(configuration: Configuration, parameters: Path) -> str:
    """Write the parameters of the controllers; return the description of the robot to spawn."""
    there = RobotInGazebo(configuration)
    joints, simulation = there.robot.joints, there.simulation
    parameters.write_text(yaml.safe_dump(controller_parameters(simulation, joints)))
    return gazebo_description(there.urdf, joints, simulation.initial_positions, str(parameters))


def with_fixed_joints(urdf: str, robot: Robot) -> str:
    """Fix the joints that do not move in a model where they stand: in Gazebo they would dangle."""
    root = parse_urdf(urdf)
    joints = {str(joint.get('name')): joint for joint in root.findall('joint')}
    known, following = {joint.name: joint for joint in read_joints(root)}, read_mimics(joints)
    moving = {*robot.joints, *(each.name for each in robot.followers)}
    for name in (name for name in movable_names(root) if name not in moving):
        joint, end = joints[name], final_leader(name, robot.locked, following)
        position = end.ratio * robot.locked.get(end.leader, 0.0) + end.offset
        place = known[name].origin @ joint_transform(known[name], position)
        for part in [*joint]:
            if part.tag not in ('parent', 'child'):
                joint.remove(part)
        joint.set('type', 'fixed')
        at = {'xyz': place[:3, 3], 'rpy': pinocchio.rpy.matrixToRpy(place[:3, :3])}
        text = {key: ' '.join(map(repr, value.tolist())) for key, value in at.items()}
        ElementTree.SubElement(joint, 'origin', text)
    return ElementTree.tostring(root, encoding='unicode')


def friction_factors(robot: Robot) -> Array:
    """
    Return how many times its dry friction each joint has in Gazebo, (n,), in the median posture.

    DART takes damping D into a step h implicitly, `(M + h D) v⁺ = M v + h τ`, and lets dry
    friction F change v⁺ by `h M⁻¹ F`: as much as a force of `(M + h D) M⁻¹ F` before the step.
    What other joints' friction adds by that is left out here.
    """
    inverse = np.diagonal(np.linalg.inv(body_inertia(robot)), axis1=1, axis2=2)
    return 1.0 + robot.damping / np.abs(robot.drive_gain) / STEP_RATE * np.median(inverse, axis=0)


def controller_rate(settings: SimulationSettings) -> int:
    """Return Gazebo's rate of updates [Hz], which has to divide that of its whole steps."""
    steps = ceil(STEP_RATE / min(settings.update_rate, STEP_RATE))
    return STEP_RATE // next(k for k in range(steps, STEP_RATE + 1) if STEP_RATE % k == 0)


def controller_parameters(settings: SimulationSettings, joints: Sequence[str]) -> dict[str, Any]:
    """Return a parameter file: manager, broadcaster and a controller in effort mode."""
    # controller_manager reads it when it begins, before the plugin sets it.
    simulated = {'use_sim_time': True}
    manager = simulated | {
        'update_rate': controller_rate(settings),
        BROADCASTER: {'type': 'joint_state_broadcaster/JointStateBroadcaster'},
        settings.controller: {'type': 'joint_trajectory_controller/JointTrajectoryController'},
    }
    gains = {joint: settings.gains[joint] for joint in joints if joint in settings.gains}
    controller = simulated | {
        'joints': list(joints),
        'command_interfaces': ['effort'],
        'state_interfaces': ['position', 'velocity'],
        'gains': {j: {name: getattr(g, name) for name in GAINS} for j, g in gains.items()},
    }
    return {
        'controller_manager': {'ros__parameters': manager},
        BROADCASTER: {'ros__parameters': simulated},
        settings.controller: {'ros__parameters': controller},
    }


def gazebo_description(
    urdf: str, joints: Sequence[str], positions: Sequence[float], parameters: str
) -> str:
    """
    Add to a URDF what Gazebo asks for: a fixed root, effort interfaces, the plugin.

    Hardware that the URDF names already is left out: the plugin cannot load that of a real robot.
    No effort is a state: gz_ros2_control leaves it at 0, in later releases it is the torque behind
    the joint's friction. Without one the broadcaster says NaN, and a session takes what the
    controller commands, which is what Gazebo applies. Joints start at `positions` [rad or m],
    empty: 0; `parameters` is the path of the file for the plugin's controller manager.
    """
    robot = ElementTree.fromstring(urdf)
    for own in robot.findall('ros2_control'):
        robot.remove(own)
    for gazebo in robot.findall('gazebo'):
        for plugin in gazebo.findall('plugin'):
            if 'ros2_control' in f'{plugin.get("filename")} {plugin.get("name")}'.lower():
                gazebo.remove(plugin)
    added = render_description('gazebo.xml', {
        'root': root_link(urdf),
        'system': SYSTEM,
        'joints': dict(zip(joints, positions or [0.0] * len(joints), strict=True)),
        'parameters': parameters,
    })  # fmt: skip
    robot.extend(ElementTree.fromstring(added))
    return ElementTree.tostring(robot, encoding='unicode')
