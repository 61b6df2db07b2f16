"""Designs of the package's own robots, with surroundings, and what their pages need."""

import dataclasses
from pathlib import Path

from robotid_ros.core.excitation.settings import Obstacle
from robotid_ros.core.model import build_robot
from robotid_ros.files.configuration import load, read_urdf
from robotid_ros.files.trajectory_file import read_design

CONFIG = Path(__file__).resolve().parents[3] / 'config'
OBSTACLES = {
    'table': Obstacle('box', (0.9, 0.0, 0.2), (0.0, 0.0, 0.3), (0.4, 0.6, 0.4)),
    'ball': Obstacle('sphere', (-0.9, 0.0, 0.5), size=(0.2,)),
    'post': Obstacle('cylinder', (0.0, -0.9, 0.5), (0.0, 0.1, 0.0), (0.05, 1.0)),
}


def designed(name='arm3', **workspace):
    """Return a stored design, its robot and its configuration with another workspace."""
    configuration = load(CONFIG / f'{name}.yaml')
    robot = build_robot(read_urdf(configuration), configuration.robot)
    changed = dataclasses.replace(configuration.excitation.workspace, **workspace)
    excitation = dataclasses.replace(configuration.excitation, workspace=changed)
    configuration = dataclasses.replace(configuration, excitation=excitation)
    return read_design(CONFIG / 'trajectories' / f'{name}.yaml'), robot, configuration
