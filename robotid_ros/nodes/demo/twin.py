"""A simulated twin of the present robot, as the configuration of a simulated session."""

from collections.abc import Mapping
import copy
import dataclasses
from pathlib import Path
from typing import Any

from ...core.excitation.design import Design
from ...core.setup.robot_setup import SimulatedDrives
from ...files.atomic import write_text
from ...files.trajectory_file import write_design
from ...files.yaml import dump_yaml
from ...simulation_settings import (
    ConstraintSettings,
    GainSettings,
    JointConstraintSettings,
    SimulationSettings,
)
from ..common.controller import ControllerDescription

# How far the twin's bodies are from the URDF's, where the configuration does not say: an
# identification has to find them.
INERTIAL_ERROR = 0.1
# What is guessed of the drives.
GUESSED = ('rotor_inertia', 'viscous', 'coulomb', 'offset')
CONFIGURATION, DESCRIPTION, TRAJECTORY = 'twin.yaml', 'robot.urdf', 'trajectory.yaml'


def write_twin(
    folder: Path,
    values: Mapping[str, Any],
    urdf: str,
    design: Design,
    controller: ControllerDescription,
    positions: Mapping[str, float],
    drives: SimulatedDrives | None = None,
) -> Path:
    """
    Write the configuration of a session that a twin of the present robot runs.

    Parameters
    ----------
    folder : for the twin's files
    values : groups of the robot's own configuration; its group `simulation`, where it has one,
        says what cannot be read from the robot (friction, rotor inertias, noise)
    urdf : description of the robot
    design : what will be run
    controller : the real one, whose gains, tolerances and rate the twin has
    positions : where the joints are now [rad or m], by name in the robot's order
    drives : a guess, in the same order, where the group `simulation` says nothing of them

    Returns
    -------
    The configuration file.

    """
    description, trajectory = folder / DESCRIPTION, folder / TRAJECTORY
    write_text(description, urdf)
    write_design(trajectory, design)
    groups = copy.deepcopy(dict(values))
    groups['robot'] = {**groups.get('robot', {}), 'urdf': str(description)}
    groups['excitation'] = {
        **groups.get('excitation', {}),
        'trajectory': str(trajectory),
        'controller': controller.name,
        'auto_start': False,
        'require_recorder': True,
        'require_rehearsal': False,
    }
    groups['recorder'] = {'folder': str(folder)}
    given = groups.get('simulation', {})
    if drives is not None and given.keys().isdisjoint(('joints', *GUESSED)):
        given = {**{key: getattr(drives, key).tolist() for key in GUESSED}, **given}
    groups['simulation'] = _simulation(given, controller, positions)
    content = {'/**': {'ros__parameters': _without_empty(groups)}}
    return write_text(folder / CONFIGURATION, dump_yaml(content))


def _simulation(
    given: Mapping[str, Any], controller: ControllerDescription, positions: Mapping[str, float]
) -> dict[str, Any]:
    """Take from the controller what it says, the rest from the configuration."""
    values = controller.values
    # The order of the configuration's arrays, which need not be the controller's.
    joints = given.get('joints') or list(positions)
    taken: dict[str, Any] = {
        'controller': controller.name,
        'joints': joints,
        'command_interface': controller.followed_interface,
        'initial_positions': [positions[joint] for joint in joints],
        'gains': {
            joint: _named(GainSettings, values, f'gains.{joint}.')
            for joint in joints
            if joint in controller.gains
        },
        'constraints': {
            **_named(ConstraintSettings, values, 'constraints.'),
            'joints': {
                joint: _named(JointConstraintSettings, values, f'constraints.{joint}.')
                for joint in joints
            },
        },
        'real_time_factor': 1.0,
        'fault': {'kind': ''},
    }
    if controller.rate:
        states = given.get('state_rate', SimulationSettings.state_rate)
        taken |= {'update_rate': controller.rate, 'state_rate': min(states, controller.rate)}
    return {'inertial_error': INERTIAL_ERROR, **given, **taken}


def _named(cls: type, values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Those of a controller's parameters that the simulated one has as well."""
    names = {field.name for field in dataclasses.fields(cls)}
    found = {key.removeprefix(prefix): value for key, value in values.items()}
    return {k: v for k, v in found.items() if k in names and v is not None}


def _without_empty(groups: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out groups without keys: rcl's parser takes what follows them for their content."""
    found = {k: _without_empty(v) if isinstance(v, Mapping) else v for k, v in groups.items()}
    return {k: v for k, v in found.items() if v != {}}
